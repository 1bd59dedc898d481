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

static int frames_of(const struct clip *c, double dt) {
  const double eps = 1e-9; // rounding must neither lose the last frame nor add one
  return (int)floor((c->nframe - 1) / (dt * c->fps) + eps) + 1;
}

// A clip's frames into their place, qpos.
static void resample(double *qpos, int nframe, const struct robot *r, const struct clip *c,
                     double dt) {
  size_t nq = (size_t)r->nq;
  const double eps = 1e-9;
  double per_step = dt * c->fps;
  struct clip out = {.nframe = nframe, .nq = r->nq, .qpos = qpos};
  for (int k = 0; k < nframe; k++) {
    double at = k * per_step;
    int i = (int)floor(at + eps);
    i = i > c->nframe - 2 ? c->nframe - 2 : i;
    double s = fmin(fmax(at - i, 0), 1);
    s = s < eps ? 0 : s > 1 - eps ? 1 : s; // on a frame: that frame, to the last bit
    const double *row = c->qpos + (size_t)i * nq;
    blend(qpos + (size_t)k * nq, r, row, row + nq, s);
  }
  // steps along the shorter arc may still end on the other sign of a frame
  clip_clean(&out, r);
  if (r->link[0].type == JOINT_FREE) {
    double x = qpos[0], y = qpos[1];
    for (int k = 0; k < nframe; k++) {
      qpos[(size_t)k * nq] -= x;
      qpos[(size_t)k * nq + 1] -= y;
    }
  }
}

// central differences, one-sided at the clip's ends
static void differentiate(struct motion *m, const struct robot *r, const struct motion_clip *c) {
  int end = c->first + c->nframe;
  for (int k = c->first; k < end; k++) {
    int before = k > c->first ? k - 1 : k, after = k + 1 < end ? k + 1 : k;
    double *v = m->qvel + (size_t)k * (size_t)m->nv;
    robot_difference(r, v, m->qpos + (size_t)before * (size_t)m->nq,
                     m->qpos + (size_t)after * (size_t)m->nq);
    for (int i = 0; i < m->nv; i++) {
      v[i] /= (after - before) * m->dt;
    }
  }
}

static int check_length(const struct clip *c, const char *name, double dt, struct err *e) {
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
  return 0;
}

// frames of clip k from its rows; kinematics are left for later
static void build_clip(struct motion *m, const struct robot *r, const struct clip *c, int k) {
  // clean the input on a copy: interpolation needs unit quaternions
  struct arena scratch;
  arena_init(&scratch);
  struct clip clean = *c;
  size_t bytes = sizeof(double) * (size_t)c->nframe * (size_t)c->nq;
  clean.qpos = memcpy(arena_alloc(&scratch, bytes), c->qpos, bytes);
  clip_clean(&clean, r);
  const struct motion_clip *to = &m->clip[k];
  resample(m->qpos + (size_t)to->first * (size_t)m->nq, to->nframe, r, &clean, m->dt);
  differentiate(m, r, to);
  arena_release(&scratch);
}

int motion_build_clips(struct motion *m, struct arena *a, const struct robot *r,
                       const struct clip *c, const char *const *name, int n, double dt,
                       struct err *e) {
  *m = (struct motion){.name = n == 1 ? arena_strdup(a, name[0]) : "", .dt = dt};
  m->nq = r->nq;
  m->nv = r->nv;
  m->nclip = n;
  m->clip = ARENA_NEW(a, struct motion_clip, n);
  for (int k = 0; k < n; k++) {
    BUG_IF(c[k].nq != r->nq || !(dt > 0));
    if (check_length(&c[k], name[k], dt, e)) {
      return e->code;
    }
    int frames = frames_of(&c[k], dt);
    if (frames > 20000000 - m->nframe) { // numbers of frames stay far from overflow
      return err_set(e, EXIT_USAGE, "motion '%s' and those before it: too many control steps",
                     name[k]);
    }
    m->clip[k] = (struct motion_clip){.name = arena_strdup(a, name[k])};
    m->clip[k].first = m->nframe;
    m->clip[k].nframe = frames;
    m->nframe += frames;
  }
  size_t nframe = (size_t)m->nframe, nbody = (size_t)r->nbody;
  m->last = ARENA_NEW(a, int, nframe);
  m->qpos = ARENA_NEW(a, double, nframe *(size_t)m->nq);
  m->qvel = ARENA_NEW(a, double, nframe *(size_t)m->nv);
  for (int k = 0; k < n; k++) {
    const struct motion_clip *to = &m->clip[k];
    build_clip(m, r, &c[k], k);
    for (int i = to->first; i < to->first + to->nframe; i++) {
      m->last[i] = to->first + to->nframe - 1;
    }
  }
  m->xpos = ARENA_NEW(a, double, nframe *nbody * 3);
  m->xmat = ARENA_NEW(a, double, nframe *nbody * 9);
  for (int k = 0; k < m->nframe; k++) {
    robot_fk(r, m->qpos + (size_t)k * (size_t)m->nq, m->xpos + (size_t)k * nbody * 3,
             m->xmat + (size_t)k * nbody * 9);
  }
  return 0;
}

int motion_build(struct motion *m, struct arena *a, const struct robot *r, const struct clip *c,
                 const char *name, double dt, struct err *e) {
  return motion_build_clips(m, a, r, c, &name, 1, dt, e);
}

int motion_clip_of(const struct motion *m, int frame) {
  int k = 0;
  while (k + 1 < m->nclip && frame >= m->clip[k + 1].first) {
    k++;
  }
  return k;
}
