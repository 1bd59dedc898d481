// The learner as a whole: the same bytes for any number of threads, on any instruction set, and
// after stopping and going on; policies read back; what does not fit is refused by name.
#include "base/file.h"
#include "learn/evaluate.h"
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
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/dsim_state_XXXXXX";

struct scene {
  struct arena arena;
  struct spec spec;
  struct world world;
  struct shac shac;
  struct learner learner; // view of it
  struct best_policy best;
};

static void small_spec(struct spec *p) {
  spec_default(p);
  p->robot = "robots/g1.xml";
  p->motion = "motions/walk.csv.gz";
  p->envs = 24;
  p->horizon = 6;
  p->shard = 8;
  p->iterations = 8;
  p->actor_layers = (struct spec_ints){.n = 2, .v = {40, 24}};
  p->critic_layers = (struct spec_ints){.n = 1, .v = {24}};
  p->critic_passes = 2;
  p->critic_batches = 3;
  p->reset_noise = 0.5;
  p->observation_noise = 0.5;
  p->terminate_root = 0.2;
  p->checkpoint_keep = 2;
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
    struct learn_report report;
    assert_int_equal(shac_iterate(&l->shac, &report, &e), 0);
    assert_string_equal(report.bad_gradient, "");
    assert_true(report.actor_norm > 0 && report.critic_norm > 0);
  }
}

// A run's folder below the test's own.
static const char *run_folder(char path[64], const char *name) {
  struct err e = {0};
  snprintf(path, 64, "%s/%s", folder, name);
  assert_int_equal(dir_make(path, &e), 0);
  return path;
}

// Trains for n iterations and returns the checkpoint's sha256.
static void trained_hash(char hex[65], const char *name, int threads, const char *isa, int n) {
  char run[64], file[96];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  spec.threads = threads;
  setenv("DSIM_ISA", isa ? isa : "", 1);
  if (!isa) {
    unsetenv("DSIM_ISA");
  }
  struct scene *l = scene_new(&spec);
  iterate(l, n);
  assert_int_equal(state_save(&l->learner, &l->best, run_folder(run, name), &e), 0);
  snprintf(file, sizeof file, "%s/ckpt_%08d.dsim", run, n);
  assert_int_equal(file_sha256(file, hex, &e), 0);
  scene_free(l);
  unsetenv("DSIM_ISA");
}

static void test_threads(void **state) {
  (void)state;
  char one[65], many[65];
  trained_hash(one, "threads1", 1, NULL, 3);
  for (int threads = 2; threads <= 5; threads++) {
    trained_hash(many, "threads", threads, NULL, 3);
    assert_string_equal(one, many);
  }
}

static void test_instruction_sets(void **state) {
  (void)state;
  static const char *const isa[] = {"v2", "v3", "v4"};
  char first[65] = "", other[65];
  for (int i = 0; i < 3; i++) {
    if (!sim_kernels_named(isa[i])) {
      print_message("no %s here\n", isa[i]);
      continue;
    }
    trained_hash(other, isa[i], 2, isa[i], 3);
    if (!first[0]) {
      memcpy(first, other, sizeof first);
    }
    assert_string_equal(first, other);
  }
}

static void test_resume(void **state) {
  (void)state;
  char run[64], file[96], whole[65], parts[65];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  spec.threads = 2;
  run_folder(run, "resume");
  struct scene *l = scene_new(&spec);
  iterate(l, 3);
  assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  iterate(l, 3);
  assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  snprintf(file, sizeof file, "%s/ckpt_%08d.dsim", run, 6);
  assert_int_equal(file_sha256(file, whole, &e), 0);
  scene_free(l);

  // the newest is damaged, as after a power cut: the one before is taken
  assert_int_equal(truncate(file, 5000), 0);
  spec.threads = 1;
  l = scene_new(&spec);
  assert_int_equal(state_load(&l->learner, &l->best, &l->arena, run, &e), 0);
  assert_int_equal(l->shac.iteration, 3);
  assert_int_equal(l->shac.env_steps, 3 * 24 * 6);
  iterate(l, 3);
  assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  assert_int_equal(file_sha256(file, parts, &e), 0);
  assert_string_equal(whole, parts);
  scene_free(l);
}

static void test_keeps_the_newest(void **state) {
  (void)state;
  char run[64], file[96];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  run_folder(run, "keep");
  struct scene *l = scene_new(&spec);
  for (int i = 1; i <= 4; i++) {
    iterate(l, 1);
    assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  }
  for (int i = 1; i <= 4; i++) {
    snprintf(file, sizeof file, "%s/ckpt_%08d.dsim", run, i);
    assert_int_equal(file_exists(file), i > 2);
  }
  scene_free(l);
}

