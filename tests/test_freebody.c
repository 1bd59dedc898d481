// Free bodies under soft contact against libmujoco and the published numbers of arXiv 2506.14186;
// adjoints against central differences; Contacts From Distance against what it is defined to be.
#include "sim/freebody.h"
#include "sim/freebody_private.h"
#include "base/rng.h"
#include "sim/rotation.h"
#include <math.h>
#include <mujoco/mujoco.h>
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

static const struct shape_row {
  const char *name, *type;
  enum freebody_shape shape;
  double size[3], density;
} shapes[] = {
    {"ball", "sphere", FREEBODY_SPHERE, {0.05}, 1},
    {"capsule", "capsule", FREEBODY_CAPSULE, {0.05, 0.07}, 50},
    {"ellipsoid", "ellipsoid", FREEBODY_ELLIPSOID, {0.05, 0.05, 0.1}, 200},
    {"cylinder", "cylinder", FREEBODY_CYLINDER, {0.04, 0.05}, 100},
    {"cube", "box", FREEBODY_BOX, {0.05, 0.06, 0.045}, 100},
    {"soft cube", "box", FREEBODY_SOFT_BOX, {0.05, 0.06, 0.045}, 100},
};
enum { NSHAPE = sizeof shapes / sizeof *shapes };

// a contact law whose every term is at work
static struct freebody_scene shape_scene(const struct shape_row *row) {
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 1;
  s.body[0] = (struct freebody){.shape = row->shape, .damping = 0.01};
  memcpy(s.body[0].size, row->size, sizeof row->size);
  freebody_set_density(&s.body[0], row->density);
  s.law = (struct soft_law){{0.015, 0.9}, {0.5, 0.96, 0.02, 0.4, 3}, 0};
  s.friction_plane = 0.7;
  s.impratio = 3;
  return s;
}

// a state whose lowest point is `depth` under the plane
static void random_state(double y[13], const struct freebody_scene *s, struct rng *r,
                         double depth) {
  static const double identity[4] = {1, 0, 0, 0};
  double turn[3];
  for (int i = 0; i < 3; i++) {
    y[i] = rng_range(r, -0.2, 0.2);
    turn[i] = rng_range(r, -2, 2);
  }
  quat_shift(y + 3, identity, turn);
  for (int i = 0; i < 6; i++) {
    y[7 + i] = rng_range(r, -1, 1);
  }
  y[2] -= freebody_clearance(s, 0, y) + depth;
}

// ---- libmujoco

static mjModel *compile(const char *xml) {
  char path[] = "/tmp/dsim_test_freebody_XXXXXX.xml", error[500] = "";
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0 && write(fd, xml, strlen(xml)) == (ssize_t)strlen(xml));
  close(fd);
  mjModel *m = mj_loadXML(path, NULL, error, sizeof error);
  unlink(path);
  if (!m) {
    fail_msg("%s", error);
  }
  return m;
}

static mjModel *shape_model(const struct shape_row *row) {
  char xml[4096];
  snprintf(xml, sizeof xml,
           "<mujoco><option tolerance='1e-14' iterations='200' impratio='3' integrator='RK4'>"
           "<flag refsafe='disable'/></option>"
           "<default><geom solref='.015 .9' solimp='.5 .96 .02 .4 3' friction='.7'/></default>"
           "<worldbody><geom type='plane' size='1 1 1'/><body><joint type='free' damping='.01'/>"
           "<geom type='%s' size='%g %g %g' density='%g'/></body></worldbody></mujoco>",
           row->type, row->size[0], row->size[1], row->size[2], row->density);
  return compile(xml);
}

