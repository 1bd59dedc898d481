// Tables for people, on stdout: aligned columns, units in the header, numbers to the right and text
// to the left. Cells are given row by row, printed at the end.
//
//   struct table t;
//   table_init(&t, &arena);
//   table_column(&t, "motion", "", 0);
//   table_column(&t, "E_track", "cm", 1);
//   table_text(&t, "walk"), table_real(&t, 3.6);
//   table_print(&t, stdout);
#pragma once
#include "base/arena.h"
#include <stdbool.h>
#include <stdio.h>

enum { TABLE_MAX_COLUMNS = 32 };

struct table {
  struct arena *arena;
  int ncol, ncell, capacity;
  struct table_column {
    const char *name, *unit; // printed as "name unit" on two lines
    int decimals;
  } column[TABLE_MAX_COLUMNS];
  struct table_cell {
    const char *text;
    bool right; // numbers stand to the right
  } * cell;
};

void table_init(struct table *t, struct arena *a); // memory comes from a, and stays there
void table_column(struct table *t, const char *name, const char *unit, int decimals);

// next cell, row after row; text is copied
void table_text(struct table *t, const char *s);
void table_real(struct table *t, double x); // with the column's decimals; "-" for NaN
void table_int(struct table *t, long long x);
void table_mean_std(struct table *t, double mean, double std); // "3.6 ± 0.2"; NaN std: mean alone
void table_rule(struct table *t); // a line between rows (totals below); only after a whole row

void table_print(const struct table *t, FILE *out);
