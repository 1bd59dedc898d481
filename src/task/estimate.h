// Estimators of the gradient of a loss that a rollout through contact gives, over any problem that
// can be rolled out, and the problems they are compared on.
//
//   plain            adjoint of fixed steps
//   adaptive         adjoint of the arithmetic of adaptive steps, as arXiv 2506.14186 publishes it
//   adaptive_events  the same with the terms of touchdown and lift-off
//   cfd              fixed steps, contacts from distance in the backward pass
//   adaptive_cfd     both
//   bundle           mean of plain over rollouts whose start is shifted by normal noise (spread,
//   m):
//                    the bundling of arXiv 2609.30951 with its window as long as the rollout
//   smooth_first     mean of plain at inputs u + sigma e, e normal: an unbiased estimate of the
//                    gradient of E L(u + sigma e) where the rollout is continuous
//   smooth_zeroth    mean of (L(u + sigma e) - L(u - sigma e)) e / 2 sigma: the same without
//                    gradients; exact in expectation up to the third derivative
//
// The truth is the derivative of the converged problem: Dopri8 at 1e-11 with steps that end at
// events and the terms of those; for smoothing too, so that its bias holds what smoothing changes.
#pragma once
#include "base/arena.h"
#include "base/rng.h"
#include <stdbool.h>
#include <stdint.h>

enum { ESTIMATE_MAX = 32 }; // inputs

enum estimate_kind {
  ESTIMATE_TRUTH,
  ESTIMATE_PLAIN,
  ESTIMATE_ADAPTIVE,
  ESTIMATE_EVENTS,
  ESTIMATE_CFD,
  ESTIMATE_ADAPTIVE_CFD,
  ESTIMATE_BUNDLE,
  ESTIMATE_FIRST,
  ESTIMATE_ZEROTH,
  ESTIMATE_KINDS,
};
extern const char *const estimate_name[ESTIMATE_KINDS];
static inline bool estimate_draws(enum estimate_kind k) {
  return k >= ESTIMATE_BUNDLE;
}

struct rollout_request {
  bool fixed, cfd, exact, events, gradient;
  const double *u, *shift; // shift (2) of the start, or NULL
};
struct rollout_answer {
  bool ok;
  double loss, grad[ESTIMATE_MAX];
  long long cost; // right-hand sides: of the forward pass, and twice those of accepted steps in the
                  // adjoint, which makes them again
};

struct problem {
  const char *name;
  int n;
  double start[ESTIMATE_MAX]; // of the optimisation
  double around;  // gradients are compared at start + around * normal, at a few such places
  double sigma;   // of smoothing, in units of the inputs
  double spread;  // m, of bundles
  double lr;      // of Adam
  double success; // loss at which the task counts as solved
  void (*roll)(struct rollout_answer *out, const struct problem *p, struct arena *a,
               const struct rollout_request *r);
  int which;        // task of the roll
  const void *more; // settings of the roll
};

struct estimate {
  bool ok;
  double loss; // at u, where it was rolled out; else NaN
  double grad[ESTIMATE_MAX];
  long long cost;
};
// samples: rollouts of the kinds that draw (zeroth: samples / 2 pairs).
void estimate_gradient(struct estimate *out, const struct problem *p, struct arena *a,
                       enum estimate_kind kind, const double *u, int samples, struct rng *rng);

struct estimate_settings { // of the shipped problems
  double tolerance;        // of adaptive steps
  double cfd_solimp[5];
  bool cfd_softplus;
};
enum { ESTIMATE_PROBLEMS = 6 };
// bounce, toss, billiard, ground, ground_wall, two_balls. settings must outlive p.
void estimate_problem(struct problem *p, int which, const struct estimate_settings *settings);
