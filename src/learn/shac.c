#include "learn/shac.h"
#include "base/log.h"
#include <math.h>
#include <omp.h>
#include <sleef.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE = 10 };                 // updates left out in a row before giving up
static const double LOG_SIGMA_MIN = -9; // deviations stay above 1e-4

void shac_new(struct shac *s, struct arena *a, const struct world *w) {
  const struct spec *spec = w->spec;
  *s = (struct shac){.spec = spec, .world = w};
  rollout_new(&s->rollout, a, w, true);
  const struct rollout *r = &s->rollout;
  size_t rows = (size_t)r->E * (size_t)r->N, nu = (size_t)r->nu, nobs = (size_t)r->nobs;

  mlp_shape(&s->actor, r->nobs, spec->actor_layers.v, spec->actor_layers.n, r->nu,
            spec->layer_norm);
  s->nactor = s->actor.nparam + nu;
  s->param = ARENA_NEW(a, float, s->nactor);
  // small first actions: rollouts start near the default pose
  mlp_init(s->param, &s->actor, (uint64_t)spec->seed, 0, 0.01);
  for (size_t j = 0; j < nu; j++) {
    s->param[s->actor.nparam + j] = (float)Sleef_cinz_logd1_u10purec(spec->sigma0);
  }
  adam_new(&s->adam, a, s->nactor, spec->adam_beta1, spec->adam_beta2);
  normalizer_new(&s->norm, a, r->nobs);
  mlp_cache_new(&s->cache, a, &s->actor, (int)rows);
  s->grad = ARENA_NEW(a, float *, r->nshard);
  for (int i = 0; i < r->nshard; i++) {
    s->grad[i] = ARENA_NEW(a, float, s->nactor);
  }
  s->dlog_sigma = ARENA_NEW(a, double, r->nshard * r->nu);
  s->sigma = ARENA_NEW(a, double, nu);
  s->mean = ARENA_NEW(a, float, rows *nu);

  critic_new(&s->critic, a, spec, r->nobs);
  int batch = (int)(rows / (size_t)spec->critic_batches) + 1;
  int chunks = (batch + CRITIC_CHUNK - 1) / CRITIC_CHUNK;
  s->critic_grad = ARENA_NEW(a, float *, chunks);
  for (int i = 0; i < chunks; i++) {
    s->critic_grad[i] = ARENA_NEW(a, float, s->critic.nparam);
  }
  s->critic_part = ARENA_NEW(a, double, chunks * s->critic.count);
  s->order = ARENA_NEW(a, int, rows);
  s->batch_x = ARENA_NEW(a, float, rows *nobs);
  s->batch_y = ARENA_NEW(a, float, rows);
  size_t largest = s->critic.nparam > s->nactor ? s->critic.nparam : s->nactor;
  s->square = ARENA_NEW(a, double, adam_blocks(largest));

  if (spec->reward == REWARD_ADD) {
    s->add = ARENA_NEW(a, struct add, 1);
    add_new(s->add, a, spec, w->track.nres, (int)rows, r->nshard, w->threads);
  }

  return_stats_init(&s->returns);
  s->value = ARENA_NEW(a, double, rows);
  s->target = ARENA_NEW(a, double, rows);
  s->discount = ARENA_NEW(a, double, rows);
  s->loss = ARENA_NEW(a, double, r->E);

  s->threads = w->threads;
  s->work = ARENA_NEW(a, struct shac_work, s->threads);
  for (int i = 0; i < s->threads; i++) {
    struct shac_work *k = &s->work[i];
    k->rollout = rollout_work_new(a, r);
    critic_work_new(&k->critic, a, &s->critic);
    k->tmp = ARENA_NEW(a, float, r->S * s->actor.widest);
    k->dmean = ARENA_NEW(a, float, r->S * r->nu);
    k->dx = ARENA_NEW(a, float, r->S * r->nobs);
    k->value = ARENA_NEW(a, double, r->N * r->S);
    k->dvalue = ARENA_NEW(a, double, r->S);
  }
  rollout_reference_statistics(&s->norm, a, r, s->work[0].rollout);
}

