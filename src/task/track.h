// Motion tracking: observation, reward, termination and reset, with adjoints. Observations, resets
// and noise are those of Bundled Contact Gradients (arXiv 2609.30951 and its project page); the
// reward is a sum of exponentials (reward.inl), or a discriminator judges the residual between
// reference and robot (residual.inl; the discriminator is learn/add.h).
//
// Works on lanes like the simulator: arrays are (n, W). The same observation function serves every
// simulator: a plant in MuJoCo fills lanes with its qpos, qvel and calls obs_fwd.
//
// A frame index belongs to each lane; the features of a reference frame are computed once per
// motion and gathered per lane. A motion of several clips has them one after the other: a frame
// says which clip a lane is in, and nothing looks past that clip's end.
#pragma once
#include "base/rng.h"
#include "motion/motion.h"
#include "sim/sim.h"
#include "spec/spec.h"
#include <stdint.h>

// A named run of numbers of the observation, in order; they tile it.
struct track_block {
  const char *name; // "root_height", "joint_pos", "t+1.root_pos", ...
  int first, count;
  double noise; // half-width of its uniform noise as published, unscaled
};

struct track {
  const struct sim_model *model;
  const struct robot *robot;
  const struct motion *motion;
  const struct spec *spec;
  int nobs; // numbers of an observation: 849 (paper, G1) or 182 (compact, G1)
  int nblock;
  struct track_block *block;
  int nres;  // numbers of the residual: 317 (paper, G1) or 85 (compact, G1); 0 unless reward is add
  int nfeat; // reference features of one frame
  double *feat;   // (nframe, nfeat); private layout of task/
  double *pose;   // default joint positions q_default (nu), actuator order
  double *noise;  // (nobs) half-widths of the uniform noise, 0 for none; observation_noise is in
  int nkey, *key; // key bodies (robot.body indices)
  struct track_private *priv;
};

// Checks that the robot can track (free root; hinge or slide joints that follow position targets)
// and precomputes the reference features. m, mo and s must outlive t. Errors: EXIT_USAGE.
int track_new(struct track *t, struct arena *a, const struct sim_model *m, const struct motion *mo,
              const struct spec *s, struct err *e);
// Scratch for one thread; width: the kernels' lanes.
struct track_work *track_work_new(struct arena *a, const struct track *t, int width);

struct track_kernels {
  const char *isa;
  int width;
  // obs (nobs, W) from the state and each lane's frame[W] (the observation looks at frame+1..+3,
  // clamped to the last).
  void (*obs_fwd)(const struct track *t, struct track_work *tw, struct sim_work *sw, double *obs,
                  const double *qpos, const double *qvel, const int *frame);
  // Adds J' dobs to dq, dv (nv, W). Recomputes what it needs from qpos, qvel.
  void (*obs_bwd)(const struct track *t, struct track_work *tw, struct sim_work *sw, double *dq,
                  double *dv, const double *dobs, const double *qpos, const double *qvel,
                  const int *frame);
  // Residual of the state to its reference frame[W], reference minus robot: delta (nres, W).
  void (*residual_fwd)(const struct track *t, struct track_work *tw, struct sim_work *sw,
                       double *delta, const double *qpos, const double *qvel, const int *frame);
  // Adds J' ddelta to dq, dv (nv, W). Recomputes what it needs.
  void (*residual_bwd)(const struct track *t, struct track_work *tw, struct sim_work *sw,
                       double *dq, double *dv, const double *ddelta, const double *qpos,
                       const double *qvel, const int *frame);
  // Reward of having reached (qpos, qvel) at frame[l] by action (nu, W), the one before being
  // prev_action; first[l] != 0: no previous action, no action-rate term. reward (W); term, if not
  // NULL: (TRACK_NTERM, W) for logging.
  void (*reward_fwd)(const struct track *t, struct track_work *tw, struct sim_work *sw,
                     double *reward, double *term, const double *qpos, const double *qvel,
                     const double *action, const double *prev_action, const int *frame,
                     const int *first);
  // Adds to dq, dv (nv, W), daction and dprev (nu, W). Recomputes what it needs.
  void (*reward_bwd)(const struct track *t, struct track_work *tw, struct sim_work *sw, double *dq,
                     double *dv, double *daction, double *dprev, const double *dreward,
                     const double *qpos, const double *qvel, const double *action,
                     const double *prev_action, const int *frame, const int *first);
};
enum track_term {
  TRACK_JOINT_SQ,    // mean over joints of the squared angle error
  TRACK_JOINTVEL_SQ, // mean over joints of the squared rate error
  TRACK_ROOT_SQ,     // squared distance of the root
  TRACK_ROT_SQ,      // (2 sin(angle / 2))^2 of the root's rotation error
  TRACK_KEY_SQ,      // sum over key bodies of the squared error relative to the root
  TRACK_RATE,        // mean over joints of (a_t - a_{t-1})^2, 0 at an episode's first step
  TRACK_NTERM,
};
const struct track_kernels *track_kernels(const char *isa); // NULL if this binary has no such build

// ctrl (nu, W) = q_default + action_scale * action: joint targets. frame is for targets relative to
// the reference, which do not exist yet.
void track_ctrl(const struct track *t, double *ctrl, const double *action, const int *frame,
                int width);
// Why an episode ends, asked of the state of one instance (unstrided) reached at frame: not finite
// or faster than 200; root too far from the reference or too low (terminate.*); its clip's last
// frame. TRUNCATED bootstraps with the value of the state before reset.
enum track_end { TRACK_RUNS, TRACK_FAILED, TRACK_TRUNCATED, TRACK_NONFINITE };
enum track_end track_end(const struct track *t, const double *qpos1, const double *qvel1,
                         int frame);
// Reference state initialisation: draws a frame (of all clips, so that each comes up by its
// duration; its clip's first frame with reset.first_probability) and the state, with reset noise.
// One instance, unstrided.
void track_reset(const struct track *t, double *qpos1, double *qvel1, int *frame, uint32_t env,
                 uint32_t episode);
// The paper's reset noise, times scale, on a state's root and joints; it pushes no joint past a
// limit. move (nv) receives the tangent vector drawn.
void track_reset_noise(const struct track *t, double *qpos1, double *move, double scale,
                       struct rng *g);
// Mean distance of all bodies (but the world) to the reference at frame: in the world (E_track)
// and with both roots moved to the origin; metres.
void track_error(const struct track *t, const double *qpos1, int frame, double *e_world,
                 double *e_local);
