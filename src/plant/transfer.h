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
  struct transfer_lanes *lanes;
};

// run: what policy_load takes. overrides: n assignments for the policy's spec ("motion=..."), which
// must leave its observation and robot as they are. plant_xml: NULL for the robot of the spec.
// Close after success and after failure alike.
int transfer_open(struct transfer *x, struct arena *a, const char *run,
                  const char *const *overrides, int n, const char *plant_xml, double timestep,
                  struct err *e);
void transfer_close(struct transfer *x);

// Resets the plant to ep's start (episode_start with this noise); ep has just begun.
void transfer_start(struct transfer *x, const struct episode *ep, double noise);
// One control step, measured into ep. True while the episode goes on.
bool transfer_step(struct transfer *x, struct episode *ep);
