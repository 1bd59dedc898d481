// Episodes of motion tracking: resets, ends, targets, the tracking error, and what is refused.
#include "track_scene.h"

static void test_reset_without_noise(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  int n = 4000, at_start = 0, seen[NFRAME] = {0};
  for (int i = 0; i < n; i++) {
    double q[64], v[64];
    int f = -1;
    track_reset(&s->t, q, v, &f, i % 40, i / 40);
    assert_in_range(f, 0, NFRAME - 3);
    assert_memory_equal(q, clip.qpos + f * g1.nq, g1.nq * sizeof *q);
    assert_memory_equal(v, clip.qvel + f * g1.nv, g1.nv * sizeof *v);
    at_start += f == 0;
    seen[f]++;
  }
  // frame 0: a tenth by choice, and 1/38 of the rest by chance; 5 sigma
  double p = 0.1 + 0.9 / (NFRAME - 2);
  assert_near(at_start, n * p, 5 * sqrt(n * p * (1 - p)));
  for (int f = 0; f < NFRAME - 2; f++) {
    assert_true(seen[f] > 40); // about 95 each
  }
}

static void test_reset_noise(void **state) {
  (void)state;
  static const double root[6] = {0.05, 0.05, 0.01, 0.1, 0.1, 0.2};
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  s->spec.reset_noise = 0.5;
  double most[64] = {0};
  for (int i = 0; i < 400; i++) {
    double q[64], v[64], again[64], move[64];
    int f = -1, f2 = -1;
    track_reset(&s->t, q, v, &f, i, 7);
    track_reset(&s->t, again, v, &f2, i, 7); // the same episode is the same start
    assert_memory_equal(q, again, g1.nq * sizeof *q);
    assert_memory_equal(v, clip.qvel + f * g1.nv, g1.nv * sizeof *v);
    robot_difference(&g1, move, clip.qpos + f * g1.nq, q);
    for (int d = 0; d < g1.nv; d++) {
      most[d] = fmax(most[d], fabs(move[d]));
    }
    for (int j = 0; j < g1.nu; j++) {
      const struct robot_dof *dof = &g1.dof[6 + j];
      double ref = clip.qpos[f * g1.nq + 7 + j];
      if (ref > dof->range[0] && ref < dof->range[1]) {
        assert_true(q[7 + j] >= dof->range[0] - 1e-12 && q[7 + j] <= dof->range[1] + 1e-12);
      }
    }
  }
  for (int d = 0; d < g1.nv; d++) {
    double half = 0.5 * (d < 6 ? root[d] : 0.1);
    assert_true(most[d] <= half + 1e-9);
    assert_true(most[d] > 0.9 * half);
  }
}

static void test_ends(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  double q[64], v[64] = {0};
  int f = 10;
  const double *ref = clip.qpos + f * g1.nq;
#define FRESH() memcpy(q, ref, g1.nq * sizeof *q)
  FRESH();
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_RUNS);
  q[0] += 0.49;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_RUNS);
  q[0] += 0.02;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_FAILED);
  FRESH();
  q[2] = 0.299;
  s->spec.terminate_root = 10;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_FAILED);
  q[2] = 0.301;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_RUNS);
  v[20] = -201;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_NONFINITE);
  v[20] = NAN;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_NONFINITE);
  v[20] = 0;
  q[12] = INFINITY;
  assert_int_equal(track_end(&s->t, q, v, f), TRACK_NONFINITE);
  // the clip's last frame ends the episode, a fall there is still a fall
  ref = clip.qpos + (NFRAME - 1) * g1.nq;
  FRESH();
  assert_int_equal(track_end(&s->t, q, v, NFRAME - 2), TRACK_RUNS);
  assert_int_equal(track_end(&s->t, q, v, NFRAME - 1), TRACK_TRUNCATED);
  q[2] = 0.2;
  assert_int_equal(track_end(&s->t, q, v, NFRAME - 1), TRACK_FAILED);
#undef FRESH
}

static void test_control_is_default_pose_plus_action(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  double *ctrl = lanes_new(g1.nu);
  const double *stand = g1.key[robot_find_key(&g1, "stand")].qpos;
  track_ctrl(&s->t, ctrl, s->action, s->frame, LANES);
  for (int i = 0; i < g1.nu * LANES; i++) {
    assert_near(ctrl[i], stand[7 + i / LANES] + 0.4 * s->action[i], 1e-15);
  }
  assert_near(s->t.pose[3], 0.42, 1e-15); // the paper's knee
}

