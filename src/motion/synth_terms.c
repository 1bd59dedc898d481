// The terms of the clip generator's least-squares problem; synth_solve.c says which they are.
#include "motion/synth_solve.h"
#include <math.h>
#include <string.h>

// standard deviations and limits
static const struct {
  double newton, euler;                  // N, N m
  double force_z, force_xy;              // N per sphere, around the expected load
  double min_push, friction, push_sigma; // N, -, N
  double torque_share, torque_sigma;     // of the limit; N m
  double joint_margin, range_sigma;      // rad
  double speed_share, speed_sigma;       // of the limit; rad/s
  double floor_sigma;                    // m
  double acc_pos, acc_rot, acc_joint;    // m/s^2, rad/s^2
  double acc_torso;                      // rad/s^2, of the torso in the world: heads are held still
} like = {
    .newton = 1,
    .euler = .2,
    .force_z = 60,
    .force_xy = 40,
    .min_push = 1,
    .friction = .38,
    .push_sigma = 1,
    .torque_share = .7,
    .torque_sigma = 1,
    .joint_margin = .03,
    .range_sigma = .003,
    .speed_share = .6,
    .speed_sigma = .3,
    .floor_sigma = 5e-4,
    .acc_pos = 6,
    .acc_rot = 20,
    .acc_joint = 40,
    .acc_torso = 8,
};
// adds the row (r + aq dq + af df)^2, aq over columns from..to
static void add_row(struct synth_local *w, double r, const double *aq, int from, int to,
                    const double *af) {
  w->cost += r * r;
  if (!w->derive) {
    return;
  }
  if (aq) {
    for (int i = from; i < to; i++) {
      const double ai = aq[i];
      if (ai == 0) {
        continue;
      }
      w->g[i] += ai * r;
      for (int j = from; j <= i; j++) { // lower triangle
        w->h[i][j] += ai * aq[j];
      }
    }
  }
  if (af) {
    for (int i = 0; i < w->nforce; i++) {
      const double ai = af[i];
      if (ai == 0) {
        continue;
      }
      w->gf[i] += ai * r;
      for (int j = 0; j <= i; j++) {
        w->hff[i][j] += ai * af[j];
      }
      if (aq) {
        for (int j = from; j < to; j++) {
          w->hfq[i][j] += ai * aq[j];
        }
      }
    }
  }
}

// (x - target)^2 / sigma^2 for a single coordinate of the frame in the middle
static void add_coordinate(struct synth_local *w, int nv, int j, double diff, double sigma) {
  w->cost += diff * diff / (sigma * sigma);
  if (w->derive) {
    w->g[nv + j] += diff / (sigma * sigma);
    w->h[nv + j][nv + j] += 1 / (sigma * sigma);
  }
}

// three rows with the Jacobian jac (3, nv) of the middle frame
static void add_vector(struct synth_local *w, int nv, const double diff[3], const double *jac,
                       const double sigma[3]) {
  double row[MAX_WIDE];
  for (int d = 0; d < 3; d++) {
    if (sigma[d] <= 0 || sigma[d] > 100) {
      continue;
    }
    for (int j = 0; j < nv; j++) {
      row[nv + j] = jac[d * nv + j] / sigma[d];
    }
    add_row(w, diff[d] / sigma[d], row, nv, 2 * nv, NULL);
  }
}

// d L_{t+1/2} / d (q_t, q_{t+1}), times scale, added to the columns at `at` (two blocks of nv). The
// spin of a link counts its inertia as constant.
static void momentum_rows(double row[3][MAX_WIDE], const struct synth_solver *s,
                          const struct synth_kin *k0, const struct synth_kin *k1, int at,
                          double scale) {
  const int nv = s->nv;
  const struct robot *r = s->r;
  double rj[3 * MAX_NV];
  for (int side = 0; side < 2; side++) {
    const struct synth_kin *k = side ? k1 : k0;
    const double sign = side ? 1 / s->dt : -1 / s->dt;
    const int col = at + side * nv;
    double total[3] = {0}; // sum m v, for the moving centre of mass
    for (int b = 0; b < r->nlink; b++) {
      const double m = r->link[b].mass;
      double arm[3], vel[3];
      for (int d = 0; d < 3; d++) {
        arm[d] = .5 * (k0->com[3 * b + d] + k1->com[3 * b + d] - k0->mean[d] - k1->mean[d]);
        vel[d] = (k1->com[3 * b + d] - k0->com[3 * b + d]) / s->dt;
        total[d] += m * vel[d];
      }
      const double *jac = k->com_jac + 3 * nv * b;
      synth_kin_rot_jac(rj, k, r, b);
      for (int j = r->link[b].dof + r->link[b].ndof - 1; j >= 0; j = r->dof[j].parent) {
        const double x[3] = {jac[j], jac[nv + j], jac[2 * nv + j]};
        const double w[3] = {rj[j], rj[nv + j], rj[2 * nv + j]};
        double a[3], c[3], h[3];
        cross3(a, x, vel);
        cross3(c, arm, x);
        mul33_vec(h, k->inertia + 9 * b, w);
        for (int d = 0; d < 3; d++) {
          row[d][col + j] += scale * (m * (.5 * a[d] + sign * c[d]) + sign * h[d]);
        }
      }
    }
    for (int j = 0; j < nv; j++) {
      const double x[3] = {k->mean_jac[j], k->mean_jac[nv + j], k->mean_jac[2 * nv + j]};
      double a[3];
      cross3(a, x, total);
      for (int d = 0; d < 3; d++) {
        row[d][col + j] -= scale * .5 * a[d];
      }
    }
  }
}

