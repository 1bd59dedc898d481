// The small experiments (spec.task other than track): tables for `dsim ablate`, fits for `dsim
// train` and `dsim evaluate`. Those commands hand a spec over when its task is one of these.
#pragma once
#include "cmd/options.h"

// `dsim ablate NAME`: sets *handled if NAME is the spec of a small experiment, and then runs it:
// table.csv in --out or results/EXPERIMENT/. threads: 0 for the spec's. refused:
// an option that was given and that tables do not know, or NULL.
int experiment_table(bool *handled, const char *name, const struct run_options *run, int threads,
                     const char *refused, int argc, char *const *argv, struct err *e);

// `dsim train SPEC` and `dsim evaluate RUN` of a spec whose task is a fit. dir: of the run.
int experiment_train(const struct spec *s, const char *dir, const struct run_options *run, int argc,
                     char *const *argv, struct err *e);
int experiment_evaluate(const struct spec *s, const char *dir, const struct run_options *run,
                        struct err *e);

// Adam for one number: the step to subtract.
struct adam_number {
  double m, v, power1, power2; // powers start at 1
};
double adam_number_step(struct adam_number *a, const struct spec *s, double gradient);

// Identification (cmd/identify.c), in a folder that is open.
int identify_train(const struct spec *s, const char *dir, struct arena *a, struct err *e);
int identify_evaluate(const struct spec *s, const char *dir, const struct run_options *run,
                      struct arena *a, struct err *e);

// One table's rows into an open file (cmd/tables.c).
int table_bounce(const struct spec *s, const char *path, struct err *e);
int table_toss(const struct spec *s, const char *path, struct err *e);
int table_time_toss(const struct spec *s, const char *path, struct err *e);
int table_billiard(const struct spec *s, const char *path, struct err *e);
// (cmd/gradients.c, cmd/collide.c)
int table_gradients(const struct spec *s, const char *path, struct err *e);
int table_collide(const struct spec *s, const char *path, struct err *e);
