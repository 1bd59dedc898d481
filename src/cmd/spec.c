// dsim spec SPEC: the resolved spec, every default written out; dsim spec --fields: what there is.
#include "cmd/cmd.h"
#include "cmd/options.h"

int cmd_spec(int argc, char **argv) {
  struct run_options run = {0};
  bool fields = false;
  const struct option rows[] = {
      OPTION_SET(run),
      OPTION_SEED(run),
      OPTION_ITERATIONS(run),
      OPTION_THREADS(run),
      {"fields", OPTION_FLAG, &fields, NULL, "list every field: meaning, bounds, unit, default", 0,
       0},
  };
  struct command_line line = {
      .usage = "spec [SPEC]",
      .about = "Prints the resolved spec, with every default, as a file that dsim reads back.\n"
               "Without SPEC: the defaults. SPEC is a path, a run directory, or a name under\n"
               "experiments/.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  if (fields) {
    spec_help(stdout);
    return EXIT_DONE;
  }
  struct arena arena;
  arena_init(&arena);
  struct spec spec;
  if (run_options_spec(&spec, &arena, line.args[0], &run, &e) == 0) {
    spec_print(&spec, stdout);
  }
  arena_release(&arena);
  return err_report(&e);
}
