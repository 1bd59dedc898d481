// What training, checkpoints and evaluation see of a learner, whichever algorithm it is: the parts
// that all have, where they lie in it.
#pragma once
#include "learn/policy.h"
#include "learn/ppo.h"
#include "learn/shac.h"

struct learner {
  const char *algorithm; // its name in specs
  struct shac *shac;     // the one it is; the other is NULL
  struct ppo *ppo;
  const struct spec *spec;
  const struct world *world;
  struct rollout *rollout;
  int64_t *iteration, *env_steps; // done so far
  const struct mlp *actor;
  float *param; // (nactor) the network's slab, then log sigma
  size_t nactor;
  struct adam *adam;
  struct normalizer *norm;
  struct critic *critic;
  struct add *add; // NULL without a discriminator
  int *bad_updates;
};

// A fresh learner of the spec's algorithm.
void learner_new(struct learner *l, struct arena *a, const struct world *w);
struct learner learner_of_shac(struct shac *s);
struct learner learner_of_ppo(struct ppo *p);
// shac_iterate or ppo_iterate.
int learner_iterate(struct learner *l, struct learn_report *report, struct err *e);
// The policy as it is now; shares the learner's memory. Valid until the next iteration.
void learner_policy(struct policy *p, struct arena *a, const struct learner *l);