// points where the floor may push at frame t, in the order of the forces
static int contact_points(double x[][3], int foot_of[], const struct synth_solver *s, int t) {
  int n = 0;
  for (int f = 0; f < 2; f++) {
    if (!s->plan->frame[t].foot[f].contact) {
      continue;
    }
    for (int i = 0; i < SYNTH_SPHERES; i++) {
      synth_kin_point(x[n], &s->frame[t].kin, s->plan->body.foot[f], s->plan->body.push[f][i]);
      x[n][2] -= s->plan->body.radius;
      foot_of[n++] = f;
    }
  }
  return n;
}

// the equations of motion of the whole body, and what forces may be
static void dynamics_terms(struct synth_local *w, const struct synth_solver *s, int t,
                           const double *force) {
  const struct robot *r = s->r;
  const int nv = s->nv;
  const double dt = s->dt, m = r->total_mass;
  const struct synth_kin *kp = solver_kin(s, t - 1), *k = solver_kin(s, t),
                         *kn = solver_kin(s, t + 1);
  double x[2 * SYNTH_SPHERES][3];
  int foot_of[2 * SYNTH_SPHERES];
  const int np = contact_points(x, foot_of, s, t);
  double res_f[3], l0[3], l1[3], res_l[3], sum[3] = {0}, about[3] = {0};
  synth_kin_momentum(l0, kp, k, r, dt);
  synth_kin_momentum(l1, k, kn, r, dt);
  for (int i = 0; i < np; i++) {
    const double arm[3] = {x[i][0] - k->mean[0], x[i][1] - k->mean[1], x[i][2] - k->mean[2]};
    double c[3];
    cross3(c, arm, force + 3 * i);
    for (int d = 0; d < 3; d++) {
      sum[d] += force[3 * i + d];
      about[d] += c[d];
    }
  }
  for (int d = 0; d < 3; d++) {
    res_f[d] =
        m * (kp->mean[d] - 2 * k->mean[d] + kn->mean[d]) / (dt * dt) - m * r->gravity[d] - sum[d];
    res_l[d] = (l1[d] - l0[d]) / dt - about[d];
  }
  double newton[3][MAX_WIDE], euler[3][MAX_WIDE], nf[3][MAX_FORCE], ef[3][MAX_FORCE];
  memset(nf, 0, sizeof nf);
  memset(ef, 0, sizeof ef);
  if (w->derive) {
    memset(newton, 0, sizeof newton);
    memset(euler, 0, sizeof euler);
    for (int d = 0; d < 3; d++) {
      for (int j = 0; j < nv; j++) {
        const double c = m / (dt * dt) / s->newton;
        newton[d][j] = c * kp->mean_jac[d * nv + j];
        newton[d][nv + j] = -2 * c * k->mean_jac[d * nv + j];
        newton[d][2 * nv + j] = c * kn->mean_jac[d * nv + j];
      }
    }
    // the feet hardly move, so the lever arms change with the centre of mass: (-dc) x sum f
    for (int j = 0; j < nv; j++) {
      const double dc[3] = {k->mean_jac[j], k->mean_jac[nv + j], k->mean_jac[2 * nv + j]};
      double c[3];
      cross3(c, dc, sum);
      for (int d = 0; d < 3; d++) {
        euler[d][nv + j] += c[d] / s->euler;
      }
    }
    momentum_rows(euler, s, k, kn, nv, 1 / (dt * s->euler));
    momentum_rows(euler, s, kp, k, 0, -1 / (dt * s->euler));
    for (int i = 0; i < np; i++) {
      const double a[3] = {x[i][0] - k->mean[0], x[i][1] - k->mean[1], x[i][2] - k->mean[2]};
      const double skew[9] = {0, -a[2], a[1], a[2], 0, -a[0], -a[1], a[0], 0};
      for (int d = 0; d < 3; d++) {
        nf[d][3 * i + d] = -1 / s->newton;
        for (int c = 0; c < 3; c++) {
          ef[d][3 * i + c] = -skew[3 * d + c] / s->euler;
        }
      }
    }
  }
  for (int d = 0; d < 3; d++) {
    add_row(w, res_f[d] / s->newton, newton[d], 0, 3 * nv, nf[d]);
    add_row(w, res_l[d] / s->euler, euler[d], 0, 3 * nv, ef[d]);
  }

  double row[MAX_FORCE] = {0};
  for (int i = 0; i < np; i++) {
    const struct synth_foot *foot = &s->plan->frame[t].foot[foot_of[i]];
    const double *f = force + 3 * i;
    for (int d = 0; d < 3; d++) {
      const double want = d == 2 ? foot->load / SYNTH_SPHERES : 0;
      const double sigma = d == 2 ? like.force_z : like.force_xy;
      row[3 * i + d] = 1 / sigma;
      add_row(w, (f[d] - want) / sigma, NULL, 0, 0, row);
      row[3 * i + d] = 0;
    }
    if (f[2] < like.min_push) {
      row[3 * i + 2] = 1 / like.push_sigma;
      add_row(w, (f[2] - like.min_push) / like.push_sigma, NULL, 0, 0, row);
      row[3 * i + 2] = 0;
    }
    // friction pyramid inside the cone of the floor's .6
    for (int d = 0; d < 2; d++) {
      for (int sign = -1; sign <= 1; sign += 2) {
        const double over = sign * f[d] - like.friction * f[2];
        if (over > 0) {
          row[3 * i + d] = sign / like.push_sigma;
          row[3 * i + 2] = -like.friction / like.push_sigma;
          add_row(w, over / like.push_sigma, NULL, 0, 0, row);
          row[3 * i + d] = row[3 * i + 2] = 0;
        }
      }
    }
  }
}

