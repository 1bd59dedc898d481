// Observations and reward of motion tracking: against plain scalar formulas, their adjoints against
// central differences in the tangent space, and equal bits on every instruction set.
#include "track_scene.h"

static const struct track_block *block(const struct track *t, const char *name) {
  for (int i = 0; i < t->nblock; i++) {
    if (!strcmp(t->block[i].name, name)) {
      return &t->block[i];
    }
  }
  fail_msg("no block %s", name);
  return NULL;
}

static void transposed_times(double *o, const double *R, const double *x) {
  for (int c = 0; c < 3; c++) {
    o[c] = R[c] * x[0] + R[3 + c] * x[1] + R[6 + c] * x[2];
  }
}

// ---- what the numbers are

static void test_sizes_and_noise(void **state) {
  (void)state;
  static const struct {
    enum spec_observation set;
    int nobs;
    const char *name;
    double noise;
  } want[] = {
      {OBSERVATION_PAPER, 849, "root_rot", 0.05},
      {OBSERVATION_PAPER, 849, "root_vel", 0.5},
      {OBSERVATION_PAPER, 849, "root_rate", 0.2},
      {OBSERVATION_PAPER, 849, "joint_rot", 0.01},
      {OBSERVATION_PAPER, 849, "joint_vel", 0.5},
      {OBSERVATION_PAPER, 849, "key_pos", 0.01},
      {OBSERVATION_PAPER, 849, "t+2.root_pos", 0.25},
      {OBSERVATION_PAPER, 849, "t+2.root_rot", 0},
      {OBSERVATION_PAPER, 849, "root_height", 0},
      {OBSERVATION_COMPACT, 182, "gravity", 0.05},
      {OBSERVATION_COMPACT, 182, "joint_pos", 0.01},
      {OBSERVATION_COMPACT, 182, "t+3.joint_pos", 0},
  };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    struct scene *s = scene_new(want[i].set, 0);
    assert_int_equal(s->t.nobs, want[i].nobs);
    int next = 0;
    for (int b = 0; b < s->t.nblock; b++) {
      assert_int_equal(s->t.block[b].first, next);
      next += s->t.block[b].count;
    }
    assert_int_equal(next, want[i].nobs);
    const struct track_block *b = block(&s->t, want[i].name);
    assert_true(s->t.noise[b->first] == want[i].noise);
    assert_true(s->t.noise[b->first + b->count - 1] == want[i].noise);
  }
  struct scene *s = scene_new(OBSERVATION_PAPER, 0);
  const char *const key[5] = {"left_ankle_roll_link", "right_ankle_roll_link", "head_link",
                              "left_wrist_yaw_link", "right_wrist_yaw_link"};
  assert_int_equal(s->t.nkey, 5);
  for (int i = 0; i < 5; i++) {
    assert_string_equal(g1.body[s->t.key[i]].name, key[i]);
  }
  // the welded head is not noisy: body 16 of the 31, so joint 15 of the 30
  for (int i = 0; i < 6; i++) {
    assert_true(s->t.noise[block(&s->t, "joint_rot")->first + 15 * 6 + i] == 0);
  }
}

// The rotation of a body against its parent since the zero pose, in the body's own axes: for a
// hinge this is the turn about its axis, for a welded body the identity.
static void joint_columns(double out[6], int body, const double *xmat, const double *xmat0) {
  int up = g1.body[body].parent;
  double rel[9], rel0[9], turn[9];
  for (int k = 0; k < 9; k++) {
    rel[k] = rel0[k] = turn[k] = 0;
    for (int i = 0; i < 3; i++) {
      rel[k] += xmat[9 * up + 3 * i + k / 3] * xmat[9 * body + 3 * i + k % 3];
      rel0[k] += xmat0[9 * up + 3 * i + k / 3] * xmat0[9 * body + 3 * i + k % 3];
    }
  }
  for (int k = 0; k < 9; k++) {
    for (int i = 0; i < 3; i++) {
      turn[k] += rel0[3 * i + k / 3] * rel[3 * i + k % 3];
    }
  }
  for (int r = 0; r < 3; r++) {
    out[r] = turn[3 * r];
    out[3 + r] = turn[3 * r + 2];
  }
}

