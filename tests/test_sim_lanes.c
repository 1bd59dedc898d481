// A lane is an instance on its own: every instruction set and the width-1 reference give the same
// numbers (-0 == 0), forward and adjoint, whoever the neighbours are. G1 standing, falling onto its
// body, and in the air, with other parameters in every lane.
#include "base/rng.h"
#include "sim/sim.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LANES = SIM_WIDTH, NSTEP = 6, MAX_SUBSTEPS = 4 };

static struct arena arena;
static struct robot g1;

static int set_up(void **state) {
  (void)state;
  struct err e = {0};
  arena_init(&arena);
  return robot_load(&g1, &arena, "robots/g1.xml", false, &e) ? err_report(&e) : 0;
}
static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

// Eight instances, lane innermost: the start of a rollout, and what it leads to.
struct batch {
  int width;
  double *qpos, *qvel, *ctrl, *param;    // in
  double *force, *dq, *dv, *du, *dparam; // out, with qpos and qvel after NSTEP control steps
};

static struct batch batch_new(const struct sim_model *m, int width) {
  struct batch b = {.width = width};
  struct {
    double **p;
    int n;
  } rows[] = {{&b.qpos, g1.nq},
              {&b.qvel, g1.nv},
              {&b.ctrl, NSTEP * g1.nu},
              {&b.param, sim_nparam(m)},
              {&b.dq, g1.nv},
              {&b.dv, g1.nv},
              {&b.du, NSTEP * g1.nu},
              {&b.dparam, sim_nparam(m)},
              {&b.force, sim_ncontact(m)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    *rows[i].p = ARENA_NEW(&arena, double, rows[i].n *width);
  }
  return b;
}

// lane `from` of a becomes lane `to` of b, for all that goes in
static void batch_lane(const struct sim_model *m, struct batch *b, int to, const struct batch *a,
                       int from) {
  struct {
    double *b;
    const double *a;
    int n;
  } rows[] = {{b->qpos, a->qpos, g1.nq},
              {b->qvel, a->qvel, g1.nv},
              {b->ctrl, a->ctrl, NSTEP * g1.nu},
              {b->param, a->param, sim_nparam(m)}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (int i = 0; i < rows[k].n; i++) {
      rows[k].b[i * b->width + to] = rows[k].a[i * a->width + from];
    }
  }
}

// standing, tilted and falling on hands and knees, lying, in the air
static struct batch eight_states(const struct sim_model *m) {
  struct batch b = batch_new(m, LANES);
  int stand = robot_find_key(&g1, "stand");
  sim_param_default(m, b.param, LANES);
  for (int l = 0; l < LANES; l++) {
    struct rng rng = rng_stream(1, RNG_TEST, (uint32_t)l, 0, 0);
    double q[64], move[64] = {0};
    memcpy(q, g1.key[stand].qpos, sizeof *q * (size_t)g1.nq);
    for (int d = 3; d < g1.nv; d++) {
      move[d] = rng_range(&rng, -.2, .2);
      b.qvel[d * LANES + l] = rng_range(&rng, -1, 1);
    }
    move[3 + l % 3] += l >= 4 ? 1.4 : 0; // fallen
    robot_integrate(&g1, q, move);
    q[2] = l == 3 ? 2 : l >= 4 ? .15 + .05 * (l % 3) : q[2] - .004 * l;
    for (int i = 0; i < g1.nq; i++) {
      b.qpos[i * LANES + l] = q[i];
    }
    for (int i = 0; i < NSTEP * g1.nu; i++) {
      b.ctrl[i * LANES + l] = q[7 + i % g1.nu] + rng_range(&rng, -.5, .5);
    }
    struct sim_param_block mass = sim_param_find(m, "mass"), mu = sim_param_find(m, "mu");
    for (int i = 0; i < mass.count; i++) {
      b.param[(mass.first + i) * LANES + l] *= 1 + .03 * l;
    }
    for (int i = 0; i < mu.count; i++) {
      b.param[(mu.first + i) * LANES + l] = .2 + .1 * l;
    }
  }
  return b;
}

// NSTEP control steps forward, and the adjoint of the plain sum of the end state
static void run(const struct sim_kernels *k, const struct sim_model *m, struct batch *b) {
  int W = b->width, size = sim_model_options(m)->substeps * (g1.nq + g1.nv) * W;
  assert_int_equal(W, k->width);
  struct arena_mark mark = arena_mark(&arena);
  struct sim_work *w = sim_work_new(&arena, m, W);
  double *trail = ARENA_NEW(&arena, double, NSTEP *size);
  for (int t = 0; t < NSTEP; t++) {
    k->step_fwd(m, w, b->qpos, b->qvel, trail + t * size, b->ctrl + t * g1.nu * W, b->param);
  }
  k->contacts(m, w, b->force, NULL);
  for (int i = 0; i < g1.nv * W; i++) {
    b->dq[i] = b->dv[i] = 1 + i / W % 3;
  }
  for (int t = NSTEP - 1; t >= 0; t--) {
    k->step_bwd(m, w, b->dq, b->dv, b->du + t * g1.nu * W, b->dparam, trail + t * size,
                b->ctrl + t * g1.nu * W, b->param);
  }
  arena_reset(&arena, mark);
}

static void same_lane(const struct sim_model *m, const struct batch *a, int la,
                      const struct batch *b, int lb, const char *what) {
  const struct {
    const char *name;
    const double *a, *b;
    int n;
  } rows[] = {{"qpos", a->qpos, b->qpos, g1.nq},
              {"qvel", a->qvel, b->qvel, g1.nv},
              {"force", a->force, b->force, sim_ncontact(m)},
              {"dqpos", a->dq, b->dq, g1.nv},
              {"dqvel", a->dv, b->dv, g1.nv},
              {"dctrl", a->du, b->du, NSTEP * g1.nu},
              {"dparam", a->dparam, b->dparam, sim_nparam(m)}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (int i = 0; i < rows[k].n; i++) {
      double x = rows[k].a[i * a->width + la], y = rows[k].b[i * b->width + lb];
      if (!(x == y)) {
        fail_msg("%s: %s[%d] of lane %d: %.17g, and %.17g", what, rows[k].name, i, la, x, y);
      }
    }
  }
}

// bodies other than the feet bear load in some lane, the feet in another, nothing in the air
static void check_loads(const struct sim_model *m, const struct batch *b) {
  double body = 0, feet = 0, air = 0;
  for (int k = 0; k < sim_ncontact(m); k++) {
    bool foot = strstr(g1.body[sim_contact(m, k).body].name, "ankle_roll") != NULL;
    for (int l = 0; l < LANES; l++) {
      double f = b->force[k * LANES + l];
      if (l == 3) {
        air += f;
      } else if (foot) {
        feet += f;
      } else {
        body += f;
      }
    }
  }
  assert_true(feet > 50);
  assert_true(body > 50);
  assert_true(air == 0);
  for (int l = 0; l < LANES; l++) {
    double g = 0;
    for (int d = 0; d < g1.nv; d++) {
      assert_true(isfinite(b->dq[d * LANES + l]) && isfinite(b->dv[d * LANES + l]));
      g += fabs(b->dq[d * LANES + l]) + fabs(b->dv[d * LANES + l]);
    }
    assert_true(g > 1);
  }
}

// the cases: contact models, and what they run under
struct kind {
  enum sim_contact_model contact;
  enum sim_integrator integrator;
  enum sim_contact_step step;
  int cone;
};
static const struct kind moreau_split = {SIM_SMOOTHED, SIM_MOREAU, SIM_SPLIT, 0};
static const struct kind moreau_published = {SIM_SMOOTHED, SIM_MOREAU, SIM_PUBLISHED, 0};
static const struct kind euler_split = {SIM_SMOOTHED, SIM_EULER, SIM_SPLIT, 0};
static const struct kind mujoco_pyramidal = {SIM_MUJOCO, SIM_EULER, SIM_SPLIT, 0};
static const struct kind mujoco_elliptic = {SIM_MUJOCO, SIM_EULER, SIM_SPLIT, 1};

static struct sim_model *model(struct kind kind) {
  struct err e = {0};
  struct sim_options o = sim_options_default();
  g1.cone = kind.cone;
  o.contact_model = kind.contact;
  o.integrator = kind.integrator;
  o.contact_step = kind.step;
  o.substeps = MAX_SUBSTEPS;
  struct sim_model *m = sim_model_new(&arena, &g1, &o, &e);
  assert_non_null(m);
  return m;
}

static void same_on_every_build(struct kind kind) {
  static const char *const wide[] = {"v2", "v3", "v4", "arm"};
  struct sim_model *m = model(kind);
  struct batch ref[LANES];
  const struct batch start = eight_states(m);
  int nbuild = 0;
  for (int l = 0; l < LANES; l++) {
    ref[l] = batch_new(m, 1);
    batch_lane(m, &ref[l], 0, &start, l);
    run(sim_kernels_named("w1"), m, &ref[l]);
  }
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    const struct sim_kernels *k = sim_kernels_named(wide[i]);
    if (!k) {
      continue;
    }
    struct batch b = eight_states(m);
    run(k, m, &b);
    check_loads(m, &b);
    for (int l = 0; l < LANES; l++) {
      same_lane(m, &b, l, &ref[l], 0, wide[i]);
    }
    nbuild++;
  }
  assert_true(nbuild > 0);
}

