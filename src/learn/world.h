// What a spec describes, opened: robot, motion, simulator, task, and the lane code of this
// processor.
#pragma once
#include "motion/motion.h"
#include "sim/sim.h"
#include "spec/spec.h"
#include "task/track.h"

struct world {
  const struct spec *spec;
  struct robot robot;
  struct motion motion;
  struct sim_model *model;
  struct track track;
  const struct sim_kernels *sim;
  const struct track_kernels *task;
  int threads; // workers to use: spec.threads, or all processors
};

struct sim_options world_sim_options(const struct spec *s);
// The spec must outlive the world. Errors: whatever robot, motion, simulator and task refuse.
int world_open(struct world *w, struct arena *a, const struct spec *s, struct err *e);
// The same beside an open world, whose robot and motion it takes where the specs have the same
// ones: many clips fill memory once. like must then outlive w.
int world_open_beside(struct world *w, struct arena *a, const struct spec *s,
                      const struct world *like, struct err *e);