static void test_paper_numbers(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_PAPER, 0.3);
  double *obs = lanes_new(s->t.nobs), zero[64];
  static double xmat0[64 * 9], xpos[64 * 3], xmat[64 * 9];
  s->k->obs_fwd(&s->t, s->tw, s->sw, obs, s->qpos, s->qvel, s->frame);
  memcpy(zero, g1.qpos0, sizeof *zero * g1.nq);
  memset(zero + 7, 0, sizeof *zero * (g1.nq - 7));
  robot_fk(&g1, zero, NULL, xmat0);

  for (int l = 0; l < LANES; l++) {
    double q[64], v[64], want[849];
    int n = 0;
    lanes_get(q, s->qpos, g1.nq, l);
    lanes_get(v, s->qvel, g1.nv, l);
    robot_fk(&g1, q, xpos, xmat);
    for (int slot = 0; slot <= 3; slot++) {
      int f = s->frame[l] + slot < NFRAME ? s->frame[l] + slot : NFRAME - 1;
      const double *x = slot ? clip.xpos + f * g1.nbody * 3 : xpos;
      const double *mat = slot ? clip.xmat + f * g1.nbody * 9 : xmat;
      const double *R = mat + 9, *p = x + 3;
      if (slot) {
        want[n++] = p[0] - q[0];
        want[n++] = p[1] - q[1];
      }
      want[n++] = p[2];
      for (int i = 0; i < 3; i++) {
        want[n] = R[3 * i];
        want[3 + n++] = R[3 * i + 2];
      }
      n += 3;
      if (!slot) {
        for (int i = 0; i < 3; i++) {
          want[n] = v[i];
          want[3 + n++] = R[3 * i] * v[3] + R[3 * i + 1] * v[4] + R[3 * i + 2] * v[5];
        }
        n += 3;
      }
      for (int b = 2; b < g1.nbody; b++, n += 6) {
        joint_columns(want + n, b, mat, xmat0);
      }
      for (int j = 0; j < g1.nu && !slot; j++) {
        want[n++] = v[6 + j];
      }
      for (int k = 0; k < 5; k++) {
        for (int i = 0; i < 3; i++) {
          want[n++] = x[3 * s->t.key[k] + i] - p[i];
        }
      }
    }
    assert_int_equal(n, 849);
    for (int i = 0; i < n; i++) {
      assert_near(obs[i * LANES + l], want[i], 1e-12);
    }
  }
}

static void test_compact_numbers(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0.3);
  double *obs = lanes_new(s->t.nobs);
  static double xmat[64 * 9];
  s->k->obs_fwd(&s->t, s->tw, s->sw, obs, s->qpos, s->qvel, s->frame);
  const double *stand = g1.key[robot_find_key(&g1, "stand")].qpos + 7;

  for (int l = 0; l < LANES; l++) {
    double q[64], v[64], want[182];
    int n = 0;
    lanes_get(q, s->qpos, g1.nq, l);
    lanes_get(v, s->qvel, g1.nv, l);
    robot_fk(&g1, q, NULL, xmat);
    const double *R = xmat + 9;
    want[n++] = q[2];
    transposed_times(want + n, R, (const double[3]){0, 0, -1});
    transposed_times(want + n + 3, R, v);
    memcpy(want + n + 6, v + 3, 3 * sizeof *want);
    n += 9;
    for (int j = 0; j < 29; j++) {
      want[n + j] = q[7 + j] - stand[j];
      want[n + 29 + j] = v[6 + j];
    }
    n += 58;
    for (int slot = 1; slot <= 3; slot++) {
      int f = s->frame[l] + slot < NFRAME ? s->frame[l] + slot : NFRAME - 1;
      const double *ref = clip.qpos + f * g1.nq, *mat = clip.xmat + f * g1.nbody * 9 + 9;
      double d[3] = {ref[0] - q[0], ref[1] - q[1], ref[2] - q[2]};
      transposed_times(want + n, R, d);
      transposed_times(want + n + 3, R, (const double[3]){mat[0], mat[3], mat[6]});
      transposed_times(want + n + 6, R, (const double[3]){mat[2], mat[5], mat[8]});
      n += 9;
      for (int j = 0; j < 29; j++) {
        want[n++] = ref[7 + j] - stand[j];
      }
    }
    assert_int_equal(n, 182);
    for (int i = 0; i < n; i++) {
      assert_near(obs[i * LANES + l], want[i], 1e-12);
    }
  }
}

