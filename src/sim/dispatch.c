// Which build of the lane code this processor runs.
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

extern const struct sim_kernels sim_kernels_w1;
#if defined __x86_64__
extern const struct sim_kernels sim_kernels_v2, sim_kernels_v3, sim_kernels_v4;
static const struct sim_kernels *const builds[] = {&sim_kernels_v4, &sim_kernels_v3,
                                                   &sim_kernels_v2, &sim_kernels_w1};

static bool runs_here(const struct sim_kernels *k) {
  __builtin_cpu_init();
  if (k == &sim_kernels_v4) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512vl");
  }
  if (k == &sim_kernels_v3) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
  }
  return __builtin_cpu_supports("sse4.2");
}
#else
extern const struct sim_kernels sim_kernels_arm;
static const struct sim_kernels *const builds[] = {&sim_kernels_arm, &sim_kernels_w1};
static bool runs_here(const struct sim_kernels *k) {
  (void)k;
  return true;
}
#endif
enum { NBUILD = sizeof builds / sizeof builds[0] };

const struct sim_kernels *sim_kernels_named(const char *isa) {
  for (int i = 0; i < NBUILD; i++) {
    if (!strcmp(builds[i]->isa, isa)) {
      return runs_here(builds[i]) ? builds[i] : NULL;
    }
  }
  return NULL;
}

const struct sim_kernels *sim_kernels(struct err *e) {
  const char *want = getenv("DSIM_ISA");
  if (want && *want) {
    const char *names[NBUILD];
    for (int i = 0; i < NBUILD; i++) {
      names[i] = builds[i]->isa;
      if (!strcmp(names[i], want)) {
        if (runs_here(builds[i])) {
          return builds[i];
        }
        err_set(e, EXIT_USAGE, "DSIM_ISA=%s: this processor cannot run it", want);
        return NULL;
      }
    }
    const char *near = err_nearest(want, names, NBUILD);
    err_set(e, EXIT_USAGE, "DSIM_ISA=%s: expected v2, v3, v4 or w1%s%s", want,
            near ? "; did you mean " : "", near ? near : "");
    return NULL;
  }
  for (int i = 0; i < NBUILD; i++) {
    if (runs_here(builds[i])) {
      return builds[i];
    }
  }
  err_set(e, EXIT_USAGE, "this processor lacks SSE4.2");
  return NULL;
}
