#include "motion/motion.h"
#include <math.h>
#include <string.h>

// Spherical interpolation on the shorter arc; equal quaternions give themselves back.
static void slerp(double o[4], const double *p, const double *q, double s) {
  double dot = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
  double sign = dot < 0 ? -1 : 1, angle = acos(fmin(fabs(dot), 1));
  double a = 1 - s, b = s; // what the sines tend to for small angles
  if (angle > 1e-6) {
    a = sin((1 - s) * angle) / sin(angle);
    b = sin(s * angle) / sin(angle);
  }
  double norm = 0;
  for (int j = 0; j < 4; j++) {
    o[j] = a * p[j] + sign * b * q[j];
    norm += o[j] * o[j];
  }
  norm = sqrt(norm);
  for (int j = 0; j < 4; j++) {
    o[j] /= norm;
  }
}

// A frame between rows p and q.
static void blend(double *o, const struct robot *r, const double *p, const double *q, double s) {
  for (int i = 0; i < r->nq; i++) {
    o[i] = (1 - s) * p[i] + s * q[i];
  }
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    if (l->type == JOINT_FREE || l->type == JOINT_BALL) {
      int adr = l->qadr + (l->type == JOINT_FREE ? 3 : 0);
      slerp(o + adr, p + adr, q + adr, s);
    }
  }
}

static void resample(struct motion *m, struct arena *a, const struct robot *r,
                     const struct clip *c) {
  size_t nq = (size_t)r->nq;
  // rounding must neither lose the last frame nor add one
  const double eps = 1e-9;
  double per_step = m->dt * c->fps;
  m->nframe = (int)floor((c->nframe - 1) / per_step + eps) + 1;
  struct clip out = {.nframe = m->nframe, .nq = r->nq};
  out.qpos = m->qpos = ARENA_NEW(a, double, (size_t)m->nframe *nq);
  for (int k = 0; k < m->nframe; k++) {
    double at = k * per_step;
    int i = (int)floor(at + eps);
    i = i > c->nframe - 2 ? c->nframe - 2 : i;
    double s = fmin(fmax(at - i, 0), 1);
    s = s < eps ? 0 : s > 1 - eps ? 1 : s; // on a frame: that frame, to the last bit
    const double *row = c->qpos + (size_t)i * nq;
    blend(m->qpos + (size_t)k * nq, r, row, row + nq, s);
  }
  // steps along the shorter arc may still end on the other sign of a frame
  clip_clean(&out, r);
  if (r->link[0].type == JOINT_FREE) {
    double x = m->qpos[0], y = m->qpos[1];
    for (int k = 0; k < m->nframe; k++) {
      m->qpos[(size_t)k * nq] -= x;
      m->qpos[(size_t)k * nq + 1] -= y;
    }
  }
}

// central differences, one-sided at the ends
static void differentiate(struct motion *m, struct arena *a, const struct robot *r) {
  m->qvel = ARENA_NEW(a, double, (size_t)m->nframe *(size_t)m->nv);
  for (int k = 0; k < m->nframe; k++) {
    int before = k > 0 ? k - 1 : 0, after = k + 1 < m->nframe ? k + 1 : k;
    double *v = m->qvel + (size_t)k * (size_t)m->nv;
    robot_difference(r, v, m->qpos + (size_t)before * (size_t)m->nq,
                     m->qpos + (size_t)after * (size_t)m->nq);
    for (int i = 0; i < m->nv; i++) {
      v[i] /= (after - before) * m->dt;
    }
  }
}

int motion_build(struct motion *m, struct arena *a, const struct robot *r, const struct clip *c,
                 const char *name, double dt, struct err *e) {
  BUG_IF(c->nq != r->nq || !(dt > 0));
  *m = (struct motion){.name = arena_strdup(a, name), .dt = dt, .nq = r->nq, .nv = r->nv};
  if (c->nframe < 2 || (c->nframe - 1) / c->fps < dt) {
    return err_set(e, EXIT_USAGE,
                   "motion '%s': %d frame%s at %g per second %s shorter than two control steps of "
                   "%g s",
                   name, c->nframe, c->nframe == 1 ? "" : "s", c->fps,
                   c->nframe == 1 ? "is" : "are", dt);
  }
  double steps = (c->nframe - 1) / (c->fps * dt);
  if (steps > 1e7) {
    return err_set(e, EXIT_USAGE, "motion '%s': %.3g control steps are too many", name, steps);
  }
  // clean the input on a copy: interpolation needs unit quaternions
  struct arena scratch;
  arena_init(&scratch);
  struct clip clean = *c;
  size_t bytes = sizeof(double) * (size_t)c->nframe * (size_t)c->nq;
  clean.qpos = memcpy(arena_alloc(&scratch, bytes), c->qpos, bytes);
  clip_clean(&clean, r);
  resample(m, a, r, &clean);
  arena_release(&scratch);

  differentiate(m, a, r);
  size_t nbody = (size_t)r->nbody;
  m->xpos = ARENA_NEW(a, double, (size_t)m->nframe *nbody * 3);
  m->xmat = ARENA_NEW(a, double, (size_t)m->nframe *nbody * 9);
  for (int k = 0; k < m->nframe; k++) {
    robot_fk(r, m->qpos + (size_t)k * (size_t)m->nq, m->xpos + (size_t)k * nbody * 3,
             m->xmat + (size_t)k * nbody * 9);
  }
  return 0;
}
