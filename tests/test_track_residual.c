// The residuals that a discriminator judges: against plain scalar formulas, their adjoints against
// central differences in the tangent space, and equal bits on every instruction set.
#include "track_scene.h"

static struct scene *residual_scene(enum spec_residual set, enum spec_observation observation,
                                    double spread) {
  struct spec spec;
  spec_default(&spec);
  spec.reward = REWARD_ADD;
  spec.add_residual = set;
  spec.observation = observation;
  spec.observation_noise = 1;
  return scene_of(&spec, spread);
}

static void transposed_times(double *o, const double *R, const double *x) {
  for (int c = 0; c < 3; c++) {
    o[c] = R[c] * x[0] + R[3 + c] * x[1] + R[6 + c] * x[2];
  }
}

// ---- what the numbers are

// What the paper's residual is the difference of, of one state: 317 numbers.
static void paper_numbers(double *o, const double *q, const double *v, const double *zero_mat) {
  static double xpos[64 * 3], xmat[64 * 9];
  robot_fk(&g1, q, xpos, xmat);
  int n = 0;
  for (int i = 0; i < 3; i++) {
    o[n++] = q[i];
  }
  // columns x and z: of the root, then of every other body against its parent, undoing what the
  // zero pose has there; a hinge then shows its turn in the body's own axes
  for (int b = 1; b < g1.nbody; b++, n += 6) {
    int up = g1.body[b].parent;
    double rel[9], rel0[9], turn[9];
    for (int k = 0; k < 9; k++) {
      rel[k] = rel0[k] = turn[k] = 0;
      for (int i = 0; i < 3; i++) {
        rel[k] += xmat[9 * up + 3 * i + k / 3] * xmat[9 * b + 3 * i + k % 3];
        rel0[k] += zero_mat[9 * up + 3 * i + k / 3] * zero_mat[9 * b + 3 * i + k % 3];
      }
    }
    for (int k = 0; k < 9; k++) {
      for (int i = 0; i < 3; i++) {
        turn[k] += rel0[3 * i + k / 3] * rel[3 * i + k % 3];
      }
    }
    const double *R = b == 1 ? xmat + 9 : turn;
    for (int r = 0; r < 3; r++) {
      o[n + r] = R[3 * r];
      o[n + 3 + r] = R[3 * r + 2];
    }
  }
  for (int b = 1; b < g1.nbody; b++) {
    for (int i = 0; i < 3; i++) {
      o[n++] = xpos[3 * b + i] - q[i];
    }
  }
  for (int i = 0; i < 3; i++) {
    const double *row = xmat + 9 + 3 * i;
    o[n + i] = v[i];
    o[n + 3 + i] = row[0] * v[3] + row[1] * v[4] + row[2] * v[5];
  }
  n += 6;
  memcpy(o + n, v + 6, 29 * sizeof *o);
  assert_int_equal(n + 29, 317);
}

static void test_paper_numbers(void **state) {
  (void)state;
  struct scene *s = residual_scene(RESIDUAL_PAPER, OBSERVATION_COMPACT, 0.3);
  static double zero_mat[64 * 9];
  double zero[64];
  memcpy(zero, g1.qpos0, sizeof *zero * g1.nq);
  memset(zero + 7, 0, sizeof *zero * (g1.nq - 7));
  robot_fk(&g1, zero, NULL, zero_mat);
  assert_int_equal(s->t.nres, 317);
  double *delta = lanes_new(s->t.nres);
  s->k->residual_fwd(&s->t, s->tw, s->sw, delta, s->qpos, s->qvel, s->frame);
  for (int l = 0; l < LANES; l++) {
    double q[64], v[64], sim[317], ref[317];
    lanes_get(q, s->qpos, g1.nq, l);
    lanes_get(v, s->qvel, g1.nv, l);
    paper_numbers(sim, q, v, zero_mat);
    paper_numbers(ref, clip.qpos + s->frame[l] * g1.nq, clip.qvel + s->frame[l] * g1.nv, zero_mat);
    for (int i = 0; i < 317; i++) {
      assert_near(delta[i * LANES + l], ref[i] - sim[i], 1e-12);
    }
  }
}

