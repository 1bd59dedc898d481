// Branches and spread from a contact's own sensitivity, against the law written out for one
// contact; and which contacts open a window.
#include "learn/bundle_choice.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const double MASS = 35;

static struct spec spec_new(void) {
  struct spec s;
  spec_default(&s);
  s.bundle_size = 64;
  s.bundle_sigma_p = 1; // no bound
  s.bundle_sigma_v = 2;
  s.bundle_adaptive = true;
  return s;
}

static struct bundle_choice one(const struct spec *s, double f, double c, double kappa) {
  return bundle_choice_adaptive(s, &f, &c, 1, 1, kappa, MASS);
}

// K' / K = -kappa (1 - 2 s), K'' / K = kappa^2 (1 - 6 s + 6 s^2)
static void spread_is_where_the_derivative_changes(void **state) {
  (void)state;
  struct spec s = spec_new();
  for (double kappa = 50; kappa < 700; kappa *= 2) {
    for (double z = -6; z <= 6; z += 0.5) {
      double y = 1 / (1 + exp(z)); // kappa c = z
      double want = 1 / (kappa * sqrt(pow(1 - 2 * y, 2) + fabs(1 - 6 * y + 6 * y * y)));
      struct bundle_choice c = one(&s, 500, z / kappa, kappa);
      assert_float_equal(c.sigma_p, want, 1e-12);
      assert_float_equal(c.sigma_v, 2 * want, 1e-12);
      assert_true(kappa * c.sigma_p > 0.7 && kappa * c.sigma_p < 1.74);
    }
  }
  // known places: at the floor sqrt(2) / kappa, deep inside 1 / (sqrt(2) kappa)
  assert_float_equal(one(&s, 500, 0, 300).sigma_p, sqrt(2) / 300, 1e-15);
  assert_float_equal(one(&s, 500, -0.1, 300).sigma_p, 1 / (sqrt(2) * 300), 1e-9);
  // the spec's spread is the most
  s.bundle_sigma_p = 0.002;
  s.bundle_sigma_v = 0.01;
  assert_float_equal(one(&s, 500, 0, 300).sigma_p, 0.002, 0);
  assert_float_equal(one(&s, 500, 0, 300).sigma_v, 0.01, 0);
}

// n = ceil((h^2 sd(K) / m / tolerance)^2), the deviation by a sum over 2 million shifts
static void branches_are_as_many_as_the_error_asks(void **state) {
  (void)state;
  struct spec s = spec_new();
  s.bundle_size = 64;
  double h = s.control_dt;
  int between = 0;
  for (int i = 0; i < 24; i++) {
    double f = 300 + 100 * (i % 6), kappa = 300, c = -0.006 + 0.003 * (i / 6);
    double y0 = 1 / (1 + exp(kappa * c)), sum = 0, square = 0, weight = 0;
    struct bundle_choice got = one(&s, f, c, kappa);
    for (int k = -100000; k <= 100000; k++) {
      double x = k * 6e-5, w = exp(-x * x / 2), y = 1 / (1 + exp(kappa * (c + got.sigma_p * x)));
      double K = f / y0 * kappa * y * (1 - y);
      weight += w;
      sum += w * K;
      square += w * K * K;
    }
    double sd = sqrt(square / weight - sum * sum / weight / weight);
    double want = pow(h * h * sd / MASS / s.bundle_tolerance, 2);
    assert_true(got.size >= ceil(fmin(want, 64) - 1e-3) && got.size <= ceil(want + 1e-3));
    between += want > 1 && want < 64;
  }
  assert_true(between > 8);
  // four times the branches for half the error, as for twice the load
  int n = one(&s, 400, 0, 300).size;
  s.bundle_tolerance /= 2;
  s.bundle_size = 1000;
  assert_in_range(one(&s, 400, 0, 300).size, 4 * n - 4, 4 * n);
  s.bundle_tolerance *= 2;
  assert_in_range(one(&s, 800, 0, 300).size, 4 * n - 4, 4 * n);
  s.bundle_size = n - 1; // and never more than the spec's
  assert_int_equal(one(&s, 400, 0, 300).size, n - 1);
}

static void nothing_opens_where_nothing_changes(void **state) {
  (void)state;
  struct spec s = spec_new();
  assert_int_equal(one(&s, 600, -0.05, 300).size, 1); // s = 1 and flat
  assert_int_equal(one(&s, 0, 0, 300).size, 1);       // no load
  assert_int_equal(one(&s, 600, 0, 3).size, 1);       // soft: 0.3 m wide
  assert_true(one(&s, 600, 0, 300).size > 1);
}

// two contacts that share a load at one height are one contact; idle ones do not count; stride
static void contacts_of_a_link_add_up(void **state) {
  (void)state;
  struct spec s = spec_new();
  struct bundle_choice whole = one(&s, 700, 0.001, 300);
  double f[6] = {300, -1, 400, -1, 0, -1}, c[6] = {0.001, 9, 0.001, 9, -0.02, 9};
  struct bundle_choice parts = bundle_choice_adaptive(&s, f, c, 3, 2, 300, MASS);
  assert_int_equal(parts.size, whole.size);
  assert_float_equal(parts.sigma_p, whole.sigma_p, 1e-15);
  // contacts at different heights change one after the other: together they change more slowly
  f[4] = 300;
  c[0] = -0.006;
  c[2] = 0;
  c[4] = 0.006;
  struct bundle_choice wide = bundle_choice_adaptive(&s, f, c, 3, 2, 300, MASS);
  assert_true(wide.sigma_p > 0 && wide.sigma_p < 0.02);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spread_is_where_the_derivative_changes),
      cmocka_unit_test(branches_are_as_many_as_the_error_asks),
      cmocka_unit_test(nothing_opens_where_nothing_changes),
      cmocka_unit_test(contacts_of_a_link_add_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
