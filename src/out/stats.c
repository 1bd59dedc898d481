#include "out/stats.h"
#include "base/rng.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

double stats_mean(const double *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    sum += x[i];
  }
  return n > 0 ? sum / n : NAN;
}

double stats_std(const double *x, int n) {
  double mean = stats_mean(x, n), square = 0;
  for (int i = 0; i < n; i++) {
    square += (x[i] - mean) * (x[i] - mean);
  }
  return n > 1 ? sqrt(square / (n - 1)) : NAN;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void stats_sort(double *x, int n) {
  if (n > 0) {
    qsort(x, (size_t)n, sizeof *x, compare);
  }
}

double stats_quantile(const double *x, int n, double p) {
  if (n == 0) {
    return NAN;
  }
  double at = p * (n - 1);
  int below = (int)floor(at);
  double rest = at - below;
  // the neighbour above is not touched when at is whole: it may be infinite, or not there
  return rest > 0 ? x[below] + rest * (x[below + 1] - x[below]) : x[below];
}

double stats_iqm(const double *x, int n) {
  if (n < 4) {
    return stats_mean(x, n);
  }
  struct arena a;
  arena_init(&a);
  double *sorted = ARENA_NEW(&a, double, n);
  memcpy(sorted, x, sizeof *x * (size_t)n);
  stats_sort(sorted, n);
  int cut = n / 4;
  double iqm = stats_mean(sorted + cut, n - 2 * cut);
  arena_release(&a);
  return iqm;
}

void stats_bootstrap(double *lo, double *hi, const double *x, int n, stats_fn *f) {
  *lo = *hi = NAN;
  if (n < 2) {
    return;
  }
  struct arena a;
  arena_init(&a);
  double *value = ARENA_NEW(&a, double, STATS_RESAMPLES), *drawn = ARENA_NEW(&a, double, n);
  for (int k = 0; k < STATS_RESAMPLES; k++) {
    struct rng r = rng_stream(0, RNG_BOOTSTRAP, 0, 0, (uint32_t)k);
    for (int i = 0; i < n; i++) {
      drawn[i] = x[rng_below(&r, (uint32_t)n)];
    }
    value[k] = f(drawn, n);
  }
  stats_sort(value, STATS_RESAMPLES);
  *lo = stats_quantile(value, STATS_RESAMPLES, 0.025);
  *hi = stats_quantile(value, STATS_RESAMPLES, 0.975);
  arena_release(&a);
}

static struct stats summarise(const double *x, int n, stats_fn *centre, stats_fn *spread) {
  struct arena a;
  arena_init(&a);
  double *there = ARENA_NEW(&a, double, n + 1);
  struct stats s = {.std = NAN};
  for (int i = 0; i < n; i++) {
    if (!isnan(x[i])) {
      there[s.n++] = x[i];
    }
  }
  s.mean = centre(there, s.n);
  if (spread != NULL) {
    s.std = spread(there, s.n);
  }
  stats_bootstrap(&s.lo, &s.hi, there, s.n, centre);
  arena_release(&a);
  return s;
}

struct stats stats_of(const double *x, int n) {
  return summarise(x, n, stats_mean, stats_std);
}

struct stats stats_iqm_of(const double *x, int n) {
  return summarise(x, n, stats_iqm, NULL);
}
