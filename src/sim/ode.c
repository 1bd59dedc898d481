// Solving: steps, error control, location of events. The adjoint walks the same steps back.
#include "sim/ode_private.h"
#include "sim/rotation.h"
#include "sim/scalar_math.h"
#include <math.h>
#include <string.h>

struct ode_options ode_options_default(void) {
  return (struct ode_options){.method = ODE_TSIT5,
                              .adaptive = true,
                              .dt = 0.01,
                              .rtol = 1e-6,
                              .atol = 1e-6,
                              .max_steps = 4096,
                              .max_dt = 0.02,
                              .stride = 1,
                              .error_floor = 1e-10};
}

struct ode_trail *ode_trail_new(struct arena *a, const struct ode_system *s,
                                const struct ode_options *o) {
  struct ode_trail *t = ARENA_NEW(a, struct ode_trail, 1);
  t->capacity = o->max_steps;
  t->stride = o->stride;
  t->h = ARENA_NEW(a, double, t->capacity);
  t->state = ARENA_NEW(a, double, (t->capacity / t->stride + 1) * ode_nstate(s));
  t->active = ARENA_NEW(a, uint64_t, t->capacity);
  t->event = ARENA_NEW(a, int, t->capacity);
  return t;
}

// ---- error control (arXiv 2506.14186: Diffrax's PI controller)

// Root mean square over qpos, the rotations' chart, qvel and act. The chart starts every step at 0
// and a quaternion has no error of its own, but both count among the entries.
static double error_norm(const struct ode_work *w, const struct ode_system *s,
                         const struct ode_options *o, const double *y0, const double *y1) {
  const double *error = w->error;
  double sum = 0;
  int iq = 0, iv = 0;
  for (int k = 0; k <= s->nquat; k++) {
    int end = k < s->nquat ? s->quat[k].q : s->nq;
    for (; iq < end; iq++, iv++) {
      double x = error[iv] / (o->atol + o->rtol * fmax(fabs(y0[iq]), fabs(y1[iq])));
      sum += x * x;
    }
    for (int i = 0; i < 3 && k < s->nquat; i++) {
      double x = error[iv + i] / o->atol;
      sum += x * x;
    }
    iq += 4;
    iv += 3;
  }
  for (int i = 0; i < s->nv + s->nnorm; i++) {
    int j = s->nq + i;
    double x = error[s->nv + i] / (o->atol + o->rtol * fmax(fabs(y0[j]), fabs(y1[j])));
    sum += x * x;
  }
  return sqrt(sum / (s->nq + 2 * s->nv + s->nnorm));
}

struct control {
  double memory; // 1 / error of the last accepted step
};

// Accepts or rejects, and the factor of the step size after.
static bool control_step(double *factor, struct control *c, double error, int order) {
  bool accept = error < 1;
  double inverse = 1 / error;
  double x = 0.9 * scalar_pow(inverse, 0.6 / order) * scalar_pow(c->memory, -0.2 / order);
  *factor = accept ? fmin(fmax(x, 1), 10) : fmin(fmax(x, 0.2), 0.9);
  if (accept) {
    c->memory = isfinite(inverse) && inverse > 0 ? inverse : 1;
  }
  return accept;
}

// ---- events

static uint64_t active_events(const double *g, int n) {
  uint64_t mask = 0;
  for (int k = 0; k < n; k++) {
    mask |= (uint64_t)(g[k] < 0) << k;
  }
  return mask;
}

// dg_k/dt at a state; gradient (nv) is a scratch
static double event_rate(double *gradient, double *no_u, const struct ode_system *s, int k,
                         const double *y, const double *u) {
  memset(gradient, 0, sizeof *gradient * (size_t)s->nv);
  s->event_vjp(gradient, no_u, s->self, k, 1, y, u);
  double rate = 0;
  for (int i = 0; i < s->nv; i++) {
    rate += gradient[i] * y[s->nq + i];
  }
  return rate;
}

struct step { // where a step starts
  double t;
  const double *y0;
  const double *u;
  uint64_t active;
};

// Shortens the step h, at whose end event k has crossed (g0 at its start, g1 at its end), so that
// it ends there. The step made last in w is then the shortened one, with its end in y1.
static double locate_event(double *y1, struct ode_work *w, const struct ode_system *s,
                           const struct ode_options *o, const struct step *p, double h, int k,
                           double g0, double g1, int *nrhs) {
  double lo = 0, hi = h, best = h;
  int side = 0;
  for (int i = 0; i < 100; i++) {
    // regula falsi, the end that stays halved (Illinois)
    double x = hi - g1 * (hi - lo) / (g1 - g0);
    if (!(x > lo && x < hi)) {
      x = 0.5 * (lo + hi);
    }
    ode_step_fwd(y1, w, s, o->method, p->t, x, p->y0, p->u, &p->active, nrhs);
    s->event(w->g1, s->self, y1, p->u);
    double g = w->g1[k];
    best = x;
    if (fabs(g) < 1e-16 || hi - lo < 4e-16 * (p->t + h)) {
      break;
    }
    if ((g < 0) == (g1 < 0)) {
      hi = x;
      g1 = g;
      g0 *= side == 1 ? 0.5 : 1;
      side = 1;
    } else {
      lo = x;
      g0 = g;
      g1 *= side == -1 ? 0.5 : 1;
      side = -1;
    }
  }
  return best;
}

