// MuJoCo's soft contact as a convex program over qacc, for free bodies: Newton with an exact line
// search, which ends at the exact minimum because the cost is piecewise quadratic.
//
//   a = argmin 1/2 (a - a0)' M (a - a0) + sum_rows 1/2 D min(j, 0)^2,   j = J a - aref
//
// A contact has four rows n +- mu t_k. With s = J_c (a + B v) + K d r n (frame axes: normal, two
// tangents) its force is F(s) and C = -dF/ds; only J_c (3, nv) is ever formed.
//
// Adjoint: g(a, x) = M a - M a0 - J'F = 0, so with z = -H^-1 a_bar every cotangent is that of the
// scalar z' g at a held fixed.
#include "sim/freebody_private.h"
#include "sim/rotation.h"
#include <math.h>
#include <string.h>

enum { NV = FREEBODY_NV };

struct fb_row_state { // of one contact at one a
  double s[3], F[3];
  int active; // bits of its four rows
};

struct fb_problem {
  int nv;
  double mass[NV]; // diagonal of M
  double free[NV]; // M a0: forces but contact's
  struct fb_pose pose[FREEBODY_MAX];
  struct fb_geometry geometry;
  double K, B;
  struct fb_law {
    struct soft_point point;
    double D, mu;
  } law[FREEBODY_MAX_CONTACTS];
  double J[FREEBODY_MAX_CONTACTS][3][NV];
  double bias[FREEBODY_MAX_CONTACTS][3]; // of s: B J_c v + K d r n
  struct fb_row_state row[FREEBODY_MAX_CONTACTS];
  double a[NV];
  double factor[NV][NV]; // Cholesky factor of the Hessian
};

struct freebody_scene freebody_scene_default(void) {
  return (struct freebody_scene){
      .plane = true,
      .friction_plane = 1,
      .friction_pair = 1,
      .law = {.solref = {0.02, 1}, .solimp = {0.9, 0.95, 0.001, 0.5, 2}},
      .gravity = {0, 0, -9.81},
      .impratio = 1,
      .softness = 0.1,
      .cfd = cfd_default(),
  };
}

// ---- assembling

// force of the input on body 0 at time t, per unit of u
static double input_share(const struct freebody_scene *s, double t) {
  if (s->input == FREEBODY_RAMP) {
    return t < s->knot ? 1 - t / s->knot : 0;
  }
  return s->input == FREEBODY_HOLD && t < s->knot ? 1 : 0;
}

static void side_inertia(double inertia[3], const struct freebody_scene *s, int body,
                         const double *u) {
  memcpy(inertia, s->body[body].inertia, sizeof(double[3]));
  if (s->input == FREEBODY_SIDE && body == 0) {
    inertia[0] = inertia[1] = inertia[2] = s->body[0].mass * u[0] * u[0] / 6;
  }
}

static void assemble_free(struct fb_problem *p, const struct freebody_scene *s,
                          const struct ode_point *at, const double *u) {
  p->nv = 6 * s->nbody;
  const double *qvel = at->y + 7 * s->nbody;
  for (int b = 0; b < s->nbody; b++) {
    const struct freebody *body = &s->body[b];
    const double *v = qvel + 6 * b, *w = v + 3;
    double inertia[3], momentum[3], gyro[3];
    side_inertia(inertia, s, b, u);
    for (int i = 0; i < 3; i++) {
      momentum[i] = inertia[i] * w[i];
    }
    vec3_cross(gyro, w, momentum);
    for (int i = 0; i < 3; i++) {
      p->mass[6 * b + i] = body->mass;
      p->mass[6 * b + 3 + i] = inertia[i];
      p->free[6 * b + i] = body->mass * s->gravity[i] - body->damping * v[i];
      p->free[6 * b + 3 + i] = -gyro[i] - body->damping * w[i];
    }
    if (b == 0 && (s->input == FREEBODY_RAMP || s->input == FREEBODY_HOLD)) {
      double share = input_share(s, at->t);
      p->free[0] += share * u[0];
      p->free[1] += share * u[1];
    }
  }
}

