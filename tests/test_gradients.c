// Collision tasks against closed forms, and gradient estimators against what theory says of them:
// expectations on polynomials, no bias where there is none.
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "task/collide.h"
#include "task/estimate.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct arena arena;

static struct ode_options exact_options(void) {
  struct ode_options o = ode_options_default();
  o.method = ODE_DOPRI8;
  o.locate = true;
  o.rtol = o.atol = 1e-12;
  o.max_steps = 20000;
  return o;
}

static void near(double x, double right, double band, const char *what) {
  if (!(fabs(x - right) <= band)) {
    fail_msg("%s: %.12g, expected %.12g", what, x, right);
  }
}

static struct collide_result solve(enum collide_task t, const struct ode_options *o,
                                   const double *u) {
  struct collide_result r;
  struct cfd off = cfd_default();
  collide_solve(&r, &arena, t, o, &off, u, NULL, true);
  assert_int_equal(r.status, ODE_DONE);
  return r;
}

// q = e (2 - q0 - T) of arXiv 2506.14186's first example
static void test_drop(void **state) {
  (void)state;
  struct ode_options o = exact_options();
  double half = M_PI / sqrt(49.75), e = exp(-0.5 * half), u[] = {0.5};
  struct collide_result r = solve(COLLIDE_DROP, &o, u);
  double q = e * (1.5 - half);
  near(r.end[1], q, 1e-9, "position");
  near(r.grad_event[0], 2 * (q - 1) * -e, 1e-8, "gradient");
  // the damper's jumps: half a period turns (dq, dv) into -e (dq, dv), so what touchdown adds to
  // dv, -dq, lift-off takes back, and the arithmetic of steps alone is right too
  near(r.grad[0], r.grad_event[0], 1e-8, "steps");
}

// One bounce without loss: height = 2 r - v (1 - T) - y0. As the floor hardens dh/dv tends to -1,
// which the paper's 480 steps give as -0.9956.
static void test_ground(void **state) {
  (void)state;
  struct ode_options o = exact_options();
  double u[] = {-2}, contact = M_PI / 100, height = 0.2 + 2 * (1 - contact) - 1;
  struct collide_result r = solve(COLLIDE_BOUNCE, &o, u);
  near(r.end[0], 1, 1e-9, "x");
  near(r.end[1], height, 1e-9, "height");
  near(r.grad_event[0], -2 * (height - 1) * (1 - contact), 1e-8, "gradient");
  // the force has no jump without damper: both gradients are one
  near(r.grad[0], r.grad_event[0], 1e-10, "steps");
  // adaptive steps tend to it
  struct ode_options tight = ode_options_default();
  tight.rtol = tight.atol = 1e-13;
  tight.max_steps = 40000;
  near(solve(COLLIDE_BOUNCE, &tight, u).grad[0], r.grad_event[0], 1e-3, "adaptive");
}

// Floor and wall, each returning 0.92: the axes do not know each other.
static void test_ground_wall(void **state) {
  (void)state;
  struct ode_options o = exact_options();
  double u[] = {5, -5}, log_e = -log(0.92), ratio = log_e / hypot(log_e, M_PI);
  double contact = M_PI / (100 * sqrt(1 - ratio * ratio)), free = 0.6 - contact;
  double x = 1.65 - 0.92 * (5 * free - 2.15), y = 0.1 + 0.92 * (5 * free - 0.9);
  struct collide_result r = solve(COLLIDE_WALL, &o, u);
  near(r.end[0], x, 1e-9, "x");
  near(r.end[1], y, 1e-9, "y");
  near(r.grad_event[0], -2 * (x + 2) * 0.92 * free, 1e-7, "by vx");
  near(r.grad_event[1], -2 * (y - 1.5) * 0.92 * free, 1e-7, "by vy");
  // the optimum: the target is reached
  double best[] = {(3.65 / 0.92 + 2.15) / free, -(1.4 / 0.92 + 0.9) / free};
  r = solve(COLLIDE_WALL, &o, best);
  near(r.loss, 0, 1e-16, "optimum");
  near(hypot(r.grad_event[0], r.grad_event[1]), 0, 1e-6, "gradient at the optimum");
}

