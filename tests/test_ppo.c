// PPO: advantages, losses and the rate's rule against closed forms; a mini-batch's gradients
// against differences of the losses written again in double; the same bytes for any number of
// threads, on any instruction set, and after stopping and going on.
#include "base/file.h"
#include "learn/evaluate.h"
#include "learn/gemm.h"
#include "learn/returns.h"
#include "learn/state.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

// holds for no NaN
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static char folder[] = "/tmp/dsim_ppo_XXXXXX";

// ---- formulas

// A constant reward and value: a geometric series of one temporal difference.
static void test_advantages_of_a_constant(void **state) {
  (void)state;
  enum { N = 7, E = 3 };
  const double gamma = 0.9, lambda = 0.8, v = 2.5;
  double reward[N * E], value[N * E], advantage[N * E], target[N * E];
  unsigned char cut[N * E] = {0};
  for (int i = 0; i < N * E; i++) {
    reward[i] = 1;
    value[i] = v;
  }
  cut[3 * E + 1] = TRACK_TRUNCATED; // the series starts anew behind it
  returns_advantages(advantage, target, reward, value, value, cut, N, E, gamma, lambda, 0, E);
  double d = 1 + gamma * v - v, k = gamma * lambda;
  for (int t = 0; t < N; t++) {
    for (int e = 0; e < E; e++) {
      int left = e == 1 && t <= 3 ? 4 - t : N - t;
      double want = d * (1 - pow(k, left)) / (1 - k);
      assert_near(advantage[t * E + e], want, 1e-14);
      assert_near(target[t * E + e], want + v, 1e-14);
    }
  }
}

// Where every value is that of the state the step before reached, advantage + value is the
// TD(lambda) target; with lambda = 1 it is the discounted return.
static void test_advantages_and_targets(void **state) {
  (void)state;
  enum { N = 9, E = 4 };
  double reward[N * E], before[N * E], next[N * E], advantage[N * E], target[N * E], want[N * E];
  unsigned char cut[N * E] = {0};
  struct rng r = rng_stream(5, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < N * E; i++) {
    reward[i] = rng_normal(&r);
    before[i] = rng_normal(&r);
    next[i] = i + E < N * E ? 0 : rng_normal(&r);
  }
  for (int i = 0; i < (N - 1) * E; i++) {
    next[i] = before[i + E];
  }
  cut[2 * E] = TRACK_FAILED;
  next[2 * E] = 0;
  cut[5 * E + 2] = TRACK_TRUNCATED;
  next[5 * E + 2] = 3; // of the state before the reset, not of the next row's
  for (int i = 0; i < 2; i++) {
    double lambda = i ? 1 : 0.7;
    returns_advantages(advantage, target, reward, before, next, cut, N, E, 0.95, lambda, 0, E);
    returns_targets(want, reward, next, cut, N, E, 0.95, lambda, 0, E);
    for (int k = 0; k < N * E; k++) {
      assert_near(target[k], want[k], 1e-14);
      assert_near(advantage[k], want[k] - before[k], 1e-14);
    }
  }
  // by hand: env 0 fails at step 2, so its last advantage is r - V
  assert_near(advantage[2 * E], reward[2 * E] - before[2 * E], 1e-15);
}

