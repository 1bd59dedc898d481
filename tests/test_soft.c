// Contact model `mujoco`: one step against MuJoCo itself (tolerance 0, many iterations),
// trajectories, closed forms, and lanes that do not see each other. Its gradients are in
// test_sim_grad.
#include "sim_scene.h"

enum { NCASE = 40 };

// Releases after 2.2.2 changed some of what is reproduced.
static void needs_mujoco_2(void) {
  if (mj_version() / 100 != 2) {
    skip();
  }
}

// number against number, each within tol of the largest: 1e-9 is the contract
static double worst(const double *got, const double *want, int n) {
  double most = 1e-3, off = 0;
  for (int i = 0; i < n; i++) {
    most = fmax(most, fabs(want[i]));
  }
  for (int i = 0; i < n; i++) {
    double x = fabs(got[i] - want[i]);
    off = x <= off ? off : x; // a NaN stays
  }
  return off / most;
}

static void exact_solver(mjModel *m) {
  m->opt.solver = mjSOL_NEWTON;
  m->opt.integrator = mjINT_EULER;
  m->opt.tolerance = 0;
  m->opt.iterations = 300;
}

// MuJoCo's solver also stops when its cost no longer falls, which can leave 1e-8 of the
// acceleration. So it is started from several accelerations; the start whose solution leaves the
// smallest gradient M qacc - qfrc_smooth - qfrc_constraint, by MuJoCo's own numbers, stays in
// qacc_warmstart.
static void forward_exactly(struct scene *s) {
  double start[MAX_DOF] = {0}, best[MAX_DOF], least = INFINITY, g[MAX_DOF];
  int nv = s->r.nv;
  for (int n = 0; n < 8; n++) {
    mju_copy(s->d->qacc_warmstart, start, nv);
    mj_forward(s->mj, s->d);
    mj_mulM(s->mj, s->d, g, s->d->qacc);
    double most = 0, scale = 0;
    for (int d = 0; d < nv; d++) {
      most = fmax(most, fabs(g[d] - s->d->qfrc_smooth[d] - s->d->qfrc_constraint[d]));
      scale = fmax(scale, fabs(g[d]));
    }
    if (most < least) {
      least = most;
      mju_copy(best, start, nv);
    }
    if (least <= 1e-13 * scale) {
      break;
    }
    for (int d = 0; d < nv; d++) {
      start[d] = s->d->qacc[d] * (1 + 1e-2 * rng_range(&s->rng, -1, 1));
    }
  }
  mju_copy(s->d->qacc_warmstart, best, nv);
  mj_forward(s->mj, s->d);
  mju_copy(s->d->qacc_warmstart, best, nv);
}

// a random state, the lowest point of every tree near the floor, some joints beyond their limits
static void random_contact(struct scene *s, int number, double *height) {
  const struct robot *r = &s->r;
  int stand = robot_find_key(r, "stand");
  double turn[MAX_DOF] = {0};
  memcpy(s->q, stand >= 0 ? r->key[stand].qpos : r->qpos0, sizeof *s->q * (size_t)r->nq);
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    for (int k = 0; k < l->ndof; k++) {
      bool turns = l->type == JOINT_BALL || l->type == JOINT_HINGE || k >= 3;
      bool free = !r->dof[l->dof + k].limited && turns && number % 2;
      turn[l->dof + k] = (free ? 3 : 0.15) * rng_range(&s->rng, -1, 1);
      s->v[l->dof + k] = (number % 3 == 2 ? 0.01 : 1.5) * rng_range(&s->rng, -1, 1);
    }
  }
  robot_integrate(r, s->q, turn);
  for (int d = 0; d < r->nv; d++) {
    const struct robot_dof *f = &r->dof[d];
    if (f->limited && rng_uniform(&s->rng) < 0.3) {
      s->q[r->link[f->link].qadr] =
          f->range[rng_below(&s->rng, 2)] + 0.02 * rng_range(&s->rng, -1, 1);
    }
  }
  for (int i = 0; i < r->nu; i++) {
    const struct robot_actuator *a = &r->actuator[i];
    double at = a->bias[1] != 0 ? a->gear * s->q[a->qadr] : 0;
    s->u[i] = at + rng_range(&s->rng, -1, 1) * (a->ctrl_limited ? 1.2 * a->ctrl_range[1] : 0.5);
  }
  // onto the floor, by whatever moves a tree up
  struct sim_probe p = {.height = height};
  for (int i = 0; i < r->nlink; i++) {
    bool free = r->link[i].type == JOINT_FREE;
    bool slide = r->link[i].type == JOINT_SLIDE && strstr(r->link[i].joint_name, "rootz");
    if (!free && !slide) {
      continue;
    }
    double lowest = INFINITY;
    scene_probe(s, &p);
    for (int k = 0; k < sim_ncontact(s->m); k++) {
      int root = sim_contact(s->m, k).link;
      while (r->link[root].parent >= 0 && root != i) {
        root = r->link[root].parent;
      }
      lowest = root == i || slide ? fmin(lowest, height[k * s->W]) : lowest;
    }
    if (isfinite(lowest)) {
      s->q[r->link[i].qadr + (free ? 2 : 0)] -= lowest + rng_range(&s->rng, -0.001, 0.03);
    }
  }
}

