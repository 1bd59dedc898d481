// MuJoCo's constrained acceleration as a function of state, controls and parameters,
//
//   qacc = f(q, v, ctrl): M qacc = tau - bias + J' f,
//
// apart from any integrator, and MuJoCo's Euler on top of it. The adjoint differentiates the
// optimality condition g(a; q, v) = RNE(q, v, a) - tau - J' f(a, q, v) = 0 at the converged a:
// with H lambda = d_qacc, every cotangent is -lambda' dg at fixed a. One solve, and one reverse
// sweep of the inverse dynamics in which acceleration and contact wrenches take part; there is no
// derivative of M, of its factor, or of the Newton iterations.

// ---- joint limits: rows that some lane feels

LANE_STAGE void soft_limits_fwd(const struct sim_model *m, struct sim_work *w) {
  w->nlimit_on = 0;
  for (int i = 0; i < m->nsoft_limit; i++) {
    const struct sim_soft_limit *l = &m->soft_limit[i];
    realw r = l->sign * (w->q[l->qadr] - l->bound) - l->margin;
    maskw felt = r < 0.;
    kink_note(w, felt);
    if (!anyw(felt)) {
      continue;
    }
    realw imp[SOFT_IMP];
    for (int k = 0; k < SOFT_IMP; k++) {
      imp[k] = splat(l->imp[k]);
    }
    struct impedance_parts d;
    r = minw(r, splat(0));
    soft_impedance(&d, imp, l->power, -r / l->imp[2]);
    w->limit_on[w->nlimit_on++] = i;
    w->limit_r[i] = r;
    w->limit_d[i] = d.d;
    w->limit_dr[i] = -d.dy * (l->imp[1] - l->imp[0]) / l->imp[2];
    w->limit_D[i] = maskedw(felt, d.d / ((1. - d.d) * l->weight));
    w->limit_c[i] = l->B * l->sign * w->v[l->dof] + l->K * d.d * r;
  }
}

// every branch of the converged laws, for all candidates and rows, so that lanes compare
static void soft_kinks(const struct sim_model *m, struct sim_work *w, const realw *param) {
  if (!w->kinks) {
    return;
  }
  for (int i = 0; i < m->nsoft_dry; i++) {
    int d = m->soft_dry[i].dof;
    kink_note(w, w->dry_H[d] > 0.);
    kink_note(w, w->dry_f[d] > 0.);
  }
  for (int i = 0, n = 0; i < m->nsoft_limit; i++) {
    bool on = n < w->nlimit_on && w->limit_on[n] == i;
    kink_note(w, on ? w->limit_H[i] > 0. : splat(0) != 0.);
    kink_note(w, on ? (maskw)(w->limit_dr[i] != 0.) & (w->limit_D[i] > 0.) : splat(0) != 0.);
    n += on;
  }
  for (int i = 0, slot = 0; i < m->ncontact; i++) {
    const struct sim_soft_contact *s = &m->soft_contact[i];
    bool on = slot < w->nslot && w->slot_cand[slot] == i;
    maskw none = splat(0) != 0., felt = none, sign[12];
    for (int k = 0; k < 12; k++) {
      sign[k] = none;
    }
    if (on) {
      struct soft_coefs c = soft_slot_coefs(m, w, param, slot);
      const realw *r = w->soft_w[slot];
      int n = s->dim - 1;
      felt = w->soft_D[slot] > 0.;
      sign[10] = w->soft_dr[slot] != 0.;
      sign[11] = r[5] < 0.;
      if (n && m->elliptic) {
        struct cone_parts e;
        soft_cone(&e, n, m, s, &c, r);
        sign[0] = e.top;
        sign[1] = e.bottom;
        sign[11] = none;
      } else if (n) {
        realw u[5];
        soft_to_frame(u, n, &c, r);
        for (int k = 0; k < n; k++) {
          sign[2 * k] = r[5] + soft_friction(s, &c, k) * u[k] < 0.;
          sign[2 * k + 1] = r[5] - soft_friction(s, &c, k) * u[k] < 0.;
        }
        sign[11] = none;
      }
    }
    for (int k = 0; k < 12; k++) {
      kink_note(w, sign[k] & felt);
    }
    slot += on;
  }
}

// ---- forward

