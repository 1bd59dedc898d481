// Sweeps: which runs an experiment is made of. A file experiments/ablate/NAME.yaml,
//
//   base: jump                    spec that every cell starts from (beside this file, or a name)
//   set:                          fields that all cells share
//     iterations: 600
//   variants:                     named sets of fields
//     - name: bundles
//       bundle.size: 10
//     - name: plain
//   sweep:                        every combination of these values, for every variant
//     contact.kappa: [50, 100, 300]
//     motion: [motions/run.csv.gz, motions/jump.csv.gz]
//   seeds: [0, 4]                 first and last
//   steps: [train, transfer, evaluate --episodes 4]
//   metrics: [falls, e_track_cm]
//
// or an ordinary spec with axes from the command line. A step's --out names a file in the cell's
// folder: `transfer --perturb noise=1 --out noisy.csv` is what the metric falls@noisy reads. The
// product is taken in the file's order; a cell is one variant (text like bundles_kappa50_run) at
// one seed. Cells are ordered by seed first, so that a sweep that is stopped early has something of
// every variant.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "cmd/options.h"
#include "spec/spec.h"

enum { SWEEP_MAX_AXES = 8, SWEEP_MAX_STEPS = 8, SWEEP_MAX_METRICS = 64, SWEEP_MAX_CELLS = 10000 };

struct sweep_variant {
  const char *name;       // folder name, the same whenever the values are
  int nset;               // fields that make it, as --set takes them: "contact.kappa=50"
  const char *const *set; // those of `set:` and of the command line included
};

struct sweep_cell {
  const struct sweep_variant *variant;
  int seed;
  const char *dir;  // OUT/VARIANT/seedK
  struct spec spec; // resolved, with experiment, variant and seed
  char hash[65];    // of every field but threads, which changes no result
};

struct sweep {
  const char *path; // of the sweep file or spec
  const char *name; // "stiffness": results/ablate/NAME
  const char *base; // spec's name, for command lines
  const char *out;  // folder of the results
  int nvariant, ncell;
  struct sweep_variant *variant;
  struct sweep_cell *cell;
  int nstep;
  const char *step[SWEEP_MAX_STEPS]; // "train", "evaluate --episodes 4"
  int nmetric;
  const char *metric[SWEEP_MAX_METRICS]; // as named in summary.h
};

struct sweep_options {
  struct option_list set;       // more fields for all cells; not one that is swept
  struct option_list axis;      // "path=v1,v2": a new axis, or other values for one of the file
  struct option_interval seeds; // instead of the file's
  const char *out;              // NULL: results/ablate/NAME
};

// name: a path, experiments/ablate/NAME.yaml or a spec. Checks all there is to check before a run:
// fields, values, bounds, variants that would share a folder, files that are missing. EXIT_USAGE
// with file:line:column.
int sweep_read(struct sweep *s, struct arena *a, const char *name, const struct sweep_options *o,
               struct err *e);