static void check_steps_with(enum sim_integrator integrator, const char *path, bool elliptic,
                             double impratio, double dt) {
  struct scene s;
  scene_open(&s, path);
  s.r.cone = elliptic;
  s.r.impratio = impratio;
  s.mj->opt.cone = elliptic ? mjCONE_ELLIPTIC : mjCONE_PYRAMIDAL;
  s.mj->opt.impratio = impratio;
  s.mj->opt.timestep = dt;
  exact_solver(s.mj);
  s.mj->opt.integrator = integrator == SIM_RK4 ? mjINT_RK4 : mjINT_EULER;
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = integrator;
  o.dt = dt;
  o.substeps = 1;
  scene_model(&s, &o);
  int nv = s.r.nv, nq = s.r.nq, nc = sim_ncontact(s.m), rows = 0;
  double *acc = ARENA_NEW(&s.a, double, nv *s.W), *frc = ARENA_NEW(&s.a, double, nv *s.W);
  double *height = ARENA_NEW(&s.a, double, (nc + 1) * s.W);
  double *force = ARENA_NEW(&s.a, double, (3 * nc + 1) * s.W);
  double got[MAX_DOF], off[4] = {0};
  for (int n = 0; n < NCASE; n++) {
    random_contact(&s, n, height);
    struct sim_probe p = {.qacc_constrained = acc, .qfrc_constraint = frc, .contact_force = force};
    scene_probe(&s, &p);
    to_mujoco(&s);
    forward_exactly(&s);
    rows += s.d->nefc;
    from_lanes(&s, got, acc, nv);
    off[0] = fmax(off[0], worst(got, s.d->qacc, nv));
    from_lanes(&s, got, frc, nv);
    off[1] = fmax(off[1], worst(got, s.d->qfrc_constraint, nv));
    // the sum of contact forces along the normal
    double mine = 0, theirs = 0;
    for (int k = 0; k < nc; k++) {
      mine += force[(3 * k + 2) * s.W];
    }
    for (int k = 0; k < s.d->ncon; k++) {
      double f[6];
      mj_contactForce(s.mj, s.d, k, f);
      theirs += f[0];
    }
    off[2] = fmax(off[2], fabs(mine - theirs) / fmax(1e-3, fabs(theirs)));
    mj_step(s.mj, s.d); // from the same start
    scene_step(&s);
    off[3] = fmax(off[3], worst(s.v, s.d->qvel, nv));
    off[3] = fmax(off[3], worst(s.q, s.d->qpos, nq));
  }
  for (int i = 0; i < 4; i++) {
    static const char *const what[] = {"qacc", "constraint force", "contact force", "next state"};
    if (!(off[i] <= 1e-9)) {
      fail_msg("%s, %s, impratio %g: %s off by %g", path, elliptic ? "elliptic" : "pyramidal",
               impratio, what[i], off[i]);
    }
  }
  assert_true(rows > 0 || !strcmp(s.r.name, "pendulum"));
  scene_close(&s);
}

static void check_steps(const char *path, bool elliptic, double impratio, double dt) {
  check_steps_with(SIM_EULER, path, elliptic, impratio, dt);
}

static void test_steps(void **state) {
  (void)state;
  needs_mujoco_2();
  for (int i = 0; i < NSHIPPED; i++) {
    check_steps(shipped[i], false, 1, 0.002);
    check_steps(shipped[i], true, 1, 0.005);
    check_steps(shipped[i], i % 2, 3, 0.002);
  }
  check_steps("robots/go2.xml", true, 100, 0.002);
  check_steps("tests/robots/shapes.xml", false, 1, 0.002);
  check_steps("tests/robots/shapes.xml", true, 1, 0.002);
}

