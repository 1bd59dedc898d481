// Adversarial Differential Discriminators (ADD, arXiv 2505.04961): the reward is what a
// discriminator, trained beside the policy, thinks of the residual between reference and robot
// (task/residual.inl). One positive sample exists, the residual of perfection: zero. Here the
// reward is differentiated with respect to the residual, and rollout_reach_bwd goes on from there.
//
// The reward does not influence a window, so residuals are stored and judged once per iteration, in
// products over many rows. Order of an iteration: add_judge in every shard's forward pass, with
// last iteration's discriminator and normaliser; add_train after the policy's backward pass;
// add_finish.
//
// Residuals are divided by the running mean of their absolute values, number by number. The replay
// buffer holds them undivided.
#pragma once
#include "base/arena.h"
#include "learn/discriminator.h"
#include "learn/rollout.h"
#include "spec/spec.h"
#include <stdbool.h>
#include <stdint.h>

enum { ADD_CHUNK = 128 }; // rows that share a matrix product; fixed, for the same results always

struct add_sums {         // over the rows of one shard
  double out, grad, told; // D; |dD/dx|, x normalised; rows with D < 0, told from the reference
};

struct add_report {
  double out, zero, told, grad; // means of D over the window; D(0); share told; mean |dD/dx|
};

struct add {
  const struct spec *spec;
  int nres, rows; // rows of a window
  struct disc net;
  float *param, *velocity; // slabs: weights, SGD's momentum
  double *mean, count;     // (nres) of |residual|, over count samples
  float *inverse;          // (nres) 1 / max(mean, 1e-4), kept in step by add_refresh
  float *replay;           // (spec add.replay, nres) ring
  int64_t replay_head, replay_count;

  int64_t bad_updates; // left out in this process's time, for a gradient that was not finite
  // scratch
  bool finite;
  double *total;          // (nres)
  int *order;             // (rows) shuffled
  float **grad;           // (chunks of a batch) slabs
  double *square;         // (blocks of the slab)
  struct add_sums *sum;   // (nshard)
  struct add_work **work; // (threads)
};

void add_new(struct add *a, struct arena *arena, const struct spec *s, int nres, int rows,
             int nshard, int threads);
void add_refresh(struct add *a); // after mean was set from outside

// reward (rows) = scale * min(softplus(D), clamp) of residual (rows, nres), and slope (rows, nres),
// its gradient with respect to the residual. thread's work space; sums go to the shard's.
void add_judge(double *reward, float *slope, struct add *a, const float *residual, int rows,
               int shard, int thread);
// The same for the residuals of a shard's window, into the rollout's slopes; the rewards are added
// to the rollout's, but to those of states that are not finite. reward: scratch (N * S).
void add_judge_shard(struct add *a, struct rollout *r, double *reward, int shard, int thread);
// What the window's judgement was; D(0) with the same weights. Call before add_train.
void add_sum_up(struct add_report *p, struct add *a, int nshard);

// Pushes residuals of the window (rows, nres) into the replay buffer and takes the updates of
// add.epochs passes. Called by every thread of a parallel region, or outside of one.
void add_train(struct add *a, const float *residual, int64_t iteration);
// Merges the window's residuals into the normaliser.
void add_finish(struct add *a, const float *residual);
