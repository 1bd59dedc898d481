#include "learn/ppo.h"
#include "base/log.h"
#include "learn/returns.h"
#include <math.h>
#include <omp.h>
#include <sleef.h>
#include <string.h>

enum { PATIENCE = 10 };                 // iterations without a whole update before giving up
static const double LOG_SIGMA_MIN = -9; // deviations stay above 1e-4
static const double ENTROPY_1 = 1.4189385332046727; // of a normal of deviation 1: log(2 pi e) / 2

void ppo_new(struct ppo *p, struct arena *a, const struct world *w) {
  const struct spec *spec = w->spec;
  *p = (struct ppo){.spec = spec, .world = w};
  rollout_new(&p->rollout, a, w, false);
  const struct rollout *r = &p->rollout;
  size_t rows = (size_t)r->E * (size_t)r->N, nu = (size_t)r->nu;

  mlp_shape(&p->actor, r->nobs, spec->actor_layers.v, spec->actor_layers.n, r->nu,
            spec->layer_norm);
  p->nactor = p->actor.nparam + nu;
  p->param = ARENA_NEW(a, float, p->nactor);
  // small first actions: rollouts start near the default pose
  mlp_init(p->param, &p->actor, (uint64_t)spec->seed, 0, 0.01);
  for (size_t j = 0; j < nu; j++) {
    p->param[p->actor.nparam + j] = (float)Sleef_cinz_logd1_u10purec(spec->sigma0);
  }
  adam_new(&p->adam, a, p->nactor, spec->adam_beta1, spec->adam_beta2);
  normalizer_new(&p->norm, a, r->nobs);
  critic_new(&p->critic, a, spec, r->nobs);
  if (spec->reward == REWARD_ADD) {
    p->add = ARENA_NEW(a, struct add, 1);
    add_new(p->add, a, spec, w->track.nres, (int)rows, r->nshard, w->threads);
  }
  p->lr_actor = spec->actor_lr;
  p->lr_critic = spec->critic_lr;

  p->mean = ARENA_NEW(a, float, rows *nu);
  p->action = ARENA_NEW(a, float, rows *nu);
  p->sigma = ARENA_NEW(a, double, nu);
  p->logp = ARENA_NEW(a, double, rows);
  p->value = ARENA_NEW(a, double, rows);
  p->next_value = ARENA_NEW(a, double, rows);
  p->advantage = ARENA_NEW(a, double, rows);
  p->target = ARENA_NEW(a, double, rows);

  p->order = ARENA_NEW(a, int, rows);
  p->sigma_now = ARENA_NEW(a, double, nu);
  p->grad = ARENA_NEW(a, float *, PPO_PARTS);
  p->critic_grad = ARENA_NEW(a, float *, PPO_PARTS);
  for (int i = 0; i < PPO_PARTS; i++) {
    p->grad[i] = ARENA_NEW(a, float, p->nactor);
    p->critic_grad[i] = ARENA_NEW(a, float, p->critic.nparam);
  }
  p->dlog_sigma = ARENA_NEW(a, double, PPO_PARTS * r->nu);
  p->part = ARENA_NEW(a, struct ppo_sums, PPO_PARTS);
  size_t largest = p->critic.nparam > p->nactor ? p->critic.nparam : p->nactor;
  p->square = ARENA_NEW(a, double, adam_blocks(largest));
  p->actor_update = (struct adam_update){.adam = &p->adam,
                                         .param = p->param,
                                         .part = p->grad,
                                         .clip = spec->actor_grad_norm,
                                         .square = p->square};
  p->critic_update = (struct adam_update){.adam = &p->critic.adam,
                                          .param = p->critic.param,
                                          .part = p->critic_grad,
                                          .clip = spec->critic_grad_norm,
                                          .square = p->square};

  p->threads = w->threads;
  p->work = ARENA_NEW(a, struct ppo_work, p->threads);
  int most = r->S > CRITIC_CHUNK ? r->S : CRITIC_CHUNK; // rows of a product
  for (int i = 0; i < p->threads; i++) {
    struct ppo_work *k = &p->work[i];
    k->rollout = rollout_work_new(a, r);
    critic_work_new(&k->critic, a, &p->critic);
    mlp_cache_new(&k->cache, a, &p->actor, CRITIC_CHUNK);
    k->x = ARENA_NEW(a, float, CRITIC_CHUNK * r->nobs);
    k->mean = ARENA_NEW(a, float, CRITIC_CHUNK * r->nu);
    k->dmean = ARENA_NEW(a, float, CRITIC_CHUNK * r->nu);
    k->tmp = ARENA_NEW(a, float, 2 * most * (p->actor.widest + 1));
    k->value = ARENA_NEW(a, double, r->N * r->S);
    k->next_value = ARENA_NEW(a, double, r->N * r->S);
  }
  rollout_reference_statistics(&p->norm, a, r, p->work[0].rollout);
}

