// Stage: the acceleration that MuJoCo's constraints leave, the minimum over a of
//
//   1/2 (a - a0)' M (a - a0) + sum_i cost_i(J_i a - aref_i)          (a0: without constraints)
//
// by Newton with an exact line search, all lanes at once until every lane has converged; one that
// has is left alone, and starts depend on nothing but its own state, so a lane's bits are its own.
// Gradient g = gs - J' f with gs = M (a - a0); Hessian H = M + J' C J. A contact with the world
// adds J' C J like an inertia of its link, so H has the sparsity of M along the tree and the same
// factor. Source: Todorov, "Convex and analytically-invertible dynamics with contacts and
// constraints", ICRA 2014; MuJoCo's documentation, "Computation".

// links from the root down that have an active contact at or below them
static void soft_path_list(const struct sim_model *m, struct sim_work *w) {
  for (int i = 0; i <= m->nlink; i++) {
    w->pending[i] = 0;
  }
  for (int a = 0; a < w->nact; a++) {
    for (int i = m->clink[w->act[a]].link; i < m->nlink && !w->pending[i]; i = m->link[i].parent) {
      w->pending[i] = 1;
    }
  }
  w->npath = 0;
  for (int i = 0; i < m->nlink; i++) {
    if (w->pending[i]) {
      w->path[w->npath++] = i;
    }
  }
}

// x (nv) -> twist w->soft_U of the links on the path
LANE void soft_twists(const struct sim_model *m, const struct sim_work *w, const realw *x) {
  for (int k = 0; k < 6; k++) {
    w->soft_U[m->nlink][k] = splat(0);
  }
  for (int n = 0; n < w->npath; n++) {
    int i = w->path[n];
    const struct sim_link *l = &m->link[i];
    realw *U = w->soft_U[i];
    if (l->type == JOINT_FREE) {
      rot_mul(U, w->R[i], x + l->dof + 3);
      for (int k = 0; k < 3; k++) {
        U[3 + k] = x[l->dof + k];
      }
      continue;
    }
    const realw *Up = w->soft_U[l->parent];
    for (int k = 0; k < 6; k++) {
      realw u = Up[k];
      for (int j = 0; j < l->ndof; j++) {
        u += w->S[l->dof + j][k] * x[l->dof + j];
      }
      U[k] = u;
    }
  }
}

// wrenches w->soft_W of the links on the path -> g -= S' of their sums over subtrees; W becomes
// those sums
LANE void soft_wrenches_sub(const struct sim_model *m, const struct sim_work *w, realw *g) {
  for (int n = w->npath - 1; n >= 0; n--) {
    int i = w->path[n];
    const struct sim_link *l = &m->link[i];
    const realw *F = w->soft_W[i];
    if (l->type == JOINT_FREE) {
      realw y[3];
      rot_tmul(y, w->R[i], F);
      for (int k = 0; k < 3; k++) {
        g[l->dof + k] -= F[3 + k];
        g[l->dof + 3 + k] -= y[k];
      }
      continue;
    }
    for (int j = 0; j < l->ndof; j++) {
      g[l->dof + j] -= dot6(w->S[l->dof + j], F);
    }
    realw *Fp = w->soft_W[l->parent];
    for (int k = 0; k < 6; k++) {
      Fp[k] += F[k];
    }
  }
}
LANE void soft_wrenches_clear(const struct sim_model *m, const struct sim_work *w) {
  for (int n = 0; n < w->npath; n++) {
    for (int k = 0; k < 6; k++) {
      w->soft_W[w->path[n]][k] = splat(0);
    }
  }
  for (int k = 0; k < 6; k++) {
    w->soft_W[m->nlink][k] = splat(0);
  }
}

// twist at the point, and the wrench about O of a force and moment there
LANE void soft_at_point(realw *o, const realw *U, const realw *p) {
  for (int k = 0; k < 6; k++) {
    o[k] = U[k];
  }
  cross3_add(o + 3, U, p);
}
LANE void soft_wrench_add(realw *W6, const struct sim_soft_contact *s, const realw *p,
                          const realw *f) {
  cross3_add(W6, p, f + 3);
  for (int k = 0; k < 3; k++) {
    W6[3 + k] += f[3 + k];
  }
  if (s->dim > 3) {
    for (int k = 0; k < 3; k++) {
      W6[k] += f[k];
    }
  }
}

