// Windows of N control steps of E environments, and the way back through them.
//
// Environments live in lane groups of W (the simulator's width); S of them (spec learn.shard) form
// a shard, whose steps share one matrix product. A shard is touched by one thread at a time and
// draws its random numbers by counter, so nothing depends on the number of threads.
//
// The learner drives a window step by step: for each t, rollout_observe of all groups of a shard,
// the policy on their rows, rollout_act, rollout_step, rollout_reach; then backwards for each t,
// rollout_reach_bwd, rollout_step_bwd, the policy's adjoint, rollout_observe_bwd. Between the two
// the rollout holds all that backward needs: states, actions, noise, and whatever a reset redraws,
// recorded per step.
//
// Rows of observations are ordered so that a shard's window is contiguous:
// rollout_row(t, e) = ((e / S) N + t) S + e % S.
#pragma once
#include "learn/bundle.h"
#include "learn/normalizer.h"
#include "learn/randomise.h"
#include "learn/world.h"

struct lane_group {                  // W neighbouring environments, now
  double *qpos, *qvel, *prev_action; // (nq, W), (nv, W), (nu, W)
  int32_t *frame, *length, *episode; // (W) frame of the state; steps and number of the episode
  double *obs;                       // (nobs, W) of the state, not normalised
  // backward: cotangents of the state at the start of the step last retreated over, of its action,
  // and of the previous action through the action-rate term
  double *dq, *dv, *daction, *dprev; // (nv, W), (nv, W), (nu, W), (nu, W)
  double *dctrl;                     // (nu, W) of the step's control
  // randomised episodes: parameters and target offsets now, in one of the window's versions; a
  // reset starts a new version, so that backward finds the old one
  double *param, *offset; // (nparam, W), (nu, W)
  double **version;       // (N + 2; 1 if not kept) of nparam + nu numbers a lane
  int nversion;
  int latency[SIM_WIDTH];
};

struct lane_step {               // one control step of one group, as backward needs it
  double *trail;                 // (substeps, nq + nv, W) states at the start of each substep
  double *load;                  // (substeps, nload, W) of the nominal step; with bundles only
  double *ctrl;                  // (nu, W)
  const double *param;           // (nparam, W) of the simulator
  int late[SIM_WIDTH];           // != 0: the control is that of the action before
  double *after;                 // (nq + nv, W) state reached, before any reset
  double *action, *noise, *prev; // (nu, W): taken, standard normal part, taken before
  int frame[SIM_WIDTH];          // at the start; frame + 1 is reached
  int first[SIM_WIDTH];          // != 0: the first step of an episode
  enum track_end end[SIM_WIDTH]; // of the step
};

struct rollout_sums { // of one shard over a window; nobs arrays are per lane, added up at the end
  double *obs, *obs_square; // (nobs, W) of obs - mean of the normaliser
  double term[TRACK_NTERM]; // sums of errors; root and joint as distances, not squares
  double e_track, e_track_n;
  int64_t episodes, episode_steps, failed, truncated, nonfinite, bad_cotangent;
  int nonfinite_step, nonfinite_env; // of the first one (when nonfinite > 0)
  int bad_step, bad_env;
};

struct rollout_work { // one thread's
  struct sim_work *sim;
  struct track_work *task;
  double *qpos1, *qvel1;       // one instance
  double *term, *dobs, *noisy; // lanes
  double *delta;               // (nres, W)
  struct bundle_work *bundle;
  struct bundle_view *view; // (S)
};

struct rollout {
  const struct world *world;
  const struct spec *spec;
  bool keep; // what backward needs
  int E, N, S, W, nshard, ngroup;
  int nq, nv, nu, nobs;
  double *state;    // (ngroup, nq + nv + nu, W): what a checkpoint keeps ...
  int32_t *counter; // (ngroup, 3, W): ... with this
  size_t nstate, ncounter;
  double *param; // (nparam, W) of the simulator, nominal
  bool randomised;
  int nparam;
  struct lane_group *group; // (ngroup)
  struct lane_step *step;   // (N, ngroup)
  struct rollout_sums *sum; // (nshard)
  struct bundle bundle;
  float *obs;   // (rows, nobs) normalised, of the state before each step: what critics see
  float *input; // the same with observation noise: what the policy sees (obs itself without noise)
  float *next;  // (rows, nobs) of the state after each step, before any reset
  // with a discriminator only, else NULL: (rows, nres) residuals of the states reached, 0 where a
  // state is not finite, and the gradient of the reward with respect to them, which the learner
  // fills in before it goes back
  float *residual, *slope;
  double *reward;     // (N, E)
  unsigned char *end; // (N, E) enum track_end
};

// keep: the window is gone back through; else only its rows, rewards and ends outlive a step, in a
// small part of the memory.
void rollout_new(struct rollout *r, struct arena *a, const struct world *w, bool keep);
struct rollout_work *rollout_work_new(struct arena *a, const struct rollout *r);
size_t rollout_row(const struct rollout *r, int t, int e);
// Mean and variance of the observations of the reference motion itself: where the normaliser
// starts.
void rollout_reference_statistics(struct normalizer *z, struct arena *a, const struct rollout *r,
                                  struct rollout_work *w);

void rollout_begin(struct rollout *r, int shard); // before a window: clears the shard's sums
// Writes the group's rows of obs and input at step t.
void rollout_observe(struct rollout *r, struct rollout_work *w, const struct normalizer *z, int t,
                     int g);
// action = mean (rows from the policy, float, (W, nu)) + sigma (nu) * noise
void rollout_act(struct rollout *r, const float *mean, const double *sigma, int t, int g);
// The control step of a shard's environments under the recorded actions, bundles included.
void rollout_step(struct rollout *r, struct rollout_work *w, int t, int shard);
// What follows from it for a group: reward, end, rows of next; then resets.
void rollout_reach(struct rollout *r, struct rollout_work *w, const struct normalizer *z, int t,
                   int g);
// After a window, once: its observations into the statistics. Spends the sums of the shards.
void rollout_merge_observations(struct normalizer *z, struct rollout *r);

// Back over step t, given the loss gradient with respect to its reward (W) and to the observation
// of the state it reached (nobs, W; NULL: none). On entry the group holds the cotangents of the
// step after it (ignored for the window's last step). First, for each group, rollout_reach_bwd;
// then rollout_step_bwd for the shard, after which the groups hold the cotangents of this step,
// still without what the observation at its start carries. Lanes whose state or cotangent is not
// finite get zeros.
void rollout_reach_bwd(struct rollout *r, struct rollout_work *w, const double *dreward,
                       const double *dobs, int t, int g);
void rollout_step_bwd(struct rollout *r, struct rollout_work *w, int t, int shard);
// Adds what the observation at the start of step t carries (nobs, W).
void rollout_observe_bwd(struct rollout *r, struct rollout_work *w, const double *dobs, int t,
                         int g);
