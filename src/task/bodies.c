#include "task/bodies.h"
#include "base/log.h"
#include "sim/rotation.h"
#include <math.h>
#include <string.h>

// ---- tossed objects

const char *const toss_names[TOSS_BODIES] = {"ball", "cube", "capsule", "cylinder", "ellipsoid"};

static const struct toss_row {
  enum freebody_shape shape;
  double size[3], density, euler[2]; // degrees about x, then y
} toss_rows[TOSS_BODIES] = {
    [TOSS_BALL] = {FREEBODY_SPHERE, {0.05}, 1, {0, 0}},
    [TOSS_CUBE] = {FREEBODY_BOX, {0.05, 0.05, 0.05}, 100, {60, 0}},
    [TOSS_CAPSULE] = {FREEBODY_CAPSULE, {0.05, 0.07}, 50, {60, 0}},
    [TOSS_CYLINDER] = {FREEBODY_CYLINDER, {0.04, 0.05}, 100, {70, 10}},
    [TOSS_ELLIPSOID] = {FREEBODY_ELLIPSOID, {0.05, 0.05, 0.1}, 200, {80, 0}},
};

struct freebody_scene toss_scene(enum toss_body b, bool soft) {
  const struct toss_row *row = &toss_rows[b];
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 1;
  s.body[0].shape = soft && b == TOSS_CUBE ? FREEBODY_SOFT_BOX : row->shape;
  memcpy(s.body[0].size, row->size, sizeof row->size);
  freebody_set_density(&s.body[0], row->density);
  s.gravity[2] = -2;
  s.law = (struct soft_law){.solref = {0.005, 1}, .solimp = {0, 0.95, 0.001, 0.5, 2}};
  return s;
}

void toss_start(double y[13], enum toss_body b, double u0) {
  const double *euler = toss_rows[b].euler;
  memset(y, 0, sizeof(double[13]));
  y[2] = 0.2;
  y[3] = 1;
  for (int i = 0; i < 2; i++) {
    double turn[3] = {0};
    turn[i] = euler[i] * M_PI / 180;
    quat_shift(y + 3, y + 3, turn);
  }
  y[8] = -0.1;
  y[9] = u0;
}

enum { TOSS_Y = 1, TOSS_VZ = 8 }; // of the tangent: the loss, the parameter

void toss_solve(struct body_result *r, const struct body_work *w, struct freebody_scene *s,
                enum toss_body b, const struct ode_options *o, double u0) {
  struct arena_mark mark = arena_mark(w->arena);
  struct ode_system system = freebody_system(s);
  struct ode_trail *trail = ode_trail_new(w->arena, &system, o);
  struct ode_work *work = ode_work_new(w->arena, &system);
  double y[13], start = wall_seconds();
  *r = (struct body_result){.grad = NAN, .grad_event = NAN};
  toss_start(y, b, u0);
  for (int i = 0; w->shift && i < 2; i++) {
    y[1 + i] += w->shift[i];
  }
  r->status = ode_solve(y, trail, work, &system, o, 0, 1, NULL);
  r->forward_s = wall_seconds() - start;
  r->loss = r->status == ODE_DONE ? y[TOSS_Y] : NAN;
  r->accepted = trail->nstep;
  r->rejected = trail->nrejected;
  r->nrhs = trail->nrhs;
  for (int kind = ODE_STEPS; kind <= ODE_EVENTS && r->status == ODE_DONE; kind++) {
    if (!(kind == ODE_STEPS ? w->want_gradient : w->want_event)) {
      continue;
    }
    double bar[12] = {0};
    bar[TOSS_Y] = 1;
    start = wall_seconds();
    ode_adjoint(bar, NULL, work, &system, o, trail, NULL, (enum ode_gradient)kind);
    if (kind == ODE_STEPS) {
      r->adjoint_s = wall_seconds() - start;
      r->grad = bar[TOSS_VZ];
    } else {
      r->grad_event = bar[TOSS_VZ];
    }
  }
  arena_reset(w->arena, mark);
}

