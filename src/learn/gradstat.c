#include "learn/gradstat.h"
#include "base/rng.h"
#include "learn/gemm.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

// ---- gradients of one environment, a piece of the slab at a time

enum { TILE = 32 }; // outputs of a Linear layer in one piece

enum piece_kind {
  PIECE_LINEAR, // weights (count, in), then biases (count) of outputs first .. first + count
  PIECE_NORM,   // gains, then shifts of a hidden layer
  PIECE_SIGMA   // log sigma
};
struct piece {
  enum piece_kind kind;
  int layer, first, count;
  size_t size; // numbers
};

static int list_pieces(struct piece **piece, struct arena *a, const struct shac *s) {
  const struct mlp *m = &s->actor;
  int n = 0, room = 1;
  for (int l = 0; l < m->nlayer; l++) {
    room += 1 + (m->size[l + 1] + TILE - 1) / TILE;
  }
  struct piece *p = ARENA_NEW(a, struct piece, room);
  for (int l = 0; l < m->nlayer; l++) {
    int out = m->size[l + 1];
    for (int first = 0; first < out; first += TILE) {
      int count = out - first < TILE ? out - first : TILE;
      p[n++] =
          (struct piece){PIECE_LINEAR, l, first, count, (size_t)count * (size_t)(m->size[l] + 1)};
    }
    if (l < m->nlayer - 1 && m->layer_norm) {
      p[n++] = (struct piece){PIECE_NORM, l, 0, out, 2 * (size_t)out};
    }
  }
  p[n++] = (struct piece){PIECE_SIGMA, 0, 0, s->rollout.nu, (size_t)s->rollout.nu};
  *piece = p;
  return n;
}

static size_t largest_piece(const struct piece *p, int n) {
  size_t size = 0;
  for (int i = 0; i < n; i++) {
    size = p[i].size > size ? p[i].size : size;
  }
  return size;
}

struct gather { // one thread's: the rows of one environment, step by step
  float *d, *x, *dz;
};

static struct gather gather_new(struct arena *a, const struct shac *s) {
  size_t width = (size_t)s->actor.widest, N = (size_t)s->rollout.N;
  width = width > (size_t)s->rollout.nobs ? width : (size_t)s->rollout.nobs;
  return (struct gather){ARENA_NEW(a, float, N *width), ARENA_NEW(a, float, N *width),
                         ARENA_NEW(a, float, N *width)};
}

// to (N, count) = columns first .. first + count of env's rows of from (rows, width)
static void take_rows(float *to, const struct rollout *r, const float *from, int env, int width,
                      int first, int count) {
  for (int t = 0; t < r->N; t++) {
    memcpy(to + (size_t)t * (size_t)count,
           from + rollout_row(r, t, env) * (size_t)width + (size_t)first,
           sizeof(float) * (size_t)count);
  }
}

// g (piece.size) = env's part of the gradient, from the activations and deltas that the backward
// pass left in the cache
static void piece_linear(float *g, const struct shac *s, const struct gather *w,
                         const struct piece *p, int env) {
  const struct rollout *r = &s->rollout;
  const struct mlp *m = &s->actor;
  int in = m->size[p->layer], out = m->size[p->layer + 1];
  take_rows(w->d, r, s->cache.d[p->layer], env, out, p->first, p->count);
  take_rows(w->x, r, p->layer ? s->cache.z[p->layer - 1] : r->input, env, in, 0, in);
  gemm_tn(g, w->d, w->x, p->count, in, r->N, 0);
  float *bias = g + (size_t)p->count * (size_t)in;
  memset(bias, 0, sizeof(float) * (size_t)p->count);
  for (int t = 0; t < r->N; t++) {
    for (int j = 0; j < p->count; j++) {
      bias[j] += w->d[t * p->count + j];
    }
  }
}

static void piece_norm(float *g, const struct shac *s, const struct gather *w,
                       const struct piece *p, int env) {
  const struct rollout *r = &s->rollout;
  const struct mlp *m = &s->actor;
  int n = p->count, next = m->size[p->layer + 2];
  take_rows(w->d, r, s->cache.d[p->layer + 1], env, next, 0, next);
  take_rows(w->x, r, s->cache.h[p->layer], env, n, 0, n);
  gemm_nn(w->dz, w->d, s->param + m->weight[p->layer + 1], r->N, n, next, 0);
  memset(g, 0, sizeof(float) * 2 * (size_t)n);
  for (int t = 0; t < r->N; t++) {
    size_t row = rollout_row(r, t, env);
    float mean = s->cache.mean[p->layer][row], rstd = s->cache.rstd[p->layer][row];
    for (int j = 0; j < n; j++) {
      float dz = w->dz[t * n + j];
      g[j] += dz * (w->x[t * n + j] - mean) * rstd;
      g[n + j] += dz;
    }
  }
}

