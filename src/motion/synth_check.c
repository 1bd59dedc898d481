#include "motion/synth.h"
#include "motion/synth_kin.h"
#include "motion/synth_plan.h"
#include <math.h>
#include <string.h>

enum { POINTS = 2 * SYNTH_SPHERES, SIDES = 8, EDGES = SIDES * POINTS, SWEEPS = 400 };
static const double near_floor = 5e-3, friction = .6;

struct track {
  const struct robot *r;
  const struct clip *c;
  struct synth_body body;
  struct synth_kin *kin; // (nframe)
  double dt;
};

static const struct synth_kin *kin_at(const struct track *s, int t) {
  return &s->kin[t < 0 ? 0 : t >= s->c->nframe ? s->c->nframe - 1 : t];
}
static const double *qpos_at(const struct track *s, int t) {
  return s->c->qpos + (t < 0 ? 0 : t >= s->c->nframe ? s->c->nframe - 1 : t) * s->c->nq;
}

static void sphere_bottom(double x[3], const struct track *s, int t, int foot, int i) {
  synth_kin_point(x, kin_at(s, t), s->body.foot[foot], s->body.sphere[foot][i]);
  x[2] -= s->body.radius;
}

static bool stands(const struct track *s, int t, int foot) {
  for (int i = 0; i < SYNTH_SPHERES; i++) {
    double x[3];
    sphere_bottom(x, s, t, foot, i);
    if (fabs(x[2]) > near_floor) {
      return false;
    }
  }
  return true;
}

// Forces of least squares at the spheres near the floor: along eight edges of a pyramid inside the
// friction cone, never pulling, to give the wrench (force and moment about the origin) asked for.
// Coordinate descent on the nonnegative shares of the edges. Returns the wrench left over.
static void share_wrench(double force[POINTS][3], double left[6], const struct track *s, int t,
                         const double wrench[6]) {
  const double half = sqrt(.5);
  const double side[SIDES][2] = {{1, 0},  {half, half},   {0, 1},  {-half, half},
                                 {-1, 0}, {-half, -half}, {0, -1}, {half, -half}};
  const double weight[6] = {1, 1, 1, 3, 3, 3}, ridge = 1e-6; // 1/N^2, 1/(N m)^2
  double col[EDGES][6], share[EDGES] = {0}, edge[EDGES][3];
  int point[EDGES], n = 0;
  const double *o = kin_at(s, t)->mean; // moments about the centre of mass are of moderate size
  for (int k = 0; k < POINTS; k++) {
    double x[3];
    sphere_bottom(x, s, t, k / SYNTH_SPHERES, k % SYNTH_SPHERES);
    memset(force[k], 0, sizeof force[k]);
    for (int m = 0; m < SIDES && x[2] < near_floor; m++, n++) {
      const double f[3] = {friction * side[m][0], friction * side[m][1], 1};
      const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
      double c[3];
      cross3(c, arm, f);
      for (int d = 0; d < 3; d++) {
        edge[n][d] = f[d];
        col[n][d] = f[d];
        col[n][3 + d] = c[d];
      }
      point[n] = k;
    }
  }
  double shift[3];
  cross3(shift, o, wrench);
  for (int d = 0; d < 3; d++) {
    left[d] = wrench[d];
    left[3 + d] = wrench[3 + d] - shift[d];
  }
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    for (int i = 0; i < n; i++) {
      double g = -ridge * share[i], h = ridge;
      for (int d = 0; d < 6; d++) {
        g += weight[d] * weight[d] * col[i][d] * left[d];
        h += weight[d] * weight[d] * col[i][d] * col[i][d];
      }
      const double now = fmax(0, share[i] + g / h), step = now - share[i];
      share[i] = now;
      for (int d = 0; d < 6; d++) {
        left[d] -= step * col[i][d];
      }
    }
  }
  for (int i = 0; i < n; i++) {
    for (int d = 0; d < 3; d++) {
      force[point[i]][d] += share[i] * edge[i][d];
    }
  }
}

static void check_joints(struct synth_report *out, const struct track *s) {
  const struct robot *r = s->r;
  double dv[64];
  for (int t = 0; t < s->c->nframe; t++) {
    robot_difference(r, dv, qpos_at(s, t), qpos_at(s, t + 1));
    for (int l = 1; l < r->nlink; l++) {
      const int j = r->link[l].dof;
      const double q = qpos_at(s, t)[r->link[l].qadr], v = fabs(dv[j]) / s->dt;
      if (r->dof[j].limited) {
        out->range_margin =
            fmin(out->range_margin, fmin(q - r->dof[j].range[0], r->dof[j].range[1] - q));
      }
      if (v / s->body.speed[j] > out->speed_share) {
        out->speed_share = v / s->body.speed[j];
        out->speed_frame = t;
        robot_dof_name(r, j, out->speed_joint);
      }
      if (t < 2) {
        out->first_speed = fmax(out->first_speed, v);
      }
    }
  }
}

