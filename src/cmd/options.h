// Command lines from tables: one row per option gives parsing, bounds, help text and the nearest
// name on a typo. --a-b and --a_b are the same, as are --name=value and --name value; options may
// stand before or after the arguments, "--" ends them, --help prints the help.
//
//   int cmd_evaluate(int argc, char **argv) {
//     struct run_options run = {0};
//     int episodes = 8;
//     const struct option rows[] = {
//         OPTION_SET(run), OPTION_SEED(run), OPTION_OUT(run), OPTION_THREADS(run),
//         OPTION_QUIET(run),
//         {"episodes", OPTION_INT, &episodes, "N", "episodes to roll out", 1, 10000},
//     };
//     struct command_line line = {"evaluate RUN|SPEC", "Rolls out ...", rows, OPTION_COUNT(rows),
//     1, 1}; struct err e = {0}; if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
//       return err_report(&e);
//     }
//     log_quiet(run.quiet);
//     struct spec spec;
//     run_options_spec(&spec, &arena, line.args[0], &run, &e) ...
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "spec/spec.h"
#include <stdbool.h>

enum option_kind {
  OPTION_FLAG,    // bool *, no value
  OPTION_INT,     // int *, within lo..hi
  OPTION_REAL,    // double *, within lo..hi
  OPTION_TEXT,    // const char **
  OPTION_LIST,    // struct option_list *, may be given again
  OPTION_SPEC,    // struct option_list *: --seed 3 is short for --set seed=3 (the name is the path)
  OPTION_INTERVAL // struct option_interval *: "A..B", or "A" alone
};

struct option_list {
  int n;
  const char *v[64];
  int nmade;
  char made[8][96]; // what OPTION_SPEC rows made: "name=value"
};
struct option_interval {
  bool given;
  int first, last; // first <= last
};

struct option {
  const char *name; // with dashes, without the leading two
  enum option_kind kind;
  void *target;
  const char *arg;  // name of the value in the help, NULL for flags
  const char *help; // one line
  double lo, hi;    // bounds of INT, REAL and INTERVAL; none when both are 0
};
#define OPTION_COUNT(rows) ((int)(sizeof(rows) / sizeof(rows)[0]))

struct command_line {
  // filled in by the command
  const char *usage; // what follows "dsim ": "evaluate RUN|SPEC"
  const char *about; // a few lines for --help, may be NULL
  const struct option *option;
  int noption;
  int min_args, max_args; // how many arguments that are not options
  // filled in by options_parse
  int nargs;
  const char *args[16]; // NULL behind the last
  bool help;            // --help was given and answered: return EXIT_DONE
};

// argv[0] is the command's own name. EXIT_USAGE with the nearest option on a mistake.
int options_parse(struct command_line *line, int argc, char **argv, struct err *e);
void options_help(const struct command_line *line); // on stdout

// What commands that read a spec have in common. OPTION_SET(run) and friends are rows for it: take
// those that the command honours.
struct run_options {
  struct option_list set;       // --set, and --seed, --iterations, --threads as "path=value"
  struct option_interval seeds; // --seeds
  const char *out;
  bool resume, overwrite, quiet, json;
};
#define OPTION_SET(run)                                                                            \
  { "set", OPTION_LIST, &(run).set, "PATH=VALUE", "change a field of the spec (repeatable)", 0, 0 }
#define OPTION_SEED(run)                                                                           \
  { "seed", OPTION_SPEC, &(run).set, "N", "short for --set seed=N", 0, 0 }
#define OPTION_SEEDS(run)                                                                          \
  { "seeds", OPTION_INTERVAL, &(run).seeds, "A..B", "one run per seed, B included", 0, 2147483647 }
#define OPTION_ITERATIONS(run)                                                                     \
  { "iterations", OPTION_SPEC, &(run).set, "N", "short for --set iterations=N", 0, 0 }
#define OPTION_THREADS(run)                                                                        \
  { "threads", OPTION_SPEC, &(run).set, "N", "short for --set threads=N (0: all processors)", 0, 0 }
#define OPTION_OUT(run)                                                                            \
  {                                                                                                \
    "out", OPTION_TEXT, &(run).out, "DIR",                                                         \
        "write here instead of results/EXPERIMENT/VARIANT/seedN", 0, 0                             \
  }
#define OPTION_RESUME(run)                                                                         \
  {                                                                                                \
    "resume", OPTION_FLAG, &(run).resume, NULL, "continue the run from its newest checkpoint", 0,  \
        0                                                                                          \
  }
#define OPTION_OVERWRITE(run)                                                                      \
  {                                                                                                \
    "overwrite", OPTION_FLAG, &(run).overwrite, NULL, "start again in an existing run directory",  \
        0, 0                                                                                       \
  }
#define OPTION_QUIET(run)                                                                          \
  { "quiet", OPTION_FLAG, &(run).quiet, NULL, "no progress on stderr", 0, 0 }
#define OPTION_JSON(run)                                                                           \
  { "json", OPTION_FLAG, &(run).json, NULL, "print one JSON object on stdout", 0, 0 }

// spec_read of name (NULL: the defaults alone), then every --set in order, then spec_check. The
// same path given twice on the command line is refused, so are --seed with --seeds and --resume
// with
// --overwrite.
int run_options_spec(struct spec *s, struct arena *a, const char *name,
                     const struct run_options *run, struct err *e);
