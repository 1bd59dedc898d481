// The runs below a results folder: every folder with a progress, evaluation, transfer or trajectory
// file. Names come from the path, ROOT/COLLECTION/EXPERIMENT/VARIANT/seedK.
#pragma once
#include "base/arena.h"
#include "base/err.h"

struct run {
  const char *dir;        // path to open
  const char *collection; // folders above the experiment, joined by '/'; often ""
  const char *experiment, *variant;
  int seed;
};

// Runs in order of their paths (seed2 before seed10). Symbolic links are not followed; a folder
// named by `skip`, directly under root, is left out (NULL: none). root that cannot be read:
// EXIT_USAGE.
int runs_find(struct run **run, int *n, struct arena *a, const char *root, const char *skip,
              struct err *e);

// Path of a file in a run's folder if it is there, else NULL.
const char *run_file(const struct run *r, struct arena *a, const char *name);
