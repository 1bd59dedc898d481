#include "robot/frame.h"
#include "robot/robot.h"
#include <mujoco/mujoco.h>

static struct frame from_quat(const double *pos, const double *quat) {
  struct frame f;
  double q[4];
  mju_copy4(q, quat);
  mju_normalize4(q);
  memcpy(f.pos, pos, sizeof f.pos);
  mju_quat2Mat(f.rot, q);
  return f;
}

// the link's frame in its parent's, under its own coordinates
static struct frame joint_frame(const struct robot_link *l, const double *q) {
  static const double origin[3];
  struct frame rest = frame_make(l->pos, l->rot);
  switch (l->type) {
  case JOINT_FREE:
    return from_quat(q, q + 3);
  case JOINT_BALL:
    return frame_mul(rest, from_quat(origin, q));
  case JOINT_SLIDE:
    return frame_mul(rest, frame_shift(l->axis, q[0]));
  case JOINT_HINGE:
    return frame_mul(rest, frame_turn(l->axis, q[0]));
  }
  BUG_IF(true);
}

void robot_fk(const struct robot *r, const double *qpos, double *xpos, double *xmat) {
  struct frame link[ROBOT_MAX_LINK];
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    link[i] = joint_frame(l, qpos + l->qadr);
    if (l->parent >= 0) {
      link[i] = frame_mul(link[l->parent], link[i]);
    }
  }
  for (int i = 0; i < r->nbody; i++) {
    const struct robot_body *b = &r->body[i];
    struct frame f = frame_make(b->pos, b->rot);
    if (b->link >= 0) {
      f = frame_mul(link[b->link], f);
    }
    if (xpos) {
      memcpy(xpos + 3 * i, f.pos, sizeof f.pos);
    }
    if (xmat) {
      memcpy(xmat + 9 * i, f.rot, sizeof f.rot);
    }
  }
}

void robot_integrate(const struct robot *r, double *qpos, const double *dv) {
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    double *q = qpos + l->qadr;
    const double *v = dv + l->dof;
    switch (l->type) {
    case JOINT_FREE:
      mju_addTo3(q, v);
      q += 3;
      v += 3;
      __attribute__((fallthrough));
    case JOINT_BALL:
      mju_quatIntegrate(q, v, 1);
      break;
    case JOINT_SLIDE:
    case JOINT_HINGE:
      q[0] += v[0];
    }
  }
}

void robot_difference(const struct robot *r, double *dv, const double *qa, const double *qb) {
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    const double *a = qa + l->qadr, *b = qb + l->qadr;
    double *v = dv + l->dof;
    switch (l->type) {
    case JOINT_FREE:
      mju_sub3(v, b, a);
      v += 3;
      a += 3;
      b += 3;
      __attribute__((fallthrough));
    case JOINT_BALL:
      mju_subQuat(v, b, a);
      break;
    case JOINT_SLIDE:
    case JOINT_HINGE:
      v[0] = b[0] - a[0];
    }
  }
}
