// One episode of tracking, measured the same way whatever simulates it: evaluation in the training
// simulator and transfer to MuJoCo fill the same struct, so their numbers can be compared.
//
// Measures (arXiv 2609.30951, evaluation): E_track is the mean over steps of track_error in the
// world, and with both roots moved together (local). A fall is the root below spec
// terminate.height; it ends the episode, and errors are means up to there. Penetration is the mean
// depth of a foot's deepest point below the floor over all (step, foot) where there is any.
#pragma once
#include "motion/feet.h"
#include "task/track.h"

struct episode {
  int seed, start; // start: frame it began at, which says the clip, too
  bool fell;       // or came apart: a number is not finite, a speed absurd
  double time_s;   // simulated time, to the fall or to the end of the clip
  double e_track_cm, e_track_local_cm;
  double penetration_mm; // NaN when no foot was ever below the floor
  int nsteps, npenetration;
};

void episode_begin(struct episode *ep, int seed, int start);
// The state the episode starts from: the reference at its first frame, with the paper's reset noise
// (arXiv 2609.30951, reset noise) times noise on root and joints. The noise depends on ep->seed and
// ep->start alone.
void episode_start(const struct episode *ep, double *qpos, double *qvel, const struct track *t,
                   double noise);
// The state reached at frame (one instance, unstrided). True while the episode goes on: no fall,
// and frames left.
bool episode_step(struct episode *ep, const struct track *t, const struct feet *f,
                  const double *qpos, const double *qvel, int frame);