// (q, v, ctrl) -> w->qacc and all that leads there. w->soft_gs = J' f is MuJoCo's qfrc_constraint.
static void soft_acceleration_fwd(const struct sim_model *m, struct sim_work *w, const realw *q,
                                  const realw *v, const realw *ctrl, const realw *param) {
  for (int i = 0; i < m->nq; i++) {
    w->q[i] = q[i];
  }
  for (int d = 0; d < m->nv; d++) {
    w->v[d] = v[d];
  }
  kinematics_fwd(m, w);
  inertia_fwd(m, w, param);
  bias_fwd(m, w, param);
  actuator_fwd(m, w, ctrl, param);
  for (int d = 0; d < m->nv; d++) {
    w->diag[d] = splat(0); // damping is implicit only in Euler's step
  }
  mass_fwd(m, w, param);
  soft_limits_fwd(m, w);
  soft_contact_fwd(m, w, param, 0);
  soft_path_list(m, w);
  for (int d = 0; d < m->nv; d++) {
    w->qacc[d] = splat(0);
    w->soft_gs[d] = w->bias[d] - w->tau[d];
  }
  soft_newton(m, w, param);
  soft_kinks(m, w, param);
  for (int slot = 0; slot < w->nslot; slot++) {
    for (int k = 0; k < 3; k++) {
      w->Q[w->slot_cand[slot]][k] = m->opt.dt * w->soft_f[slot][3 + k];
    }
  }
}

// Contacts from distance (arXiv 2506.14186), after soft_acceleration_fwd: the same problem with
// contacts that reach out, from the hard solution. Leaves everything as that problem has it, for
// soft_acceleration_bwd: the derivative is the soft problem's, the step is the hard one's.
static void soft_widen(const struct sim_model *m, struct sim_work *w, const realw *param) {
  soft_contact_fwd(m, w, param, m->opt.cfd.solimp[2]);
  soft_path_list(m, w);
  soft_newton(m, w, param);
}

// ---- reverse

// inverse dynamics at w->qacc with the contacts' wrenches: w->A, w->F (subtree sums)
LANE_STAGE void soft_inverse_fwd(const struct sim_model *m, struct sim_work *w,
                                 const realw *param) {
  STAGE_LOCALS(m, w);
  int world = m->nlink;
  for (int k = 0; k < 6; k++) {
    w->A[world][k] = splat(k < 3 ? 0 : -m->gravity[k - 3]);
    w->F[world][k] = splat(0);
  }
  for (int i = 0; i < m->nlink; i++) {
    const struct sim_link *l = &m->link[i];
    const realw *v = w->v + l->dof, *acc = w->qacc + l->dof;
    realw A[6], f[6];
    if (l->type == JOINT_FREE) {
      rot_mul(A, w->R[i], acc + 3);
      for (int k = 0; k < 3; k++) {
        A[3 + k] = acc[k] - m->gravity[k];
      }
      cross3_add(A + 3, v, w->V[i]);
    } else {
      const realw *Vp = w->V[l->parent], *Ap = w->A[l->parent], *S = w->S[l->dof];
      realw Sv[6];
      for (int k = 0; k < 6; k++) {
        Sv[k] = S[k] * v[0];
        A[k] = Ap[k] + S[k] * acc[0];
        for (int n = 1; n < l->ndof; n++) {
          Sv[k] += S[6 * n + k] * v[n];
          A[k] += S[6 * n + k] * acc[n];
        }
      }
      cross_motion_add(A, Vp, Sv);
    }
    inertia_mul(f, param[m->at.mass + i], w->I[i], A);
    cross_force_add(f, w->V[i], w->H[i]);
    for (int k = 0; k < 6; k++) {
      w->A[i][k] = A[k];
      w->F[i][k] = f[k];
    }
  }
  for (int i = m->nlink - 1; i >= 0; i--) {
    if (m->link[i].type != JOINT_FREE) {
      realw *Fp = w->F[m->link[i].parent];
      for (int k = 0; k < 6; k++) {
        Fp[k] += w->F[i][k];
      }
    }
  }
  for (int n = 0; n < w->npath; n++) { // soft_W are subtree sums already
    for (int k = 0; k < 6; k++) {
      w->F[w->path[n]][k] -= w->soft_W[w->path[n]][k];
    }
  }
}

