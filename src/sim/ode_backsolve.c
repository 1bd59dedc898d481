// The continuous adjoint, integrated backwards beside the state ("backsolve"). With s = t1 - t and
// the velocity turned round, state and cotangent are a system of the same kind,
//
//   qpos' = v, v' = qacc(t1 - s, qpos, -v)
//   q_bar' = A_q' v_bar + [omega] part of the moving frame, v_bar' = q_bar + A_v' v_bar,
//   u_bar' = A_u' v_bar
//
// where A is the derivative of qacc. Cotangents of rotations live in body axes, which turn.
#include "sim/ode_private.h"
#include "sim/rotation.h"
#include <string.h>

struct backsolve {
  const struct ode_system *s;
  double t1;
  double *y, *bar; // (nstate), (ntangent) of the system itself
};

static void turn_round(struct backsolve *b, const struct ode_point *p) {
  const struct ode_system *s = b->s;
  memcpy(b->y, p->y, sizeof(double) * (size_t)s->nq);
  for (int i = 0; i < s->nv; i++) {
    b->y[s->nq + i] = -p->y[s->nq + i];
  }
}

static void backsolve_rhs(double *qacc, double *act_dot, void *self, const struct ode_point *p,
                          const double *u) {
  struct backsolve *b = self;
  const struct ode_system *s = b->s;
  int nv = s->nv;
  turn_round(b, p);
  struct ode_point forward = {.t = b->t1 - p->t, .y = b->y, .active = p->active};
  s->rhs(qacc, NULL, s->self, &forward, u);
  const double *q_bar = p->y + s->nq + nv, *v_bar = q_bar + nv;
  double *du = act_dot + 2 * nv;
  memset(b->bar, 0, sizeof(double) * 2 * (size_t)nv);
  memset(du, 0, sizeof *du * (size_t)s->nu);
  s->vjp(b->bar, du, s->self, v_bar, NULL, &forward, u);
  for (int i = 0; i < nv; i++) {
    act_dot[i] = b->bar[i];
    act_dot[nv + i] = b->bar[nv + i] + q_bar[i];
  }
  // d(delta)/dt = delta_omega - omega x delta, so its cotangent gains omega x q_bar going back
  for (int k = 0; k < s->nquat; k++) {
    int v = s->quat[k].v;
    double turn[3];
    vec3_cross(turn, b->y + s->nq + v, q_bar + v);
    vec3_add(act_dot + v, turn, 1);
  }
}

enum ode_status ode_backsolve(double *y, double *y_bar, double *u_bar, struct arena *a,
                              const struct ode_system *s, const struct ode_options *o, double t0,
                              double t1, const double *u, int *nstep) {
  BUG_IF(s->na != 0);
  int nv = s->nv;
  struct arena_mark mark = arena_mark(a);
  struct backsolve b = {.s = s, .t1 = t1};
  b.y = ARENA_NEW(a, double, ode_nstate(s));
  b.bar = ARENA_NEW(a, double, ode_ntangent(s));
  struct ode_system back = {.nq = s->nq,
                            .nv = nv,
                            .na = 2 * nv + s->nu,
                            .nu = s->nu,
                            .nquat = s->nquat,
                            .quat = s->quat,
                            .nnorm = 2 * nv,
                            .self = &b,
                            .rhs = backsolve_rhs};
  struct ode_options options = *o;
  options.locate = false;
  struct ode_work *w = ode_work_new(a, &back);
  struct ode_trail *trail = ode_trail_new(a, &back, &options);
  double *z = ARENA_NEW(a, double, ode_nstate(&back));
  memcpy(z, y, sizeof *z * (size_t)(s->nq + nv));
  for (int i = 0; i < nv; i++) {
    z[s->nq + i] = -y[s->nq + i];
  }
  memcpy(z + s->nq + nv, y_bar, sizeof *z * 2 * (size_t)nv);
  enum ode_status status = ode_solve(z, trail, w, &back, &options, 0, t1 - t0, u);
  memcpy(y, z, sizeof *y * (size_t)(s->nq + nv));
  for (int i = 0; i < nv; i++) {
    y[s->nq + i] = -z[s->nq + i];
  }
  memcpy(y_bar, z + s->nq + nv, sizeof *y_bar * 2 * (size_t)nv);
  for (int i = 0; i < s->nu; i++) {
    u_bar[i] += z[s->nq + 3 * nv + i];
  }
  *nstep = trail->nstep;
  arena_reset(a, mark);
  return status;
}
