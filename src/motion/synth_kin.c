#include "motion/synth_kin.h"
#include <math.h>
#include <string.h>

void rot_from_quat(double m[9], const double q[4]) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                       2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                       2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
  memcpy(m, r, sizeof r);
}

void rot_log(double v[3], const double a[9], const double b[9]) {
  double d[9]; // a b'
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      d[3 * i + j] = dot3(a + 3 * i, b + 3 * j);
    }
  }
  const double s[3] = {.5 * (d[7] - d[5]), .5 * (d[2] - d[6]), .5 * (d[3] - d[1])};
  const double sn = sqrt(dot3(s, s)), cs = .5 * (d[0] + d[4] + d[8] - 1);
  const double f = sn < 1e-9 ? 1 : atan2(sn, cs) / sn;
  for (int i = 0; i < 3; i++) {
    v[i] = f * s[i];
  }
}

bool synth_kin_supports(const struct robot *r) {
  if (r->nlink < 2 || r->link[0].type != JOINT_FREE) {
    return false;
  }
  for (int l = 1; l < r->nlink; l++) {
    if (r->link[l].type != JOINT_HINGE || r->link[l].parent < 0) {
      return false;
    }
  }
  return true;
}

void synth_kin_new(struct synth_kin *k, struct arena *a, const struct robot *r) {
  k->pos = ARENA_NEW(a, double, 3 * r->nlink);
  k->rot = ARENA_NEW(a, double, 9 * r->nlink);
  k->com = ARENA_NEW(a, double, 3 * r->nlink);
  k->inertia = ARENA_NEW(a, double, 9 * r->nlink);
  k->anchor = ARENA_NEW(a, double, 3 * r->nv);
  k->axis = ARENA_NEW(a, double, 3 * r->nv);
  k->com_jac = ARENA_NEW(a, double, 3 * r->nlink * r->nv);
  k->mean_jac = ARENA_NEW(a, double, 3 * r->nv);
}

static void link_frame(struct synth_kin *k, const struct robot *r, int l, const double *qpos) {
  const struct robot_link *link = &r->link[l];
  double *pos = k->pos + 3 * l, *rot = k->rot + 9 * l;
  if (link->type == JOINT_FREE) {
    memcpy(pos, qpos + link->qadr, 3 * sizeof(double));
    rot_from_quat(rot, qpos + link->qadr + 3);
    for (int i = 0; i < 3; i++) {
      for (int d = 0; d < 3; d++) {
        k->axis[3 * (link->dof + i) + d] = i == d;
        k->axis[3 * (link->dof + 3 + i) + d] = rot[3 * d + i]; // body axes
        k->anchor[3 * (link->dof + 3 + i) + d] = pos[d];
      }
    }
    return;
  }
  const double *parent = k->rot + 9 * link->parent;
  mul33_vec(pos, parent, link->pos);
  double zero[9], turn[9] = {0};
  mul33(zero, parent, link->rot);
  for (int d = 0; d < 3; d++) {
    pos[d] += k->pos[3 * link->parent + d];
    k->anchor[3 * link->dof + d] = pos[d];
    k->axis[3 * link->dof + d] = zero[3 * d + link->axis];
  }
  const int x = link->axis, y = (x + 1) % 3, z = (x + 2) % 3;
  const double c = cos(qpos[link->qadr]), s = sin(qpos[link->qadr]);
  turn[4 * x] = 1;
  turn[4 * y] = turn[4 * z] = c;
  turn[3 * y + z] = -s;
  turn[3 * z + y] = s;
  mul33(rot, zero, turn);
}

void synth_kin_update(struct synth_kin *k, const struct robot *r, const double *qpos) {
  memset(k->mean, 0, sizeof k->mean);
  memset(k->mean_jac, 0, 3 * (size_t)r->nv * sizeof(double));
  for (int l = 0; l < r->nlink; l++) {
    const struct robot_link *link = &r->link[l];
    link_frame(k, r, l, qpos);
    synth_kin_point(k->com + 3 * l, k, l, link->com);
    // R iaxes diag(I) iaxes' R'
    double m[9];
    mul33(m, k->rot + 9 * l, link->iaxes);
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        double s = 0;
        for (int d = 0; d < 3; d++) {
          s += m[3 * i + d] * link->inertia[d] * m[3 * j + d];
        }
        k->inertia[9 * l + 3 * i + j] = s;
      }
    }
    double *jac = k->com_jac + 3 * r->nv * l;
    synth_kin_point_jac(jac, k, r, l, k->com + 3 * l);
    const double share = link->mass / r->total_mass;
    for (int d = 0; d < 3; d++) {
      k->mean[d] += share * k->com[3 * l + d];
    }
    for (int i = 0; i < 3 * r->nv; i++) {
      k->mean_jac[i] += share * jac[i];
    }
  }
}

