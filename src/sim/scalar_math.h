// Transcendentals of one double through SLEEF's cinz family, the same that the lanes use: no
// contraction, the same bits on every processor, whatever the C library does.
#pragma once
#ifdef __SSE4_1__
#include <smmintrin.h>
#endif
#include <sleef.h>

static inline double scalar_exp(double x) {
  return Sleef_cinz_expd1_u10purec(x);
}
static inline double scalar_log1p(double x) {
  return Sleef_cinz_log1pd1_u10purec(x);
}
static inline double scalar_pow(double x, double y) {
  return Sleef_cinz_powd1_u10purec(x, y);
}
static inline void scalar_sincos(double x, double *s, double *c) {
  Sleef_double_2 r = Sleef_cinz_sincosd1_u10purec(x);
  *s = r.x;
  *c = r.y;
}

// y (n, even) = exp(x), two at a time where the processor's baseline has the vectors
static inline void scalar_exp_each(double *y, const double *x, int n) {
#ifdef __SSE4_1__
  for (int i = 0; i < n; i += 2) {
    _mm_storeu_pd(y + i, Sleef_cinz_expd2_u10sse4(_mm_loadu_pd(x + i)));
  }
#else
  for (int i = 0; i < n; i++) {
    y[i] = scalar_exp(x[i]);
  }
#endif
}