// ---- the window

static float *rows_at(const struct rollout *r, float *x, int t, int e, int width) {
  return x + rollout_row(r, t, e) * (size_t)width;
}

// log density of a normal action without the constant nu log(2 pi) / 2, which no ratio sees
static double log_density(const float *action, const float *mean, const double *sigma,
                          double log_sigma_sum, int nu) {
  double sum = 0;
  for (int j = 0; j < nu; j++) {
    double z = ((double)action[j] - (double)mean[j]) / sigma[j];
    sum += z * z;
  }
  return -0.5 * sum - log_sigma_sum;
}

static double sum_of_logs(const double *sigma, int nu) {
  double sum = 0;
  for (int j = 0; j < nu; j++) {
    sum += Sleef_cinz_logd1_u10purec(sigma[j]);
  }
  return sum;
}

// actions of step t as rows, and what the policy thought of them
static void keep_actions(struct ppo *p, int t, int e0) {
  const struct rollout *r = &p->rollout;
  double log_sigma_sum = sum_of_logs(p->sigma, r->nu);
  for (int e = e0; e < e0 + r->S; e++) {
    const struct lane_step *step = &r->step[t * r->ngroup + e / r->W];
    float *action = rows_at(r, p->action, t, e, r->nu);
    for (int j = 0; j < r->nu; j++) {
      action[j] = (float)step->action[j * r->W + e % r->W];
    }
    p->logp[t * r->E + e] =
        log_density(action, rows_at(r, p->mean, t, e, r->nu), p->sigma, log_sigma_sum, r->nu);
  }
}

static void shard_forward(struct ppo *p, struct ppo_work *w, int shard) {
  struct rollout *r = &p->rollout;
  int e0 = shard * r->S, g0 = e0 / r->W, g1 = g0 + r->S / r->W;
  rollout_begin(r, shard);
  for (int t = 0; t < r->N; t++) {
    double start = wall_seconds();
    for (int g = g0; g < g1; g++) {
      rollout_observe(r, w->rollout, &p->norm, t, g);
    }
    w->sim_seconds += wall_seconds() - start;
    float *mean = rows_at(r, p->mean, t, e0, r->nu);
    mlp_eval(mean, &p->actor, p->param, rows_at(r, r->input, t, e0, r->nobs), r->S, w->tmp);
    start = wall_seconds();
    for (int g = g0; g < g1; g++) {
      rollout_act(r, mean + (g - g0) * r->W * r->nu, p->sigma, t, g);
    }
    keep_actions(p, t, e0);
    rollout_step(r, w->rollout, t, shard);
    for (int g = g0; g < g1; g++) {
      rollout_reach(r, w->rollout, &p->norm, t, g);
    }
    w->sim_seconds += wall_seconds() - start;
  }
  if (p->add) {
    add_judge_shard(p->add, r, w->value, shard, omp_get_thread_num());
  }

  // a truncated episode goes on in its value: that of the state before the reset
  critic_value(w->value, &p->critic, &w->critic, rows_at(r, r->obs, 0, e0, r->nobs), r->N * r->S);
  critic_value(w->next_value, &p->critic, &w->critic, rows_at(r, r->next, 0, e0, r->nobs),
               r->N * r->S);
  for (int t = 0; t < r->N; t++) {
    for (int e = 0; e < r->S; e++) {
      int i = t * r->E + e0 + e;
      bool failed = r->end[i] == TRACK_FAILED || r->end[i] == TRACK_NONFINITE;
      p->value[i] = w->value[t * r->S + e];
      p->next_value[i] = failed ? 0 : w->next_value[t * r->S + e];
    }
  }
  returns_advantages(p->advantage, p->target, r->reward, p->value, p->next_value, r->end, r->N,
                     r->E, p->spec->gamma, p->spec->lambda, e0, r->S);
}

