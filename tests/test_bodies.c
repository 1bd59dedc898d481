// The small experiments: closed forms of the bouncing point, tossed objects against libmujoco with
// small steps, the billiard against its published set-up, training through a miss.
#include "task/bodies.h"
#include <math.h>
#include <mujoco/mujoco.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;

// ---- bounce: dq/dq0 of arXiv 2506.14186's first example

static void test_bounce_slopes(void **state) {
  (void)state;
  static const struct {
    double h, lo, hi, at_half; // over q0 in (0.05, 1.4), and at 0.5
  } rows[] = {{0.1, -2.522, 3.961, 0.92844},
              {0.01, -1.054, -0.451, 0.840173},
              {1e-3, -0.818, -0.758, 0.843499},
              {1e-4, -0.8055, -0.7999, 0.844132}};
  for (int i = 0; i < 4; i++) {
    double lo = INFINITY, hi = -INFINITY, q, slope;
    for (double q0 = 0.0501; q0 < 1.4; q0 += rows[i].h < 1e-3 ? 1e-3 : 1e-4) {
      bounce_solve(&q, &slope, BOUNCE_PENALTY, rows[i].h, q0);
      lo = fmin(lo, slope);
      hi = fmax(hi, slope);
    }
    bounce_solve(&q, &slope, BOUNCE_PENALTY, rows[i].h, 0.5);
    double band = i == 0 ? 0.15 : i == 1 ? 0.01 : 1e-3; // the extremes depend on the grid of q0
    if (!(fabs(lo - rows[i].lo) < band && fabs(hi - rows[i].hi) < band)) {
      fail_msg("h = %g: slopes from %.5f to %.5f", rows[i].h, lo, hi);
    }
    assert_true(fabs(q - rows[i].at_half) < 1e-6);
  }
  double q, slope;
  bounce_solve(&q, &slope, BOUNCE_EXACT, 0, 0.5);
  assert_true(fabs(q - 0.844050) < 1e-6 && fabs(slope + 0.800354) < 1e-6);
  // a flip has the wrong sign at any step
  for (double h = 0.1; h > 5e-5; h /= 10) {
    bounce_solve(&q, &slope, BOUNCE_IDEAL, h, 0.5);
    assert_true(slope == 1);
  }
}

static void test_bounce_exact(void **state) {
  (void)state;
  for (double q0 = 0.1; q0 < 3; q0 += 0.237) { // the penalty tends to its closed form
    double exact, slope, q, unused;
    bounce_solve(&exact, &slope, BOUNCE_EXACT, 0, q0);
    bounce_solve(&q, &unused, BOUNCE_PENALTY, 1e-5, q0);
    assert_true(fabs(q - exact) < 2e-5);
    double side[2];
    bounce_solve(&side[0], &unused, BOUNCE_EXACT, 0, q0 - 1e-6);
    bounce_solve(&side[1], &unused, BOUNCE_EXACT, 0, q0 + 1e-6);
    assert_true(fabs(slope - (side[1] - side[0]) / 2e-6) < 1e-8);
  }
}

// ---- toss

static struct ode_options exact_options(double tolerance) {
  struct ode_options o = ode_options_default();
  o.method = ODE_DOPRI8;
  o.rtol = o.atol = tolerance;
  o.locate = true;
  o.max_steps = 20000;
  return o;
}

// libmujoco's own RK4 with small steps, from the same start
static double mujoco_toss(enum toss_body b, double h) {
  static const char *const geom[TOSS_BODIES] = {
      [TOSS_BALL] = "type='sphere' size='.05' density='1'",
      [TOSS_CUBE] = "type='box' size='.05 .05 .05' density='100'",
      [TOSS_CAPSULE] = "type='capsule' size='.05 .07' density='50'",
      [TOSS_CYLINDER] = "type='cylinder' size='.04 .05' density='100'",
      [TOSS_ELLIPSOID] = "type='ellipsoid' size='.05 .05 .1' density='200'",
  };
  char xml[2000], path[] = "/tmp/dsim_test_bodies_XXXXXX.xml", error[500] = "";
  int n = snprintf(xml, sizeof xml,
                   "<mujoco><option timestep='%g' gravity='0 0 -2' tolerance='1e-14' "
                   "iterations='200' integrator='RK4'><flag refsafe='disable'/></option>"
                   "<default><geom solimp='0 .95 .001 .5 2' solref='.005 1'/></default>"
                   "<worldbody><geom type='plane' size='1 1 1'/><body><joint type='free'/>"
                   "<geom %s/></body></worldbody></mujoco>",
                   h, geom[b]);
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0 && write(fd, xml, (size_t)n) == n);
  close(fd);
  mjModel *m = mj_loadXML(path, NULL, error, sizeof error);
  unlink(path);
  assert_non_null(m);
  mjData *d = mj_makeData(m);
  double y[13];
  toss_start(y, b, -2);
  memcpy(d->qpos, y, sizeof(double[7]));
  memcpy(d->qvel, y + 7, sizeof(double[6]));
  for (int i = 0; i < (int)(1 / h + 0.5); i++) {
    mj_step(m, d);
  }
  double end = d->qpos[1];
  mj_deleteData(d);
  mj_deleteModel(m);
  return end;
}