LANE struct soft_coefs soft_slot_coefs(const struct sim_model *m, const struct sim_work *w,
                                       const realw *param, int slot) {
  return (struct soft_coefs){.D = w->soft_D[slot],
                             .mu = maxw(param[m->at.mu + w->slot_cand[slot]], splat(1e-5)),
                             .tx = w->soft_t[slot][0],
                             .ty = w->soft_t[slot][1]};
}

// w->qacc, w->V -> residuals w->soft_w of the contacts
LANE_STAGE void soft_residuals(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  soft_twists(m, w, w->qacc);
  for (int a = 0; a < w->nact; a++) {
    int link = m->clink[w->act[a]].link;
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      realw U[6];
      for (int k = 0; k < 6; k++) {
        U[k] = w->soft_U[link][k] + w->soft_B[slot] * w->V[link][k];
      }
      soft_at_point(w->soft_w[slot], U, w->soft_p[slot]);
      w->soft_w[slot][5] += w->soft_Kds[slot];
    }
  }
}

// Residuals -> forces, curvatures, gradient w->soft_g. Returns whether some curvature is another
// than before.
LANE_STAGE bool soft_evaluate(const struct sim_model *m, struct sim_work *w, const realw *param) {
  STAGE_LOCALS(m, w);
  maskw other = splat(0) != 0.;
  for (int d = 0; d < m->nv; d++) {
    w->soft_g[d] = w->soft_gs[d];
  }
  for (int i = 0; i < m->nsoft_dry; i++) {
    const struct sim_soft_dry *o = &m->soft_dry[i];
    int d = o->dof;
    realw H,
        f = soft_dry_force(&H, o->D, param[m->at.frictionloss + d], w->qacc[d] + o->B * w->v[d]);
    other |= H != w->dry_H[d];
    w->dry_H[d] = H;
    w->dry_f[d] = f;
    w->soft_g[d] -= f;
  }
  for (int n = 0; n < w->nlimit_on; n++) {
    int i = w->limit_on[n], d = m->soft_limit[i].dof;
    double sign = m->soft_limit[i].sign;
    realw j = sign * w->qacc[d] + w->limit_c[i], H = maskedw(j < 0., w->limit_D[i]);
    other |= H != w->limit_H[i];
    w->limit_H[i] = H;
    w->limit_f[i] = -sign * (H * j);
    w->soft_g[d] -= w->limit_f[i];
  }
  soft_wrenches_clear(m, w);
  for (int a = 0; a < w->nact; a++) {
    realw F[6];
    for (int k = 0; k < 6; k++) {
      F[k] = splat(0);
    }
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      const struct sim_soft_contact *s = &m->soft_contact[w->slot_cand[slot]];
      struct soft_coefs c = soft_slot_coefs(m, w, param, slot);
      realw f[6], C[21], r[6];
      for (int k = 0; k < 6; k++) {
        r[k] = w->soft_w[slot][k];
      }
#define CALL(kind)                                                                                 \
  soft_contact_force(kind, f, m, s, &c, r);                                                        \
  soft_contact_curvature(kind, C, m, s, &c, r)
      SOFT_BY_KIND(m, s, CALL)
#undef CALL
      for (int k = 0; k < 6; k++) {
        w->soft_f[slot][k] = f[k];
      }
      for (int k = 0; k < (s->dim > 3 ? 21 : 6); k++) {
        other |= C[k] != w->soft_C[slot][k];
        w->soft_C[slot][k] = C[k];
      }
      soft_wrench_add(F, s, w->soft_p[slot], f);
    }
    for (int k = 0; k < 6; k++) {
      w->soft_W[m->clink[w->act[a]].link][k] = F[k];
    }
  }
  soft_wrenches_sub(m, w, w->soft_g);
  return anyw(other);
}

// ---- Hessian