static void normalise_advantages(struct ppo *p) {
  int rows = p->rollout.E * p->rollout.N;
  double mean = 0, square = 0;
  for (int i = 0; i < rows; i++) {
    mean += p->advantage[i] / rows;
  }
  for (int i = 0; i < rows; i++) {
    p->advantage[i] -= mean;
    square += p->advantage[i] * p->advantage[i] / rows;
  }
  double scale = 1 / (sqrt(square) + 1e-8);
  for (int i = 0; i < rows; i++) {
    p->advantage[i] *= scale;
  }
}

// deviations of the policy as it is
static void read_sigma(double *sigma, const struct ppo *p) {
  for (int j = 0; j < p->rollout.nu; j++) {
    sigma[j] = Sleef_cinz_expd1_u10purec((double)p->param[p->actor.nparam + (size_t)j]);
  }
}

// called by all threads of a parallel region, as all phases
static void phase_forward(struct ppo *p) {
  struct ppo_work *w = &p->work[omp_get_thread_num()];
#pragma omp for schedule(static)
  for (int i = 0; i < p->rollout.nshard; i++) {
    shard_forward(p, w, i);
  }
#pragma omp single
  normalise_advantages(p);
}

// ---- losses

double ppo_surrogate(double *dlogp, double ratio, double advantage, double clip) {
  double lo = 1 - clip, hi = 1 + clip, held = ratio < lo ? lo : ratio > hi ? hi : ratio;
  double loss = -advantage * ratio, clipped = -advantage * held;
  if (clipped > loss) {
    *dlogp = 0;
    return clipped;
  }
  *dlogp = -advantage * ratio; // d ratio / d log pi = ratio
  return loss;
}

double ppo_value_loss(double *dv, double v, double v_old, double target, double clip) {
  double lo = v_old - clip, hi = v_old + clip, held = v < lo ? lo : v > hi ? hi : v;
  double loss = (v - target) * (v - target), clipped = (held - target) * (held - target);
  if (clipped > loss) {
    *dv = 0;
    return clipped;
  }
  *dv = 2 * (v - target);
  return loss;
}

double ppo_adapt(double lr, double kl, double target, double lo, double hi) {
  if (!(target > 0) || !isfinite(kl)) {
    return lr;
  }
  if (kl > 2 * target) {
    return lr / 1.5 < lo ? lo : lr / 1.5;
  }
  if (kl > 0 && kl < target / 2) {
    return lr * 1.5 > hi ? hi : lr * 1.5;
  }
  return lr;
}

// x (rows, nobs) = rows of the window by index
static void gather(float *x, const struct rollout *r, const float *from, const int *index,
                   int rows) {
  size_t nobs = (size_t)r->nobs;
  for (int i = 0; i < rows; i++) {
    size_t row = rollout_row(r, index[i] / r->E, index[i] % r->E);
    memcpy(x + (size_t)i * nobs, from + row * nobs, sizeof(float) * nobs);
  }
}

// KL(pi_old | pi) of one state (Gaussians of diagonal covariance)
static double divergence(const double *sigma_old, const float *mean_old, const double *sigma,
                         const float *mean, double log_ratio_sum, int nu) {
  double sum = log_ratio_sum;
  for (int j = 0; j < nu; j++) {
    double d = (double)mean_old[j] - (double)mean[j];
    sum += (sigma_old[j] * sigma_old[j] + d * d) / (2 * sigma[j] * sigma[j]) - 0.5;
  }
  return sum;
}

