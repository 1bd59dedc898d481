// Integrators against closed forms and CVODES; adjoints against central differences, CVODES'
// adjoint sensitivities and closed-form saltation; checkpoints against stored steps, bit for bit.
#include "sim/ode.h"
#include "sim/rotation.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <cvodes/cvodes.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

static struct arena arena;

// ---- systems

// q'' = -q
static void spring_rhs(double *qacc, double *act, void *self, const struct ode_point *p,
                       const double *u) {
  (void)act, (void)self, (void)u;
  qacc[0] = -p->y[0];
}

// Torque-free body with three inertias, dragged by an activation that follows the first rate, and
// pushed along x in its own axes by u[0]: qpos (3 + quaternion), act 1.
static const double inertia[3] = {1, 2, 3.5};

static void body_rhs(double *qacc, double *act, void *self, const struct ode_point *p,
                     const double *u) {
  (void)self;
  const double *q = p->y, *v = q + 7, *w = v + 3, *x = v + 6;
  double R[9], push[3] = {u[0], 0, sin(3 * p->t)}, world[3];
  quat_matrix(R, q + 3);
  mat3_mul(world, R, push);
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    qacc[i] = world[i] - u[1] * v[i] * q[i];
    qacc[3 + i] = ((inertia[j] - inertia[k]) * w[j] * w[k] - x[0] * w[i]) / inertia[i];
  }
  act[0] = w[0] - x[0] * x[0];
}

static void body_vjp(double *y_bar, double *u_bar, void *self, const double *qacc_bar,
                     const double *act_bar, const struct ode_point *p, const double *u) {
  (void)self;
  const double *q = p->y, *v = q + 7, *w = v + 3, *x = v + 6;
  double R[9], push[3] = {u[0], 0, sin(3 * p->t)}, local_bar[3], turn[3];
  quat_matrix(R, q + 3);
  mat3_tmul(local_bar, R, qacc_bar);
  vec3_cross(turn, push, local_bar);
  vec3_add(y_bar + 3, turn, 1);
  u_bar[0] += local_bar[0];
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    y_bar[i] -= u[1] * v[i] * qacc_bar[i];
    y_bar[6 + i] -= u[1] * q[i] * qacc_bar[i];
    u_bar[1] -= v[i] * q[i] * qacc_bar[i];
    double bar = qacc_bar[3 + i] / inertia[i];
    y_bar[9 + j] += bar * (inertia[j] - inertia[k]) * w[k];
    y_bar[9 + k] += bar * (inertia[j] - inertia[k]) * w[j];
    y_bar[9 + i] -= bar * x[0];
    y_bar[12] -= bar * w[i];
  }
  y_bar[9] += act_bar[0];
  y_bar[12] -= 2 * x[0] * act_bar[0];
}

static const struct ode_quat body_quat[1] = {{3, 3}};
static const struct ode_system spring = {.nq = 1, .nv = 1, .rhs = spring_rhs};
static const struct ode_system body = {.nq = 7,
                                       .nv = 6,
                                       .na = 1,
                                       .nu = 2,
                                       .nquat = 1,
                                       .quat = body_quat,
                                       .nnorm = 1,
                                       .rhs = body_rhs,
                                       .vjp = body_vjp};
enum { BODY_STATE = 14, BODY_TANGENT = 13 };
static const double body_start[BODY_STATE] = {0.1, -0.2, 0.3,  0.8, 0.6,  0,   0,
                                              0.3, 0.1,  -0.2, 2,   -1.5, 0.7, 0.2};
static const double body_u[2] = {0.7, 0.4};

static struct ode_options fixed(enum ode_method m, double dt) {
  struct ode_options o = ode_options_default();
  o.method = m;
  o.adaptive = false;
  o.dt = dt;
  o.max_steps = 100000;
  return o;
}

static void solve(double *y, const struct ode_system *s, const struct ode_options *o,
                  struct ode_trail *trail, double t1, const double *u) {
  struct arena_mark mark = arena_mark(&arena);
  assert_int_equal(ode_solve(y, trail, ode_work_new(&arena, s), s, o, 0, t1, u), ODE_DONE);
  arena_reset(&arena, mark);
}

// ---- convergence