static void test_compact_numbers(void **state) {
  (void)state;
  struct scene *s = residual_scene(RESIDUAL_COMPACT, OBSERVATION_COMPACT, 0.3);
  static double xpos[64 * 3];
  assert_int_equal(s->t.nres, 85);
  double *delta = lanes_new(s->t.nres);
  s->k->residual_fwd(&s->t, s->tw, s->sw, delta, s->qpos, s->qvel, s->frame);
  for (int l = 0; l < LANES; l++) {
    double q[64], v[64], move[64], want[85], d[3];
    int f = s->frame[l], n = 0;
    const double *ref = clip.qpos + f * g1.nq, *refv = clip.qvel + f * g1.nv;
    const double *R = clip.xmat + f * g1.nbody * 9 + 9, *refx = clip.xpos + f * g1.nbody * 3;
    lanes_get(q, s->qpos, g1.nq, l);
    lanes_get(v, s->qvel, g1.nv, l);
    robot_fk(&g1, q, xpos, NULL);
    robot_difference(&g1, move, ref, q); // rotation vector from the reference to the robot
    double angle = sqrt(move[3] * move[3] + move[4] * move[4] + move[5] * move[5]);
    for (int i = 0; i < 3; i++) {
      d[i] = ref[i] - q[i];
      want[3 + i] = -2 * sin(angle / 2) * move[3 + i] / angle;
    }
    transposed_times(want, R, d);
    n += 6;
    for (int j = 0; j < 29; j++) {
      want[n + j] = ref[7 + j] - q[7 + j];
      want[n + 29 + j] = refv[6 + j] - v[6 + j];
    }
    n += 58;
    for (int i = 0; i < 3; i++) {
      d[i] = refv[i] - v[i];
      want[n + 3 + i] = refv[3 + i] - v[3 + i];
    }
    transposed_times(want + n, R, d);
    n += 6;
    for (int k = 0; k < 5; k++, n += 3) {
      int b = 3 * s->t.key[k];
      for (int i = 0; i < 3; i++) {
        d[i] = (refx[b + i] - ref[i]) - (xpos[b + i] - q[i]);
      }
      transposed_times(want + n, R, d);
    }
    assert_int_equal(n, 85);
    for (int i = 0; i < n; i++) {
      assert_near(delta[i * LANES + l], want[i], 1e-12);
    }
  }
}

// a quaternion and its negative are the same attitude
static void test_sign_of_quaternion(void **state) {
  (void)state;
  for (int set = RESIDUAL_COMPACT; set <= RESIDUAL_PAPER; set++) {
    struct scene *s = residual_scene(set, OBSERVATION_COMPACT, 0.3);
    int n = s->t.nres, nv = g1.nv;
    double *delta = lanes_new(n), *other = lanes_new(n), *dq = lanes_new(2 * nv);
    double *dother = lanes_new(2 * nv), *random = lanes_random(n, 4);
    s->k->residual_fwd(&s->t, s->tw, s->sw, delta, s->qpos, s->qvel, s->frame);
    s->k->residual_bwd(&s->t, s->tw, s->sw, dq, dq + nv * LANES, random, s->qpos, s->qvel,
                       s->frame);
    for (int i = 3 * LANES; i < 7 * LANES; i++) {
      s->qpos[i] = -s->qpos[i];
    }
    s->k->residual_fwd(&s->t, s->tw, s->sw, other, s->qpos, s->qvel, s->frame);
    s->k->residual_bwd(&s->t, s->tw, s->sw, dother, dother + nv * LANES, random, s->qpos, s->qvel,
                       s->frame);
    assert_memory_equal(delta, other, sizeof *delta * n * LANES);
    assert_memory_equal(dq, dother, sizeof *dq * 2 * nv * LANES);
  }
}