static void test_mujoco_acceleration(void **state) {
  (void)state;
  for (int i = 0; i < NSHAPE; i++) {
    if (shapes[i].shape == FREEBODY_SOFT_BOX) {
      continue; // MuJoCo has no such manifold
    }
    struct freebody_scene s = shape_scene(&shapes[i]);
    struct ode_system system = freebody_system(&s);
    mjModel *m = shape_model(&shapes[i]);
    mjData *d = mj_makeData(m);
    struct rng r = rng_stream(1, RNG_TEST, (uint32_t)i, 0, 0);
    assert_true(fabs(m->body_mass[1] - s.body[0].mass) < 1e-12 * s.body[0].mass);
    for (int k = 0; k < 200; k++) {
      double y[13], qacc[6], worst = 0, largest = 0, sum = 0;
      random_state(y, &s, &r, rng_range(&r, -0.01, 0.04));
      struct ode_point p = {.y = y};
      system.rhs(qacc, NULL, system.self, &p, NULL);
      memcpy(d->qpos, y, sizeof(double[7]));
      memcpy(d->qvel, y + 7, sizeof(double[6]));
      mj_forward(m, d);
      // MuJoCo's body frame is the principal one; bodies here have theirs in the same order
      for (int j = 0; j < 6; j++) {
        worst = fmax(worst, fabs(qacc[j] - d->qacc[j]));
        largest = fmax(largest, fabs(d->qacc[j]));
        sum += qacc[j]; // fmax does not see NaN
      }
      if (!(worst <= 1e-9 * largest) || !isfinite(sum)) {
        fail_msg("%s, state %d: qacc off by %.3e of %.3e", shapes[i].name, k, worst, largest);
      }
    }
    mj_deleteData(d);
    mj_deleteModel(m);
  }
}

// two spheres that touch each other and the table
static struct freebody_scene pair_scene(void) {
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 2;
  for (int b = 0; b < 2; b++) {
    s.body[b] = (struct freebody){.shape = FREEBODY_SPHERE, .size = {0.04}, .damping = 0.02};
    freebody_set_density(&s.body[b], 500 + 300 * b);
  }
  s.pair = true;
  s.friction_plane = 0.6;
  s.friction_pair = 0.6;
  s.law = (struct soft_law){{0.02, 0.7}, {0.3, 0.95, 0.02, 0.5, 2}, 0};
  return s;
}

static void pair_state(double y[26], struct rng *r) {
  static const double identity[4] = {1, 0, 0, 0};
  double direction[3], turn[3];
  for (int i = 0; i < 3; i++) {
    direction[i] = rng_normal(r);
  }
  double length = sqrt(vec3_dot(direction, direction)), gap = rng_range(r, -0.01, 0.002);
  for (int b = 0; b < 2; b++) {
    for (int i = 0; i < 3; i++) {
      y[7 * b + i] = b == 0 ? (i == 2 ? 0.04 : 0.1) : y[i] + direction[i] / length * (0.08 + gap);
      turn[i] = rng_range(r, -2, 2);
    }
    quat_shift(y + 7 * b + 3, identity, turn);
  }
  y[2] += rng_range(r, -0.005, 0.002);
  for (int i = 0; i < 12; i++) {
    y[14 + i] = rng_range(r, -1, 1);
  }
}

static void test_mujoco_pair(void **state) {
  (void)state;
  struct freebody_scene s = pair_scene();
  struct ode_system system = freebody_system(&s);
  mjModel *m =
      compile("<mujoco><option tolerance='1e-14' iterations='200' integrator='RK4'>"
              "<flag refsafe='disable'/></option>"
              "<default><geom solref='.02 .7' solimp='.3 .95 .02 .5 2' friction='.6'/></default>"
              "<worldbody><geom type='plane' size='1 1 1'/>"
              "<body><joint type='free' damping='.02'/><geom type='sphere' size='.04' "
              "density='500'/></body>"
              "<body><joint type='free' damping='.02'/><geom type='sphere' size='.04' "
              "density='800'/></body>"
              "</worldbody></mujoco>");
  mjData *d = mj_makeData(m);
  struct rng r = rng_stream(2, RNG_TEST, 0, 0, 0);
  for (int k = 0; k < 300; k++) {
    double y[26], qacc[12], worst = 0, largest = 0, sum = 0;
    pair_state(y, &r);
    struct ode_point p = {.y = y};
    system.rhs(qacc, NULL, system.self, &p, NULL);
    memcpy(d->qpos, y, sizeof(double[14]));
    memcpy(d->qvel, y + 14, sizeof(double[12]));
    mj_forward(m, d);
    for (int j = 0; j < 12; j++) {
      worst = fmax(worst, fabs(qacc[j] - d->qacc[j]));
      largest = fmax(largest, fabs(d->qacc[j]));
      sum += qacc[j];
    }
    if (!(worst <= 1e-9 * largest) || !isfinite(sum)) {
      fail_msg("state %d: qacc off by %.3e of %.3e", k, worst, largest);
    }
  }
  mj_deleteData(d);
  mj_deleteModel(m);
}