// Row j of the mass matrix: torque j per acceleration. Links below joint j only.
static void mass_row(double *row, const struct synth_solver *s, const struct synth_kin *k, int j) {
  const struct robot *r = s->r;
  const int nv = s->nv;
  const double *o = k->anchor + 3 * j, *a = k->axis + 3 * j;
  double rj[3 * MAX_NV];
  memset(row, 0, (size_t)nv * sizeof(double));
  for (int b = 1; b < r->nlink; b++) {
    int up = r->link[b].dof;
    while (up >= 0 && up != j) {
      up = r->dof[up].parent;
    }
    if (up < 0) {
      continue;
    }
    const double *c = k->com + 3 * b, *jac = k->com_jac + 3 * nv * b;
    const double arm[3] = {c[0] - o[0], c[1] - o[1], c[2] - o[2]};
    double lever[3], spin[3];
    cross3(lever, a, arm);
    mul33_vec(spin, k->inertia + 9 * b, a);
    synth_kin_rot_jac(rj, k, r, b);
    for (int i = r->link[b].dof; i >= 0; i = r->dof[i].parent) {
      for (int d = 0; d < 3; d++) {
        row[i] += r->link[b].mass * lever[d] * jac[d * nv + i] + spin[d] * rj[d * nv + i];
      }
    }
  }
  row[j] += r->dof[j].armature;
}

