#include "learn/mlp.h"
#include "base/err.h"
#include "learn/gemm.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Everything but the matrix products runs in blocks of eight floats: sums over a row are eight
// partial sums added in one fixed order, so the bits do not depend on the processor.
enum { B = 8 };
typedef float f8 __attribute__((vector_size(4 * B)));
typedef int32_t i8 __attribute__((vector_size(4 * B)));
#define INLINE static inline __attribute__((always_inline))

INLINE f8 load(const float *p) {
  f8 v;
  memcpy(&v, p, sizeof v);
  return v;
}
INLINE void store(float *p, f8 v) {
  memcpy(p, &v, sizeof v);
}
INLINE f8 select(i8 m, f8 a, f8 b) {
  return (f8)((m & (i8)a) | (~m & (i8)b));
}
// the last n % 8 numbers of a row, padded with zeros
INLINE f8 load_tail(const float *p, int n) {
  f8 v = {0};
  memcpy(&v, p, sizeof(float) * (size_t)n);
  return v;
}
INLINE float add_up(f8 v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// exp(x) - 1 for x <= 0, to 2 units in the last place: x = k ln 2 + r, then
// 2^k (exp(r) - 1) + (2^k - 1), which keeps its relative accuracy near 0. Below -80 it is -1.
INLINE f8 expm1_neg(f8 x) {
  x = select(x < -80.0f, x - x - 80.0f, x);
  // adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits
  f8 t = x * 1.44269504f + 12582912.0f;
  i8 power = ((i8)t - 0x4b400000 + 127) << 23;
  f8 k = t - 12582912.0f;
  f8 r = x - k * 0.693359375f; // ln 2 in two parts
  r = r + k * 2.12194440e-4f;
  f8 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r;
  f8 two_k = (f8)power;
  return two_k * p + (two_k - 1.0f);
}
INLINE f8 elu(f8 x) {
  i8 positive = x > 0.0f;
  return select(positive, x, expm1_neg(select(positive, x - x, x)));
}

void mlp_shape(struct mlp *m, int nin, const int *hidden, int nhidden, int nout, bool layer_norm) {
  BUG_IF(nhidden + 1 > MLP_MAX_LAYERS);
  *m = (struct mlp){.nlayer = nhidden + 1, .layer_norm = layer_norm};
  m->size[0] = nin;
  for (int l = 0; l < m->nlayer; l++) {
    int in = m->size[l], out = l < nhidden ? hidden[l] : nout;
    m->size[l + 1] = out;
    m->widest = out > m->widest ? out : m->widest;
    m->weight[l] = m->nparam;
    m->bias[l] = m->weight[l] + (size_t)in * (size_t)out;
    m->nparam = m->bias[l] + (size_t)out;
    if (l < nhidden && layer_norm) {
      m->gain[l] = m->nparam;
      m->shift[l] = m->gain[l] + (size_t)out;
      m->nparam = m->shift[l] + (size_t)out;
    }
  }
}

void mlp_cache_new(struct mlp_cache *c, struct arena *a, const struct mlp *m, int rows) {
  *c = (struct mlp_cache){.rows = rows};
  for (int l = 0; l < m->nlayer; l++) {
    size_t n = (size_t)rows * (size_t)m->size[l + 1];
    c->d[l] = ARENA_NEW(a, float, n);
    if (l < m->nlayer - 1) {
      c->h[l] = ARENA_NEW(a, float, n);
      c->z[l] = m->layer_norm ? ARENA_NEW(a, float, n) : c->h[l];
      c->mean[l] = ARENA_NEW(a, float, rows);
      c->rstd[l] = ARENA_NEW(a, float, rows);
    }
  }
}

void mlp_init(float *param, const struct mlp *m, uint64_t seed, uint32_t network,
              double out_scale) {
  memset(param, 0, sizeof(float) * m->nparam);
  for (int l = 0; l < m->nlayer; l++) {
    int in = m->size[l], out = m->size[l + 1];
    struct rng r = rng_stream(seed, RNG_INIT_WEIGHTS, network, (uint32_t)l, 0);
    double a = 1.2 / __builtin_sqrt(in) * (l == m->nlayer - 1 ? out_scale : 1);
    for (size_t i = 0; i < (size_t)in * (size_t)out; i++) {
      param[m->weight[l] + i] = (float)rng_range(&r, -a, a);
    }
    if (l < m->nlayer - 1 && m->layer_norm) {
      for (int i = 0; i < out; i++) {
        param[m->gain[l] + (size_t)i] = 1;
      }
    }
  }
}

void mlp_locate(char *text, size_t size, const struct mlp *m, size_t i) {
  for (int l = 0; l < m->nlayer; l++) {
    size_t in = (size_t)m->size[l], end = l + 1 < m->nlayer ? m->weight[l + 1] : m->nparam;
    if (i >= end) {
      continue;
    }
    if (i < m->bias[l]) {
      size_t k = i - m->weight[l];
      snprintf(text, size, "layer %d weight[%zu,%zu]", l + 1, k / in, k % in);
    } else if (l == m->nlayer - 1 || !m->layer_norm || i < m->gain[l]) {
      snprintf(text, size, "layer %d bias[%zu]", l + 1, i - m->bias[l]);
    } else if (i < m->shift[l]) {
      snprintf(text, size, "layer %d gain[%zu]", l + 1, i - m->gain[l]);
    } else {
      snprintf(text, size, "layer %d shift[%zu]", l + 1, i - m->shift[l]);
    }
    return;
  }
  snprintf(text, size, "number %zu", i);
}

// ---- ELU and LayerNorm of rows of n numbers

// h: Linear output on entry, ELU of it on return; z = gain * (h - mean) / std + shift
INLINE void activate_fwd_body(float *z, float *h, float *mean, float *rstd, const float *gain,
                              const float *shift, int n, int rows) {
  int whole = n - n % B, rest = n % B;
  for (int r = 0; r < rows; r++, z += n, h += n) {
    f8 sum = {0};
    for (int j = 0; j < whole; j += B) {
      f8 e = elu(load(h + j));
      store(h + j, e);
      sum += e;
    }
    if (rest) {
      f8 e = elu(load_tail(h + whole, rest));
      memcpy(h + whole, &e, sizeof(float) * (size_t)rest);
      sum += e; // elu(0) = 0: padding adds nothing
    }
    float mu = add_up(sum) / (float)n;
    f8 square = {0};
    for (int j = 0; j < whole; j += B) {
      f8 e = load(h + j) - mu;
      square += e * e;
    }
    for (int j = whole; j < n; j++) {
      square[j - whole] += (h[j] - mu) * (h[j] - mu);
    }
    float rs = 1 / __builtin_sqrtf(add_up(square) / (float)n + 1e-5f);
    for (int j = 0; j < whole; j += B) {
      store(z + j, (load(h + j) - mu) * rs * load(gain + j) + load(shift + j));
    }
    for (int j = whole; j < n; j++) {
      z[j] = (h[j] - mu) * rs * gain[j] + shift[j];
    }
    mean[r] = mu;
    rstd[r] = rs;
  }
}

// d = cotangent of the Linear output from dz, the cotangent of z (overwritten); dgain and dshift,
// NULL if not wanted, are added to
INLINE void activate_bwd_body(float *d, float *dgain, float *dshift, float *dz, const float *h,
                              const float *mean, const float *rstd, const float *gain, int n,
                              int rows) {
  int whole = n - n % B;
  for (int r = 0; r < rows; r++, d += n, dz += n, h += n) {
    float mu = mean[r], rs = rstd[r];
    f8 sum1 = {0}, sum2 = {0};
    for (int j = 0; j < whole; j += B) {
      f8 xhat = (load(h + j) - mu) * rs, g = load(dz + j);
      if (dgain) {
        store(dgain + j, load(dgain + j) + g * xhat);
        store(dshift + j, load(dshift + j) + g);
      }
      g *= load(gain + j);
      store(dz + j, g);
      sum1 += g;
      sum2 += g * xhat;
    }
    for (int j = whole; j < n; j++) {
      float xhat = (h[j] - mu) * rs;
      if (dgain) {
        dgain[j] += dz[j] * xhat;
        dshift[j] += dz[j];
      }
      dz[j] *= gain[j];
      sum1[j - whole] += dz[j];
      sum2[j - whole] += dz[j] * xhat;
    }
    float s1 = add_up(sum1) / (float)n, s2 = add_up(sum2) / (float)n;
    // derivative of ELU: 1 above 0, exp(x) = h + 1 below
    for (int j = 0; j < whole; j += B) {
      f8 y = load(h + j), dh = rs * (load(dz + j) - s1 - (y - mu) * rs * s2);
      store(d + j, dh * select(y > 0.0f, y - y + 1.0f, y + 1.0f));
    }
    for (int j = whole; j < n; j++) {
      float dh = rs * (dz[j] - s1 - (h[j] - mu) * rs * s2);
      d[j] = dh * (h[j] > 0 ? 1 : h[j] + 1);
    }
  }
}

// the same text for the processor at hand: same bits, half the time
#if defined __x86_64__
#define WIDE __attribute__((target("avx2")))
static WIDE void activate_fwd_wide(float *z, float *h, float *mean, float *rstd, const float *gain,
                                   const float *shift, int n, int rows) {
  activate_fwd_body(z, h, mean, rstd, gain, shift, n, rows);
}
static WIDE void activate_bwd_wide(float *d, float *dgain, float *dshift, float *dz, const float *h,
                                   const float *mean, const float *rstd, const float *gain, int n,
                                   int rows) {
  activate_bwd_body(d, dgain, dshift, dz, h, mean, rstd, gain, n, rows);
}
#define HAS_WIDE __builtin_cpu_supports("avx2")
#else
#define activate_fwd_wide activate_fwd_body
#define activate_bwd_wide activate_bwd_body
#define HAS_WIDE          0
#endif
static void activate_fwd(float *z, float *h, float *mean, float *rstd, const float *gain,
                         const float *shift, int n, int rows) {
  if (HAS_WIDE) {
    activate_fwd_wide(z, h, mean, rstd, gain, shift, n, rows);
  } else {
    activate_fwd_body(z, h, mean, rstd, gain, shift, n, rows);
  }
}
static void activate_bwd(float *d, float *dgain, float *dshift, float *dz, const float *h,
                         const float *mean, const float *rstd, const float *gain, int n, int rows) {
  if (HAS_WIDE) {
    activate_bwd_wide(d, dgain, dshift, dz, h, mean, rstd, gain, n, rows);
  } else {
    activate_bwd_body(d, dgain, dshift, dz, h, mean, rstd, gain, n, rows);
  }
}

// without LayerNorm: h alone
static void elu_fwd(float *h, size_t n) {
  size_t whole = n - n % B;
  for (size_t i = 0; i < whole; i += B) {
    store(h + i, elu(load(h + i)));
  }
  f8 e = elu(load_tail(h + whole, (int)(n - whole)));
  memcpy(h + whole, &e, sizeof(float) * (n - whole));
}
static void elu_bwd(float *d, const float *dh, const float *h, size_t n) {
  for (size_t i = 0; i < n; i++) {
    d[i] = dh[i] * (h[i] > 0 ? 1 : h[i] + 1);
  }
}

// y (rows, out) = x W' + b
static void linear_fwd(float *y, const struct mlp *m, const float *param, int l, const float *x,
                       int rows) {
  size_t out = (size_t)m->size[l + 1];
  for (int r = 0; r < rows; r++) {
    memcpy(y + (size_t)r * out, param + m->bias[l], sizeof(float) * out);
  }
  gemm_nt(y, x, param + m->weight[l], rows, m->size[l + 1], m->size[l], 1);
}

void mlp_fwd(float *y, struct mlp_cache *c, const struct mlp *m, const float *param, const float *x,
             int row, int rows) {
  for (int l = 0; l < m->nlayer - 1; l++) {
    size_t n = (size_t)m->size[l + 1];
    float *h = c->h[l] + (size_t)row * n, *z = c->z[l] + (size_t)row * n;
    linear_fwd(h, m, param, l, x, rows);
    if (m->layer_norm) {
      activate_fwd(z, h, c->mean[l] + row, c->rstd[l] + row, param + m->gain[l],
                   param + m->shift[l], (int)n, rows);
    } else {
      elu_fwd(h, (size_t)rows * n);
    }
    x = z;
  }
  linear_fwd(y, m, param, m->nlayer - 1, x, rows);
}

void mlp_bwd(float *dx, float *dparam, struct mlp_cache *c, const struct mlp *m, const float *param,
             const float *dy, int row, int rows, float *tmp) {
  int last = m->nlayer - 1;
  size_t nout = (size_t)m->size[m->nlayer];
  memcpy(c->d[last] + (size_t)row * nout, dy, sizeof(float) * (size_t)rows * nout);
  for (int l = last; l > 0; l--) {
    // through the Linear layer l, then the activation of layer l - 1
    int n = m->size[l];
    const float *d = c->d[l] + (size_t)row * (size_t)m->size[l + 1];
    gemm_nn(tmp, d, param + m->weight[l], rows, n, m->size[l + 1], 0);
    size_t at = (size_t)row * (size_t)n;
    if (m->layer_norm) {
      activate_bwd(c->d[l - 1] + at, dparam ? dparam + m->gain[l - 1] : NULL,
                   dparam ? dparam + m->shift[l - 1] : NULL, tmp, c->h[l - 1] + at,
                   c->mean[l - 1] + row, c->rstd[l - 1] + row, param + m->gain[l - 1], n, rows);
    } else {
      elu_bwd(c->d[l - 1] + at, tmp, c->h[l - 1] + at, (size_t)rows * (size_t)n);
    }
  }
  if (dx) {
    gemm_nn(dx, c->d[0] + (size_t)row * (size_t)m->size[1], param + m->weight[0], rows, m->size[0],
            m->size[1], 0);
  }
}

void mlp_grad(float *dparam, const struct mlp_cache *c, const struct mlp *m, const float *x,
              int row, int rows) {
  for (int l = 0; l < m->nlayer; l++) {
    size_t in = (size_t)m->size[l], out = (size_t)m->size[l + 1];
    const float *d = c->d[l] + (size_t)row * out;
    gemm_tn(dparam + m->weight[l], d, l ? c->z[l - 1] + (size_t)row * in : x, (int)out, (int)in,
            rows, 1);
    float *db = dparam + m->bias[l];
    for (int r = 0; r < rows; r++) {
      for (size_t j = 0; j < out; j++) {
        db[j] += d[(size_t)r * out + j];
      }
    }
  }
}

void mlp_eval(float *y, const struct mlp *m, const float *param, const float *x, int rows,
              float *tmp) {
  size_t block = (size_t)rows * (size_t)m->widest;
  float *h = tmp, *z = tmp + block, *mean = z + block, *rstd = mean + rows;
  for (int l = 0; l < m->nlayer - 1; l++) {
    // the product reads what the layer before left, so h cannot be that buffer
    linear_fwd(h, m, param, l, x, rows);
    if (m->layer_norm) {
      activate_fwd(z, h, mean, rstd, param + m->gain[l], param + m->shift[l], m->size[l + 1], rows);
      x = z;
    } else {
      elu_fwd(h, (size_t)rows * (size_t)m->size[l + 1]);
      float *out = h;
      h = z;
      x = z = out;
    }
  }
  linear_fwd(y, m, param, m->nlayer - 1, x, rows);
}
