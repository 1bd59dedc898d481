// Episodes as evaluate and transfer report them: a CSV in the run's folder, a table or one JSON
// object on stdout.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "task/episode.h"

struct episodes {
  const char *simulator; // "dsim", "mujoco 2.2.2"
  const char *motion;
  int n;
  struct episode *episode;
  const double *saturation; // (n) share of torques at 0.95 of their limit or above; NULL: not known
};

// Replaces the file at path. Columns: seed, fell, time_s, e_track_cm, e_track_local_cm,
// penetration_mm, simulator, start_s, steps, torque_saturation.
int episodes_write(const struct episodes *es, const char *path, double dt, struct err *e);
void episodes_print(const struct episodes *es, struct arena *a);
int episodes_json(const struct episodes *es, double dt, struct err *e);
