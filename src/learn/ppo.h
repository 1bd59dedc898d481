// Proximal policy optimisation (Schulman et al., arXiv 1707.06347) with the settings of RSL-RL: the
// baseline that uses no gradient of the simulator. Environment, observations, reward and policy are
// those of SHAC; only the rollout's forward half is used.
//
// One iteration: roll every environment N steps; values of all states, advantages by GAE(lambda),
// normalised over the window; ppo.epochs passes over the shuffled rows in ppo.batches mini-batches.
// Each mini-batch of size M takes one Adam step of the policy and one of the critics:
//   L_actor  = mean max(-A r, -A clip(r, 1 - c, 1 + c)) - ppo.entropy H,  r = pi(a|s) / pi_old(a|s)
//   L_critic = ppo.value_coef mean max((v - R)^2, (clip(v, v_old - c, v_old + c) - R)^2)
// and both learning rates follow the mini-batch's mean KL(pi_old | pi) before its step.
//
// A mini-batch's rows are summed over in PPO_PARTS parts of fixed chunks, parts in order: nothing
// depends on threads.
#pragma once
#include "learn/adam.h"
#include "learn/add.h"
#include "learn/critic.h"
#include "learn/report.h"
#include "learn/rollout.h"

enum { PPO_PARTS = 32 };

struct ppo_sums { // over rows
  double surrogate, value_loss, kl;
  int64_t rows;
};

struct ppo_work { // one thread's
  struct rollout_work *rollout;
  struct critic_work critic;
  struct mlp_cache cache;     // CRITIC_CHUNK rows
  float *x, *mean, *dmean;    // (chunk, nobs), (chunk, nu), (chunk, nu)
  float *tmp;                 // of the policy's products
  double *value, *next_value; // (N, S)
  double sim_seconds;
};

struct ppo {
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
  struct critic critic;
  struct add *add;            // NULL without a discriminator
  double lr_actor, lr_critic; // now
  int bad_updates;            // iterations in a row that left an update of the policy out

  // the window, in rows as rollout_row orders them: means and actions of the policy that rolled it
  float *mean, *action; // (rows, nu)
  double *sigma;        // (nu) its deviations
  // (N, E): log pi_old(a|s) without its constant; values of the state before and after each step
  // (the latter 0 where the episode failed); advantages; TD(lambda) targets
  double *logp, *value, *next_value, *advantage, *target;

  // one mini-batch
  int *order;                  // (rows) indices t E + e, shuffled
  double *sigma_now;           // (nu)
  float **grad, **critic_grad; // (PPO_PARTS) slabs
  double *dlog_sigma;          // (PPO_PARTS, nu)
  struct ppo_sums *part;       // (PPO_PARTS)
  double *square;              // scratch of updates
  struct adam_update actor_update, critic_update;

  int threads;
  struct ppo_work *work; // (threads)
};

// A fresh learner: weights, statistics and first episodes drawn from the seed.
void ppo_new(struct ppo *p, struct arena *a, const struct world *w);
// One iteration. EXIT_NUMERIC when gradients of the policy were not finite in ten of them in a row.
int ppo_iterate(struct ppo *p, struct learn_report *report, struct err *e);

// ---- parts of an iteration, for tests

// One sample's surrogate loss, and its derivative by log pi(a|s).
double ppo_surrogate(double *dlogp, double ratio, double advantage, double clip);
// One sample's value loss, and its derivative by v.
double ppo_value_loss(double *dv, double v, double v_old, double target, double clip);
// The learning rate after a mini-batch: down by 1.5 when kl > 2 target, up when 0 < kl < target /
// 2, within [lo, hi]; target 0 or a kl that is not finite change nothing.
double ppo_adapt(double lr, double kl, double target, double lo, double hi);
// Rolls all environments and fills values, advantages and targets.
void ppo_rollout(struct ppo *p);
// Losses of rows first .. end of p->order under the weights as they are, as one mini-batch: sums in
// part[0]; gradients in grad[0] and critic_grad[0].
void ppo_gradient(struct ppo *p, int first, int end);
