// Stage: sparse factor M = L' D L along the tree, in packed rows (leaf -> root per DoF, as MuJoCo's
// qM), the half solves L^-T and L^-1, and their reverse. There is no
// fill-in outside a DoF's ancestors, and descendants of a DoF are a contiguous range, so every
// inner loop walks contiguous memory. Rows up to FACTOR_ROW stay in registers, unrolled by length.

#define FACTOR_ROW 16
// clang-format off
#define FACTOR_DISPATCH(n, CALL, GENERIC)                                                          \
  switch (n) {                                                                                     \
    CALL(1) CALL(2) CALL(3) CALL(4) CALL(5) CALL(6) CALL(7) CALL(8)                                \
    CALL(9) CALL(10) CALL(11) CALL(12) CALL(13) CALL(14) CALL(15) CALL(16)                         \
  default:                                                                                         \
    GENERIC;                                                                                       \
  }
// clang-format on

// row i of L, left-looking: gathers from all descendants
LANE void factor_row(const int len, const struct sim_model *m, struct sim_work *w, int i) {
  realw *row = w->M + m->madr[i], acc[FACTOR_ROW];
#pragma clang loop unroll(full)
  for (int u = 0; u < len; u++) {
    acc[u] = row[u];
  }
  for (int k = m->last[i]; k > i; k--) {
    const realw *l = w->M + m->madr[k] + m->dep[k] - len;
    realw a = l[0] * w->D[k];
#pragma clang loop unroll(full)
    for (int u = 0; u < len; u++) {
      acc[u] -= a * l[u];
    }
  }
  realw inv = 1. / acc[0];
  w->Di[i] = inv;
  w->D[i] = acc[0];
#pragma clang loop unroll(full)
  for (int u = 1; u < len; u++) {
    row[u] = acc[u] * inv;
  }
}

static void factor_row_long(const struct sim_model *m, struct sim_work *w, int i) {
  realw *row = w->M + m->madr[i];
  int len = m->dep[i];
  for (int k = m->last[i]; k > i; k--) {
    const realw *l = w->M + m->madr[k] + m->dep[k] - len;
    realw a = l[0] * w->D[k];
    for (int u = 0; u < len; u++) {
      row[u] -= a * l[u];
    }
  }
  realw inv = 1. / row[0];
  w->Di[i] = inv;
  w->D[i] = row[0];
  for (int u = 1; u < len; u++) {
    row[u] *= inv;
  }
}

// w->M -> unit rows of L in place, w->D, w->Di
LANE_STAGE void factor_fwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int i = m->nv - 1; i >= 0; i--) {
#define CALL(n)                                                                                    \
  case n:                                                                                          \
    factor_row(n, m, w, i);                                                                        \
    break;
    FACTOR_DISPATCH(m->dep[i], CALL, factor_row_long(m, w, i))
#undef CALL
  }
}

// x := L^-T x, leaf to root: x_i -= sum over descendants k of L_ki x_k
LANE void half_solve(const struct sim_model *m, const struct sim_work *w, realw *x) {
  const realw *L = w->M;
  for (int t = m->ntree - 1; t >= 0; t--) {
    const struct sim_tree *tree = &m->tree[t];
    int d0 = tree->first_dof, inner = tree->free ? d0 + 6 : d0;
    for (int i = tree->last_dof; i >= inner; i--) {
      realw a = x[i], b = splat(0); // two chains hide the latency of the subtraction
      int k = m->last[i], di = m->dep[i];
      for (; k > i + 1; k -= 2) {
        a -= L[m->madr[k] + m->dep[k] - di] * x[k];
        b -= L[m->madr[k - 1] + m->dep[k - 1] - di] * x[k - 1];
      }
      if (k > i) {
        a -= L[m->madr[k] + m->dep[k] - di] * x[k];
      }
      x[i] = a + b;
    }
    if (tree->free) { // everybody descends from the root's six
      realw a[6];
      for (int j = 0; j < 6; j++) {
        a[j] = x[d0 + j];
      }
      for (int k = tree->last_dof; k >= inner; k--) {
        const realw *l = L + m->madr[k] + m->dep[k] - 6;
        realw y = x[k];
        a[5] -= l[0] * y;
        a[4] -= l[1] * y;
        a[3] -= l[2] * y;
        a[2] -= l[3] * y;
        a[1] -= l[4] * y;
        a[0] -= l[5] * y;
      }
      for (int k = 5; k > 0; k--) {
        const realw *l = L + m->madr[d0 + k];
        for (int u = 1; u <= k; u++) {
          a[k - u] -= l[u] * a[k];
        }
      }
      for (int j = 0; j < 6; j++) {
        x[d0 + j] = a[j];
      }
    }
  }
}

