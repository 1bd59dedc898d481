// Short-horizon actor-critic (Xu et al., arXiv 2204.07137) in the variant of PWM: no target
// network, three critics of which the smallest value counts, returns normalised by their running
// deviation.
//
// One iteration: roll every environment N steps; values of the states reached; the gradient of
//   L = scale * sum_e -[ sum_k gamma^k r + gamma^n V ]
// by going back through simulator, reward, observation and policy; one Adam step of the policy; TD
// (lambda) targets; a few Adam steps of the critics; observation statistics last. Everything is a
// function of the spec, the seed and the BLAS kernel: not of threads.
#pragma once
#include "learn/adam.h"
#include "learn/add.h"
#include "learn/critic.h"
#include "learn/policy.h"
#include "learn/report.h"
#include "learn/returns.h"
#include "learn/rollout.h"

struct shac_work { // one thread's
  struct rollout_work *rollout;
  struct critic_work critic;
  float *tmp, *dmean, *dx;
  double *value, *dvalue;
  double sim_seconds;
};

struct shac {
  const struct spec *spec;
  const struct world *world;
  struct rollout rollout;
  int64_t iteration, env_steps; // done so far

  // policy: slab of the network, then log sigma (nu)
  struct mlp actor;
  size_t nactor;
  float *param;
  struct adam adam;
  struct normalizer norm;
  struct mlp_cache cache;
  float **grad;       // (nshard) slabs of nactor
  double *dlog_sigma; // (nshard, nu)
  double *sigma;      // (nu) of this iteration
  float *mean;        // (rows, nu)
  int bad_updates;    // updates in a row left out for a gradient that was not finite

  struct critic critic;
  float **critic_grad;      // (chunks of a batch) slabs of critic.nparam
  double *critic_part;      // (chunks, critics) losses
  int *order;               // (rows) shuffled
  float *batch_x, *batch_y; // rows in that order: observations, targets in units
  double *square;           // scratch of updates

  struct add *add; // NULL without a discriminator

  struct return_stats returns;
  double *value, *target, *discount; // (N, E)
  double *loss;                      // (E)
  double scale;                      // of the losses

  int threads;
  struct shac_work *work; // (threads)
};

// A fresh learner: weights, statistics and first episodes drawn from the seed.
void shac_new(struct shac *s, struct arena *a, const struct world *w);
// One iteration. EXIT_NUMERIC when the policy's gradient was not finite ten times in a row.
int shac_iterate(struct shac *s, struct learn_report *report, struct err *e);

// Parts of an iteration, for tests and for measuring gradients: rolls all environments and fills
// values, losses and discounts; then the gradient of scale * sum_e loss[e] into s->grad[0] (the
// network's slab, then log sigma).
void shac_rollout(struct shac *s);
void shac_gradient(struct shac *s, double scale);
