#include "task/collide.h"
#include <math.h>
#include <string.h>

static const struct collide_row rows[COLLIDE_TASKS] = {
    [COLLIDE_DROP] = {"bounce", 1, 1, 0, 50, NAN, 2, {0}, INFINITY, 0.01},
    [COLLIDE_BOUNCE] = {"ground", 1, 1, 0.1, 1e4, 1, 1, {-1, 1}, INFINITY, 1.0 / 480},
    [COLLIDE_WALL] = {"ground_wall", 1, 2, 0.1, 1e4, 0.92, 0.6, {-0.5, 1}, 1.75, 1.0 / 480},
    [COLLIDE_PAIR] =
        {"two_balls", 2, COLLIDE_MAX_INPUT, 0.2, 1e4, 1, 1, {-2, -2, -1, -1}, INFINITY, 1.0 / 480},
};

const struct collide_row *collide_row(enum collide_task t) {
  return &rows[t];
}

struct scene {
  const struct collide_row *row;
  double damping;
  struct cfd cfd;
};

// Contacts: floor and wall of one ball, or the two balls.
static int contacts(const struct scene *s) {
  return s->row->nball == 2 || !isfinite(s->row->wall) ? 1 : 2;
}

// Distance of contact k; n: its gradient by the positions (zeroed by the caller).
static double distance(double n[4], const struct scene *s, int k, const double *q) {
  double radius = s->row->radius;
  if (s->row->nball == 2) {
    double x = q[2] - q[0], y = q[3] - q[1], length = hypot(x, y);
    n[0] = -x / length;
    n[1] = -y / length;
    n[2] = -n[0];
    n[3] = -n[1];
    return length - 2 * radius;
  }
  n[k == 0 ? 1 : 0] = k == 0 ? 1 : -1;
  return k == 0 ? q[1] - radius : s->row->wall - radius - q[0];
}

// Force of a contact, and its derivatives by g and by g'. soft: the backward pass of contacts from
// distance, whose reference force -damping g' - stiffness s(g) is scaled by the impedance outside,
// and does not pull there.
static double force(double *by_g, double *by_rate, const struct scene *s, double g, double rate,
                    bool inside, bool soft) {
  double k = s->row->stiffness, c = s->damping;
  struct soft_point p = {.d = inside, .s = g, .s_slope = 1};
  if (soft) {
    static const struct soft_law hard = {.solimp = {0.9999, 0.9999, 0.001, 0.5, 2}};
    p = cfd_point_at(&hard, &s->cfd, g, inside);
    if (inside) {
      p.d = 1;
      p.d_slope = 0;
    }
  }
  double reference = -c * rate - k * p.s;
  *by_g = *by_rate = 0;
  if (p.d == 0 || (!inside && reference <= 0)) {
    return 0;
  }
  *by_g = p.d_slope * reference - p.d * k * p.s_slope;
  *by_rate = -p.d * c;
  return p.d * reference;
}

static void rhs(double *qacc, double *act_dot, void *self, const struct ode_point *at,
                const double *u) {
  const struct scene *s = self;
  int nv = 2 * s->row->nball;
  (void)act_dot;
  for (int i = 0; i < nv; i++) {
    qacc[i] = u && i < 2 ? u[i] : 0;
  }
  for (int k = 0; k < contacts(s); k++) {
    double n[4] = {0}, g = distance(n, s, k, at->y), rate = 0, unused[2];
    bool inside = at->active ? *at->active >> k & 1 : g < 0;
    for (int i = 0; i < nv; i++) {
      rate += n[i] * at->y[nv + i];
    }
    double f = force(&unused[0], &unused[1], s, g, rate, inside, false);
    for (int i = 0; i < nv; i++) {
      qacc[i] += f * n[i];
    }
  }
}

// Adds scale * w' (d2g/dq2): two balls only, whose normal turns.
static void turn(double *bar, const struct scene *s, const double *n, double g, const double *w,
                 double scale) {
  if (s->row->nball == 2) {
    double length = g + 2 * s->row->radius, x = w[2] - w[0], y = w[3] - w[1];
    double along = x * n[2] + y * n[3];
    x = scale * (x - along * n[2]) / length;
    y = scale * (y - along * n[3]) / length;
    bar[0] -= x;
    bar[1] -= y;
    bar[2] += x;
    bar[3] += y;
  }
}

static void vjp(double *y_bar, double *u_bar, void *self, const double *qacc_bar,
                const double *act_bar, const struct ode_point *at, const double *u) {
  const struct scene *s = self;
  int nv = 2 * s->row->nball;
  (void)act_bar;
  for (int i = 0; u && i < 2; i++) {
    u_bar[i] += qacc_bar[i];
  }
  for (int k = 0; k < contacts(s); k++) {
    double n[4] = {0}, g = distance(n, s, k, at->y), rate = 0, f_bar = 0, by_g, by_rate;
    bool inside = at->active ? *at->active >> k & 1 : g < 0;
    for (int i = 0; i < nv; i++) {
      rate += n[i] * at->y[nv + i];
      f_bar += n[i] * qacc_bar[i];
    }
    double f = force(&by_g, &by_rate, s, g, rate, inside, s->cfd.on);
    for (int i = 0; i < nv; i++) {
      y_bar[i] += f_bar * by_g * n[i];
      y_bar[nv + i] += f_bar * by_rate * n[i];
    }
    turn(y_bar, s, n, g, at->y + nv, f_bar * by_rate);
    turn(y_bar, s, n, g, qacc_bar, f);
  }
}

