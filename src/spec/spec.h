// The resolved description of a run: spec.def's rows as a struct, read from YAML and --set.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdio.h>

enum spec_task {
  TASK_TRACK,
  TASK_BOUNCE,
  TASK_TOSS,
  TASK_TIME_TOSS,
  TASK_BILLIARD,
  TASK_IDENTIFY,
  TASK_GRADIENTS,
  TASK_COLLIDE,
};
enum spec_algorithm { ALGORITHM_SHAC, ALGORITHM_PPO };
enum spec_integrator {
  INTEGRATOR_MOREAU,
  INTEGRATOR_EULER,
  INTEGRATOR_RK4, // MuJoCo's
  INTEGRATOR_EXPLICIT,
  INTEGRATOR_HEUN,
  INTEGRATOR_MIDPOINT,
  INTEGRATOR_RALSTON,
  INTEGRATOR_BOSH3,
  INTEGRATOR_DOPRI5,
  INTEGRATOR_TSIT5,
  INTEGRATOR_DOPRI8,
};
enum spec_ode_gradient { ODE_GRADIENT_STEPS, ODE_GRADIENT_EVENTS };
enum spec_cfd_law { CFD_LAW_OFF, CFD_LAW_RELU, CFD_LAW_SOFTPLUS };
enum spec_billiard_push { BILLIARD_RAMP, BILLIARD_HOLD };
enum spec_contact_model { CONTACT_SMOOTHED, CONTACT_MUJOCO };
enum spec_contact_step { CONTACT_STEP_SPLIT, CONTACT_STEP_PUBLISHED };
enum spec_observation { OBSERVATION_COMPACT, OBSERVATION_PAPER };
enum spec_reward { REWARD_EXPONENTIAL, REWARD_ADD };
enum spec_trigger { TRIGGER_FOOT, TRIGGER_SPHERE };
enum spec_residual { RESIDUAL_COMPACT, RESIDUAL_PAPER };

struct spec_ints {
  int n, v[8];
};

struct spec {
#define INT(m, ...)           int m;
#define REAL(m, ...)          double m;
#define BOOL(m, ...)          bool m;
#define TEXT(m, ...)          const char *m;
#define TEXTS(m, ...)         const char *m;
#define ENUM(m, path, t, ...) enum t m;
#define INTS(m, ...)          struct spec_ints m;
#include "spec/spec.def"
#undef INT
#undef REAL
#undef BOOL
#undef TEXT
#undef TEXTS
#undef ENUM
#undef INTS
  const char *path; // file it came from, "" for defaults alone
};

void spec_default(struct spec *s);
// Finds SPEC (a path, or a name under experiments/), reads it over the defaults. Errors name
// file:line:column, what was expected, the nearest key. EXIT_USAGE.
int spec_read(struct spec *s, struct arena *a, const char *name, struct err *e);
// One --set "path=value": the same parser and bounds as the file. The last one wins, but the same
// path twice on one command line is refused by the caller (cmd).
int spec_set(struct spec *s, struct arena *a, const char *assignment, struct err *e);
// Bounds that involve several fields (envs a multiple of shard, control.dt of sim.dt ...).
int spec_check(const struct spec *s, struct err *e);
void spec_print(const struct spec *s, FILE *out); // resolved YAML, readable by spec_read
void spec_help(FILE *out);                        // dsim spec --fields
// Paths whose values differ between two specs, one per line "path: a -> b"; returns the count.
int spec_diff(const struct spec *a, const struct spec *b, char *text, size_t size);
