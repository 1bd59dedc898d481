#include "base/rng.h"
#include "base/err.h"
#include <math.h>
#include <Random123/philox.h>
#include <sleef.h>

struct rng rng_stream(uint64_t seed, enum rng_purpose purpose, uint32_t env, uint32_t episode,
                      uint32_t step) {
  // multiplying by an odd number spreads neighbouring purposes and stays one-to-one
  uint32_t fold = 0x9E3779B9u * ((uint32_t)purpose + 1);
  return (struct rng){
      .key = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ fold},
      .ctr = {env, episode, step, 0},
  };
}

uint32_t rng_u32(struct rng *r) {
  if (r->left == 0) {
    philox4x32_ctr_t ctr = {{r->ctr[0], r->ctr[1], r->ctr[2], r->ctr[3]}};
    philox4x32_key_t key = {{r->key[0], r->key[1]}};
    philox4x32_ctr_t out = philox4x32(ctr, key); // ten rounds
    for (int i = 0; i < 4; i++) {
      r->buf[i] = out.v[i];
    }
    r->ctr[3]++;
    r->left = 4;
  }
  return r->buf[4 - r->left--];
}

double rng_uniform(struct rng *r) {
  return (rng_u32(r) + 0.5) * 0x1p-32; // the half keeps 0 and 1 out
}

double rng_range(struct rng *r, double lo, double hi) {
  return lo + (hi - lo) * rng_uniform(r);
}

double rng_normal(struct rng *r) {
  // SLEEF's cinz functions, because the C library picks log and cos by processor and their last
  // bits differ
  double u = rng_uniform(r);
  double v = rng_uniform(r);
  return sqrt(-2 * Sleef_cinz_logd1_u10purec(u)) * Sleef_cinz_cosd1_u10purec(6.283185307179586 * v);
}

uint32_t rng_below(struct rng *r, uint32_t n) {
  BUG_IF(n == 0);
  // multiply and keep the high word; words whose low part falls into the uneven rest are redrawn
  uint32_t uneven = -n % n;
  uint64_t wide;
  do {
    wide = (uint64_t)rng_u32(r) * n;
  } while ((uint32_t)wide < uneven);
  return (uint32_t)(wide >> 32);
}

void rng_shuffle(struct rng *r, int *order, int n) {
  for (int i = 0; i < n; i++) {
    order[i] = i;
  }
  for (int i = n - 1; i > 0; i--) {
    int j = (int)rng_below(r, (uint32_t)i + 1), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
}
