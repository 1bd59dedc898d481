// What a sweep comes to. A metric is one number of a finished cell, read from the files of its run
// directory; summary.csv has its statistics over seeds, curves.csv the way there.
#pragma once
#include "cmd/sweep.h"
#include "out/stats.h"
#include <stdio.h>

// Where the numbers come from: "falls" of transfer.csv, ... EXIT_USAGE without a place for a name
// that is unknown, with the nearest one, or for one whose file no step of the sweep writes.
// "steps_to_10_cm" and "wall_s_to_10_cm" take any number: environment steps (seconds of training)
// until an evaluation tracks to the end of the clip with 10 cm or less. "falls@noisy" is falls of
// noisy.csv, which a step "transfer ... --out noisy.csv" writes into the cell's folder.
int summary_check_metric(const char *metric, const char *const *step, int nstep, struct err *e);
void summary_help(FILE *out);             // every metric, one a line
int summary_decimals(const char *metric); // that a table shows
// Of the finished cell in dir; NaN when the run does not have it.
int summary_value(double *x, struct arena *a, const char *metric, const char *dir, struct err *e);

struct summary_row {
  const char *variant, *metric;
  struct stats stats;
};

// Rows by variant, then by metric; with four finished seeds or more a row METRIC_iqm follows
// each. finished[i] tells whether cell i counts. Variants without a finished cell have no rows.
int summary_make(struct summary_row **row, int *n, struct arena *a, const struct sweep *s,
                 const bool *finished, struct err *e);
// OUT/summary.csv: variant,metric,n,mean,std,lo,hi
int summary_write(const struct summary_row *row, int n, const char *path, struct err *e);

// OUT/curves.csv, from the progress.csv of the finished cells: rows of `variant` in up to
// SUMMARY_BINS stretches of iterations, each the mean over seeds of the stretch's mean, with the
// bootstrap interval over seeds: variant,iteration,env_steps,wall_s,seeds, then
// NAME,NAME_lo,NAME_hi for reward, e_track_cm, eval_e_track_cm, eval_survival. Two empty lines
// between variants, which gnuplot takes as data sets and csv_read skips.
enum { SUMMARY_BINS = 100 };
int summary_write_curves(struct arena *a, const struct sweep *s, const bool *finished,
                         const char *path, struct err *e);
