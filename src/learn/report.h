// What an iteration of a learner has to say: one report for every algorithm. Rows of progress.csv
// and timing.csv come from it.
#pragma once
#include "learn/add.h"
#include "learn/critic.h"
#include "learn/rollout.h"

struct learn_report {                                       // of one iteration
  double reward, episode_s, e_track_cm, root_cm, joint_rad; // episode_s, e_track_cm NaN: none seen
  double failures_per_1000, sigma, value;
  double bundle_fraction; // of environments' control steps with an open bundle
  double actor_loss, critic_loss, actor_norm, critic_norm, lr_actor, lr_critic, return_std;
  int64_t episodes, failed, truncated, nonfinite, bad_cotangent;
  int nonfinite_step, nonfinite_env, bad_step, bad_env;
  // "actor layer 2 weight[13,7]": the first number of a gradient that was not finite; its update
  // was left out. Empty when all was well.
  char bad_gradient[96];
  // seconds: whole iteration; of it the simulator with task (mean over threads); the phases
  double wall, sim, forward, backward, actor, critic, discriminator;
  struct add_report add; // all NaN without a discriminator
};

// What the window that was just rolled says by itself: reward, episodes, errors, failures.
void report_rollout(struct learn_report *p, const struct rollout *r);
// Names number `at` of the policy's slab or, where that is -1, of the critics'; both -1: empty.
void report_bad_gradient(struct learn_report *p, const struct mlp *actor,
                         const struct critic *critic, int64_t actor_at, int64_t critic_at);
