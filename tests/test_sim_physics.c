// The simulator against MuJoCo (mass matrix, bias, accelerations, poses, contact distances, Euler's
// step, joint limits) and against closed forms (free fall, pendulum, one contact, sinking,
// momentum).
#include "sim_scene.h"

// smooth dynamics alone: no limits, no dry friction
static struct sim_options smooth_options(void) {
  struct sim_options o = sim_options_default();
  o.limit_kappa = 0;
  o.dry_speed = 0;
  o.substeps = 1;
  return o;
}

// ---- against MuJoCo, state by state

static void test_dynamics(void **state) {
  (void)state;
  for (int k = 0; k < NSHIPPED; k++) {
    struct scene s;
    scene_open(&s, shipped[k]);
    struct sim_options o = smooth_options();
    scene_model(&s, &o);
    int nv = s.r.nv, nM = sim_mass_entries(s.m, NULL, NULL);
    int *row = ARENA_NEW(&s.a, int, nM), *col = ARENA_NEW(&s.a, int, nM);
    double *lM = ARENA_NEW(&s.a, double, nM *s.W), *lb = ARENA_NEW(&s.a, double, nv *s.W);
    double *lt = ARENA_NEW(&s.a, double, nv *s.W), *la = ARENA_NEW(&s.a, double, nv *s.W);
    double *M = ARENA_NEW(&s.a, double, nv *nv), *full = ARENA_NEW(&s.a, double, nv *nv);
    struct sim_probe p = {.mass = lM, .bias = lb, .tau = lt, .qacc = la};
    sim_mass_entries(s.m, row, col);
    s.mj->opt.disableflags |= mjDSBL_CONTACT | mjDSBL_LIMIT | mjDSBL_FRICTIONLOSS;
    for (int n = 0; n < 100; n++) {
      double got[MAX_DOF], want[MAX_DOF], x[MAX_DOF];
      random_scene(&s);
      scene_probe(&s, &p);
      to_mujoco(&s);
      mj_forward(s.mj, s.d);

      // mass matrix, with the implicit damping on its diagonal
      mj_fullM(s.mj, full, s.d->qM);
      for (int i = 0; i < nv; i++) {
        full[i * nv + i] += o.dt * s.mj->dof_damping[i];
      }
      mju_zero(M, nv * nv);
      for (int i = 0; i < nM; i++) {
        M[row[i] * nv + col[i]] = M[col[i] * nv + row[i]] = lM[i * s.W];
      }
      assert_all_near(M, full, nv * nv, 1e-12, "mass matrix");

      from_lanes(&s, got, lb, nv);
      assert_all_near(got, s.d->qfrc_bias, nv, 1e-11, "bias");

      from_lanes(&s, got, lt, nv);
      mju_add(want, s.d->qfrc_actuator, s.d->qfrc_passive, nv);
      assert_all_near(got, want, nv, 1e-12, "applied force");

      // acceleration under implicit damping: (M + dt D) a = tau - bias
      mju_sub(x, want, s.d->qfrc_bias, nv);
      assert_int_equal(mju_cholFactor(full, nv, 0), nv);
      mju_cholSolve(want, full, x, nv);
      from_lanes(&s, got, la, nv);
      assert_all_near(got, want, nv, 1e-9, "acceleration");
    }
    scene_close(&s);
  }
}