// One step of MuJoCo's Euler, with implicit damping, and of its RK4.
static void test_mujoco_step(void **state) {
  (void)state;
  static const struct shape_row *row = &shapes[4];
  struct freebody_scene s = shape_scene(row);
  s.body[0].damping = 0.3;
  struct ode_system system = freebody_system(&s);
  struct ode_work *w = ode_work_new(&arena, &system);
  mjModel *m = shape_model(row);
  mjData *d = mj_makeData(m);
  m->opt.timestep = 0.004;
  for (int i = 0; i < 6; i++) {
    m->dof_damping[i] = 0.3;
  }
  struct rng r = rng_stream(3, RNG_TEST, 0, 0, 0);
  for (int k = 0; k < 100; k++) {
    double y[13];
    struct ode_options o = ode_options_default();
    o.adaptive = false;
    o.dt = 0.004;
    o.method = k % 2 ? ODE_SEMI_EULER : ODE_MUJOCO_RK4;
    m->opt.integrator = k % 2 ? mjINT_EULER : mjINT_RK4;
    random_state(y, &s, &r, rng_range(&r, -0.01, 0.02));
    memcpy(d->qpos, y, sizeof(double[7]));
    memcpy(d->qvel, y + 7, sizeof(double[6]));
    mj_step(m, d);
    assert_int_equal(ode_solve(y, NULL, w, &system, &o, 0, 0.004, NULL), ODE_DONE);
    for (int i = 0; i < 7; i++) {
      assert_true(fabs(y[i] - d->qpos[i]) < 1e-11);
    }
    for (int i = 0; i < 6; i++) {
      assert_true(fabs(y[7 + i] - d->qvel[i]) < 1e-9);
    }
  }
  mj_deleteData(d);
  mj_deleteModel(m);
}

// ---- adjoints

struct probe { // a right-hand side and directions
  struct ode_system *system;
  uint64_t active; // contacts in force, held fixed: differences must not switch them
  double bar[12], u[2];
};

static double probe_value(const struct probe *p, const double *y0, int component, double eps,
                          double t) {
  const struct ode_system *s = p->system;
  double y[26], u[2] = {p->u[0], p->u[1]}, qacc[12], sum = 0;
  memcpy(y, y0, sizeof(double) * (size_t)(s->nq + s->nv));
  if (component >= 2 * s->nv) {
    u[component - 2 * s->nv] += eps;
  } else if (component >= s->nv) {
    y[s->nq + component - s->nv] += eps;
  } else if (component % 6 < 3) {
    y[component / 6 * 7 + component % 6] += eps;
  } else {
    double turn[3] = {0};
    turn[component % 6 - 3] = eps;
    double *q = y + component / 6 * 7 + 3;
    quat_shift(q, q, turn);
  }
  struct ode_point at = {.t = t, .h = 0.003, .y = y, .active = &p->active};
  s->rhs(qacc, NULL, s->self, &at, u);
  for (int i = 0; i < s->nv; i++) {
    sum += p->bar[i] * qacc[i];
  }
  return sum;
}