// limits and dry friction: lambda -> w->d_q, w->d_v, d_param, all added to
LANE_STAGE void soft_rows_bwd(const struct sim_model *m, struct sim_work *w, realw *d_param,
                              const realw *lambda) {
  STAGE_LOCALS(m, w);
  for (int i = 0; i < m->nsoft_dry; i++) {
    const struct sim_soft_dry *o = &m->soft_dry[i];
    int d = o->dof;
    w->d_v[d] -= o->B * w->dry_H[d] * lambda[d];
    if (d_param) {
      realw side = selectw(w->dry_f[d] > 0., lambda[d], -lambda[d]);
      d_param[m->at.frictionloss + d] += maskedw(w->dry_H[d] == 0., side);
    }
  }
  for (int n = 0; n < w->nlimit_on; n++) {
    int i = w->limit_on[n];
    const struct sim_soft_limit *l = &m->soft_limit[i];
    realw x = lambda[l->dof], d = w->limit_d[i], d_j = -l->sign * w->limit_H[i] * x;
    realw d_d = x * w->limit_f[i] / (d * (1. - d)) + l->K * w->limit_r[i] * d_j;
    w->d_v[l->dof] += l->B * l->sign * d_j;
    w->d_q[l->dof] += l->sign * (l->K * d * d_j + w->limit_dr[i] * d_d);
  }
}

// Contacts: lambda -> w->d_V += of their links, w->d_soft_U (cotangent of the links' J qacc),
// wrenches w->Fw +=, w->d_q of free roots' height, d_param
LANE_STAGE void soft_contact_bwd(const struct sim_model *m, struct sim_work *w, realw *d_param,
                                 const realw *param, const realw *lambda) {
  soft_twists(m, w, lambda);
  for (int n = 0; n < w->npath; n++) {
    for (int k = 0; k < 6; k++) {
      w->d_soft_U[w->path[n]][k] = splat(0);
    }
  }
  for (int a = 0; a < w->nact; a++) {
    int link = m->clink[w->act[a]].link;
    realw L[6], d_U[6], d_V[6], F[6];
    for (int k = 0; k < 6; k++) {
      L[k] = w->soft_U[link][k];
      d_U[k] = d_V[k] = splat(0);
      F[k] = w->Fw[link][k];
    }
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      int i = w->slot_cand[slot];
      const struct sim_soft_contact *s = &m->soft_contact[i];
      struct soft_coefs c = soft_slot_coefs(m, w, param, slot);
      struct soft_coefs_cot d_c;
      const realw *p = w->soft_p[slot], *r6 = w->soft_w[slot], *f = w->soft_f[slot];
      realw y[6], d_w[6], u[6], d_p[3];
      soft_at_point(y, L, p);
#define CALL(kind) soft_contact_force_bwd(kind, d_w, &d_c, m, s, &c, w->soft_C[slot], f, r6, y)
      SOFT_BY_KIND(m, s, CALL)
#undef CALL
      maskw felt = c.D > 0.;
      // residual = X (U + B V) + e_z K d s
      for (int k = 0; k < 6; k++) {
        u[k] = splat(0);
      }
      soft_wrench_add(u, s, p, d_w);
      realw B = w->soft_B[slot], K = w->soft_K[slot], d = w->soft_d[slot], spring = w->soft_s[slot];
      for (int k = 0; k < 6; k++) {
        d_U[k] += u[k];
        d_V[k] += B * u[k];
      }
      realw d_d = maskedw(felt, d_c.log_D / (d * (1. - d))) + K * spring * d_w[5];
      cross3(d_p, d_w + 3, r6);
      cross3_add(d_p, f + 3, L);
      realw d_r = maskedw(felt, w->soft_dr[slot] * d_d + K * d * w->soft_ds[slot] * d_w[5]);
      soft_geometry_bwd(m, w, F, d_param, param, slot, d_p, d_r, maskedw(felt, d_c.turn));
      if (d_param) {
        const realw *imp = param + m->at.solimp + SOFT_IMP * i;
        const realw *ref = param + m->at.solref + SOFT_REF * i;
        realw *d_imp = d_param + m->at.solimp + SOFT_IMP * i;
        struct impedance_parts parts;
        realw x = maxw(-w->soft_r[slot], splat(0)) / imp[2], slope = soft_share_slope(m, s, c.mu);
        maskw inside = w->soft_r[slot] < 0.; // outside, the impedance is not the contact's
        maskw above = felt & (param[m->at.mu + i] > 1e-5);
        d_param[m->at.mu + i] += maskedw(above, d_c.mu - slope * d_c.log_D);
        soft_impedance(&parts, imp, s->power, x);
        soft_impedance_bwd(d_imp, &parts, imp, s->power, x, maskedw(inside, d_d));
        soft_stiffness_bwd(d_param + m->at.solref + SOFT_REF * i, &d_imp[1], m, s->direct, ref,
                           imp[1], K, B, d * spring * d_w[5], dot6(u, w->V[link]));
      }
    }
    for (int k = 0; k < 6; k++) {
      w->d_soft_U[link][k] = d_U[k];
      w->d_V[link][k] += d_V[k];
      w->Fw[link][k] = F[k];
    }
  }
}