static void test_error_of_a_shifted_robot(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  double q[64], world, local;
  memcpy(q, clip.qpos + 5 * g1.nq, g1.nq * sizeof *q);
  track_error(&s->t, q, 5, &world, &local);
  assert_true(world == 0 && local == 0);
  q[0] += 0.03;
  q[1] -= 0.04;
  track_error(&s->t, q, 5, &world, &local);
  assert_near(world, 0.05, 1e-12);
  assert_near(local, 0, 1e-12);
  // one wrist turned about its own axis moves no body origin; an elbow moves three of the 31
  memcpy(q, clip.qpos + 5 * g1.nq, g1.nq * sizeof *q);
  q[g1.actuator[robot_find_actuator(&g1, "left_elbow_joint")].qadr] += 0.1;
  static double xpos[64 * 3];
  double sum = 0;
  robot_fk(&g1, q, xpos, NULL);
  int moved = 0;
  for (int b = 0; b < g1.nbody; b++) {
    const double *x = xpos + 3 * b, *y = clip.xpos + (5 * g1.nbody + b) * 3;
    double d = sqrt(pow(x[0] - y[0], 2) + pow(x[1] - y[1], 2) + pow(x[2] - y[2], 2));
    moved += d > 1e-6;
    sum += d;
  }
  track_error(&s->t, q, 5, &world, &local);
  assert_int_equal(moved, 3);
  assert_near(world, sum / 31, 1e-12);
  assert_near(local, sum / 31, 1e-12);
}

// ---- what is refused

static void expect_refusal(const struct robot *r, const struct motion *mo, struct spec *spec,
                           const char *one, const char *two) {
  struct sim_options opt = sim_options_default();
  struct err e = {0};
  struct track t;
  struct sim_model *m = sim_model_new(&arena, r, &opt, &e);
  if (!m) {
    fail_msg("%s", e.text);
  }
  assert_int_equal(track_new(&t, &arena, m, mo, spec, &e), EXIT_USAGE);
  if (!strstr(e.text, one) || !strstr(e.text, two)) {
    fail_msg("'%s' lacks '%s' or '%s'", e.text, one, two);
  }
}

static void test_refusals(void **state) {
  (void)state;
  struct spec spec;
  struct err e = {0};
  spec_default(&spec);
  spec.control_pose = "stnd";
  expect_refusal(&g1, &clip, &spec, "did you mean 'stand'?", "knees_bent");
  spec_default(&spec);

  // a robot without a free root, and one that is driven by torques
  struct robot hopper;
  struct motion still = clip;
  assert_int_equal(robot_load(&hopper, &arena, "robots/hopper.xml", false, &e), 0);
  still.nq = hopper.nq;
  still.nv = hopper.nv;
  expect_refusal(&hopper, &still, &spec, "free joint", "rootx is slide");
  struct robot torque = g1;
  torque.actuator = ARENA_NEW(&arena, struct robot_actuator, g1.nu);
  memcpy(torque.actuator, g1.actuator, g1.nu * sizeof *g1.actuator);
  torque.actuator[3].gain = 1;
  torque.actuator[3].bias[1] = 0;
  expect_refusal(&torque, &clip, &spec, g1.actuator[3].name, "position actuators");

  struct motion brief = clip;
  brief.clip = &(struct motion_clip){.name = "swing", .nframe = 3};
  expect_refusal(&g1, &brief, &spec, "swing", "3 frames");
}

// another shape of robot: twelve joints, the feet are its key bodies
static void test_quadruped(void **state) {
  (void)state;
  struct robot go2;
  struct motion mo;
  struct spec spec;
  struct track t;
  struct err e = {0};
  struct sim_options opt = sim_options_default();
  spec_default(&spec);
  assert_int_equal(robot_load(&go2, &arena, "robots/go2.xml", false, &e), 0);
  for (int i = 0; i < go2.nu; i++) {
    go2.actuator[i].gain = 40; // the file has torque motors
    go2.actuator[i].bias[1] = -40;
  }
  make_clip(&mo, &go2);
  spec.control_pose = go2.key[0].name;
  struct sim_model *m = sim_model_new(&arena, &go2, &opt, &e);
  if (!m || track_new(&t, &arena, m, &mo, &spec, &e)) {
    fail_msg("%s", e.text);
  }
  assert_int_equal(t.nobs, 10 + 2 * 12 + 3 * (9 + 12));
  assert_int_equal(t.nkey, 4);
  assert_string_equal(go2.body[t.key[3]].name, "RR_foot");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reset_without_noise),
      cmocka_unit_test(test_reset_noise),
      cmocka_unit_test(test_ends),
      cmocka_unit_test(test_control_is_default_pose_plus_action),
      cmocka_unit_test(test_error_of_a_shifted_robot),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_quadruped),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
