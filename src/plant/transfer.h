// A trained policy in the plant, one control step at a time: observation and targets by the task's
// own code, as in training.
#pragma once
#include "learn/policy.h"
#include "learn/world.h"
#include "plant/plant.h"
#include "task/episode.h"

struct transfer {
  struct policy policy;
  struct world world; // of policy.spec
  struct plant plant;
  struct feet feet;
  int frame;             // of the state
  double *qpos, *qvel;   // (nq), (nv) the plant's state, training robot's layout
  double *action, *ctrl; // (nu) of the last step
  // disturbances, see transfer_perturb
  double noise, random;
  struct spec ranges;   // of random: the published ones, scaled
  struct world variant; // world with these ranges, to draw from
  double *param, *pose; // (nparam, W) what was drawn, lane 0; (nu, W) offset of targets
  double *factor;       // plant_vary's arrays
  struct transfer_lanes *lanes;
};

// run: what policy_load takes. overrides: n assignments for the policy's spec ("motion=..."), which
// must leave its observation and robot as they are. plant_xml: NULL for the robot of the spec.
// Close after success and after failure alike.
int transfer_open(struct transfer *x, struct arena *a, const char *run,
                  const char *const *overrides, int n, const char *plant_xml, double timestep,
                  struct err *e);
void transfer_close(struct transfer *x);

// The policy of another checkpoint of the same run, in place of the one there is.
int transfer_policy(struct transfer *x, struct arena *a, const char *checkpoint, struct err *e);

// Disturbances, before the first start. What plant_perturb takes, and
//   noise=SCALE   the task's observation noise (uniform, arXiv 2609.30951), 1: as published
//   random=SCALE  published domain randomisation, drawn per episode: friction, masses, centres of
//                 mass, gains, armature, dry friction, offsets of the targets, latency of 0 or 1
//                 control step, pushes every 1 to 3 s; the scale narrows or widens the ranges
//   all           noise=1 and random=1
// Draws depend on the episode's seed (noise: on its start, too), not on the policy.
int transfer_perturb(struct transfer *x, struct arena *a, const char *assignment, struct err *e);

// Resets the plant to ep's start (episode_start with this noise); ep has just begun.
void transfer_start(struct transfer *x, const struct episode *ep, double noise);
// What the policy sees now (nobs), noise included.
const double *transfer_observe(struct transfer *x, const struct episode *ep);
// One control step, measured into ep. True while the episode goes on.
bool transfer_step(struct transfer *x, struct episode *ep);
