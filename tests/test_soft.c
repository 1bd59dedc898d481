// Contact model `mujoco`: one step against MuJoCo itself (tolerance 0, many iterations),
// trajectories, closed forms, and lanes that do not see each other. Its gradients are in
// test_sim_grad.
#include "sim_scene.h"

enum { NCASE = 40, NCONE = 2 };

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

static void check_steps(const char *path, bool elliptic, double impratio, double dt) {
  struct scene s;
  scene_open(&s, path);
  s.r.cone = elliptic;
  s.r.impratio = impratio;
  s.mj->opt.cone = elliptic ? mjCONE_ELLIPTIC : mjCONE_PYRAMIDAL;
  s.mj->opt.impratio = impratio;
  s.mj->opt.timestep = dt;
  exact_solver(s.mj);
  struct sim_options o = sim_options_default();
  o.contact_model = SIM_MUJOCO;
  o.integrator = SIM_EULER;
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

static void test_steps(void **state) {
  (void)state;
  for (int i = 0; i < NSHIPPED; i++) {
    check_steps(shipped[i], false, 1, 0.002);
    check_steps(shipped[i], true, 1, 0.005);
    check_steps(shipped[i], i % 2, 3, 0.002);
  }
  check_steps("robots/go2.xml", true, 100, 0.002);
  check_steps("tests/robots/shapes.xml", false, 1, 0.002);
  check_steps("tests/robots/shapes.xml", true, 1, 0.002);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
