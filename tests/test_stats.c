// Statistics over seeds, against closed forms, against all n^n drawings with replacement, and
// against a bootstrap written out by hand.
#include "base/rng.h"
#include "out/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void assert_near(double a, double b, double tolerance) {
  if (!(fabs(a - b) <= tolerance)) {
    fail_msg("%.17g and %.17g differ by more than %g", a, b, tolerance);
  }
}

static void mean_and_deviation(void **state) {
  (void)state;
  // 1..n: mean (n + 1) / 2, variance of the sample n (n + 1) / 12
  double x[9];
  for (int i = 0; i < 9; i++) {
    x[i] = i + 1;
  }
  assert_near(stats_mean(x, 9), 5, 1e-15);
  assert_near(stats_std(x, 9), sqrt(9 * 10 / 12.0), 1e-15);
  // a shift far above the spread takes nothing from the deviation
  for (int i = 0; i < 9; i++) {
    x[i] += 1e9;
  }
  assert_near(stats_std(x, 9), sqrt(7.5), 1e-9);
  assert_true(isnan(stats_mean(x, 0)) && isnan(stats_std(x, 0)) && isnan(stats_std(x, 1)));
}

static void quantiles(void **state) {
  (void)state;
  const double x[] = {0, 1, 4, 9, 16};
  const double p[] = {0, 0.25, 0.5, 0.75, 1, 0.125, 0.9}, q[] = {0, 1, 4, 9, 16, 0.5, 13.2};
  for (int i = 0; i < 7; i++) {
    assert_near(stats_quantile(x, 5, p[i]), q[i], 1e-12);
  }
  assert_true(isnan(stats_quantile(x, 0, 0.5)));
  const double open[] = {1, 2, INFINITY};
  assert_near(stats_quantile(open, 3, 0.5), 2, 0);
}

static void interquartile_mean(void **state) {
  (void)state;
  const double eight[] = {1000, 3, 1, 4, -1000, 2, 0, 5}; // 1, 2, 3, 4 are left
  assert_near(stats_iqm(eight, 8), 2.5, 1e-15);
  const double five[] = {7, -50, 1, 4, 90}; // one off each end
  assert_near(stats_iqm(five, 5), 4, 1e-15);
  const double three[] = {1, 2, 9};
  assert_near(stats_iqm(three, 3), 4, 1e-15);
  assert_true(isnan(stats_iqm(three, 0)));
}

// The same drawings and the same definition of a percentile, by hand.
static void bootstrap_by_hand(void **state) {
  (void)state;
  const double x[] = {3.5, -1, 12, 7.25};
  static double means[STATS_RESAMPLES];
  for (int k = 0; k < STATS_RESAMPLES; k++) {
    struct rng r = rng_stream(0, RNG_BOOTSTRAP, 0, 0, (uint32_t)k);
    double sum = 0;
    for (int i = 0; i < 4; i++) {
      sum += x[rng_below(&r, 4)];
    }
    // insertion into the sorted front: no code shared with stats.c
    int at = k;
    for (; at > 0 && means[at - 1] > sum / 4; at--) {
      means[at] = means[at - 1];
    }
    means[at] = sum / 4;
  }
  // of 10000, 2.5 % lies at 249.975 and 97.5 % at 9749.025
  double lo, hi;
  stats_bootstrap(&lo, &hi, x, 4, stats_mean);
  assert_near(lo, means[249] + 0.975 * (means[250] - means[249]), 1e-12);
  assert_near(hi, means[9749] + 0.025 * (means[9750] - means[9749]), 1e-12);
}

