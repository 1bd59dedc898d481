// Do environments agree on where the policy should go? Statistics of the policy gradient over
// environments (arXiv 2609.30951, gradient variance).
//
// g_e is the gradient of environment e's own normalised loss, before clipping, over all that the
// actor learns (weights, biases, LayerNorm, log sigma); the mean of g_e over environments is the
// gradient that SHAC steps along. All statistics are functions of the Gram matrix G_ef = g_e . g_f,
// and so is every resampling of environments: E gradients are never in memory at once.
#pragma once
#include "learn/shac.h"

// After shac_rollout and shac_gradient: gram (E, E) of that window. Uses s->threads threads; the
// numbers do not depend on how many.
void gradstat_gram(double *gram, struct arena *a, const struct shac *s);
// The same for one environment: its share g_e / E of the gradient, as a slab like s->grad[0] (for
// tests; shares add up to the gradient). Scratch comes from the arena and goes back.
void gradstat_share(float *grad, struct arena *a, const struct shac *s, int env);

struct gradstat_band {
  double mean, lo, hi; // over windows; the middle 95 % of the resamples
};
struct gradstat {
  struct gradstat_band variance;  // V = 1 / (E - 1) sum |g_e - mean g|^2
  struct gradstat_band direction; // D = 1 - |mean of g_e / |g_e||^2: 0 all agree, 1 none do
  double variance_median;         // over windows: unmoved by a few outliers
  double norm_median;             // of |g_e|, environments and windows
  double mean_norm;               // |mean g|, mean over windows
  double *resampled;              // (resamples) V of each resample
};
// gram (windows, E, E). Resamples draw environments with replacement, the same ones in every window
// (an environment's windows follow one another) and the same ones for equal seeds, so that two
// variants can be compared resample by resample. Their V and D are multiplied by E / (E - 1), which
// drawing with replacement takes away.
void gradstat_measure(struct gradstat *g, struct arena *a, const double *gram, int windows, int E,
                      int resamples, uint64_t seed);

// lo and hi have the middle `share` of n numbers between them; sorts x. NaN when n is 0.
void gradstat_interval(double *lo, double *hi, double *x, int n, double share);
double gradstat_median(double *x, int n); // sorts x; NaN when n is 0
