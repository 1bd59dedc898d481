// Trajectories of a rendered policy: traj.csv, one row per control step. Columns: time_s, frame (of
// the reference), failed (1 from the step on where the episode ended in failure), e_track_cm, the
// robot's qpos, the reference's qpos (ref_ in front), and the world position of every body.
//
// Names of qpos: the joint's, with _x _y _z _qw _qx _qy _qz for a free joint, _qw ... for a ball.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "out/csv.h"
#include "robot/robot.h"
#include <stdbool.h>

int traj_open(struct csv *c, const char *path, const struct robot *r, struct err *e);
// One row: qpos, ref (nq). Body positions come from robot_fk. tmp: 3 * nbody numbers.
int traj_row(struct csv *c, const struct robot *r, double time_s, int frame, bool failed,
             double e_track_cm, const double *qpos, const double *ref, double *tmp, struct err *e);

struct traj {
  int nframe;
  double *time, *failed, *e_track_cm; // (nframe)
  double *qpos, *ref;                 // (nframe, nq)
};
// A file of another robot lacks columns: EXIT_USAGE, naming the first.
int traj_read(struct traj *t, struct arena *a, const char *path, const struct robot *r,
              struct err *e);