static void test_poses(void **state) {
  (void)state;
  for (int k = 0; k < NSHIPPED; k++) {
    struct scene s;
    scene_open(&s, shipped[k]);
    struct sim_options o = smooth_options();
    scene_model(&s, &o);
    int nb = s.r.nbody, nl = s.r.nlink;
    double *x = ARENA_NEW(&s.a, double, 3 * nb * s.W), *R = ARENA_NEW(&s.a, double, 9 * nl * s.W);
    int *all = ARENA_NEW(&s.a, int, nb);
    struct sim_probe p = {.xmat = R};
    for (int b = 0; b < nb; b++) {
      all[b] = b;
    }
    for (int n = 0; n < 100; n++) {
      random_scene(&s);
      scene_probe(&s, &p);
      s.k->points_fwd(s.m, s.w, x, s.lq, all, nb);
      to_mujoco(&s);
      mj_kinematics(s.mj, s.d);
      for (int b = 0; b < nb; b++) {
        int link = s.r.body[b].link, root = link;
        if (link < 0) {
          continue; // fixed to the world
        }
        while (s.r.link[root].parent >= 0) {
          root = s.r.link[root].parent;
        }
        double got[3], want[3], Rl[9], Rb[9];
        const double *origin = s.r.link[root].type == JOINT_FREE ? s.q + s.r.link[root].qadr : NULL;
        for (int i = 0; i < 3; i++) {
          got[i] = x[(3 * b + i) * s.W];
          want[i] = s.d->xpos[3 * b + i] - (origin ? origin[i] : 0);
        }
        assert_all_near(got, want, 3, 1e-12, "body position");
        from_lanes(&s, Rl, R + 9 * link * s.W, 9);
        mju_mulMatMat(Rb, Rl, s.r.body[b].rot, 3, 3, 3);
        assert_all_near(Rb, s.d->xmat + 9 * b, 9, 1e-12, "body rotation");
      }
    }
    scene_close(&s);
  }
}

// Heights of candidates against MuJoCo's contact distances to the floor, found at any distance by a
// huge margin. MuJoCo reports both ends of a capsule, at most four corners of a box, and the lowest
// points of cylinders and ellipsoids.
static void test_contact_distances(void **state) {
  (void)state;
  long compared = 0, capsules = 0, boxes = 0, round = 0;
  for (int k = 0; k < NSHIPPED; k++) {
    struct scene s;
    scene_open(&s, shipped[k]);
    struct sim_options o = smooth_options();
    scene_model(&s, &o);
    int nc = sim_ncontact(s.m), id[256], n_id = 0;
    double *h = ARENA_NEW(&s.a, double, (nc + 1) * s.W);
    struct sim_probe p = {.height = h};
    for (int g = 0; g < s.mj->ngeom; g++) {
      s.mj->geom_margin[g] = 100;
      if (s.mj->geom_contype[g] || s.mj->geom_conaffinity[g]) {
        id[n_id++] = g; // MuJoCo's geom of robot.geom[n_id]
      }
    }
    for (int n = 0; nc && n < 100; n++) {
      random_scene(&s);
      scene_probe(&s, &p);
      to_mujoco(&s);
      mj_kinematics(s.mj, s.d);
      mj_comPos(s.mj, s.d);
      mj_collision(s.mj, s.d);
      for (int g = 0; g < s.r.ngeom; g++) {
        double lowest = INFINITY, lowest_mj = INFINITY;
        for (int c = 0; c < nc; c++) {
          lowest = sim_contact(s.m, c).geom == g ? fmin(lowest, h[c * s.W]) : lowest;
        }
        if (!isfinite(lowest)) {
          continue;
        }
        for (int i = 0; i < s.d->ncon; i++) {
          const mjContact *con = &s.d->contact[i];
          int other = con->geom1 == id[g] ? con->geom2 : con->geom2 == id[g] ? con->geom1 : -1;
          if (other < 0 || s.mj->geom_type[other] != mjGEOM_PLANE) {
            continue;
          }
          lowest_mj = fmin(lowest_mj, con->dist);
          enum geom_type type = s.r.geom[g].type;
          if (type == GEOM_CAPSULE || type == GEOM_BOX) { // each of them is a candidate's
            double best = INFINITY;
            for (int c = 0; c < nc; c++) {
              if (sim_contact(s.m, c).geom == g) {
                best = fmin(best, fabs(h[c * s.W] - con->dist));
              }
            }
            assert_near(best, 0, 1e-9, "distance");
            capsules += type == GEOM_CAPSULE;
            boxes += type == GEOM_BOX;
          } else {
            round += type != GEOM_SPHERE;
          }
        }
        assert_near(lowest, lowest_mj, 1e-9 * fmax(1, fabs(lowest)), "lowest point");
        compared++;
      }
    }
    scene_close(&s);
  }
  assert_true(compared > 1000 && capsules > 100 && boxes > 100 && round > 100);
}

// ---- MuJoCo's Euler, step by step