// rows by index, a chunk of a mini-batch of M: adds to a part's sums and gradient
static void actor_chunk(struct ppo *p, struct ppo_work *w, int part, const int *index, int rows,
                        int M) {
  const struct rollout *r = &p->rollout;
  const int nu = r->nu;
  struct ppo_sums *sum = &p->part[part];
  double *dlog_sigma = p->dlog_sigma + part * nu;
  double log_old = sum_of_logs(p->sigma, nu), log_now = sum_of_logs(p->sigma_now, nu);
  gather(w->x, r, r->input, index, rows);
  mlp_fwd(w->mean, &w->cache, &p->actor, p->param, w->x, 0, rows);
  for (int i = 0; i < rows; i++) {
    size_t row = rollout_row(r, index[i] / r->E, index[i] % r->E) * (size_t)nu;
    const float *action = p->action + row, *mean = w->mean + i * nu;
    double logp = log_density(action, mean, p->sigma_now, log_now, nu), dlogp;
    double ratio = Sleef_cinz_expd1_u10purec(logp - p->logp[index[i]]);
    sum->surrogate += ppo_surrogate(&dlogp, ratio, p->advantage[index[i]], p->spec->ppo_clip);
    sum->kl += divergence(p->sigma, p->mean + row, p->sigma_now, mean, log_now - log_old, nu);
    dlogp /= M;
    for (int j = 0; j < nu; j++) {
      double z = ((double)action[j] - (double)mean[j]) / p->sigma_now[j];
      w->dmean[i * nu + j] = (float)(dlogp * z / p->sigma_now[j]);
      // the entropy is sum_j log sigma_j and a constant
      dlog_sigma[j] += dlogp * (z * z - 1) - p->spec->ppo_entropy / M;
    }
  }
  sum->rows += rows;
  mlp_bwd(NULL, p->grad[part], &w->cache, &p->actor, p->param, w->dmean, 0, rows, w->tmp);
  mlp_grad(p->grad[part], &w->cache, &p->actor, w->x, 0, rows);
}

// the same for critic k; losses in units
static void critic_chunk(struct ppo *p, struct ppo_work *w, int part, int k, const int *index,
                         int rows, int M) {
  struct critic_work *cw = &w->critic;
  const struct critic *c = &p->critic;
  const float *param = c->param + (size_t)k * c->net.nparam;
  float *grad = p->critic_grad[part] + (size_t)k * c->net.nparam;
  mlp_fwd(cw->y, &cw->cache, &c->net, param, w->x, 0, rows);
  for (int i = 0; i < rows; i++) {
    double dv;
    p->part[part].value_loss += ppo_value_loss(&dv, (double)cw->y[i], p->value[index[i]] / c->unit,
                                               p->target[index[i]] / c->unit, p->spec->ppo_clip) /
                                c->count;
    cw->dy[i] = (float)(p->spec->ppo_value_coef * dv / M);
  }
  mlp_bwd(NULL, grad, &cw->cache, &c->net, param, cw->dy, 0, rows, cw->tmp);
  mlp_grad(grad, &cw->cache, &c->net, w->x, 0, rows);
}

// ---- a mini-batch: chunks are dealt out to parts, parts to threads

static int chunks_of(int M) {
  return (M + CRITIC_CHUNK - 1) / CRITIC_CHUNK;
}
static int parts_of(int M) {
  return chunks_of(M) < PPO_PARTS ? chunks_of(M) : PPO_PARTS;
}

static void phase_actor(struct ppo *p, int first, int end) {
  struct ppo_work *w = &p->work[omp_get_thread_num()];
  const int M = end - first, nu = p->rollout.nu;
#pragma omp single
  {
    read_sigma(p->sigma_now, p);
    p->actor_update.nparts = parts_of(M);
  }
#pragma omp for schedule(static)
  for (int part = 0; part < parts_of(M); part++) {
    memset(p->grad[part], 0, sizeof(float) * p->nactor);
    memset(p->dlog_sigma + part * nu, 0, sizeof(double) * (size_t)nu);
    p->part[part] = (struct ppo_sums){0};
    for (int chunk = part; chunk < chunks_of(M); chunk += PPO_PARTS) {
      int at = first + chunk * CRITIC_CHUNK, rows = end - at;
      actor_chunk(p, w, part, p->order + at, rows < CRITIC_CHUNK ? rows : CRITIC_CHUNK, M);
    }
    for (int j = 0; j < nu; j++) {
      p->grad[part][p->actor.nparam + (size_t)j] = (float)p->dlog_sigma[part * nu + j];
    }
  }
}

