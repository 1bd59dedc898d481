// The tables of arXiv 2506.14186's small experiments: one function each, rows computed in parallel
// and written in order.
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "task/bodies.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int workers(const struct spec *s) {
  return s->threads > 0 ? s->threads : omp_get_max_threads();
}

static double sweep_value(const struct spec *s, int i) {
  return s->range_lo + (s->range_hi - s->range_lo) * i / (s->range_points - 1);
}

static void real_or_missing(struct csv *c, double x) {
  if (isfinite(x)) {
    csv_exact(c, x);
  } else {
    csv_missing(c);
  }
}

// ---- bounce

int table_bounce(const struct spec *s, const char *path, struct err *e) {
  static const struct {
    const char *name, *setting;
    enum bounce_model model;
    double h;
  } rows[] = {
      {"exact", "", BOUNCE_EXACT, 0},
      {"ideal", "0.1", BOUNCE_IDEAL, 0.1},
      {"penalty", "0.1", BOUNCE_PENALTY, 0.1},
      {"penalty", "0.01", BOUNCE_PENALTY, 0.01},
      {"penalty", "1e-3", BOUNCE_PENALTY, 1e-3},
      {"penalty", "1e-4", BOUNCE_PENALTY, 1e-4},
  };
  struct csv c;
  if (csv_open(&c, path, "model,setting,q0,q_end,loss,slope,grad", e)) {
    return e->code;
  }
  for (size_t k = 0; k < sizeof rows / sizeof *rows && !e->code; k++) {
    for (int i = 0; i < s->range_points && !e->code; i++) {
      double q0 = sweep_value(s, i), q, slope;
      bounce_solve(&q, &slope, rows[k].model, rows[k].h, q0);
      csv_text(&c, rows[k].name);
      csv_text(&c, rows[k].setting);
      csv_real(&c, q0);
      csv_real(&c, q);
      csv_real(&c, fabs(q - 1));
      csv_real(&c, slope);
      csv_real(&c, q < 1 ? -slope : slope);
      csv_end(&c, e);
    }
  }
  csv_close(&c);
  return e->code;
}

// ---- toss: every body along the sweep of its vertical velocity

enum { TOSS_EULER, TOSS_ADAPTIVE, TOSS_CFD, TOSS_SOFT, TOSS_LOCATED, TOSS_METHODS };
static const char *const toss_method[TOSS_METHODS] = {"euler", "adaptive", "adaptive_cfd",
                                                      "adaptive_soft", "located"};

static void toss_point(struct body_result *r, double *difference, const struct spec *s,
                       const struct body_work *w, int method, enum toss_body b, double u0) {
  struct freebody_scene scene = toss_scene(b, method == TOSS_SOFT);
  struct ode_options o = spec_ode_options(s);
  scene.cfd = spec_cfd(s);
  scene.cfd.on = method == TOSS_CFD;
  if (method == TOSS_EULER) {
    o.method = ODE_SEMI_EULER;
    o.adaptive = o.locate = false;
  }
  if (method == TOSS_LOCATED) { // what the others are measured against
    o.method = ODE_DOPRI8;
    o.rtol = o.atol = 1e-11;
    o.locate = true;
  }
  toss_solve(r, w, &scene, b, &o, u0);
  *difference = NAN;
  if (method == TOSS_LOCATED) {
    const double eps = 1e-4;
    struct body_work forward = {.arena = w->arena};
    struct body_result side[2];
    toss_solve(&side[0], &forward, &scene, b, &o, u0 - eps);
    toss_solve(&side[1], &forward, &scene, b, &o, u0 + eps);
    *difference = (side[1].loss - side[0].loss) / (2 * eps);
  }
}

