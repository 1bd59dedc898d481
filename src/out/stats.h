// Statistics of a few repetitions (seeds): mean, deviation, interquartile mean, and bootstrap
// intervals. Everything is a function of the numbers alone: equal numbers give equal intervals,
// whoever asks and in whatever order. What is not defined (the deviation of one number) is NaN.
#pragma once
#include "base/arena.h"

double stats_mean(const double *x, int n); // NaN when n is 0
double stats_std(const double *x, int n);  // of the sample (n - 1); NaN when n < 2
// Mean of what is left without the lowest and highest floor(n / 4) numbers (Agarwal et al.,
// arXiv 2108.13264). The mean itself below four numbers.
double stats_iqm(const double *x, int n);
// Value below which the share p of x lies, between neighbours by straight lines (p = 0: lowest,
// 1: highest). x (n) must be sorted; NaN when n is 0.
double stats_quantile(const double *x, int n, double p);
void stats_sort(double *x, int n);

enum { STATS_RESAMPLES = 10000 };

typedef double stats_fn(const double *x, int n);
// Percentile bootstrap: the middle 95 % of f over STATS_RESAMPLES drawings of n numbers with
// replacement (RNG_BOOTSTRAP, the drawing's number as step). The indices drawn depend on n alone.
// NaN when n < 2: one repetition says nothing of the spread.
void stats_bootstrap(double *lo, double *hi, const double *x, int n, stats_fn *f);

// One row of a summary.
struct stats {
  int n; // numbers that are there
  double mean, std, lo, hi;
};
// Of the numbers of x (n) that are not NaN.
struct stats stats_of(const double *x, int n);     // mean and the interval of the mean
struct stats stats_iqm_of(const double *x, int n); // the same of the IQM; std is NaN
