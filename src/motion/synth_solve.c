// From a wish list to a motion: one least-squares problem over the whole clip.
//
// Unknowns: the pose q_t of every frame (tangent space, nv numbers) and a force f at each of the
// four spheres of every planted foot. Terms, each a difference over its standard deviation,
// squared:
//   Newton       m (c_{t+1} - 2 c_t + c_{t-1}) / dt^2 = m g + sum f          (in flight: a
//   parabola) Euler        (L_{t+1/2} - L_{t-1/2}) / dt = sum (p - c_t) x f            (in flight:
//   L constant) wishes       feet, pelvis, joints smoothness   second differences of all
//   coordinates inequalities (one-sided) joint ranges and speeds, push only, friction cone, joint
//   torques, soles
//                above the floor
// c, L: centre of mass and angular momentum about it (Orin, Goswami and Lee 2013); the formulation
// is the one of Dai, Valenzuela and Tedrake 2014 with penalties instead of constraints.
//
// Forces touch one frame only and are eliminated there (Schur complement). What remains couples
// three neighbouring frames: a band matrix of half width 3 nv - 1, solved by Cholesky.
// Levenberg-Marquardt damping; a step that makes things worse is retried with more of it.
#include "motion/synth_kin.h"
#include "motion/synth_plan.h"
#include "base/log.h"
#include <math.h>
#include <string.h>

enum { MAX_NV = 40, MAX_FORCE = 3 * 2 * SYNTH_SPHERES, MAX_WIDE = 3 * MAX_NV };