// Leaf -> root, as tree_up_bwd, with accelerations: cotangents of V, A, J qacc and S -> w->d_v +=,
// w->d_q +=
LANE_STAGE void soft_tree_up_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int n = 0, i = 0; i < m->nlink; i++) { // links off the path bear no contact
    if (n < w->npath && w->path[n] == i) {
      n++;
      continue;
    }
    for (int k = 0; k < 6; k++) {
      w->d_soft_U[i][k] = splat(0);
    }
  }
  for (int i = m->nlink - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    const realw *d_A = w->d_A[i], *d_V = w->d_V[i];
    realw *Fw = w->Fw[i], d_a[6]; // of S qacc, in A and in J qacc
    for (int k = 0; k < 6; k++) {
      d_a[k] = d_A[k] + w->d_soft_U[i][k];
    }
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
      rot_mul(b, w->R[i], w->qacc + l->dof + 3);
      cross3_add(Fw, b, d_a);
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
      for (int j = 1; j < l->ndof; j++) {
        Sv[k] += w->v[l->dof + j] * w->S[l->dof + j][k];
      }
    }
    cross_force_sub(sq, Vp, d_A);
    cross_force_add(vp, Sv, d_A);
    for (int j = 0; j < l->ndof; j++) {
      int d = l->dof + j;
      const realw *S = w->S[d];
      realw d_S[6];
      w->d_v[d] += dot6(S, sq);
      for (int k = 0; k < 6; k++) {
        d_S[k] = w->d_S[d][k] + w->v[d] * sq[k] + w->z[d] * w->F[i][k] + w->qacc[d] * d_a[k];
      }
      cross_force_add(fw, S, d_S);
    }
    for (int j = 0; j < l->ndof; j++) {
      w->d_q[l->dof + j] += dot6(w->S[l->dof + j], fw);
    }
    if (l->parent == m->nlink) {
      continue;
    }
    for (int k = 0; k < 6; k++) {
      w->d_A[l->parent][k] += d_A[k];
      w->d_soft_U[l->parent][k] += w->d_soft_U[i][k];
      w->d_V[l->parent][k] += vp[k];
      w->Fw[l->parent][k] += fw[k];
    }
  }
}

// cotangents that soft_acceleration_bwd adds to: nothing yet
static void soft_adjoint_clear(const struct sim_model *m, struct sim_work *w) {
  for (int d = 0; d < m->nv; d++) {
    w->d_q[d] = w->d_v[d] = splat(0);
    for (int k = 0; k < 6; k++) {
      w->d_S[d][k] = splat(0);
    }
  }
  for (int i = 0; i <= m->nlink; i++) {
    for (int k = 0; k < 6; k++) {
      w->Fw[i][k] = splat(0);
    }
    for (int k = 0; k < 10; k++) {
      w->d_I[i][k] = splat(0);
    }
  }
}

// Cotangent -lambda of the residual RNE(q, v, a) - J' f at fixed a -> w->d_q (tangent), w->d_v,
// d_param (may be NULL), all added to. w->d_S, w->Fw, w->d_I may hold what other users of the tree
// left (soft_adjoint_clear: nothing); they are used up.
static void soft_residual_bwd(const struct sim_model *m, struct sim_work *w, realw *d_param,
                              const realw *param, const realw *lambda) {
  for (int d = 0; d < m->nv; d++) {
    w->z[d] = -lambda[d];
    if (d_param) {
      d_param[m->at.armature + d] += w->z[d] * w->qacc[d];
    }
  }
  soft_inverse_fwd(m, w, param);
  soft_rows_bwd(m, w, d_param, lambda);
  tree_down_bwd(m, w, d_param, param);
  soft_contact_bwd(m, w, d_param, param, lambda);
  soft_tree_up_bwd(m, w);
}