// on the reference itself there is no difference, whatever the observation
static void test_perfection(void **state) {
  (void)state;
  for (int set = RESIDUAL_COMPACT; set <= RESIDUAL_PAPER; set++) {
    struct scene *s = residual_scene(set, OBSERVATION_PAPER, 0);
    double *delta = lanes_new(s->t.nres);
    s->k->residual_fwd(&s->t, s->tw, s->sw, delta, s->qpos, s->qvel, s->frame);
    for (int i = 0; i < s->t.nres * LANES; i++) {
      assert_near(delta[i], 0, 1e-12);
    }
  }
}

// without a discriminator there is no residual, and the paper's adds nothing to the compact
// observation
static void test_layout(void **state) {
  (void)state;
  struct scene *plain = scene_new(OBSERVATION_COMPACT, 0);
  struct scene *s = residual_scene(RESIDUAL_PAPER, OBSERVATION_COMPACT, 0);
  assert_int_equal(plain->t.nres, 0);
  assert_int_equal(s->t.nobs, plain->t.nobs);
  for (int i = 0; i < s->t.nobs; i++) {
    assert_true(s->t.noise[i] == plain->t.noise[i]);
  }
}

// beside the discriminator: the root's own term and the action rate
static void test_reward_beside(void **state) {
  (void)state;
  struct scene *s = residual_scene(RESIDUAL_COMPACT, OBSERVATION_COMPACT, 0.2);
  double *reward = lanes_new(1), *term = lanes_new(TRACK_NTERM);
  s->spec.add_root = 0.7;
  s->spec.reward_action_rate = 0.3;
  s->k->reward_fwd(&s->t, s->tw, s->sw, reward, term, s->qpos, s->qvel, s->action, s->prev,
                   s->frame, s->first);
  for (int l = 0; l < LANES; l++) {
    double z = 20 * term[TRACK_ROOT_SQ * LANES + l];
    double want = 0.7 * (exp(-z) + s->spec.reward_tail * (1 - z));
    assert_near(reward[l], want - 0.3 * term[TRACK_RATE * LANES + l], 1e-12);
  }
}

// ---- adjoints

// groups of numbers, one at a time, so that none hides behind another
struct group {
  const char *name;
  int count;
};
static void check_adjoint(enum spec_residual set, const struct group *group) {
  struct scene *s = residual_scene(set, OBSERVATION_COMPACT, 0.3);
  int n = s->t.nres, nv = g1.nv;
  double *qpos = lanes_new(g1.nq), *qvel = lanes_new(nv), *delta = lanes_new(n);
  double *jac = lanes_new(2 * nv * n); // (2 nv, n, LANES)
  for (int dir = 0; dir < 2 * nv; dir++) {
    double *out = jac + (size_t)dir * n * LANES;
    for (int k = 0; k < 4; k++) {
      move_state(qpos, qvel, s, dir, fd_at[k] * fd_step);
      s->k->residual_fwd(&s->t, s->tw, s->sw, delta, qpos, qvel, s->frame);
      for (int i = 0; i < n * LANES; i++) {
        out[i] += fd_weight[k] / fd_step * delta[i];
      }
    }
  }
  double *random = lanes_random(n, 4), *ddelta = lanes_new(n);
  double *want = lanes_new(2 * nv), *got = lanes_new(2 * nv);
  int first = 0;
  for (; group->name; first += group->count, group++) {
    memset(ddelta, 0, sizeof *ddelta * n * LANES);
    memset(want, 0, sizeof *want * 2 * nv * LANES);
    memset(got, 0, sizeof *got * 2 * nv * LANES);
    for (int i = first * LANES; i < (first + group->count) * LANES; i++) {
      ddelta[i] = random[i];
      for (int dir = 0; dir < 2 * nv; dir++) {
        want[dir * LANES + i % LANES] += random[i] * jac[(size_t)dir * n * LANES + i];
      }
    }
    s->k->residual_bwd(&s->t, s->tw, s->sw, got, got + nv * LANES, ddelta, s->qpos, s->qvel,
                       s->frame);
    compare_gradient(group->name, got, want, 2 * nv, 1e-3);
    double sum = 0;
    for (int i = 0; i < 2 * nv * LANES; i++) {
      sum += fabs(got[i]);
    }
    assert_true(sum > 0.1);
  }
  assert_int_equal(first, n);

  // it adds: what was there stays
  double *twice = lanes_new(2 * nv), *once = lanes_random(2 * nv, 5);
  memcpy(twice, once, sizeof *twice * 2 * nv * LANES);
  memset(got, 0, sizeof *got * 2 * nv * LANES);
  s->k->residual_bwd(&s->t, s->tw, s->sw, got, got + nv * LANES, random, s->qpos, s->qvel,
                     s->frame);
  s->k->residual_bwd(&s->t, s->tw, s->sw, twice, twice + nv * LANES, random, s->qpos, s->qvel,
                     s->frame);
  for (int i = 0; i < 2 * nv * LANES; i++) {
    assert_near(twice[i], once[i] + got[i], 1e-12 * (1 + fabs(got[i])));
  }
}
static void test_paper_adjoint(void **state) {
  (void)state;
  static const struct group group[] = {
      {"root_pos", 3}, {"root_rot", 6},  {"joint_rot", 180}, {"body_pos", 93},
      {"root_vel", 3}, {"root_rate", 3}, {"joint_vel", 29},  {NULL, 0},
  };
  check_adjoint(RESIDUAL_PAPER, group);
}
static void test_compact_adjoint(void **state) {
  (void)state;
  static const struct group group[] = {
      {"root_pos", 3}, {"root_rot", 3},  {"joint_pos", 29}, {"joint_vel", 29},
      {"root_vel", 3}, {"root_rate", 3}, {"key_pos", 15},   {NULL, 0},
  };
  check_adjoint(RESIDUAL_COMPACT, group);
}

