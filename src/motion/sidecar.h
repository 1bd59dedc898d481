// The sidecar of a clip (keys in motion.h) and the names of clip files.
#pragma once
#include "motion/motion.h"
#include "motion/ytree.h"

struct sidecar {
  const char *path; // "" when there is none
  double fps;       // 0: not given
  enum clip_order order;
  int row_first, row_last; // -1: not given
  double dz;
  int njoint;         // 0: not given
  const char **joint; // (njoint)
  int joint_line;     // where the list stands
  bool allow_jumps, loop;
  const char *credit; // "" when not given
  const char *file; // clip named by `file:`, relative to the sidecar's folder; NULL when not given
};

// clip_read with a sidecar that was read before, or an empty one.
int clip_read_with(struct clip *c, struct arena *a, const struct robot *r, const char *path,
                   const struct sidecar *s, const struct clip_options *opt, struct err *e);
struct sidecar sidecar_none(void);

// Reads one sidecar. EXIT_USAGE with file:line:column.
int sidecar_read(struct sidecar *s, struct arena *a, const char *path, struct err *e);
// `quaternion: xyzw|wxyz` and `rows: [first, last]`
int sidecar_order(enum clip_order *order, const struct ytree *t, struct err *e);
int sidecar_rows(int rows[2], const struct ytree *t, struct err *e);
// "dir/run.csv.gz" -> "dir/run.yaml"; any other last extension than .csv, .csv.gz is kept ("x.txt"
// -> "x.txt.yaml").
const char *sidecar_path(struct arena *a, const char *clip);
// "dir/run.csv.gz" -> "run": no folder, no .csv, .csv.gz or .yaml.
const char *clip_name(struct arena *a, const char *path);
