// manifest.json of a run directory: which binary, on what, made these numbers.
#pragma once
#include "base/err.h"
#include <stdint.h>

#define DSIM_VERSION "0.1.0"

struct manifest {
  const char *command; // sub-command: "train"
  const char *isa;     // lane build in use (sim_kernels()->isa)
  int threads;         // in use, not as asked for
  int64_t seed;
  const char *robot, *robot_sha256; // NULL members are left out
  const char *motion, *motion_sha256;
};

// Writes FOLDER/manifest.json: the above, and version, commit, dirty, compiler, flags, processor,
// libraries and date. EXIT_IO.
int manifest_write(const char *folder, const struct manifest *m, struct err *e);

const char *
manifest_commit(void); // 40 hexadecimal digits, "-dirty" behind them if so; or "unknown"