// rows of J_c: motion of the contact point on body[1] relative to body[0], along the frame
static void contact_jacobian(double J[3][NV], const struct fb_problem *p,
                             const struct fb_contact *c) {
  memset(J, 0, sizeof(double[3][NV]));
  for (int i = 0; i < 2; i++) {
    int b = c->body[i];
    if (b < 0) {
      continue;
    }
    double sign = i == 1 ? 1 : -1, lever[3];
    for (int k = 0; k < 3; k++) {
      lever[k] = c->pos[k] - p->pose[b].pos[k];
    }
    for (int m = 0; m < 3; m++) {
      const double *e = c->frame + 3 * m;
      double turn[3], local[3];
      vec3_cross(turn, lever, e);
      mat3_tmul(local, p->pose[b].rot, turn);
      for (int k = 0; k < 3; k++) {
        J[m][6 * b + k] = sign * e[k];
        J[m][6 * b + 3 + k] = sign * local[k];
      }
    }
  }
}

// soft: the pass of Contacts From Distance
static void assemble(struct fb_problem *p, const struct freebody_scene *s,
                     const struct ode_point *at, const double *u, bool soft) {
  assemble_free(p, s, at, u);
  const double *qvel = at->y + 7 * s->nbody;
  for (int b = 0; b < s->nbody; b++) {
    fb_pose(&p->pose[b], at->y, b);
  }
  fb_contacts(&p->geometry, s, p->pose, u, soft ? s->cfd.solimp[2] : 0, at->active);
  soft_reference(&p->K, &p->B, &s->law);
  int n = 0;
  for (int i = 0; i < p->geometry.n; i++) {
    struct fb_contact *c = &p->geometry.contact[i];
    bool inside = at->active ? *at->active >> c->event & 1 : c->r < 0;
    struct soft_point point = soft     ? cfd_point_at(&s->law, &s->cfd, c->r, inside)
                              : inside ? soft_point_at(&s->law, c->r)
                                       : (struct soft_point){0};
    if (point.d == 0) {
      continue;
    }
    // regulariser of pyramidal rows (MuJoCo): 2 mu_R^2 (1 - d)/d (1 + mu^2) per inverse mass
    bool pair = c->body[0] >= 0;
    double mu = pair ? s->friction_pair : s->friction_plane;
    double invweight = 1 / s->body[c->body[1]].mass + (pair ? 1 / s->body[0].mass : 0);
    double diagonal = 2 * mu * mu / s->impratio * (1 + mu * mu) * invweight;
    double R = fmax(1e-15, (1 - point.d) / point.d * diagonal);
    p->geometry.contact[n] = *c;
    p->law[n] = (struct fb_law){.point = point, .D = 1 / R, .mu = mu};
    contact_jacobian(p->J[n], p, &p->geometry.contact[n]);
    for (int m = 0; m < 3; m++) {
      double velocity = 0;
      for (int k = 0; k < p->nv; k++) {
        velocity += p->J[n][m][k] * qvel[k];
      }
      p->bias[n][m] = p->B * velocity;
    }
    p->bias[n][0] += p->K * point.d * point.s;
    n++;
  }
  p->geometry.n = n;
}

// ---- the program

// forces of one contact at s; returns which rows push
static void evaluate_rows(struct fb_row_state *o, const struct fb_law *l) {
  const double *s = o->s;
  double x = l->mu * s[1], y = l->mu * s[2];
  double row[4] = {s[0] + x, s[0] - x, s[0] + y, s[0] - y}, f[4];
  o->active = 0;
  for (int i = 0; i < 4; i++) {
    o->active |= (row[i] < 0) << i;
    f[i] = row[i] < 0 ? -l->D * row[i] : 0;
  }
  o->F[0] = f[0] + f[1] + f[2] + f[3];
  o->F[1] = l->mu * (f[0] - f[1]);
  o->F[2] = l->mu * (f[2] - f[3]);
}