// order that halving the step shows
static double spring_order(enum ode_method m, double dt) {
  double error[2];
  for (int i = 0; i < 2; i++) {
    struct ode_options o = fixed(m, dt / (1 + i));
    double y[2] = {1, 0.5};
    solve(y, &spring, &o, NULL, 2, NULL);
    error[i] = hypot(y[0] - cos(2) - 0.5 * sin(2), y[1] + sin(2) - 0.5 * cos(2));
  }
  return log2(error[0] / error[1]);
}

static void body_reference(double y[BODY_STATE]) {
  struct ode_options o = ode_options_default();
  o.method = ODE_DOPRI8;
  o.rtol = o.atol = 1e-13;
  memcpy(y, body_start, sizeof body_start);
  solve(y, &body, &o, NULL, 1, body_u);
}

static double body_distance(const double *a, const double *b) {
  double delta[3], sum = 0;
  quat_difference(delta, a + 3, b + 3);
  for (int i = 0; i < BODY_STATE; i++) {
    double d = i >= 3 && i < 7 ? (i < 6 ? delta[i - 3] : 0) : a[i] - b[i];
    sum += d * d;
  }
  return sqrt(sum);
}

static double body_order(enum ode_method m, double dt) {
  double error[2], exact[BODY_STATE], y[BODY_STATE];
  body_reference(exact);
  for (int i = 0; i < 2; i++) {
    struct ode_options o = fixed(m, dt / (1 + i));
    memcpy(y, body_start, sizeof y);
    solve(y, &body, &o, NULL, 1, body_u);
    error[i] = body_distance(y, exact);
  }
  return log2(error[0] / error[1]);
}

static void test_orders(void **state) {
  (void)state;
  static const struct {
    enum ode_method m;
    double dt, order;
  } rows[] = {
      {ODE_SEMI_EULER, 1.0 / 1024, 1}, {ODE_EXPLICIT, 1.0 / 1024, 1}, {ODE_HEUN, 1.0 / 128, 2},
      {ODE_MIDPOINT, 1.0 / 128, 2},    {ODE_RALSTON, 1.0 / 128, 2},   {ODE_BOSH3, 1.0 / 64, 3},
      {ODE_RK4, 1.0 / 32, 4},          {ODE_DOPRI5, 1.0 / 32, 5},     {ODE_TSIT5, 1.0 / 32, 5},
      {ODE_DOPRI8, 1.0 / 4, 8},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double order = spring_order(rows[i].m, rows[i].dt);
    if (!(fabs(order - rows[i].order) < 0.1)) {
      fail_msg("%s: order %.3f on the spring", ode_table(rows[i].m)->name, order);
    }
    // rotations on their group keep it
    order = body_order(rows[i].m, rows[i].dt);
    if (!(fabs(order - rows[i].order) < 0.3)) {
      fail_msg("%s: order %.3f on the body", ode_table(rows[i].m)->name, order);
    }
  }
  // MuJoCo's RK4 leaves the tangent correction out and pays for it
  double order = body_order(ODE_MUJOCO_RK4, 1.0 / 32);
  assert_true(order > 1.8 && order < 2.4);
  assert_true(fabs(spring_order(ODE_MUJOCO_RK4, 1.0 / 32) - 4) < 0.1);
}

// Fixed steps: as many whole ones as fit; the published loss of h = 0.003 stands at t = 0.999.
static void test_fixed_grid(void **state) {
  (void)state;
  static const struct {
    double dt;
    int n;
  } rows[] = {{0.1, 10}, {0.03, 33}, {0.003, 333}, {1e-3, 1000}, {3e-5, 33333}, {1e-4, 10000}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct ode_options o = fixed(ODE_EXPLICIT, rows[i].dt);
    struct ode_trail *t = ode_trail_new(&arena, &spring, &o);
    double y[2] = {1, 0};
    solve(y, &spring, &o, t, 1, NULL);
    assert_int_equal(t->nstep, rows[i].n);
  }
}

