// A run's policy in MuJoCo, from its folder to the report: a learner that has learnt nothing yet is
// enough, for it holds the default pose and falls.
#include "base/file.h"
#include "base/log.h"
#include "cmd/along.h"
#include "learn/evaluate.h"
#include "learn/gemm.h"
#include "learn/state.h"
#include "out/csv.h"
#include "plant/transfer.h"
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

static struct arena arena;
static struct spec spec;
static char run[] = "/tmp/dsim_transfer_XXXXXX";
static char policy_path[64], spec_path[64], csv_path[64];

static int make_run(void **state) {
  (void)state;
  struct err e = {0};
  static struct world world;
  static struct shac learner;
  struct policy p;
  arena_init(&arena);
  gemm_start();
  log_quiet(true);
  if (!mkdtemp(run)) {
    return 1;
  }
  snprintf(policy_path, sizeof policy_path, "%s/policy.dsim", run);
  snprintf(spec_path, sizeof spec_path, "%s/spec.yaml", run);
  snprintf(csv_path, sizeof csv_path, "%s/transfer.csv", run);
  spec_default(&spec);
  spec.envs = spec.shard = 8;
  spec.horizon = 2;
  spec.actor_layers = (struct spec_ints){.n = 1, .v = {16}};
  spec.threads = 1;
  if (world_open(&world, &arena, &spec, &e)) {
    return err_report(&e);
  }
  shac_new(&learner, &arena, &world);
  struct learner view = learner_of_shac(&learner);
  learner_policy(&p, &arena, &view);
  FILE *f = fopen(spec_path, "w");
  spec_print(&spec, f);
  fclose(f);
  policy_save(&p, policy_path, &e);
  return err_report(&e);
}

static int remove_run(void **state) {
  (void)state;
  unlink(policy_path);
  unlink(spec_path);
  unlink(csv_path);
  rmdir(run);
  arena_release(&arena);
  return 0;
}

static void open_transfer(struct transfer *x) {
  struct err e = {0};
  if (transfer_open(x, &arena, run, NULL, 0, NULL, 0.002, &e)) {
    fail_msg("%s", e.text);
  }
}

static void run_episode(struct episode *ep, struct transfer *x, int seed, double noise) {
  episode_begin(ep, seed, 0);
  transfer_start(x, ep, noise);
  while (transfer_step(x, ep)) {
  }
}

static void test_untrained_policy_falls(void **state) {
  (void)state;
  struct transfer x;
  struct episode first, again, other;
  open_transfer(&x);
  run_episode(&first, &x, 0, 0);
  assert_true(first.fell);
  assert_true(first.time_s > 0.5 && first.time_s < 4);
  assert_true(first.e_track_cm > 5 && first.e_track_local_cm < first.e_track_cm);
  assert_int_equal(first.nsteps, (int)(first.time_s / 0.02 + 0.5));
  // an episode depends on its seed and on nothing that ran before it
  run_episode(&other, &x, 1, 0.2);
  run_episode(&again, &x, 0, 0);
  assert_true(first.e_track_cm == again.e_track_cm && first.time_s == again.time_s);
  assert_true(first.e_track_local_cm == again.e_track_local_cm);
  assert_true(first.penetration_mm == again.penetration_mm);
  assert_true(first.e_track_cm != other.e_track_cm);
  transfer_close(&x);
}