// MuJoCo's RK4: four solves a step
static void test_rk4_steps(void **state) {
  (void)state;
  needs_mujoco_2();
  for (int i = 0; i < NSHIPPED; i++) {
    check_steps_with(SIM_RK4, shipped[i], i % 2, 1, 0.002);
  }
  check_steps_with(SIM_RK4, "robots/go2.xml", true, 1, 0.005);
}

// ---- trajectories

// 1 s beside mj_step, both from the robot's key frame (lifted by `up`) with the spin given to its
// free root; ctrl holds the pose, or is a slow wave of motors
static void check_trajectory(const char *path, const char *key, double up, double spin,
                             double seconds) {
  struct scene s;
  scene_open(&s, path);
  exact_solver(s.mj);
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = SIM_EULER;
  o.dt = s.mj->opt.timestep;
  o.substeps = 1;
  scene_model(&s, &o);
  const struct robot *r = &s.r;
  int k = robot_find_key(r, key), touched = 0;
  memcpy(s.q, r->key[k].qpos, sizeof *s.q * (size_t)r->nq);
  if (r->link[0].type == JOINT_FREE) {
    s.q[2] += up;
    s.v[3] = spin;
    s.v[4] = .7 * spin;
  }
  to_mujoco(&s);
  for (int t = 0; t * o.dt < seconds; t++) {
    for (int i = 0; i < r->nu; i++) {
      const struct robot_actuator *a = &r->actuator[i];
      s.u[i] = a->bias[1] != 0 ? r->key[k].qpos[a->qadr] + .1 * sin(5 * t * o.dt + i)
                               : .02 * sin(9 * t * o.dt + i) * (a->ctrl_range[1]);
    }
    mju_copy(s.d->ctrl, s.u, r->nu);
    mj_step(s.mj, s.d);
    scene_step(&s);
    touched += s.d->ncon > 0;
    double off = fmax(worst(s.q, s.d->qpos, r->nq), worst(s.v, s.d->qvel, r->nv));
    if (!(off <= 1e-6)) {
      fail_msg("%s: off by %g after %g s", path, off, t * o.dt);
    }
  }
  assert_true(touched * o.dt >= .3 * seconds || !strcmp(r->name, "pendulum"));
  scene_close(&s);
}

static void test_trajectories(void **state) {
  (void)state;
  needs_mujoco_2();
  check_trajectory("robots/g1.xml", "stand", 0, .1, 1);
  check_trajectory("robots/go2.xml", "stand", 0, .1, 1);
  check_trajectory("robots/ant.xml", "stand", 0, .5, 1);
  check_trajectory("robots/hopper.xml", "stand", 0, 0, 1);
  check_trajectory("robots/half_cheetah.xml", "stand", 0, 0, 1);
  check_trajectory("robots/cube.xml", "resting", .05, 2, 1);
  check_trajectory("robots/ball.xml", "resting", .02, 3, 1);
  check_trajectory("robots/pendulum.xml", "hanging", 0, 0, 1);
}

// ---- closed forms

static void ball_model(struct scene *s, const struct sim_options *o, double stiffness, double d) {
  scene_open(s, "robots/ball.xml");
  for (int i = 0; i < s->r.ngeom; i++) {
    struct robot_geom *g = &s->r.geom[i];
    g->condim = 1;
    g->solref[0] = -stiffness;
    g->solref[1] = -2 * sqrt(stiffness);
    g->solimp[0] = g->solimp[1] = d;
  }
  s->r.gravity[2] = -1;
  scene_model(s, o);
}

// With a constant impedance d and the direct format, a weight rests at r = (1 - d) g / k.
static void test_rest(void **state) {
  (void)state;
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = SIM_EULER;
  o.dt = 0.001;
  o.substeps = 100;
  static const double stiffness[] = {1e2, 1e3, 1e4};
  for (int i = 0; i < 3; i++) {
    struct scene s;
    ball_model(&s, &o, stiffness[i], .9);
    s.q[2] = .1;
    for (int t = 0; t < 60; t++) {
      scene_step(&s);
    }
    assert_near(.1 - s.q[2], .1 / stiffness[i], 1e-10 / stiffness[i] * 1e2, "depth at rest");
    scene_close(&s);
  }
}

