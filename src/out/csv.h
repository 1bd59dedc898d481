// CSV files of a run: one fixed header, one row per write(2), decimal point always a point whatever
// the locale, missing value empty. A file never changes its columns, and never holds half a row.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stddef.h>

// ---- writing

struct csv {
  int fd;        // -1: closed
  int ncol, col; // columns of the header; cells given to the row so far
  char path[1024];
  size_t used;    // bytes of row in use
  char row[8192]; // the row being built
};

// Opens path for appending, with its folder in place. A new or empty file gets the header (comma
// separated names, no newline). An existing one must have exactly this header: otherwise
// EXIT_USAGE, naming the columns that are missing, unknown or out of order. A last line without
// newline (disk was full, machine went down) is cut off with a warning.
int csv_open(struct csv *c, const char *path, const char *header, struct err *e);

// One call per column, in the header's order; csv_end appends the row. Too many or too few cells,
// or a row above the size of the buffer, is a programmer's error.
void csv_real(struct csv *c, double x);  // 9 significant digits; "nan", "inf" as such
void csv_exact(struct csv *c, double x); // 17 digits: reads back as the same double
void csv_int(struct csv *c, long long x);
void csv_real_or_missing(struct csv *c, double x); // missing when NaN
void csv_text(struct csv *c, const char *s);       // quoted if it needs to be
void csv_missing(struct csv *c);
int csv_end(struct csv *c, struct err *e);
// Two empty lines, which csv_read skips: what follows is another data set to gnuplot (index).
int csv_break(struct csv *c, struct err *e);

void csv_close(struct csv *c); // fine on a closed one

// For resuming, before csv_open. Keeps the header and the first nrow rows: fewer in the file is an
// error (EXIT_IO), a missing file too unless nrow is 0.
int csv_keep_rows(const char *path, long long nrow, struct err *e);
// Keeps the rows before the first whose column is at or above limit (resume at iteration 100: keep
// "iteration" below 100). A missing file is fine.
int csv_keep_below(const char *path, const char *column, double limit, struct err *e);

// ---- reading

struct csv_table {
  const char *path;
  int nrow, ncol;
  const char **name; // (ncol)
  const char **cell; // (nrow, ncol) text, "" when missing
};

// Reads plain or gzipped CSV. Errors name file and line: no header, a name twice, a row with more
// or fewer cells than the header (EXIT_USAGE). An unfinished last line is left out.
int csv_read(struct csv_table *t, struct arena *a, const char *path, struct err *e);
int csv_find(const struct csv_table *t, const char *name); // column, or -1
const char *csv_cell(const struct csv_table *t, int row, int col);

// A column as numbers (nrow), NaN where missing. A missing column or a cell that is no number is
// EXIT_USAGE.
int csv_reals(double **x, struct arena *a, const struct csv_table *t, const char *name,
              struct err *e);