static void test_euler_steps(void **state) {
  (void)state;
  for (int k = 0; k < NSHIPPED; k++) {
    struct scene s;
    scene_open(&s, shipped[k]);
    struct sim_options o = smooth_options();
    o.integrator = SIM_EULER;
    o.dt = s.mj->opt.timestep = 0.002;
    for (int g = 0; g < s.r.ngeom; g++) {
      if (s.r.geom[g].type == GEOM_PLANE) {
        s.r.geom[g].pos[2] = -1e3; // nothing to touch
      }
    }
    scene_model(&s, &o);
    s.mj->opt.integrator = mjINT_EULER;
    s.mj->opt.disableflags |= mjDSBL_CONTACT | mjDSBL_LIMIT | mjDSBL_FRICTIONLOSS;
    mj_resetData(s.mj, s.d);
    for (int i = 0; i < s.r.nv; i++) {
      s.v[i] = rng_normal(&s.rng);
    }
    to_mujoco(&s);
    for (int t = 0; t < 50; t++) {
      for (int i = 0; i < s.r.nu; i++) {
        s.u[i] = s.d->ctrl[i] = 0.3 * rng_normal(&s.rng);
      }
      scene_step(&s);
      mj_step(s.mj, s.d);
    }
    assert_all_near(s.v, s.d->qvel, s.r.nv, 1e-9, "qvel");
    assert_all_near(s.q, s.d->qpos, s.r.nq, 1e-9, "qpos");
    scene_close(&s);
  }
}

// ---- closed forms

static void test_free_fall(void **state) {
  (void)state;
  for (int euler = 0; euler < 2; euler++) {
    struct scene s;
    scene_open(&s, "robots/ball.xml");
    struct sim_options o = smooth_options();
    o.integrator = euler ? SIM_EULER : SIM_MOREAU;
    scene_model(&s, &o);
    double v0[3] = {1, -2, 3}, z0 = s.q[2] = 50, g = -s.r.gravity[2];
    memcpy(s.v, v0, sizeof v0);
    s.v[5] = 2; // spins about its own z
    for (int n = 1; n <= 200; n++) {
      scene_step(&s);
      double t = n * o.dt;
      // the trapezoid is exact for a constant acceleration; Euler's sum of n steps is g t (t + dt)
      // / 2
      assert_near(s.q[2], z0 + v0[2] * t - g * t * (t + (euler ? o.dt : 0)) / 2, 1e-11, "z");
      assert_near(s.v[2], v0[2] - g * t, 1e-12, "vz");
      assert_near(s.q[0], v0[0] * t, 1e-12, "x");
      assert_near(s.q[1], v0[1] * t, 1e-12, "y");
      assert_near(s.q[3], cos(t), 1e-12, "half the turn");
      assert_near(s.q[6], sin(t), 1e-12, "half the turn");
    }
    scene_close(&s);
  }
}

static const double bob_mass = 1, rod = 1, bob_inertia = 4e-6; // robots/pendulum.xml

static double pendulum_energy(const struct scene *s) {
  double g = -s->r.gravity[2], inertia = bob_mass * rod * rod + bob_inertia;
  return 0.5 * inertia * s->v[0] * s->v[0] + bob_mass * g * rod * (1 - cos(s->q[0]));
}

static double exact_period(double amplitude, double g) { // by the arithmetic-geometric mean
  double a = 1, b = cos(amplitude / 2);
  for (int i = 0; i < 8; i++) {
    double m = (a + b) / 2;
    b = sqrt(a * b);
    a = m;
  }
  return 2 * M_PI * sqrt((bob_mass * rod * rod + bob_inertia) / (bob_mass * g * rod)) / a;
}

// period of ten swings released from rest at amplitude, and the range of the energy before and
// after half time
static double swing(double dt, double amplitude, int steps, double range[2][2]) {
  struct scene s;
  scene_open(&s, "robots/pendulum.xml");
  struct sim_options o = smooth_options();
  o.dt = dt;
  scene_model(&s, &o);
  s.q[0] = amplitude;
  double first = 0, last = 0, E0 = pendulum_energy(&s);
  int crossings = 0;
  for (int n = 0; n < steps; n++) {
    double before = s.q[0];
    scene_step(&s);
    if (before < 0 && s.q[0] >= 0 && crossings <= 10) { // upward through zero, nearly straight
      double t = (n + before / (before - s.q[0])) * dt;
      first = crossings == 0 ? t : first;
      last = t;
      crossings++;
    }
    double E = pendulum_energy(&s) / E0 - 1, *r = range[n >= steps / 2];
    r[0] = fmin(r[0], E);
    r[1] = fmax(r[1], E);
  }
  assert_int_equal(crossings, 11);
  double g = -s.r.gravity[2], T = (last - first) / 10;
  scene_close(&s);
  return T / exact_period(amplitude, g) - 1;
}