// What acts in MuJoCo is what acts in training: the policy on eight lanes of the same state.
static void test_same_action_as_in_training(void **state) {
  (void)state;
  struct transfer x;
  struct episode ep;
  open_transfer(&x);
  const struct world *w = &x.world;
  int width = w->sim->width, frame[SIM_WIDTH];
  double *q = ARENA_NEW(&arena, double, w->robot.nq *width);
  double *v = ARENA_NEW(&arena, double, w->robot.nv *width);
  double *obs = ARENA_NEW(&arena, double, w->track.nobs *width);
  double *action = ARENA_NEW(&arena, double, w->robot.nu *width);
  struct track_work *tw = track_work_new(&arena, &w->track, width);
  struct sim_work *sw = sim_work_new(&arena, w->model, width);
  episode_begin(&ep, 2, 30);
  transfer_start(&x, &ep, 0.2);
  for (int step = 0; step < 5; step++) {
    for (int l = 0; l < width; l++) {
      frame[l] = 30 + step;
      for (int i = 0; i < w->robot.nq; i++) {
        q[i * width + l] = x.qpos[i];
      }
      for (int i = 0; i < w->robot.nv; i++) {
        v[i * width + l] = x.qvel[i];
      }
    }
    w->task->obs_fwd(&w->track, tw, sw, obs, q, v, frame);
    policy_act(&x.policy, action, obs, width);
    transfer_step(&x, &ep);
    for (int i = 0; i < w->robot.nu; i++) {
      assert_true(fabs(x.action[i] - action[i * width + width - 1]) < 1e-6); // float networks
      assert_true(x.ctrl[i] == w->track.pose[i] + 0.4 * x.action[i]);
      assert_true(x.plant.d->ctrl[x.plant.actuator[i]] == x.ctrl[i]);
    }
    assert_int_equal(x.frame, 31 + step);
  }
  transfer_close(&x);
}

static void perturb(struct transfer *x, const char *what) {
  struct err e = {0};
  if (transfer_perturb(x, &arena, what, &e)) {
    fail_msg("%s", e.text);
  }
}

// The observation noise is the task's: uniform within its published half-widths, on the policy's
// input alone, and of the episode's seed.
static void test_observation_noise(void **state) {
  (void)state;
  struct transfer x;
  struct episode ep;
  open_transfer(&x);
  enum { STEPS = 20 };
  const int nobs = x.world.track.nobs, nu = x.world.robot.nu;
  const double *half = x.world.track.noise;
  double *obs[3], *action[3], widest = 0, share = 0;
  for (int k = 0; k < 3; k++) { // nominal, noisy, noisy again
    obs[k] = ARENA_NEW(&arena, double, STEPS *nobs);
    action[k] = ARENA_NEW(&arena, double, STEPS *nu);
    if (k == 1) {
      perturb(&x, "noise=0.5");
    }
    episode_begin(&ep, 3, 0);
    transfer_start(&x, &ep, 0);
    for (int s = 0; s < STEPS; s++) {
      memcpy(obs[k] + s * nobs, transfer_observe(&x, &ep), sizeof(double) * (size_t)nobs);
      transfer_step(&x, &ep);
      memcpy(action[k] + s * nu, x.action, sizeof(double) * (size_t)nu);
    }
  }
  assert_memory_equal(obs[1], obs[2], sizeof(double) * (size_t)(STEPS * nobs));
  assert_memory_equal(action[1], action[2], sizeof(double) * (size_t)(STEPS * nu));
  int counted = 0;
  for (int i = 0; i < nobs; i++) { // at the first step both see the same state
    double d = obs[1][i] - obs[0][i];
    assert_true(fabs(d) <= 0.5 * half[i]);
    widest = half[i] > 0 ? fmax(widest, fabs(d) / (0.5 * half[i])) : widest;
    share += half[i] > 0 ? fabs(d) / (0.5 * half[i]) : 0;
    counted += half[i] > 0;
  }
  // of a uniform number the mean distance from 0 is half of the largest
  assert_true(counted > 50 && widest > 0.9);
  assert_true(fabs(share / counted - 0.5) < 4 * sqrt(1.0 / 12 / counted));
  assert_true(action[0][0] != action[1][0]);
  transfer_close(&x);
}