static void test_surrogate(void **state) {
  (void)state;
  static const struct {
    double ratio, advantage, loss, slope;
  } cases[] = {
      {1, 2, -2, -2},      {1.1, 2, -2.2, -2.2}, {1.3, 2, -2.4, 0},   {0.5, 2, -1, -1},
      {1.3, -2, 2.6, 2.6}, {0.7, -2, 1.6, 0},    {0.9, -2, 1.8, 1.8}, {1.3, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double slope;
    double loss = ppo_surrogate(&slope, cases[i].ratio, cases[i].advantage, 0.2);
    assert_near(loss, cases[i].loss, 1e-14);
    assert_near(slope, cases[i].slope, 1e-14);
  }
}

static void test_value_loss(void **state) {
  (void)state;
  static const struct {
    double v, v_old, target, loss, slope;
  } cases[] = {
      {1, 1, 3, 4, -4},        // not moved yet
      {1.1, 1, 3, 3.61, -3.8}, // within the clip
      {1.5, 1, 3, 3.24, 0},    // moved enough towards the target
      {0.5, 1, 3, 6.25, -5},   // moved away: the whole error counts
      {0.5, 1, -3, 14.44, 0},  // the other way round
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double slope, loss = ppo_value_loss(&slope, cases[i].v, cases[i].v_old, cases[i].target, 0.2);
    assert_near(loss, cases[i].loss, 1e-14);
    assert_near(slope, cases[i].slope, 1e-14);
  }
}

static void test_rate(void **state) {
  (void)state;
  assert_near(ppo_adapt(3e-3, 0.0201, 0.01, 1e-5, 1e-2), 2e-3, 1e-17);
  assert_near(ppo_adapt(3e-3, 0.0199, 0.01, 1e-5, 1e-2), 3e-3, 0);
  assert_near(ppo_adapt(3e-3, 0.0051, 0.01, 1e-5, 1e-2), 3e-3, 0);
  assert_near(ppo_adapt(3e-3, 0.0049, 0.01, 1e-5, 1e-2), 4.5e-3, 1e-17);
  assert_near(ppo_adapt(3e-3, 0, 0.01, 1e-5, 1e-2), 3e-3, 0);
  assert_near(ppo_adapt(9e-3, 0.001, 0.01, 1e-5, 1e-2), 1e-2, 0);
  assert_near(ppo_adapt(1.2e-5, 1, 0.01, 1e-5, 1e-2), 1e-5, 0);
  assert_near(ppo_adapt(3e-3, NAN, 0.01, 1e-5, 1e-2), 3e-3, 0);
  assert_near(ppo_adapt(3e-3, 1, 0, 1e-5, 1e-2), 3e-3, 0);
}

// ---- a learner

struct scene {
  struct arena arena;
  struct spec spec;
  struct world world;
  struct learner learner;
  struct ppo *ppo;
  struct best_policy best;
};

static void small_spec(struct spec *p) {
  spec_default(p);
  p->algorithm = ALGORITHM_PPO;
  p->robot = "robots/g1.xml";
  p->motion = "motions/walk.csv.gz";
  p->envs = 96;
  p->horizon = 6;
  p->shard = 8;
  p->iterations = 8;
  p->layer_norm = false;
  p->actor_layers = (struct spec_ints){.n = 2, .v = {40, 24}};
  p->critic_layers = (struct spec_ints){.n = 1, .v = {24}};
  p->critic_count = 2;
  p->actor_lr = p->critic_lr = 1e-3;
  p->sigma0 = 0.3;
  p->ppo_epochs = 2;
  p->ppo_batches = 2;
  p->ppo_entropy = 0.01;
  p->ppo_value_coef = 0.5;
  // everything that draws anew at a reset, and resets inside the window
  p->reset_noise = 0.5;
  p->observation_noise = 0.5;
  p->random_friction_hi = 1.2;
  p->random_link_mass = 0.2;
  p->random_latency = 0.5;
  p->random_pose = 0.01;
  p->terminate_root = 0.1;
}

static struct scene *scene_new(const struct spec *spec) {
  struct scene *s = calloc(1, sizeof *s);
  struct err e = {0};
  arena_init(&s->arena);
  s->spec = *spec;
  s->best = (struct best_policy){.score = -1e30};
  if (spec_check(&s->spec, &e) || world_open(&s->world, &s->arena, &s->spec, &e)) {
    fail_msg("%s", e.text);
  }
  learner_new(&s->learner, &s->arena, &s->world);
  s->ppo = s->learner.ppo;
  return s;
}

static void scene_free(struct scene *s) {
  arena_release(&s->arena);
  free(s);
}

static void iterate(struct scene *s, int n) {
  struct err e = {0};
  for (int i = 0; i < n; i++) {
    struct learn_report p;
    assert_int_equal(learner_iterate(&s->learner, &p, &e), 0);
    assert_string_equal(p.bad_gradient, "");
    assert_true(p.actor_norm > 0 && p.critic_norm > 0 && p.lr_actor > 0);
    assert_true(isfinite(p.actor_loss) && p.critic_loss > 0 && p.return_std > 0);
  }
}

// The window is the one that SHAC would have rolled, although nothing of its steps was kept.
static void test_same_window_as_shac(void **state) {
  (void)state;
  struct spec spec;
  small_spec(&spec);
  struct scene *s = scene_new(&spec);
  struct shac shac;
  shac_new(&shac, &s->arena, &s->world);
  int ends = 0;
  for (int window = 0; window < 3; window++) {
    ppo_rollout(s->ppo);
    shac_rollout(&shac);
    const struct rollout *a = &s->ppo->rollout, *b = &shac.rollout;
    size_t rows = (size_t)a->E * (size_t)a->N;
    assert_memory_equal(a->reward, b->reward, sizeof(double) * rows);
    assert_memory_equal(a->end, b->end, rows);
    assert_memory_equal(a->obs, b->obs, sizeof(float) * rows * (size_t)a->nobs);
    assert_memory_equal(a->input, b->input, sizeof(float) * rows * (size_t)a->nobs);
    assert_memory_equal(a->next, b->next, sizeof(float) * rows * (size_t)a->nobs);
    assert_memory_equal(a->state, b->state, sizeof(double) * a->nstate);
    assert_memory_equal(s->ppo->next_value, shac.value, sizeof(double) * rows);
    for (size_t i = 0; i < rows; i++) {
      ends += a->end[i] != TRACK_RUNS;
    }
  }
  assert_true(ends > 20);
  scene_free(s);
}

// ---- gradients of a mini-batch

static void reference_net(double *y, const struct mlp *m, const double *param, const float *x) {
  double in[256], out[256];
  for (int i = 0; i < m->size[0]; i++) {
    in[i] = (double)x[i];
  }
  for (int l = 0; l < m->nlayer; l++) {
    for (int j = 0; j < m->size[l + 1]; j++) {
      const double *w = param + m->weight[l] + (size_t)(j * m->size[l]);
      out[j] = param[m->bias[l] + (size_t)j];
      for (int i = 0; i < m->size[l]; i++) {
        out[j] += w[i] * in[i];
      }
      out[j] = l < m->nlayer - 1 && out[j] < 0 ? expm1(out[j]) : out[j];
    }
    memcpy(in, out, sizeof in);
  }
  memcpy(y, out, sizeof(double) * (size_t)m->size[m->nlayer]);
}

// mean surrogate, the actor's whole loss and mean KL over the first M of the order
struct reference {
  double surrogate, loss, kl;
  int clipped;
};
static struct reference reference_actor(const struct ppo *p, const double *param, int M) {
  const struct rollout *r = &p->rollout;
  const double *log_sigma = param + p->actor.nparam, pi = acos(-1);
  struct reference sum = {0};
  for (int k = 0; k < M; k++) {
    int i = p->order[k];
    size_t row = rollout_row(r, i / r->E, i % r->E);
    const float *action = p->action + row * (size_t)r->nu, *old = p->mean + row * (size_t)r->nu;
    double mean[64], now = 0, before = 0, kl = 0;
    reference_net(mean, &p->actor, param, r->input + row * (size_t)r->nobs);
    for (int j = 0; j < r->nu; j++) {
      double s = exp(log_sigma[j]), s0 = p->sigma[j], d = (double)old[j] - mean[j];
      double z = ((double)action[j] - mean[j]) / s;
      double z0 = ((double)action[j] - (double)old[j]) / s0;
      now += -z * z / 2 - log(s) - log(2 * pi) / 2;
      before += -z0 * z0 / 2 - log(s0) - log(2 * pi) / 2;
      kl += log(s / s0) + (s0 * s0 + d * d) / (2 * s * s) - 0.5;
    }
    double ratio = exp(now - before), A = p->advantage[i];
    double c = p->spec->ppo_clip, held = fmin(fmax(ratio, 1 - c), 1 + c);
    sum.surrogate += fmax(-A * ratio, -A * held) / M;
    sum.clipped += -A * held > -A * ratio;
    sum.kl += kl / M;
  }
  double entropy = 0;
  for (int j = 0; j < r->nu; j++) {
    entropy += 0.5 * log(2 * pi * exp(1)) + log_sigma[j];
  }
  sum.loss = sum.surrogate - p->spec->ppo_entropy * entropy;
  return sum;
}

// the critics' loss: sum over networks of the mean, in units
static double reference_critic(int *clipped, const struct ppo *p, const double *param, int M) {
  const struct rollout *r = &p->rollout;
  const struct critic *c = &p->critic;
  double sum = 0, clip = p->spec->ppo_clip;
  *clipped = 0;
  for (int k = 0; k < M * c->count; k++) {
    int i = p->order[k / c->count], net = k % c->count;
    size_t row = rollout_row(r, i / r->E, i % r->E);
    double v, old = p->value[i] / c->unit, target = p->target[i] / c->unit;
    reference_net(&v, &c->net, param + (size_t)net * c->net.nparam, r->obs + row * (size_t)r->nobs);
    double held = fmin(fmax(v, old - clip), old + clip);
    double error = pow(v - target, 2), error_held = pow(held - target, 2);
    sum += fmax(error, error_held) / M;
    *clipped += error_held > error;
  }
  return sum;
}

static double *doubles(struct scene *s, const float *x, size_t n) {
  double *y = ARENA_NEW(&s->arena, double, n);
  for (size_t i = 0; i < n; i++) {
    y[i] = (double)x[i];
  }
  return y;
}

// d loss / d (along direction k) of a slab, by central differences; along 0 .. 2 everything, 3 log
// sigma or the last layer alone
enum { DIRECTIONS = 4 };
static double along(struct rng *draw, int k, size_t i, size_t last) {
  return k < 3 || i >= last ? rng_normal(draw) : 0;
}

static void test_gradients(void **state) {
  (void)state;
  struct spec spec;
  small_spec(&spec);
  spec.critic_count = 2;
  spec.value_unit = 3;
  struct scene *s = scene_new(&spec);
  struct ppo *p = s->ppo;
  ppo_rollout(p);
  const int rows = p->rollout.E * p->rollout.N, M = 301; // the last chunk is not full
  struct rng draw = rng_stream(9, RNG_TEST, 0, 0, 0);
  rng_shuffle(&draw, p->order, rows);

  // the policy that rolled: every ratio is 1, so the loss is minus the mean advantage
  double mean = 0;
  for (int i = 0; i < M; i++) {
    mean += p->advantage[p->order[i]] / M;
  }
  ppo_gradient(p, 0, M);
  assert_near(p->part[0].surrogate / M, -mean, 1e-5);
  assert_near(p->part[0].kl / M, 0, 1e-9);
  assert_int_equal(p->part[0].rows, M);

  // another one, so that ratios spread and clips are active
  for (size_t i = 0; i < p->nactor; i++) {
    p->param[i] += (float)(0.01 * rng_normal(&draw));
  }
  for (size_t i = 0; i < p->critic.nparam; i++) {
    p->critic.param[i] += (float)(0.03 * rng_normal(&draw));
  }
  ppo_gradient(p, 0, M);
  double *param = doubles(s, p->param, p->nactor);
  struct reference want = reference_actor(p, param, M);
  assert_true(want.clipped > 20 && want.clipped < M - 20);
  assert_near(p->part[0].surrogate / M, want.surrogate, 1e-5);
  assert_near(p->part[0].kl / M, want.kl, 1e-5 * want.kl);

  int clipped;
  double *critic = doubles(s, p->critic.param, p->critic.nparam);
  double value_loss = reference_critic(&clipped, p, critic, M);
  assert_true(clipped > 20 && clipped < 2 * M - 20);
  assert_near(p->part[0].value_loss / M, value_loss / p->critic.count, 1e-5 * value_loss);

  const double h = 1e-6;
  for (int k = 0; k < DIRECTIONS; k++) {
    for (int which = 0; which < 2; which++) {
      size_t n = which ? p->critic.nparam : p->nactor;
      size_t last = which ? n - (size_t)p->critic.net.size[1] : p->actor.nparam;
      const float *grad = which ? p->critic_grad[0] : p->grad[0];
      double *at = which ? critic : param, *shifted = ARENA_NEW(&s->arena, double, n);
      double got = 0, size = 0, side[2];
      for (int sign = 0; sign < 2; sign++) {
        struct rng d = rng_stream(11, RNG_TEST, (uint32_t)k, (uint32_t)which, 0);
        got = size = 0;
        for (size_t i = 0; i < n; i++) {
          double a = along(&d, k, i, last);
          shifted[i] = at[i] + (sign ? h : -h) * a;
          got += a * (double)grad[i];
          size += (double)grad[i] * (double)grad[i];
        }
        side[sign] = which ? spec.ppo_value_coef * reference_critic(&clipped, p, shifted, M)
                           : reference_actor(p, shifted, M).loss;
      }
      double difference = (side[1] - side[0]) / (2 * h);
      assert_true(fabs(got) > 1e-4);
      assert_near(got, difference, 2e-4 * sqrt(size));
    }
  }
  scene_free(s);
}

// ---- the same bytes

static const char *run_folder(char path[64], const char *name) {
  struct err e = {0};
  snprintf(path, 64, "%s/%s", folder, name);
  assert_int_equal(dir_make(path, &e), 0);
  return path;
}

// Saves and hashes the learner's checkpoint.
static void hash_state(char hex[65], struct scene *s, const char *run) {
  char file[96];
  struct err e = {0};
  assert_int_equal(state_save(&s->learner, &s->best, run, &e), 0);
  snprintf(file, sizeof file, "%s/ckpt_%08d.dsim", run, (int)*s->learner.iteration);
  assert_int_equal(file_sha256(file, hex, &e), 0);
}

static void trained_hash(char hex[65], const struct spec *spec, int threads, const char *isa) {
  char run[64];
  struct spec own = *spec;
  own.threads = threads;
  if (isa) {
    setenv("DSIM_ISA", isa, 1);
  }
  struct scene *s = scene_new(&own);
  iterate(s, 3);
  hash_state(hex, s, run_folder(run, "hash"));
  scene_free(s);
  unsetenv("DSIM_ISA");
}

static void test_threads(void **state) {
  (void)state;
  char one[65], many[65];
  for (int add = 0; add < 2; add++) {
    struct spec spec;
    small_spec(&spec);
    spec.reward = add ? REWARD_ADD : REWARD_EXPONENTIAL;
    spec.add_layers = (struct spec_ints){.n = 1, .v = {24}};
    spec.add_replay = 500;
    trained_hash(one, &spec, 1, NULL);
    for (int threads = 2; threads <= 5; threads++) {
      trained_hash(many, &spec, threads, NULL);
      assert_string_equal(one, many);
    }
  }
}

static void test_instruction_sets(void **state) {
  (void)state;
  static const char *const isa[] = {"v2", "v3", "v4"};
  char first[65] = "", other[65];
  struct spec spec;
  small_spec(&spec);
  for (int i = 0; i < 3; i++) {
    if (!sim_kernels_named(isa[i])) {
      print_message("no %s here\n", isa[i]);
      continue;
    }
    trained_hash(other, &spec, 2, isa[i]);
    if (!first[0]) {
      memcpy(first, other, sizeof first);
    }
    assert_string_equal(first, other);
  }
}

// The learning rate is where it was, too.
static void test_resume(void **state) {
  (void)state;
  char run[64], whole[65], parts[65];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  struct scene *s = scene_new(&spec);
  iterate(s, 2);
  hash_state(parts, s, run_folder(run, "resume"));
  double rate = s->ppo->lr_actor;
  assert_true(rate != spec.actor_lr);
  iterate(s, 2);
  hash_state(whole, s, run_folder(run, "whole"));
  scene_free(s);

  s = scene_new(&spec);
  run_folder(run, "resume");
  assert_int_equal(state_load(&s->learner, &s->best, &s->arena, run, &e), 0);
  assert_int_equal(*s->learner.iteration, 2);
  assert_int_equal(*s->learner.env_steps, 2 * 96 * 6);
  assert_near(s->ppo->lr_actor, rate, 0);
  iterate(s, 2);
  hash_state(parts, s, run_folder(run, "parts"));
  assert_string_equal(whole, parts);
  scene_free(s);
}

// SHAC does not go on from a checkpoint of PPO, nor a network with LayerNorm from one without.
static void test_refuses_another_learner(void **state) {
  (void)state;
  char run[64], hex[65];
  struct spec spec;
  small_spec(&spec);
  struct scene *s = scene_new(&spec);
  hash_state(hex, s, run_folder(run, "other"));
  scene_free(s);
  for (int k = 0; k < 2; k++) {
    struct err e = {0};
    small_spec(&spec);
    spec.algorithm = k ? ALGORITHM_PPO : ALGORITHM_SHAC;
    spec.layer_norm = k;
    s = scene_new(&spec);
    assert_int_equal(state_load(&s->learner, &s->best, &s->arena, run, &e), EXIT_USAGE);
    const char *want = k ? "actor: spec has 182 40 24 29, checkpoint has 182 40 24 29 without "
                           "LayerNorm"
                         : "algorithm: spec has shac, checkpoint has ppo";
    if (!strstr(e.text, want)) {
      fail_msg("expected '%s' in: %s", want, e.text);
    }
    // but networks that are alike may start SHAC
    e = (struct err){0};
    assert_int_equal(state_init_from(&s->learner, &s->arena, run, &e), k ? EXIT_USAGE : 0);
    scene_free(s);
  }
}

// A policy without LayerNorm reads back from its file and acts as the learner's.
static void test_policy_reads_back(void **state) {
  (void)state;
  char run[64], file[96];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  struct scene *s = scene_new(&spec);
  iterate(s, 1);
  struct policy own, read;
  learner_policy(&own, &s->arena, &s->learner);
  run_folder(run, "policy");
  snprintf(file, sizeof file, "%s/policy.dsim", run);
  assert_int_equal(policy_save(&own, file, &e), 0);
  snprintf(file, sizeof file, "%s/spec.yaml", run);
  FILE *f = fopen(file, "w");
  spec_print(&s->spec, f);
  fclose(f);
  assert_int_equal(policy_load(&read, &s->arena, run, &e), 0);
  assert_false(read.net.layer_norm);
  double obs[256], a[64], b[64];
  struct rng draw = rng_stream(2, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < own.nobs; i++) {
    obs[i] = rng_normal(&draw);
  }
  policy_act(&own, a, obs, 1);
  policy_act(&read, b, obs, 1);
  assert_memory_equal(a, b, sizeof(double) * (size_t)own.nu);
  scene_free(s);
}

static void test_bad_gradient(void **state) {
  (void)state;
  struct spec spec;
  struct err e = {0};
  struct learn_report report;
  small_spec(&spec);
  struct scene *s = scene_new(&spec);
  s->ppo->param[s->ppo->actor.weight[1] + 24 * 2] = NAN;
  float *before = malloc(sizeof(float) * s->ppo->nactor);
  memcpy(before, s->ppo->param, sizeof(float) * s->ppo->nactor);
  int n = 0;
  while (!e.code && n < 100) {
    learner_iterate(&s->learner, &report, &e);
    assert_non_null(strstr(report.bad_gradient, "actor layer"));
    n++;
  }
  assert_int_equal(n, 10);
  assert_int_equal(e.code, EXIT_NUMERIC);
  assert_memory_equal(before, s->ppo->param, sizeof(float) * s->ppo->nactor);
  free(before);
  scene_free(s);
}

static int set_up(void **state) {
  (void)state;
  gemm_start();
  return mkdtemp(folder) ? 0 : -1;
}
static int tear_down(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_advantages_of_a_constant),
      cmocka_unit_test(test_advantages_and_targets),
      cmocka_unit_test(test_surrogate),
      cmocka_unit_test(test_value_loss),
      cmocka_unit_test(test_rate),
      cmocka_unit_test(test_same_window_as_shac),
      cmocka_unit_test(test_gradients),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_instruction_sets),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_refuses_another_learner),
      cmocka_unit_test(test_policy_reads_back),
      cmocka_unit_test(test_bad_gradient),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
