// Counter-based random numbers (Philox 4x32-10 of Random123): a number is a pure function of
// (seed, purpose) and (env, episode, step, draw). Adding a consumer or a thread changes nobody
// else's numbers, and a checkpoint needs no generator state.
#pragma once
#include <stdint.h>

// One row per consumer; append only, so old runs keep their numbers.
enum rng_purpose {
  RNG_INIT_WEIGHTS,
  RNG_RESET,
  RNG_ACTION,
  RNG_OBS_NOISE,
  RNG_BUNDLE,
  RNG_SHUFFLE,
  RNG_RANDOMISE,
  RNG_PUSH,
  RNG_EVAL,
  RNG_REPLAY,
  RNG_BOOTSTRAP,
  RNG_TEST,
  RNG_SYNTH,
  RNG_ESTIMATE,
};

struct rng {
  uint32_t key[2]; // seed folded with purpose
  uint32_t ctr[4]; // env, episode, step, block of draws
  uint32_t buf[4]; // the block in use
  int left;        // unused words in buf
};

// A stream for one (seed, purpose, env, episode, step). Draws follow one another from 0.
struct rng rng_stream(uint64_t seed, enum rng_purpose purpose, uint32_t env, uint32_t episode,
                      uint32_t step);
uint32_t rng_u32(struct rng *r);
double rng_uniform(struct rng *r);                     // in (0, 1)
double rng_range(struct rng *r, double lo, double hi); // in (lo, hi)
double rng_normal(struct rng *r);                      // Box-Muller, two words a number
uint32_t rng_below(struct rng *r, uint32_t n);         // 0..n-1, unbiased
void rng_shuffle(struct rng *r, int *order, int n);    // order = 0..n-1, shuffled