static void test_toss(void **state) {
  (void)state;
  // converged, and the derivative by u0
  static const double loss[TOSS_BODIES] = {-0.07288357, -0.26089605, -0.25859559, -0.18271751,
                                           -0.34647382};
  for (int b = 0; b < TOSS_BODIES; b++) {
    struct freebody_scene s = toss_scene((enum toss_body)b, false);
    struct ode_options o = exact_options(1e-13);
    struct body_work w = {.arena = &arena, .want_gradient = true, .want_event = true};
    struct body_work forward = {.arena = &arena};
    struct body_result r, side[2];
    toss_solve(&r, &w, &s, (enum toss_body)b, &o, -2);
    assert_int_equal(r.status, ODE_DONE);
    assert_true(fabs(r.loss - loss[b]) < 1e-8);
    double other = mujoco_toss((enum toss_body)b, 2e-5);
    if (!(fabs(r.loss - other) < 1e-6)) {
      fail_msg("%s ends at %.8f, in MuJoCo at %.8f", toss_names[b], r.loss, other);
    }
    const double eps = 2e-5;
    toss_solve(&side[0], &forward, &s, (enum toss_body)b, &o, -2 - eps);
    toss_solve(&side[1], &forward, &s, (enum toss_body)b, &o, -2 + eps);
    double difference = (side[1].loss - side[0].loss) / (2 * eps);
    if (!(fabs(r.grad_event - difference) < 5e-5)) {
      fail_msg("%s: gradient %.9f, differences %.9f", toss_names[b], r.grad_event, difference);
    }
    // the published gradient leaves the jump at touchdown out
    assert_true(fabs(r.grad - difference) > 2 * fabs(r.grad_event - difference) || b == TOSS_BALL);
  }
}

// The published code's backsolve starts every 10 ms from stored states; both tend to 0.17267.
static void test_backsolve(void **state) {
  (void)state;
  struct freebody_scene s = toss_scene(TOSS_CUBE, true);
  struct ode_options o = ode_options_default();
  struct body_work w = {.arena = &arena, .want_gradient = true};
  struct body_result r;
  o.rtol = o.atol = 1e-10;
  toss_backsolve(&r, &w, &s, TOSS_CUBE, &o, -2);
  assert_int_equal(r.status, ODE_DONE);
  assert_true(fabs(r.grad - 0.17267) < 2e-6);
}

// ---- billiard

static struct billiard_result shot(struct body_result *r, const struct billiard *b,
                                   const struct ode_options *o, double u0) {
  struct body_work w = {.arena = &arena, .want_gradient = true, .want_event = true};
  struct billiard_result more;
  billiard_solve(r, &more, &w, b, o, u0);
  assert_int_equal(r->status, ODE_DONE);
  return more;
}

// Values of the published set-up by classic RK4 with h = 5e-4 steps.
static void test_billiard(void **state) {
  (void)state;
  static const struct {
    double u0, loss;
    bool hold;
  } rows[] = {
      {0, 0.012913124, false},   {0.5, 0.014424342, false}, {1, 0.019400342, false},
      {1.5, 0.028734605, false}, {2, 0.042412778, false},   {2.5, 0.05, false},
      {0, 0.036332634, true},    {1, 0.020970591, true},    {1.5, 0.020530186, true},
      {2, 0.038582948, true},
  };
  struct ode_options o = ode_options_default();
  o.method = ODE_MUJOCO_RK4;
  o.adaptive = false;
  o.dt = 5e-4;
  o.max_steps = 10000;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct billiard b = {.hold = rows[i].hold};
    struct body_result r;
    shot(&r, &b, &o, rows[i].u0);
    if (!(fabs(r.loss - rows[i].loss) < 1e-6)) {
      fail_msg("u0 = %g%s: loss %.9f", rows[i].u0, rows[i].hold ? " held" : "", r.loss);
    }
  }
  // smallest gaps of shots that miss, and the ball at rest on the table
  static const double gaps[][2] = {{2.2, 0.00034}, {2.5, 0.00875}, {3, 0.0210}, {5, 0.05265}};
  for (int i = 0; i < 4; i++) {
    struct billiard b = {0};
    struct body_result r;
    assert_true(fabs(shot(&r, &b, &o, gaps[i][0]).gap - gaps[i][1]) < 1e-5 + 5e-3 * gaps[i][1]);
  }
  struct billiard table = {.gravity = true};
  struct body_result r;
  shot(&r, &table, &o, 3);
  assert_true(fabs(r.loss - 0.040728764) < 1e-8);
}

static void test_billiard_gradients(void **state) {
  (void)state;
  struct ode_options o = exact_options(1e-12);
  for (double u0 = 0.5; u0 < 2.1; u0 += 0.5) {
    struct billiard b = {0};
    struct body_result r, side[2];
    shot(&r, &b, &o, u0);
    shot(&side[0], &b, &o, u0 - 1e-4);
    shot(&side[1], &b, &o, u0 + 1e-4);
    double difference = (side[1].loss - side[0].loss) / 2e-4;
    if (!(fabs(r.grad_event - difference) < 1e-5)) {
      fail_msg("u0 = %g: gradient %.9f, differences %.9f", u0, r.grad_event, difference);
    }
  }
  // a miss: no gradient without contacts from distance, with them one that points at the ball, and
  // the same loss to the last bit
  for (double u0 = -4.5; u0 < 5; u0 += 1) {
    if (fabs(u0) < 2.3) {
      continue;
    }
    struct billiard plain = {0}, cfd = {.cfd = cfd_default()};
    struct body_result a, b;
    cfd.cfd.on = true;
    cfd.cfd.solimp[2] = 0.1;
    shot(&a, &plain, &o, u0);
    shot(&b, &cfd, &o, u0);
    assert_memory_equal(&a.loss, &b.loss, sizeof a.loss);
    assert_true(a.grad == 0 && a.grad_event == 0);
    assert_true(b.grad * u0 > 0.005);
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
      cmocka_unit_test(test_bounce_slopes), cmocka_unit_test(test_bounce_exact),
      cmocka_unit_test(test_toss),          cmocka_unit_test(test_backsolve),
      cmocka_unit_test(test_billiard),      cmocka_unit_test(test_billiard_gradients),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