static void test_mismatch_is_named(void **state) {
  (void)state;
  static const struct {
    enum spec_observation observation;
    int envs, layer;
    const char *message;
  } want[] = {
      {OBSERVATION_PAPER, 24, 40, "observation: spec has paper, checkpoint has compact"},
      {OBSERVATION_COMPACT, 16, 40, "envs: spec has 16, checkpoint has 24"},
      {OBSERVATION_COMPACT, 24, 48, "actor: spec has 182 48 24 29, checkpoint has 182 40 24 29"},
  };
  char run[64];
  struct spec spec;
  struct err e = {0};
  small_spec(&spec);
  run_folder(run, "mismatch");
  struct scene *l = scene_new(&spec);
  assert_int_equal(state_save(&l->learner, &l->best, run, &e), 0);
  scene_free(l);
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    small_spec(&spec);
    spec.observation = want[i].observation;
    spec.envs = want[i].envs;
    spec.actor_layers.v[0] = want[i].layer;
    l = scene_new(&spec);
    e = (struct err){0};
    assert_int_equal(state_load(&l->learner, &l->best, &l->arena, run, &e), EXIT_USAGE);
    if (!strstr(e.text, want[i].message)) {
      fail_msg("%s", e.text);
    }
    scene_free(l);
  }
}

// A policy file acts exactly as the learner that wrote it.
static void test_policy(void **state) {
  (void)state;
  char run[64], file[96];
  struct err e = {0};
  struct spec spec;
  small_spec(&spec);
  run_folder(run, "policy");
  struct scene *l = scene_new(&spec);
  iterate(l, 2);
  struct policy own, read;
  learner_policy(&own, &l->arena, &l->learner);
  snprintf(file, sizeof file, "%s/policy.dsim", run);
  assert_int_equal(policy_save(&own, file, &e), 0);
  snprintf(file, sizeof file, "%s/spec.yaml", run);
  FILE *f = fopen(file, "w");
  spec_print(&spec, f);
  fclose(f);
  assert_int_equal(policy_load(&read, &l->arena, run, &e), 0);
  assert_int_equal(read.iteration, 2);
  assert_int_equal(read.nu, 29);
  assert_string_equal(read.actuator[3], own.actuator[3]);
  assert_int_equal(read.spec.envs, 24);
  double obs[8 * 200], a[8 * 29], b[8 * 29];
  struct rng r = rng_stream(1, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < 8 * own.nobs; i++) {
    obs[i] = rng_normal(&r);
  }
  policy_act(&own, a, obs, 8);
  policy_act(&read, b, obs, 8);
  assert_memory_equal(a, b, sizeof a);

  const char *const *names = read.actuator;
  assert_int_equal(policy_check(&read, own.nobs, 29, names, &e), 0);
  assert_int_equal(policy_check(&read, 99, 29, names, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "obs: spec has 99, checkpoint has 182"));
  const char *swapped[29];
  memcpy(swapped, names, sizeof swapped);
  swapped[0] = names[1];
  swapped[1] = names[0];
  e = (struct err){0};
  assert_int_equal(policy_check(&read, own.nobs, 29, swapped, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, names[0]));
  e = (struct err){0};
  assert_int_equal(policy_load(&read, &l->arena, folder, &e), EXIT_USAGE);
  scene_free(l);
}

// Evaluation leaves the learner untouched, and the untrained policy does not reach the end.
static void test_evaluation(void **state) {
  (void)state;
  struct spec spec;
  small_spec(&spec);
  struct scene *l = scene_new(&spec);
  struct evaluator *ev = evaluator_new(&l->arena, &l->world);
  struct policy p;
  struct evaluation v, again;
  learner_policy(&p, &l->arena, &l->learner);
  double *before = malloc(sizeof(double) * l->shac.rollout.nstate);
  memcpy(before, l->shac.rollout.state, sizeof(double) * l->shac.rollout.nstate);
  evaluator_run(&v, &l->arena, ev, &p, 11, 0, 0, 0);
  evaluator_run(&again, &l->arena, ev, &p, 11, 0, 0, 0);
  assert_memory_equal(before, l->shac.rollout.state, sizeof(double) * l->shac.rollout.nstate);
  assert_int_equal(v.n, 11);
  assert_memory_equal(v.episode, again.episode, sizeof *v.episode * 11);
  int last = l->world.motion.nframe - 1;
  for (int i = 0; i < 11; i++) {
    assert_int_equal(v.episode[i].start, i * last / 11);
    assert_true(v.episode[i].time_s > 0);
  }
  assert_true(v.reached < 11 && v.survival > 0 && v.survival < 1);
  free(before);
  scene_free(l);
}

// A network gone wrong: the update is left out, the message names the number, and a run of them
// ends with exit code 3 and the weights of before.
static void test_bad_gradient(void **state) {
  (void)state;
  struct spec spec;
  struct err e = {0};
  struct learn_report report;
  small_spec(&spec);
  struct scene *l = scene_new(&spec);
  l->shac.param[l->shac.actor.weight[1] + 24 * 2] = NAN;
  float *before = malloc(sizeof(float) * l->shac.nactor);
  memcpy(before, l->shac.param, sizeof(float) * l->shac.nactor);
  int n = 0;
  while (!e.code && n < 100) {
    shac_iterate(&l->shac, &report, &e);
    assert_non_null(strstr(report.bad_gradient, "actor layer"));
    n++;
  }
  assert_int_equal(n, 10);
  assert_int_equal(e.code, EXIT_NUMERIC);
  assert_memory_equal(before, l->shac.param, sizeof(float) * l->shac.nactor);
  free(before);
  scene_free(l);
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
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_instruction_sets),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_keeps_the_newest),
      cmocka_unit_test(test_mismatch_is_named),
      cmocka_unit_test(test_policy),
      cmocka_unit_test(test_evaluation),
      cmocka_unit_test(test_bad_gradient),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