static void test_dense(void **state) {
  (void)state;
  static const struct {
    enum ode_method m;
    double order;
  } rows[] = {{ODE_TSIT5, 5}, {ODE_DOPRI5, 5}, {ODE_BOSH3, 4}, {ODE_RK4, 4}, {ODE_DOPRI8, 4}};
  struct ode_work *w = ode_work_new(&arena, &spring);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double error[2];
    for (int k = 0; k < 2; k++) {
      double h = 0.25 / (1 + k), y0[2] = {1, 0.5}, y[2], worst = 0;
      struct ode_options o = fixed(rows[i].m, h);
      for (int j = 0; j <= 8; j++) {
        double t = h * j / 8;
        ode_dense(y, w, &spring, &o, 0, h, j / 8.0, y0, NULL);
        worst = fmax(worst, hypot(y[0] - cos(t) - 0.5 * sin(t), y[1] + sin(t) - 0.5 * cos(t)));
      }
      error[k] = worst;
    }
    double order = log2(error[0] / error[1]);
    if (!(fabs(order - rows[i].order) < 0.25)) {
      fail_msg("%s: dense output of order %.3f", ode_table(rows[i].m)->name, order);
    }
  }
}

// ---- adjoint against differences

static double body_loss(const double *weight, const struct ode_options *o, const double *delta,
                        const double *du) {
  double y[BODY_STATE], u[2] = {body_u[0] + du[0], body_u[1] + du[1]}, turn[3], loss = 0;
  static const double identity[4] = {1, 0, 0, 0};
  memcpy(y, body_start, sizeof y);
  for (int i = 0; i < 3; i++) {
    y[i] += delta[i];
  }
  quat_shift(y + 3, body_start + 3, delta + 3);
  for (int i = 6; i < BODY_TANGENT; i++) {
    y[1 + i] += delta[i];
  }
  solve(y, &body, o, NULL, 1, u);
  quat_difference(turn, identity, y + 3);
  for (int i = 0; i < BODY_TANGENT; i++) {
    loss += weight[i] * (i < 3 ? y[i] : i < 6 ? turn[i - 3] : y[i + 1]);
  }
  return loss;
}

// weights -> cotangent at the end: of log(R) by the inverse right Jacobian
static void loss_cotangent(double *bar, const double *weight, const double *y) {
  static const double identity[4] = {1, 0, 0, 0};
  double turn[3], unused[3] = {0};
  quat_difference(turn, identity, y + 3);
  memset(bar, 0, sizeof(double[BODY_TANGENT]));
  for (int i = 0; i < BODY_TANGENT; i++) {
    bar[i] = i < 3 || i >= 6 ? weight[i] : 0;
  }
  // log' = J_r^-1(turn) omega, whose adjoint in omega is what is wanted
  chart_rate_bwd(unused, bar + 3, weight + 3, turn, (double[3]){0, 0, 0});
}

static double weights[BODY_TANGENT] = {0.3, -0.7, 0.2, 1.1, -0.4, 0.8, 0.5,
                                       0.9, -0.6, 0.4, 0.7, -0.2, 1.3};

static void body_gradient(double *bar, double *u_bar, struct ode_options *o) {
  struct arena_mark mark = arena_mark(&arena);
  struct ode_trail *t = ode_trail_new(&arena, &body, o);
  struct ode_work *w = ode_work_new(&arena, &body);
  double y[BODY_STATE];
  memcpy(y, body_start, sizeof y);
  assert_int_equal(ode_solve(y, t, w, &body, o, 0, 1, body_u), ODE_DONE);
  loss_cotangent(bar, weights, y);
  u_bar[0] = u_bar[1] = 0;
  ode_adjoint(bar, u_bar, w, &body, o, t, body_u, ODE_STEPS);
  arena_reset(&arena, mark);
}

static void test_adjoint_differences(void **state) {
  (void)state;
  for (int m = 0; m < ODE_METHODS; m++) {
    struct ode_options o = fixed((enum ode_method)m, 0.05);
    double bar[BODY_TANGENT + 2], largest = 0;
    body_gradient(bar, bar + BODY_TANGENT, &o);
    for (int i = 0; i < BODY_TANGENT + 2; i++) {
      largest = fmax(largest, fabs(bar[i]));
    }
    assert_true(largest > 0.1);
    for (int i = 0; i < BODY_TANGENT + 2; i++) {
      double d[2][BODY_TANGENT + 2] = {{0}}, eps = 1e-5;
      d[0][i] = eps;
      d[1][i] = -eps;
      double difference = (body_loss(weights, &o, d[0], d[0] + BODY_TANGENT) -
                           body_loss(weights, &o, d[1], d[1] + BODY_TANGENT)) /
                          (2 * eps);
      if (!(fabs(bar[i] - difference) <= 1e-8 * largest)) {
        fail_msg("%s, component %d: adjoint %.12g, differences %.12g", ode_table(m)->name, i,
                 bar[i], difference);
      }
    }
  }
}