// K += X' C X with X = (1 0; -[p]x 1): curvature at p as felt about O; blocks as in C
LANE void soft_curvature_add(realw *K, const int n, const realw *p, const realw *C) {
  const realw *L = C + C_LIN;
  realw P[9];
  for (int c = 0; c < 3; c++) { // [p]x L
    realw x[3] = {c == 0   ? L[0]
                  : c == 1 ? L[3]
                           : L[4],
                  c == 0   ? L[3]
                  : c == 1 ? L[1]
                           : L[5],
                  c == 0   ? L[4]
                  : c == 1 ? L[5]
                           : L[2]};
    P[c] = p[1] * x[2] - p[2] * x[1];
    P[3 + c] = p[2] * x[0] - p[0] * x[2];
    P[6 + c] = p[0] * x[1] - p[1] * x[0];
  }
  realw *G = K + C_ANG;
  for (int k = 0; k < 6; k++) {
    K[C_LIN + k] += L[k];
  }
  for (int k = 0; k < 9; k++) {
    K[C_MIX + k] += P[k];
  }
  G[0] += p[1] * P[2] - p[2] * P[1];
  G[1] += p[2] * P[3] - p[0] * P[5];
  G[2] += p[0] * P[7] - p[1] * P[6];
  G[3] += p[2] * P[0] - p[0] * P[2];
  G[4] += p[0] * P[1] - p[1] * P[0];
  G[5] += p[0] * P[4] - p[1] * P[3];
  if (n > 2) { // spinning and rolling: C's other blocks, Y = -C_mix [p]x and its transpose
    const realw *X = C + C_MIX;
    realw Y[9];
    for (int r = 0; r < 3; r++) {
      Y[3 * r] = X[3 * r + 2] * p[1] - X[3 * r + 1] * p[2];
      Y[3 * r + 1] = X[3 * r] * p[2] - X[3 * r + 2] * p[0];
      Y[3 * r + 2] = X[3 * r + 1] * p[0] - X[3 * r] * p[1];
    }
    for (int k = 0; k < 9; k++) {
      K[C_MIX + k] += X[k];
    }
    for (int k = 0; k < 6; k++) {
      G[k] += C[C_ANG + k];
    }
    G[0] += 2. * Y[0];
    G[1] += 2. * Y[4];
    G[2] += 2. * Y[8];
    G[3] += Y[1] + Y[3];
    G[4] += Y[2] + Y[6];
    G[5] += Y[5] + Y[7];
  }
}

LANE void soft_curvature_twist(realw *F, const realw *K, const realw *U) { // F = K U
  const realw *L = K + C_LIN, *P = K + C_MIX, *G = K + C_ANG;
  F[0] = G[0] * U[0] + G[3] * U[1] + G[4] * U[2] + dot3(P, U + 3);
  F[1] = G[3] * U[0] + G[1] * U[1] + G[5] * U[2] + dot3(P + 3, U + 3);
  F[2] = G[4] * U[0] + G[5] * U[1] + G[2] * U[2] + dot3(P + 6, U + 3);
  F[3] = P[0] * U[0] + P[3] * U[1] + P[6] * U[2] + L[0] * U[3] + L[3] * U[4] + L[4] * U[5];
  F[4] = P[1] * U[0] + P[4] * U[1] + P[7] * U[2] + L[3] * U[3] + L[1] * U[4] + L[5] * U[5];
  F[5] = P[2] * U[0] + P[5] * U[1] + P[8] * U[2] + L[4] * U[3] + L[5] * U[4] + L[2] * U[5];
}

