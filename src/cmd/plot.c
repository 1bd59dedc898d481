// dsim plot: results to pictures, by gnuplot.
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "figure/figure.h"
#include <stdio.h>
#include <string.h>

// the figures there are, for --help
static void list_figures(char *text, size_t size) {
  for (int i = 0; i < nfigure; i++) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s  %-11s %s", i ? "\n" : "", figures[i].name,
             figures[i].about);
  }
}

int cmd_plot(int argc, char **argv) {
  const char *from = "results", *out = "plots/out";
  bool quiet = false;
  const struct option rows[] = {
      {"from", OPTION_TEXT, &from, "DIR", "results folder to read (default: results)", 0, 0},
      {"out", OPTION_TEXT, &out, "DIR", "folder of the pictures (default: plots/out)", 0, 0},
      {"quiet", OPTION_FLAG, &quiet, NULL, "do not list what was made and what was skipped", 0, 0},
  };
  char about[2048] = "Draws figures from the CSV files of all runs below DIR, as SVG and PNG, with "
                     "the numbers\nbehind each beside it as CSV. Without names: every figure that "
                     "has its inputs. What lies\nin DIR/reference is left out: name it with "
                     "--from. Figures:\n";
  list_figures(about, sizeof about);
  struct command_line line = {
      .usage = "plot [FIGURE...]",
      .about = about,
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .max_args = 15,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  log_quiet(quiet);
  int made;
  if (figures_draw(line.args, line.nargs, from, out, &made, &e) == 0 && made == 0) {
    err_set(&e, EXIT_USAGE,
            "nothing to draw below '%s' (committed results: --from "
            "results/reference)",
            from);
  }
  return err_report(&e);
}