// standard deviations and limits
static const struct {
  double newton, euler;                  // N, N m
  double force_z, force_xy;              // N per sphere, around the expected load
  double min_push, friction, push_sigma; // N, -, N
  double torque_share, torque_sigma;     // of the limit; N m
  double joint_margin, range_sigma;      // rad
  double speed_share, speed_sigma;       // of the limit; rad/s
  double floor_sigma;                    // m
  double acc_pos, acc_rot, acc_joint,
      acc_torso;        // m/s^2, rad/s^2; acc_torso: of its rotation in the world
  double force_damping; // rad^2/N^2, of forces beside that of coordinates
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

struct frame {
  struct synth_kin kin;
  int nforce; // 3 per sphere on the floor
  double force[MAX_FORCE];
  double *hff; // Cholesky factor of the force block (nforce, nforce)
  double *hfq; // (nforce, 3 nv): force block against q_{t-1}, q_t, q_{t+1}
  double gf[MAX_FORCE], step_f[MAX_FORCE];
};

struct solver {
  const struct synth_plan *plan;
  const struct robot *r;
  int n, nv, bw; // frames, DoF, half band width
  double dt;
  double soft;          // sigmas of equations and feet are this much larger: falls to 1
  double newton, euler; // N, N m, with soft
  struct frame *frame;
  double *qpos, *trial; // (n, nq)
  double (*trial_force)[MAX_FORCE];
  double *band, *grad, *step; // (n nv, bw + 1) rows ending on the diagonal; (n nv) each
  double *torque0;            // (n, nv) torques without contact, from the last accepted motion
};

// one frame's share of the problem while it is being put together
struct local {
  double h[MAX_WIDE][MAX_WIDE], g[MAX_WIDE];
  double hff[MAX_FORCE][MAX_FORCE], hfq[MAX_FORCE][MAX_WIDE], gf[MAX_FORCE];
  double cost;
  bool derive; // false: the cost alone
  int wide, nforce;
};

// adds the row (r + aq dq + af df)^2, aq over columns from..to
static void add_row(struct local *w, double r, const double *aq, int from, int to,
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
static void add_coordinate(struct local *w, int nv, int j, double diff, double sigma) {
  w->cost += diff * diff / (sigma * sigma);
  if (w->derive) {
    w->g[nv + j] += diff / (sigma * sigma);
    w->h[nv + j][nv + j] += 1 / (sigma * sigma);
  }
}

// three rows with the Jacobian jac (3, nv) of the middle frame
static void add_vector(struct local *w, int nv, const double diff[3], const double *jac,
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

static const struct synth_kin *kin_at(const struct solver *s, int t) {
  return &s->frame[t < 0 ? 0 : t >= s->n ? s->n - 1 : t].kin; // at rest before and after
}
static const double *qpos_at(const struct solver *s, const double *qpos, int t) {
  return qpos + (size_t)s->r->nq * (size_t)(t < 0 ? 0 : t >= s->n ? s->n - 1 : t);
}

// d L_{t+1/2} / d (q_t, q_{t+1}), times scale, added to the columns at `at` (two blocks of nv). The
// spin of a link counts its inertia as constant.
static void momentum_rows(double row[3][MAX_WIDE], const struct solver *s,
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

// positions of the spheres on the floor at frame t, in the order of the forces
static int contact_points(double x[][3], int foot_of[], const struct solver *s, int t) {
  int n = 0;
  for (int f = 0; f < 2; f++) {
    if (!s->plan->frame[t].foot[f].contact) {
      continue;
    }
    for (int i = 0; i < SYNTH_SPHERES; i++) {
      synth_kin_point(x[n], &s->frame[t].kin, s->plan->body.foot[f], s->plan->body.sphere[f][i]);
      x[n][2] -= s->plan->body.radius;
      foot_of[n++] = f;
    }
  }
  return n;
}

// the equations of motion of the whole body, and what forces may be
static void dynamics_terms(struct local *w, const struct solver *s, int t, const double *force) {
  const struct robot *r = s->r;
  const int nv = s->nv;
  const double dt = s->dt, m = r->total_mass;
  const struct synth_kin *kp = kin_at(s, t - 1), *k = kin_at(s, t), *kn = kin_at(s, t + 1);
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

  // torques of the planted legs: those of the body alone (lagged) less the moment of the forces
  for (int f = 0; f < 2; f++) {
    if (!s->plan->frame[t].foot[f].contact) {
      continue;
    }
    const struct robot_link *foot = &r->link[s->plan->body.foot[f]];
    for (int j = foot->dof; j >= 6; j = r->dof[j].parent) {
      double tau = s->torque0[(size_t)t * (size_t)nv + (size_t)j];
      memset(row, 0, sizeof row);
      for (int i = 0; i < np; i++) {
        if (foot_of[i] != f) {
          continue;
        }
        const double *o = k->anchor + 3 * j;
        const double arm[3] = {x[i][0] - o[0], x[i][1] - o[1], x[i][2] - o[2]};
        double lever[3]; // axis . (arm x f) = (axis x arm) . f
        cross3(lever, k->axis + 3 * j, arm);
        tau -= dot3(lever, force + 3 * i);
        for (int d = 0; d < 3; d++) {
          row[3 * i + d] = -lever[d] / like.torque_sigma;
        }
      }
      const double most = like.torque_share * s->plan->body.limit[j];
      if (fabs(tau) > most) {
        add_row(w, (tau - copysign(most, tau)) / like.torque_sigma, NULL, 0, 0, row);
      }
    }
    memset(row, 0, sizeof row);
  }
}

static void wish_terms(struct local *w, const struct solver *s, int t, const double *qpos) {
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
      synth_kin_point(x, k, link, s->plan->body.sphere[f][i]);
      if (x[2] < s->plan->body.radius) {
        const double none[3] = {0, 0, like.floor_sigma},
                     low[3] = {0, 0, x[2] - s->plan->body.radius};
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
static void torso_terms(struct local *w, const struct solver *s, int t) {
  const int nv = s->nv, link = s->plan->body.torso;
  const struct synth_kin *k[3] = {kin_at(s, t - 1), kin_at(s, t), kin_at(s, t + 1)};
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
static void smooth_terms(struct local *w, const struct solver *s, int t, const double *qpos) {
  const int nv = s->nv;
  double before[MAX_NV], after[MAX_NV];
  robot_difference(s->r, before, qpos_at(s, qpos, t - 1), qpos_at(s, qpos, t));
  robot_difference(s->r, after, qpos_at(s, qpos, t), qpos_at(s, qpos, t + 1));
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

static bool cholesky(double *a, int n, int stride) { // lower, in place, rows of `stride`
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) {
      double v = a[i * stride + j];
      for (int k = 0; k < j; k++) {
        v -= a[i * stride + k] * a[j * stride + k];
      }
      if (i == j) {
        if (!(v > 0)) {
          return false;
        }
        a[i * stride + i] = sqrt(v);
      } else {
        a[i * stride + j] = v / a[j * stride + j];
      }
    }
  }
  return true;
}

// x = L^-1 b, then (back) x = L^-T x; b has `cols` columns
static void forward_solve(double *b, const double *l, int n, int stride, int cols) {
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < i; k++) {
      for (int c = 0; c < cols; c++) {
        b[i * cols + c] -= l[i * stride + k] * b[k * cols + c];
      }
    }
    for (int c = 0; c < cols; c++) {
      b[i * cols + c] /= l[i * stride + i];
    }
  }
}
static void back_solve(double *b, const double *l, int n, int stride) {
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) {
      b[i] -= l[k * stride + i] * b[k];
    }
    b[i] /= l[i * stride + i];
  }
}

static double frame_terms(struct local *w, const struct solver *s, int t, const double *qpos,
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
  dynamics_terms(w, s, t, force);
  wish_terms(w, s, t, qpos_at(s, qpos, t));
  torso_terms(w, s, t);
  smooth_terms(w, s, t, qpos);
  return w->cost;
}

static void update_kin(struct solver *s, const double *qpos) {
#pragma omp parallel for schedule(static)
  for (int t = 0; t < s->n; t++) {
    synth_kin_update(&s->frame[t].kin, s->r, qpos_at(s, qpos, t));
  }
}

static double total_cost(const struct solver *s, const double *qpos, bool trial_force) {
  double *cost = s->grad; // free while costs are compared
#pragma omp parallel for schedule(static)
  for (int t = 0; t < s->n; t++) {
    struct local w;
    cost[t] =
        frame_terms(&w, s, t, qpos, trial_force ? s->trial_force[t] : s->frame[t].force, false);
  }
  double sum = 0;
  for (int t = 0; t < s->n; t++) {
    sum += cost[t];
  }
  return sum;
}

// eliminates the forces of frame t and adds what is left to the band matrix. Columns before the
// first and after the last frame fold back onto it: the robot rests there.
static void add_to_band(struct solver *s, struct local *w, int t, double damping, bool *ok) {
  struct frame *f = &s->frame[t];
  const int nv = s->nv, wide = 3 * nv, nf = f->nforce;
  if (nf > 0) {
    static _Thread_local double half[MAX_FORCE * (MAX_WIDE + 1)];
    for (int i = 0; i < nf; i++) {
      memcpy(f->hff + i * nf, w->hff[i], (size_t)nf * sizeof(double));
      f->hff[i * nf + i] += damping * like.force_damping;
      memcpy(f->hfq + i * wide, w->hfq[i], (size_t)wide * sizeof(double));
      memcpy(half + i * (wide + 1), w->hfq[i], (size_t)wide * sizeof(double));
      f->gf[i] = half[i * (wide + 1) + wide] = w->gf[i];
    }
    if (!cholesky(f->hff, nf, nf)) {
      *ok = false;
      return;
    }
    forward_solve(half, f->hff, nf, nf, wide + 1);
    for (int k = 0; k < nf; k++) {
      const double *row = half + k * (wide + 1);
      for (int i = 0; i < wide; i++) {
        w->g[i] -= row[i] * row[wide];
        for (int j = 0; j <= i; j++) {
          w->h[i][j] -= row[i] * row[j];
        }
      }
    }
  }
  for (int i = 0; i < wide; i++) {
    const int ti = t - 1 + i / nv, ci = ti < 0 ? 0 : ti >= s->n ? s->n - 1 : ti;
    const int gi = ci * nv + i % nv;
    s->grad[gi] += w->g[i];
    for (int j = 0; j < wide; j++) {
      const int tj = t - 1 + j / nv, cj = tj < 0 ? 0 : tj >= s->n ? s->n - 1 : tj;
      const int gj = cj * nv + j % nv;
      if (gj <= gi) {
        s->band[(size_t)gi * (size_t)(s->bw + 1) + (size_t)(gj - gi + s->bw)] +=
            j <= i ? w->h[i][j] : w->h[j][i];
      }
    }
  }
}

static double dot(const double *a, const double *b, int n) {
  double s[8] = {0};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; k++) {
      s[k] += a[i + k] * b[i + k];
    }
  }
  for (; i < n; i++) {
    s[0] += a[i] * b[i];
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// band Cholesky in place, then grad <- H^-1 grad
static bool band_solve(struct solver *s) {
  const int n = s->n * s->nv, bw = s->bw;
  const size_t stride = (size_t)bw + 1;
  for (int i = 0; i < n; i++) {
    double *ri = s->band + (size_t)i * stride; // column j at ri[j - i + bw]
    const int first = i > bw ? i - bw : 0;
    for (int j = first; j <= i; j++) {
      const double *rj = s->band + (size_t)j * stride;
      const int from = j > bw ? (j - bw > first ? j - bw : first) : first;
      const double v = ri[j - i + bw] - dot(ri + (from - i + bw), rj + (from - j + bw), j - from);
      if (j < i) {
        ri[j - i + bw] = v / rj[bw];
      } else if (v > 0) {
        ri[bw] = sqrt(v);
      } else {
        return false;
      }
    }
    s->grad[i] = (s->grad[i] - dot(ri + (first - i + bw), s->grad + first, i - first)) / ri[bw];
  }
  for (int i = n - 1; i >= 0; i--) {
    const double *ri = s->band + (size_t)i * stride;
    s->grad[i] /= ri[bw];
    for (int j = i > bw ? i - bw : 0; j < i; j++) {
      s->grad[j] -= ri[j - i + bw] * s->grad[i];
    }
  }
  return true;
}

// one damped Gauss-Newton direction into step and the frames' step_f
static bool propose(struct solver *s, double damping) {
  const int nv = s->nv, wide = 3 * nv;
  memset(s->band, 0, (size_t)(s->n * nv) * (size_t)(s->bw + 1) * sizeof(double));
  memset(s->grad, 0, (size_t)(s->n * nv) * sizeof(double));
  bool ok = true;
  // three colours of frames, so that threads never add to the same entry; the order of additions to
  // one entry is the same for any number of threads
  for (int colour = 0; colour < 3; colour++) {
#pragma omp parallel for schedule(static)
    for (int t = colour; t < s->n; t += 3) {
      struct local w;
      frame_terms(&w, s, t, s->qpos, s->frame[t].force, true);
      add_to_band(s, &w, t, damping, &ok);
    }
  }
  for (int i = 0; i < s->n * nv; i++) {
    s->band[(size_t)i * (size_t)(s->bw + 1) + (size_t)s->bw] += damping;
  }
  if (!ok || !band_solve(s)) {
    return false;
  }
  for (int t = 0; t < s->n; t++) {
    struct frame *f = &s->frame[t];
    // df = -Hff^-1 (gf + Hfq dq)
    for (int i = 0; i < f->nforce; i++) {
      double v = f->gf[i];
      for (int c = 0; c < wide; c++) {
        const int tc = t - 1 + c / nv, cc = tc < 0 ? 0 : tc >= s->n ? s->n - 1 : tc;
        v -= f->hfq[i * wide + c] * s->grad[cc * nv + c % nv];
      }
      f->step_f[i] = -v;
    }
    if (f->nforce > 0) {
      forward_solve(f->step_f, f->hff, f->nforce, f->nforce, 1);
      back_solve(f->step_f, f->hff, f->nforce, f->nforce);
    }
  }
  memcpy(s->step, s->grad, (size_t)(s->n * nv) * sizeof(double));
  return true;
}

// trial = now + length * step
static void take_step(struct solver *s, double length) {
  for (int t = 0; t < s->n; t++) {
    double dv[MAX_NV], *q = s->trial + (size_t)t * (size_t)s->r->nq;
    for (int j = 0; j < s->nv; j++) {
      dv[j] = -length * s->step[t * s->nv + j];
    }
    memcpy(q, qpos_at(s, s->qpos, t), (size_t)s->r->nq * sizeof(double));
    robot_integrate(s->r, q, dv);
    for (int i = 0; i < s->frame[t].nforce; i++) {
      s->trial_force[t][i] = s->frame[t].force[i] + length * s->frame[t].step_f[i];
    }
  }
}

static void update_torques(struct solver *s) {
  const int nv = s->nv;
  for (int t = 0; t < s->n; t++) {
    double before[MAX_NV], after[MAX_NV], acc[MAX_NV], force[3], moment[3];
    robot_difference(s->r, before, qpos_at(s, s->qpos, t - 1), qpos_at(s, s->qpos, t));
    robot_difference(s->r, after, qpos_at(s, s->qpos, t), qpos_at(s, s->qpos, t + 1));
    for (int j = 0; j < nv; j++) {
      acc[j] = (after[j] - before[j]) / (s->dt * s->dt);
    }
    synth_kin_inverse(force, moment, s->torque0 + (size_t)t * (size_t)nv, kin_at(s, t - 1),
                      kin_at(s, t), kin_at(s, t + 1), s->r, acc, s->dt);
  }
}

// Levenberg-Marquardt with backtracking, until a full step gains less than a part in 3000
static void descend(struct solver *s, int iterations) {
  double damping = 1;
  for (int it = 0; it < iterations; it++) {
    const double cost = total_cost(s, s->qpos, false);
    double now = cost, length = 1;
    for (int attempt = 0; attempt < 5 && !(now < cost); attempt++) {
      if (propose(s, damping)) {
        for (length = 1; length > .1; length *= .5) {
          take_step(s, length);
          update_kin(s, s->trial);
          now = total_cost(s, s->trial, true);
          if (now < cost) {
            break;
          }
        }
      }
      damping *= now < cost ? (length == 1 ? .1 : 2) : 20;
    }
    log_info("synth: soft %g step %d, cost %.6g -> %.6g, damping %.1e, length %g", s->soft, it,
             cost, now, damping, length);
    if (!(now < cost)) {
      update_kin(s, s->qpos);
      return;
    }
    memcpy(s->qpos, s->trial, (size_t)(s->n * s->r->nq) * sizeof(double));
    for (int t = 0; t < s->n; t++) {
      memcpy(s->frame[t].force, s->trial_force[t], sizeof s->trial_force[t]);
    }
    update_torques(s);
    if (length == 1 && cost - now < cost / 3000) {
      return;
    }
  }
}

int plan_solve(double *qpos, const struct synth_plan *p, struct arena *a, int iterations,
               struct err *e) {
  const struct robot *r = p->body.robot;
  BUG_IF(r->nv > MAX_NV);
  struct solver s = {.plan = p,
                     .r = r,
                     .n = p->nframe,
                     .nv = r->nv,
                     .bw = 3 * r->nv - 1,
                     .dt = p->dt,
                     .qpos = qpos};
  const size_t unknowns = (size_t)(s.n * s.nv);
  s.frame = ARENA_NEW(a, struct frame, s.n);
  s.trial = ARENA_NEW(a, double, s.n * r->nq);
  s.trial_force = arena_alloc(a, (size_t)s.n * sizeof *s.trial_force);
  s.band = ARENA_NEW(a, double, unknowns *(size_t)(s.bw + 1));
  s.grad = ARENA_NEW(a, double, unknowns);
  s.step = ARENA_NEW(a, double, unknowns);
  s.torque0 = ARENA_NEW(a, double, unknowns);
  for (int t = 0; t < s.n; t++) {
    struct frame *f = &s.frame[t];
    synth_kin_new(&f->kin, a, r);
    for (int foot = 0; foot < 2; foot++) {
      const struct synth_foot *want = &p->frame[t].foot[foot];
      for (int i = 0; i < SYNTH_SPHERES && want->contact; i++) {
        f->force[f->nforce + 2] = want->load / SYNTH_SPHERES;
        f->nforce += 3;
      }
    }
    f->hff = ARENA_NEW(a, double, f->nforce * f->nforce + 1);
    f->hfq = ARENA_NEW(a, double, f->nforce * 3 * r->nv + 1);
  }
  update_kin(&s, s.qpos);
  update_torques(&s);
  // stiff equations bend the way down; they stiffen as the motion gets close
  static const double soft[] = {100, 20, 4, 1};
  for (size_t stage = 0; stage < sizeof soft / sizeof soft[0]; stage++) {
    s.soft = soft[stage];
    s.newton = like.newton * s.soft;
    s.euler = like.euler * s.soft;
    descend(&s, stage + 1 < sizeof soft / sizeof soft[0] ? iterations / 4 : iterations);
  }
  for (size_t i = 0; i < (size_t)(s.n * r->nq); i++) {
    if (!isfinite(s.qpos[i])) {
      return err_set(e, EXIT_NUMERIC, "motion synth: the solver diverged");
    }
  }
  return 0;
}
