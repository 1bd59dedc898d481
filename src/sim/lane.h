// Lane arithmetic: W doubles at a time, by GNU vector extensions. Included only by files that the
// Makefile compiles once per instruction set (-DLANE_ISA=v4 ...), never by ordinary sources.
//
// Contraction is off everywhere, so every build gives the same bits. Branches become blends; a
// blend's dead side may hold NaN or infinity, its cotangent is masked by bits, never multiplied.
#pragma once
#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifndef LANE_WIDTH
#define LANE_WIDTH 8
#endif
enum { W = LANE_WIDTH };
typedef double realw __attribute__((vector_size(8 * LANE_WIDTH)));
typedef int64_t maskw __attribute__((vector_size(8 * LANE_WIDTH))); // all ones or all zeros

#define LANE_CAT_(a, b) a##_##b
#define LANE_CAT(a, b)  LANE_CAT_(a, b)
#define LANE_NAME(name) LANE_CAT(name, LANE_ISA) // sim_kernels_v4, ...
#define LANE            static inline __attribute__((always_inline))
#define LANE_STAGE      static __attribute__((noinline)) // one stage, visible to a profiler

LANE realw splat(double x) {
  return x - (realw){0};
}
LANE realw selectw(maskw m, realw a, realw b) {
  return (realw)((m & (maskw)a) | (~m & (maskw)b));
}
LANE realw maskedw(maskw m, realw a) {
  return (realw)(m & (maskw)a);
}
LANE realw maxw(realw a, realw b) {
  return selectw(a > b, a, b);
}
LANE realw minw(realw a, realw b) {
  return selectw(a < b, a, b);
}
LANE realw clampw(realw x, realw lo, realw hi) {
  return minw(maxw(x, lo), hi);
}
LANE realw absw(realw x) {
  return (realw)((maskw)x & INT64_MAX);
}
LANE realw sqrtw(realw x) {
  realw r;
  for (int l = 0; l < W; l++) {
    r[l] = __builtin_sqrt(x[l]);
  }
  return r;
}
LANE int anyw(maskw m) { // some lane's mask is set
#if LANE_WIDTH == 8 && defined __AVX512DQ__
  return _mm512_movepi64_mask((__m512i)m) != 0;
#elif LANE_WIDTH == 4 && defined __AVX__
  return _mm256_movemask_pd((__m256d)m) != 0;
#else
  int64_t any = 0;
  for (int l = 0; l < W; l++) {
    any |= m[l];
  }
  return any != 0;
#endif
}

// SLEEF's cinz family: the same bits on every instruction set (lane_math.inl maps them)
#include "sim/lane_math.inl"

// ---- 3-vectors and rotations, row-major R (world <- body)
LANE realw dot3(const realw *a, const realw *b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
LANE void cross3(realw *o, const realw *a, const realw *b) { // o may alias a or b
  realw x = a[1] * b[2] - a[2] * b[1];
  realw y = a[2] * b[0] - a[0] * b[2];
  realw z = a[0] * b[1] - a[1] * b[0];
  o[0] = x;
  o[1] = y;
  o[2] = z;
}
LANE void cross3_add(realw *o, const realw *a, const realw *b) {
  o[0] += a[1] * b[2] - a[2] * b[1];
  o[1] += a[2] * b[0] - a[0] * b[2];
  o[2] += a[0] * b[1] - a[1] * b[0];
}
LANE void cross3_sub(realw *o, const realw *a, const realw *b) {
  o[0] -= a[1] * b[2] - a[2] * b[1];
  o[1] -= a[2] * b[0] - a[0] * b[2];
  o[2] -= a[0] * b[1] - a[1] * b[0];
}
LANE void rot_mul(realw *o, const realw *R, const realw *x) { // o = R x
  for (int r = 0; r < 3; r++) {
    o[r] = R[3 * r] * x[0] + R[3 * r + 1] * x[1] + R[3 * r + 2] * x[2];
  }
}
LANE void rot_tmul(realw *o, const realw *R, const realw *x) { // o = R' x
  for (int r = 0; r < 3; r++) {
    o[r] = R[r] * x[0] + R[3 + r] * x[1] + R[6 + r] * x[2];
  }
}
LANE void quat_to_rot(realw *R, const realw *q) { // unit wxyz
  realw a = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1 - 2 * (y * y + z * z);
  R[1] = 2 * (x * y - a * z);
  R[2] = 2 * (x * z + a * y);
  R[3] = 2 * (x * y + a * z);
  R[4] = 1 - 2 * (x * x + z * z);
  R[5] = 2 * (y * z - a * x);
  R[6] = 2 * (x * z - a * y);
  R[7] = 2 * (y * z + a * x);
  R[8] = 1 - 2 * (x * x + y * y);
}