static void test_pendulum(void **state) {
  (void)state;
  double range[3][2][2] = {{{0}}}, error[3];
  for (int k = 0; k < 3; k++) {
    double dt = 0.01 / (1 << k);
    error[k] = swing(dt, 1.0, (int)(100 / dt + 0.5), range[k]);
  }
  // second order, and small: (omega dt)^2 / 24 is 4e-5 at 10 ms
  assert_true(fabs(error[0]) < 1e-4);
  assert_true(error[0] / error[1] > 3.8 && error[0] / error[1] < 4.2);
  assert_true(error[1] / error[2] > 3.8 && error[1] / error[2] < 4.2);
  for (int k = 0; k < 3; k++) {
    // the energy swings by O(dt^2) and does not drift: the second 50 s look like the first
    double width = range[k][0][1] - range[k][0][0];
    assert_true(width < 1e-3 / (1 << 2 * k));
    assert_near(range[k][1][0], range[k][0][0], 0.02 * width, "lowest energy");
    assert_near(range[k][1][1], range[k][0][1], 0.02 * width, "highest energy");
  }
}

// ---- smoothed contact

static double smoothing(double kappa, double height) {
  return 1 / (1 + exp(kappa * height));
}

// One vertical contact: v+ = (1 - s) (v - g dt), s at the midpoint (moreau) or the start (euler);
// nothing when it separates.
static void test_one_contact(void **state) {
  (void)state;
  static const double kappas[] = {50, 100, 300};
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < 3; i++) {
      struct scene s;
      scene_open(&s, "robots/ball.xml");
      struct sim_options o = smooth_options();
      o.kappa = kappas[i];
      o.integrator = kind & 1 ? SIM_EULER : SIM_MOREAU;
      o.contact_step = kind & 2 ? SIM_PUBLISHED : SIM_SPLIT;
      scene_model(&s, &o);
      double g = -s.r.gravity[2], radius = 0.1;
      for (int n = 0; n < 20; n++) {
        double v = n == 19 ? 0.5 : -0.1 * n, z = radius + 0.02 - 0.002 * n;
        memset(s.v, 0, sizeof s.v);
        s.q[2] = z;
        s.v[2] = v;
        scene_step(&s);
        double height = z + (kind & 1 ? 0 : o.dt / 2 * v) - radius;
        double k = n == 19 ? 0 : smoothing(o.kappa, height);
        assert_near(s.v[2], (1 - k) * (v - g * o.dt), 1e-13, "velocity after contact");
        assert_near(s.v[0], 0, 1e-15, "no sliding");
      }
      scene_close(&s);
    }
  }
}

// A ball that slides on the floor loses at most mu times the normal impulse, and starts to roll.
static void test_friction_cone(void **state) {
  (void)state;
  struct scene s;
  scene_open(&s, "robots/ball.xml");
  struct sim_options o = smooth_options();
  scene_model(&s, &o);
  double mu = s.lp[sim_param_find(s.m, "mu").first * s.W], g = -s.r.gravity[2], v0 = 3, w0;
  assert_near(mu, 1, 0, "the larger of floor's and ball's");
  s.q[2] = 0.1 - 0.01;
  s.v[0] = v0;
  s.v[2] = -0.2;
  scene_step(&s);
  double normal = s.v[2] + 0.2 + g * o.dt; // per unit of mass
  assert_true(normal > 0.1);
  assert_near(s.v[0], v0 - mu * normal, 1e-12, "sliding friction");
  // torque mu N r turns it: w = mu N r / (2/5 r^2)
  w0 = mu * normal / (0.4 * 0.1);
  assert_near(s.v[4], w0, 1e-4 * w0,
              "spin"); // lever is r + depth: midpoint height, sphere's bottom
  scene_close(&s);
}