static double f_of(double z, double tail) {
  return exp(-z) + tail * (1 - z);
}

static void test_reward_numbers(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0.2);
  struct spec *p = &s->spec;
  double *reward = lanes_new(1), *term = lanes_new(TRACK_NTERM), tail = p->reward_tail;
  static double xpos[64 * 3];
  s->k->reward_fwd(&s->t, s->tw, s->sw, reward, term, s->qpos, s->qvel, s->action, s->prev,
                   s->frame, s->first);
  for (int l = 0; l < LANES; l++) {
    double q[64], v[64], a[64], b[64], move[64], sq[TRACK_NTERM] = {0}, vel = 0, want = 0;
    const double *ref = clip.qpos + s->frame[l] * g1.nq, *refv = clip.qvel + s->frame[l] * g1.nv;
    const double *refx = clip.xpos + s->frame[l] * g1.nbody * 3;
    lanes_get(q, s->qpos, g1.nq, l);
    lanes_get(v, s->qvel, g1.nv, l);
    lanes_get(a, s->action, g1.nu, l);
    lanes_get(b, s->prev, g1.nu, l);
    robot_fk(&g1, q, xpos, NULL);
    robot_difference(&g1, move, ref, q);
    for (int j = 0; j < 29; j++) {
      double dq = q[7 + j] - ref[7 + j], dv = v[6 + j] - refv[6 + j], da = a[j] - b[j];
      sq[TRACK_JOINT_SQ] += dq * dq / 29;
      sq[TRACK_JOINTVEL_SQ] += dv * dv / 29;
      sq[TRACK_RATE] += s->first[l] ? 0 : da * da / 29;
      want += (p->reward_joint * f_of(8 * dq * dq, tail) +
               p->reward_joint_vel * f_of(0.2 * dv * dv, tail)) /
              29;
    }
    double angle = sqrt(move[3] * move[3] + move[4] * move[4] + move[5] * move[5]);
    sq[TRACK_ROT_SQ] = pow(2 * sin(angle / 2), 2);
    for (int i = 0; i < 3; i++) {
      sq[TRACK_ROOT_SQ] += pow(q[i] - ref[i], 2);
      vel += pow(v[i] - refv[i], 2) + 0.1 * pow(v[3 + i] - refv[3 + i], 2);
      for (int k = 0; k < 5; k++) {
        const double *x = xpos + 3 * s->t.key[k], *y = refx + 3 * s->t.key[k];
        sq[TRACK_KEY_SQ] += pow((x[i] - q[i]) - (y[i] - ref[i]), 2);
      }
    }
    want += p->reward_root_pos * f_of(20 * sq[TRACK_ROOT_SQ], tail);
    want += p->reward_root_rot * f_of(10 * sq[TRACK_ROT_SQ], tail);
    want += p->reward_root_vel * f_of(vel, tail);
    want += p->reward_key * f_of(10 * sq[TRACK_KEY_SQ], tail);
    want -= p->reward_action_rate * sq[TRACK_RATE];
    assert_near(reward[l], want, 1e-12);
    for (int i = 0; i < TRACK_NTERM; i++) {
      assert_near(term[i * LANES + l], sq[i], 1e-12);
    }
  }
}

// on the reference itself, repeating the last action: the sum of the weights, times f(0)
static void test_reward_of_perfection(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0);
  double *reward = lanes_new(1);
  s->k->reward_fwd(&s->t, s->tw, s->sw, reward, NULL, s->qpos, s->qvel, s->action, s->action,
                   s->frame, s->first);
  for (int l = 0; l < LANES; l++) {
    assert_near(reward[l], 1.0 * 1.1, 1e-12); // the default weights add up to one
  }
}

// ---- adjoints