// Two balls: the best control of the hard problem. Force a + b t up to the hit
// at time t with speed v over the gap D costs 12 D^2/t^3 - 12 D v/t^2 + 4 v^2/t; all speed goes
// over. The paper's optimum is 1.396542.
static double hard_pair(double v, double t) {
  double gap = M_SQRT2 - 0.4, miss = M_SQRT2 - v * (1 - t);
  return miss * miss +
         0.1 * (12 * gap * gap / (t * t * t) - 12 * gap * v / (t * t) + 4 * v * v / t);
}

static void test_two_balls(void **state) {
  (void)state;
  double best = INFINITY;
  for (double t = 0.3; t < 0.999; t += 1e-4) {
    // quadratic in v
    double gap = M_SQRT2 - 0.4, a = (1 - t) * (1 - t) + 0.4 / t;
    double v = (M_SQRT2 * (1 - t) + 0.6 * gap / (t * t)) / a;
    best = fmin(best, hard_pair(v, t));
  }
  near(best, 1.396542, 2e-6, "optimum of arXiv 2207.05060");
  // gradient by forces against differences
  struct ode_options o = exact_options();
  double u[COLLIDE_MAX_INPUT];
  for (int i = 0; i < COLLIDE_MAX_INPUT; i++) {
    u[i] = 3 + 0.1 * sin(i);
  }
  struct collide_result r = solve(COLLIDE_PAIR, &o, u);
  for (int i = 0; i < COLLIDE_MAX_INPUT; i += 5) {
    double keep = u[i], side[2];
    for (int k = 0; k < 2; k++) {
      u[i] = keep + (k ? 1e-4 : -1e-4);
      side[k] = solve(COLLIDE_PAIR, &o, u).loss;
    }
    u[i] = keep;
    near(r.grad_event[i], (side[1] - side[0]) / 2e-4, 2e-6, "force");
  }
}

// Contacts from distance leave the forward pass alone, to the last bit.
static void test_straight_through(void **state) {
  (void)state;
  struct ode_options o = ode_options_default();
  struct cfd cfd = cfd_default();
  double u[] = {5, -5};
  struct collide_result plain = solve(COLLIDE_WALL, &o, u), r;
  cfd.on = true;
  collide_solve(&r, &arena, COLLIDE_WALL, &o, &cfd, u, NULL, true);
  assert_memory_equal(&r.loss, &plain.loss, sizeof r.loss);
  assert_true(r.grad[0] != plain.grad[0]);
}

// ---- estimators on a polynomial: L = c' u + u' u / 2 + q u0^3

static double cubic;

static void roll_polynomial(struct rollout_answer *out, const struct problem *p, struct arena *a,
                            const struct rollout_request *r) {
  (void)a;
  out->ok = true;
  out->cost = 1;
  out->loss = cubic * r->u[0] * r->u[0] * r->u[0];
  for (int i = 0; i < p->n; i++) {
    double u = r->u[i] + (r->shift && i < 2 ? r->shift[i] : 0);
    out->loss += (i + 1) * u + 0.5 * u * u;
    out->grad[i] = i + 1 + u + (i == 0 ? 3 * cubic * u * u : 0);
  }
}

static void mean_of(double mean[3], double error[3], const struct problem *p,
                    enum estimate_kind kind, const double *u, int n) {
  double square[3] = {0};
  memset(mean, 0, sizeof(double[3]));
  for (int d = 0; d < n; d++) {
    struct rng rng = rng_stream(7, RNG_TEST, 0, 0, (uint32_t)d);
    struct estimate g;
    estimate_gradient(&g, p, &arena, kind, u, 10, &rng);
    assert_int_equal(g.cost, estimate_draws(kind) ? 10 : 1);
    for (int i = 0; i < 3; i++) {
      double delta = g.grad[i] - mean[i];
      mean[i] += delta / (d + 1);
      square[i] += delta * (g.grad[i] - mean[i]);
    }
  }
  for (int i = 0; i < 3; i++) {
    error[i] = sqrt(square[i] / (n - 1) / n);
  }
}

