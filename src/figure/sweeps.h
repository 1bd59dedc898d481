// Sweeps below a results folder, as dsim ablate leaves them: folders with a summary.csv (variant,
// metric, n, mean, std, lo, hi), and perhaps curves.csv.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "out/csv.h"
#include <stdbool.h>

struct sweep_dir {
  const char *dir;  // path to open
  const char *name; // folders below the results folder, without "ablate/": "stiffness"
};
// The sweeps whose last folder's name begins with prefix, in order of path. skip: as for runs_find.
int sweeps_find(struct sweep_dir **sweep, int *n, struct arena *a, const char *root,
                const char *skip, const char *prefix, struct err *e);

enum { SWEEP_SHOWN = 64 }; // variants that a figure looks at

struct sweep_table {
  struct csv_table t;
  double *n, *mean, *std, *lo, *hi;
  int nvariant;
  const char *variant[SWEEP_SHOWN]; // in order of appearance
};
int sweep_table_read(struct sweep_table *s, struct arena *a, const char *dir, struct err *e);

struct sweep_number { // NaN where missing; lo and hi fall back on the mean
  double n, mean, std, lo, hi;
};
struct sweep_number sweep_number(const struct sweep_table *s, const char *variant,
                                 const char *metric);
bool sweep_has(const struct sweep_table *s, const char *metric); // a number for any variant