// Published ranges, one draw an episode: of its seed, the same whichever ran before.
static void test_random_robots(void **state) {
  (void)state;
  struct transfer x;
  struct episode ep;
  open_transfer(&x);
  perturb(&x, "random=1");
  const struct robot *r = &x.world.robot;
  const mjModel *m = x.plant.m;
  enum { SEEDS = 40 };
  double friction[SEEDS], mass[SEEDS], lo = INFINITY, hi = 0, heaviest = 0;
  int late = 0;
  for (int k = 0; k < SEEDS; k++) {
    episode_begin(&ep, k, 0);
    transfer_start(&x, &ep, 0);
    friction[k] = m->geom_friction[0];
    mass[k] = m->body_subtreemass[0];
    lo = fmin(lo, friction[k]);
    hi = fmax(hi, friction[k]);
    heaviest = fmax(heaviest, mass[k]);
    late += x.plant.more_latency;
    assert_true(friction[k] >= 0.3 && friction[k] <= 1.2);
    assert_true(fabs(mass[k] - r->total_mass) < 3 + 0.2 * r->total_mass);
    for (int d = 6; d < r->nv; d++) {
      double f = m->dof_armature[d] / r->dof[d].armature;
      assert_true(f > 0.75 && f < 1.25);
    }
    for (int i = 0; i < r->nu; i++) {
      double f = m->actuator_gainprm[mjNGAIN * x.plant.actuator[i]] / r->actuator[i].gain;
      assert_true(f > 0.8 && f < 1.2);
    }
  }
  assert_true(lo < 0.45 && hi > 1.05 && heaviest > r->total_mass + 0.5);
  assert_in_range(late, 8, 32); // a fair coin, 40 times
  episode_begin(&ep, 7, 0);
  transfer_start(&x, &ep, 0);
  assert_true(m->geom_friction[0] == friction[7] && m->body_subtreemass[0] == mass[7]);

  // targets carry the drawn offset; the root is pushed within 3 s
  transfer_step(&x, &ep);
  int W = x.world.sim->width;
  for (int i = 0; i < r->nu; i++) {
    double offset = x.ctrl[i] - x.world.track.pose[i] - 0.4 * x.action[i];
    assert_true(fabs(offset) < 0.01 && fabs(offset - x.pose[i * W]) < 1e-12);
  }
  transfer_close(&x);
}

static void test_perturb_refusals(void **state) {
  (void)state;
  static const char *const bad[][2] = {{"noise", "noise=1"},
                                       {"noise=x", "noise=1"},
                                       {"random=-1", "random=1"},
                                       {"random=1e9", "0 to 10"},
                                       {"niose=1", "did you mean 'noise'"},
                                       {"alls", "no disturbance"}};
  struct transfer x;
  open_transfer(&x);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct err e = {0};
    assert_int_equal(transfer_perturb(&x, &arena, bad[i][0], &e), EXIT_USAGE);
    if (!strstr(e.text, bad[i][1])) {
      fail_msg("'%s' should say '%s'", e.text, bad[i][1]);
    }
  }
  transfer_close(&x);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *run, *set, *plant, *text;
  } cases[] = {
      {NULL, "observation=paper", NULL, "obs: spec has 849, checkpoint has 182"},
      {NULL, "observtion=paper", NULL, "observation"},
      {NULL, NULL, "robots/go2.xml", "missing"},
      {NULL, NULL, "robots/none.xml", "no such robot file"},
      {"/tmp", NULL, NULL, "no trained policy"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct transfer x;
    struct err e = {0};
    assert_int_equal(transfer_open(&x, &arena, cases[i].run ? cases[i].run : run, &cases[i].set,
                                   cases[i].set != NULL, cases[i].plant, 0.002, &e),
                     EXIT_USAGE);
    if (!strstr(e.text, cases[i].text)) {
      fail_msg("'%s' should say '%s'", e.text, cases[i].text);
    }
    transfer_close(&x);
  }
}

