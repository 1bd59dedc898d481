// Running gnuplot: one script per figure, settings handed over as gnuplot variables, once for SVG
// and once for PNG. The scripts lie in plots/ and share plots/style.gp.
#pragma once
#include "base/err.h"

struct gnuplot_var {
  const char *name, *value; // text; a script takes numbers by real() or int()
};

// Runs plots/SCRIPT.gp (looked up by file_find) with the variables of vars[0..n), `home` (the
// folder that holds plots/), `out` (file name of the picture) and `ext` (svg, png or gif), which is
// the end of out. gnuplot missing, or ending with an error: EXIT_IO; what it says goes to stderr.
int gnuplot_run(const char *script, const char *out, const struct gnuplot_var *vars, int n,
                struct err *e);
