// Shared by load.c and unsupported.c only.
#pragma once
#include "robot/frame.h"
#include "robot/mjcf.h"
#include "robot/robot.h"

struct loader {
  struct robot *r;
  struct arena *a;
  const mjModel *m;
  bool warn_only;
  struct err *e;
  struct frame *body; // (nbody) each body's frame on its link
  int *link;          // (nbody) each body's link, -1 for the world
};

// One unsupported feature, by element and name: an error, or a warning when the user asked to leave
// such things out. Always false, for `return loader_refuse(...)`.
bool loader_refuse(struct loader *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Everything but geoms and actuators: options, flags, constraints, joints.
void loader_check_model(struct loader *l);
// Does dsim simulate this one? If not, it has been refused (or warned about) by name, except for a
// geom that touches nothing, which is silently false.
bool loader_keeps_geom(struct loader *l, int geom);
bool loader_keeps_actuator(struct loader *l, int actuator);