static void phase_critic(struct ppo *p, int first, int end) {
  struct ppo_work *w = &p->work[omp_get_thread_num()];
  const int M = end - first;
#pragma omp single
  p->critic_update.nparts = parts_of(M);
#pragma omp for schedule(static)
  for (int part = 0; part < parts_of(M); part++) {
    memset(p->critic_grad[part], 0, sizeof(float) * p->critic.nparam);
    for (int chunk = part; chunk < chunks_of(M); chunk += PPO_PARTS) {
      int at = first + chunk * CRITIC_CHUNK, rows = end - at;
      rows = rows < CRITIC_CHUNK ? rows : CRITIC_CHUNK;
      gather(w->x, &p->rollout, p->rollout.obs, p->order + at, rows);
      for (int k = 0; k < p->critic.count; k++) {
        critic_chunk(p, w, part, k, p->order + at, rows, M);
      }
    }
  }
}

// sums of the mini-batch into part[0], in order
static void add_up_parts(struct ppo *p, int M) {
  for (int i = 1; i < parts_of(M); i++) {
    p->part[0].surrogate += p->part[i].surrogate;
    p->part[0].value_loss += p->part[i].value_loss;
    p->part[0].kl += p->part[i].kl;
    p->part[0].rows += p->part[i].rows;
  }
}

// ---- an iteration

struct progress { // of one iteration's updates, shared by all threads
  double clock, actor_seconds, critic_seconds;
  struct ppo_sums sum;
  double actor_norm, critic_norm; // means over updates
  int64_t bad_actor, bad_critic;  // first numbers that were not finite, -1: none
};

static void adapt_rates(struct ppo *p) {
  const struct spec *s = p->spec;
  double kl = 0, rows = 0;
  for (int i = 0; i < p->actor_update.nparts; i++) {
    kl += p->part[i].kl;
    rows += (double)p->part[i].rows;
  }
  kl /= rows;
  p->lr_actor = ppo_adapt(p->lr_actor, kl, s->ppo_kl_target, s->ppo_lr_min, s->ppo_lr_max);
  p->lr_critic = ppo_adapt(p->lr_critic, kl, s->ppo_kl_target, s->ppo_lr_min, s->ppo_lr_max);
  p->actor_update.lr = p->lr_actor;
  p->critic_update.lr = p->lr_critic;
}

static void keep_sigma_positive(struct ppo *p) {
  for (int j = 0; j < p->rollout.nu; j++) {
    float *log_sigma = &p->param[p->actor.nparam + (size_t)j];
    *log_sigma = *log_sigma < (float)LOG_SIGMA_MIN ? (float)LOG_SIGMA_MIN : *log_sigma;
  }
}

static void update(struct ppo *p, struct progress *q, int first, int end) {
  phase_actor(p, first, end);
#pragma omp single
  adapt_rates(p);
  adam_update_run(&p->actor_update);
#pragma omp single
  {
    keep_sigma_positive(p);
    double now = wall_seconds();
    q->actor_seconds += now - q->clock;
    q->clock = now;
  }
  phase_critic(p, first, end);
  adam_update_run(&p->critic_update);
#pragma omp single
  {
    int updates = p->spec->ppo_epochs * p->spec->ppo_batches;
    add_up_parts(p, end - first);
    q->sum.surrogate += p->part[0].surrogate;
    q->sum.value_loss += p->part[0].value_loss;
    q->sum.rows += p->part[0].rows;
    q->actor_norm += p->actor_update.norm / updates;
    q->critic_norm += p->critic_update.norm / updates;
    q->bad_actor = q->bad_actor < 0 ? p->actor_update.nonfinite : q->bad_actor;
    q->bad_critic = q->bad_critic < 0 ? p->critic_update.nonfinite : q->bad_critic;
    double now = wall_seconds();
    q->critic_seconds += now - q->clock;
    q->clock = now;
  }
}

static void phase_updates(struct ppo *p, struct progress *q) {
  const struct spec *s = p->spec;
  int64_t rows = p->rollout.E * p->rollout.N;
  for (int epoch = 0; epoch < s->ppo_epochs; epoch++) {
#pragma omp single
    {
      struct rng draw =
          rng_stream((uint64_t)s->seed, RNG_SHUFFLE, 0, (uint32_t)p->iteration, (uint32_t)epoch);
      rng_shuffle(&draw, p->order, (int)rows);
    }
    for (int b = 0; b < s->ppo_batches; b++) {
      update(p, q, (int)(b * rows / s->ppo_batches), (int)((b + 1) * rows / s->ppo_batches));
    }
  }
}

