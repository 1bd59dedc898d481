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

// One block of n numbers: part[0] += part[1] + ... in order; returns the sum of its squares.
double gradient_sum(float *const *part, int nparts, size_t n, int block);

// Index of the first number that is not finite, or -1.
int64_t adam_find_nonfinite(const float *x, size_t n);

// One update of a slab from gradients in parts: part[0] += part[1] + ... in order, the norm
// clipped, Adam. A gradient that is not finite changes nothing.
struct adam_update {
  struct adam *adam;
  float *param;
  float **part;
  int nparts;
  double lr, clip;
  double *square;    // (adam_blocks) scratch
  double norm;       // out: of the gradient before clipping
  int64_t nonfinite; // out: index of the first number that is not finite, or -1
};
// Called by every thread of a parallel region, or outside of one.
void adam_update_run(struct adam_update *u);

// Linear decay: start at iteration 0, end from iteration `over` on.
double adam_decay(double start, double end, int64_t iteration, int64_t over);
