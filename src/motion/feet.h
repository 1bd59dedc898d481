// Feet of a robot and their height above the floor (z = 0), by kinematics.
#pragma once
#include "robot/robot.h"

enum { FEET_MAX = 16 };

struct feet {
  int n; // feet found; 0: the robot has no leaf link with geoms
  int link[FEET_MAX];
};

// Feet are the leaf links (no link hangs on them) whose lowest colliding point at qpos0 lies within
// 0.1 m of the lowest of all leaf links.
void feet_find(struct feet *f, const struct robot *r);

// World height of the lowest point of a link's colliding geoms, from robot_fk's poses; INFINITY
// when it has none.
double link_height(const struct robot *r, int link, const double *xpos, const double *xmat);
// Of all feet; INFINITY without feet.
double feet_height(const struct robot *r, const struct feet *f, const double *xpos,
                   const double *xmat);
// Position of a link's frame, from robot_fk's poses.
void link_position(double x[3], const struct robot *r, int link, const double *xpos,
                   const double *xmat);
bool link_is_leaf(const struct robot *r, int link);
