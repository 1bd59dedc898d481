// Stages: velocity and bias force (recursive Newton-Euler), mass matrix (composite rigid bodies),
// and the joint reverse of both: M qdd + c enters the step as one sweep.

// w->v, w->S, w->I -> w->V, w->A, w->H = I V, w->F (subtree sums), w->bias
LANE_STAGE void bias_fwd(const struct sim_model *m, struct sim_work *w, const realw *param) {
  STAGE_LOCALS(m, w);
  int world = m->nlink;
  for (int k = 0; k < 6; k++) {
    w->V[world][k] = splat(0);
    w->A[world][k] = splat(k < 3 ? 0 : -m->gravity[k - 3]);
    w->F[world][k] = splat(0);
  }
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    const realw *v = w->v + l->dof;
    realw V[6], A[6], h[6], f[6], mass = param[m->at.mass + i];
    if (l->type == JOINT_FREE) {
      // O moves with the root: its translations are fixed in the world, A = (0; v x w - g)
      rot_mul(V, w->R[i], v + 3);
      for (int k = 0; k < 3; k++) {
        V[3 + k] = v[k];
        A[k] = splat(0);
        A[3 + k] = splat(-m->gravity[k]);
      }
      cross3_add(A + 3, v, V);
    } else {
      const realw *Vp = w->V[l->parent], *Ap = w->A[l->parent], *S = w->S[l->dof];
      realw Sv[6];
      for (int k = 0; k < 6; k++) {
        Sv[k] = S[k] * v[0];
        for (int n = 1; n < l->ndof; n++) {
          Sv[k] += S[6 * n + k] * v[n];
        }
        V[k] = Vp[k] + Sv[k];
        A[k] = Ap[k];
      }
      cross_motion_add(A, Vp, Sv);
    }
    inertia_mul(h, mass, w->I[i], V);
    inertia_mul(f, mass, w->I[i], A);
    cross_force_add(f, V, h);
    for (int k = 0; k < 6; k++) {
      w->V[i][k] = V[k];
      w->A[i][k] = A[k];
      w->H[i][k] = h[k];
      w->F[i][k] = f[k];
    }
  }
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    const realw *F = w->F[i];
    if (l->type == JOINT_FREE) {
      for (int k = 0; k < 3; k++) {
        w->bias[l->dof + k] = F[3 + k];
      }
      rot_tmul(w->bias + l->dof + 3, w->R[i], F);
      continue;
    }
    for (int n = 0; n < l->ndof; n++) {
      w->bias[l->dof + n] = dot6(w->S[l->dof + n], F);
    }
    for (int k = 0; k < 6; k++) {
      w->F[l->parent][k] += F[k];
    }
  }
}

// w->S, w->I -> w->Ic, w->mass_c, w->Fc = Ic S, packed w->M with armature + w->diag on the diagonal
LANE_STAGE void mass_fwd(const struct sim_model *m, struct sim_work *w, const realw *param) {
  STAGE_LOCALS(m, w);
  int *pending = w->pending; // whether w->Ic of a link already holds children
  for (int i = 0; i <= m->nlink; i++) {
    pending[i] = 0;
  }
  realw acc[9], acc_mass = splat(0); // composite handed from link i+1 to its parent i in registers
  int open = 0;
  for (int k = 0; k < 9; k++) {
    acc[k] = splat(0);
  }
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    realw Ic[9], mass = param[m->at.mass + i];
    for (int k = 0; k < 9; k++) {
      Ic[k] = w->I[i][k];
    }
    if (open) {
      mass += acc_mass;
      for (int k = 0; k < 9; k++) {
        Ic[k] += acc[k];
      }
    }
    if (pending[i]) {
      mass += w->mass_c[i];
      for (int k = 0; k < 9; k++) {
        Ic[k] += w->Ic[i][k];
      }
    }
    w->mass_c[i] = acc_mass = mass;
    for (int k = 0; k < 9; k++) {
      w->Ic[i][k] = acc[k] = Ic[k];
    }
    int p = l->parent;
    open = p == i - 1;
    if (!open && p < m->nlink) {
      w->mass_c[p] = pending[p] ? w->mass_c[p] + mass : mass;
      for (int k = 0; k < 9; k++) {
        w->Ic[p][k] = pending[p] ? w->Ic[p][k] + Ic[k] : Ic[k];
      }
      pending[p] = 1;
    }
    const struct sim_tree *tree = &m->tree[l->tree];
    if (l->type == JOINT_FREE) { // rows of the root: picks instead of products
      const realw *R = w->R[i];
      for (int k = 0; k < 3; k++) {
        realw *row = w->M + m->madr[l->dof + k];
        row[0] = mass;
        for (int t = 1; t <= k; t++) {
          row[t] = splat(0);
        }
        row = w->M + m->madr[l->dof + 3 + k];
        realw a[3] = {R[k], R[3 + k], R[6 + k]}, *f = w->Fc[l->dof + 3 + k];
        f[0] = Ic[3] * a[0] + Ic[6] * a[1] + Ic[7] * a[2];
        f[1] = Ic[6] * a[0] + Ic[4] * a[1] + Ic[8] * a[2];
        f[2] = Ic[7] * a[0] + Ic[8] * a[1] + Ic[5] * a[2];
        cross3(f + 3, a, Ic);
        for (int j = k; j >= 0; j--) {
          realw x[3] = {R[j], R[3 + j], R[6 + j]};
          row[k - j] = dot3(x, f);
        }
        row[k + 1] = f[5];
        row[k + 2] = f[4];
        row[k + 3] = f[3];
      }
    } else {
      for (int n = 0; n < l->ndof; n++) {
        int d = l->dof + n, len = m->dep[d], tail = tree->free ? len - 6 : len;
        const int *anc = m->anc + m->madr[d];
        realw *row = w->M + m->madr[d], f[6];
        inertia_mul(f, mass, Ic, w->S[d]);
        for (int k = 0; k < 6; k++) {
          w->Fc[d][k] = f[k];
        }
        for (int t = 0; t < tail; t++) {
          row[t] = dot6(f, w->S[anc[t]]);
        }
        if (tree->free) {
          realw a[3];
          rot_tmul(a, w->R[tree->first_link], f);
          row[tail] = a[2];
          row[tail + 1] = a[1];
          row[tail + 2] = a[0];
          row[tail + 3] = f[5];
          row[tail + 4] = f[4];
          row[tail + 5] = f[3];
        }
      }
    }
  }
  for (int d = 0; d < m->nv; d++) {
    w->M[m->madr[d]] += param[m->at.armature + d] + w->diag[d];
  }
}