// C = -dF/ds, symmetric: nn, n1, n2, 11, 22 (12 is zero)
static void row_stiffness(double C[5], int active, const struct fb_law *l) {
  int a = active & 1, b = active >> 1 & 1, c = active >> 2 & 1, d = active >> 3 & 1;
  C[0] = l->D * (a + b + c + d);
  C[1] = l->D * l->mu * (a - b);
  C[2] = l->D * l->mu * (c - d);
  C[3] = l->D * l->mu * l->mu * (a + b);
  C[4] = l->D * l->mu * l->mu * (c + d);
}

static void stiffness_times(double o[3], const double C[5], const double x[3]) {
  o[0] = C[0] * x[0] + C[1] * x[1] + C[2] * x[2];
  o[1] = C[1] * x[0] + C[3] * x[1];
  o[2] = C[2] * x[0] + C[4] * x[2];
}

static void jacobian_times(double o[3], const double J[3][NV], const double *x, int nv) {
  for (int m = 0; m < 3; m++) {
    o[m] = 0;
    for (int k = 0; k < nv; k++) {
      o[m] += J[m][k] * x[k];
    }
  }
}

// gradient of the cost at p->a, whose rows are evaluated
static void cost_gradient(double g[NV], const struct fb_problem *p) {
  for (int k = 0; k < p->nv; k++) {
    g[k] = p->mass[k] * p->a[k] - p->free[k];
  }
  for (int i = 0; i < p->geometry.n; i++) {
    const double *F = p->row[i].F;
    for (int k = 0; k < p->nv; k++) {
      g[k] -= p->J[i][0][k] * F[0] + p->J[i][1][k] * F[1] + p->J[i][2][k] * F[2];
    }
  }
}

// Cholesky factor of M + J' C J with the rows that push
static void factor_hessian(struct fb_problem *p) {
  int nv = p->nv;
  double(*H)[NV] = p->factor;
  for (int r = 0; r < nv; r++) {
    memset(H[r], 0, sizeof H[r]);
    H[r][r] = p->mass[r];
  }
  for (int i = 0; i < p->geometry.n; i++) {
    double C[5], column[3];
    const double(*J)[NV] = p->J[i];
    row_stiffness(C, p->row[i].active, &p->law[i]);
    for (int c = 0; c < nv && p->row[i].active; c++) {
      stiffness_times(column, C, (double[3]){J[0][c], J[1][c], J[2][c]});
      for (int r = c; r < nv; r++) {
        H[r][c] += J[0][r] * column[0] + J[1][r] * column[1] + J[2][r] * column[2];
      }
    }
  }
  for (int c = 0; c < nv; c++) {
    for (int k = 0; k < c; k++) {
      H[c][c] -= H[c][k] * H[c][k];
    }
    H[c][c] = sqrt(H[c][c]);
    for (int r = c + 1; r < nv; r++) {
      for (int k = 0; k < c; k++) {
        H[r][c] -= H[r][k] * H[c][k];
      }
      H[r][c] /= H[c][c];
    }
  }
}

// x = -H^-1 b
static void solve_negative(double x[NV], const struct fb_problem *p, const double b[NV]) {
  const double(*L)[NV] = p->factor;
  for (int r = 0; r < p->nv; r++) {
    x[r] = -b[r];
    for (int k = 0; k < r; k++) {
      x[r] -= L[r][k] * x[k];
    }
    x[r] /= L[r][r];
  }
  for (int r = p->nv - 1; r >= 0; r--) {
    for (int k = r + 1; k < p->nv; k++) {
      x[r] -= L[k][r] * x[k];
    }
    x[r] /= L[r][r];
  }
}

