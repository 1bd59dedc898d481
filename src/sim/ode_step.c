// One step: forward and adjoint twins.
//
//   stage i   chart_i = h sum_j a_ij rate_j,  y_i = y0 (+) (chart_i, ...)
//             rate_i  = dexp^-1(chart_i) qvel_i, qacc(y_i), act_dot(y_i)
//   end       y1 = y0 (+) h sum_j b_j rate_j
//
// MuJoCo's Euler is the exception: qvel1 = qvel0 + h qacc, qpos1 = qpos0 (+) h qvel1.
#include "sim/ode_private.h"
#include "sim/rotation.h"
#include <string.h>

struct ode_work *ode_work_new(struct arena *a, const struct ode_system *s) {
  struct ode_work *w = ARENA_NEW(a, struct ode_work, 1);
  w->nstate = ode_nstate(s);
  w->ntangent = ode_ntangent(s);
  w->stage = ARENA_NEW(a, double, ODE_MAX_STAGES * w->nstate);
  w->chart = ARENA_NEW(a, double, (ODE_MAX_STAGES + 1) * s->nv);
  w->rate = ARENA_NEW(a, double, (ODE_MAX_STAGES + 1) * w->ntangent);
  w->increment = ARENA_NEW(a, double, w->ntangent);
  w->error = ARENA_NEW(a, double, w->ntangent);
  w->y = ARENA_NEW(a, double, w->nstate);
  w->y1 = ARENA_NEW(a, double, w->nstate);
  w->y_root = ARENA_NEW(a, double, w->nstate);
  w->stage_bar = ARENA_NEW(a, double, w->ntangent);
  w->rate_bar = ARENA_NEW(a, double, ODE_MAX_STAGES * w->ntangent);
  w->chart_bar = ARENA_NEW(a, double, s->nv);
  w->y_bar = ARENA_NEW(a, double, w->ntangent);
  w->g0 = ARENA_NEW(a, double, s->nevent + 1);
  w->g1 = ARENA_NEW(a, double, s->nevent + 1);
  w->g_root = ARENA_NEW(a, double, s->nevent + 1);
  w->jump[0] = ARENA_NEW(a, double, s->nv);
  w->jump[1] = ARENA_NEW(a, double, s->nv);
  w->no_act = ARENA_NEW(a, double, s->na + 1);
  w->arena = a;
  return w;
}

// ---- qpos and its chart

// q = q0 moved by delta (nv)
static void shift_qpos(double *q, const struct ode_system *s, const double *q0,
                       const double *delta) {
  int iq = 0, iv = 0;
  for (int k = 0; k <= s->nquat; k++) {
    int end = k < s->nquat ? s->quat[k].q : s->nq;
    for (; iq < end; iq++, iv++) {
      q[iq] = q0[iq] + delta[iv];
    }
    if (k < s->nquat) {
      quat_shift(q + iq, q0 + iq, delta + iv);
      iq += 4;
      iv += 3;
    }
  }
}

// cotangent of q -> of q0 and of delta, both added to
static void shift_qpos_bwd(double *q0_bar, double *delta_bar, const struct ode_system *s,
                           const double *q_bar, const double *delta) {
  int iv = 0;
  for (int k = 0; k <= s->nquat; k++) {
    int end = k < s->nquat ? s->quat[k].v : s->nv;
    for (; iv < end; iv++) {
      q0_bar[iv] += q_bar[iv];
      delta_bar[iv] += q_bar[iv];
    }
    if (k < s->nquat) {
      quat_shift_bwd(q0_bar + iv, delta_bar + iv, q_bar + iv, delta + iv);
      iv += 3;
    }
  }
}

void ode_shift(double *y, const struct ode_system *s, const double *y0, const double *delta) {
  shift_qpos(y, s, y0, delta);
  for (int i = 0; i < s->nv + s->na; i++) {
    y[s->nq + i] = y0[s->nq + i] + delta[s->nv + i];
  }
}

void ode_chart_rate(double *rate, const struct ode_system *s, bool dexp, const double *chart,
                    const double *v) {
  memcpy(rate, v, sizeof *rate * (size_t)s->nv);
  for (int k = 0; k < s->nquat && dexp; k++) {
    int iv = s->quat[k].v;
    chart_rate(rate + iv, chart + iv, v + iv);
  }
}

static void chart_rate_all_bwd(double *chart_bar, double *v_bar, const struct ode_system *s,
                               bool dexp, const double *rate_bar, const double *chart,
                               const double *v) {
  int iv = 0;
  for (int k = 0; k <= s->nquat; k++) {
    int end = k < s->nquat && dexp ? s->quat[k].v : s->nv;
    for (; iv < end; iv++) {
      v_bar[iv] += rate_bar[iv];
    }
    if (iv < s->nv) {
      chart_rate_bwd(chart_bar + iv, v_bar + iv, rate_bar + iv, chart + iv, v + iv);
      iv += 3;
    }
  }
}

// ---- MuJoCo's Euler

static void semi_fwd(double *y1, struct ode_work *w, const struct ode_system *s, double t, double h,
                     const double *y0, const double *u, const uint64_t *active) {
  double *rate = w->rate;
  struct ode_point p = {.t = t, .h = h, .y = y0, .active = active};
  s->rhs(rate + s->nv, rate + 2 * s->nv, s->self, &p, u);
  for (int i = 0; i < s->nv; i++) {
    rate[i] = y0[s->nq + i] + h * rate[s->nv + i];
  }
  for (int i = 0; i < w->ntangent; i++) {
    w->increment[i] = h * rate[i];
  }
  ode_shift(y1, s, y0, w->increment);
}

