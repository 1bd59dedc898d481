// Learning with a discriminator's reward: the gradient of a whole window against differences along
// directions of the policy's weights; the same bytes for any number of threads and after resuming.
#include "base/file.h"
#include "learn/gemm.h"
#include "learn/state.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { E = 16, N = 12 };

static char folder[] = "/tmp/dsim_add_XXXXXX";

struct scene {
  struct arena arena;
  struct spec spec;
  struct world world;
  struct shac shac;
  struct learner learner; // view of it
  struct best_policy best;
};

static void small_spec(struct spec *p, enum spec_residual residual) {
  spec_default(p);
  p->robot = "robots/g1.xml";
  p->motion = "motions/walk.csv.gz";
  p->envs = E;
  p->horizon = N;
  p->shard = 8;
  p->threads = 1;
  p->seed = 6;
  p->actor_layers = (struct spec_ints){.n = 2, .v = {24, 16}};
  p->critic_layers = (struct spec_ints){.n = 1, .v = {16}};
  p->terminate_root = 0.05; // so close that some episodes fail within the window
  p->reward = REWARD_ADD;
  p->add_residual = residual;
  p->add_layers = (struct spec_ints){.n = 2, .v = {32, 24}};
  p->add_replay = 300; // fills up in the second iteration
  p->add_replay_push = 50;
}

static struct scene *scene_new(const struct spec *spec) {
  struct scene *l = calloc(1, sizeof *l);
  struct err e = {0};
  arena_init(&l->arena);
  l->spec = *spec;
  l->best = (struct best_policy){.score = -1e30};
  if (world_open(&l->world, &l->arena, &l->spec, &e)) {
    fail_msg("%s", e.text);
  }
  shac_new(&l->shac, &l->arena, &l->world);
  l->learner = learner_of_shac(&l->shac);
  return l;
}

static void scene_free(struct scene *l) {
  arena_release(&l->arena);
  free(l);
}

static void iterate(struct scene *l, int n) {
  struct err e = {0};
  for (int i = 0; i < n; i++) {
    struct learn_report p;
    assert_int_equal(shac_iterate(&l->shac, &p, &e), 0);
    assert_string_equal(p.bad_gradient, "");
    if (l->shac.add) {
      assert_true(isfinite(p.add.out) && p.add.told >= 0 && p.add.told <= 1 && p.add.grad > 0);
      assert_int_equal(l->shac.add->bad_updates, 0);
    } else {
      assert_true(isnan(p.add.out) && isnan(p.add.zero));
    }
  }
}

// ---- the whole loss

struct start { // of a window
  double *state;
  int32_t *counter;
};

static double window_loss(struct scene *l, const struct start *s) {
  struct rollout *r = &l->shac.rollout;
  memcpy(r->state, s->state, sizeof(double) * r->nstate);
  memcpy(r->counter, s->counter, sizeof(int32_t) * r->ncounter);
  shac_rollout(&l->shac);
  double sum = 0;
  for (int e = 0; e < E; e++) {
    sum += l->shac.loss[e];
  }
  return sum;
}

// The discriminator's ReLUs all open, so that differences do not cross their kinks (its own test
// goes through them), and its output about 0 on this window, where softplus curves most.
static void open_discriminator(struct scene *l, const struct start *s) {
  struct add *a = l->shac.add;
  struct add_report p;
  for (int i = 0; i < a->net.size[1]; i++) {
    a->param[a->net.bias[0] + (size_t)i] += 8;
  }
  window_loss(l, s);
  add_sum_up(&p, a, l->shac.rollout.nshard);
  a->param[a->net.bias[1]] -= (float)p.out;
}

// Floats limit the differences: the step is large enough for round-off, small enough for curvature.
// With the discriminator alone (its reward is all there is) and with the terms beside it. Layer by
// layer, and in double, this is in test_learn_rollout.c.
static void check_window_gradient(enum spec_residual residual, bool alone) {
  struct spec spec;
  small_spec(&spec, residual);
  spec.add_layers.n = 1;
  if (alone) {
    spec.add_root = spec.reward_action_rate = 0;
  }
  struct scene *l = scene_new(&spec);
  struct shac *k = &l->shac;
  struct rollout *r = &k->rollout;
  struct start start = {ARENA_NEW(&l->arena, double, r->nstate),
                        ARENA_NEW(&l->arena, int32_t, r->ncounter)};
  iterate(l, 2); // a normaliser and a discriminator that have seen something
  memcpy(start.state, r->state, sizeof(double) * r->nstate);
  memcpy(start.counter, r->counter, sizeof(int32_t) * r->ncounter);

  struct rng draw = rng_stream(2, RNG_TEST, 0, 0, 0);
  for (size_t i = k->actor.weight[2]; i < k->actor.bias[2]; i++) {
    k->param[i] *= 5; // a policy whose observations matter
  }
  open_discriminator(l, &start);
  float *at = ARENA_NEW(&l->arena, float, k->nactor);
  double *along = ARENA_NEW(&l->arena, double, k->nactor);
  memcpy(at, k->param, sizeof(float) * k->nactor);
  window_loss(l, &start);
  unsigned char end[N * E];
  int failed = 0;
  memcpy(end, r->end, sizeof end);
  for (int i = 0; i < N * E; i++) {
    failed += end[i] == TRACK_FAILED;
  }
  assert_true(failed > 0);
  shac_gradient(k, 1);

  // half random, half along the gradient itself
  double norm = 0, size = sqrt((double)k->nactor), slope = 0, loss[2], h = 1e-4;
  for (size_t i = 0; i < k->nactor; i++) {
    norm += (double)k->grad[0][i] * (double)k->grad[0][i];
  }
  norm = sqrt(norm);
  for (size_t i = 0; i < k->nactor; i++) {
    along[i] = (double)k->grad[0][i] / norm + rng_normal(&draw) / size;
  }
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; i < k->nactor; i++) {
      k->param[i] = (float)((double)at[i] + (side ? h : -h) * along[i]);
      // the step as floats have it
      slope += (side ? 1 : -1) * (double)k->param[i] * (double)k->grad[0][i] / (2 * h);
    }
    loss[side] = window_loss(l, &start);
    assert_memory_equal(end, r->end, sizeof end);
  }
  double fd = (loss[1] - loss[0]) / (2 * h);
  print_message("slope % .6e, differences % .6e: %.1e\n", slope, fd, fabs(fd / slope - 1));
  assert_true(fabs(slope) > 100);
  assert_true(fabs(fd - slope) < 1e-3 * fabs(fd));
  scene_free(l);
}
static void test_window_compact(void **state) {
  (void)state;
  check_window_gradient(RESIDUAL_COMPACT, true);
}
static void test_window_paper(void **state) {
  (void)state;
  check_window_gradient(RESIDUAL_PAPER, true);
}
static void test_window_with_terms_beside(void **state) {
  (void)state;
  check_window_gradient(RESIDUAL_COMPACT, false);
}