int table_toss(const struct spec *s, const char *path, struct err *e) {
  int np = s->range_points, n = TOSS_BODIES * TOSS_METHODS * np;
  struct arena a;
  arena_init(&a);
  struct body_result *r = ARENA_NEW(&a, struct body_result, n);
  double *difference = ARENA_NEW(&a, double, n);
  int done = 0;
#pragma omp parallel num_threads(workers(s))
  {
    struct arena own;
    arena_init(&own);
    struct body_work w = {.arena = &own, .want_gradient = true, .want_event = true};
#pragma omp for schedule(dynamic, 4)
    for (int i = 0; i < n; i++) {
      int b = i / np / TOSS_METHODS, method = i / np % TOSS_METHODS;
      if (method != TOSS_SOFT || b == TOSS_CUBE) {
        toss_point(&r[i], &difference[i], s, &w, method, (enum toss_body)b, sweep_value(s, i % np));
      }
#pragma omp critical
      if (++done % 100 == 0) {
        log_progress("%d of %d", done, n);
      }
    }
    arena_release(&own);
  }
  log_progress_end();
  struct csv c;
  if (csv_open(&c, path, "body,method,u0,loss,grad,grad_event,grad_fd,accepted,rejected", e) == 0) {
    for (int i = 0; i < n && !e->code; i++) {
      int b = i / np / TOSS_METHODS, method = i / np % TOSS_METHODS;
      if (method == TOSS_SOFT && b != TOSS_CUBE) {
        continue;
      }
      csv_text(&c, toss_names[b]);
      csv_text(&c, toss_method[method]);
      csv_exact(&c, sweep_value(s, i % np));
      real_or_missing(&c, r[i].loss);
      real_or_missing(&c, r[i].grad);
      real_or_missing(&c, r[i].grad_event);
      real_or_missing(&c, difference[i]);
      csv_int(&c, r[i].accepted);
      csv_int(&c, r[i].rejected);
      csv_end(&c, e);
    }
    csv_close(&c);
  }
  arena_release(&a);
  return e->code;
}

// ---- time_toss: the published table row for row, and what dsim adds

struct time_row {
  const char *method, *setting;
  enum ode_method m;
  enum { TIME_FIXED, TIME_ADAPTIVE, TIME_LOCATED, TIME_BACKSOLVE } kind;
};
static const struct time_row time_rows[] = {
    {"dfx_tsit5backsolve", "1e-10", ODE_TSIT5, TIME_BACKSOLVE},
    {"dfx_tsit5", "1e-12", ODE_TSIT5, TIME_ADAPTIVE},
    {"dfx_tsit5", "1e-7", ODE_TSIT5, TIME_ADAPTIVE},
    {"dfx_tsit5", "1e-4", ODE_TSIT5, TIME_ADAPTIVE},
    {"dfx_tsit5", "1e-10", ODE_TSIT5, TIME_ADAPTIVE},
    {"dfx_tsit5", "1e-5", ODE_TSIT5, TIME_ADAPTIVE},
    {"mjx_euler", "1e-2", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_euler", "3e-3", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_euler", "1e-3", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_euler", "3e-4", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_euler", "1e-4", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_euler", "3e-5", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_rk4", "1e-1", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "3e-2", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "1e-2", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "3e-3", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "1e-3", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "3e-4", ODE_MUJOCO_RK4, TIME_FIXED},
    {"mjx_rk4", "1e-4", ODE_MUJOCO_RK4, TIME_FIXED},
    // without damping or actuators the published implicit integrator is Euler
    {"mjx_implicit", "1e-2", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_implicit", "3e-3", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_implicit", "1e-3", ODE_SEMI_EULER, TIME_FIXED},
    {"mjx_implicit", "3e-4", ODE_SEMI_EULER, TIME_FIXED},
    {"dfx_dopri8", "1e-10", ODE_DOPRI8, TIME_ADAPTIVE},
    {"dfx_dopri8", "1e-6", ODE_DOPRI8, TIME_ADAPTIVE},
    {"dfx_dopri5", "1e-10", ODE_DOPRI5, TIME_ADAPTIVE},
    {"dfx_dopri5", "1e-5", ODE_DOPRI5, TIME_ADAPTIVE},
    {"dfx_bosh3", "1e-5", ODE_BOSH3, TIME_ADAPTIVE},
    {"dfx_bosh3", "1e-3", ODE_BOSH3, TIME_ADAPTIVE},
    {"dfx_midpoint", "1e-5", ODE_MIDPOINT, TIME_ADAPTIVE},
    {"dfx_midpoint", "1e-3", ODE_MIDPOINT, TIME_ADAPTIVE},
    {"dfx_ralston", "1e-5", ODE_RALSTON, TIME_ADAPTIVE},
    {"dfx_ralston", "1e-3", ODE_RALSTON, TIME_ADAPTIVE},
    {"dfx_heun", "1e-5", ODE_HEUN, TIME_ADAPTIVE},
    {"dfx_heun", "1e-3", ODE_HEUN, TIME_ADAPTIVE},
    {"dfx_euler", "1e-2", ODE_EXPLICIT, TIME_FIXED},
    {"dfx_euler", "1e-3", ODE_EXPLICIT, TIME_FIXED},
    {"dfx_euler", "3e-3", ODE_EXPLICIT, TIME_FIXED},
    {"dfx_euler", "1e-4", ODE_EXPLICIT, TIME_FIXED},
    // steps that end at touchdown and lift-off
    {"located_tsit5", "1e-6", ODE_TSIT5, TIME_LOCATED},
    {"located_tsit5", "1e-8", ODE_TSIT5, TIME_LOCATED},
    {"located_tsit5", "1e-10", ODE_TSIT5, TIME_LOCATED},
    {"located_tsit5", "1e-12", ODE_TSIT5, TIME_LOCATED},
    {"located_dopri8", "1e-6", ODE_DOPRI8, TIME_LOCATED},
    {"located_dopri8", "1e-8", ODE_DOPRI8, TIME_LOCATED},
    {"located_dopri8", "1e-10", ODE_DOPRI8, TIME_LOCATED},
    {"located_dopri8", "1e-12", ODE_DOPRI8, TIME_LOCATED},
    {"located_dopri8", "1e-14", ODE_DOPRI8, TIME_LOCATED},
};

