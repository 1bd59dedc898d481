// The shipped clips keep what they promise; the checks that say so agree with MuJoCo; the generator
// makes the shipped bytes again.
#include "base/rng.h"
#include "motion/synth.h"
#include "motion/synth_kin.h"
#include "robot/mjcf.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

struct scene {
  struct arena a;
  struct robot r;
};

static int open_robot(void **state) {
  static struct scene s;
  struct err e = {0};
  arena_init(&s.a);
  if (robot_load(&s.r, &s.a, "robots/g1.xml", false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  *state = &s;
  return 0;
}
static int close_robot(void **state) {
  arena_release(&((struct scene *)*state)->a);
  return 0;
}

static struct clip shipped(struct scene *s, const char *name) {
  struct err e = {0};
  struct clip c;
  char path[64];
  snprintf(path, sizeof path, "motions/%s.csv.gz", name);
  if (clip_read(&c, &s->a, &s->r, path, NULL, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return c;
}

static struct synth_report report(struct scene *s, const struct clip *c) {
  struct err e = {0};
  struct synth_report out;
  if (motion_synth_check(&out, &s->a, &s->r, c, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return out;
}

#define BELOW(value, most)                                                                         \
  if (!((value) < (most))) {                                                                       \
    fail_msg("%s: " #value " is %g, must be below %g", name, (double)(value), (double)(most));     \
  }
#define ABOVE(value, least)                                                                        \
  if (!((value) > (least))) {                                                                      \
    fail_msg("%s: " #value " is %g, must be above %g", name, (double)(value), (double)(least));    \
  }

static void clips_keep_the_contract(void **state) {
  struct scene *s = *state;
  const double *stand = s->r.key[robot_find_key(&s->r, "stand")].qpos;
  for (int i = 0; motion_synth_names[i] != NULL; i++) {
    const char *name = motion_synth_names[i];
    const struct clip c = shipped(s, name);
    const struct synth_report rep = report(s, &c);
    assert_int_equal(c.nframe, 751);
    assert_true(c.fps == 50);
    ABOVE(rep.range_margin, .01);
    BELOW(rep.speed_share, .8);
    BELOW(rep.torque_share, .8);
    BELOW(rep.residual_force, 3); // of 327 N of weight
    BELOW(rep.residual_moment, .5);
    BELOW(rep.slip, .02);
    ABOVE(rep.sole_low, -5e-3);
    BELOW(rep.sole_high, 5e-3);
    BELOW(rep.flight_error, .05);
    BELOW(rep.first_speed, .02);
    for (int j = 7; j < s->r.nq; j++) {
      BELOW(fabs(c.qpos[j] - stand[j]), .02);
      BELOW(fabs(c.qpos[(c.nframe - 1) * c.nq + j] - stand[j]), .02);
    }
  }
}

static void walk_walks(void **state) {
  const char *name = "walk";
  const struct clip c = shipped(*state, name);
  const struct synth_report rep = report(*state, &c);
  ABOVE(rep.top_speed, 1);
  ABOVE(rep.distance, 11);
  assert_int_equal(rep.flights, 0);
}

static void run_runs(void **state) {
  const char *name = "run";
  const struct clip c = shipped(*state, name);
  const struct synth_report rep = report(*state, &c);
  ABOVE(rep.top_speed, 2.5);
  ABOVE(rep.flights, 30);
  ABOVE(rep.flight_share, .15);
}

static void jump_jumps(void **state) {
  const char *name = "jump";
  const struct clip c = shipped(*state, name);
  const struct synth_report rep = report(*state, &c);
  assert_int_equal(rep.flights, 7);
  assert_int_equal(rep.high_flights, 7); // soles 15 cm up, every time
  ABOVE(rep.jump_rise, .15);
  ABOVE(rep.turn, 1);
}

// frames at which a hand comes to be at least `reach` from its shoulder, about level with it
static int punches(struct scene *s, const struct clip *c, double reach) {
  static const char *const names[2][2] = {{"left_shoulder_pitch_link", "left_wrist_yaw_link"},
                                          {"right_shoulder_pitch_link", "right_wrist_yaw_link"}};
  double *xpos = ARENA_NEW(&s->a, double, 3 * s->r.nbody);
  bool out[2] = {false, false};
  int n = 0;
  for (int t = 0; t < c->nframe; t++) {
    robot_fk(&s->r, c->qpos + t * c->nq, xpos, NULL);
    for (int side = 0; side < 2; side++) {
      const double *a = xpos + 3 * robot_find_body(&s->r, names[side][0]);
      const double *b = xpos + 3 * robot_find_body(&s->r, names[side][1]);
      const bool now = hypot(b[0] - a[0], b[1] - a[1]) > reach && fabs(b[2] - a[2]) < .1;
      n += now && !out[side];
      out[side] = now;
    }
  }
  return n;
}

static void fight_fights(void **state) {
  const char *name = "fight";
  const struct clip c = shipped(*state, name);
  const struct synth_report rep = report(*state, &c);
  ABOVE(rep.kick_height, .35);
  assert_int_equal(punches(*state, &c, .33), 9);
}

static void dance_turns(void **state) {
  const char *name = "dance";
  const struct clip c = shipped(*state, name);
  const struct synth_report rep = report(*state, &c);
  ABOVE(rep.turn, 6.2);
  ABOVE(rep.distance, 1.5);
}

// The inverse dynamics of the checks, by differences in time, against MuJoCo's on random motions.
static void inverse_agrees_with_mujoco(void **state) {
  struct scene *s = *state;
  const struct robot *r = &s->r;
  struct err e = {0};
  mjModel *m = mjcf_load(&s->a, "robots/g1.xml", &e);
  assert_non_null(m);
  m->opt.disableflags |= mjDSBL_CONTACT | mjDSBL_LIMIT | mjDSBL_FRICTIONLOSS | mjDSBL_PASSIVE;
  mjData *d = mj_makeData(m);
  const double dt = 1e-4;
  struct synth_kin k[3];
  for (int i = 0; i < 3; i++) {
    synth_kin_new(&k[i], &s->a, r);
  }
  for (int trial = 0; trial < 20; trial++) {
    struct rng g = rng_stream(7, RNG_TEST, (uint32_t)trial, 0, 0);
    for (int i = 0; i < m->nq; i++) {
      d->qpos[i] = rng_normal(&g);
    }
    mj_normalizeQuat(m, d->qpos);
    for (int j = 0; j < m->nv; j++) {
      d->qvel[j] = rng_normal(&g);
      d->qacc[j] = 10 * rng_normal(&g);
    }
    mj_inverse(m, d);
    for (int i = 0; i < 3; i++) {
      double q[64], dv[64];
      memcpy(q, d->qpos, sizeof(double) * (size_t)m->nq);
      for (int j = 0; j < m->nv; j++) {
        dv[j] = (i - 1) * dt * d->qvel[j] + .5 * (i - 1) * (i - 1) * dt * dt * d->qacc[j];
      }
      robot_integrate(r, q, dv);
      synth_kin_update(&k[i], r, q);
    }
    double force[3], moment[3], torque[64], about[3], body[3];
    synth_kin_inverse(force, moment, torque, &k[0], &k[1], &k[2], r, d->qacc, dt);
    // MuJoCo's root torque is about the root's origin, in body axes
    cross3(about, d->qpos, force);
    for (int i = 0; i < 3; i++) {
      about[i] = moment[i] - about[i];
    }
    for (int i = 0; i < 3; i++) {
      body[i] = k[1].rot[i] * about[0] + k[1].rot[3 + i] * about[1] + k[1].rot[6 + i] * about[2];
    }
    for (int j = 0; j < m->nv; j++) {
      const double got = j < 3 ? force[j] : j < 6 ? body[j - 3] : torque[j];
      if (fabs(got - d->qfrc_inverse[j]) > 1e-4 * (1 + fabs(d->qfrc_inverse[j]))) {
        fail_msg("trial %d, DoF %d: %.8g, MuJoCo has %.8g", trial, j, got, d->qfrc_inverse[j]);
      }
    }
  }
  mj_deleteData(d);
  mj_deleteModel(m);
}

// Jacobians and the momentum between two poses against differences.
static void jacobians_agree_with_differences(void **state) {
  struct scene *s = *state;
  const struct robot *r = &s->r;
  struct synth_kin k[2];
  synth_kin_new(&k[0], &s->a, r);
  synth_kin_new(&k[1], &s->a, r);
  double q[64], jac[3 * 64];
  struct rng g = rng_stream(8, RNG_TEST, 0, 0, 0);
  memcpy(q, r->qpos0, sizeof(double) * (size_t)r->nq);
  double dv[64];
  for (int j = 0; j < r->nv; j++) {
    dv[j] = .5 * rng_normal(&g);
  }
  robot_integrate(r, q, dv);
  const double h = 1e-6, local[3] = {.1, -.05, .02};
  const int link = r->body[robot_find_body(r, "left_ankle_roll_link")].link;
  synth_kin_update(&k[0], r, q);
  double x[3], y[3];
  synth_kin_point(x, &k[0], link, local);
  synth_kin_point_jac(jac, &k[0], r, link, x);
  for (int j = 0; j < r->nv; j++) {
    double moved[64];
    memcpy(moved, q, sizeof moved);
    memset(dv, 0, sizeof dv);
    dv[j] = h;
    robot_integrate(r, moved, dv);
    synth_kin_update(&k[1], r, moved);
    synth_kin_point(y, &k[1], link, local);
    for (int i = 0; i < 3; i++) {
      assert_true(fabs((y[i] - x[i]) / h - jac[i * r->nv + j]) < 1e-5);
      assert_true(fabs((k[1].mean[i] - k[0].mean[i]) / h - k[0].mean_jac[i * r->nv + j]) < 1e-5);
    }
  }
}

static void a_broken_clip_is_noticed(void **state) {
  struct scene *s = *state;
  struct clip c = shipped(s, "walk");
  double *q = c.qpos + 400 * c.nq;
  q[2] += .02; // one frame 2 cm up
  const struct synth_report rep = report(s, &c);
  assert_true(rep.residual_force > 100);
  struct clip slid = shipped(s, "walk");
  for (int t = 5; t < slid.nframe; t++) {
    slid.qpos[t * slid.nq] += .002; // 2 mm in a frame: 10 cm/s
  }
  assert_true(report(s, &slid).slip > .09);
}

static void the_generator_makes_the_shipped_clip(void **state) {
  struct scene *s = *state;
  struct err e = {0};
  struct clip made, c = shipped(s, "fight");
  if (motion_synth(&made, &s->a, &s->r, "fight", &e) != 0) {
    fail_msg("%s", e.text);
  }
  assert_int_equal(made.nframe, c.nframe);
  for (int i = 0; i < c.nframe * c.nq; i++) {
    if (fabs(made.qpos[i] - c.qpos[i]) > 1.5e-6) { // a last digit may round the other way
      fail_msg("frame %d, number %d: %.7f, shipped %.7f", i / c.nq, i % c.nq, made.qpos[i],
               c.qpos[i]);
    }
  }
}

static void unknown_names_are_refused(void **state) {
  struct scene *s = *state;
  struct err e = {0};
  struct clip c;
  assert_int_equal(motion_synth(&c, &s->a, &s->r, "wolk", &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "did you mean 'walk'"));
  struct robot ant;
  e = (struct err){0};
  assert_int_equal(robot_load(&ant, &s->a, "robots/ant.xml", false, &e), 0);
  assert_int_equal(motion_synth(&c, &s->a, &ant, "walk", &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "left_ankle_roll_link"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clips_keep_the_contract),
      cmocka_unit_test(walk_walks),
      cmocka_unit_test(run_runs),
      cmocka_unit_test(jump_jumps),
      cmocka_unit_test(fight_fights),
      cmocka_unit_test(dance_turns),
      cmocka_unit_test(inverse_agrees_with_mujoco),
      cmocka_unit_test(jacobians_agree_with_differences),
      cmocka_unit_test(a_broken_clip_is_noticed),
      cmocka_unit_test(the_generator_makes_the_shipped_clip),
      cmocka_unit_test(unknown_names_are_refused),
  };
  return cmocka_run_group_tests(tests, open_robot, close_robot);
}
