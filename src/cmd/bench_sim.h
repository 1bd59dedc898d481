// One robot on one core: the simulator's substep and its gradient against MuJoCo's mj_step and
// mjd_transitionFD in the same run.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "sim/sim.h"
#include <mujoco/mujoco.h>

struct bench_sim {
  struct arena *arena;
  struct robot robot;
  struct sim_model *model;
  const struct sim_kernels *k;
  struct sim_work *work;
  double *qpos, *qvel, *ctrl, *trail, *param, *dq, *dv, *dctrl, *force;
  const double *start; // qpos of the key frame
  mjModel *mj;
  mjData *data;
  double *A, *B; // of transitionFD
  // medians over repetitions, microseconds per instance and step
  double forward, gradient, mujoco_step, mujoco_fd;
};

// The robot starts in key frame `key` and holds its angles. On error nothing need be closed.
int bench_sim_open(struct bench_sim *b, struct arena *a, const char *path, const char *key,
                   enum sim_contact_model contact, struct err *e);
void bench_sim_close(struct bench_sim *b);
// Interleaved repetitions, so that a drifting machine slows all four alike.
void bench_sim_run(struct bench_sim *b, int repetitions, const char *title);
int bench_sim_contacts(struct bench_sim *b); // that carry load in the first lane
// With MuJoCo's own contacts: largest difference of a next state (relative to the largest of qpos,
// of qvel), from every substep of the first lane, against mj_step run to convergence.
double bench_sim_error(struct bench_sim *b);