// rows of the DoFs of link i on the path, K the curvature below it
LANE void soft_hessian_rows(const struct sim_model *m, const struct sim_work *w, int i,
                            const realw *K) {
  const struct sim_link *l = &m->link[i];
  const struct sim_tree *tree = &m->tree[l->tree];
  if (l->type == JOINT_FREE) {
    const realw *R = w->R[i], *L = K + C_LIN;
    int at = m->madr[l->dof];
    const realw *M = w->M + at;
    realw *H = w->soft_H + at;
    const realw linear[6] = {L[0], L[1], L[3], L[2], L[5], L[4]};
    for (int k = 0; k < 6; k++) {
      H[k] = M[k] + linear[k];
    }
    for (int k = 0; k < 3; k++) {
      realw a[6] = {R[k], R[3 + k], R[6 + k], splat(0), splat(0), splat(0)}, F[6];
      at = m->madr[l->dof + 3 + k];
      M = w->M + at;
      H = w->soft_H + at;
      soft_curvature_twist(F, K, a);
      for (int j = k; j >= 0; j--) {
        realw x[3] = {R[j], R[3 + j], R[6 + j]};
        H[k - j] = M[k - j] + dot3(x, F);
      }
      H[k + 1] = M[k + 1] + F[5];
      H[k + 2] = M[k + 2] + F[4];
      H[k + 3] = M[k + 3] + F[3];
    }
    return;
  }
  for (int j = 0; j < l->ndof; j++) {
    int d = l->dof + j, len = m->dep[d], tail = tree->free ? len - 6 : len;
    const int *anc = m->anc + m->madr[d];
    const realw *M = w->M + m->madr[d];
    realw *H = w->soft_H + m->madr[d], F[6];
    soft_curvature_twist(F, K, w->S[d]);
    for (int t = 0; t < tail; t++) {
      H[t] = M[t] + dot6(F, w->S[anc[t]]);
    }
    if (tree->free) {
      realw a[3];
      rot_tmul(a, w->R[tree->first_link], F);
      for (int k = 0; k < 3; k++) {
        H[tail + k] = M[tail + k] + a[2 - k];
        H[tail + 3 + k] = M[tail + 3 + k] + F[5 - k];
      }
    }
  }
}

// w->M, curvatures -> w->soft_H. Curvatures are summed leaf to root as composite rigid bodies are.
LANE_STAGE void soft_hessian(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int n = 0; n < w->npath; n++) {
    for (int k = 0; k < 21; k++) {
      w->soft_Kc[w->path[n]][k] = splat(0);
    }
  }
  for (int a = 0; a < w->nact; a++) {
    realw K[21];
    for (int k = 0; k < 21; k++) {
      K[k] = splat(0);
    }
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      if (m->soft_contact[w->slot_cand[slot]].dim > 3) {
        soft_curvature_add(K, 5, w->soft_p[slot], w->soft_C[slot]);
      } else {
        soft_curvature_add(K, 2, w->soft_p[slot], w->soft_C[slot]);
      }
    }
    for (int k = 0; k < 21; k++) {
      w->soft_Kc[m->clink[w->act[a]].link][k] = K[k];
    }
  }
  for (int i = m->nlink - 1, n = w->npath - 1; i >= 0; i--) {
    const struct sim_link *l = &m->link[i];
    if (n < 0 || w->path[n] != i) { // no contact below: the rows are those of M
      int from = m->madr[l->dof], last = l->dof + l->ndof - 1;
      for (int k = from; k < m->madr[last] + m->dep[last]; k++) {
        w->soft_H[k] = w->M[k];
      }
      continue;
    }
    n--;
    realw K[21];
    for (int k = 0; k < 21; k++) {
      K[k] = w->soft_Kc[i][k];
    }
    soft_hessian_rows(m, w, i, K);
    if (l->parent < m->nlink) {
      realw *Kp = w->soft_Kc[l->parent];
      for (int k = 0; k < 21; k++) {
        Kp[k] += K[k];
      }
    }
  }
  for (int i = 0; i < m->nsoft_dry; i++) {
    int d = m->soft_dry[i].dof;
    w->soft_H[m->madr[d]] += w->dry_H[d];
  }
  for (int n = 0; n < w->nlimit_on; n++) {
    int i = w->limit_on[n];
    w->soft_H[m->madr[m->soft_limit[i].dof]] += w->limit_H[i];
  }
}

// the work space with another matrix in the place of M, for factor_fwd and half_solve
static struct sim_work factored_view(const struct sim_work *w, realw *matrix, realw *D, realw *Di) {
  struct sim_work view = *w;
  view.M = matrix;
  view.D = D;
  view.Di = Di;
  return view;
}
LANE void factored_solve(const struct sim_model *m, const struct sim_work *view, realw *x) {
  half_solve(m, view, x);
  for (int d = 0; d < m->nv; d++) {
    x[d] = x[d] * view->Di[d];
  }
  half_solve_up(m, view, x);
}