static struct ode_options time_options(const struct time_row *row) {
  struct ode_options o = ode_options_default();
  double setting = strtod(row->setting, NULL);
  o.method = row->m;
  o.adaptive = row->kind != TIME_FIXED;
  o.locate = row->kind == TIME_LOCATED;
  o.dt = o.adaptive ? 0.01 : setting;
  o.rtol = o.atol = setting;
  o.max_steps = 40000;
  return o;
}

static void time_solve(struct body_result *r, const struct time_row *row, const struct body_work *w,
                       double u0) {
  struct freebody_scene scene = toss_scene(TOSS_CUBE, true);
  struct ode_options o = time_options(row);
  if (row->kind == TIME_BACKSOLVE) {
    toss_backsolve(r, w, &scene, TOSS_CUBE, &o, u0);
  } else {
    toss_solve(r, w, &scene, TOSS_CUBE, &o, u0);
  }
}

// Shortest of a few repetitions: what the row costs without the neighbours on this machine.
static void time_repeat(double *forward, double *gradient, const struct time_row *row,
                        const struct body_work *w) {
  struct body_work timed = {.arena = w->arena, .want_gradient = true};
  double start = wall_seconds();
  *forward = *gradient = INFINITY;
  for (int i = 0; i < 3 || (i < 100 && wall_seconds() - start < 0.2); i++) {
    struct body_result r;
    time_solve(&r, row, &timed, -2);
    *forward = fmin(*forward, r.forward_s);
    *gradient = fmin(*gradient, r.forward_s + r.adjoint_s);
  }
}