static void fill_report(const struct ppo *p, struct learn_report *report,
                        const struct progress *q) {
  const struct rollout *r = &p->rollout;
  int rows = r->E * r->N;
  double mean = 0, square = 0, log_sigma_sum = sum_of_logs(p->sigma, r->nu);
  report_rollout(report, r);
  for (int i = 0; i < rows; i++) {
    report->value += p->value[i] / rows;
    mean += p->target[i] / rows;
  }
  for (int i = 0; i < rows; i++) {
    square += (p->target[i] - mean) * (p->target[i] - mean) / rows;
  }
  for (int j = 0; j < r->nu; j++) {
    report->sigma += p->sigma[j] / r->nu;
  }
  report->return_std = sqrt(square);
  report->actor_loss = q->sum.surrogate / (double)q->sum.rows -
                       p->spec->ppo_entropy * (log_sigma_sum + r->nu * ENTROPY_1);
  report->critic_loss = q->sum.value_loss / (double)q->sum.rows;
  report->actor_norm = q->actor_norm;
  report->critic_norm = q->critic_norm;
  report->lr_actor = p->lr_actor;
  report->lr_critic = p->lr_critic;
  report->actor = q->actor_seconds;
  report->critic = q->critic_seconds;
  for (int i = 0; i < p->threads; i++) {
    report->sim += p->work[i].sim_seconds / p->threads;
  }
  report_bad_gradient(report, &p->actor, &p->critic, q->bad_actor, q->bad_critic);
}

int ppo_iterate(struct ppo *p, struct learn_report *report, struct err *e) {
  struct progress q = {.bad_actor = -1, .bad_critic = -1};
  double start = wall_seconds(), judged = 0;
  int64_t bad_discriminator = p->add ? p->add->bad_updates : 0;
  *report = (struct learn_report){.add = {NAN, NAN, NAN, NAN}};
  for (int i = 0; i < p->threads; i++) {
    p->work[i].sim_seconds = 0;
  }
  read_sigma(p->sigma, p);
#pragma omp parallel num_threads(p->threads)
  {
    phase_forward(p);
#pragma omp single
    {
      if (p->add) {
        add_sum_up(&report->add, p->add, p->rollout.nshard);
      }
      q.clock = wall_seconds();
      report->forward = q.clock - start;
    }
    phase_updates(p, &q);
#pragma omp single
    judged = wall_seconds();
    if (p->add) {
      add_train(p->add, p->rollout.residual, p->iteration);
    }
  }
  if (p->add) {
    add_finish(p->add, p->rollout.residual);
  }
  report->discriminator = wall_seconds() - judged;
  fill_report(p, report, &q);
  if (p->add && p->add->bad_updates > bad_discriminator && !report->bad_gradient[0]) {
    strcpy(report->bad_gradient, "the discriminator");
  }
  rollout_merge_observations(&p->norm, &p->rollout);
  p->bad_updates = q.bad_actor >= 0 ? p->bad_updates + 1 : 0;
  p->iteration++;
  p->env_steps += p->rollout.E * p->rollout.N;
  report->wall = wall_seconds() - start;
  if (p->bad_updates >= PATIENCE) {
    return err_set(e, EXIT_NUMERIC,
                   "gradients of the policy were not finite in %d iterations in a row, at last in "
                   "%s (iteration %lld); the weights before them are kept",
                   PATIENCE, report->bad_gradient, (long long)p->iteration - 1);
  }
  return 0;
}

// ---- for tests

void ppo_rollout(struct ppo *p) {
  read_sigma(p->sigma, p);
#pragma omp parallel num_threads(p->threads)
  phase_forward(p);
}

void ppo_gradient(struct ppo *p, int first, int end) {
#pragma omp parallel num_threads(p->threads)
  {
    phase_actor(p, first, end);
    phase_critic(p, first, end);
  }
  add_up_parts(p, end - first);
  for (int part = 1; part < parts_of(end - first); part++) {
    for (size_t i = 0; i < p->nactor; i++) {
      p->grad[0][i] += p->grad[part][i];
    }
    for (size_t i = 0; i < p->critic.nparam; i++) {
      p->critic_grad[0][i] += p->critic_grad[part][i];
    }
  }
}