// Returns how many components were off; differences of two sizes that disagree show a kink (a row
// of a pyramid switches in between) and do not judge.
static void check_vjp(const char *name, struct ode_system *s, const double *y, const double *u,
                      double t, struct rng *r, int *nchecked, int *nkink) {
  struct probe p = {.system = s};
  double g[32], y_bar[24] = {0}, u_bar[2] = {0}, largest = 0;
  s->event(g, s->self, y, u);
  for (int i = 0; i < s->nevent; i++) {
    p.active |= (uint64_t)(g[i] < 0) << i;
  }
  memcpy(p.u, u, sizeof p.u);
  for (int i = 0; i < s->nv; i++) {
    p.bar[i] = rng_range(r, -1, 1);
  }
  struct ode_point at = {.t = t, .h = 0.003, .y = y, .active = &p.active};
  s->vjp(y_bar, u_bar, s->self, p.bar, NULL, &at, u);
  int n = 2 * s->nv + s->nu;
  double bar[26];
  for (int i = 0; i < n; i++) {
    bar[i] = i < 2 * s->nv ? y_bar[i] : u_bar[i - 2 * s->nv];
    largest = fmax(largest, fabs(bar[i]));
  }
  for (int i = 0; i < n; i++) {
    double d[2];
    for (int k = 0; k < 2; k++) {
      double eps = 1e-6 * (1 + k);
      d[k] = (probe_value(&p, y, i, eps, t) - probe_value(&p, y, i, -eps, t)) / (2 * eps);
    }
    ++*nchecked;
    if (fabs(d[0] - d[1]) > 1e-6 * largest) {
      ++*nkink;
    } else if (!(fabs(bar[i] - d[0]) <= 2e-6 * largest)) {
      fail_msg("%s, component %d: adjoint %.12g, differences %.12g (largest %.3g)", name, i, bar[i],
               d[0], largest);
    }
  }
}

static void test_adjoint_shapes(void **state) {
  (void)state;
  for (int i = 0; i < NSHAPE; i++) {
    for (int soft = 0; soft < 3; soft++) { // hard; the two soft passes
      struct freebody_scene s = shape_scene(&shapes[i]);
      s.cfd.on = s.cfd_forward = soft > 0;
      s.cfd.spring = soft == 2 ? CFD_SOFTPLUS : CFD_RELU;
      struct ode_system system = freebody_system(&s);
      struct rng r = rng_stream(4, RNG_TEST, (uint32_t)i, (uint32_t)soft, 0);
      int checked = 0, kinks = 0;
      for (int k = 0; k < 40; k++) {
        double y[13], u[2] = {0};
        random_state(y, &s, &r, soft ? rng_range(&r, -0.04, 0.01) : rng_range(&r, 0.001, 0.02));
        check_vjp(shapes[i].name, &system, y, u, 0, &r, &checked, &kinks);
      }
      assert_true(kinks < checked / 50);
    }
  }
}

static void test_adjoint_pair(void **state) {
  (void)state;
  for (int input = FREEBODY_RAMP; input <= FREEBODY_HOLD; input++) {
    struct freebody_scene s = pair_scene();
    s.input = (enum freebody_input)input;
    s.knot = 0.01;
    struct ode_system system = freebody_system(&s);
    struct rng r = rng_stream(5, RNG_TEST, (uint32_t)input, 0, 0);
    int checked = 0, kinks = 0;
    for (int k = 0; k < 60; k++) {
      double y[26], u[2] = {4, 1};
      pair_state(y, &r);
      check_vjp("pair", &system, y, u, 0.004, &r, &checked, &kinks);
    }
    assert_true(kinks < checked / 50);
  }
}