// slope and curvature of the cost along the step, at a + x step; start (contacts): s at a, and
// along: J_c step
static double slope_at(double *curvature, struct fb_row_state *row, const struct fb_problem *p,
                       double x, double slope0, double curvature0, const double along[][3]) {
  double slope = slope0 + x * curvature0;
  *curvature = curvature0;
  for (int i = 0; i < p->geometry.n; i++) {
    double C[5], Cd[3];
    for (int m = 0; m < 3; m++) {
      row[i].s[m] = p->row[i].s[m] + x * along[i][m];
    }
    evaluate_rows(&row[i], &p->law[i]);
    row_stiffness(C, row[i].active, &p->law[i]);
    stiffness_times(Cd, C, along[i]);
    slope -= vec3_dot(along[i], row[i].F);
    *curvature += vec3_dot(along[i], Cd);
  }
  return slope;
}

// Minimum of p; a starts from the acceleration without contact. The factor is that of the minimum.
static void minimise(struct fb_problem *p) {
  int nv = p->nv, n = p->geometry.n;
  for (int k = 0; k < nv; k++) {
    p->a[k] = p->free[k] / p->mass[k];
  }
  for (int i = 0; i < n; i++) {
    jacobian_times(p->row[i].s, p->J[i], p->a, nv);
    for (int m = 0; m < 3; m++) {
      p->row[i].s[m] += p->bias[i][m];
    }
    evaluate_rows(&p->row[i], &p->law[i]);
  }
  for (int iteration = 0; iteration < 100; iteration++) {
    double g[NV], step[NV], along[FREEBODY_MAX_CONTACTS][3];
    cost_gradient(g, p);
    factor_hessian(p);
    solve_negative(step, p, g);
    double slope0 = 0, curvature0 = 0, slope_start = 0;
    for (int k = 0; k < nv; k++) {
      slope0 += step[k] * (p->mass[k] * p->a[k] - p->free[k]);
      curvature0 += step[k] * p->mass[k] * step[k];
      slope_start += step[k] * g[k];
    }
    for (int i = 0; i < n; i++) {
      jacobian_times(along[i], p->J[i], step, nv);
    }
    // the whole step, if it ends within the same piece: that is the minimum
    struct fb_row_state row[FREEBODY_MAX_CONTACTS];
    double curvature, x = 1, lo = 0, hi = INFINITY;
    double slope = slope_at(&curvature, row, p, x, slope0, curvature0, along);
    bool same = true;
    for (int i = 0; i < n; i++) {
      same &= row[i].active == p->row[i].active;
    }
    // else the zero of the slope, piecewise linear and rising: Newton within a bracket
    for (int k = 0; k < 60 && !same && fabs(slope) > 1e-14 * fabs(slope_start); k++) {
      *(slope < 0 ? &lo : &hi) = x;
      double next = x - slope / curvature;
      x = next > lo && next < hi ? next : isfinite(hi) ? 0.5 * (lo + hi) : 2 * x;
      slope = slope_at(&curvature, row, p, x, slope0, curvature0, along);
    }
    for (int k = 0; k < nv; k++) {
      p->a[k] += x * step[k];
    }
    memcpy(p->row, row, sizeof *row * (size_t)n);
    // slope_start = -|step|^2 in the Hessian's norm: nothing is left to gain
    double scale = 0;
    for (int k = 0; k < nv; k++) {
      scale += p->a[k] * p->mass[k] * p->a[k];
    }
    if (same || -slope_start <= 1e-30 * scale) {
      return;
    }
  }
}

// ---- the system

// MuJoCo's Euler after the contact forces are known: (M + h damping) qacc = M a
static double implicit_share(const struct freebody_scene *s, const struct fb_problem *p, double h,
                             int k) {
  return p->mass[k] / (p->mass[k] + h * s->body[k / 6].damping);
}

static void rhs(double *qacc, double *act_dot, void *self, const struct ode_point *at,
                const double *u) {
  const struct freebody_scene *s = self;
  struct fb_problem p;
  (void)act_dot;
  assemble(&p, s, at, u, s->cfd_forward);
  minimise(&p);
  for (int k = 0; k < p.nv; k++) {
    qacc[k] = implicit_share(s, &p, at->h, k) * p.a[k];
  }
}