static float *rows_at(const struct rollout *r, float *x, int t, int e, int width) {
  return x + rollout_row(r, t, e) * (size_t)width;
}

// ---- one shard, forward and backward

static void shard_forward(struct shac *s, struct shac_work *w, int shard) {
  struct rollout *r = &s->rollout;
  int e0 = shard * r->S, g0 = e0 / r->W, g1 = g0 + r->S / r->W;
  rollout_begin(r, shard);
  for (int t = 0; t < r->N; t++) {
    double start = wall_seconds();
    for (int g = g0; g < g1; g++) {
      rollout_observe(r, w->rollout, &s->norm, t, g);
    }
    w->sim_seconds += wall_seconds() - start;
    mlp_fwd(rows_at(r, s->mean, t, e0, r->nu), &s->cache, &s->actor, s->param,
            rows_at(r, r->input, t, e0, r->nobs), (int)rollout_row(r, t, e0), r->S);
    start = wall_seconds();
    for (int g = g0; g < g1; g++) {
      rollout_act(r, rows_at(r, s->mean, t, g * r->W, r->nu), s->sigma, t, g);
    }
    rollout_step(r, w->rollout, t, shard);
    for (int g = g0; g < g1; g++) {
      rollout_reach(r, w->rollout, &s->norm, t, g);
    }
    w->sim_seconds += wall_seconds() - start;
  }

  if (s->add) {
    add_judge_shard(s->add, r, w->value, shard, omp_get_thread_num());
  }
  // values of all states reached, in one go
  critic_value(w->value, &s->critic, &w->critic, rows_at(r, r->next, 0, e0, r->nobs), r->N * r->S);
  for (int t = 0; t < r->N; t++) {
    for (int e = 0; e < r->S; e++) {
      int i = t * r->E + e0 + e;
      bool failed = r->end[i] == TRACK_FAILED || r->end[i] == TRACK_NONFINITE;
      s->value[i] = failed ? 0 : w->value[t * r->S + e];
    }
  }
  returns_losses(s->loss, s->discount, r->reward, s->value, r->end, r->N, r->E, s->spec->gamma, e0,
                 r->S);
  returns_targets(s->target, r->reward, s->value, r->end, r->N, r->E, s->spec->gamma,
                  s->spec->lambda, e0, r->S);
}

// dx (S, nobs) = gradient of the loss with respect to the normalised observations after step t,
// through the bootstrap value; false if no environment of the shard bootstraps there
static bool bootstrap_bwd(struct shac *s, struct shac_work *w, int shard, int t, double scale) {
  struct rollout *r = &s->rollout;
  int e0 = shard * r->S;
  bool any = false;
  for (int e = 0; e < r->S; e++) {
    int i = t * r->E + e0 + e;
    bool counts = r->end[i] == TRACK_TRUNCATED || (t == r->N - 1 && r->end[i] == TRACK_RUNS);
    w->dvalue[e] = counts ? -scale * s->discount[i] * s->spec->gamma : 0;
    any |= counts;
  }
  if (!any) {
    return false;
  }
  memset(w->dx, 0, sizeof(float) * (size_t)r->S * (size_t)r->nobs);
  for (int e = 0; e < r->S; e += CRITIC_CHUNK) {
    int n = r->S - e < CRITIC_CHUNK ? r->S - e : CRITIC_CHUNK;
    critic_gradient(w->dx + (size_t)e * (size_t)r->nobs, &s->critic, &w->critic,
                    rows_at(r, r->next, t, e0 + e, r->nobs), w->dvalue + e, n);
  }
  return true;
}