static void event(double *g, void *self, const double *qpos, const double *u) {
  const struct scene *s = self;
  (void)u;
  for (int k = 0; k < contacts(s); k++) {
    double n[4] = {0};
    g[k] = distance(n, s, k, qpos);
  }
}

static void event_vjp(double *q_bar, double *u_bar, void *self, int k, double scale,
                      const double *qpos, const double *u) {
  const struct scene *s = self;
  double n[4] = {0};
  (void)u_bar;
  (void)u;
  distance(n, s, k, qpos);
  for (int i = 0; i < 2 * s->row->nball; i++) {
    q_bar[i] += scale * n[i];
  }
}

// Loss of the end; bar: its gradient by positions. The cost of forces is added by the caller.
static double loss_of(double *bar, enum collide_task t, const double *q) {
  switch (t) {
  case COLLIDE_DROP:
  case COLLIDE_BOUNCE:
    bar[1] = 2 * (q[1] - 1);
    return (q[1] - 1) * (q[1] - 1);
  case COLLIDE_WALL:
    bar[0] = 2 * (q[0] + 2);
    bar[1] = 2 * (q[1] - 1.5);
    return (q[0] + 2) * (q[0] + 2) + (q[1] - 1.5) * (q[1] - 1.5);
  default:
    bar[2] = 2 * q[2];
    bar[3] = 2 * q[3];
    return q[2] * q[2] + q[3] * q[3];
  }
}

static void start_state(double y[8], enum collide_task t, const double *u, const double *shift) {
  const struct collide_row *row = &rows[t];
  int n = 2 * row->nball;
  memset(y, 0, sizeof(double[8]));
  memcpy(y, row->start, sizeof(double) * (size_t)n);
  if (t == COLLIDE_DROP) {
    y[1] = u[0];
    y[3] = -1;
  } else if (t == COLLIDE_BOUNCE) {
    y[2] = 2;
    y[3] = u[0];
  } else if (t == COLLIDE_WALL) {
    y[2] = u[0];
    y[3] = u[1];
  }
  for (int i = 0; shift && i < 2; i++) {
    y[i] += shift[i];
  }
}

// Cotangent of the start -> of the inputs that it was made of.
static void start_bwd(double *grad, enum collide_task t, const double *bar) {
  if (t == COLLIDE_DROP) {
    grad[0] = bar[1];
  } else if (t == COLLIDE_BOUNCE) {
    grad[0] = bar[3];
  } else if (t == COLLIDE_WALL) {
    grad[0] = bar[2];
    grad[1] = bar[3];
  }
}

void collide_solve(struct collide_result *r, struct arena *a, enum collide_task t,
                   const struct ode_options *o, const struct cfd *cfd, const double *u,
                   const double *shift, bool want_gradient) {
  struct arena_mark mark = arena_mark(a);
  const struct collide_row *row = &rows[t];
  double log_e = -log(row->restitution), mass = row->nball == 2 ? 0.5 : 1;
  double ratio = log_e / hypot(log_e, M_PI);
  struct scene s = {.row = row, .cfd = *cfd};
  s.damping = t == COLLIDE_DROP ? 1 : 2 * ratio * sqrt(row->stiffness * mass);
  struct ode_system system = {.nq = 2 * row->nball,
                              .nv = 2 * row->nball,
                              .nu = t == COLLIDE_PAIR ? 2 : 0,
                              .nevent = contacts(&s),
                              .self = &s,
                              .rhs = rhs,
                              .vjp = vjp,
                              .event = event,
                              .event_vjp = event_vjp};
  // every interval of constant force is a solve: no step has a corner inside
  int piece = t == COLLIDE_PAIR ? COLLIDE_KNOTS : 1;
  double span = row->end / piece, y[8], bar[8] = {0}, effort = 0.1 * span;
  struct ode_options own = *o;
  own.max_steps = (o->max_steps + piece - 1) / piece;
  o = &own;
  struct ode_trail *trail[COLLIDE_KNOTS];
  struct ode_work *work = ode_work_new(a, &system);
  *r = (struct collide_result){0};
  start_state(y, t, u, shift);
  for (int i = 0; i < piece && r->status == ODE_DONE; i++) {
    const double *input = t == COLLIDE_PAIR ? u + 2 * i : NULL;
    trail[i] = ode_trail_new(a, &system, o);
    r->status = ode_solve(y, trail[i], work, &system, o, i * span, (i + 1) * span, input);
    r->accepted += trail[i]->nstep;
    r->nrhs += trail[i]->nrhs;
  }
  memcpy(r->end, y, sizeof(double) * (size_t)system.nq);
  r->loss = loss_of(bar, t, y);
  for (int i = 0; t == COLLIDE_PAIR && i < row->ninput; i++) {
    r->loss += effort * u[i] * u[i];
  }
  for (int kind = ODE_STEPS; kind <= ODE_EVENTS && want_gradient && r->status == ODE_DONE; kind++) {
    double *grad = kind == ODE_STEPS ? r->grad : r->grad_event, y_bar[8];
    memcpy(y_bar, bar, sizeof y_bar);
    for (int i = piece - 1; i >= 0; i--) {
      bool pair = t == COLLIDE_PAIR;
      ode_adjoint(y_bar, pair ? grad + 2 * i : NULL, work, &system, o, trail[i],
                  pair ? u + 2 * i : NULL, (enum ode_gradient)kind);
    }
    start_bwd(grad, t, y_bar);
    for (int i = 0; t == COLLIDE_PAIR && i < row->ninput; i++) {
      grad[i] += 2 * effort * u[i];
    }
  }
  arena_reset(a, mark);
}