// Recomputed stretches give the same bits as stored steps.
static void test_checkpoints(void **state) {
  (void)state;
  double stored[BODY_TANGENT + 2], again[BODY_TANGENT + 2];
  struct ode_options o = ode_options_default();
  o.rtol = o.atol = 1e-9;
  body_gradient(stored, stored + BODY_TANGENT, &o);
  for (int stride = 2; stride < 40; stride += 7) {
    o.stride = stride;
    body_gradient(again, again + BODY_TANGENT, &o);
    assert_memory_equal(stored, again, sizeof stored);
  }
}

// ---- CVODES: a driven, damped pendulum, u = (stiffness, damping, drive)

static void pendulum_rhs(double *qacc, double *act, void *self, const struct ode_point *p,
                         const double *u) {
  (void)act, (void)self;
  qacc[0] = -u[0] * sin(p->y[0]) - u[1] * p->y[1] * p->y[1] * p->y[1] + u[2] * cos(2 * p->t);
}
static void pendulum_vjp(double *y_bar, double *u_bar, void *self, const double *bar,
                         const double *act_bar, const struct ode_point *p, const double *u) {
  (void)self, (void)act_bar;
  double q = p->y[0], v = p->y[1];
  y_bar[0] -= bar[0] * u[0] * cos(q);
  y_bar[1] -= bar[0] * u[1] * 3 * v * v;
  u_bar[0] -= bar[0] * sin(q);
  u_bar[1] -= bar[0] * v * v * v;
  u_bar[2] += bar[0] * cos(2 * p->t);
}
static const struct ode_system pendulum = {
    .nq = 1, .nv = 1, .nu = 3, .rhs = pendulum_rhs, .vjp = pendulum_vjp};
static const double pendulum_u[3] = {9, 0.3, 4};

static int cv_rhs(realtype t, N_Vector y, N_Vector dy, void *user) {
  double *x = N_VGetArrayPointer(y), *d = N_VGetArrayPointer(dy);
  struct ode_point p = {.t = t, .y = x};
  (void)user;
  d[0] = x[1];
  pendulum_rhs(d + 1, NULL, NULL, &p, pendulum_u);
  return 0;
}
static int cv_adjoint(realtype t, N_Vector y, N_Vector l, N_Vector dl, void *user) {
  double *bar = N_VGetArrayPointer(l), *d = N_VGetArrayPointer(dl), got[2] = {0}, u_bar[3] = {0};
  struct ode_point p = {.t = t, .y = N_VGetArrayPointer(y)};
  (void)user;
  pendulum_vjp(got, u_bar, NULL, bar + 1, NULL, &p, pendulum_u);
  d[0] = -got[0];
  d[1] = -bar[0] - got[1];
  return 0;
}
static int cv_quadrature(realtype t, N_Vector y, N_Vector l, N_Vector dq, void *user) {
  double *d = N_VGetArrayPointer(dq), got[2] = {0};
  struct ode_point p = {.t = t, .y = N_VGetArrayPointer(y)};
  (void)user;
  memset(d, 0, sizeof(double[3]));
  pendulum_vjp(got, d, NULL, N_VGetArrayPointer(l) + 1, NULL, &p, pendulum_u);
  for (int i = 0; i < 3; i++) {
    d[i] = -d[i];
  }
  return 0;
}