static void shard_backward(struct shac *s, struct shac_work *w, int shard, double scale) {
  struct rollout *r = &s->rollout;
  int e0 = shard * r->S, g0 = e0 / r->W, ngroup = r->S / r->W;
  static const double one[SIM_WIDTH] = {1, 1, 1, 1, 1, 1, 1, 1};
  float *grad = s->grad[shard];
  double *dlog_sigma = s->dlog_sigma + shard * r->nu;
  memset(grad, 0, sizeof(float) * s->nactor);
  memset(dlog_sigma, 0, sizeof(double) * (size_t)r->nu);

  for (int t = r->N - 1; t >= 0; t--) {
    bool bootstrap = bootstrap_bwd(s, w, shard, t, scale);
    double start = wall_seconds();
    for (int k = 0; k < ngroup; k++) {
      int g = g0 + k;
      double dreward[SIM_WIDTH] __attribute__((aligned(64)));
      for (int l = 0; l < r->W; l++) {
        dreward[l] = -scale * s->discount[t * r->E + g * r->W + l];
      }
      if (bootstrap) {
        normalizer_bwd(w->rollout->dobs, &s->norm, w->dx + (size_t)(k * r->W * r->nobs),
                       rows_at(r, r->next, t, g * r->W, r->nobs), one, r->W);
      }
      rollout_reach_bwd(r, w->rollout, dreward, bootstrap ? w->rollout->dobs : NULL, t, g);
    }
    rollout_step_bwd(r, w->rollout, t, shard);
    for (int k = 0; k < ngroup; k++) {
      const struct lane_group *group = &r->group[g0 + k];
      const struct lane_step *p = &r->step[t * r->ngroup + g0 + k];
      // action = mean + exp(log sigma) * noise
      for (int j = 0; j < r->nu; j++) {
        for (int l = 0; l < r->W; l++) {
          double d = group->daction[j * r->W + l];
          w->dmean[(k * r->W + l) * r->nu + j] = (float)d;
          dlog_sigma[j] += d * s->sigma[j] * p->noise[j * r->W + l];
        }
      }
    }
    w->sim_seconds += wall_seconds() - start;
    mlp_bwd(t > 0 ? w->dx : NULL, grad, &s->cache, &s->actor, s->param, w->dmean,
            (int)rollout_row(r, t, e0), r->S, w->tmp);
    start = wall_seconds();
    for (int k = 0; k < ngroup && t > 0; k++) {
      int g = g0 + k;
      normalizer_bwd(w->rollout->dobs, &s->norm, w->dx + (size_t)(k * r->W * r->nobs),
                     rows_at(r, r->input, t, g * r->W, r->nobs), one, r->W);
      rollout_observe_bwd(r, w->rollout, w->rollout->dobs, t, g);
    }
    w->sim_seconds += wall_seconds() - start;
  }
  mlp_grad(grad, &s->cache, &s->actor, rows_at(r, r->input, 0, e0, r->nobs),
           (int)rollout_row(r, 0, e0), r->N * r->S);
  for (int j = 0; j < r->nu; j++) {
    grad[s->actor.nparam + (size_t)j] = (float)dlog_sigma[j];
  }
}

static void set_sigma(struct shac *s) {
  for (int j = 0; j < s->rollout.nu; j++) {
    s->sigma[j] = Sleef_cinz_expd1_u10purec((double)s->param[s->actor.nparam + (size_t)j]);
  }
}

// ---- phases of an iteration; each is called by all threads of a parallel region

static void phase_forward(struct shac *s) {
  struct shac_work *w = &s->work[omp_get_thread_num()];
#pragma omp for schedule(static)
  for (int i = 0; i < s->rollout.nshard; i++) {
    shard_forward(s, w, i);
  }
}

static void phase_backward(struct shac *s) {
  struct shac_work *w = &s->work[omp_get_thread_num()];
#pragma omp for schedule(static)
  for (int i = 0; i < s->rollout.nshard; i++) {
    shard_backward(s, w, i, s->scale);
  }
}

// rows shuffled anew for every pass; targets in units of the critic
static void shuffle_rows(struct shac *s, int pass) {
  const struct rollout *r = &s->rollout;
  int rows = r->E * r->N;
#pragma omp single
  {
    struct rng draw =
        rng_stream((uint64_t)s->spec->seed, RNG_SHUFFLE, 0, (uint32_t)s->iteration, (uint32_t)pass);
    rng_shuffle(&draw, s->order, rows);
  }
  size_t nobs = (size_t)r->nobs;
#pragma omp for schedule(static)
  for (int i = 0; i < rows; i++) {
    int t = s->order[i] / r->E, e = s->order[i] % r->E;
    memcpy(s->batch_x + (size_t)i * nobs, r->obs + rollout_row(r, t, e) * nobs,
           sizeof(float) * nobs);
    s->batch_y[i] = (float)(s->target[s->order[i]] / s->critic.unit);
  }
}