enum located { NO_EVENT, AT_EVENT, TOO_LONG };

// Ends an accepted step h at the first event within it. TOO_LONG: a contact that began or ended
// right at the start of the step did the opposite before its end; a shorter step tells them apart.
static enum located end_at_event(double *y1, double *h, int *event, struct ode_work *w,
                                 const struct ode_system *s, const struct ode_options *o,
                                 const struct step *p, int *nrhs) {
  s->event(w->g0, s->self, p->y0, p->u);
  s->event(w->g1, s->self, y1, p->u);
  uint64_t changed = active_events(w->g1, s->nevent) ^ p->active;
  double first = *h;
  *event = -1;
  while (changed) {
    int k = __builtin_ctzll(changed);
    double g0 = w->g0[k], g1 = w->g1[k];
    bool was_active = p->active >> k & 1;
    if ((g0 < 0) != was_active || fabs(g0) < 1e-12) {
      double rate = event_rate(w->stage_bar, w->y_bar, s, k, p->y0, p->u);
      if ((rate < 0) == was_active) {
        return TOO_LONG;
      }
      first = 0; // it leaves at once
    } else {
      first = locate_event(y1, w, s, o, p, first, k, g0, g1, nrhs);
    }
    *event = k;
    // others that cross even earlier
    ode_step_fwd(y1, w, s, o->method, p->t, first, p->y0, p->u, &p->active, nrhs);
    s->event(w->g1, s->self, y1, p->u);
    changed = (active_events(w->g1, s->nevent) ^ p->active) & ~((uint64_t)1 << k);
    if (first == 0) {
      changed = 0;
    }
  }
  *h = first;
  return *event >= 0 ? AT_EVENT : NO_EVENT;
}

// ---- the loop

static bool all_finite(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    sum += 0 * x[i]; // NaN if x is infinite or none
  }
  return sum == 0;
}

static void keep_step(struct ode_trail *trail, double h, const double *y0, int nstate,
                      uint64_t active, int event) {
  int i = trail->nstep;
  BUG_IF(i >= trail->capacity);
  if (i % trail->stride == 0) {
    memcpy(trail->state + (size_t)(i / trail->stride) * (size_t)nstate, y0,
           sizeof(double) * (size_t)nstate);
  }
  trail->h[i] = h;
  trail->active[i] = active;
  trail->event[i] = event;
  trail->nstep++;
}

// The last stage stands where the next step starts.
static void hand_over_rate(struct ode_work *w, const struct ode_system *s,
                           const struct ode_table *table) {
  int nt = w->ntangent;
  size_t size = sizeof(double) * (size_t)(nt - s->nv);
  memcpy(w->rate + s->nv, w->rate + (table->stages - 1) * nt + s->nv, size);
}

enum ode_status ode_solve(double *y, struct ode_trail *trail, struct ode_work *w,
                          const struct ode_system *s, const struct ode_options *o, double t0,
                          double t1, const double *u) {
  const struct ode_table *table = ode_table(o->method);
  bool adaptive = o->adaptive && table->embedded;
  struct control control = {.memory = 1};
  int nrhs = 0, ntried = 0, nrejected = 0;
  // fixed steps: as many as fit, counted so that rounding loses none
  long nfixed = (long)floor((t1 - t0) / o->dt * (1 + 1e-14));
  double t = t0, next = t0 + o->dt;
  struct step p = {.u = u};
  if (trail) {
    trail->nstep = 0;
    trail->t0 = t0;
  }
  if (o->locate) {
    s->event(w->g0, s->self, y, u);
    p.active = active_events(w->g0, s->nevent);
  }
  w->first = false;
  enum ode_status status = ODE_DONE;
  for (long n = 0; adaptive ? t < t1 : n < nfixed;) {
    if (ntried++ == o->max_steps) {
      status = ODE_TOO_MANY_STEPS;
      break;
    }
    // fixed steps that an event cut short go on to the grid
    double end = adaptive ? next : t0 + (double)(n + 1) * o->dt;
    double h = adaptive || t > t0 + (double)n * o->dt ? end - t : o->dt;
    bool cut = o->locate && adaptive && h > o->max_dt;
    h = cut ? o->max_dt : h;
    p.t = t;
    p.y0 = y;
    ode_step_fwd(w->y1, w, s, o->method, t, h, y, u, o->locate ? &p.active : NULL, &nrhs);
    bool accept = true;
    double factor = 1;
    if (adaptive) {
      double error = error_norm(w, s, o, y, w->y1);
      error = error > o->error_floor ? error : isnan(error) ? INFINITY : o->error_floor;
      accept = control_step(&factor, &control, error, table->order);
    }
    int event = -1;
    double tried = h;
    if (accept && o->locate) {
      enum located found = end_at_event(w->y1, &h, &event, w, s, o, &p, &nrhs);
      if (found == TOO_LONG) {
        accept = false;
        factor = 0.5;
      }
    }
    if (!accept) {
      nrejected++;
      w->first = true;
      next = t + tried * factor;
      if (!adaptive || h < 1e-14 * (1 + fabs(t))) {
        status = ODE_NOT_FINITE; // no step is short enough
        break;
      }
    } else {
      if (!all_finite(w->y1, w->nstate)) {
        status = ODE_NOT_FINITE;
        break;
      }
      if (trail) {
        keep_step(trail, h, y, w->nstate, p.active, event);
      }
      memcpy(y, w->y1, sizeof *y * (size_t)w->nstate);
      w->first = table->fsal && event < 0;
      if (w->first) {
        hand_over_rate(w, s, table);
      }
      if (event >= 0) {
        p.active ^= (uint64_t)1 << event;
        t += h;
        next = t + tried * factor;
      } else {
        t = cut ? t + h : end;
        next = t + tried * factor;
        n++;
      }
    }
    if (next > t1 - 1e-10) {
      next = accept ? t1 : t + 0.5 * (t1 - t);
    }
  }
  w->first = false;
  if (trail) {
    trail->nrejected = nrejected;
    trail->nrhs = nrhs;
  }
  return status;
}