void synth_kin_point(double x[3], const struct synth_kin *k, int link, const double local[3]) {
  mul33_vec(x, k->rot + 9 * link, local);
  for (int d = 0; d < 3; d++) {
    x[d] += k->pos[3 * link + d];
  }
}

void synth_kin_point_jac(double *jac, const struct synth_kin *k, const struct robot *r, int link,
                         const double x[3]) {
  const int nv = r->nv;
  memset(jac, 0, 3 * (size_t)nv * sizeof(double));
  for (int j = r->link[link].dof + r->link[link].ndof - 1; j >= 0; j = r->dof[j].parent) {
    double col[3];
    if (r->link[r->dof[j].link].type == JOINT_FREE && j - r->link[r->dof[j].link].dof < 3) {
      memcpy(col, k->axis + 3 * j, sizeof col);
    } else {
      const double *o = k->anchor + 3 * j;
      const double arm[3] = {x[0] - o[0], x[1] - o[1], x[2] - o[2]};
      cross3(col, k->axis + 3 * j, arm);
    }
    for (int d = 0; d < 3; d++) {
      jac[d * nv + j] = col[d];
    }
  }
}

void synth_kin_rot_jac(double *jac, const struct synth_kin *k, const struct robot *r, int link) {
  const int nv = r->nv;
  memset(jac, 0, 3 * (size_t)nv * sizeof(double));
  for (int j = r->link[link].dof + r->link[link].ndof - 1; j >= 0; j = r->dof[j].parent) {
    if (r->link[r->dof[j].link].type == JOINT_FREE && j - r->link[r->dof[j].link].dof < 3) {
      continue;
    }
    for (int d = 0; d < 3; d++) {
      jac[d * nv + j] = k->axis[3 * j + d];
    }
  }
}

// spin of one link between two frames: inertia (mean of both) times log(R1 R0') / dt
static void link_spin(double h[3], const struct synth_kin *k0, const struct synth_kin *k1, int l,
                      double dt) {
  double w[3], mean[9];
  rot_log(w, k1->rot + 9 * l, k0->rot + 9 * l);
  for (int i = 0; i < 9; i++) {
    mean[i] = .5 * (k0->inertia[9 * l + i] + k1->inertia[9 * l + i]) / dt;
  }
  mul33_vec(h, mean, w);
}

void synth_kin_momentum(double l[3], const struct synth_kin *k0, const struct synth_kin *k1,
                        const struct robot *r, double dt) {
  memset(l, 0, 3 * sizeof(double));
  for (int b = 0; b < r->nlink; b++) {
    double arm[3], vel[3], h[3], s[3];
    for (int d = 0; d < 3; d++) {
      const double x0 = k0->com[3 * b + d], x1 = k1->com[3 * b + d];
      arm[d] = .5 * (x0 + x1 - k0->mean[d] - k1->mean[d]);
      vel[d] = (x1 - x0) / dt;
    }
    cross3(h, arm, vel);
    link_spin(s, k0, k1, b, dt);
    for (int d = 0; d < 3; d++) {
      l[d] += r->link[b].mass * h[d] + s[d];
    }
  }
}

void synth_kin_inverse(double force[3], double moment[3], double *torque,
                       const struct synth_kin *kp, const struct synth_kin *k,
                       const struct synth_kin *kn, const struct robot *r, const double *qacc,
                       double dt) {
  // force and moment about the world's origin that each link's subtree needs, leaves first
  double f[64][3], n[64][3];
  memset(f, 0, sizeof f);
  memset(n, 0, sizeof n);
  BUG_IF(r->nlink > 64);
  for (int l = r->nlink - 1; l >= 0; l--) {
    double fl[3], nl[3], s0[3], s1[3];
    for (int d = 0; d < 3; d++) {
      const double acc =
          (kp->com[3 * l + d] - 2 * k->com[3 * l + d] + kn->com[3 * l + d]) / (dt * dt);
      fl[d] = r->link[l].mass * (acc - r->gravity[d]);
    }
    cross3(nl, k->com + 3 * l, fl);
    link_spin(s0, kp, k, l, dt);
    link_spin(s1, k, kn, l, dt);
    const int up = r->link[l].parent;
    for (int d = 0; d < 3; d++) {
      f[l][d] += fl[d];
      n[l][d] += nl[d] + (s1[d] - s0[d]) / dt;
      if (up >= 0) {
        f[up][d] += f[l][d];
        n[up][d] += n[l][d];
      }
    }
    const int j = r->link[l].dof;
    if (r->link[l].type == JOINT_HINGE) {
      double about[3];
      cross3(about, k->anchor + 3 * j, f[l]);
      for (int d = 0; d < 3; d++) {
        about[d] = n[l][d] - about[d];
      }
      torque[j] = dot3(k->axis + 3 * j, about) + r->dof[j].armature * qacc[j];
    } else {
      memset(torque + j, 0, 6 * sizeof(double));
    }
  }
  memcpy(force, f[0], 3 * sizeof(double));
  memcpy(moment, n[0], 3 * sizeof(double));
}