static void piece_sigma(float *g, const struct shac *s, int env) {
  const struct rollout *r = &s->rollout;
  const float *d = s->cache.d[s->actor.nlayer - 1];
  for (int j = 0; j < r->nu; j++) {
    double sum = 0;
    for (int t = 0; t < r->N; t++) {
      const struct lane_step *step = &r->step[t * r->ngroup + env / r->W];
      sum += (double)d[rollout_row(r, t, env) * (size_t)r->nu + (size_t)j] * s->sigma[j] *
             step->noise[j * r->W + env % r->W];
    }
    g[j] = (float)sum;
  }
}

static void piece_gradient(float *g, const struct shac *s, const struct gather *w,
                           const struct piece *p, int env) {
  switch (p->kind) {
  case PIECE_LINEAR:
    piece_linear(g, s, w, p, env);
    break;
  case PIECE_NORM:
    piece_norm(g, s, w, p, env);
    break;
  case PIECE_SIGMA:
    piece_sigma(g, s, env);
    break;
  }
}

void gradstat_share(float *grad, struct arena *a, const struct shac *s, int env) {
  struct arena_mark mark = arena_mark(a);
  const struct mlp *m = &s->actor;
  struct piece *piece;
  int n = list_pieces(&piece, a, s);
  struct gather w = gather_new(a, s);
  float *g = ARENA_NEW(a, float, largest_piece(piece, n));
  for (int i = 0; i < n; i++) {
    const struct piece *p = &piece[i];
    size_t in = (size_t)m->size[p->layer], count = (size_t)p->count, first = (size_t)p->first;
    piece_gradient(g, s, &w, p, env);
    switch (p->kind) {
    case PIECE_LINEAR:
      memcpy(grad + m->weight[p->layer] + first * in, g, sizeof(float) * count * in);
      memcpy(grad + m->bias[p->layer] + first, g + count * in, sizeof(float) * count);
      break;
    case PIECE_NORM:
      memcpy(grad + m->gain[p->layer], g, sizeof(float) * count);
      memcpy(grad + m->shift[p->layer], g + count, sizeof(float) * count);
      break;
    case PIECE_SIGMA:
      memcpy(grad + m->nparam, g, sizeof(float) * count);
      break;
    }
  }
  arena_reset(a, mark);
}

void gradstat_gram(double *gram, struct arena *a, const struct shac *s) {
  struct arena_mark mark = arena_mark(a);
  int E = s->rollout.E;
  size_t square = (size_t)E * (size_t)E;
  struct piece *piece;
  int n = list_pieces(&piece, a, s);
  float *part = ARENA_NEW(a, float, (size_t)n *square);
  struct gather *w = ARENA_NEW(a, struct gather, s->threads);
  float **g = ARENA_NEW(a, float *, s->threads);
  for (int i = 0; i < s->threads; i++) {
    w[i] = gather_new(a, s);
    g[i] = ARENA_NEW(a, float, (size_t)E *largest_piece(piece, n));
  }
#pragma omp parallel for schedule(dynamic) num_threads(s->threads)
  for (int i = 0; i < n; i++) {
    int thread = omp_get_thread_num(), size = (int)piece[i].size;
    for (int e = 0; e < E; e++) {
      piece_gradient(g[thread] + (size_t)e * (size_t)size, s, &w[thread], &piece[i], e);
    }
    gemm_nt(part + (size_t)i * square, g[thread], g[thread], E, E, size, 0);
  }
  // pieces in order, so that the sum does not depend on threads; shares are g_e / E
  double unit = (double)E * E;
  for (int e = 0; e < E; e++) {
    for (int f = 0; f <= e; f++) {
      double sum = 0;
      for (int i = 0; i < n; i++) {
        sum += (double)part[(size_t)i * square + (size_t)(e * E + f)];
      }
      gram[e * E + f] = gram[f * E + e] = sum * unit;
    }
  }
  arena_reset(a, mark);
}