static void check_observation_adjoint(enum spec_observation set) {
  struct scene *s = scene_new(set, 0.3);
  int nobs = s->t.nobs, nv = g1.nv;
  double *qpos = lanes_new(g1.nq), *qvel = lanes_new(nv), *obs = lanes_new(nobs);
  double *jac = lanes_new(2 * nv * nobs); // (2 nv, nobs, LANES)
  for (int dir = 0; dir < 2 * nv; dir++) {
    double *out = jac + (size_t)dir * nobs * LANES;
    for (int k = 0; k < 4; k++) {
      move_state(qpos, qvel, s, dir, fd_at[k] * fd_step);
      s->k->obs_fwd(&s->t, s->tw, s->sw, obs, qpos, qvel, s->frame);
      for (int i = 0; i < nobs * LANES; i++) {
        out[i] += fd_weight[k] / fd_step * obs[i];
      }
    }
  }
  // one block at a time, so that none hides behind another
  double *random = lanes_random(nobs, 4), *dobs = lanes_new(nobs);
  double *want = lanes_new(2 * nv), *got = lanes_new(2 * nv);
  for (int b = 0; b < s->t.nblock; b++) {
    const struct track_block *blk = &s->t.block[b];
    memset(dobs, 0, sizeof *dobs * nobs * LANES);
    memset(want, 0, sizeof *want * 2 * nv * LANES);
    memset(got, 0, sizeof *got * 2 * nv * LANES);
    for (int i = blk->first * LANES; i < (blk->first + blk->count) * LANES; i++) {
      dobs[i] = random[i];
      for (int dir = 0; dir < 2 * nv; dir++) {
        want[dir * LANES + i % LANES] += random[i] * jac[(size_t)dir * nobs * LANES + i];
      }
    }
    s->k->obs_bwd(&s->t, s->tw, s->sw, got, got + nv * LANES, dobs, s->qpos, s->qvel, s->frame);
    compare_gradient(blk->name, got, want, 2 * nv, 1e-3);

    // a slot shows the robot's own state only where it is relative to it
    bool slot = blk->name[0] == 't', paper = set == OBSERVATION_PAPER;
    bool depends =
        !slot || strstr(blk->name, "root_pos") || (!paper && strstr(blk->name, "root_rot"));
    double sum = 0;
    for (int i = 0; i < 2 * nv * LANES; i++) {
      sum += fabs(got[i]);
    }
    assert_true(depends ? sum > 0.1 : sum == 0);
  }

  // it adds: what was there stays
  double *twice = lanes_new(2 * nv), *once = lanes_random(2 * nv, 5);
  memcpy(twice, once, sizeof *twice * 2 * nv * LANES);
  memset(got, 0, sizeof *got * 2 * nv * LANES);
  s->k->obs_bwd(&s->t, s->tw, s->sw, got, got + nv * LANES, random, s->qpos, s->qvel, s->frame);
  s->k->obs_bwd(&s->t, s->tw, s->sw, twice, twice + nv * LANES, random, s->qpos, s->qvel, s->frame);
  for (int i = 0; i < 2 * nv * LANES; i++) {
    assert_near(twice[i], once[i] + got[i], 1e-12 * (1 + fabs(got[i])));
  }
}
static void test_compact_adjoint(void **state) {
  (void)state;
  check_observation_adjoint(OBSERVATION_COMPACT);
}
static void test_paper_adjoint(void **state) {
  (void)state;
  check_observation_adjoint(OBSERVATION_PAPER);
}

static void weights_zero(struct spec *p) {
  p->reward_joint = p->reward_joint_vel = p->reward_root_pos = p->reward_root_rot = 0;
  p->reward_root_vel = p->reward_key = p->reward_action_rate = 0;
}