// gradient of the rows first .. end, in chunks times networks, then one Adam step
static void critic_batch(struct shac *s, struct adam_update *u, double *loss, int first, int end) {
  struct shac_work *w = &s->work[omp_get_thread_num()];
  struct critic *c = &s->critic;
  size_t nobs = (size_t)s->rollout.nobs;
  int batch = end - first, nchunk = (batch + CRITIC_CHUNK - 1) / CRITIC_CHUNK;
#pragma omp for schedule(static)
  for (int i = 0; i < nchunk * c->count; i++) {
    int k = i % c->count, chunk = i / c->count, row = first + chunk * CRITIC_CHUNK;
    int rows = end - row < CRITIC_CHUNK ? end - row : CRITIC_CHUNK;
    float *grad = s->critic_grad[chunk] + (size_t)k * c->net.nparam;
    memset(grad, 0, sizeof(float) * c->net.nparam);
    s->critic_part[i] = critic_loss(grad, c, k, &w->critic, s->batch_x + (size_t)row * nobs,
                                    s->batch_y + row, rows, batch);
  }
#pragma omp single
  {
    u->nparts = nchunk;
    for (int i = 0; i < nchunk * c->count; i++) {
      *loss += s->critic_part[i];
    }
  }
  adam_update_run(u);
}

// passes over the window in shuffled mini-batches; loss: sum of squared errors of the last pass
static void phase_critic(struct shac *s, struct adam_update *u, double *loss, int64_t *bad) {
  int rows = s->rollout.E * s->rollout.N, n = s->spec->critic_batches;
  for (int pass = 0; pass < s->spec->critic_passes; pass++) {
    shuffle_rows(s, pass);
#pragma omp single
    *loss = 0;
    for (int b = 0; b < n; b++) {
      critic_batch(s, u, loss, (int)((int64_t)b * rows / n), (int)((int64_t)(b + 1) * rows / n));
#pragma omp single
      if (u->nonfinite >= 0 && *bad < 0) {
        *bad = u->nonfinite;
      }
    }
  }
}

// ---- after the phases, in one thread

static void fill_report(struct shac *s, struct learn_report *p) {
  const struct rollout *r = &s->rollout;
  int rows = r->E * r->N;
  report_rollout(p, r);
  p->value = p->actor_loss = p->sigma = 0;
  for (int i = 0; i < rows; i++) {
    p->value += s->value[i] / rows;
  }
  for (int e = 0; e < r->E; e++) {
    p->actor_loss += s->loss[e] * s->scale;
  }
  for (int j = 0; j < r->nu; j++) {
    p->sigma += s->sigma[j] / r->nu;
  }
  p->return_std = sqrt(s->returns.var);
}