static void test_csv(void **state) {
  (void)state;
  struct episode ep[2];
  episode_begin(&ep[0], 0, 0);
  episode_begin(&ep[1], 1, 50);
  ep[0].e_track_cm = 3.25;
  ep[0].time_s = 15;
  ep[1].fell = true;
  ep[1].time_s = 0.02;
  const double saturation[2] = {0.5, 0};
  struct motion_clip clip = {.name = "walk", .nframe = 100};
  struct motion motion = {.name = "walk", .nclip = 1, .clip = &clip, .nframe = 100, .dt = 0.02};
  const double depth[2] = {3.5, NAN};
  struct episodes es = {"mujoco 2.2.2", &motion, 2, ep, saturation, depth};
  struct csv_table t;
  struct err e = {0};
  // twice: the file is replaced, not appended to
  for (int k = 0; k < 2; k++) {
    assert_int_equal(episodes_write(&es, csv_path, &e), 0);
  }
  assert_int_equal(csv_read(&t, &arena, csv_path, &e), 0);
  assert_int_equal(t.nrow, 2);
  static const char *const want[][3] = {
      {"seed", "0", "1"},
      {"fell", "0", "1"},
      {"time_s", "15", "0.02"},
      {"e_track_cm", "3.25", ""},
      {"e_track_local_cm", "", ""},
      {"penetration_mm", "", ""},
      {"start_s", "0", "1"},
      {"torque_saturation", "0.5", "0"},
      {"penetration_train_mm", "3.5", ""},
      {"clip", "walk", "walk"},
  };
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    int col = csv_find(&t, want[i][0]);
    assert_true(col >= 0);
    assert_string_equal(csv_cell(&t, 0, col), want[i][1]);
    assert_string_equal(csv_cell(&t, 1, col), want[i][2]);
  }
}

// Every checkpoint has one row; what was not measured is missing.
static void test_checkpoint_rows(void **state) {
  (void)state;
  struct along_row row[2] = {
      {"ckpt_00000100.dsim", 100, 204800, {.n = 5, .falls = 2, .time = 9.5, .track = 12}},
      {"policy.dsim", 120, 245760, {.n = 5, .track = 3.25, .depth_train = NAN, .saturation = 0.5}}};
  struct along along = {"mujoco 2.2.2", 2, row};
  struct csv_table t;
  struct err e = {0};
  assert_int_equal(along_write(&along, csv_path, &e), 0);
  assert_int_equal(csv_read(&t, &arena, csv_path, &e), 0);
  static const char *const want[][3] = {
      {"iteration", "100", "120"},
      {"env_steps", "204800", "245760"},
      {"episodes", "5", "5"},
      {"falls", "2", "0"},
      {"time_s", "9.5", "0"},
      {"e_track_cm", "12", "3.25"},
      {"penetration_train_mm", "0", ""},
      {"torque_saturation", "0", "0.5"},
      {"checkpoint", "ckpt_00000100.dsim", "policy.dsim"},
  };
  assert_int_equal(t.nrow, 2);
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    int col = csv_find(&t, want[i][0]);
    assert_true(col >= 0);
    assert_string_equal(csv_cell(&t, 0, col), want[i][1]);
    assert_string_equal(csv_cell(&t, 1, col), want[i][2]);
  }
}

// Episodes one by one are those of an evaluation, each with its own noise.
static void test_episodes_in_training(void **state) {
  (void)state;
  struct transfer x;
  struct evaluation all;
  struct episode ep[3];
  const double noise[3] = {0.2, 0, 0.2};
  open_transfer(&x);
  struct evaluator *ev = evaluator_new(&arena, &x.world);
  evaluator_run(&all, &arena, ev, &x.policy, 1, 0, 2, 0.2);
  for (int i = 0; i < 3; i++) {
    episode_begin(&ep[i], i, 0);
  }
  evaluator_episodes(ev, &x.policy, ep, 3, noise);
  assert_true(ep[0].e_track_cm == all.episode[0].e_track_cm);
  assert_true(ep[2].penetration_mm == all.episode[2].penetration_mm);
  assert_true(ep[1].e_track_cm != all.episode[1].e_track_cm); // no noise here
  assert_true(ep[0].penetration_mm > 1);
  transfer_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_untrained_policy_falls),
      cmocka_unit_test(test_same_action_as_in_training),
      cmocka_unit_test(test_observation_noise),
      cmocka_unit_test(test_random_robots),
      cmocka_unit_test(test_perturb_refusals),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_csv),
      cmocka_unit_test(test_checkpoint_rows),
      cmocka_unit_test(test_episodes_in_training),
  };
  return cmocka_run_group_tests_name("transfer", tests, make_run, remove_run);
}
