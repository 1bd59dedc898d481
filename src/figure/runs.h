// The runs below a results folder: every folder with a file of results
// (progress, evaluation, transfer, film strip). Names come from the path,
// ROOT/COLLECTION/EXPERIMENT/VARIANT/seedK.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>

struct run {
  const char *dir;        // path to open
  const char *collection; // folders above the experiment, joined by '/'; often ""
  const char *experiment, *variant;
  int seed;
};

// Runs in order of collection, experiment, variant, seed (seed2 before seed10). Symbolic links are
// not followed; a folder named by `skip`, directly under root, is left out (NULL: none). root that
// cannot be read: EXIT_USAGE.
int runs_find(struct run **run, int *n, struct arena *a, const char *root, const char *skip,
              struct err *e);

// Runs that differ in nothing but the seed.
bool run_same_series(const struct run *a, const struct run *b);
// Path of a file in a run's folder if it is there, else NULL.
const char *run_file(const struct run *r, struct arena *a, const char *name);