static void test_expectations(void **state) {
  (void)state;
  struct problem p = {.n = 3, .sigma = 0.5, .spread = 0.1, .roll = roll_polynomial};
  const double u[] = {0.3, -0.2, 1};
  for (int c = 0; c < 2; c++) {
    cubic = c; // 0: a quadratic, which smoothing leaves without bias
    double right[3] = {1 + u[0] + 3 * cubic * u[0] * u[0], 2 + u[1], 3 + u[2]};
    for (int kind = ESTIMATE_TRUTH; kind < ESTIMATE_KINDS; kind++) {
      double mean[3], error[3], shift = kind == ESTIMATE_BUNDLE ? 0.1 : 0.5;
      mean_of(mean, error, &p, (enum estimate_kind)kind, u, 4000);
      for (int i = 0; i < 3; i++) {
        bool draws = estimate_draws((enum estimate_kind)kind);
        // E L(u + s e) has the gradient L' + 3 q s^2 in u0
        double bias = draws && i == 0 ? 3 * cubic * shift * shift : 0;
        bool still = error[i] == 0 || (kind == ESTIMATE_BUNDLE && i == 2);
        near(mean[i], right[i] + bias, still ? 1e-12 : 4.5 * error[i], estimate_name[kind]);
        assert_true(draws || error[i] < 1e-12);
      }
    }
  }
}

// Variance on a slope c: first order none, zeroth order (|c|^2 + c_i^2) / pairs.
static void test_variance(void **state) {
  (void)state;
  struct problem p = {.n = 3, .sigma = 0.5, .roll = roll_polynomial};
  const double u[] = {-1, -2, -3}; // where the quadratic's own slope is 0, plus (1, 2, 3) - u
  double mean[3], error[3];
  cubic = 0;
  mean_of(mean, error, &p, ESTIMATE_FIRST, u, 4000);
  near(error[0] * error[0] * 4000, 0.25 / 10, 0.1 * 0.025, "first order"); // sigma^2 / samples
  const double v[] = {0, 0, 0};
  mean_of(mean, error, &p, ESTIMATE_ZEROTH, v, 4000); // slope (1, 2, 3)
  for (int i = 0; i < 3; i++) {
    double right = (14 + (i + 1) * (i + 1)) / 5.0;
    near(error[i] * error[i] * 4000, right, 0.12 * right, "zeroth order");
  }
}

// What bias is measured against: the derivative of the converged loss.
static void test_truth(void **state) {
  (void)state;
  struct estimate_settings settings = {.tolerance = 1e-6, .cfd_solimp = {0, 0.01, 0.05, 1, 2}};
  for (int which = 0; which < ESTIMATE_PROBLEMS; which++) {
    struct problem p;
    estimate_problem(&p, which, &settings);
    for (int k = -1; k <= 1; k++) {
      double u[ESTIMATE_MAX], loss[2];
      struct estimate g;
      for (int i = 0; i < p.n; i++) {
        u[i] = p.start[i] + 0.9 * k * p.around;
      }
      estimate_gradient(&g, &p, &arena, ESTIMATE_TRUTH, u, 1, NULL);
      double keep = u[0], eps = 1e-5;
      for (int side = 0; side < 2; side++) {
        struct rollout_request request = {.exact = true, .u = u};
        struct rollout_answer r = {0};
        u[0] = keep + (side ? eps : -eps);
        p.roll(&r, &p, &arena, &request);
        loss[side] = r.loss;
      }
      near(g.grad[0], (loss[1] - loss[0]) / (2 * eps), strcmp(p.name, "toss") ? 1e-6 : 2e-4,
           p.name);
    }
  }
}