// One contact without friction: a = (1 - d) a0 + d aref if aref > a0, else a0.
static void test_one_contact(void **state) {
  (void)state;
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = SIM_EULER;
  o.substeps = 1;
  struct scene s;
  ball_model(&s, &o, 500, .8);
  double *acc = ARENA_NEW(&s.a, double, s.r.nv *s.W);
  for (int n = 0; n < 20; n++) {
    double depth = rng_range(&s.rng, -.01, .02), v = rng_range(&s.rng, -.5, .5);
    s.q[2] = .1 - depth;
    s.v[2] = v;
    struct sim_probe p = {.qacc_constrained = acc};
    scene_probe(&s, &p);
    double B = 2 * sqrt(500.) / .8, K = 500 / (.8 * .8), aref = -B * v + K * .8 * depth;
    double want = depth > 0 && aref > -1 ? .2 * -1 + .8 * aref : -1;
    assert_near(acc[2 * s.W], want, 1e-11, "acceleration");
  }
  scene_close(&s);
}

// A plane and a sphere of different parameters: how they mix, with a power that is no whole number.
// The numbers are MuJoCo 2.2.2's for the same pair.
static void test_mixing(void **state) {
  (void)state;
  needs_mujoco_2();
  static const int condim[] = {1, 3, 3};
  for (int n = 0; n < 3; n++) {
    struct scene s;
    scene_open(&s, "robots/ball.xml");
    struct sim_options o = sim_options_default();
    o.contact_model = SIM_MUJOCO;
    o.integrator = SIM_EULER;
    o.dt = .002;
    o.substeps = 1;
    mjModel *m = s.mj;
    static const double solref[2] = {.01, .8}, solimp[5] = {.6, .97, .002, .4, 3};
    int floor = mj_name2id(m, mjOBJ_GEOM, "floor"), ball = mj_name2id(m, mjOBJ_GEOM, "ball");
    m->geom_condim[floor] = m->geom_condim[ball] = condim[n];
    m->geom_friction[3 * floor] = .7;
    m->geom_friction[3 * ball] = .5;
    mju_copy(m->geom_solref + mjNREF * ball, solref, 2);
    mju_copy(m->geom_solimp + mjNIMP * ball, solimp, 5);
    m->geom_solmix[ball] = 3;
    m->opt.impratio = 3;
    m->opt.cone = n == 2 ? mjCONE_ELLIPTIC : mjCONE_PYRAMIDAL;
    m->opt.timestep = .002;
    exact_solver(m);
    for (int i = 0; i < s.r.ngeom; i++) {
      struct robot_geom *g = &s.r.geom[i];
      bool is_ball = g->type == GEOM_SPHERE;
      g->condim = condim[n];
      g->friction[0] = is_ball ? .5 : .7;
      if (is_ball) {
        memcpy(g->solref, solref, sizeof solref);
        memcpy(g->solimp, solimp, sizeof solimp);
        g->solmix = 3;
      }
    }
    s.r.impratio = 3;
    s.r.cone = n == 2;
    scene_model(&s, &o);
    double *acc = ARENA_NEW(&s.a, double, s.r.nv *s.W), got[6];
    s.q[2] = .0995;
    s.v[0] = .03;
    s.v[2] = -.2;
    s.v[4] = .5;
    struct sim_probe p = {.qacc_constrained = acc};
    scene_probe(&s, &p);
    to_mujoco(&s);
    forward_exactly(&s);
    from_lanes(&s, got, acc, 6);
    assert_all_near(got, s.d->qacc, 6, 1e-12, "qacc");
    scene_close(&s);
  }
}

// ---- contacts from distance

