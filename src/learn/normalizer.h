// Running mean and variance of observations. What a network sees is (obs - mean) / std, clamped.
// The statistics used in a rollout, forward and backward, are those from before it.
#pragma once
#include "base/arena.h"

#define NORMALIZER_CLAMP 5.0f // of normalised observations; the gradient is 0 there

struct normalizer {
  int n;
  double count;
  double *mean, *var; // (n)
  double *inv_std;    // (n) 1 / sqrt(var + 1e-5), kept in step by every change
};

void normalizer_new(struct normalizer *z, struct arena *a, int n);
void normalizer_refresh(struct normalizer *z); // inv_std after mean and var were set from outside
// Merges samples given by their sums about the current mean: sum[i] = sum (x - mean[i]),
// square[i] = sum (x - mean[i])^2 over `count` samples.
void normalizer_merge(struct normalizer *z, const double *sum, const double *square, double count);

// x (width, n) float rows from obs (n, width) lanes; the twin takes dobs (n, width) from dx and x,
// times scale[l].
void normalizer_fwd(float *x, const struct normalizer *z, const double *obs, int width);
void normalizer_bwd(double *dobs, const struct normalizer *z, const float *dx, const float *x,
                    const double *scale, int width);
