// The adjoint of a solved trajectory: its steps backwards, their sizes held fixed, and on request
// the saltation terms of its events.
#include "sim/ode_private.h"
#include <math.h>
#include <string.h>

// State at which step i starts. With a stride the steps since the last one kept are made again, all
// of that stretch at once.
static const double *step_start(struct ode_work *w, const struct ode_system *s,
                                const struct ode_options *o, const struct ode_trail *trail, int i,
                                const double *times, const double *u) {
  int first = i / trail->stride * trail->stride, n = w->nstate;
  const double *kept = trail->state + (size_t)(i / trail->stride) * (size_t)n;
  if (i == first) {
    return kept;
  }
  if (w->nsegment != first + 1) { // not this stretch yet
    int end = first + trail->stride < trail->nstep ? first + trail->stride : trail->nstep;
    const double *y = kept;
    for (int k = first; k + 1 < end; k++) {
      int nrhs = 0;
      double *y1 = w->segment + (size_t)(k - first) * (size_t)n;
      ode_step_fwd(y1, w, s, o->method, times[k], trail->h[k], y, u,
                   o->locate ? &trail->active[k] : NULL, &nrhs);
      y = y1;
    }
    w->nsegment = first + 1;
  }
  return w->segment + (size_t)(i - first - 1) * (size_t)n;
}

// The jump of qacc across event k at state y, where it switches the contact on or off:
// y_bar of after the event -> of before.
static void event_bwd(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                      double t, const double *y, int k, uint64_t before, const double *u) {
  int nv = s->nv;
  for (int i = 0; i < 2; i++) {
    uint64_t active = i == 0 ? before : before ^ (uint64_t)1 << k;
    struct ode_point p = {.t = t, .y = y, .active = &active};
    s->rhs(w->jump[i], w->no_act, s->self, &p, u);
  }
  double power = 0, rate = 0;
  double *gradient = w->chart_bar;
  memset(gradient, 0, sizeof *gradient * (size_t)nv);
  double *scratch = w->rate_bar; // of nu at most
  s->event_vjp(gradient, scratch, s->self, k, 1, y, u);
  for (int i = 0; i < nv; i++) {
    power += (w->jump[1][i] - w->jump[0][i]) * y_bar[nv + i];
    rate += gradient[i] * y[s->nq + i];
  }
  if (rate != 0) { // grazing has no derivative; nothing is added then
    s->event_vjp(y_bar, u_bar, s->self, k, power / rate, y, u);
  }
}

// Events that the step from y0 to w->y1 crossed, not ended at: each placed by interpolation.
static void crossed_bwd(double *y_bar, double *u_bar, struct ode_work *w,
                        const struct ode_system *s, double t, double h, const double *y0,
                        const double *u) {
  s->event(w->g0, s->self, y0, u);
  s->event(w->g1, s->self, w->y1, u);
  for (int k = 0; k < s->nevent; k++) {
    bool entered = w->g1[k] < 0;
    if ((w->g0[k] < 0) == entered) {
      continue;
    }
    // the velocity before the event follows from the step's start, where f is still smooth
    double lo = 0, hi = 1, *delta = w->stage_bar, *g = w->g_root;
    const double *rate = w->rate;
    for (int i = 0; i < 50; i++) {
      double x = 0.5 * (lo + hi);
      for (int j = 0; j < s->nv; j++) {
        double line = h * y0[s->nq + j], rest = w->increment[j] - line;
        delta[j] = x * line + x * x * rest;
        delta[s->nv + j] = x * h * rate[s->nv + j];
      }
      for (int j = 2 * s->nv; j < w->ntangent; j++) {
        delta[j] = 0;
      }
      ode_shift(w->y_root, s, y0, delta);
      s->event(g, s->self, w->y_root, u);
      *((g[k] < 0) == entered ? &hi : &lo) = x;
    }
    uint64_t before = 0;
    for (int j = 0; j < s->nevent; j++) {
      bool on = j == k ? !entered : g[j] < 0;
      before |= (uint64_t)on << j;
    }
    event_bwd(y_bar, u_bar, w, s, t + hi * h, w->y_root, k, before, u);
  }
}

void ode_adjoint(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                 const struct ode_options *o, const struct ode_trail *trail, const double *u,
                 enum ode_gradient gradient) {
  struct arena_mark mark = arena_mark(w->arena);
  double *times = ARENA_NEW(w->arena, double, trail->nstep + 1);
  w->segment = ARENA_NEW(w->arena, double, trail->stride * w->nstate);
  w->nsegment = 0;
  times[0] = trail->t0;
  for (int i = 0; i < trail->nstep; i++) {
    times[i + 1] = times[i] + trail->h[i];
  }
  w->first = false;
  for (int i = trail->nstep - 1; i >= 0; i--) {
    const double *y0 = step_start(w, s, o, trail, i, times, u);
    const uint64_t *active = o->locate ? &trail->active[i] : NULL;
    double t = times[i], h = trail->h[i];
    int nrhs = 0;
    ode_step_fwd(w->y1, w, s, o->method, t, h, y0, u, active, &nrhs);
    if (gradient == ODE_EVENTS && o->locate && trail->event[i] >= 0) {
      event_bwd(y_bar, u_bar, w, s, t + h, w->y1, trail->event[i], trail->active[i], u);
    } else if (gradient == ODE_EVENTS && !o->locate) {
      crossed_bwd(y_bar, u_bar, w, s, t, h, y0, u);
    }
    ode_step_bwd(y_bar, u_bar, w, s, o->method, t, h, y0, u, active);
  }
  arena_reset(w->arena, mark);
}