// A frictionless ball above the floor, 0 < r < width: the step does not feel it, and the backward
// pass differentiates a = a0 + d(r) (aref - a0)+, aref = -B v (arXiv 2506.14186).
static void test_reaching(void **state) {
  (void)state;
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = SIM_EULER;
  o.substeps = 1;
  const double dw = .8, stiffness = 500, d0 = 1e-4, d1 = .01, width = .05, mid = .9999;
  for (int on = 0; on < 2; on++) {
    o.cfd.on = on;
    struct scene s;
    ball_model(&s, &o, stiffness, dw);
    int nq = s.r.nq, nv = s.r.nv, W = s.W;
    double *trail = ARENA_NEW(&s.a, double, (nq + nv) * W), *du = ARENA_NEW(&s.a, double, W);
    double *dq = ARENA_NEW(&s.a, double, nv *W), *dv = ARENA_NEW(&s.a, double, nv *W);
    for (int n = 0; n < 8; n++) {
      double r = .003 + .008 * n, v = -.5, h = o.dt;
      s.q[2] = .1 + r;
      s.v[2] = v;
      to_lanes(&s, s.lq, s.q, nq);
      to_lanes(&s, s.lv, s.v, nv);
      s.k->step_fwd(s.m, s.w, s.lq, s.lv, trail, s.lu, s.lp);
      assert_near(s.lv[2 * W], v - h, 1e-15, "a free fall");
      memset(dq, 0, sizeof *dq * (size_t)(nv * W));
      memset(dv, 0, sizeof *dv * (size_t)(nv * W));
      dv[2 * W] = 1;
      s.k->step_bwd(s.m, s.w, dq, dv, du, NULL, trail, s.lu, s.lp);
      double x = 1 - r / width, B = 2 * sqrt(stiffness) / dw, up = -B * v + 1;
      bool felt = on && r < width;
      // at these r, x < mid: y = x^2 / mid
      double d = felt ? d0 + x * x / mid * (d1 - d0) : 0;
      double slope = felt ? -2 * x / mid * (d1 - d0) / width : 0;
      assert_near(dv[2 * W], 1 - h * d * B, 1e-12, "d v+ / d v");
      assert_near(dq[2 * W], h * slope * up, 1e-12, "d v+ / d z");
    }
    scene_close(&s);
  }
}

// Steps of a robot in contact are the same to the bit, and their gradients are not.
static void test_reaching_is_backward(void **state) {
  (void)state;
  double end[2][2 * MAX_DOF], grad[2][2 * MAX_DOF];
  for (int on = 0; on < 2; on++) {
    struct sim_options o = sim_options_default();
    o.contact_model = SIM_MUJOCO;
    o.integrator = SIM_EULER;
    o.cfd.on = on;
    struct scene s;
    scene_open(&s, "robots/go2.xml");
    scene_model(&s, &o);
    int nq = s.r.nq, nv = s.r.nv, W = s.W, N = 20, size = o.substeps * (nq + nv) * W;
    memcpy(s.q, s.r.key[robot_find_key(&s.r, "stand")].qpos, sizeof *s.q * (size_t)nq);
    double *trail = ARENA_NEW(&s.a, double, N *size), *du = ARENA_NEW(&s.a, double, s.r.nu *W);
    double *dq = ARENA_NEW(&s.a, double, nv *W), *dv = ARENA_NEW(&s.a, double, nv *W);
    to_lanes(&s, s.lq, s.q, nq);
    to_lanes(&s, s.lv, s.v, nv);
    to_lanes(&s, s.lu, s.u, s.r.nu);
    for (int i = 0; i < nv * W; i++) {
      dq[i] = dv[i] = 1;
    }
    for (int t = 0; t < N; t++) {
      s.k->step_fwd(s.m, s.w, s.lq, s.lv, trail + t * size, s.lu, s.lp);
    }
    from_lanes(&s, end[on], s.lq, nq);
    from_lanes(&s, end[on] + nq, s.lv, nv);
    for (int t = N - 1; t >= 0; t--) {
      s.k->step_bwd(s.m, s.w, dq, dv, du, NULL, trail + t * size, s.lu, s.lp);
    }
    from_lanes(&s, grad[on], dq, nv);
    from_lanes(&s, grad[on] + nv, dv, nv);
    for (int i = 0; i < 2 * nv; i++) {
      assert_true(isfinite(grad[on][i]));
    }
    if (on) {
      assert_memory_equal(end[0], end[1], sizeof(double) * (size_t)(nq + nv));
      assert_true(memcmp(grad[0], grad[1], sizeof(double) * 2 * (size_t)nv) != 0);
    }
    scene_close(&s);
  }
}

// ---- what does not combine

static void test_refused(void **state) {
  (void)state;
  struct scene s;
  struct err e = {0};
  scene_open(&s, "robots/ball.xml");
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  assert_null(sim_model_new(&s.a, &s.r, &o, &e));
  assert_int_equal(e.code, EXIT_USAGE);
  assert_non_null(strstr(e.text, "euler"));
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps),
      cmocka_unit_test(test_rk4_steps),
      cmocka_unit_test(test_trajectories),
      cmocka_unit_test(test_rest),
      cmocka_unit_test(test_one_contact),
      cmocka_unit_test(test_mixing),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_reaching),
      cmocka_unit_test(test_reaching_is_backward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