int table_time_toss(const struct spec *s, const char *path, struct err *e) {
  struct arena a;
  arena_init(&a);
  struct body_work full = {.arena = &a, .want_gradient = true, .want_event = true};
  struct body_work forward = {.arena = &a};
  struct csv c;
  csv_open(&c, path,
           "method,setting,loss,grad,grad_event,grad_fd,forward_s,gradient_s,accepted,rejected", e);
  for (size_t i = 0; i < sizeof time_rows / sizeof *time_rows && !e->code; i++) {
    const struct time_row *row = &time_rows[i];
    struct body_result r, side[2];
    double forward_s = 0, gradient_s = 0;
    const double eps = 0.01;
    time_solve(&r, row, &full, -2);
    time_solve(&side[0], row, &forward, -2 - eps);
    time_solve(&side[1], row, &forward, -2 + eps);
    if (s->log_wall) {
      time_repeat(&forward_s, &gradient_s, row, &full);
    }
    csv_text(&c, row->method);
    csv_text(&c, row->setting);
    real_or_missing(&c, r.loss);
    real_or_missing(&c, r.grad);
    real_or_missing(&c, r.grad_event);
    real_or_missing(&c, (side[1].loss - side[0].loss) / (2 * eps));
    csv_real(&c, forward_s);
    csv_real(&c, gradient_s);
    csv_int(&c, r.accepted);
    csv_int(&c, r.rejected);
    csv_end(&c, e);
    log_progress("%s %s: loss %.12g, gradient %.9g, %.9g with events", row->method, row->setting,
                 r.loss, r.grad, r.grad_event);
  }
  log_progress_end();
  csv_close(&c);
  arena_release(&a);
  return e->code;
}

// ---- billiard: loss and gradients along the sideways push

enum { SHOT_LOCATED, SHOT_PLAIN, SHOT_RELU, SHOT_SOFTPLUS, SHOT_EULER, SHOT_EULER_CFD, SHOTS };
static const char *const shot_name[SHOTS] = {"located",           "adaptive", "adaptive_cfd",
                                             "adaptive_softplus", "euler",    "euler_cfd"};

int table_billiard(const struct spec *s, const char *path, struct err *e) {
  int np = s->range_points, n = SHOTS * np;
  struct arena a;
  arena_init(&a);
  struct body_result *r = ARENA_NEW(&a, struct body_result, n);
  struct billiard_result *more = ARENA_NEW(&a, struct billiard_result, n);
#pragma omp parallel num_threads(workers(s))
  {
    struct arena own;
    arena_init(&own);
    struct body_work w = {.arena = &own, .want_gradient = true, .want_event = true};
#pragma omp for schedule(dynamic, 4)
    for (int i = 0; i < n; i++) {
      int shot = i / np;
      struct billiard b = {.gravity = s->billiard_gravity,
                           .hold = s->billiard_push == BILLIARD_HOLD,
                           .cfd = spec_cfd(s)};
      struct ode_options o = spec_ode_options(s);
      b.cfd.on = shot == SHOT_RELU || shot == SHOT_SOFTPLUS || shot == SHOT_EULER_CFD;
      b.cfd.spring = shot == SHOT_SOFTPLUS ? CFD_SOFTPLUS : CFD_RELU;
      o.locate = shot == SHOT_LOCATED;
      if (o.locate) {
        o.method = ODE_DOPRI8;
        o.adaptive = true;
        o.rtol = o.atol = 1e-12;
        o.max_steps = 20000;
      }
      if (shot == SHOT_EULER || shot == SHOT_EULER_CFD) {
        o.method = ODE_SEMI_EULER;
        o.adaptive = false;
      }
      billiard_solve(&r[i], &more[i], &w, &b, &o, sweep_value(s, i % np));
    }
    arena_release(&own);
  }
  struct csv c;
  if (csv_open(&c, path, "method,u0,loss,grad,grad_event,x,y,gap,accepted,rejected", e) == 0) {
    for (int i = 0; i < n && !e->code; i++) {
      csv_text(&c, shot_name[i / np]);
      csv_exact(&c, sweep_value(s, i % np));
      real_or_missing(&c, r[i].loss);
      real_or_missing(&c, r[i].grad);
      real_or_missing(&c, r[i].grad_event);
      csv_exact(&c, more[i].target[0]);
      csv_exact(&c, more[i].target[1]);
      csv_exact(&c, more[i].gap);
      csv_int(&c, r[i].accepted);
      csv_int(&c, r[i].rejected);
      csv_end(&c, e);
    }
    csv_close(&c);
  }
  arena_release(&a);
  return e->code;
}
