// The learner in files of its run directory: ckpt_00000400.dsim holds everything that the next
// iteration depends on, so that a resumed run goes on bit for bit; policy.dsim holds the best
// policy so far. The spec is not in them but beside them (spec.yaml).
#pragma once
#include "learn/learner.h"
#include "out/checkpoint.h"

// What goes with the learner and is not part of it.
struct best_policy {
  double score;      // of the evaluation; a new run starts at -1e30
  int64_t iteration; // it was made after this many
};

// RUN/ckpt_ITERATION.dsim, then removes older ones beyond spec checkpoint.keep.
int state_save(struct learner *s, const struct best_policy *best, const char *run, struct err *e);
// The newest checkpoint of the run that reads; damaged ones are passed over with a warning. None at
// all: EXIT_USAGE. A learner of another robot, observation, network or size is refused, naming both
// values.
int state_load(struct learner *s, struct best_policy *best, struct arena *a, const char *run,
               struct err *e);
// Weights of policy and critics and the observation statistics of another run; optimisers, episodes
// and counters start anew.
int state_init_from(struct learner *s, struct arena *a, const char *run, struct err *e);
// The checkpoints of a run, oldest first; returns how many.
int state_list(const char ***path, struct arena *a, const char *run);
// What was learned until one checkpoint: weights, statistics of observations and returns, counters.
// Episodes stay as they are, so that any number of environments can measure it.
int state_load_learned(struct learner *s, struct arena *a, const char *path, struct err *e);

int policy_save(const struct policy *p, const char *path, struct err *e);
// The newest readable checkpoint of a run; NULL if there is none.
const char *state_newest(struct checkpoint *c, struct arena *a, const char *run);