// joint torques over their share of the limit
static void torque_terms(struct synth_local *w, const struct synth_solver *s, int t,
                         const double *acc, const double *force) {
  const struct robot *r = s->r;
  const int nv = s->nv;
  const struct synth_kin *k = solver_kin(s, t);
  double x[2 * SYNTH_SPHERES][3], torque[MAX_NV], f[3], m[3];
  int foot_of[2 * SYNTH_SPHERES];
  const int np = contact_points(x, foot_of, s, t);
  synth_kin_inverse(f, m, torque, solver_kin(s, t - 1), k, solver_kin(s, t + 1), r, acc, s->dt);
  for (int l = 1; l < r->nlink; l++) {
    const int j = r->link[l].dof;
    double row_f[MAX_FORCE] = {0}, total[3] = {0}; // lever arms; force through the joint
    for (int i = 0; i < np; i++) {
      int up = r->link[s->plan->body.foot[foot_of[i]]].dof;
      while (up >= 0 && up != j) {
        up = r->dof[up].parent;
      }
      if (up < 0) {
        continue;
      }
      const double *o = k->anchor + 3 * j;
      const double arm[3] = {x[i][0] - o[0], x[i][1] - o[1], x[i][2] - o[2]};
      double lever[3]; // axis . (arm x f) = (axis x arm) . f
      cross3(lever, k->axis + 3 * j, arm);
      torque[j] -= dot3(lever, force + 3 * i);
      for (int d = 0; d < 3; d++) {
        row_f[3 * i + d] = -lever[d] / like.torque_sigma;
        total[d] += force[3 * i + d];
      }
    }
    const double most = like.torque_share * s->plan->body.limit[j];
    if (fabs(torque[j]) <= most) {
      continue;
    }
    double row[MAX_WIDE] = {0};
    if (w->derive) {
      // through the accelerations, and through the joint's own place under a force that stays
      double mass[MAX_NV], jac[3 * MAX_NV], c[3];
      mass_row(mass, s, k, j);
      synth_kin_point_jac(jac, k, r, l, k->anchor + 3 * j);
      cross3(c, total, k->axis + 3 * j);
      for (int i = 0; i < nv; i++) {
        const double a = mass[i] / (s->dt * s->dt * like.torque_sigma);
        row[i] = row[2 * nv + i] = a;
        row[nv + i] = -2 * a + (c[0] * jac[i] + c[1] * jac[nv + i] + c[2] * jac[2 * nv + i]) /
                                   like.torque_sigma;
      }
    }
    add_row(w, (torque[j] - copysign(most, torque[j])) / like.torque_sigma, row, 0, 3 * nv, row_f);
  }
}

static void wish_terms(struct synth_local *w, const struct synth_solver *s, int t,
                       const double *qpos) {
  const struct robot *r = s->r;
  const struct synth_frame *want = &s->plan->frame[t];
  const struct synth_kin *k = &s->frame[t].kin;
  const int nv = s->nv;
  double jac[3 * MAX_NV], diff[3];
  for (int f = 0; f < 2; f++) {
    const struct synth_foot *foot = &want->foot[f];
    const int link = s->plan->body.foot[f];
    // looser at first, but never looser than a swing in the air
    const double xy = fmax(foot->sigma_xy, fmin(s->soft * foot->sigma_xy, .02));
    const double z = fmax(foot->sigma_z, fmin(s->soft * foot->sigma_z, .02));
    const double rot = fmax(foot->sigma_rot, fmin(s->soft * foot->sigma_rot, .1));
    const double sp[3] = {xy, xy, z}, sr[3] = {rot, rot, rot};
    for (int d = 0; d < 3; d++) {
      diff[d] = k->pos[3 * link + d] - foot->pos[d];
    }
    synth_kin_point_jac(jac, k, r, link, k->pos + 3 * link);
    add_vector(w, nv, diff, jac, sp);
    rot_log(diff, k->rot + 9 * link, foot->rot);
    synth_kin_rot_jac(jac, k, r, link);
    add_vector(w, nv, diff, jac, sr);
    // a swinging sole stays above the floor
    for (int i = 0; i < SYNTH_SPHERES && !foot->contact; i++) {
      double x[3];
      const double low_z = s->plan->body.radius + foot->clear;
      synth_kin_point(x, k, link, s->plan->body.sphere[f][i]);
      if (x[2] < low_z) {
        const double none[3] = {0, 0, like.floor_sigma}, low[3] = {0, 0, x[2] - low_z};
        synth_kin_point_jac(jac, k, r, link, x);
        add_vector(w, nv, low, jac, none);
      }
    }
  }
  for (int d = 0; d < 3; d++) {
    add_coordinate(w, nv, d, k->pos[d] - want->pelvis[d], want->pelvis_sigma[d]);
  }
  rot_log(diff, k->rot, want->rot);
  synth_kin_rot_jac(jac, k, r, 0);
  add_vector(w, nv, diff, jac, (double[3]){want->rot_sigma, want->rot_sigma, want->rot_sigma});
  for (int l = 1; l < r->nlink; l++) {
    const int j = r->link[l].dof;
    const double q = qpos[r->link[l].qadr];
    add_coordinate(w, nv, j, q - want->joint[j], want->sigma[j]);
    const double lo = r->dof[j].range[0] + like.joint_margin,
                 hi = r->dof[j].range[1] - like.joint_margin;
    if (r->dof[j].limited && (q < lo || q > hi)) {
      add_coordinate(w, nv, j, q < lo ? q - lo : q - hi, like.range_sigma);
    }
  }
}

