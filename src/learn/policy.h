// A trained policy, ready to act: network, observation statistics and the spec of its run. Acts
// deterministically (the mean of the Gaussian). The same in the training simulator and in MuJoCo.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "learn/mlp.h"
#include "learn/normalizer.h"
#include "spec/spec.h"
#include <stdint.h>

struct policy {
  struct spec spec; // resolved spec of the run
  const char *file; // checkpoint it came from
  const char *run;  // folder of the run
  int nobs, nu;
  const char **actuator; // (nu) names, in the order of actions
  int64_t iteration, env_steps;
  struct mlp net;
  const float *param; // the network's slab
  struct normalizer norm;
  float *x, *y, *tmp; // one lane group of rows
};

// run: a run's folder (its best policy policy.dsim, else its newest valid checkpoint) or one
// checkpoint file inside a run's folder. Errors: EXIT_USAGE (nothing there, damaged, newer format).
int policy_load(struct policy *p, struct arena *a, const char *run, struct err *e);
// Refuses a robot or observation that is not the policy's: "obs: spec has 99, checkpoint has 111".
int policy_check(const struct policy *p, int nobs, int nu, const char *const *actuator,
                 struct err *e);

// action (nu, width) of obs (nobs, width): lanes, width <= SIM_WIDTH; width 1 is one instance.
// Uses scratch inside p: one thread at a time.
void policy_act(struct policy *p, double *action, const double *obs, int width);

// Allocates the scratch of a policy that was filled in by hand.
void policy_scratch(struct policy *p, struct arena *a);