// ---- reverse
// --------------------------------------------------------------------------------------

// Cotangent w->d_M (packed, each off-diagonal once) -> w->d_S, w->d_I (composite part), w->Fw of
// free roots. Overwrites d_I, adds to d_S and Fw.
LANE_STAGE void mass_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    const struct sim_tree *tree = &m->tree[l->tree];
    realw mass = w->mass_c[i];
    realw d_I[10];
    for (int k = 0; k < 10; k++) {
      d_I[k] = splat(0);
    }
    if (l->type == JOINT_FREE) {
      for (int k = 0; k < 3; k++) {
        int d = l->dof + 3 + k;
        const realw *row = w->d_M + m->madr[d], *S = w->S[d], *fc = w->Fc[d];
        realw fb[6], y[6];
        for (int r = 0; r < 6; r++) {
          fb[r] = splat(0);
        }
        for (int j = 0; j <= k; j++) {
          const realw *x = w->S[l->dof + 3 + j];
          realw c = row[k - j];
          fb[0] += c * x[0];
          fb[1] += c * x[1];
          fb[2] += c * x[2];
        }
        fb[5] = row[k + 1];
        fb[4] = row[k + 2];
        fb[3] = row[k + 3];
        cross3_add(w->Fw[i], fb, fc);
        inertia_mul(y, mass, w->Ic[i], fb);
        cross3_add(w->Fw[i], S, y);
        inertia_pair_add(d_I, fb, S);
        d_I[9] += w->d_M[m->madr[l->dof + k]]; // the translations' diagonal is the mass itself
      }
    } else {
      for (int n = 0; n < l->ndof; n++) {
        int d = l->dof + n, len = m->dep[d], tail = tree->free ? len - 6 : len;
        const int *anc = m->anc + m->madr[d];
        const realw *row = w->d_M + m->madr[d], *fc = w->Fc[d], *S = w->S[d];
        realw fb[6], y[6];
        if (tree->free) {
          realw a[3] = {row[tail + 2], row[tail + 1], row[tail]};
          rot_mul(fb, w->R[tree->first_link], a);
          cross3_add(w->Fw[tree->first_link], fb, fc);
          fb[3] = row[tail + 5];
          fb[4] = row[tail + 4];
          fb[5] = row[tail + 3];
        } else {
          for (int k = 0; k < 6; k++) {
            fb[k] = splat(0);
          }
        }
        for (int t = 1; t < tail; t++) {
          const realw *Sj = w->S[anc[t]];
          realw x = row[t], *d_Sj = w->d_S[anc[t]];
          for (int k = 0; k < 6; k++) {
            fb[k] += x * Sj[k];
            d_Sj[k] += x * fc[k];
          }
        }
        realw x = row[0];
        for (int k = 0; k < 6; k++) {
          fb[k] += x * S[k];
        }
        inertia_mul(y, mass, w->Ic[i], fb);
        for (int k = 0; k < 6; k++) {
          w->d_S[d][k] += x * fc[k] + y[k];
        }
        inertia_pair_add(d_I, fb, S);
        d_I[9] += fb[3] * S[3] + fb[4] * S[4] + fb[5] * S[5];
      }
    }
    for (int k = 0; k < 10; k++) {
      w->d_I[i][k] = d_I[k];
    }
  }
}