void toss_backsolve(struct body_result *r, const struct body_work *w, struct freebody_scene *s,
                    enum toss_body b, const struct ode_options *o, double u0) {
  enum { KNOTS = 100, STATE = 13 };
  struct arena_mark mark = arena_mark(w->arena);
  struct body_work forward = {.arena = w->arena};
  struct ode_system system = freebody_system(s);
  toss_solve(r, &forward, s, b, o, u0);
  if (r->status == ODE_DONE && w->want_gradient) {
    struct ode_work *work = ode_work_new(w->arena, &system);
    double(*y)[STATE] = arena_alloc(w->arena, sizeof(double[KNOTS + 1][STATE]));
    double bar[12] = {0};
    toss_start(y[0], b, u0);
    for (int i = 0; i < KNOTS; i++) {
      memcpy(y[i + 1], y[i], sizeof y[i]);
      ode_solve(y[i + 1], NULL, work, &system, o, (double)i / KNOTS, (double)(i + 1) / KNOTS, NULL);
    }
    double start = wall_seconds();
    bar[TOSS_Y] = 1;
    for (int i = KNOTS; i > 0 && r->status == ODE_DONE; i--) {
      int nstep;
      r->status = ode_backsolve(y[i], bar, NULL, w->arena, &system, o, (double)(i - 1) / KNOTS,
                                (double)i / KNOTS, NULL, &nstep);
    }
    r->adjoint_s = wall_seconds() - start;
    r->grad = bar[TOSS_VZ];
  }
  arena_reset(w->arena, mark);
}

// ---- billiard

static const double billiard_radius = 0.042, billiard_mass = 0.17, billiard_knot = 0.01;
static const double billiard_end = 3, billiard_push = 4;

static struct freebody_scene billiard_scene(const struct billiard *b) {
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 2;
  for (int i = 0; i < 2; i++) {
    s.body[i] = (struct freebody){.shape = FREEBODY_SPHERE,
                                  .size = {billiard_radius},
                                  .mass = billiard_mass,
                                  .damping = 1e-4};
    for (int k = 0; k < 3; k++) {
      s.body[i].inertia[k] = 0.4 * billiard_mass * billiard_radius * billiard_radius;
    }
  }
  s.pair = true;
  s.friction_pair = 0.2;
  s.plane = b->gravity; // cushions are out of reach within three seconds
  s.floor = -0.015;
  s.friction_plane = 1;
  s.law = (struct soft_law){.solref = {0.1, 0.2}, .solimp = {0.01, 0.95, 0.1, 0.5, 2}};
  if (b->gravity) {
    s.law = (struct soft_law){.solref = {0.01, 0.2}, .solimp = {0.9, 0.95, 0.01, 0.5, 2}};
  } else {
    s.gravity[2] = 0;
  }
  s.cfd = b->cfd;
  s.knot = billiard_knot;
  return s;
}

static void track_gap(double *gap, const double *y) {
  double d[3] = {y[7] - y[0], y[8] - y[1], y[9] - y[2]};
  *gap = fmin(*gap, sqrt(vec3_dot(d, d)) - 2 * billiard_radius);
}

void billiard_solve(struct body_result *r, struct billiard_result *more, const struct body_work *w,
                    const struct billiard *b, const struct ode_options *o, double u0) {
  struct arena_mark mark = arena_mark(w->arena);
  // the push ends where a solve ends, so that no step has its corner inside
  struct freebody_scene scene[2] = {billiard_scene(b), billiard_scene(b)};
  scene[0].input = b->hold ? FREEBODY_HOLD : FREEBODY_RAMP;
  const double time[3] = {0, billiard_knot, billiard_end}, u[2] = {billiard_push, u0};
  // the force of a hold is there up to its last stage
  scene[0].knot = b->hold ? 2 * billiard_knot : billiard_knot;
  double y[26] = {0}, start = wall_seconds();
  y[0] = -0.375;
  y[7] = -0.2;
  y[2] = y[9] = 0.1;
  y[3] = y[10] = 1;
  for (int i = 0; w->shift && i < 2; i++) {
    y[i] += w->shift[i];
  }
  *r = (struct body_result){.grad = NAN, .grad_event = NAN};
  *more = (struct billiard_result){.gap = INFINITY};
  struct ode_system system[2];
  struct ode_trail *trail[2];
  struct ode_work *work[2];
  for (int i = 0; i < 2 && r->status == ODE_DONE; i++) {
    system[i] = freebody_system(&scene[i]);
    trail[i] = ode_trail_new(w->arena, &system[i], o);
    work[i] = ode_work_new(w->arena, &system[i]);
    r->status = ode_solve(y, trail[i], work[i], &system[i], o, time[i], time[i + 1], u);
    r->accepted += trail[i]->nstep;
    r->rejected += trail[i]->nrejected;
    r->nrhs += trail[i]->nrhs;
    for (int k = 0; k * o->stride < trail[i]->nstep; k++) {
      track_gap(&more->gap, trail[i]->state + 26 * k);
    }
  }
  r->forward_s = wall_seconds() - start;
  track_gap(&more->gap, y);
  memcpy(more->target, y + 7, sizeof more->target);
  r->loss = r->status == ODE_DONE ? vec3_dot(y + 7, y + 7) : NAN;
  for (int kind = ODE_STEPS; kind <= ODE_EVENTS && r->status == ODE_DONE; kind++) {
    if (!(kind == ODE_STEPS ? w->want_gradient : w->want_event)) {
      continue;
    }
    double bar[24] = {0}, u_bar[2] = {0};
    vec3_add(bar + 6, y + 7, 2);
    start = wall_seconds();
    for (int i = 1; i >= 0; i--) {
      ode_adjoint(bar, u_bar, work[i], &system[i], o, trail[i], u, (enum ode_gradient)kind);
    }
    if (kind == ODE_STEPS) {
      r->adjoint_s = wall_seconds() - start;
      r->grad = u_bar[1];
    } else {
      r->grad_event = u_bar[1];
    }
  }
  arena_reset(w->arena, mark);
}