// second difference of the torso's rotation in the world, and its tilt
static void torso_terms(struct synth_local *w, const struct synth_solver *s, int t) {
  const int nv = s->nv, link = s->plan->body.torso;
  const struct synth_kin *k[3] = {solver_kin(s, t - 1), solver_kin(s, t), solver_kin(s, t + 1)};
  const double c = 1 / (s->dt * s->dt * like.acc_torso);
  double before[3], after[3], jac[3][3 * MAX_NV];
  rot_log(before, k[1]->rot + 9 * link, k[0]->rot + 9 * link);
  rot_log(after, k[2]->rot + 9 * link, k[1]->rot + 9 * link);
  for (int p = 0; p < 3 && w->derive; p++) {
    synth_kin_rot_jac(jac[p], k[p], s->r, link);
  }
  for (int d = 0; d < 3; d++) {
    double row[MAX_WIDE];
    for (int j = 0; j < 3 * nv && w->derive; j++) {
      row[j] = (j / nv == 1 ? -2 : 1) * c * jac[j / nv][d * nv + j % nv];
    }
    add_row(w, c * (after[d] - before[d]), row, 0, 3 * nv, NULL);
  }
  double diff[3];
  const double sigma = s->plan->frame[t].torso_sigma;
  rot_log(diff, k[1]->rot + 9 * link, s->plan->frame[t].torso);
  synth_kin_rot_jac(jac[1], k[1], s->r, link);
  add_vector(w, nv, diff, jac[1], (double[3]){sigma, sigma, sigma});
}

// second differences of every coordinate, and joint speeds over their limit
static void smooth_terms(struct synth_local *w, const struct synth_solver *s, const double *before,
                         const double *after) {
  const int nv = s->nv;
  for (int j = 0; j < nv; j++) {
    const double sigma = j < 3 ? like.acc_pos : j < 6 ? like.acc_rot : like.acc_joint;
    const double c = 1 / (s->dt * s->dt * sigma), r = c * (after[j] - before[j]);
    w->cost += r * r;
    if (w->derive) {
      const double a[3] = {c, -2 * c, c};
      for (int p = 0; p < 3; p++) {
        w->g[p * nv + j] += a[p] * r;
        for (int q = 0; q <= p; q++) {
          w->h[p * nv + j][q * nv + j] += a[p] * a[q];
        }
      }
    }
    if (j >= 6) {
      const double v = after[j] / s->dt, most = like.speed_share * s->plan->body.speed[j];
      if (fabs(v) > most) {
        double row[MAX_WIDE] = {0};
        row[nv + j] = -1 / (s->dt * like.speed_sigma);
        row[2 * nv + j] = -row[nv + j];
        add_row(w, (v - copysign(most, v)) / like.speed_sigma, row, nv, 3 * nv, NULL);
      }
    }
  }
}

double solver_terms(struct synth_local *w, const struct synth_solver *s, int t, const double *qpos,
                    const double *force, bool derive) {
  const int nv = s->nv;
  w->derive = derive;
  w->wide = 3 * nv;
  w->nforce = s->frame[t].nforce;
  w->cost = 0;
  if (derive) {
    memset(w->h, 0, sizeof w->h);
    memset(w->g, 0, sizeof w->g);
    memset(w->hff, 0, sizeof w->hff);
    memset(w->hfq, 0, sizeof w->hfq);
    memset(w->gf, 0, sizeof w->gf);
  }
  double before[MAX_NV], after[MAX_NV], acc[MAX_NV];
  robot_difference(s->r, before, solver_qpos(s, qpos, t - 1), solver_qpos(s, qpos, t));
  robot_difference(s->r, after, solver_qpos(s, qpos, t), solver_qpos(s, qpos, t + 1));
  for (int j = 0; j < nv; j++) {
    acc[j] = (after[j] - before[j]) / (s->dt * s->dt);
  }
  dynamics_terms(w, s, t, force);
  torque_terms(w, s, t, acc, force);
  wish_terms(w, s, t, solver_qpos(s, qpos, t));
  torso_terms(w, s, t);
  smooth_terms(w, s, before, after);
  return w->cost;
}

void solver_soften(struct synth_solver *s, double soft) {
  s->soft = soft;
  s->newton = like.newton * soft;
  s->euler = like.euler * soft;
}