// All n^n drawings are the distribution that the bootstrap samples. The share of it at or below the
// sampled quantile must be 2.5 % (97.5 %) within four standard errors of 10000 drawings.
static void bootstrap_against_every_drawing(void **state) {
  (void)state;
  enum { N = 5, ALL = 3125 };
  const double x[N] = {0, 1, 3.1, 10.3, 31.7};
  static double means[ALL];
  for (int k = 0; k < ALL; k++) {
    double sum = 0;
    for (int i = 0, code = k; i < N; i++, code /= N) {
      sum += x[code % N];
    }
    means[k] = sum / N;
  }
  double lo, hi;
  stats_bootstrap(&lo, &hi, x, N, stats_mean);
  int below_lo = 0, upto_lo = 0, below_hi = 0, upto_hi = 0;
  for (int k = 0; k < ALL; k++) {
    below_lo += means[k] < lo - 1e-12;
    upto_lo += means[k] <= lo + 1e-12;
    below_hi += means[k] < hi - 1e-12;
    upto_hi += means[k] <= hi + 1e-12;
  }
  double slack = 4 * sqrt(0.025 * 0.975 / STATS_RESAMPLES);
  assert_true((double)below_lo / ALL <= 0.025 + slack && (double)upto_lo / ALL >= 0.025 - slack);
  assert_true((double)below_hi / ALL <= 0.975 + slack && (double)upto_hi / ALL >= 0.975 - slack);
  assert_true(lo > 0 && hi < 31.7);
}

static void bootstrap_of_two(void **state) {
  (void)state;
  // means 0, 1/2, 1 with weights 1/4, 1/2, 1/4: the middle 95 % reaches from end to end
  const double x[] = {1, 0};
  double lo, hi;
  stats_bootstrap(&lo, &hi, x, 2, stats_mean);
  assert_near(lo, 0, 0);
  assert_near(hi, 1, 0);
  stats_bootstrap(&lo, &hi, x, 1, stats_mean);
  assert_true(isnan(lo) && isnan(hi));
}

// The interval moves and stretches with the numbers, and is there again when asked again.
static void bootstrap_follows_shift_and_scale(void **state) {
  (void)state;
  const double x[] = {0.5, 4, 2, 1}, y[] = {-9, -2, -6, -8}; // y = 2 x - 10
  double lo, hi, lo2, hi2, lo3, hi3;
  stats_bootstrap(&lo, &hi, x, 4, stats_mean);
  stats_bootstrap(&lo2, &hi2, y, 4, stats_mean);
  assert_near(lo2, 2 * lo - 10, 1e-12);
  assert_near(hi2, 2 * hi - 10, 1e-12);
  stats_bootstrap(&lo3, &hi3, x, 4, stats_mean);
  assert_true(memcmp(&lo, &lo3, sizeof lo) == 0 && memcmp(&hi, &hi3, sizeof hi) == 0);
}

static void rows_leave_missing_numbers_out(void **state) {
  (void)state;
  const double with[] = {NAN, 2, 4, NAN, 9}, without[] = {2, 4, 9};
  struct stats a = stats_of(with, 5), b = stats_of(without, 3);
  assert_int_equal(a.n, 3);
  assert_near(a.mean, 5, 1e-15);
  assert_near(a.std, sqrt(13), 1e-15);
  assert_near(a.lo, b.lo, 0);
  assert_near(a.hi, b.hi, 0);
  struct stats one = stats_of(with, 2), none = stats_of(with, 1);
  assert_true(one.n == 1 && one.mean == 2 && isnan(one.std) && isnan(one.lo) && isnan(one.hi));
  assert_true(none.n == 0 && isnan(none.mean));
}

static void iqm_rows(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5, 6, 7, 1e6};
  struct stats s = stats_iqm_of(x, 8), m = stats_of(x, 8);
  assert_near(s.mean, 4.5, 1e-15);
  assert_true(isnan(s.std) && s.lo < 4.5 && s.hi > 4.5);
  // one outlier of eight moves the mean's interval far out
  assert_true(m.hi > 1e5);
  double lo, hi;
  stats_bootstrap(&lo, &hi, x, 8, stats_iqm);
  assert_near(s.lo, lo, 0);
  assert_near(s.hi, hi, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mean_and_deviation),
      cmocka_unit_test(quantiles),
      cmocka_unit_test(interquartile_mean),
      cmocka_unit_test(bootstrap_by_hand),
      cmocka_unit_test(bootstrap_against_every_drawing),
      cmocka_unit_test(bootstrap_of_two),
      cmocka_unit_test(bootstrap_follows_shift_and_scale),
      cmocka_unit_test(rows_leave_missing_numbers_out),
      cmocka_unit_test(iqm_rows),
  };
  return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
