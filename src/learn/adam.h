// Adam (Kingma & Ba, arXiv 1412.6980) over a slab of floats, and the sums of gradients before it.
// Slabs are worked on in blocks of ADAM_BLOCK numbers, by any thread: each number's result depends
// on nothing but itself, and square sums of blocks are added in order, so no result depends on the
// number of threads.
#pragma once
#include "base/arena.h"
#include <stdint.h>

enum { ADAM_BLOCK = 8192 };

struct adam {
  size_t n;
  float *m, *v; // (n) first and second moment
  double beta1, beta2;
  double power1, power2; // beta^steps
  int64_t steps;
};

void adam_new(struct adam *a, struct arena *arena, size_t n, double beta1, double beta2);
int adam_blocks(size_t n); // how many blocks n numbers have

// part[0] block += part[1] + ... in order; returns the block's sum of squares.
double adam_sum_block(float *const *part, int nparts, size_t n, int block);
// Index of the first number that is not finite, or -1.
int64_t adam_find_nonfinite(const float *x, size_t n);

void adam_begin(struct adam *a); // once per update, before its blocks
// param -= lr * m^ / (sqrt(v^) + 1e-8) with the gradient times scale (norm clip)
void adam_apply_block(struct adam *a, float *param, const float *grad, double lr, double scale,
                      int block);

// Linear decay: start at iteration 0, end from iteration `over` on.
double adam_decay(double start, double end, int64_t iteration, int64_t over);