// ---- dense output within the step made last in w

// increment (ntangent) in the step's chart at the share x
static void dense_increment(double *delta, struct ode_work *w, const struct ode_system *s,
                            const struct ode_options *o, double t, double h, double x,
                            const double *u) {
  int nt = w->ntangent, nv = s->nv;
  if (o->method == ODE_TSIT5) {
    // Tsitouras 2011, the continuous extension in factored form
    double x2 = x * x;
    const double b[7] = {
        -1.0530884977290216 * x * (x - 1.3299890189751412) *
            (x2 - 1.4364028541716351 * x + 0.7139816917074209),
        0.1017 * x2 * (x2 - 2.1966568338249754 * x + 1.2949852507374631),
        2.490627285651252793 * x2 * (x2 - 2.38535645472061657 * x + 1.57803468208092486),
        -16.54810288924490272 * (x - 1.21712927295533244) * (x - 0.61620406037800089) * x2,
        47.37952196281928122 * (x - 1.203071208372362603) * (x - 0.658047292653547382) * x2,
        -34.87065786149660974 * (x - 1.2) * (x - 0.666666666666666667) * x2,
        2.5 * (x - 1) * (x - 0.6) * x2,
    };
    memset(delta, 0, sizeof *delta * (size_t)nt);
    for (int i = 0; i < 7; i++) {
      for (int k = 0; k < nt; k++) {
        delta[k] += h * b[i] * w->rate[i * nt + k];
      }
    }
    return;
  }

  // the others from both ends' increments and rates, Dopri5 with its midpoint
  const double *first = w->rate, *end = w->increment;
  double *last = w->rate + ODE_MAX_STAGES * nt, *chart = w->chart + ODE_MAX_STAGES * nv;
  struct ode_point p = {.t = t + h, .y = w->y1};
  memcpy(chart, end, sizeof *chart * (size_t)nv);
  ode_chart_rate(last, s, ode_table(o->method)->dexp, chart, w->y1 + s->nq);
  s->rhs(last + nv, last + 2 * nv, s->self, &p, u);
  static const double middle[7] = {
      6025192743 / 30085553152.0 / 2,     0,
      51252292925 / 65400821598.0 / 2,    -2691868925 / 45128329728.0 / 2,
      187940372067 / 1594534317056.0 / 2, -1776094331 / 19743644256.0 / 2,
      11237099 / 235043384.0 / 2};
  for (int k = 0; k < nt; k++) {
    double f0 = h * first[k], f1 = h * last[k], y1 = end[k];
    // cubic Hermite, and a quartic term that makes the midpoint right
    double cubic = x * (f0 + x * (3 * y1 - 2 * f0 - f1 + x * (f0 + f1 - 2 * y1)));
    double quartic = 0;
    if (o->method == ODE_DOPRI5) {
      double mid = 0;
      for (int i = 0; i < 7; i++) {
        mid += h * middle[i] * w->rate[i * nt + k];
      }
      double z = x * (1 - x);
      quartic = 16 * z * z * (mid - (0.5 * y1 + 0.125 * (f0 - f1)));
    }
    delta[k] = cubic + quartic;
  }
}

void ode_dense(double *y, struct ode_work *w, const struct ode_system *s,
               const struct ode_options *o, double t, double h, double x, const double *y0,
               const double *u) {
  int nrhs = 0;
  w->first = false;
  ode_step_fwd(w->y1, w, s, o->method, t, h, y0, u, NULL, &nrhs);
  dense_increment(w->stage_bar, w, s, o, t, h, x, u);
  ode_shift(y, s, y0, w->stage_bar);
}