// Cotangents of a contact's J_c -> of its geometry, and of the bodies' poses.
static void jacobian_bwd(double *q_bar, struct fb_contact_bar *o, const struct fb_problem *p,
                         const struct fb_contact *c, const double J[3][NV],
                         const double J_bar[3][NV]) {
  for (int i = 0; i < 2; i++) {
    int b = c->body[i];
    if (b < 0) {
      continue;
    }
    double sign = i == 1 ? 1 : -1, lever[3], lever_bar[3] = {0}, turn[3];
    for (int k = 0; k < 3; k++) {
      lever[k] = c->pos[k] - p->pose[b].pos[k];
    }
    for (int m = 0; m < 3; m++) {
      const double *e = c->frame + 3 * m, *bar = J_bar[m] + 6 * b;
      double *e_bar = o->frame + 3 * m, h[3];
      vec3_add(e_bar, bar, sign);
      mat3_mul(h, p->pose[b].rot, bar + 3); // of lever x e
      vec3_cross(turn, e, h);
      vec3_add(lever_bar, turn, sign);
      vec3_cross(turn, h, lever);
      vec3_add(e_bar, turn, sign);
      // R' w turns by -delta x R' w (the sign is in J)
      vec3_cross(turn, bar + 3, J[m] + 6 * b + 3);
      vec3_add(q_bar + 6 * b + 3, turn, 1);
    }
    vec3_add(o->pos, lever_bar, 1);
    vec3_add(q_bar + 6 * b, lever_bar, -1);
  }
}

static void vjp(double *y_bar, double *u_bar, void *self, const double *qacc_bar,
                const double *act_bar, const struct ode_point *at, const double *u) {
  const struct freebody_scene *s = self;
  struct fb_problem p;
  (void)act_bar;
  assemble(&p, s, at, u, s->cfd.on || s->cfd_forward);
  minimise(&p);
  factor_hessian(&p);
  int nv = p.nv;
  const double *qvel = at->y + 7 * s->nbody;
  double z[NV], a_bar[NV], *q_bar = y_bar, *v_bar = y_bar + nv, size_bar[3] = {0};
  for (int k = 0; k < nv; k++) {
    double share = implicit_share(s, &p, at->h, k);
    a_bar[k] = share * qacc_bar[k];
    if (s->input == FREEBODY_SIDE && k >= 3 && k < 6) { // the share rises with the inertia
      u_bar[0] += qacc_bar[k] * p.a[k] * share * (1 - share) * 2 / u[0];
    }
  }
  solve_negative(z, &p, a_bar);

  // z' (M a - free): gyroscopic force, damping, input
  for (int b = 0; b < s->nbody; b++) {
    const double *w = qvel + 6 * b + 3, *zw = z + 6 * b + 3, *aw = p.a + 6 * b + 3;
    double inertia[3], Iw[3], side[3], other[3];
    side_inertia(inertia, s, b, u);
    for (int i = 0; i < 3; i++) {
      Iw[i] = inertia[i] * w[i];
      v_bar[6 * b + i] += s->body[b].damping * z[6 * b + i];
      v_bar[6 * b + 3 + i] += s->body[b].damping * zw[i];
    }
    vec3_cross(side, Iw, zw);
    vec3_cross(other, zw, w);
    for (int i = 0; i < 3; i++) {
      v_bar[6 * b + 3 + i] += side[i] + inertia[i] * other[i];
    }
    if (b == 0 && s->input == FREEBODY_SIDE) { // a cube: no gyroscopic force
      u_bar[0] += s->body[0].mass * u[0] / 3 * vec3_dot(zw, aw);
    }
  }
  if (s->input == FREEBODY_RAMP || s->input == FREEBODY_HOLD) {
    double share = input_share(s, at->t);
    u_bar[0] -= share * z[0];
    u_bar[1] -= share * z[1];
  }

  // contacts: -(J_c z)' F(s, D)
  struct fb_contact_bar bar[FREEBODY_MAX_CONTACTS];
  for (int i = 0; i < p.geometry.n; i++) {
    const struct fb_law *l = &p.law[i];
    const struct soft_point *o = &l->point;
    const double *F = p.row[i].F;
    double y[3], C[5], s_bar[3], J_bar[3][NV];
    jacobian_times(y, p.J[i], z, nv);
    row_stiffness(C, p.row[i].active, l);
    stiffness_times(s_bar, C, y);
    bar[i] = (struct fb_contact_bar){0};
    // dD/dd = D / (d (1 - d)), and F is proportional to D
    double d_bar = -vec3_dot(y, F) / (o->d * (1 - o->d)) + p.K * o->s * s_bar[0];
    bar[i].r = d_bar * o->d_slope + p.K * o->d * o->s_slope * s_bar[0];
    for (int m = 0; m < 3; m++) {
      for (int k = 0; k < nv; k++) {
        v_bar[k] += p.B * p.J[i][m][k] * s_bar[m];
        J_bar[m][k] = s_bar[m] * (p.a[k] + p.B * qvel[k]) - F[m] * z[k];
      }
    }
    jacobian_bwd(q_bar, &bar[i], &p, &p.geometry.contact[i], p.J[i], J_bar);
  }
  fb_contacts_bwd(q_bar, size_bar, &p.geometry, s, p.pose, u, bar);
  if (s->input == FREEBODY_SIDE) {
    u_bar[0] += 0.5 * (size_bar[0] + size_bar[1] + size_bar[2]);
  }
}