// end state, and gradient of y(T)[0] + 2 y(T)[1] by start and parameters
static void cvodes_pendulum(double y[2], double bar[2], double u_bar[3], double T) {
  SUNContext context;
  assert_int_equal(SUNContext_Create(NULL, &context), 0);
  N_Vector n = N_VNew_Serial(2, context), l = N_VNew_Serial(2, context);
  N_Vector q = N_VNew_Serial(3, context);
  memcpy(N_VGetArrayPointer(n), y, sizeof(double[2]));
  void *cv = CVodeCreate(CV_ADAMS, context);
  SUNMatrix A = SUNDenseMatrix(2, 2, context), B = SUNDenseMatrix(2, 2, context);
  SUNLinearSolver S = SUNLinSol_Dense(n, A, context), SB = SUNLinSol_Dense(l, B, context);
  realtype t;
  int checks, which;
  assert_int_equal(CVodeInit(cv, cv_rhs, 0, n), 0);
  assert_int_equal(CVodeSStolerances(cv, 1e-12, 1e-13), 0);
  assert_int_equal(CVodeSetLinearSolver(cv, S, A), 0);
  CVodeSetMaxNumSteps(cv, 100000);
  assert_int_equal(CVodeAdjInit(cv, 50, CV_POLYNOMIAL), 0);
  assert_true(CVodeF(cv, T, n, &t, CV_NORMAL, &checks) >= 0);
  memcpy(y, N_VGetArrayPointer(n), sizeof(double[2]));
  N_VGetArrayPointer(l)[0] = 1;
  N_VGetArrayPointer(l)[1] = 2;
  N_VConst(0, q);
  assert_int_equal(CVodeCreateB(cv, CV_ADAMS, &which), 0);
  assert_int_equal(CVodeInitB(cv, which, cv_adjoint, T, l), 0);
  assert_int_equal(CVodeSStolerancesB(cv, which, 1e-12, 1e-13), 0);
  assert_int_equal(CVodeSetLinearSolverB(cv, which, SB, B), 0);
  CVodeSetMaxNumStepsB(cv, which, 100000);
  assert_int_equal(CVodeQuadInitB(cv, which, cv_quadrature, q), 0);
  assert_int_equal(CVodeQuadSStolerancesB(cv, which, 1e-12, 1e-13), 0);
  CVodeSetQuadErrConB(cv, which, 1);
  assert_true(CVodeB(cv, 0, CV_NORMAL) >= 0);
  CVodeGetB(cv, which, &t, l);
  CVodeGetQuadB(cv, which, &t, q);
  memcpy(bar, N_VGetArrayPointer(l), sizeof(double[2]));
  memcpy(u_bar, N_VGetArrayPointer(q), sizeof(double[3]));
  CVodeFree(&cv);
  SUNLinSolFree(S);
  SUNLinSolFree(SB);
  SUNMatDestroy(A);
  SUNMatDestroy(B);
  N_VDestroy(n);
  N_VDestroy(l);
  N_VDestroy(q);
  SUNContext_Free(&context);
}

static void test_cvodes(void **state) {
  (void)state;
  const double T = 3;
  double exact[2] = {0.4, -1}, exact_bar[2], exact_u[3];
  cvodes_pendulum(exact, exact_bar, exact_u, T);
  static const struct {
    enum ode_method m;
    double tol, error;
  } rows[] = {{ODE_HEUN, 1e-8, 3e-7},
              {ODE_BOSH3, 1e-10, 3e-8},
              {ODE_DOPRI5, 1e-11, 3e-10},
              {ODE_TSIT5, 1e-11, 3e-10},
              {ODE_DOPRI8, 1e-11, 3e-10}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct ode_options o = ode_options_default();
    o.method = rows[i].m;
    o.rtol = o.atol = rows[i].tol;
    o.max_steps = 100000;
    struct ode_trail *t = ode_trail_new(&arena, &pendulum, &o);
    struct ode_work *w = ode_work_new(&arena, &pendulum);
    for (int back = 0; back < 2; back++) { // stored steps, and the continuous adjoint
      double y[2] = {0.4, -1}, bar[2] = {1, 2}, u_bar[3] = {0};
      int nstep;
      assert_int_equal(ode_solve(y, t, w, &pendulum, &o, 0, T, pendulum_u), ODE_DONE);
      double off = fmax(fabs(y[0] - exact[0]), fabs(y[1] - exact[1]));
      if (back) {
        assert_int_equal(
            ode_backsolve(y, bar, u_bar, &arena, &pendulum, &o, 0, T, pendulum_u, &nstep),
            ODE_DONE);
        off = fmax(off, fmax(fabs(y[0] - 0.4), fabs(y[1] + 1)));
      } else {
        ode_adjoint(bar, u_bar, w, &pendulum, &o, t, pendulum_u, ODE_STEPS);
      }
      for (int k = 0; k < 2; k++) {
        off = fmax(off, fabs(bar[k] - exact_bar[k]));
      }
      for (int k = 0; k < 3; k++) {
        off = fmax(off, fabs(u_bar[k] - exact_u[k]));
      }
      if (!(off < rows[i].error)) {
        fail_msg("%s%s: %.3e from CVODES", ode_table(rows[i].m)->name, back ? " backwards" : "",
                 off);
      }
    }
  }
}

