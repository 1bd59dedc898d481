// What the tests of motion tracking share: G1, a made-up clip, and eight lanes of states near it.
#pragma once
#include "base/rng.h"
#include "task/track.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LANES = SIM_WIDTH, NFRAME = 40 };

static struct arena arena;
static struct robot g1;
static struct motion clip;
static struct sim_model *model;

static inline void assert_near(double got, double want, double tol) {
  if (!(fabs(got - want) <= tol)) {
    fail_msg("got %.17g, want %.17g, off by %g", got, want, got - want);
  }
}

// A made-up clip: the root wanders and turns through more than a full circle, every joint swings.
static inline void make_clip(struct motion *m, const struct robot *r) {
  *m = (struct motion){.name = "swing", .nframe = NFRAME, .dt = 0.02, .nq = r->nq, .nv = r->nv};
  m->nclip = 1;
  m->clip = ARENA_NEW(&arena, struct motion_clip, 1);
  *m->clip = (struct motion_clip){.name = m->name, .nframe = NFRAME};
  m->last = ARENA_NEW(&arena, int, NFRAME);
  m->qpos = ARENA_NEW(&arena, double, NFRAME * r->nq);
  m->qvel = ARENA_NEW(&arena, double, NFRAME * r->nv);
  m->xpos = ARENA_NEW(&arena, double, NFRAME * r->nbody * 3);
  m->xmat = ARENA_NEW(&arena, double, NFRAME * r->nbody * 9);
  for (int f = 0; f < NFRAME; f++) {
    m->last[f] = NFRAME - 1;
    double *q = m->qpos + f * r->nq, t = f * m->dt;
    memcpy(q, r->qpos0, r->nq * sizeof *q);
    double move[256] = {t, 0.3 * sin(3 * t), 0.05 * sin(5 * t), 0.2 * sin(4 * t), 0.3 * t, 9 * t};
    for (int d = 6; d < r->nv; d++) {
      move[d] = 0.3 + 0.4 * sin(7 * t + d);
    }
    robot_integrate(r, q, move);
    robot_fk(r, q, m->xpos + f * r->nbody * 3, m->xmat + f * r->nbody * 9);
  }
  for (int f = 0; f < NFRAME; f++) {
    int next = f < NFRAME - 1 ? f + 1 : f;
    double *v = m->qvel + f * r->nv;
    robot_difference(r, v, m->qpos + (next - 1) * r->nq, m->qpos + next * r->nq);
    for (int d = 0; d < r->nv; d++) {
      v[d] /= m->dt;
    }
  }
}