static void test_builds_moreau_split(void **state) {
  (void)state;
  same_on_every_build(moreau_split);
}
static void test_builds_moreau_published(void **state) {
  (void)state;
  same_on_every_build(moreau_published);
}
static void test_builds_euler_split(void **state) {
  (void)state;
  same_on_every_build(euler_split);
}

static void test_builds_mujoco(void **state) {
  (void)state;
  same_on_every_build(mujoco_pyramidal);
  same_on_every_build(mujoco_elliptic);
}

// Contacts are skipped when no lane is near: a neighbour that is near must not be felt, nor must
// one that blew up.
static void neighbours(struct kind kind) {
  struct err e = {0};
  struct sim_model *m = model(kind);
  const struct sim_kernels *k = sim_kernels(&e);
  assert_non_null(k);
  if (k->width == 1) {
    skip();
  }
  struct batch mixed = eight_states(m), start = eight_states(m);
  run(k, m, &mixed);
  for (int l = 0; l < LANES; l++) {
    for (int company = 0; company < 3; company++) {
      struct batch b = batch_new(m, LANES);
      for (int j = 0; j < LANES; j++) { // alone with copies of itself; all others in the air; NaN
        batch_lane(m, &b, j, &start, company == 1 && j != l ? 3 : l);
        if (company == 2 && j != l) {
          b.qvel[7 * LANES + j] = NAN;
        }
      }
      run(k, m, &b);
      same_lane(m, &b, l, &mixed, l, company == 0 ? "copies" : company == 1 ? "in the air" : "NaN");
    }
  }
}
static void test_neighbours_split(void **state) {
  (void)state;
  neighbours(moreau_split);
}
static void test_neighbours_published(void **state) {
  (void)state;
  neighbours(moreau_published);
}

