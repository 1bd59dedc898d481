// The sub-commands of dsim, one file each (cmd/<name>.c). argv[0] is the command's own name; the
// return value is the program's exit code (base/err.h). A command parses, calls, reports: no more.
#pragma once

int cmd_train(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_transfer(int argc, char **argv);
int cmd_ablate(int argc, char **argv);
int cmd_gradvar(int argc, char **argv);
int cmd_motion(int argc, char **argv);
int cmd_gradcheck(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_spec(int argc, char **argv);
int cmd_help(int argc, char **argv);

// One row per command that exists, in the order of the help screen (main.c).
struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help; // one line
};
extern const struct command commands[];
extern const int ncommand;