// ---- a step

// gradient, factored Hessian -> direction w->soft_x, w->soft_Mx = M x, w->soft_dw = J x
LANE_STAGE void soft_direction(const struct sim_model *m, struct sim_work *w,
                               const struct sim_work *H) {
  STAGE_LOCALS(m, w);
  for (int d = 0; d < m->nv; d++) {
    w->soft_x[d] = -w->soft_g[d];
    w->soft_Mx[d] = -w->soft_g[d];
  }
  factored_solve(m, H, w->soft_x);
  // M x = -g - J' C J x: no product with M
  for (int i = 0; i < m->nsoft_dry; i++) {
    int d = m->soft_dry[i].dof;
    w->soft_Mx[d] -= w->dry_H[d] * w->soft_x[d];
  }
  for (int n = 0; n < w->nlimit_on; n++) {
    int i = w->limit_on[n], d = m->soft_limit[i].dof;
    w->soft_Mx[d] -= w->limit_H[i] * w->soft_x[d];
  }
  soft_twists(m, w, w->soft_x);
  soft_wrenches_clear(m, w);
  for (int a = 0; a < w->nact; a++) {
    int link = m->clink[w->act[a]].link;
    realw U[6], F[6];
    for (int k = 0; k < 6; k++) {
      U[k] = w->soft_U[link][k];
      F[k] = splat(0);
    }
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      const struct sim_soft_contact *s = &m->soft_contact[w->slot_cand[slot]];
      realw x[6], y[6];
      soft_at_point(x, U, w->soft_p[slot]);
      soft_curvature_mul(y, s->dim > 3 ? 5 : 2, w->soft_C[slot], x);
      for (int k = 0; k < 6; k++) {
        w->soft_dw[slot][k] = x[k];
      }
      soft_wrench_add(F, s, w->soft_p[slot], y);
    }
    for (int k = 0; k < 6; k++) {
      w->soft_W[link][k] = F[k];
    }
  }
  soft_wrenches_sub(m, w, w->soft_Mx);
}

LANE_STAGE void soft_advance(const struct sim_model *m, struct sim_work *w, realw t) {
  STAGE_LOCALS(m, w);
  for (int d = 0; d < m->nv; d++) {
    w->qacc[d] += t * w->soft_x[d];
    w->soft_gs[d] += t * w->soft_Mx[d];
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    for (int k = 0; k < 6; k++) {
      w->soft_w[slot][k] += t * w->soft_dw[slot][k];
    }
  }
}

// slope and curvature of the constraints' cost at t along the direction, from where we stand
LANE_STAGE void soft_slope(const struct sim_model *m, struct sim_work *w, const realw *param,
                           realw t, realw *slope, realw *curve) {
  STAGE_LOCALS(m, w);
  realw s1 = splat(0), s2 = splat(0);
  for (int i = 0; i < m->nsoft_dry; i++) {
    const struct sim_soft_dry *o = &m->soft_dry[i];
    int d = o->dof;
    realw x = w->soft_x[d], H;
    realw f = soft_dry_force(&H, o->D, param[m->at.frictionloss + d],
                             w->qacc[d] + t * x + o->B * w->v[d]);
    s1 -= f * x;
    s2 += H * x * x;
  }
  for (int n = 0; n < w->nlimit_on; n++) {
    int i = w->limit_on[n], d = m->soft_limit[i].dof;
    double sign = m->soft_limit[i].sign;
    realw x = sign * w->soft_x[d], j = sign * w->qacc[d] + t * x + w->limit_c[i];
    realw H = maskedw(j < 0., w->limit_D[i]);
    s1 += H * j * x;
    s2 += H * x * x;
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    const struct sim_soft_contact *s = &m->soft_contact[w->slot_cand[slot]];
    struct soft_coefs c = soft_slot_coefs(m, w, param, slot);
    realw f[6], C[21], x[6], y[6], r[6];
    for (int k = 0; k < 6; k++) {
      x[k] = w->soft_dw[slot][k];
      r[k] = w->soft_w[slot][k] + t * x[k];
    }
#define CALL(kind)                                                                                 \
  soft_contact_force(kind, f, m, s, &c, r);                                                        \
  soft_contact_curvature(kind, C, m, s, &c, r);                                                    \
  soft_curvature_mul(y, (kind).n, C, x)
    SOFT_BY_KIND(m, s, CALL)
#undef CALL
    s1 -= dot6(f, x);
    s2 += dot6(y, x);
  }
  *slope = s1;
  *curve = s2;
}