static void check_reward_adjoint(struct scene *s, const char *what, bool state_only) {
  int nv = g1.nv, nu = g1.nu, n = 2 * nv + 2 * nu;
  double *qpos = lanes_new(g1.nq), *qvel = lanes_new(nv), *a = lanes_new(nu), *b = lanes_new(nu);
  double *reward = lanes_new(1), *dreward = lanes_random(1, 6), *want = lanes_new(n);
  double *got = lanes_new(n);
  for (int dir = 0; dir < n; dir++) {
    for (int k = 0; k < 4; k++) {
      double h = fd_at[k] * fd_step;
      memcpy(a, s->action, sizeof *a * nu * LANES);
      memcpy(b, s->prev, sizeof *b * nu * LANES);
      move_state(qpos, qvel, s, dir < 2 * nv ? dir : 0, dir < 2 * nv ? h : 0);
      for (int l = 0; l < LANES && dir >= 2 * nv; l++) {
        int j = dir - 2 * nv;
        (j < nu ? a : b)[(j < nu ? j : j - nu) * LANES + l] += h;
      }
      s->k->reward_fwd(&s->t, s->tw, s->sw, reward, NULL, qpos, qvel, a, b, s->frame, s->first);
      for (int l = 0; l < LANES; l++) {
        want[dir * LANES + l] += dreward[l] * fd_weight[k] / fd_step * reward[l];
      }
    }
  }
  s->k->reward_bwd(&s->t, s->tw, s->sw, got, got + nv * LANES, got + 2 * nv * LANES,
                   got + (2 * nv + nu) * LANES, dreward, s->qpos, s->qvel, s->action, s->prev,
                   s->frame, s->first);
  compare_gradient(what, got, want, n, 1e-4);
  double sum[2] = {0};
  for (int i = 0; i < n * LANES; i++) {
    sum[i >= 2 * nv * LANES] += fabs(got[i]);
  }
  assert_true(sum[!state_only] > 0.01 && sum[state_only] == 0);
}

// each term alone, so that none hides behind another
static void test_reward_adjoint(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0.2);
  struct spec *p = &s->spec;
  const struct {
    const char *name;
    double *weight;
  } term[] = {
      {"joint", &p->reward_joint},       {"joint_vel", &p->reward_joint_vel},
      {"root_pos", &p->reward_root_pos}, {"root_rot", &p->reward_root_rot},
      {"root_vel", &p->reward_root_vel}, {"key", &p->reward_key},
      {"rate", &p->reward_action_rate},
  };
  for (size_t i = 0; i < sizeof term / sizeof *term; i++) {
    weights_zero(p);
    *term[i].weight = 1;
    check_reward_adjoint(s, term[i].name, i < 6);
  }
}

// the lane that has no previous action: nothing flows, whatever lies in its place
static void test_first_step_has_no_rate(void **state) {
  (void)state;
  struct scene *s = scene_new(OBSERVATION_COMPACT, 0.2);
  int nv = g1.nv, nu = g1.nu, lane = 2;
  double *d = lanes_new(2 * nv), *da = lanes_new(nu), *db = lanes_new(nu);
  double *reward = lanes_new(1), *dreward = lanes_random(1, 6);
  assert_true(s->first[lane]);
  for (int j = 0; j < nu; j++) {
    s->prev[j * LANES + lane] = NAN;
  }
  s->k->reward_fwd(&s->t, s->tw, s->sw, reward, NULL, s->qpos, s->qvel, s->action, s->prev,
                   s->frame, s->first);
  s->k->reward_bwd(&s->t, s->tw, s->sw, d, d + nv * LANES, da, db, dreward, s->qpos, s->qvel,
                   s->action, s->prev, s->frame, s->first);
  assert_true(isfinite(reward[lane]));
  for (int j = 0; j < nu; j++) {
    assert_true(da[j * LANES + lane] == 0 && db[j * LANES + lane] == 0);
    assert_true(da[j * LANES + lane + 1] != 0);
  }
}

// ---- equal bits everywhere: forward and adjoint, against the width-1 build, lane by lane