// ---- equal bits everywhere, against the width-1 build, lane by lane

static void test_same_bits(void **state) {
  (void)state;
  static const char *const isa[] = {"v2", "v3", "v4", "arm"};
  const struct track_kernels *ref = track_kernels("w1");
  int nv = g1.nv, compared = 0;
  for (size_t i = 0; i < 2 * sizeof isa / sizeof *isa; i++) {
    const struct track_kernels *k = track_kernels(isa[i / 2]);
    if (!k || !sim_kernels_named(isa[i / 2])) {
      continue; // another processor's
    }
    struct scene *s =
        residual_scene(i % 2 ? RESIDUAL_PAPER : RESIDUAL_COMPACT, OBSERVATION_COMPACT, 0.3);
    int n = s->t.nres;
    double *delta = lanes_new(n), *d = lanes_new(2 * nv), *random = lanes_random(n, 4);
    k->residual_fwd(&s->t, s->tw, s->sw, delta, s->qpos, s->qvel, s->frame);
    k->residual_bwd(&s->t, s->tw, s->sw, d, d + nv * LANES, random, s->qpos, s->qvel, s->frame);
    struct track_work *tw = track_work_new(&arena, &s->t, 1);
    struct sim_work *sw = sim_work_new(&arena, model, 1);
    for (int l = 0; l < LANES; l++) {
      double q[64], v[64], delta1[317], random1[317], d1[128] = {0}, lane[317];
      lanes_get(q, s->qpos, g1.nq, l);
      lanes_get(v, s->qvel, nv, l);
      lanes_get(random1, random, n, l);
      ref->residual_fwd(&s->t, tw, sw, delta1, q, v, &s->frame[l]);
      ref->residual_bwd(&s->t, tw, sw, d1, d1 + nv, random1, q, v, &s->frame[l]);
      lanes_get(lane, delta, n, l);
      assert_memory_equal(lane, delta1, sizeof *lane * n);
      lanes_get(lane, d, 2 * nv, l);
      assert_memory_equal(lane, d1, sizeof *lane * 2 * nv);
    }
    compared++;
  }
  assert_true(compared > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_paper_numbers),
      cmocka_unit_test(test_compact_numbers),
      cmocka_unit_test(test_sign_of_quaternion),
      cmocka_unit_test(test_perfection),
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_reward_beside),
      cmocka_unit_test(test_paper_adjoint),
      cmocka_unit_test(test_compact_adjoint),
      cmocka_unit_test(test_same_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