static void test_neighbours_mujoco(void **state) { // nor how long one takes to converge
  (void)state;
  neighbours(mujoco_pyramidal);
  neighbours(mujoco_elliptic);
}

// The lane's place does not matter either.
static void test_place(void **state) {
  (void)state;
  struct err e = {0};
  struct sim_model *m = model(moreau_split);
  const struct sim_kernels *k = sim_kernels(&e);
  assert_non_null(k);
  if (k->width == 1) {
    skip();
  }
  struct batch a = eight_states(m), start = eight_states(m), b = batch_new(m, LANES);
  run(k, m, &a);
  for (int l = 0; l < LANES; l++) {
    batch_lane(m, &b, (l + 3) % LANES, &start, l);
  }
  run(k, m, &b);
  for (int l = 0; l < LANES; l++) {
    same_lane(m, &a, l, &b, (l + 3) % LANES, "moved");
  }
}

static void test_dispatch(void **state) {
  (void)state;
  struct err e = {0};
  setenv("DSIM_ISA", "v5", 1);
  assert_null(sim_kernels(&e));
  assert_int_equal(e.code, EXIT_USAGE);
  assert_non_null(strstr(e.text, "v5"));
  setenv("DSIM_ISA", "w1", 1);
  e = (struct err){0};
  assert_string_equal(sim_kernels(&e)->isa, "w1");
  unsetenv("DSIM_ISA");
  assert_int_equal(sim_kernels_named("w1")->width, 1);
  assert_null(sim_kernels_named("v5"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_builds_moreau_split),
      cmocka_unit_test(test_builds_moreau_published),
      cmocka_unit_test(test_builds_euler_split),
      cmocka_unit_test(test_builds_mujoco),
      cmocka_unit_test(test_neighbours_split),
      cmocka_unit_test(test_neighbours_published),
      cmocka_unit_test(test_neighbours_mujoco),
      cmocka_unit_test(test_place),
      cmocka_unit_test(test_dispatch),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