LANE realw soft_dot(const struct sim_model *m, const realw *x, const realw *y) {
  realw s = splat(0);
  for (int d = 0; d < m->nv; d++) {
    s += x[d] * y[d];
  }
  return s;
}

// A lane has converged when its gradient is rounding: this share of the largest force that was in
// play; or when that is near and no step makes it smaller.
#define SOFT_TOLERANCE 2e-14
#define SOFT_NEAR      1e-9
#define SOFT_SLOPE     .1 // a full step is good enough if the slope there is this share
enum { SOFT_STEPS = 100, SOFT_SEARCH = 50 };

// w->M, w->soft_gs = M a - smooth force at w->qacc -> converged w->qacc, gs, forces, curvatures.
LANE_STAGE void soft_newton(const struct sim_model *m, struct sim_work *w, const realw *param) {
  struct sim_work H = factored_view(w, w->soft_H, w->soft_HD, w->soft_HDi);
  soft_residuals(m, w);
  soft_evaluate(m, w, param);
  w->hessian_fits = false;
  maskw done = splat(0) != 0.;
  realw force = splat(0), before = splat(1e300);
  for (int step = 0; step < SOFT_STEPS; step++) {
    realw most = splat(0);
    for (int d = 0; d < m->nv; d++) {
      most = maxw(most, absw(w->soft_g[d]));
      force = maxw(force, absw(w->soft_gs[d]));
    }
    maskw stuck = (most < SOFT_NEAR * force) & (most > .5 * before);
    // a comparison with NaN is false: such a lane is done, too
    done |= ~(most > SOFT_TOLERANCE * force) | stuck;
    before = most;
    if (!anyw(~done)) {
      break;
    }
    soft_hessian(m, w);
    factor_fwd(m, &H);
    w->hessian_fits = true;
    soft_direction(m, w, &H);
    realw start = soft_dot(m, w->soft_x, w->soft_g);
    soft_advance(m, w, maskedw(~done, splat(1)));
    w->hessian_fits &= !soft_evaluate(m, w, param);
    // the full step is taken if it is nearly the minimum along the line
    realw f1 = soft_dot(m, w->soft_x, w->soft_g);
    maskw good = done | ~(absw(f1) > -SOFT_SLOPE * start);
    if (!anyw(~good)) {
      continue;
    }
    // else Newton on the slope between brackets, t = 1 being where we stand
    realw q1 = soft_dot(m, w->soft_x, w->soft_gs), q2 = soft_dot(m, w->soft_x, w->soft_Mx);
    realw t = splat(1), lo = splat(0), hi = splat(1e300), c1, c2;
    soft_slope(m, w, param, splat(0), &c1, &c2);
    for (int k = 0; k < SOFT_SEARCH; k++) {
      maskw falls = f1 < 0.;
      lo = selectw(falls, t, lo);
      hi = selectw(falls, hi, t);
      realw next = t - f1 / (q2 + c2), middle = selectw(hi < 1e30, .5 * (lo + hi), 2. * t);
      next = selectw((next > lo) & (next < hi), next, middle);
      t = selectw(good, t, next);
      soft_slope(m, w, param, t - 1., &c1, &c2);
      f1 = q1 + (t - 1.) * q2 + c1;
      good |= ~(absw(f1) > -SOFT_SLOPE * start);
      if (!anyw(~good)) {
        break;
      }
    }
    soft_advance(m, w, maskedw(~done, t - 1.));
    w->hessian_fits &= !soft_evaluate(m, w, param);
  }
}
