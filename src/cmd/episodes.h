// Episodes as evaluate and transfer report them: a CSV in the run's folder, a table or one JSON
// object on stdout.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "task/episode.h"

struct episodes {
  const char *simulator; // "dsim", "mujoco 2.2.2"
  const struct motion *motion;
  int n;
  struct episode *episode;  // clip by clip
  const double *saturation; // (n) share of torques at 0.95 of their limit or above; NULL: not known
  const double
      *penetration_train; // (n) of the same episodes in the training simulator, mm; or NULL
};

struct episodes_summary { // of one clip's episodes, or of all: means and standard deviations
  int n, falls;
  double time, track, track_std, local, local_std, depth, depth_std, depth_train, saturation;
};
enum { ALL_CLIPS = -1 };
struct episodes_summary episodes_summarise(const struct episodes *es, int clip);

// Replaces the file at path. Columns: seed, fell, time_s, e_track_cm, e_track_local_cm,
// penetration_mm, simulator, start_s (of the clip's time), steps, torque_saturation, clip,
// penetration_train_mm. With several clips also eval_clips.csv for eval.csv, a row for each clip
// and one for all: clip, episodes, falls, time_s, e_track_cm, e_track_cm_std, e_track_local_cm,
// penetration_mm, torque_saturation, simulator; means over episodes.
int episodes_write(const struct episodes *es, const char *path, struct err *e);
void episodes_print(const struct episodes *es, struct arena *a);
int episodes_json(const struct episodes *es, struct err *e);