struct outputs {
  double *obs, *d_obs, *reward, *term, *d_reward;
};
static struct outputs outputs_new(const struct scene *s, int width) {
  int n = 2 * g1.nv;
  return (struct outputs){
      .obs = ARENA_NEW(&arena, double, s->t.nobs *width),
      .d_obs = ARENA_NEW(&arena, double, n *width),
      .reward = ARENA_NEW(&arena, double, width),
      .term = ARENA_NEW(&arena, double, TRACK_NTERM *width),
      .d_reward = ARENA_NEW(&arena, double, (n + 2 * g1.nu) * width),
  };
}
static void run_all(struct outputs *o, const struct scene *s, const struct track_kernels *k,
                    struct track_work *tw, struct sim_work *sw, const double *qpos,
                    const double *qvel, const double *a, const double *b, const double *dobs,
                    const double *dreward, const int *frame, const int *first) {
  int nv = g1.nv, nu = g1.nu, w = k->width;
  double *d = o->d_reward;
  k->obs_fwd(&s->t, tw, sw, o->obs, qpos, qvel, frame);
  k->obs_bwd(&s->t, tw, sw, o->d_obs, o->d_obs + nv * w, dobs, qpos, qvel, frame);
  k->reward_fwd(&s->t, tw, sw, o->reward, o->term, qpos, qvel, a, b, frame, first);
  k->reward_bwd(&s->t, tw, sw, d, d + nv * w, d + 2 * nv * w, d + (2 * nv + nu) * w, dreward, qpos,
                qvel, a, b, frame, first);
}
static void assert_lane_equal(const double *wide, const double *one, int n, int lane) {
  for (int i = 0; i < n; i++) {
    if (memcmp(&wide[i * LANES + lane], &one[i], sizeof *one)) {
      fail_msg("number %d of lane %d: %.17g, width 1 gives %.17g", i, lane, wide[i * LANES + lane],
               one[i]);
    }
  }
}

static void test_same_bits(void **state) {
  (void)state;
  static const char *const isa[] = {"v2", "v3", "v4", "arm"};
  const struct track_kernels *ref = track_kernels("w1");
  assert_non_null(ref);
  int compared = 0;
  for (size_t i = 0; i < 2 * sizeof isa / sizeof *isa; i++) {
    const struct track_kernels *k = track_kernels(isa[i / 2]);
    if (!k || !sim_kernels_named(isa[i / 2])) {
      continue; // another processor's
    }
    assert_int_equal(k->width, LANES);
    struct scene *s = scene_new(i % 2 ? OBSERVATION_PAPER : OBSERVATION_COMPACT, 0.3);
    struct outputs wide = outputs_new(s, LANES);
    double *dobs = lanes_random(s->t.nobs, 4), *dreward = lanes_random(1, 6);
    run_all(&wide, s, k, s->tw, s->sw, s->qpos, s->qvel, s->action, s->prev, dobs, dreward,
            s->frame, s->first);
    struct track_work *tw = track_work_new(&arena, &s->t, 1);
    struct sim_work *sw = sim_work_new(&arena, model, 1);
    for (int l = 0; l < LANES; l++) {
      double q[64], v[64], a[64], b[64], *d = ARENA_NEW(&arena, double, s->t.nobs);
      struct outputs one = outputs_new(s, 1);
      lanes_get(q, s->qpos, g1.nq, l);
      lanes_get(v, s->qvel, g1.nv, l);
      lanes_get(a, s->action, g1.nu, l);
      lanes_get(b, s->prev, g1.nu, l);
      lanes_get(d, dobs, s->t.nobs, l);
      run_all(&one, s, ref, tw, sw, q, v, a, b, d, &dreward[l], &s->frame[l], &s->first[l]);
      assert_lane_equal(wide.obs, one.obs, s->t.nobs, l);
      assert_lane_equal(wide.d_obs, one.d_obs, 2 * g1.nv, l);
      assert_lane_equal(wide.reward, one.reward, 1, l);
      assert_lane_equal(wide.term, one.term, TRACK_NTERM, l);
      assert_lane_equal(wide.d_reward, one.d_reward, 2 * (g1.nv + g1.nu), l);
    }
    compared++;
  }
  assert_true(compared > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes_and_noise),        cmocka_unit_test(test_paper_numbers),
      cmocka_unit_test(test_compact_numbers),        cmocka_unit_test(test_reward_numbers),
      cmocka_unit_test(test_reward_of_perfection),   cmocka_unit_test(test_compact_adjoint),
      cmocka_unit_test(test_paper_adjoint),          cmocka_unit_test(test_reward_adjoint),
      cmocka_unit_test(test_first_step_has_no_rate), cmocka_unit_test(test_same_bits),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
