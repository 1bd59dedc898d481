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

void robot_jacobian(const struct robot *r, double *jac, const double *qpos, int link,
                    const double local[3]) {
  struct frame frame[ROBOT_MAX_LINK];
  memset(jac, 0, sizeof(double) * 3 * (size_t)r->nv);
  for (int i = 0; i <= link; i++) {
    frame[i] = joint_frame(&r->link[i], qpos + r->link[i].qadr);
    if (r->link[i].parent >= 0) {
      frame[i] = frame_mul(frame[r->link[i].parent], frame[i]);
    }
  }
  double x[3];
  for (int c = 0; c < 3; c++) {
    x[c] = frame[link].pos[c];
    for (int k = 0; k < 3; k++) {
      x[c] += frame[link].rot[3 * c + k] * local[k];
    }
  }
  for (int i = link; i >= 0; i = r->link[i].parent) {
    const struct robot_link *l = &r->link[i];
    const double *R = frame[i].rot, *p = frame[i].pos;
    int dof = l->dof;
    if (l->type == JOINT_FREE) {
      for (int c = 0; c < 3; c++) {
        jac[c * r->nv + dof++] = 1;
      }
    }
    if (l->type == JOINT_SLIDE) {
      for (int c = 0; c < 3; c++) {
        jac[c * r->nv + dof] = R[3 * c + l->axis];
      }
      continue;
    }
    // turning about the link's axes: one of them (hinge) or all three
    for (int k = 0; k < 3; k++) {
      if (l->type == JOINT_HINGE && k != l->axis) {
        continue;
      }
      double a[3] = {R[k], R[3 + k], R[6 + k]}, d[3] = {x[0] - p[0], x[1] - p[1], x[2] - p[2]};
      for (int c = 0; c < 3; c++) {
        int u = (c + 1) % 3, v = (c + 2) % 3;
        jac[c * r->nv + dof] = a[u] * d[v] - a[v] * d[u];
      }
      dof++;
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