int shac_iterate(struct shac *s, struct learn_report *p, struct err *e) {
  const struct spec *spec = s->spec;
  int64_t over = spec->lr_iterations > 0 ? spec->lr_iterations : spec->iterations;
  *p = (struct learn_report){
      .lr_actor = adam_decay(spec->actor_lr, spec->lr_end, s->iteration, over),
      .lr_critic = adam_decay(spec->critic_lr, spec->lr_end, s->iteration, over),
  };
  struct adam_update actor = {.adam = &s->adam,
                              .param = s->param,
                              .part = s->grad,
                              .nparts = s->rollout.nshard,
                              .lr = p->lr_actor,
                              .clip = spec->actor_grad_norm,
                              .square = s->square};
  struct adam_update critic = {.adam = &s->critic.adam,
                               .param = s->critic.param,
                               .part = s->critic_grad,
                               .lr = p->lr_critic,
                               .clip = spec->critic_grad_norm,
                               .square = s->square};
  p->add = (struct add_report){NAN, NAN, NAN, NAN};
  double clock[7] = {wall_seconds()}, critic_loss_sum = 0;
  int64_t bad_critic = -1, bad_discriminator = s->add ? s->add->bad_updates : 0;
  for (int i = 0; i < s->threads; i++) {
    s->work[i].sim_seconds = 0;
  }
  set_sigma(s);
#pragma omp parallel num_threads(s->threads)
  {
    phase_forward(s);
#pragma omp single
    {
      return_stats_merge(&s->returns, s->loss, s->rollout.E);
      s->scale = return_stats_scale(&s->returns, spec->return_norm, s->rollout.E, s->rollout.N);
      if (s->add) {
        add_sum_up(&p->add, s->add, s->rollout.nshard);
      }
      clock[1] = wall_seconds();
    }
    phase_backward(s);
#pragma omp single
    clock[2] = wall_seconds();
    adam_update_run(&actor);
#pragma omp single
    clock[3] = wall_seconds();
    phase_critic(s, &critic, &critic_loss_sum, &bad_critic);
#pragma omp single
    clock[4] = wall_seconds();
    if (s->add) {
      add_train(s->add, s->rollout.residual, s->iteration);
    }
  }
  if (s->add) {
    add_finish(s->add, s->rollout.residual);
  }
  clock[5] = wall_seconds();
  for (int j = 0; j < s->rollout.nu; j++) {
    float *log_sigma = &s->param[s->actor.nparam + (size_t)j];
    *log_sigma = *log_sigma < (float)LOG_SIGMA_MIN ? (float)LOG_SIGMA_MIN : *log_sigma;
  }
  fill_report(s, p);
  rollout_merge_observations(&s->norm, &s->rollout);
  clock[6] = wall_seconds();

  int rows = s->rollout.E * s->rollout.N;
  p->critic_loss = critic_loss_sum / rows / s->critic.count;
  p->actor_norm = actor.norm;
  p->critic_norm = critic.norm;
  p->forward = clock[1] - clock[0];
  p->backward = clock[2] - clock[1];
  p->actor = clock[3] - clock[2];
  p->critic = clock[4] - clock[3];
  p->discriminator = clock[5] - clock[4];
  p->wall = clock[6] - clock[0];
  for (int i = 0; i < s->threads; i++) {
    p->sim += s->work[i].sim_seconds / s->threads;
  }
  report_bad_gradient(p, &s->actor, &s->critic, actor.nonfinite, bad_critic);
  if (s->add && s->add->bad_updates > bad_discriminator && !p->bad_gradient[0]) {
    snprintf(p->bad_gradient, sizeof p->bad_gradient, "the discriminator");
  }
  s->bad_updates = actor.nonfinite >= 0 ? s->bad_updates + 1 : 0;
  s->iteration++;
  // branches are samples too
  s->env_steps += rows;
  int64_t open = 0, branch_substeps = 0;
  for (int i = 0; i < s->rollout.nshard && bundle_on(&s->rollout.bundle); i++) {
    open += s->rollout.bundle.open_steps[i];
    branch_substeps += s->rollout.bundle.branch_substeps[i];
  }
  s->env_steps += branch_substeps / sim_model_options(s->world->model)->substeps;
  p->bundle_fraction = (double)open / rows;
  if (s->bad_updates >= PATIENCE) {
    return err_set(e, EXIT_NUMERIC,
                   "the policy's gradient was not finite in %d updates in a row, at last in %s "
                   "(iteration %lld); the weights before them are kept",
                   PATIENCE, p->bad_gradient, (long long)s->iteration - 1);
  }
  return 0;
}

// ---- the gradient alone

void shac_rollout(struct shac *s) {
  set_sigma(s);
#pragma omp parallel num_threads(s->threads)
  phase_forward(s);
}

void shac_gradient(struct shac *s, double scale) {
  s->scale = scale;
#pragma omp parallel num_threads(s->threads)
  phase_backward(s);
  for (int k = 1; k < s->rollout.nshard; k++) {
    for (size_t i = 0; i < s->nactor; i++) {
      s->grad[0][i] += s->grad[k][i];
    }
  }
}