// After soft_acceleration_fwd of the same state: cotangent w->d_qacc -> w->d_q (tangent), w->d_v,
// d_ctrl, d_param (may be NULL), all added to; d_S, Fw, d_I as above.
static void soft_acceleration_bwd(const struct sim_model *m, struct sim_work *w, realw *d_ctrl,
                                  realw *d_param, const realw *ctrl, const realw *param) {
  realw *lambda = w->soft_x;
  struct sim_work H = factored_view(w, w->soft_H, w->soft_HD, w->soft_HDi);
  if (!w->hessian_fits) { // the last factor may be that of other zones
    soft_hessian(m, w);
    factor_fwd(m, &H);
  }
  for (int d = 0; d < m->nv; d++) {
    lambda[d] = w->d_qacc[d];
    w->d_M[m->madr[d]] = splat(0); // actuators put nothing on the diagonal
  }
  factored_solve(m, &H, lambda);
  actuator_bwd(m, w, d_ctrl, d_param, lambda, ctrl, param);
  soft_residual_bwd(m, w, d_param, param, lambda);
}

// ---- MuJoCo's Euler: (M + dt damping) a = M qacc where joints have damping, v+ = v + dt a

// (q, v, ctrl) -> w->v_new
static void soft_euler_fwd(const struct sim_model *m, struct sim_work *w, const realw *q,
                           const realw *v, const realw *ctrl, const realw *param) {
  double dt = m->opt.dt;
  soft_acceleration_fwd(m, w, q, v, ctrl, param);
  const realw *a = w->qacc;
  if (m->damped) {
    struct sim_work E = factored_view(w, w->euler_M, w->euler_D, w->euler_Di);
    for (int k = 0; k < m->nM; k++) {
      w->euler_M[k] = w->M[k];
    }
    for (int d = 0; d < m->nv; d++) {
      w->euler_M[m->madr[d]] += dt * param[m->at.damping + d];
      w->euler_qacc[d] = w->soft_gs[d] + (w->tau[d] - w->bias[d]);
    }
    factor_fwd(m, &E);
    factored_solve(m, &E, w->euler_qacc);
    a = w->euler_qacc;
  }
  for (int d = 0; d < m->nv; d++) {
    w->v_new[d] = v[d] + dt * a[d];
  }
}

// After soft_euler_fwd: cotangent d_v_new -> w->d_q, w->d_v (overwritten), d_ctrl, d_param
static void soft_euler_bwd(const struct sim_model *m, struct sim_work *w, realw *d_ctrl,
                           realw *d_param, const realw *d_v_new, const realw *ctrl,
                           const realw *param) {
  double dt = m->opt.dt;
  if (m->opt.cfd.on) {
    soft_widen(m, w, param);
  }
  soft_adjoint_clear(m, w);
  if (!m->damped) {
    for (int d = 0; d < m->nv; d++) {
      w->d_qacc[d] = dt * d_v_new[d];
      w->d_v[d] = d_v_new[d];
    }
  } else {
    struct sim_work E = factored_view(w, w->euler_M, w->euler_D, w->euler_Di);
    realw *y = w->soft_x, *x = w->soft_Mx;
    for (int d = 0; d < m->nv; d++) {
      y[d] = dt * d_v_new[d];
      x[d] = w->qacc[d] - w->euler_qacc[d];
      w->d_v[d] = d_v_new[d];
      w->d_qacc[d] = splat(0);
    }
    factored_solve(m, &E, y);
    // d_qacc = M y; of M: y' dM (qacc - a)
    for (int d = 0; d < m->nv; d++) {
      const realw *row = w->M + m->madr[d];
      realw *d_row = w->d_M + m->madr[d];
      const int *anc = m->anc + m->madr[d];
      w->d_qacc[d] += row[0] * y[d];
      d_row[0] = y[d] * x[d];
      if (d_param) {
        d_param[m->at.armature + d] += d_row[0];
        d_param[m->at.damping + d] -= dt * y[d] * w->euler_qacc[d];
      }
      for (int t = 1; t < m->dep[d]; t++) {
        w->d_qacc[d] += row[t] * y[anc[t]];
        w->d_qacc[anc[t]] += row[t] * y[d];
        d_row[t] = y[d] * x[anc[t]] + y[anc[t]] * x[d];
      }
    }
    mass_bwd(m, w);
  }
  soft_acceleration_bwd(m, w, d_ctrl, d_param, ctrl, param);
}