// ---- the same bytes

static const char *run_folder(char path[64], const char *name) {
  struct err e = {0};
  snprintf(path, 64, "%s/%s", folder, name);
  assert_int_equal(dir_make(path, &e), 0);
  return path;
}

static void save_and_hash(char hex[65], struct scene *l, const char *run) {
  char file[96];
  struct err e = {0};
  assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  snprintf(file, sizeof file, "%s/ckpt_%08d.dsim", run, (int)l->shac.iteration);
  assert_int_equal(file_sha256(file, hex, &e), 0);
}

static void test_threads(void **state) {
  (void)state;
  char run[64], one[65], many[65];
  run_folder(run, "threads");
  for (int threads = 1; threads <= 4; threads++) {
    struct spec spec;
    small_spec(&spec, RESIDUAL_COMPACT);
    spec.threads = threads;
    struct scene *l = scene_new(&spec);
    iterate(l, 3);
    save_and_hash(threads == 1 ? one : many, l, run);
    scene_free(l);
    if (threads > 1) {
      assert_string_equal(one, many);
    }
  }
}

static void test_resume(void **state) {
  (void)state;
  char run[64], hex[65], whole[65], parts[65];
  struct spec spec;
  struct err e = {0};
  small_spec(&spec, RESIDUAL_COMPACT);
  run_folder(run, "resume");
  struct scene *l = scene_new(&spec);
  iterate(l, 3);
  save_and_hash(hex, l, run);
  iterate(l, 3);
  save_and_hash(whole, l, run_folder(run, "whole"));
  scene_free(l);

  l = scene_new(&spec);
  assert_int_equal(state_load(&l->learner, &l->best, &l->arena, run_folder(run, "resume"), &e), 0);
  iterate(l, 3);
  save_and_hash(parts, l, run);
  assert_string_equal(whole, parts);

  // another discriminator, or none, is refused by name
  spec.add_layers.v[1] = 25;
  struct scene *other = scene_new(&spec);
  assert_int_equal(state_load(&other->learner, &other->best, &other->arena, run, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "reward: spec has add 85 32 25 1, checkpoint has add 85 32 24 1"));
  scene_free(other);
  e = (struct err){0};
  spec.reward = REWARD_EXPONENTIAL;
  other = scene_new(&spec);
  assert_int_equal(state_load(&other->learner, &other->best, &other->arena, run, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "reward: spec has exponential, checkpoint has add 85 32 24 1"));
  iterate(other, 1);
  scene_free(other);
  scene_free(l);
}

// --init-from takes the discriminator over where it fits and starts a fresh one where it does not
static void test_init_from(void **state) {
  (void)state;
  char run[64], hex[65];
  struct spec spec;
  struct err e = {0};
  small_spec(&spec, RESIDUAL_COMPACT);
  struct scene *l = scene_new(&spec);
  iterate(l, 2);
  save_and_hash(hex, l, run_folder(run, "init"));
  const struct add *trained = l->shac.add;
  for (int fits = 0; fits < 2; fits++) {
    spec.add_layers.v[1] = fits ? 24 : 25;
    struct scene *next = scene_new(&spec), *fresh = scene_new(&spec);
    assert_int_equal(state_init_from(&next->learner, &next->arena, run, &e), 0);
    assert_memory_equal(next->shac.param, l->shac.param, sizeof(float) * l->shac.nactor);
    const struct add *want = fits ? trained : fresh->shac.add, *got = next->shac.add;
    assert_memory_equal(got->param, want->param, sizeof(float) * want->net.nparam);
    assert_memory_equal(got->inverse, want->inverse, sizeof(float) * (size_t)want->nres);
    assert_int_equal(got->replay_count, 0);
    scene_free(next);
    scene_free(fresh);
  }
  scene_free(l);
}

int main(void) {
  gemm_start();
  if (!mkdtemp(folder)) {
    return 1;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_window_compact),
      cmocka_unit_test(test_window_paper),
      cmocka_unit_test(test_window_with_terms_beside),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_init_from),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) || failed;
}
