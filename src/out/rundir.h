// Run directories: results/<experiment>/<variant>/seed<k>/, or what --out names. No time stamps in
// names, nothing overwritten silently.
//
//   spec.yaml       resolved, every default; `dsim train` of it repeats the run
//   overrides.txt   the --set of the command line, one a line
//   command.txt     command lines, one a line (a resumed run has several)
//   manifest.json   which binary on what (out/manifest.h)
//   and what the commands write: *.csv, checkpoints, policy
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "out/manifest.h"
#include "spec/spec.h"
#include <stdbool.h>

enum rundir_mode { RUNDIR_NEW, RUNDIR_RESUME, RUNDIR_OVERWRITE };

// The directory of this spec and seed; out != NULL: exactly that.
const char *rundir_path(struct arena *a, const struct spec *s, const char *out);

// Makes or opens the directory and writes spec.yaml, overrides.txt and command.txt.
//   NEW        it must not exist, or be empty: otherwise EXIT_USAGE with a hint
//   RESUME     it must hold a run whose spec differs in nothing but iterations, threads and the
//              checkpoint rhythm: otherwise EXIT_USAGE, listing what differs
//   OVERWRITE  an earlier run's files are removed first; a folder that holds anything else than a
//              run is refused
// sets (nset) are the overrides as given; argv the whole command line, for command.txt.
int rundir_open(struct arena *a, const char *path, enum rundir_mode mode, const struct spec *s,
                const char *const *sets, int nset, int argc, char *const *argv, struct err *e);

// The run that name stands for: a run directory, a file in one, or a folder with exactly one run
// below it. NULL: EXIT_USAGE.
const char *rundir_locate(struct arena *a, const char *name, struct err *e);

// PATH/NAME in the arena.
const char *rundir_file(struct arena *a, const char *path, const char *name);