// Resting contact sinks: quasi-steady speed exp(-kappa d) g dt, so d(t) = ln(1 + kappa g dt t) /
// kappa. The law leaves out that the ball, released at rest, needs some steps to reach that speed:
// for a while it runs ahead by up to 1.4 g dt^2 (0.34 mm), and later differs by less than 0.06 g
// dt^2. The exact recurrence holds to rounding.
static void test_sinking(void **state) {
  (void)state;
  static const struct {
    double kappa, mm, tol; // after 0.3 s, figures of the law at three stiffnesses
  } want[] = {{50, 11, 0.5}, {100, 9, 0.5}, {300, 5.6, 0.1}};
  for (int i = 0; i < 3; i++) {
    struct scene s;
    scene_open(&s, "robots/ball.xml");
    struct sim_options o = smooth_options();
    o.kappa = want[i].kappa;
    scene_model(&s, &o);
    double g = -s.r.gravity[2], radius = 0.1, z = radius, v = 0;
    s.q[2] = radius;
    for (int n = 1; n <= 600; n++) {
      double k = smoothing(o.kappa, z + o.dt / 2 * v - radius), next = (1 - k) * (v - g * o.dt);
      z += o.dt / 2 * (v + next);
      v = next;
      scene_step(&s);
      assert_near(s.q[2], z, 1e-12, "recurrence");
      double t = n * o.dt, depth = radius - s.q[2];
      double law = log(1 + o.kappa * g * o.dt * t) / o.kappa;
      if (n == 60) {
        assert_near(1e3 * depth, want[i].mm, want[i].tol, "depth after 0.3 s, mm");
      }
      assert_near(depth, law, (n < 300 ? 1.4 : 0.06) * g * o.dt * o.dt, "sink law");
    }
    scene_close(&s);
  }
}

// ---- momentum of G1 in free flight

struct flight {
  double linear, angular; // change after 30 s against the start, relative
};

static void momentum(struct scene *s, double *linear, double *angular) {
  to_mujoco(s);
  mj_kinematics(s->mj, s->d);
  mj_comPos(s->mj, s->d);
  mj_comVel(s->mj, s->d);
  mj_subtreeVel(s->mj, s->d);
  mju_scl3(linear, s->d->subtree_linvel + 3, s->r.total_mass); // body 1 is the pelvis
  mju_copy3(angular, s->d->subtree_angmom + 3);
}

static struct flight fly(double dt, bool gravity) {
  struct scene s;
  scene_open(&s, "robots/g1.xml");
  struct sim_options o = sim_options_default();
  o.dt = dt;
  o.substeps = (int)(0.02 / dt + 0.5);
  if (!gravity) {
    s.r.gravity[2] = 0;
  }
  int stand = robot_find_key(&s.r, "stand");
  memcpy(s.q, s.r.key[stand].qpos, sizeof *s.q * (size_t)s.r.nq);
  memcpy(s.u, s.r.key[stand].ctrl, sizeof *s.u * (size_t)s.r.nu);
  scene_model(&s, &o);
  s.q[2] = 1e5;
  for (int d = 0; d < s.r.nv; d++) {
    s.v[d] = (d < 6 ? 0.5 : 2) * rng_range(&s.rng, -1, 1);
  }
  double p0[3], L0[3], p[3], L[3];
  momentum(&s, p0, L0);
  for (int n = 0; n < 1500; n++) { // the arms and legs keep moving
    for (int i = 0; i < s.r.nu; i++) {
      s.u[i] = s.r.key[stand].ctrl[i] + 0.3 * sin(0.02 * n * (2 + i % 5) + i);
    }
    scene_step(&s);
  }
  momentum(&s, p, L);
  p0[2] += gravity ? 30 * s.r.gravity[2] * s.r.total_mass : 0;
  mju_subFrom3(p, p0);
  mju_subFrom3(L, L0);
  struct flight f = {mju_norm3(p) / s.r.total_mass, mju_norm3(L) / mju_norm3(L0)};
  scene_close(&s);
  return f;
}

