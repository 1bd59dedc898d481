// A policy along training: what transfer measures at every checkpoint of a run.
#pragma once
#include "cmd/episodes.h"
#include <stdint.h>

struct along {
  const char *simulator;
  int n; // checkpoints, by iteration
  struct along_row {
    const char *checkpoint; // file's name
    int64_t iteration, env_steps;
    struct episodes_summary s;
  } * row;
};

// Replaces the file at path. Columns: iteration, env_steps, episodes, falls, time_s, e_track_cm,
// e_track_cm_std, e_track_local_cm, penetration_mm, penetration_train_mm, torque_saturation,
// simulator, checkpoint.
int along_write(const struct along *l, const char *path, struct err *e);
void along_print(const struct along *l, struct arena *a);
// One object: checkpoints: [{iteration, env_steps, episodes, falls, ...}], simulator.
int along_json(const struct along *l, struct err *e);
