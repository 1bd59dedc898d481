// Transcendentals of a lane vector through SLEEF's cinz family (no contraction, results identical
// on every instruction set). A build narrower than the vector calls the widest variant it has.
#include <sleef.h>

#define LANE_HALVES(type, piece, n)                                                                \
  union {                                                                                          \
    realw all;                                                                                     \
    type piece[n];                                                                                 \
  }

#if LANE_WIDTH == 1
LANE realw expw(realw x) {
  return (realw){Sleef_cinz_expd1_u10purec(x[0])};
}
LANE realw logw(realw x) {
  return (realw){Sleef_cinz_logd1_u10purec(x[0])};
}
LANE realw tanhw(realw x) {
  return (realw){Sleef_cinz_tanhd1_u10purec(x[0])};
}
LANE realw log1pw(realw x) {
  return (realw){Sleef_cinz_log1pd1_u10purec(x[0])};
}
LANE void sincosw(realw x, realw *s, realw *c) {
  Sleef_double_2 r = Sleef_cinz_sincosd1_u10purec(x[0]);
  *s = (realw){r.x};
  *c = (realw){r.y};
}
#elif defined __AVX512F__
LANE realw expw(realw x) {
  return (realw)Sleef_cinz_expd8_u10avx512fnofma((__m512d)x);
}
LANE realw logw(realw x) {
  return (realw)Sleef_cinz_logd8_u10avx512fnofma((__m512d)x);
}
LANE realw tanhw(realw x) {
  return (realw)Sleef_cinz_tanhd8_u10avx512fnofma((__m512d)x);
}
LANE realw log1pw(realw x) {
  return (realw)Sleef_cinz_log1pd8_u10avx512fnofma((__m512d)x);
}
LANE void sincosw(realw x, realw *s, realw *c) {
  Sleef___m512d_2 r = Sleef_cinz_sincosd8_u10avx512fnofma((__m512d)x);
  *s = (realw)r.x;
  *c = (realw)r.y;
}
#else
#if defined __AVX__
#define LANE_PIECE  __m256d
#define LANE_PIECES (LANE_WIDTH / 4)
#define LANE_PAIR   Sleef___m256d_2
#define LANE_EXP    Sleef_cinz_expd4_u10avx
#define LANE_LOG    Sleef_cinz_logd4_u10avx
#define LANE_TANH   Sleef_cinz_tanhd4_u10avx
#define LANE_LOG1P  Sleef_cinz_log1pd4_u10avx
#define LANE_SINCOS Sleef_cinz_sincosd4_u10avx
#else
#define LANE_PIECE  __m128d
#define LANE_PIECES (LANE_WIDTH / 2)
#define LANE_PAIR   Sleef___m128d_2
#define LANE_EXP    Sleef_cinz_expd2_u10sse4
#define LANE_LOG    Sleef_cinz_logd2_u10sse4
#define LANE_TANH   Sleef_cinz_tanhd2_u10sse4
#define LANE_LOG1P  Sleef_cinz_log1pd2_u10sse4
#define LANE_SINCOS Sleef_cinz_sincosd2_u10sse4
#endif
LANE realw expw(realw x) {
  LANE_HALVES(LANE_PIECE, piece, LANE_PIECES) u = {.all = x};
  for (int i = 0; i < LANE_PIECES; i++) {
    u.piece[i] = LANE_EXP(u.piece[i]);
  }
  return u.all;
}
LANE realw logw(realw x) {
  LANE_HALVES(LANE_PIECE, piece, LANE_PIECES) u = {.all = x};
  for (int i = 0; i < LANE_PIECES; i++) {
    u.piece[i] = LANE_LOG(u.piece[i]);
  }
  return u.all;
}
LANE realw tanhw(realw x) {
  LANE_HALVES(LANE_PIECE, piece, LANE_PIECES) u = {.all = x};
  for (int i = 0; i < LANE_PIECES; i++) {
    u.piece[i] = LANE_TANH(u.piece[i]);
  }
  return u.all;
}
LANE realw log1pw(realw x) {
  LANE_HALVES(LANE_PIECE, piece, LANE_PIECES) u = {.all = x};
  for (int i = 0; i < LANE_PIECES; i++) {
    u.piece[i] = LANE_LOG1P(u.piece[i]);
  }
  return u.all;
}
LANE void sincosw(realw x, realw *s, realw *c) {
  LANE_HALVES(LANE_PIECE, piece, LANE_PIECES) u = {.all = x}, us, uc;
  for (int i = 0; i < LANE_PIECES; i++) {
    LANE_PAIR r = LANE_SINCOS(u.piece[i]);
    us.piece[i] = r.x;
    uc.piece[i] = r.y;
  }
  *s = us.all;
  *c = uc.all;
}
#endif