static inline int set_up(void **state) {
  (void)state;
  struct err e = {0};
  struct sim_options opt = sim_options_default();
  arena_init(&arena);
  if (robot_load(&g1, &arena, "robots/g1.xml", false, &e)) {
    return err_report(&e);
  }
  model = sim_model_new(&arena, &g1, &opt, &e);
  if (!model) {
    return err_report(&e);
  }
  make_clip(&clip, &g1);
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

// A tracking task on G1 and eight lanes of states near the reference, each at its own frame.
struct scene {
  struct spec spec;
  struct track t;
  const struct track_kernels *k;
  struct track_work *tw;
  struct sim_work *sw;
  double *qpos, *qvel, *action, *prev;
  int frame[LANES], first[LANES];
};

static inline void lanes_set(double *lanes, const double *x, int n, int lane) {
  for (int i = 0; i < n; i++) {
    lanes[i * LANES + lane] = x[i];
  }
}
static inline void lanes_get(double *x, const double *lanes, int n, int lane) {
  for (int i = 0; i < n; i++) {
    x[i] = lanes[i * LANES + lane];
  }
}
static inline double *lanes_new(int n) {
  return ARENA_NEW(&arena, double, n *LANES);
}
static inline double *lanes_random(int n, uint32_t stream) {
  struct rng r = rng_stream(1, RNG_TEST, stream, 0, 0);
  double *x = lanes_new(n);
  for (int i = 0; i < n * LANES; i++) {
    x[i] = rng_range(&r, -1, 1);
  }
  return x;
}

static inline struct scene *scene_of(const struct spec *spec, double spread) {
  struct scene *s = ARENA_NEW(&arena, struct scene, 1);
  struct err e = {0};
  s->spec = *spec;
  if (track_new(&s->t, &arena, model, &clip, &s->spec, &e)) {
    fail_msg("%s", e.text);
  }
  s->k = track_kernels(sim_kernels(&e)->isa);
  if (s->k->width != LANES) {
    skip(); // DSIM_ISA=w1: test_same_bits ties that build to the wide ones
  }
  s->tw = track_work_new(&arena, &s->t, LANES);
  s->sw = sim_work_new(&arena, model, LANES);
  s->qpos = lanes_new(g1.nq);
  s->qvel = lanes_new(g1.nv);
  s->action = lanes_random(g1.nu, 2);
  s->prev = lanes_random(g1.nu, 3);
  for (int l = 0; l < LANES; l++) {
    struct rng r = rng_stream(1, RNG_TEST, l, 0, 0);
    double q[64], v[64], move[64];
    // the last lanes look past the end of the clip
    s->frame[l] = (int[]){0, 1, 7, 20, 33, NFRAME - 4, NFRAME - 2, NFRAME - 1}[l];
    s->first[l] = l == 2;
    memcpy(q, clip.qpos + s->frame[l] * g1.nq, g1.nq * sizeof *q);
    memcpy(v, clip.qvel + s->frame[l] * g1.nv, g1.nv * sizeof *v);
    for (int d = 0; d < g1.nv; d++) {
      move[d] = spread * rng_range(&r, -1, 1);
      v[d] += spread * rng_range(&r, -1, 1);
    }
    robot_integrate(&g1, q, move);
    lanes_set(s->qpos, q, g1.nq, l);
    lanes_set(s->qvel, v, g1.nv, l);
  }
  return s;
}

static inline struct scene *scene_new(enum spec_observation observation, double spread) {
  struct spec spec;
  spec_default(&spec);
  spec.observation = observation;
  spec.observation_noise = 1;
  return scene_of(&spec, spread);
}

// ---- gradients

// All lanes' states moved by h along one direction: 0 .. nv-1 positions, nv .. 2 nv-1 velocities.
static inline void move_state(double *qpos, double *qvel, const struct scene *s, int dir,
                              double h) {
  memcpy(qpos, s->qpos, sizeof *qpos * g1.nq * LANES);
  memcpy(qvel, s->qvel, sizeof *qvel * g1.nv * LANES);
  for (int l = 0; l < LANES; l++) {
    double q[64], move[64] = {0};
    if (dir >= g1.nv) {
      qvel[(dir - g1.nv) * LANES + l] += h;
      continue;
    }
    lanes_get(q, qpos, g1.nq, l);
    move[dir] = h;
    robot_integrate(&g1, q, move);
    lanes_set(qpos, q, g1.nq, l);
  }
}

// four-point central differences: error of order h^4
static const double fd_step = 1e-3;
static const double fd_at[4] = {-2, -1, 1, 2},
                    fd_weight[4] = {1. / 12, -8. / 12, 8. / 12, -1. / 12};

// Compares n components of a gradient, (n, LANES) each, relative to the larger of the gradient's
// largest component and floor.
static inline void compare_gradient(const char *what, const double *got, const double *want, int n,
                                    double floor) {
  int same = 0, used = 0;
  for (int l = 0; l < LANES; l++) {
    double scale = floor, worst = 0;
    for (int i = 0; i < n; i++) {
      scale = fmax(scale, fabs(want[i * LANES + l]));
    }
    for (int i = 0; i < n; i++) {
      double g = got[i * LANES + l], w = want[i * LANES + l];
      if (!isfinite(g)) {
        fail_msg("%s: component %d of lane %d is %g", what, i, l, g);
      }
      worst = fmax(worst, fabs(g - w) / scale);
      used += g != 0;
      same += g != 0 && g == w;
    }
    if (getenv("TRACK_TEST_VERBOSE")) {
      print_message("%-16s lane %d: largest %.3g, error %.1e\n", what, l, scale, worst);
    }
    if (worst > 1e-7) {
      fail_msg("%s, lane %d: relative error %g", what, l, worst);
    }
  }
  // differences compared with themselves would agree everywhere
  assert_true(used == 0 || same < used);
}
