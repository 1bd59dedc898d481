#include "learn/normalizer.h"

static const double EPSILON = 1e-5;

void normalizer_new(struct normalizer *z, struct arena *a, int n) {
  *z = (struct normalizer){.n = n};
  z->mean = ARENA_NEW(a, double, n);
  z->var = ARENA_NEW(a, double, n);
  z->inv_std = ARENA_NEW(a, double, n);
  for (int i = 0; i < n; i++) {
    z->var[i] = 1;
  }
  normalizer_refresh(z);
}

void normalizer_refresh(struct normalizer *z) {
  for (int i = 0; i < z->n; i++) {
    z->inv_std[i] = 1 / __builtin_sqrt(z->var[i] + EPSILON);
  }
}

void normalizer_merge(struct normalizer *z, const double *sum, const double *square, double count) {
  // two sets of samples become one (Chan's formula); the second is centred on the first's mean
  double total = z->count + count;
  for (int i = 0; i < z->n; i++) {
    double shift = sum[i] / count, var = square[i] / count - shift * shift;
    double moment = z->var[i] * z->count + (var > 0 ? var : 0) * count +
                    shift * shift * z->count * count / total;
    z->mean[i] += shift * count / total;
    z->var[i] = moment / total;
  }
  z->count = total;
  normalizer_refresh(z);
}

void normalizer_fwd(float *x, const struct normalizer *z, const double *obs, int width) {
  for (int i = 0; i < z->n; i++) {
    for (int l = 0; l < width; l++) {
      float v = (float)((obs[i * width + l] - z->mean[i]) * z->inv_std[i]);
      v = v > NORMALIZER_CLAMP ? NORMALIZER_CLAMP : v;
      x[l * z->n + i] = v < -NORMALIZER_CLAMP ? -NORMALIZER_CLAMP : v;
    }
  }
}

void normalizer_bwd(double *dobs, const struct normalizer *z, const float *dx, const float *x,
                    const double *scale, int width) {
  for (int i = 0; i < z->n; i++) {
    for (int l = 0; l < width; l++) {
      float v = x[l * z->n + i];
      int inside = v < NORMALIZER_CLAMP && v > -NORMALIZER_CLAMP;
      dobs[i * width + l] = inside ? (double)dx[l * z->n + i] * z->inv_std[i] * scale[l] : 0;
    }
  }
}