// Nothing acts on the whole robot but gravity, while its joints are driven all the time. The scheme
// evaluates poses at the midpoint, so linear momentum is kept to second order in dt. Velocity
// products (Coriolis, centrifugal) are taken at the velocity of the start, as published, so angular
// momentum drifts to first order: a tenth in 30 s of vigorous motion at 2.5 ms.
static void test_free_flight(void **state) {
  (void)state;
  struct flight f[2][3];
  for (int gravity = 0; gravity < 2; gravity++) {
    for (int k = 0; k < 3; k++) {
      f[gravity][k] = fly(0.005 / (1 << k), gravity);
    }
    struct flight a = f[gravity][0], b = f[gravity][1], c = f[gravity][2];
    assert_true(a.linear < 0.03 && c.linear < 0.03 / 14);
    assert_true(b.linear / c.linear > 3.7 && b.linear / c.linear < 4.3);
    assert_true(a.angular < 0.25 && c.angular < 0.06);
    assert_true(a.angular / b.angular > 1.8 && a.angular / b.angular < 2.4);
    assert_true(b.angular / c.angular > 1.9 && b.angular / c.angular < 2.2);
  }
  for (int k = 0; k < 3; k++) { // falling or not makes no difference to the rest
    assert_near(f[1][k].angular, f[0][k].angular, 1e-5 * f[0][k].angular, "in free fall");
    assert_near(f[1][k].linear, f[0][k].linear, 1e-5 * f[0][k].linear, "in free fall");
  }
}

// ---- joint limits

static void limit_scene(struct scene *s, double dt, double kappa, const double *solref) {
  scene_open(s, "tests/robots/limit.xml");
  struct sim_options o = smooth_options();
  o.dt = s->mj->opt.timestep = dt;
  o.limit_kappa = kappa;
  for (int i = 0; solref && i < 2; i++) {
    s->r.dof[0].solref_limit[i] = s->mj->jnt_solref[i] = solref[i];
  }
  scene_model(s, &o);
}

static void test_limit_rests_where_mujocos_does(void **state) {
  (void)state;
  // time constant and damping ratio; stiffness and damping
  static const double solref[][2] = {{0.06, 1}, {0.08, 0.7}, {-300, -20}};
  for (int k = 0; k < 3; k++) {
    struct scene s;
    limit_scene(&s, 0.002, 1e5, solref[k]); // nearly sharp, as MuJoCo's
    for (int n = 0; n < 5000; n++) {
      scene_step(&s);
      mj_step(s.mj, s.d);
    }
    assert_near(s.v[0], 0, 1e-9, "at rest");
    assert_near(s.d->qvel[0], 0, 1e-9, "at rest");
    double violation = s.q[0] - 0.5, want = s.d->qpos[0] - 0.5;
    assert_true(want > 1e-3); // beyond the width of MuJoCo's impedance ramp
    assert_near(violation, want, 1e-6 * want, "violation");
    scene_close(&s);
  }
}

static void test_limit_creates_no_energy(void **state) {
  (void)state;
  static const double dts[] = {0.005, 0.002, 0.001};
  for (int k = 0; k < 3; k++) {
    struct scene s;
    limit_scene(&s, dts[k], 300, NULL);
    s.q[0] = -0.9;
    double inertia = 0.1 + 2 * 0.16, g = -s.r.gravity[2], highest = -INFINITY, E0 = 0, E = 0;
    bool touched = false;
    for (int n = 0; n * dts[k] < 10; n++) {
      E = 0.5 * inertia * s.v[0] * s.v[0] - 2 * g * 0.4 * sin(s.q[0]);
      E0 = n == 0 ? E : E0;
      highest = fmax(highest, E);
      touched = touched || s.q[0] > 0.49;
      scene_step(&s);
    }
    assert_true(touched);
    double scale = 2 * g * 0.4;
    assert_true(highest - E0 < 1e-3 * scale);
    assert_true(E < E0);
    scene_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dynamics),
      cmocka_unit_test(test_poses),
      cmocka_unit_test(test_contact_distances),
      cmocka_unit_test(test_euler_steps),
      cmocka_unit_test(test_free_fall),
      cmocka_unit_test(test_pendulum),
      cmocka_unit_test(test_one_contact),
      cmocka_unit_test(test_friction_cone),
      cmocka_unit_test(test_sinking),
      cmocka_unit_test(test_free_flight),
      cmocka_unit_test(test_limit_rests_where_mujocos_does),
      cmocka_unit_test(test_limit_creates_no_energy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