// Root -> leaf: w->z (cotangent of the bias, with sign) -> w->Z; inertia cotangents become wrenches
// (and parameter gradients); cotangents of V and A by the reverse of Newton-Euler.
LANE_STAGE void tree_down_bwd(const struct sim_model *m, struct sim_work *w, realw *d_param,
                              const realw *param) {
  STAGE_LOCALS(m, w);
  int world = m->nlink;
  for (int k = 0; k < 6; k++) {
    w->Z[world][k] = splat(0);
  }
  for (int k = 0; k < 10; k++) {
    w->d_I[world][k] = splat(0);
  }
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    realw *Z = w->Z[i];
    if (l->type == JOINT_FREE) {
      rot_mul(Z, w->R[i], w->z + l->dof + 3);
      cross3_add(w->Fw[i], Z, w->F[i]);
      for (int k = 0; k < 3; k++) {
        Z[3 + k] = w->z[l->dof + k];
      }
    } else {
      for (int k = 0; k < 6; k++) {
        Z[k] = w->Z[l->parent][k];
        for (int n = 0; n < l->ndof; n++) {
          Z[k] += w->z[l->dof + n] * w->S[l->dof + n][k];
        }
      }
      // a link's own inertia feels the composites of all its ancestors
      for (int k = 0; k < 10; k++) {
        w->d_I[i][k] += w->d_I[l->parent][k];
      }
    }
    const realw *I = w->I[i];
    realw mass = param[m->at.mass + i], hb[6], vb[6], ab[6], d_I[10];
    inertia_mul(ab, mass, I, Z);
    for (int k = 0; k < 6; k++) {
      hb[k] = splat(0);
    }
    cross_motion_add(hb, Z, w->V[i]);
    inertia_mul(vb, mass, I, hb);
    cross_force_sub(vb, Z, w->H[i]);
    for (int k = 0; k < 10; k++) {
      d_I[k] = w->d_I[i][k];
    }
    inertia_pair_add(d_I, Z, w->A[i]);
    inertia_pair_add(d_I, hb, w->V[i]);
    for (int k = 0; k < 6; k++) {
      w->d_V[i][k] = vb[k];
      w->d_A[i][k] = ab[k];
    }
    if (d_param) {
      d_I[9] += dot3(Z + 3, w->A[i] + 3) + dot3(hb + 3, w->V[i] + 3);
      inertia_param_bwd(m, w, d_param, param, d_I, i);
    }
    inertia_wrench_add(w->Fw[i], mass, I, d_I);
  }
}

// Leaf -> root: cotangents of V, A, S -> w->d_v +=, w->d_q += , by wrenches
LANE_STAGE void tree_up_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    const realw *d_A = w->d_A[i], *d_V = w->d_V[i];
    realw *Fw = w->Fw[i];
    if (l->type == JOINT_FREE) {
      const realw *om = w->V[i], *v = w->v + l->dof;
      realw x[6], b[3];
      for (int k = 0; k < 6; k++) {
        x[k] = d_V[k];
      }
      cross3_add(x + 3, om, d_A + 3);
      cross3_add(x, d_A + 3, v);
      rot_tmul(b, w->R[i], x);
      for (int k = 0; k < 3; k++) {
        w->d_v[l->dof + k] += x[3 + k];
        w->d_v[l->dof + 3 + k] += b[k];
      }
      cross3_add(Fw, om, x);
      rot_tmul(b, w->R[i], Fw);
      for (int k = 0; k < 3; k++) {
        w->d_q[l->dof + 3 + k] += b[k];
      }
      continue;
    }
    const realw *Vp = w->V[l->parent];
    realw sq[6], vp[6], Sv[6], fw[6];
    for (int k = 0; k < 6; k++) {
      sq[k] = vp[k] = d_V[k];
      fw[k] = Fw[k];
      Sv[k] = w->v[l->dof] * w->S[l->dof][k];
      for (int n = 1; n < l->ndof; n++) {
        Sv[k] += w->v[l->dof + n] * w->S[l->dof + n][k];
      }
    }
    cross_force_sub(sq, Vp, d_A);
    cross_force_add(vp, Sv, d_A);
    for (int n = 0; n < l->ndof; n++) {
      int d = l->dof + n;
      const realw *S = w->S[d];
      realw d_S[6];
      w->d_v[d] += dot6(S, sq);
      for (int k = 0; k < 6; k++) {
        d_S[k] = w->d_S[d][k] + w->v[d] * sq[k] + w->z[d] * w->F[i][k];
      }
      cross_force_add(fw, S, d_S);
    }
    for (int n = 0; n < l->ndof; n++) {
      w->d_q[l->dof + n] += dot6(w->S[l->dof + n], fw);
    }
    for (int k = 0; k < 6; k++) {
      w->d_A[l->parent][k] += d_A[k];
      w->d_V[l->parent][k] += vp[k];
      w->Fw[l->parent][k] += fw[k];
    }
  }
}