static void test_adjoint_side(void **state) {
  (void)state;
  for (int soft = 0; soft < 2; soft++) {
    struct freebody_scene s = shape_scene(&shapes[4 + soft]);
    s.input = FREEBODY_SIDE;
    struct ode_system system = freebody_system(&s);
    struct rng r = rng_stream(6, RNG_TEST, (uint32_t)soft, 0, 0);
    int checked = 0, kinks = 0;
    for (int k = 0; k < 60; k++) {
      double y[13], u[2] = {0.105};
      random_state(y, &s, &r, 0);
      y[2] -= 0.005;
      check_vjp("side", &system, y, u, 0, &r, &checked, &kinks);
    }
    assert_true(kinks < checked / 50);
  }
}

// ---- the published table (arXiv 2506.14186, code release: 04_time-toss)

static struct freebody_scene toss_scene(enum freebody_shape shape) {
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 1;
  s.body[0] = (struct freebody){.shape = shape, .size = {0.05, 0.05, 0.05}};
  freebody_set_density(&s.body[0], 100);
  s.gravity[2] = -2;
  s.law = (struct soft_law){{0.005, 1}, {0, 0.95, 0.001, 0.5, 2}, 0};
  return s;
}

static double toss(double *grad, struct ode_system *s, const struct ode_options *o,
                   enum ode_gradient kind, double u0) {
  double y[13] = {0, 0, 0.2, cos(M_PI / 6), sin(M_PI / 6), 0, 0, 0, -0.1, u0};
  struct arena_mark mark = arena_mark(&arena);
  struct ode_trail *t = ode_trail_new(&arena, s, o);
  struct ode_work *w = ode_work_new(&arena, s);
  assert_int_equal(ode_solve(y, t, w, s, o, 0, 1, NULL), ODE_DONE);
  if (grad) {
    double bar[12] = {0, 1};
    ode_adjoint(bar, NULL, w, s, o, t, NULL, kind);
    *grad = bar[8];
  }
  arena_reset(&arena, mark);
  return y[1];
}

static void test_published_rows(void **state) {
  (void)state;
  static const struct {
    enum ode_method m;
    double setting, loss, grad; // setting: step, or tolerance of an adaptive row
    bool adaptive;
  } rows[] = {
      {ODE_SEMI_EULER, 1e-2, -1.571686727811291, 4.336281317049474, false},
      {ODE_SEMI_EULER, 3e-3, -0.4982944785192245, 1.2764966751145796, false},
      {ODE_SEMI_EULER, 1e-3, -0.2982783773274352, 3.240441400144758, false},
      {ODE_SEMI_EULER, 3e-4, -0.2957421012003906, -0.6012215143840304, false},
      {ODE_SEMI_EULER, 1e-4, -0.2999631801336482, 0.1324593160236998, false},
      {ODE_MUJOCO_RK4, 1e-1, -6.964205683553178, 1.3044444988505506, false},
      {ODE_MUJOCO_RK4, 3e-2, -2.0804649041511825, 4.589905777505844, false},
      {ODE_MUJOCO_RK4, 1e-2, -0.4991588440844137, 0.7624246682679078, false},
      {ODE_MUJOCO_RK4, 3e-3, -0.3128217514554545, 0.9193076210277106, false},
      {ODE_MUJOCO_RK4, 1e-3, -0.2923268376759699, 0.9279589813351952, false},
      {ODE_MUJOCO_RK4, 3e-4, -0.301583693482684, 0.6243924300216119, false},
      {ODE_EXPLICIT, 1e-2, -1.4806875926978664, 4.275929749783626, false},
      {ODE_EXPLICIT, 3e-3, -0.4903257928743431, 1.2710031233451313, false},
      {ODE_EXPLICIT, 1e-3, -0.30394379236660285, 2.862402925644351, false},
      {ODE_EXPLICIT, 1e-4, -0.30890852636419047, 0.12502575311561354, false},
      {ODE_HEUN, 1e-3, -0.301687120673579, 0.061081253328226, true},
      {ODE_HEUN, 1e-5, -0.3017964555684188, 0.167826130635528, true},
      {ODE_RALSTON, 1e-3, -0.3945048229319374, 3.0226303852891947, true},
      {ODE_RALSTON, 1e-5, -0.3017660529053186, 0.1692532276140958, true},
      {ODE_MIDPOINT, 1e-3, -0.3944181131349647, 3.0302100271131605, true},
      {ODE_MIDPOINT, 1e-5, -0.3037690758050313, 1.2621510717759534, true},
  };
  struct freebody_scene s = toss_scene(FREEBODY_SOFT_BOX);
  struct ode_system system = freebody_system(&s);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct ode_options o = ode_options_default();
    double grad;
    o.method = rows[i].m;
    o.adaptive = rows[i].adaptive;
    o.dt = rows[i].adaptive ? 0.01 : rows[i].setting;
    o.rtol = o.atol = rows[i].setting;
    o.max_steps = 20000;
    double loss = toss(&grad, &system, &o, ODE_STEPS, -2);
    if (!(fabs(loss - rows[i].loss) <= 1e-9 * fabs(rows[i].loss) &&
          fabs(grad - rows[i].grad) <= 1e-5 * fabs(rows[i].grad))) {
      fail_msg("%s %g: loss %.15g, gradient %.12g", ode_table(o.method)->name, rows[i].setting,
               loss, grad);
    }
  }
}