// ---- the bouncing point

void bounce_solve(double *q, double *slope, enum bounce_model model, double h, double q0) {
  const double end = 2, stiffness = 50, damping = 1;
  if (model == BOUNCE_EXACT) {
    // under water the point is a damped spring: q = -exp(-t/2) sin(w t) / w for half a period
    double w = sqrt(stiffness - 0.25 * damping * damping), half = M_PI / w, dq0 = 1;
    double t = end - q0;
    if (t <= 0) {
      *q = -t;
    } else if (t < half) {
      double decay = exp(-0.5 * damping * t);
      *q = -decay * sin(w * t) / w;
      dq0 = 0.5 * damping * *q + decay * cos(w * t);
    } else {
      double e = exp(-0.5 * damping * half);
      *q = e * (t - half);
      dq0 = -e;
    }
    *slope = dq0;
    return;
  }
  double x = q0, v = -1, dx = 1, dv = 0;
  int n = (int)(end / h + 0.5);
  for (int i = 0; i < n; i++) {
    if (x < 0 && model == BOUNCE_IDEAL) {
      v = -v;
      dv = -dv;
    } else if (x < 0) {
      v += h * (-damping * v - stiffness * x);
      dv += h * (-damping * dv - stiffness * dx);
    }
    x += h * v;
    dx += h * dv;
  }
  *q = x;
  *slope = dx;
}

// ---- settings

struct ode_options spec_ode_options(const struct spec *s) {
  static const enum ode_method method[] = {
      [INTEGRATOR_MOREAU] = ODE_METHODS,  [INTEGRATOR_EULER] = ODE_SEMI_EULER,
      [INTEGRATOR_RK4] = ODE_MUJOCO_RK4,  [INTEGRATOR_EXPLICIT] = ODE_EXPLICIT,
      [INTEGRATOR_HEUN] = ODE_HEUN,       [INTEGRATOR_MIDPOINT] = ODE_MIDPOINT,
      [INTEGRATOR_RALSTON] = ODE_RALSTON, [INTEGRATOR_BOSH3] = ODE_BOSH3,
      [INTEGRATOR_DOPRI5] = ODE_DOPRI5,   [INTEGRATOR_TSIT5] = ODE_TSIT5,
      [INTEGRATOR_DOPRI8] = ODE_DOPRI8,
  };
  struct ode_options o = ode_options_default();
  o.method = method[s->integrator];
  BUG_IF(o.method == ODE_METHODS); // spec_check refuses moreau here
  o.adaptive = ode_table(o.method)->embedded;
  o.dt = s->ode_dt;
  o.rtol = o.atol = s->ode_tolerance;
  o.max_steps = s->ode_max_steps;
  o.locate = s->ode_locate;
  o.stride = s->ode_stride;
  return o;
}

struct cfd spec_cfd(const struct spec *s) {
  return (struct cfd){
      .on = s->cfd_law != CFD_LAW_OFF,
      .spring = s->cfd_law == CFD_LAW_SOFTPLUS ? CFD_SOFTPLUS : CFD_RELU,
      .solimp = {s->cfd_dmin, s->cfd_dmax, s->cfd_width, s->cfd_mid, s->cfd_power},
  };
}
