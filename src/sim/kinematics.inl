// Stage: positions -> link poses, motion subspaces, inertias about O. Its adjoint is shared by all
// stages: they add wrenches to links, one sweep from the leaves to the root ends them.

// x = q Exp-moved by h v on every joint's manifold
LANE_STAGE void positions_move(const struct sim_model *m, realw *q_out, const realw *q, double h,
                               const realw *v) {
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    int a = l->qadr, d = l->dof;
    if (l->type == JOINT_FREE) {
      for (int k = 0; k < 3; k++) {
        q_out[a + k] = q[a + k] + h * v[d + k];
      }
      a += 3;
      d += 3;
    }
    if (l->type == JOINT_FREE || l->type == JOINT_BALL) {
      realw th[3] = {h * v[d], h * v[d + 1], h * v[d + 2]};
      quat_exp_mul(q_out + a, q + a, th);
    } else {
      q_out[a] = q[a] + h * v[d];
    }
  }
}

// Cotangent d_out (nv) of the moved positions -> d_q (of q, overwritten) and d_v += (of v).
LANE_STAGE void positions_move_adj(const struct sim_model *m, realw *d_q, realw *d_v,
                                   const realw *d_out, double h, const realw *v) {
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    int d = l->dof;
    if (l->type == JOINT_FREE) {
      for (int k = 0; k < 3; k++) {
        d_q[d + k] = d_out[d + k];
        d_v[d + k] += h * d_out[d + k];
      }
      d += 3;
    }
    if (l->type == JOINT_FREE || l->type == JOINT_BALL) {
      realw th[3], y[3], d_R[3], d_th[3];
      for (int k = 0; k < 3; k++) {
        th[k] = h * v[d + k];
        y[k] = d_out[d + k];
      }
      quat_exp_mul_adj(d_R, d_th, th, y);
      for (int k = 0; k < 3; k++) {
        d_q[d + k] = d_R[k];
        d_v[d + k] += h * d_th[k];
      }
    } else {
      d_q[d] = d_out[d];
      d_v[d] += h * d_out[d];
    }
  }
}

LANE void frame_mul(realw *T, const realw *R, const double *L) { // T = R L, L constant
  for (int r = 0; r < 3; r++) {
    for (int c = 0; c < 3; c++) {
      T[3 * r + c] = R[3 * r] * L[c] + R[3 * r + 1] * L[3 + c] + R[3 * r + 2] * L[6 + c];
    }
  }
}

LANE void frame_place(realw *o, const realw *p, const realw *R, const double *x) { // o = p + R x
  for (int r = 0; r < 3; r++) {
    o[r] = p[r] + R[3 * r] * x[0] + R[3 * r + 1] * x[1] + R[3 * r + 2] * x[2];
  }
}

// w->q -> w->R, w->p, w->S, w->z_root
LANE_STAGE void kinematics_fwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  realw zero = splat(0), one = splat(1);
  realw *R0 = w->R[m->nlink], *p0 = w->p[m->nlink];
  for (int k = 0; k < 9; k++) {
    R0[k] = k % 4 ? zero : one;
  }
  p0[0] = p0[1] = p0[2] = zero;
  for (int t = 0; t < m->ntree; t++) {
    const struct sim_tree *tree = &m->tree[t];
    w->z_root[t] = tree->free ? w->q[m->link[tree->first_link].qadr + 2] : zero;
  }
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    realw *R = w->R[i], *p = w->p[i], *S = w->S[l->dof];
    const realw *q = w->q + l->qadr;
    if (l->type == JOINT_FREE) {
      quat_to_rot(R, q + 3);
      p[0] = p[1] = p[2] = zero; // O is the root's position
      for (int k = 0; k < 3; k++) {
        for (int j = 0; j < 6; j++) {
          S[6 * k + j] = j == 3 + k ? one : zero;
          S[6 * (3 + k) + j] = j < 3 ? R[3 * j + k] : zero;
        }
      }
      continue;
    }
    const realw *Rp = w->R[l->parent];
    realw T[9];
    if (l->rot_is_identity) {
      for (int k = 0; k < 9; k++) {
        T[k] = Rp[k];
      }
    } else {
      frame_mul(T, Rp, l->rot);
    }
    frame_place(p, w->p[l->parent], Rp, l->pos);
    if (l->type == JOINT_HINGE) {
      realw s, c;
      sincosw(q[0], &s, &c);
      int k = l->axis, j = k == 2 ? 0 : k + 1, n = k == 0 ? 2 : k - 1;
      for (int r = 0; r < 3; r++) {
        realw a = T[3 * r + j], b = T[3 * r + n];
        S[r] = R[3 * r + k] = T[3 * r + k];
        R[3 * r + j] = c * a + s * b;
        R[3 * r + n] = c * b - s * a;
      }
      cross3(S + 3, p, S);
    } else if (l->type == JOINT_SLIDE) {
      for (int r = 0; r < 3; r++) {
        S[r] = zero;
        S[3 + r] = T[3 * r + l->axis];
        p[r] += S[3 + r] * q[0];
      }
      for (int k = 0; k < 9; k++) {
        R[k] = T[k];
      }
    } else { // ball: axes of the child
      realw B[9];
      quat_to_rot(B, q);
      for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
          R[3 * r + c] = T[3 * r] * B[c] + T[3 * r + 1] * B[3 + c] + T[3 * r + 2] * B[6 + c];
        }
      }
      for (int k = 0; k < 3; k++) {
        for (int r = 0; r < 3; r++) {
          S[6 * k + r] = R[3 * r + k];
        }
        cross3(S + 6 * k + 3, p, S + 6 * k);
      }
    }
  }
}

