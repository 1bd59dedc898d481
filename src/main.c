// dsim: picks the sub-command. Everything else is in src/cmd/.
#include "base/err.h"
#include "cmd/cmd.h"
#include <stdio.h>
#include <string.h>

const struct command commands[] = {
    {"train", cmd_train, "optimise what a spec describes: train a policy"},
    {"evaluate", cmd_evaluate, "roll a trained policy out in the training simulator"},
    {"transfer", cmd_transfer, "run a trained policy in MuJoCo"},
    {"ablate", cmd_ablate, "every run of a sweep, with statistics over seeds"},
    {"gradvar", cmd_gradvar, "variance of the policy's gradient, with and without bundles"},
    {"render", cmd_render, "film strip and moving picture of a policy"},
    {"plot", cmd_plot, "results to figures: learning curves, tracking errors, film strips"},
    {"bench", cmd_bench, "time the simulator against MuJoCo, and training"},
    {"gradcheck", cmd_gradcheck, "check the simulator's gradients against central differences"},
    {"export", cmd_export, "policy as an ONNX file for a controller"},
    {"motion", cmd_motion, "check, import and make motion clips"},
    {"spec", cmd_spec, "print the resolved spec, or list every field"},
    {"help", cmd_help, "this text, or help on a command"},
};
const int ncommand = sizeof commands / sizeof commands[0];

static int run_command(int argc, char **argv) {
  const char *name = argv[1];
  const char *names[sizeof commands / sizeof commands[0]];
  for (int i = 0; i < ncommand; i++) {
    names[i] = commands[i].name;
    if (strcmp(name, names[i]) == 0) {
      return commands[i].run(argc - 1, argv + 1);
    }
  }
  struct err e = {0};
  const char *nearest = err_nearest(name, names, ncommand);
  if (nearest != NULL) {
    err_set(&e, EXIT_USAGE, "unknown command '%.80s' (did you mean '%s'?)", name, nearest);
  } else {
    err_set(&e, EXIT_USAGE, "unknown command '%.80s' (see dsim help)", name);
  }
  return err_report(&e);
}

int main(int argc, char **argv) {
  static char help[] = "help";
  static char *help_argv[] = {help, NULL};
  int code;
  if (argc < 2) {
    cmd_help(1, help_argv);
    code = EXIT_USAGE;
  } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    code = cmd_help(1, help_argv);
  } else {
    code = run_command(argc, argv);
  }
  // a table cut short by a full disk or a closed pipe is no success
  if (fflush(stdout) != 0 || ferror(stdout)) {
    struct err e = {0};
    err_set(&e, EXIT_IO, "cannot write to the standard output");
    err_report(&e);
    return code != EXIT_DONE ? code : EXIT_IO;
  }
  return code;
}
