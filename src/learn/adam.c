#include "learn/adam.h"
#include <math.h>

void adam_new(struct adam *a, struct arena *arena, size_t n, double beta1, double beta2) {
  *a = (struct adam){.n = n, .beta1 = beta1, .beta2 = beta2, .power1 = 1, .power2 = 1};
  a->m = ARENA_NEW(arena, float, n);
  a->v = ARENA_NEW(arena, float, n);
}

int adam_blocks(size_t n) {
  return (int)((n + ADAM_BLOCK - 1) / ADAM_BLOCK);
}

static size_t block_end(size_t n, int block) {
  size_t end = ((size_t)block + 1) * ADAM_BLOCK;
  return end < n ? end : n;
}

double gradient_sum(float *const *part, int nparts, size_t n, int block) {
  size_t first = (size_t)block * ADAM_BLOCK, end = block_end(n, block);
  float *sum = part[0];
  for (int p = 1; p < nparts; p++) {
    const float *x = part[p];
    for (size_t i = first; i < end; i++) {
      sum[i] += x[i];
    }
  }
  // eight partial sums: a fixed order that the compiler can vectorise
  double square[8] = {0};
  size_t i = first;
  for (; i + 8 <= end; i += 8) {
    for (size_t l = 0; l < 8; l++) {
      square[l] += (double)sum[i + l] * (double)sum[i + l];
    }
  }
  for (; i < end; i++) {
    square[0] += (double)sum[i] * (double)sum[i];
  }
  double total = 0;
  for (int l = 0; l < 8; l++) {
    total += square[l];
  }
  return total;
}

int64_t adam_find_nonfinite(const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!isfinite(x[i])) {
      return (int64_t)i;
    }
  }
  return -1;
}

// param -= lr m^ / (sqrt(v^) + 1e-8), with the gradient times scale
static void apply_block(struct adam *a, float *param, const float *grad, double lr, double scale,
                        int block) {
  const float b1 = (float)a->beta1, b2 = (float)a->beta2, k = (float)scale;
  const float c1 = (float)(lr / (1 - a->power1)), c2 = (float)(1 / (1 - a->power2));
  float *m = a->m, *v = a->v;
  size_t end = block_end(a->n, block);
  for (size_t i = (size_t)block * ADAM_BLOCK; i < end; i++) {
    float g = grad[i] * k;
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    param[i] -= c1 * m[i] / (__builtin_sqrtf(v[i] * c2) + 1e-8f);
  }
}

void adam_update_run(struct adam_update *u) {
  struct adam *a = u->adam;
  int nblock = adam_blocks(a->n);
#pragma omp for schedule(static)
  for (int b = 0; b < nblock; b++) {
    u->square[b] = gradient_sum(u->part, u->nparts, a->n, b);
  }
#pragma omp single
  {
    double square = 0;
    for (int b = 0; b < nblock; b++) {
      square += u->square[b];
    }
    u->norm = sqrt(square);
    u->nonfinite = isfinite(u->norm) ? -1 : adam_find_nonfinite(u->part[0], a->n);
    if (u->nonfinite < 0) {
      a->steps++;
      a->power1 *= a->beta1;
      a->power2 *= a->beta2;
    }
  }
  if (u->nonfinite < 0) {
    double scale = u->norm > u->clip ? u->clip / u->norm : 1;
#pragma omp for schedule(static)
    for (int b = 0; b < nblock; b++) {
      apply_block(a, u->param, u->part[0], u->lr, scale, b);
    }
  }
}

double adam_decay(double start, double end, int64_t iteration, int64_t over) {
  double done = iteration < over ? (double)iteration / (double)over : 1;
  double rate = start * (1 - done);
  return rate > end ? rate : end;
}