// Link wrenches w->Fw (about O) -> w->d_q +=, from the leaves to the root. Destroys Fw. The
// cotangent of a free root's x, y is zero, of z what z_root collected: written by the caller.
LANE_STAGE void kinematics_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    const realw *F = w->Fw[i];
    if (l->type == JOINT_FREE) {
      for (int k = 0; k < 3; k++) {
        w->d_q[l->dof + 3 + k] += dot3(w->S[l->dof + 3 + k], F);
      }
      continue;
    }
    for (int k = 0; k < l->ndof; k++) {
      w->d_q[l->dof + k] += dot6(w->S[l->dof + k], F);
    }
    realw *Fp = w->Fw[l->parent];
    for (int k = 0; k < 6; k++) {
      Fp[k] += F[k];
    }
  }
}

// ---- inertias
// -------------------------------------------------------------------------------------

// w->R, w->p, parameters -> w->I: rotational part l3 1 + (l1 - l3) r1 r1' + (l2 - l3) r2 r2' about
// the centre of mass (cheaper than R I R'), moved to O
LANE_STAGE void inertia_fwd(const struct sim_model *m, struct sim_work *w, const realw *param) {
  STAGE_LOCALS(m, w);
  for (int i = 0; i < m->nlink; i++) {
    const realw *R = w->R[i], *com = param + m->at.com + 3 * i, *l = param + m->at.inertia + 3 * i;
    const double *u1 = m->link[i].iaxes[0], *u2 = m->link[i].iaxes[1];
    realw mass = param[m->at.mass + i], c[3], h[3], a[3], b[3], da[3], db[3];
    realw d1 = l[0] - l[2], d2 = l[1] - l[2];
    realw *I = w->I[i];
    for (int r = 0; r < 3; r++) {
      c[r] = w->p[i][r] + R[3 * r] * com[0] + R[3 * r + 1] * com[1] + R[3 * r + 2] * com[2];
      h[r] = mass * c[r];
      a[r] = R[3 * r] * u1[0] + R[3 * r + 1] * u1[1] + R[3 * r + 2] * u1[2];
      b[r] = R[3 * r] * u2[0] + R[3 * r + 1] * u2[1] + R[3 * r + 2] * u2[2];
      da[r] = d1 * a[r];
      db[r] = d2 * b[r];
      I[r] = h[r];
    }
    realw xx = h[0] * c[0], yy = h[1] * c[1], zz = h[2] * c[2];
    I[3] = l[2] + da[0] * a[0] + db[0] * b[0] + (yy + zz);
    I[4] = l[2] + da[1] * a[1] + db[1] * b[1] + (xx + zz);
    I[5] = l[2] + da[2] * a[2] + db[2] * b[2] + (xx + yy);
    I[6] = da[0] * a[1] + db[0] * b[1] - h[0] * c[1];
    I[7] = da[0] * a[2] + db[0] * b[2] - h[0] * c[2];
    I[8] = da[1] * a[2] + db[1] * b[2] - h[1] * c[2];
  }
}

// Cotangent d_I[10] (h, rotational part, mass) of link i's inertia -> its parameters' gradient. The
// pose's share is inertia_wrench_add.
LANE void inertia_param_bwd(const struct sim_model *m, const struct sim_work *w, realw *d_param,
                            const realw *param, const realw *d_I, int i) {
  const realw *R = w->R[i], *com = param + m->at.com + 3 * i;
  realw mass = param[m->at.mass + i], c[3], d_c[3], Ec[3];
  frame_place(c, w->p[i], R, (double[3]){0, 0, 0});
  for (int r = 0; r < 3; r++) {
    c[r] += R[3 * r] * com[0] + R[3 * r + 1] * com[1] + R[3 * r + 2] * com[2];
  }
  realw E[9] = {d_I[3],      .5 * d_I[6], .5 * d_I[7], .5 * d_I[6], d_I[4],
                .5 * d_I[8], .5 * d_I[7], .5 * d_I[8], d_I[5]};
  realw tr = d_I[3] + d_I[4] + d_I[5];
  rot_mul(Ec, E, c);
  d_param[m->at.mass + i] += d_I[9] + dot3(d_I, c) + tr * dot3(c, c) - dot3(c, Ec);
  for (int r = 0; r < 3; r++) {
    d_c[r] = mass * (d_I[r] + 2. * (tr * c[r] - Ec[r]));
  }
  realw d_com[3], d_l[3];
  rot_tmul(d_com, R, d_c);
  for (int k = 0; k < 2; k++) {
    const double *u = m->link[i].iaxes[k];
    realw a[3], Ea[3];
    for (int r = 0; r < 3; r++) {
      a[r] = R[3 * r] * u[0] + R[3 * r + 1] * u[1] + R[3 * r + 2] * u[2];
    }
    rot_mul(Ea, E, a);
    d_l[k] = dot3(a, Ea);
  }
  d_l[2] = tr - d_l[0] - d_l[1];
  for (int k = 0; k < 3; k++) {
    d_param[m->at.com + 3 * i + k] += d_com[k];
    d_param[m->at.inertia + 3 * i + k] += d_l[k];
  }
}