// ---- statistics

static int compare_reals(const void *pa, const void *pb) {
  double a = *(const double *)pa, b = *(const double *)pb;
  return (a > b) - (a < b);
}

// quantile q of sorted numbers, between neighbours
static double quantile(const double *x, int n, double q) {
  double at = q * (n - 1);
  int i = (int)at;
  return i + 1 < n ? x[i] + (at - i) * (x[i + 1] - x[i]) : x[n - 1];
}

void gradstat_interval(double *lo, double *hi, double *x, int n, double share) {
  if (n == 0) {
    *lo = *hi = NAN;
    return;
  }
  qsort(x, (size_t)n, sizeof *x, compare_reals);
  *lo = quantile(x, n, 0.5 - share / 2);
  *hi = quantile(x, n, 0.5 + share / 2);
}

double gradstat_median(double *x, int n) {
  double lo, hi;
  gradstat_interval(&lo, &hi, x, n, 0);
  return lo;
}

// V, D and |mean|^2 of one window in which environment e counts count[e] times
static void window_statistics(double *variance, double *direction, double *mean_square,
                              const double *gram, const int *count, int E) {
  double own = 0, all = 0, unit = 0;
  for (int e = 0; e < E; e++) {
    if (count[e] == 0) {
      continue;
    }
    double ge = gram[e * E + e], row = 0, urow = 0;
    for (int f = 0; f < E; f++) {
      double gf = gram[f * E + f];
      row += count[f] * gram[e * E + f];
      // an environment without a gradient has no direction: it adds nothing to the mean
      urow += ge > 0 && gf > 0 ? count[f] * gram[e * E + f] / sqrt(ge * gf) : 0;
    }
    own += count[e] * ge;
    all += count[e] * row;
    unit += count[e] * urow;
  }
  *variance = (own - all / E) / (E - 1);
  *direction = 1 - unit / E / E;
  *mean_square = all / E / E;
}

void gradstat_measure(struct gradstat *g, struct arena *a, const double *gram, int windows, int E,
                      int resamples, uint64_t seed) {
  *g = (struct gradstat){.resampled = ARENA_NEW(a, double, resamples)};
  struct arena_mark mark = arena_mark(a);
  size_t square = (size_t)E * (size_t)E;
  int *count = ARENA_NEW(a, int, E);
  double *v = ARENA_NEW(a, double, windows), *norm = ARENA_NEW(a, double, windows *E);
  double *direction = ARENA_NEW(a, double, resamples), *sorted = ARENA_NEW(a, double, resamples);
  for (int e = 0; e < E; e++) {
    count[e] = 1;
  }
  for (int k = 0; k < windows; k++) {
    double d, mean_square;
    window_statistics(&v[k], &d, &mean_square, gram + (size_t)k * square, count, E);
    g->variance.mean += v[k] / windows;
    g->direction.mean += d / windows;
    g->mean_norm += sqrt(mean_square > 0 ? mean_square : 0) / windows;
    for (int e = 0; e < E; e++) {
      norm[k * E + e] = sqrt(gram[(size_t)k * square + (size_t)(e * E + e)]);
    }
  }
  g->variance_median = gradstat_median(v, windows);
  g->norm_median = gradstat_median(norm, windows * E);

  double correction = (double)E / (E - 1);
  for (int i = 0; i < resamples; i++) {
    struct rng draw = rng_stream(seed, RNG_BOOTSTRAP, 0, 0, (uint32_t)i);
    memset(count, 0, sizeof *count * (size_t)E);
    for (int e = 0; e < E; e++) {
      count[rng_below(&draw, (uint32_t)E)]++;
    }
    g->resampled[i] = direction[i] = 0;
    for (int k = 0; k < windows; k++) {
      double vk, dk, mean_square;
      window_statistics(&vk, &dk, &mean_square, gram + (size_t)k * square, count, E);
      g->resampled[i] += correction * vk / windows;
      direction[i] += correction * dk / windows;
    }
    sorted[i] = g->resampled[i];
  }
  gradstat_interval(&g->variance.lo, &g->variance.hi, sorted, resamples, 0.95);
  gradstat_interval(&g->direction.lo, &g->direction.hi, direction, resamples, 0.95);
  arena_reset(a, mark);
}
