// Every adjoint of the simulator against central differences (sim/gradcheck.h says how), on every
// robot that is shipped, on the zoo, which has what those lack (ball joints, springs, several
// trees), and on all shapes that touch the floor, for both contact models. The same check as `dsim
// gradcheck`.
#include "sim/gradcheck.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void check_model(const char *path, enum sim_contact_model contact) {
  struct arena a;
  struct robot r;
  struct err e = {0};
  struct gradcheck g;
  struct sim_options opt = sim_options_default();
  opt.contact_model = contact;
  opt.integrator = contact == SIM_MUJOCO ? SIM_EULER : opt.integrator;
  arena_init(&a);
  const struct sim_kernels *k = sim_kernels(&e);
  if (!k || robot_load(&r, &a, path, false, &e) || gradcheck_run(&g, &a, &r, &opt, k, &e)) {
    fail_msg("%s", e.text);
  }
  for (int i = 0; i < g.nrow; i++) {
    const struct gradcheck_row *row = &g.row[i];
    // stated here again: the tolerance is the contract
    double tol = strcmp(row->name, "rollout") ? 1e-6 : 1e-5;
    if (!(row->max_rel_error <= tol) || row->checked < 1) {
      fail_msg("%s: %s: %g at %s, %ld checked", r.name, row->name, row->max_rel_error, row->worst,
               row->checked);
    }
    // a check that skips nearly everything shows nothing
    assert_true(row->kinks_skipped <= 2 * row->checked);
  }
  assert_true(g.nrow >= 12);
  assert_true(!g.has_contacts || g.ncontact_state > 0);
  assert_true(gradcheck_passes(&g));
  arena_release(&a);
}

static void check(const char *path) {
  check_model(path, SIM_SMOOTHED);
  check_model(path, SIM_MUJOCO);
}

static void test_g1(void **state) {
  (void)state;
  check("robots/g1.xml");
}
static void test_go2(void **state) {
  (void)state;
  check("robots/go2.xml");
}
static void test_ant(void **state) {
  (void)state;
  check("robots/ant.xml");
}
static void test_planar(void **state) {
  (void)state;
  check("robots/hopper.xml");
  check("robots/half_cheetah.xml");
}
static void test_simple(void **state) {
  (void)state;
  check("robots/cube.xml");
  check("robots/ball.xml");
  check("robots/pendulum.xml");
}
static void test_zoo(void **state) {
  (void)state;
  check("tests/robots/zoo.xml");
}
static void test_shapes(void **state) {
  (void)state;
  check("tests/robots/shapes.xml");
}

// The verdict itself: it must not pass what is wrong, not finite, or not looked at.
static void test_verdict(void **state) {
  (void)state;
  struct gradcheck_row row = {.name = "x", .tolerance = 1e-6, .max_rel_error = 9e-7, .checked = 1};
  struct gradcheck g = {.nrow = 1, .row = {row}};
  assert_true(gradcheck_passes(&g));
  g.has_contacts = true; // but no state in contact
  assert_false(gradcheck_passes(&g));
  g.ncontact_state = 1;
  assert_true(gradcheck_passes(&g));
  g.row[0].checked = 0;
  assert_false(gradcheck_passes(&g));
  g.row[0].checked = 1;
  g.row[0].max_rel_error = 1.1e-6;
  assert_false(gradcheck_passes(&g));
  g.row[0].max_rel_error = NAN;
  assert_false(gradcheck_passes(&g));
  g.nrow = 0;
  assert_false(gradcheck_passes(&g));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_g1),     cmocka_unit_test(test_go2),     cmocka_unit_test(test_ant),
      cmocka_unit_test(test_planar), cmocka_unit_test(test_simple),  cmocka_unit_test(test_zoo),
      cmocka_unit_test(test_shapes), cmocka_unit_test(test_verdict),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
