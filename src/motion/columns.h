// Which number of qpos each column of a clip file is.
#pragma once
#include "motion/sidecar.h"

struct columns {
  int n;
  int *qadr;         // (n) index into qpos
  const char **name; // (n) for messages: "x", "qw", a joint's name
};

struct columns_source { // where names stand, for messages
  const char *path;     // the clip
  int line;             // its header or first line
  const struct sidecar *sidecar;
};

// From the header's cells (n of them; NULL when the file has no header), else from the sidecar's
// `joints`, else the robot's own order. Columns that are missing, unknown or named twice:
// EXIT_USAGE, listing them all.
int columns_map(struct columns *cols, struct arena *a, const struct robot *r, char *const *header,
                int n, enum clip_order order, const struct columns_source *from, struct err *e);
// The order that clip_write uses: the robot's own, quaternions x y z w.
void columns_native(struct columns *cols, struct arena *a, const struct robot *r,
                    enum clip_order order);
