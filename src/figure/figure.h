// The figures of dsim plot: one row each, from result files to a tidy CSV to a picture. A figure
// collects numbers below a results folder, writes them to OUT/NAME.csv (kept: the numbers behind
// the picture) and runs plots/NAME.gp on it for OUT/NAME.svg and OUT/NAME.png.
//
// A new figure is one function, one row in figure.c's table, one script in plots/.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "figure/runs.h"
#include <stdbool.h>

struct figure_context {
  struct arena *arena;
  const char *from, *out; // results folder, folder of the pictures
  const struct run *run;  // all runs below from
  int nrun;
  int made; // pictures made so far
};

struct figure {
  const char *name, *about; // about: one line
  // Draws what there is, reporting each picture; why (written when nothing was drawn) names the
  // input that is missing.
  int (*draw)(struct figure_context *c, char why[200], struct err *e);
};
extern const struct figure figures[];
extern const int nfigure;

const struct figure *figure_find(const char *name, struct err *e); // NULL: EXIT_USAGE, nearest name

// Draws the named figures (n = 0: all), makes the folder out, logs what was made, what was skipped
// and why. A figure asked for by name that cannot be drawn is EXIT_USAGE; with n = 0 it is skipped.
int figures_draw(const char *const *name, int n, const char *from, const char *out, int *made,
                 struct err *e);

// For draw functions: OUT/BASE.svg and .png from plots/SCRIPT.gp, with `data` the CSV and more
// variables in name, value pairs ended by NULL.
int figure_picture(struct figure_context *c, const char *script, const char *base, const char *data,
                   struct err *e, ...) __attribute__((sentinel));
char *figure_path(struct figure_context *c, const char *base, const char *suffix); // OUT/BASEsuffix

// draw functions: src/figure/draw_*.c
int figure_curves(struct figure_context *c, char why[200], struct err *e);
int figure_tracking(struct figure_context *c, char why[200], struct err *e);
int figure_gradvar(struct figure_context *c, char why[200], struct err *e);
int figure_cloud(struct figure_context *c, char why[200], struct err *e);
int figure_bounce(struct figure_context *c, char why[200], struct err *e);
int figure_toss(struct figure_context *c, char why[200], struct err *e);
int figure_time_toss(struct figure_context *c, char why[200], struct err *e);
int figure_billiard(struct figure_context *c, char why[200], struct err *e);
int figure_checkpoints(struct figure_context *c, char why[200], struct err *e);
int figure_methods(struct figure_context *c, char why[200], struct err *e);
int figure_stiffness(struct figure_context *c, char why[200], struct err *e);
int figure_bundle(struct figure_context *c, char why[200], struct err *e);
int figure_identify(struct figure_context *c, char why[200], struct err *e);
int figure_gradients(struct figure_context *c, char why[200], struct err *e);
int figure_strip(struct figure_context *c, char why[200], struct err *e);
