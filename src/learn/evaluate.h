// Deterministic rollouts in the training simulator: the policy's mean action, no noise, from evenly
// spaced starts on the reference. Never touches the state of training.
#pragma once
#include "learn/policy.h"
#include "learn/world.h"
#include "task/episode.h"

struct evaluation {
  int n; // episodes
  struct episode
      *episode;    // clip by clip, seed by seed; start k of a clip is at its frame k (nframe
                   // - 1) / starts; fell also when the root is farther from the reference
                   // than terminate.root
  int reached;     // episodes that came to their clip's end
  double survival; // mean over episodes of time / time from the start to the clip's end
  double e_track_cm, e_track_local_cm; // means over episodes
  double score; // survival - 0.1 e_track (m): what the best policy has most of
};

struct evaluator; // lanes and work space for one caller
struct evaluator *evaluator_new(struct arena *a, const struct world *w);
// Runs n episodes that have just begun, each from its start with its own share of the reset noise.
void evaluator_episodes(struct evaluator *ev, struct policy *p, struct episode *episode, int n,
                        const double *noise);
// starts episodes for each clip and each of the seeds first .. last. noise scales the paper's reset
// noise on the initial states (arXiv 2609.30951), drawn per seed and start; with 0 all seeds are
// the same. Episodes are allocated in a.
void evaluator_run(struct evaluation *v, struct arena *a, struct evaluator *ev, struct policy *p,
                   int starts, int first_seed, int last_seed, double noise);
