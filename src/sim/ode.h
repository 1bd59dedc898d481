// Integrators for small mechanical systems, with adjoints: fixed steps or error control, rotations
// on their group, and two derivatives of the same trajectory.
//
//   qpos' = qvel (free joints: quaternion wxyz, angular velocity in body axes)
//   qvel' = qacc(t, qpos, qvel, act, u)          act' = act_dot(...)
//
// A state is one array of nq + nv + na numbers (qpos, qvel, act), a tangent vector or cotangent one
// of 2 nv + na. Rotations are integrated in the chart theta around each step's start (RKMK; Munthe-
// Kaas, BIT 38, 1998): stages stand at q0 * exp(theta), theta' = dexp^-1(theta) omega.
//
// Error control, PI factors and norms are those of the published adaptive MuJoCo (arXiv 2506.14186)
// so that its numbers can be repeated.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

enum ode_method {
  ODE_SEMI_EULER, // MuJoCo's Euler: new velocity first, then positions by it
  ODE_MUJOCO_RK4, // MuJoCo's RK4: classic table, rotations without the tangent correction
  ODE_EXPLICIT,   // explicit Euler
  ODE_HEUN,
  ODE_MIDPOINT,
  ODE_RALSTON,
  ODE_BOSH3,
  ODE_RK4,
  ODE_DOPRI5,
  ODE_TSIT5,
  ODE_DOPRI8,
  ODE_METHODS,
};
enum { ODE_MAX_STAGES = 13 };

struct ode_table {
  const char *name;
  int order;     // of the solution; the controller's exponents are divided by it
  int stages;    // evaluations that a step needs
  bool embedded; // has an error estimate
  bool fsal;     // last stage stands at the step's end
  bool dexp;     // rotations with the tangent correction
  double c[ODE_MAX_STAGES], b[ODE_MAX_STAGES];
  double error[ODE_MAX_STAGES]; // weights of the error estimate (b minus the embedded b)
  double a[ODE_MAX_STAGES][ODE_MAX_STAGES];
};
const struct ode_table *ode_table(enum ode_method m);

// Where the right-hand side is evaluated.
struct ode_point {
  double t;
  double h;               // > 0: joint damping is implicit over this step (MuJoCo's Euler); else 0
  const double *y;        // state
  const uint64_t *active; // which events' contacts act, one bit each; NULL: as the state says
};

struct ode_quat { // a unit quaternion: its places in qpos and qvel
  int q, v;
};

struct ode_system {
  int nq, nv, na, nu; // nu: parameters u that the adjoint differentiates by
  int nquat;
  const struct ode_quat *quat; // in rising order
  int nevent;                  // surfaces g = 0 across which qacc may jump, at most 64
  int nnorm;                   // entries of act that count in the error norm (the first ones)
  void *self;
  // qacc (nv), act_dot (na)
  void (*rhs)(double *qacc, double *act_dot, void *self, const struct ode_point *p,
              const double *u);
  // adds to the state's cotangent (2 nv + na) and to u_bar (nu)
  void (*vjp)(double *y_bar, double *u_bar, void *self, const double *qacc_bar,
              const double *act_bar, const struct ode_point *p, const double *u);
  // g (nevent) of positions; the contact acts where g < 0
  void (*event)(double *g, void *self, const double *qpos, const double *u);
  // adds scale * dg_k/dqpos (nv) and scale * dg_k/du (nu)
  void (*event_vjp)(double *q_bar, double *u_bar, void *self, int k, double scale,
                    const double *qpos, const double *u);
};
static inline int ode_nstate(const struct ode_system *s) {
  return s->nq + s->nv + s->na;
}
static inline int ode_ntangent(const struct ode_system *s) {
  return 2 * s->nv + s->na;
}

struct ode_options {
  enum ode_method method;
  bool adaptive;
  double dt; // of fixed steps, or the first one tried
  double rtol, atol;
  int max_steps; // accepted and rejected ones together
  // Steps end where an event does, and the right-hand side does not switch within a step: the error
  // estimate sees smooth functions only. Steps are then at most max_dt long.
  bool locate;
  double max_dt;
  int stride;         // states kept: every stride-th; the adjoint makes the others again
  double error_floor; // of the error norm: round-off must not steer (published: 0)
};
struct ode_options ode_options_default(void); // Tsit5, 1e-6, 4096 steps, 0.01 s first

// A solved trajectory. Arrays live in the arena given to ode_trail_new.
struct ode_trail {
  int capacity; // steps
  int nstep, nrejected, nrhs;
  int stride;
  double t0;
  double *h;        // (nstep)
  double *state;    // (nstep / stride + 1, nstate) at the start of every stride-th step
  uint64_t *active; // (nstep) of located trajectories
  int *event;       // (nstep) event at the end of the step, -1: none
};
struct ode_trail *ode_trail_new(struct arena *a, const struct ode_system *s,
                                const struct ode_options *o);

struct ode_work; // intermediates of one thread
struct ode_work *ode_work_new(struct arena *a, const struct ode_system *s);

enum ode_status { ODE_DONE, ODE_TOO_MANY_STEPS, ODE_NOT_FINITE };

// Integrates y from t0 to t1; with fixed steps as many whole ones as fit. trail may be NULL.
enum ode_status ode_solve(double *y, struct ode_trail *trail, struct ode_work *w,
                          const struct ode_system *s, const struct ode_options *o, double t0,
                          double t1, const double *u);

// Which derivative of the solved trajectory.
//   STEPS  of the arithmetic of its steps, their sizes held fixed: what the published code computes
//   EVENTS the same, with the jumps of the right-hand side at touchdown and lift-off: the saltation
//          term (f+ - f-) grad g' / (grad g . f-). Without located steps the time of an event comes
//          from interpolation within the step that crosses it.
enum ode_gradient { ODE_STEPS, ODE_EVENTS };

// Adjoint: y_bar (ntangent) holds the cotangent of the end on entry, of the start on return; u_bar
// (nu) is added to.
void ode_adjoint(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                 const struct ode_options *o, const struct ode_trail *trail, const double *u,
                 enum ode_gradient gradient);

// Continuous adjoint: state and cotangent integrated backwards from the end, with the same options
// (the published "backsolve"; the error norm leaves u_bar out). y is the end, and the start on
// return. No saltation terms. Only systems with na = 0. What contact dissipates going forward grows
// going back, so long spans are solved in pieces, each from a state that the forward pass kept.
enum ode_status ode_backsolve(double *y, double *y_bar, double *u_bar, struct arena *a,
                              const struct ode_system *s, const struct ode_options *o, double t0,
                              double t1, const double *u, int *nstep);

// State at t0 + x h (0 <= x <= 1) within the step from y0: Tsitouras' quartic (Tsit5), Shampine's
// (Dopri5), cubic Hermite for the others.
void ode_dense(double *y, struct ode_work *w, const struct ode_system *s,
               const struct ode_options *o, double t, double h, double x, const double *y0,
               const double *u);