// The table, small: truth has no bias, deterministic kinds no spread, what misses has no gradient.
static void test_table(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  char path[] = "/tmp/dsim_test_gradients_XXXXXX";
  assert_true(mkstemp(path) >= 0);
  static const char *const set[] = {"iterations=5", "estimate.draws=2", "estimate.repeats=1",
                                    "range.points=2", "log.wall=false"};
  spec_read(&s, &arena, "gradients", &e);
  for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
    spec_set(&s, &arena, set[i], &e);
  }
  assert_int_equal(e.code, 0);
  assert_int_equal(table_gradients(&s, path, &e), 0);
  struct csv_table t;
  double *bias, *std, *loss;
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(csv_reals(&bias, &arena, &t, "bias", &e), 0);
  assert_int_equal(csv_reals(&std, &arena, &t, "std", &e), 0);
  assert_int_equal(csv_reals(&loss, &arena, &t, "final_loss", &e), 0);
  assert_int_equal(t.nrow, ESTIMATE_PROBLEMS * ESTIMATE_KINDS);
  for (int i = 0; i < t.nrow; i++) {
    const char *task = csv_cell(&t, i, 0), *kind = csv_cell(&t, i, 1);
    assert_string_equal(csv_cell(&t, i, 2), "1");
    assert_true(strcmp(kind, "truth") != 0 || bias[i] == 0);
    assert_true((std[i] > 0) == estimate_draws((enum estimate_kind)(i % ESTIMATE_KINDS)));
    if (strcmp(task, "billiard") == 0 && strcmp(kind, "adaptive") == 0) {
      near(loss[i], 0.05, 1e-12, "a shot that misses");
    }
  }
  remove(path);
}

static void test_refusals(void **state) {
  (void)state;
  static const char *const set[][2] = {{"integrator=heun", "integrator"},
                                       {"cfd.law=off", "cfd.law"}};
  for (int i = 0; i < 2; i++) {
    struct spec s;
    struct err e = {0};
    spec_read(&s, &arena, "gradients", &e);
    spec_set(&s, &arena, set[i][0], &e);
    assert_int_equal(e.code, 0);
    assert_int_equal(spec_check(&s, &e), EXIT_USAGE);
    assert_non_null(strstr(e.text, set[i][1]));
  }
}

// Exact gradients equal differences, and descent by them ends where closed forms say.
static void test_collide_table(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  char path[] = "/tmp/dsim_test_gradients_XXXXXX";
  assert_true(mkstemp(path) >= 0);
  spec_read(&s, &arena, "zhong", &e);
  spec_set(&s, &arena, "iterations=300", &e);
  assert_int_equal(table_collide(&s, path, &e), 0);
  struct csv_table t;
  double *error, *loss;
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(csv_reals(&error, &arena, &t, "error", &e), 0);
  assert_int_equal(csv_reals(&loss, &arena, &t, "final_true_loss", &e), 0);
  assert_int_equal(t.nrow, 18);
  for (int i = 0; i < t.nrow; i++) {
    if (strcmp(csv_cell(&t, i, 1), "truth") == 0) {
      assert_true(error[i] < 1e-6);
      near(loss[i], i < 12 ? 0 : 1.396542, i < 12 ? 1e-6 : 0.035, "optimum");
      // pieces of constant force and a contact that takes time: never better than the paper's
      assert_true(i < 12 || loss[i] > 1.396542);
    }
  }
  remove(path);
}

static int setup(void **state) {
  (void)state;
  arena_init(&arena);
  log_quiet(true);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_drop),
      cmocka_unit_test(test_ground),
      cmocka_unit_test(test_ground_wall),
      cmocka_unit_test(test_two_balls),
      cmocka_unit_test(test_straight_through),
      cmocka_unit_test(test_expectations),
      cmocka_unit_test(test_variance),
      cmocka_unit_test(test_truth),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_collide_table),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