// ---- an event with a closed form: a = -1 above x = 0, a = 2 below; from (x0, 0) at rest
//
// touchdown at t* = sqrt(2 x0) with v = -t*; then x(T) = -t* s + s^2, s = T - t*:
// dx(T)/dx0 = (-s + t* - 2 s) dt*/dx0 with dt*/dx0 = 1 / t*

static void step_rhs(double *qacc, double *act, void *self, const struct ode_point *p,
                     const double *u) {
  (void)act, (void)self;
  bool on = p->active ? *p->active & 1 : p->y[0] - u[0] < 0;
  qacc[0] = on ? 2 : -1;
}
static void step_vjp(double *y_bar, double *u_bar, void *self, const double *bar,
                     const double *act_bar, const struct ode_point *p, const double *u) {
  (void)y_bar, (void)u_bar, (void)self, (void)bar, (void)act_bar, (void)p, (void)u;
}
static void step_event(double *g, void *self, const double *q, const double *u) {
  (void)self;
  g[0] = q[0] - u[0];
}
static void step_event_vjp(double *q_bar, double *u_bar, void *self, int k, double scale,
                           const double *q, const double *u) {
  (void)self, (void)k, (void)q, (void)u;
  q_bar[0] += scale;
  u_bar[0] -= scale;
}
static const struct ode_system step = {.nq = 1,
                                       .nv = 1,
                                       .nu = 1,
                                       .nevent = 1,
                                       .rhs = step_rhs,
                                       .vjp = step_vjp,
                                       .event = step_event,
                                       .event_vjp = step_event_vjp};

static void test_saltation(void **state) {
  (void)state;
  const double x0 = 0.6, T = 1.8, t = sqrt(2 * x0), s = T - t;
  const double exact = -t * s + s * s, slope = (t - 3 * s) / t, u[1] = {0};
  struct ode_options o = ode_options_default();
  o.rtol = o.atol = 1e-10;
  for (int locate = 0; locate < 2; locate++) {
    o.locate = locate;
    struct ode_trail *trail = ode_trail_new(&arena, &step, &o);
    struct ode_work *w = ode_work_new(&arena, &step);
    double y[2] = {x0, 0}, bar[2] = {1, 0}, plain[2] = {1, 0}, u_bar[1] = {0}, unused[1] = {0};
    assert_int_equal(ode_solve(y, trail, w, &step, &o, 0, T, u), ODE_DONE);
    ode_adjoint(bar, u_bar, w, &step, &o, trail, u, ODE_EVENTS);
    ode_adjoint(plain, unused, w, &step, &o, trail, u, ODE_STEPS);
    double tolerance = locate ? 1e-13 : 1e-4;
    assert_true(fabs(y[0] - exact) < (locate ? 1e-13 : 1e-8));
    assert_true(fabs(bar[0] - slope) < tolerance);
    assert_true(fabs(bar[0] + u_bar[0] - 1) < tolerance); // moving all of it moves the end as much
    assert_true(fabs(plain[0] - 1) < 1e-12); // without the term the start's height goes through
  }
}

static int setup(void **state) {
  (void)state;
  arena_init(&arena);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_orders),      cmocka_unit_test(test_fixed_grid),
      cmocka_unit_test(test_dense),       cmocka_unit_test(test_adjoint_differences),
      cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_cvodes),
      cmocka_unit_test(test_saltation),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