static void event(double *g, void *self, const double *qpos, const double *u) {
  const struct freebody_scene *s = self;
  struct fb_pose pose[FREEBODY_MAX];
  for (int b = 0; b < s->nbody; b++) {
    fb_pose(&pose[b], qpos, b);
  }
  fb_distances(g, s, pose, u);
}

static void event_vjp(double *q_bar, double *u_bar, void *self, int k, double scale,
                      const double *qpos, const double *u) {
  const struct freebody_scene *s = self;
  struct fb_problem p;
  double size_bar[3] = {0};
  uint64_t bit = (uint64_t)1 << k;
  for (int b = 0; b < s->nbody; b++) {
    fb_pose(&p.pose[b], qpos, b);
  }
  fb_contacts(&p.geometry, s, p.pose, u, 0, &bit);
  struct fb_contact_bar bar[FREEBODY_MAX_CONTACTS] = {{0}};
  for (int i = 0; i < p.geometry.n; i++) {
    bar[i].r = p.geometry.contact[i].event == k ? scale : 0;
  }
  fb_contacts_bwd(q_bar, size_bar, &p.geometry, s, p.pose, u, bar);
  if (s->input == FREEBODY_SIDE) {
    u_bar[0] += 0.5 * (size_bar[0] + size_bar[1] + size_bar[2]);
  }
}

struct ode_system freebody_system(struct freebody_scene *s) {
  static const int inputs[] = {
      [FREEBODY_NO_INPUT] = 0, [FREEBODY_RAMP] = 2, [FREEBODY_HOLD] = 2, [FREEBODY_SIDE] = 1};
  for (int b = 0; b < s->nbody; b++) {
    s->quat[b] = (struct ode_quat){7 * b + 3, 6 * b + 3};
  }
  return (struct ode_system){.nq = 7 * s->nbody,
                             .nv = 6 * s->nbody,
                             .nu = inputs[s->input],
                             .nquat = s->nbody,
                             .quat = s->quat,
                             .nevent = fb_nevent(s),
                             .self = s,
                             .rhs = rhs,
                             .vjp = vjp,
                             .event = event,
                             .event_vjp = event_vjp};
}
