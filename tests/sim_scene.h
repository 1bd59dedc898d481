// What the tests of the simulator's physics share: one robot, in dsim (all lanes alike, lane 0 is
// read) and in MuJoCo.
#pragma once
#include "base/rng.h"
#include "robot/mjcf.h"
#include "sim/sim.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char *const shipped[] = {
    "robots/g1.xml",           "robots/go2.xml",      "robots/ant.xml",
    "robots/half_cheetah.xml", "robots/hopper.xml",   "robots/cube.xml",
    "robots/ball.xml",         "robots/pendulum.xml", "tests/robots/zoo.xml",
};
enum { NSHIPPED = sizeof shipped / sizeof shipped[0], MAX_DOF = 128 };

struct scene {
  struct arena a;
  struct robot r;
  mjModel *mj;
  mjData *d;
  struct rng rng;
  const struct sim_kernels *k;
  struct sim_model *m;
  struct sim_work *w;
  int W;
  double *lq, *lv, *lu, *lp; // lane arrays
  double q[MAX_DOF], v[MAX_DOF], u[MAX_DOF];
};

static inline void scene_open(struct scene *s, const char *path) {
  struct err e = {0};
  *s = (struct scene){0};
  arena_init(&s->a);
  s->k = sim_kernels(&e);
  if (!s->k || robot_load(&s->r, &s->a, path, false, &e)) {
    fail_msg("%s", e.text);
  }
  s->mj = mjcf_load(&s->a, path, &e);
  assert_non_null(s->mj);
  s->d = mj_makeData(s->mj);
  s->rng = rng_stream(1, RNG_TEST, 0, 0, 0);
  s->W = s->k->width;
  memcpy(s->q, s->r.qpos0, sizeof *s->q * (size_t)s->r.nq);
}

static inline void scene_model(struct scene *s, const struct sim_options *o) {
  struct err e = {0};
  s->m = sim_model_new(&s->a, &s->r, o, &e);
  if (!s->m) {
    fail_msg("%s", e.text);
  }
  s->w = sim_work_new(&s->a, s->m, s->W);
  s->lq = ARENA_NEW(&s->a, double, s->r.nq * s->W);
  s->lv = ARENA_NEW(&s->a, double, s->r.nv * s->W);
  s->lu = ARENA_NEW(&s->a, double, (s->r.nu + 1) * s->W);
  s->lp = ARENA_NEW(&s->a, double, sim_nparam(s->m) * s->W);
  sim_param_default(s->m, s->lp, s->W);
}

static inline void scene_close(struct scene *s) {
  mj_deleteData(s->d);
  mj_deleteModel(s->mj);
  arena_release(&s->a);
}

static inline void to_lanes(const struct scene *s, double *lanes, const double *x, int n) {
  for (int i = 0; i < n; i++) {
    for (int l = 0; l < s->W; l++) {
      lanes[i * s->W + l] = x[i];
    }
  }
}
static inline void from_lanes(const struct scene *s, double *x, const double *lanes, int n) {
  for (int i = 0; i < n; i++) {
    x[i] = lanes[i * s->W];
  }
}

// s->q, v, u one control step on
static inline void scene_step(struct scene *s) {
  to_lanes(s, s->lq, s->q, s->r.nq);
  to_lanes(s, s->lv, s->v, s->r.nv);
  to_lanes(s, s->lu, s->u, s->r.nu);
  s->k->step_fwd(s->m, s->w, s->lq, s->lv, NULL, s->lu, s->lp);
  from_lanes(s, s->q, s->lq, s->r.nq);
  from_lanes(s, s->v, s->lv, s->r.nv);
}

static inline void scene_probe(struct scene *s, struct sim_probe *p) {
  to_lanes(s, s->lq, s->q, s->r.nq);
  to_lanes(s, s->lv, s->v, s->r.nv);
  to_lanes(s, s->lu, s->u, s->r.nu);
  s->k->probe(s->m, s->w, p, s->lq, s->lv, s->lu, s->lp);
}

// Quaternions uniform, the rest standard normal; controls within the actuators' reach and beyond.
static inline void random_scene(struct scene *s) {
  for (int i = 0; i < s->r.nq; i++) {
    s->q[i] = rng_normal(&s->rng);
  }
  mj_normalizeQuat(s->mj, s->q);
  for (int i = 0; i < s->r.nv; i++) {
    s->v[i] = 2 * rng_normal(&s->rng);
  }
  for (int i = 0; i < s->r.nu; i++) {
    s->u[i] = rng_normal(&s->rng);
  }
}

static inline void to_mujoco(struct scene *s) {
  mju_copy(s->d->qpos, s->q, s->r.nq);
  mju_copy(s->d->qvel, s->v, s->r.nv);
  mju_copy(s->d->ctrl, s->u, s->r.nu);
}

static inline void assert_near(double got, double want, double tol, const char *what) {
  if (!(fabs(got - want) <= tol)) {
    fail_msg("%s: got %.17g, want %.17g, off by %g", what, got, want, got - want);
  }
}
// n numbers, each within tol of the largest
static inline void assert_all_near(const double *got, const double *want, int n, double tol,
                                   const char *what) {
  double most = 1e-3;
  for (int i = 0; i < n; i++) {
    most = fmax(most, fabs(want[i]));
  }
  for (int i = 0; i < n; i++) {
    if (!(fabs(got[i] - want[i]) <= tol * most)) {
      fail_msg("%s[%d]: got %.17g, want %.17g", what, i, got[i], want[i]);
    }
  }
}
