#include "robot/robot.h"
#include <stdio.h>
#include <string.h>

int robot_find_body(const struct robot *r, const char *name) {
  for (int i = 0; i < r->nbody; i++) {
    if (strcmp(r->body[i].name, name) == 0) {
      return i;
    }
  }
  return -1;
}

int robot_find_joint(const struct robot *r, const char *name) {
  for (int i = 0; i < r->nlink; i++) {
    if (strcmp(r->link[i].joint_name, name) == 0) {
      return i;
    }
  }
  return -1;
}

int robot_find_actuator(const struct robot *r, const char *name) {
  for (int i = 0; i < r->nu; i++) {
    if (strcmp(r->actuator[i].name, name) == 0) {
      return i;
    }
  }
  return -1;
}

int robot_find_key(const struct robot *r, const char *name) {
  for (int i = 0; i < r->nkey; i++) {
    if (strcmp(r->key[i].name, name) == 0) {
      return i;
    }
  }
  return -1;
}

const char *robot_dof_name(const struct robot *r, int dof, char buf[64]) {
  static const char *const part[] = {"x", "y", "z", "wx", "wy", "wz"};
  const struct robot_link *l = &r->link[r->dof[dof].link];
  if (l->ndof == 1) {
    snprintf(buf, 64, "%s", l->joint_name);
  } else {
    // a ball joint has the last three only
    snprintf(buf, 64, "%s.%s", l->joint_name, part[dof - l->dof + 6 - l->ndof]);
  }
  return buf;
}

bool robot_geoms_collide(const struct robot_geom *a, const struct robot_geom *b) {
  return (a->contype & b->conaffinity) || (b->contype & a->conaffinity);
}