static void semi_bwd(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                     double t, double h, const double *y0, const double *u,
                     const uint64_t *active) {
  int nv = s->nv;
  double *delta_bar = w->stage_bar, *out = w->y_bar;
  memset(delta_bar, 0, sizeof *delta_bar * (size_t)w->ntangent);
  memset(out, 0, sizeof *out * (size_t)w->ntangent);
  shift_qpos_bwd(out, delta_bar, s, y_bar, w->increment);
  for (int i = 0; i < nv; i++) {
    out[nv + i] = y_bar[nv + i] + h * delta_bar[i]; // of the new velocity
    delta_bar[nv + i] = h * out[nv + i];            // of qacc
  }
  for (int i = 2 * nv; i < w->ntangent; i++) {
    out[i] = y_bar[i];
    delta_bar[i] = h * y_bar[i];
  }
  struct ode_point p = {.t = t, .h = h, .y = y0, .active = active};
  s->vjp(out, u_bar, s->self, delta_bar + nv, delta_bar + 2 * nv, &p, u);
  memcpy(y_bar, out, sizeof *out * (size_t)w->ntangent);
}

// ---- Runge-Kutta

void ode_step_fwd(double *y1, struct ode_work *w, const struct ode_system *s, enum ode_method m,
                  double t, double h, const double *y0, const double *u, const uint64_t *active,
                  int *nrhs) {
  if (m == ODE_SEMI_EULER) {
    semi_fwd(y1, w, s, t, h, y0, u, active);
    *nrhs += 1;
    return;
  }
  const struct ode_table *table = ode_table(m);
  int nt = w->ntangent, nv = s->nv;
  for (int i = 0; i < table->stages; i++) {
    double *y = w->stage + i * w->nstate, *chart = w->chart + i * nv, *rate = w->rate + i * nt;
    double *delta = w->increment;
    memset(delta, 0, sizeof *delta * (size_t)nt);
    for (int j = 0; j < i; j++) {
      double x = h * table->a[i][j];
      for (int k = 0; k < nt && x != 0; k++) {
        delta[k] += x * w->rate[j * nt + k];
      }
    }
    memcpy(chart, delta, sizeof *chart * (size_t)nv);
    if (i == 0) {
      memcpy(y, y0, sizeof *y * (size_t)w->nstate);
    } else {
      ode_shift(y, s, y0, delta);
    }
    ode_chart_rate(rate, s, table->dexp, chart, y + s->nq);
    if (i > 0 || !w->first) { // else the last step ended, or this one was tried, at this state
      struct ode_point p = {.t = t + table->c[i] * h, .y = y, .active = active};
      s->rhs(rate + nv, rate + 2 * nv, s->self, &p, u);
      *nrhs += 1;
    }
  }
  memset(w->increment, 0, sizeof *w->increment * (size_t)nt);
  for (int i = 0; i < table->stages; i++) {
    double x = h * table->b[i];
    for (int k = 0; k < nt && x != 0; k++) {
      w->increment[k] += x * w->rate[i * nt + k];
    }
  }
  ode_shift(y1, s, y0, w->increment);
  if (table->embedded) {
    memset(w->error, 0, sizeof *w->error * (size_t)nt);
    for (int i = 0; i < table->stages; i++) {
      for (int k = 0; k < nt; k++) {
        w->error[k] += h * table->error[i] * w->rate[i * nt + k];
      }
    }
  }
}

void ode_step_bwd(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                  enum ode_method m, double t, double h, const double *y0, const double *u,
                  const uint64_t *active) {
  if (m == ODE_SEMI_EULER) {
    semi_bwd(y_bar, u_bar, w, s, t, h, y0, u, active);
    return;
  }
  const struct ode_table *table = ode_table(m);
  int nt = w->ntangent, nv = s->nv;
  size_t size = sizeof(double) * (size_t)nt;
  double *out = w->y_bar, *increment_bar = w->stage_bar;

  // the end: cotangents of the start, and of the increment
  memset(out, 0, size);
  memset(increment_bar, 0, size);
  shift_qpos_bwd(out, increment_bar, s, y_bar, w->increment);
  for (int i = nv; i < nt; i++) {
    out[i] = increment_bar[i] = y_bar[i];
  }
  for (int i = 0; i < table->stages; i++) {
    for (int k = 0; k < nt; k++) {
      w->rate_bar[i * nt + k] = h * table->b[i] * increment_bar[k];
    }
  }

  // stages backwards; one that only estimates the error has no part in the end
  for (int i = table->stages - 1; i >= 0; i--) {
    const double *rate_bar = w->rate_bar + i * nt, *chart = w->chart + i * nv;
    const double *y = w->stage + i * w->nstate;
    bool used = false;
    for (int k = 0; k < nt; k++) {
      used |= rate_bar[k] != 0;
    }
    if (!used) {
      continue;
    }
    double *bar = w->stage_bar, *chart_bar = w->chart_bar;
    memset(bar, 0, size);
    memset(chart_bar, 0, sizeof *chart_bar * (size_t)nv);
    chart_rate_all_bwd(chart_bar, bar + nv, s, table->dexp, rate_bar, chart, y + s->nq);
    struct ode_point p = {.t = t + table->c[i] * h, .y = y, .active = active};
    s->vjp(bar, u_bar, s->self, rate_bar + nv, rate_bar + 2 * nv, &p, u);
    // y_i = y0 (+) chart_i; chart_bar becomes the whole cotangent of chart_i
    shift_qpos_bwd(out, chart_bar, s, bar, chart);
    for (int k = nv; k < nt; k++) {
      out[k] += bar[k];
    }
    for (int j = 0; j < i; j++) {
      double x = h * table->a[i][j];
      for (int k = 0; k < nt && x != 0; k++) {
        w->rate_bar[j * nt + k] += x * (k < nv ? chart_bar[k] : bar[k]);
      }
    }
  }
  memcpy(y_bar, out, size);
}