// Higher orders integrate the flight exactly, so their steps after it hang on round-off: they match
// within the error that their tolerance leaves.
static void test_published_orders(void **state) {
  (void)state;
  static const struct {
    enum ode_method m;
    double tol, loss, band;
  } rows[] = {
      {ODE_BOSH3, 1e-3, -0.3026410055852632, 1e-3},
      {ODE_BOSH3, 1e-5, -0.3018153674534541, 1e-5},
      {ODE_DOPRI5, 1e-5, -0.3019534521768598, 1e-3},
      {ODE_DOPRI5, 1e-10, -0.3017952225738204, 2e-8},
      {ODE_TSIT5, 1e-5, -0.3018649642407899, 3e-4},
      {ODE_TSIT5, 1e-7, -0.3017967362281183, 5e-6},
      {ODE_TSIT5, 1e-10, -0.3017952264629544, 1e-8},
      {ODE_TSIT5, 1e-12, -0.301795222627779, 4e-10},
      {ODE_DOPRI8, 1e-6, -0.301794881819751, 2e-6},
      {ODE_DOPRI8, 1e-10, -0.3017952222867653, 5e-10},
  };
  struct freebody_scene s = toss_scene(FREEBODY_SOFT_BOX);
  struct ode_system system = freebody_system(&s);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct ode_options o = ode_options_default();
    o.method = rows[i].m;
    o.rtol = o.atol = rows[i].tol;
    double loss = toss(NULL, &system, &o, ODE_STEPS, -2);
    if (!(fabs(loss - rows[i].loss) <= rows[i].band)) {
      fail_msg("%s %g: loss %.15g", ode_table(o.method)->name, rows[i].tol, loss);
    }
  }
}

// The two gradients: what the published code tends to (0.17267), and the derivative (0.1716957), by
// interpolated events as by located ones.
static void test_two_gradients(void **state) {
  (void)state;
  struct freebody_scene s = toss_scene(FREEBODY_SOFT_BOX);
  struct ode_system system = freebody_system(&s);
  struct ode_options o = ode_options_default();
  o.method = ODE_DOPRI8;
  o.rtol = o.atol = 1e-14;
  o.max_steps = 20000;
  o.locate = true;
  double eps = 1e-4, difference = (toss(NULL, &system, &o, ODE_STEPS, -2 + eps) -
                                   toss(NULL, &system, &o, ODE_STEPS, -2 - eps)) /
                                  (2 * eps);
  assert_true(fabs(difference - 0.1716957) < 3e-7);
  for (int locate = 0; locate < 2; locate++) {
    double steps, events;
    o.locate = locate;
    double loss = toss(&steps, &system, &o, ODE_STEPS, -2);
    toss(&events, &system, &o, ODE_EVENTS, -2);
    assert_true(fabs(loss + 0.30179522242272) < 2e-13);
    assert_true(fabs(events - difference) < 1e-5 * difference);
    assert_true(fabs(steps - 0.17267) < 2e-6);
  }
}