static void check_dynamics(struct synth_report *out, const struct track *s) {
  const struct robot *r = s->r;
  const int nv = r->nv;
  double sum_f = 0, sum_m = 0;
  for (int t = 0; t < s->c->nframe; t++) {
    double before[64], after[64], acc[64], torque[64], wrench[6], force[POINTS][3], left[6];
    robot_difference(r, before, qpos_at(s, t - 1), qpos_at(s, t));
    robot_difference(r, after, qpos_at(s, t), qpos_at(s, t + 1));
    for (int j = 0; j < nv; j++) {
      acc[j] = (after[j] - before[j]) / (s->dt * s->dt);
    }
    const struct synth_kin *k = kin_at(s, t);
    synth_kin_inverse(wrench, wrench + 3, torque, kin_at(s, t - 1), k, kin_at(s, t + 1), r, acc,
                      s->dt);
    share_wrench(force, left, s, t, wrench);
    for (int p = 0; p < POINTS; p++) {
      double x[3];
      sphere_bottom(x, s, t, p / SYNTH_SPHERES, p % SYNTH_SPHERES);
      for (int j = r->link[s->body.foot[p / SYNTH_SPHERES]].dof; j >= 6; j = r->dof[j].parent) {
        const double *o = k->anchor + 3 * j;
        const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
        double moment[3];
        cross3(moment, arm, force[p]);
        torque[j] -= dot3(k->axis + 3 * j, moment);
      }
    }
    for (int j = 6; j < nv; j++) {
      if (fabs(torque[j]) / s->body.limit[j] > out->torque_share) {
        out->torque_share = fabs(torque[j]) / s->body.limit[j];
        out->torque_frame = t;
        robot_dof_name(r, j, out->torque_joint);
      }
    }
    const double f = sqrt(dot3(left, left)), m = sqrt(dot3(left + 3, left + 3));
    if (f > out->residual_force) {
      out->residual_force = f;
      out->residual_frame = t;
    }
    out->residual_moment = fmax(out->residual_moment, m);
    sum_f += f * f;
    sum_m += m * m;
  }
  out->residual_force_rms = sqrt(sum_f / s->c->nframe);
  out->residual_moment_rms = sqrt(sum_m / s->c->nframe);
}

static void check_feet(struct synth_report *out, const struct track *s) {
  for (int t = 0; t < s->c->nframe; t++) {
    for (int k = 0; k < POINTS; k++) {
      const int foot = k / SYNTH_SPHERES, i = k % SYNTH_SPHERES;
      double x[3], y[3];
      sphere_bottom(x, s, t, foot, i);
      out->sole_low = fmin(out->sole_low, x[2]);
      if (stands(s, t, foot)) {
        out->sole_high = fmax(out->sole_high, x[2]);
        if (t + 1 < s->c->nframe && stands(s, t + 1, foot)) {
          sphere_bottom(y, s, t + 1, foot, i);
          const double v = hypot(y[0] - x[0], y[1] - x[1]) / s->dt;
          if (v > out->slip) {
            out->slip = v;
            out->slip_frame = t;
          }
        }
      }
    }
  }
}

static double sole_of(const struct track *s, int t, int foot) { // its lowest sphere
  double low = INFINITY;
  for (int i = 0; i < SYNTH_SPHERES; i++) {
    double x[3];
    sphere_bottom(x, s, t, foot, i);
    low = fmin(low, x[2]);
  }
  return low;
}

static void check_flight(struct synth_report *out, const struct track *s) {
  const int n = s->c->nframe;
  int flying = 0, last = 0;
  double highest = 0; // of both soles in this flight
  for (int t = 0; t < n; t++) {
    const double left = sole_of(s, t, 0), right = sole_of(s, t, 1), both = fmin(left, right);
    if (both < near_floor) {
      last = t;
      highest = 0;
      out->kick_height = fmax(out->kick_height, fmax(left, right));
      continue;
    }
    flying++;
    out->flights += last == t - 1;
    out->high_flights += highest < .15 && both >= .15;
    highest = fmax(highest, both);
    out->sole_rise = fmax(out->sole_rise, both);
    const double *a = kin_at(s, t - 1)->mean, *b = kin_at(s, t)->mean, *c = kin_at(s, t + 1)->mean;
    double off[3];
    for (int d = 0; d < 3; d++) {
      off[d] = (a[d] - 2 * b[d] + c[d]) / (s->dt * s->dt) - s->r->gravity[d];
    }
    out->flight_error = fmax(out->flight_error, sqrt(dot3(off, off)));
    out->jump_rise = fmax(out->jump_rise, b[2] - kin_at(s, last)->mean[2]);
  }
  out->flight_share = (double)flying / n;
}

static void check_travel(struct synth_report *out, const struct track *s) {
  const int n = s->c->nframe, half = (int)lround(.5 / s->dt);
  double yaw = 0, before = 0;
  for (int t = 0; t < n; t++) {
    const struct synth_kin *k = kin_at(s, t), *next = kin_at(s, t + 1);
    out->distance += hypot(next->mean[0] - k->mean[0], next->mean[1] - k->mean[1]);
    if (t + half < n) {
      const double *y = kin_at(s, t + half)->mean;
      out->top_speed =
          fmax(out->top_speed, hypot(y[0] - k->mean[0], y[1] - k->mean[1]) / (half * s->dt));
    }
    const double at = atan2(k->rot[3], k->rot[0]);
    yaw += t > 0 ? remainder(at - before, 2 * M_PI) : 0;
    before = at;
    out->turn = fmax(out->turn, fabs(yaw));
  }
}

int motion_synth_check(struct synth_report *out, struct arena *a, const struct robot *r,
                       const struct clip *c, struct err *e) {
  struct track s = {.r = r, .c = c, .dt = 1 / c->fps};
  memset(out, 0, sizeof *out);
  out->range_margin = INFINITY;
  const struct arena_mark mark = arena_mark(a);
  if (synth_body_find(&s.body, a, r, e) == 0) {
    s.kin = ARENA_NEW(a, struct synth_kin, c->nframe);
    for (int t = 0; t < c->nframe; t++) {
      synth_kin_new(&s.kin[t], a, r);
      synth_kin_update(&s.kin[t], r, qpos_at(&s, t));
    }
    check_joints(out, &s);
    check_dynamics(out, &s);
    check_feet(out, &s);
    check_flight(out, &s);
    check_travel(out, &s);
  }
  arena_reset(a, mark);
  return e->code;
}