// x := L^-1 x, root to leaf
LANE void half_solve_up(const struct sim_model *m, const struct sim_work *w, realw *x) {
  for (int k = 0; k < m->nv; k++) {
    const realw *l = w->M + m->madr[k];
    const int *anc = m->anc + m->madr[k];
    int len = m->dep[k];
    realw a = x[k];
    for (int t = 1; t < len; t++) {
      a -= l[t] * x[anc[t]];
    }
    x[k] = a;
  }
}

// Reverse of r = L^-T f with cotangent w->d_r (becomes the cotangent of f), and of dv = L^-1 D^-1 e
// whose cotangent gave w->g = L^-T w: off-diagonal cotangents of L into w->d_M.
LANE_STAGE void half_solve_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int k = 0; k < m->nv; k++) {
    const realw *l = w->M + m->madr[k];
    realw *d_L = w->d_M + m->madr[k];
    const int *anc = m->anc + m->madr[k];
    int len = m->dep[k];
    realw x = w->d_r[k], gk = w->g[k], rk = w->r[k];
    for (int t = 1; t < len; t++) {
      realw f = w->d_r[anc[t]];
      x -= l[t] * f;
      d_L[t] = -(gk * w->dv[anc[t]] + f * rk);
    }
    w->d_r[k] = x;
  }
}

LANE void factor_row_bwd(const int n, const struct sim_model *m, struct sim_work *w, int k) {
  realw *row = w->d_M + m->madr[k] + 1;
  const realw *lp = w->M + m->madr[k] + 1;
  const int *anc = m->anc + m->madr[k] + 1;
  realw Di = w->Di[k], acc[FACTOR_ROW], l[FACTOR_ROW], diag = splat(0);
#pragma clang loop unroll(full)
  for (int t = 0; t < n; t++) {
    l[t] = lp[t];
    acc[t] = splat(0);
  }
  // acc = Msym l, Msym the cotangent of M on the ancestors: off-diagonals once each way, diagonal
  // twice
#pragma clang loop unroll(full)
  for (int t = 0; t < n; t++) {
    const realw *r = w->d_M + m->madr[anc[t]];
    realw lt = l[t], s = 2. * r[0] * lt + acc[t];
#pragma clang loop unroll(full)
    for (int u = 1; u < n - t; u++) {
      realw x = r[u];
      s += x * l[t + u];
      acc[t + u] += x * lt;
    }
    acc[t] = s;
  }
#pragma clang loop unroll(full)
  for (int t = 0; t < n; t++) {
    realw x = row[t] * Di;
    diag += l[t] * (.5 * acc[t] - x);
    row[t] = x - acc[t];
  }
  w->d_M[m->madr[k]] = diag - Di * Di * w->d_Di[k];
}

// rows longer than registers: the same sums through memory, in w->e (no longer needed by then)
static void factor_row_bwd_long(const struct sim_model *m, struct sim_work *w, int k) {
  int n = m->dep[k] - 1;
  realw *row = w->d_M + m->madr[k] + 1, *acc = w->e;
  const realw *l = w->M + m->madr[k] + 1;
  const int *anc = m->anc + m->madr[k] + 1;
  realw Di = w->Di[k], diag = splat(0);
  for (int t = 0; t < n; t++) {
    acc[t] = splat(0);
  }
  for (int t = 0; t < n; t++) {
    const realw *r = w->d_M + m->madr[anc[t]];
    realw lt = l[t], s = 2. * r[0] * lt + acc[t];
    for (int u = 1; u < n - t; u++) {
      realw x = r[u];
      s += x * l[t + u];
      acc[t + u] += x * lt;
    }
    acc[t] = s;
  }
  for (int t = 0; t < n; t++) {
    realw x = row[t] * Di;
    diag += l[t] * (.5 * acc[t] - x);
    row[t] = x - acc[t];
  }
  w->d_M[m->madr[k]] = diag - Di * Di * w->d_Di[k];
}

// Cotangents of L (off-diagonals of w->d_M) and of 1/D (w->d_Di) -> of M, in place, root -> leaf
LANE_STAGE void factor_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int k = 0; k < m->nv; k++) {
#define CALL(n)                                                                                    \
  case n:                                                                                          \
    factor_row_bwd(n - 1, m, w, k);                                                                \
    break;
    FACTOR_DISPATCH(m->dep[k], CALL, factor_row_bwd_long(m, w, k))
#undef CALL
  }
}