// ---- Contacts From Distance

// Frictionless fall towards the plane (arXiv 2506.14186, supplement): within the width
// a - a0 = d(r) (aref - a0) with aref = -B r', so da/dr = d'(r) (aref - a0).
static void test_cfd_law(void **state) {
  (void)state;
  struct freebody_scene s = toss_scene(FREEBODY_SPHERE);
  s.friction_plane = 1e-5; // MuJoCo's smallest
  s.cfd.on = true;
  struct ode_system system = freebody_system(&s);
  const double v = -1.5, r = 0.025, B = 2 / (0.95 * 0.005);
  double y[13] = {0, 0, 0.05 + r, 1, 0, 0, 0, 0, 0, v}, qacc[6], bar[12] = {0};
  struct ode_point p = {.y = y};
  double up[6] = {0, 0, 1};
  system.rhs(qacc, NULL, system.self, &p, NULL);
  assert_true(qacc[2] == -2); // forward: nothing yet
  system.vjp(bar, NULL, system.self, up, NULL, &p, NULL);
  // (0, 0.01, 0.05, 1, 2): x = (w - r)/w = 1/2, mid clamps to 0.9999, d' = -(0.01 - 1e-4) 2 x/(mid
  // w)
  double d = 1e-4 + 0.25 / 0.9999 * 0.0099, slope = -0.0099 * 2 * 0.5 / 0.9999 / 0.05;
  // four rows at friction near 0: the pyramid's force is 4 D of 2 mu^2 (1 + mu^2) R each
  double D = 4 / (2e-10) * d / (1 - d), share = D / (1 + D);
  double aref = -B * v, share_slope = slope * share * (1 - share) / (d * (1 - d));
  assert_true(fabs(bar[2] - share_slope * (aref + 2)) < 1e-6 * fabs(bar[2]));
  assert_true(fabs(bar[8] + B * share) < 1e-6 * B);
  y[2] = 0.05 + 0.0501; // outside: as if the plane were not there
  memset(bar, 0, sizeof bar);
  system.vjp(bar, NULL, system.self, up, NULL, &p, NULL);
  assert_true(bar[2] == 0 && bar[8] == 0);
}

// Straight-through: the forward trajectory is that without it, bit for bit, on fixed and adaptive
// steps; the gradient is another one.
static void test_cfd_forward(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct freebody_scene plain = toss_scene(FREEBODY_BOX), with = plain;
    with.cfd.on = true;
    struct ode_system a = freebody_system(&plain), b = freebody_system(&with);
    struct ode_options o = ode_options_default();
    o.adaptive = i > 0;
    o.method = i > 0 ? ODE_TSIT5 : ODE_SEMI_EULER;
    o.dt = i > 0 ? 0.01 : 1e-3;
    o.rtol = o.atol = 1e-8;
    o.locate = i == 2;
    double ga, gb, ya = toss(&ga, &a, &o, ODE_STEPS, -2), yb = toss(&gb, &b, &o, ODE_STEPS, -2);
    assert_memory_equal(&ya, &yb, sizeof ya);
    assert_true(isfinite(gb) && ga != gb);
  }
}

static int setup(void **state) {
  (void)state;
  arena_init(&arena);
  return 0;
}
static int teardown(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mujoco_acceleration), cmocka_unit_test(test_mujoco_pair),
      cmocka_unit_test(test_mujoco_step),         cmocka_unit_test(test_adjoint_shapes),
      cmocka_unit_test(test_adjoint_pair),        cmocka_unit_test(test_adjoint_side),
      cmocka_unit_test(test_published_rows),      cmocka_unit_test(test_published_orders),
      cmocka_unit_test(test_two_gradients),       cmocka_unit_test(test_cfd_law),
      cmocka_unit_test(test_cfd_forward),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
