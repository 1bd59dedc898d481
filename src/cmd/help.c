// dsim help [COMMAND]
#include "cmd/cmd.h"
#include "cmd/options.h"
#include <stdio.h>
#include <string.h>

static void print_overview(void) {
  printf(
      "usage: dsim COMMAND [ARGUMENTS] [--set PATH=VALUE]... [--seed N] [--threads N] [--out DIR]\n"
      "\n"
      "A differentiable rigid-body simulator that trains policies through contact.\n"
      "\n");
  for (int i = 0; i < ncommand; i++) {
    printf("  %-10s %s\n", commands[i].name, commands[i].help);
  }
  printf("\n"
         "Results go to results/EXPERIMENT/VARIANT/seedN/. Examples:\n"
         "\n"
         "  dsim train smoke                       a whole training run in under two minutes\n"
         "  dsim evaluate results/smoke/main/seed0\n"
         "  dsim train run --set motion=my.csv --seeds 0..2\n"
         "\n"
         "dsim help COMMAND explains a command, dsim spec --fields every setting.\n");
}

int cmd_help(int argc, char **argv) {
  struct command_line line = {
      .usage = "help [COMMAND]", .about = "Explains dsim or one of its commands.", .max_args = 1};
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  if (line.nargs == 0) {
    print_overview();
    return EXIT_DONE;
  }
  enum { MAX = 32 };
  const char *names[MAX];
  for (int i = 0; i < ncommand && i < MAX; i++) {
    names[i] = commands[i].name;
    if (strcmp(line.args[0], names[i]) == 0) {
      char name[32], option[] = "--help";
      snprintf(name, sizeof name, "%s", names[i]);
      char *ask[] = {name, option, NULL};
      return commands[i].run(2, ask);
    }
  }
  const char *nearest = err_nearest(line.args[0], names, ncommand < MAX ? ncommand : MAX);
  err_set(&e, EXIT_USAGE, "unknown command '%.80s'%s%s%s", line.args[0],
          nearest != NULL ? " (did you mean '" : "", nearest != NULL ? nearest : "",
          nearest != NULL ? "'?)" : "");
  return err_report(&e);
}
