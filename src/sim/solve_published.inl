// Stage: smoothed contact solve with the published step rule (Schwarke et al., arXiv 2404.02887),
// to reproduce published numbers; solve_split.inl converges better. On unscaled impulses P:
//   start      P_i = -G_ii^-1 c_i   (each contact alone, sticking)
//   residual_i = c_i + G_ii P_i + sum_{j != i} s_j G_ij P_j
//   P_i       <- cone(P_i - r_i residual_i),  r_i = 1 / (1 + sum_j det G_ij)
// and s_i P_i is applied. A slot counts in the sum where its s is not zero, lane by lane, so that
// no lane feels its neighbours. G is kept by 3 x 3 blocks of the active candidates.
//
// A visit remembers: P after it (3), residual (3), sliding direction e (2), cone scale (1).
enum { PP = 0, PR = 3, PE = 6, PSC = 8 };

LANE void point_velocity(realw *o, const realw *U, const realw *p) { // X U
  cross3(o, U, p);
  for (int k = 0; k < 3; k++) {
    o[k] += U[3 + k];
  }
}
LANE void point_wrench_add(realw *o, const realw *p, const realw *f) { // o += X' f
  cross3_add(o, p, f);
  for (int k = 0; k < 3; k++) {
    o[3 + k] += f[k];
  }
}
LANE realw det3(const realw *G) {
  return G[0] * (G[4] * G[8] - G[5] * G[7]) - G[1] * (G[3] * G[8] - G[5] * G[6]) +
         G[2] * (G[3] * G[7] - G[4] * G[6]);
}
LANE void cofactor3(realw *C, const realw *G) { // d det / dG
  C[0] = G[4] * G[8] - G[5] * G[7];
  C[1] = G[5] * G[6] - G[3] * G[8];
  C[2] = G[3] * G[7] - G[4] * G[6];
  C[3] = G[2] * G[7] - G[1] * G[8];
  C[4] = G[0] * G[8] - G[2] * G[6];
  C[5] = G[1] * G[6] - G[0] * G[7];
  C[6] = G[1] * G[5] - G[2] * G[4];
  C[7] = G[2] * G[3] - G[0] * G[5];
  C[8] = G[0] * G[4] - G[1] * G[3];
}
LANE void delassus_columns(realw (*T)[6], const realw *A, const realw *p) { // T_c = A X' e_c
  for (int c = 0; c < 3; c++) {
    realw x[3] = {splat(c == 0), splat(c == 1), splat(c == 2)}, u[3];
    cross3(u, p, x);
    for (int r = 0; r < 6; r++) {
      T[c][r] = A[6 * r] * u[0] + A[6 * r + 1] * u[1] + A[6 * r + 2] * u[2] + A[6 * r + 3 + c];
    }
  }
}

// -> w->Gp, w->cfree, w->rp, w->P0
LANE_STAGE void published_prepare_fwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  const int *cand = w->slot_cand, *act = w->slot_act;
  int n = w->nslot;
  for (int i = 0; i < n; i++) {
    int ci = cand[i];
    point_velocity(w->cfree[i], w->U0[act[i]], w->cp[ci]);
    for (int j = 0; j <= i; j++) {
      int cj = cand[j];
      realw *G = w->Gp[i * n + j], *Gt = w->Gp[j * n + i], T[3][6], g[3];
      bool apart = !m->common[w->act[act[i]] * m->nclink + w->act[act[j]]];
      for (int c = 0; c < 3; c++) {
        g[0] = g[1] = g[2] = splat(0);
        if (!apart) {
          if (c == 0) {
            delassus_columns(T, w->A6[act[i] * w->nact + act[j]], w->cp[cj]);
          }
          point_velocity(g, T[c], w->cp[ci]);
        }
        for (int r = 0; r < 3; r++) {
          G[3 * r + c] = g[r];
          Gt[3 * c + r] = g[r];
        }
      }
    }
  }
  for (int i = 0; i < n; i++) {
    realw sum = splat(1);
    for (int j = 0; j < n; j++) {
      sum += maskedw(w->s[cand[j]] > 0., det3(w->Gp[i * n + j]));
    }
    w->rp[i] = 1. / sum;
    const realw *G = w->Gp[i * n + i], *c = w->cfree[i];
    realw C[9], det = det3(G), inv = 1. / det;
    maskw regular = absw(det) > 1e-10;
    kink_note(w, regular);
    cofactor3(C, G);
    for (int r = 0; r < 3; r++) { // G^-1 = C' / det
      w->P0[i][r] = maskedw(regular, -inv * (C[r] * c[0] + C[3 + r] * c[1] + C[6 + r] * c[2]));
    }
  }
}

// -> w->Q, w->Wr, w->visit
LANE_STAGE void published_sweeps_fwd(const struct sim_model *m, struct sim_work *w,
                                     const realw *param) {
  STAGE_LOCALS(m, w);
  const int *cand = w->slot_cand, *act = w->slot_act;
  int n = w->nslot;
  const realw *mu = param + m->at.mu;
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < 3; k++) {
      w->Q[cand[i]][k] = w->P0[i][k]; // holds P during the sweeps
    }
  }
  for (int it = 0; it < m->opt.sweeps; it++) {
    for (int i = 0; i < n; i++) {
      int ci = cand[i];
      realw res[3] = {w->cfree[i][0], w->cfree[i][1], w->cfree[i][2]};
      realw *P = w->Q[ci], *h = w->visit[it * n + i];
      for (int j = 0; j < n; j++) {
        const realw *G = w->Gp[i * n + j], *Pj = w->Q[cand[j]];
        realw s = j == i ? splat(1) : w->s[cand[j]];
        for (int r = 0; r < 3; r++) {
          res[r] += s * (G[3 * r] * Pj[0] + G[3 * r + 1] * Pj[1] + G[3 * r + 2] * Pj[2]);
        }
      }
      realw r = w->rp[i], y0 = P[0] - r * res[0], y1 = P[1] - r * res[1], y2 = P[2] - r * res[2];
      maskw on = y2 > 0.;
      realw len = sqrtw(maxw(y0 * y0 + y1 * y1, splat(1e-280))), inv = 1. / len;
      realw sc = minw(mu[ci] * y2 * inv, splat(1));
      maskw sliding = (sc < 1.) & on;
      kink_note(w, on);
      kink_note(w, sliding);
      inv = maskedw(sliding, inv);
      P[0] = maskedw(on, y0 * sc);
      P[1] = maskedw(on, y1 * sc);
      P[2] = maskedw(on, y2);
      for (int k = 0; k < 3; k++) {
        h[PP + k] = P[k];
        h[PR + k] = res[k];
      }
      h[PE] = y0 * inv;
      h[PE + 1] = y1 * inv;
      h[PSC] = maskedw(on, sc);
    }
  }
  for (int a = 0; a < w->nact; a++) {
    for (int k = 0; k < 6; k++) {
      w->Wr[a][k] = splat(0);
    }
  }
  for (int i = 0; i < n; i++) {
    int ci = cand[i];
    for (int k = 0; k < 3; k++) {
      w->Q[ci][k] = w->s[ci] * w->Q[ci][k];
    }
    point_wrench_add(w->Wr[act[i]], w->cp[ci], w->Q[ci]);
  }
}

// w->d_W -> w->dGp, w->d_U, w->d_cp, w->d_s, w->d_mu (d_Q, d_K serve as cotangents of P and c)
LANE_STAGE void published_sweeps_bwd(const struct sim_model *m, struct sim_work *w,
                                     const realw *param) {
  STAGE_LOCALS(m, w);
  const int *cand = w->slot_cand, *act = w->slot_act;
  int n = w->nslot;
  int last = m->opt.sweeps - 1;
  const realw *mu = param + m->at.mu;
  for (int i = 0; i < n; i++) {
    int ci = cand[i];
    realw d_Q[3];
    const realw *P = w->visit[last * n + i] + PP, *d_W = w->d_W[act[i]];
    for (int j = 0; j < n; j++) {
      for (int k = 0; k < 9; k++) {
        w->dGp[i * n + j][k] = splat(0);
      }
    }
    point_velocity(d_Q, d_W, w->cp[ci]);
    cross3(w->d_cp[i], w->Q[ci], d_W);
    w->d_s[i] = dot3(P, d_Q);
    w->d_mu[i] = splat(0);
    w->rn[i] = splat(0); // cotangent of r_i
    for (int k = 0; k < 3; k++) {
      w->d_Q[i][k] = w->s[ci] * d_Q[k];
      w->d_K[i][k] = splat(0); // cotangent of c_i
    }
  }
  for (int it = last; it >= 0; it--) {
    for (int i = n - 1; i >= 0; i--) {
      int ci = cand[i];
      const realw *h = w->visit[it * n + i];
      realw *Pb = w->d_Q[i];
      realw e0 = h[PE], e1 = h[PE + 1], sc = h[PSC], pr = e0 * Pb[0] + e1 * Pb[1];
      maskw on = h[PP + 2] > 0.;
      realw y[3] = {sc * (Pb[0] - e0 * pr), sc * (Pb[1] - e1 * pr),
                    maskedw(on, Pb[2] + mu[ci] * pr)};
      w->d_mu[i] += h[PP + 2] * pr;
      w->rn[i] -= dot3(h + PR, y);
      realw rb[3];
      for (int k = 0; k < 3; k++) {
        Pb[k] = y[k];
        rb[k] = -w->rp[i] * y[k];
        w->d_K[i][k] += rb[k];
      }
      for (int j = 0; j < n; j++) {
        int cj = cand[j];
        // the neighbour's impulse when this visit read it
        const realw *P = j < i ? w->visit[it * n + j] + PP
                         : it  ? w->visit[(it - 1) * n + j] + PP
                               : w->P0[j];
        const realw *G = w->Gp[i * n + j];
        realw s = j == i ? splat(1) : w->s[cj], *Gb = w->dGp[i * n + j], GtR[3];
        for (int c = 0; c < 3; c++) {
          GtR[c] = G[c] * rb[0] + G[3 + c] * rb[1] + G[6 + c] * rb[2];
          w->d_Q[j][c] += s * GtR[c];
          for (int r = 0; r < 3; r++) {
            Gb[3 * r + c] += s * rb[r] * P[c];
          }
        }
        if (j != i) {
          w->d_s[j] += dot3(GtR, P);
        }
      }
    }
  }
}

// w->dGp, w->d_Q (of P0), w->d_K (of c), w->rn (of r) -> w->d_A6, w->d_U, w->d_cp
LANE_STAGE void published_prepare_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  const int *cand = w->slot_cand, *act = w->slot_act;
  int n = w->nslot;
  for (int a = 0; a < w->nact; a++) {
    for (int k = 0; k < 6; k++) {
      w->d_U[a][k] = splat(0);
    }
    for (int b = 0; b < w->nact; b++) {
      for (int k = 0; k < 36; k++) {
        w->d_A6[a * w->nact + b][k] = splat(0);
      }
    }
  }
  for (int i = 0; i < n; i++) {
    const realw *G = w->Gp[i * n + i], *Pb = w->d_Q[i];
    realw C[9], det = det3(G), inv = 1. / det, lam[3];
    maskw regular = absw(det) > 1e-10;
    cofactor3(C, G);
    for (int r = 0; r < 3; r++) { // G^-T P0bar
      lam[r] =
          maskedw(regular, inv * (C[3 * r] * Pb[0] + C[3 * r + 1] * Pb[1] + C[3 * r + 2] * Pb[2]));
      w->d_K[i][r] -= lam[r];
      for (int c = 0; c < 3; c++) {
        w->dGp[i * n + i][3 * r + c] -= lam[r] * w->P0[i][c];
      }
    }
    realw d_det = -w->rp[i] * w->rp[i] * w->rn[i];
    for (int j = 0; j < n; j++) {
      realw Cj[9];
      cofactor3(Cj, w->Gp[i * n + j]);
      for (int k = 0; k < 9; k++) {
        w->dGp[i * n + j][k] += maskedw(w->s[cand[j]] > 0., d_det * Cj[k]);
      }
    }
  }
  for (int i = 0; i < n; i++) {
    int ci = cand[i], a = act[i];
    cross3_add(w->d_cp[i], w->d_K[i], w->U0[a]);
    point_wrench_add(w->d_U[a], w->cp[ci], w->d_K[i]);
    for (int j = 0; j < n; j++) {
      int cj = cand[j], b = act[j];
      if (!m->common[w->act[a] * m->nclink + w->act[b]]) {
        continue;
      }
      // G_ij = X_i A_fg X_j'; columns T_c = A X_j' e_c, and by rows S_r = A' X_i' e_r
      const realw *Gb = w->dGp[i * n + j], *A = w->A6[a * w->nact + b];
      realw T[3][6], S[3][6], *B = w->d_A6[a * w->nact + b], left[3][6];
      delassus_columns(T, A, w->cp[cj]);
      delassus_columns(S, w->A6[b * w->nact + a], w->cp[ci]);
      for (int c = 0; c < 3; c++) {
        realw col[3] = {Gb[c], Gb[3 + c], Gb[6 + c]};
        cross3_add(w->d_cp[i], col, T[c]);
        cross3_add(w->d_cp[j], Gb + 3 * c, S[c]);
        for (int k = 0; k < 6; k++) {
          left[c][k] = splat(0);
        }
        point_wrench_add(left[c], w->cp[ci], col); // X_i' Gb e_c
      }
      for (int r = 0; r < 6; r++) { // A' += X_i' Gb X_j
        realw row[3] = {left[0][r], left[1][r], left[2][r]}, o[6];
        for (int k = 0; k < 6; k++) {
          o[k] = splat(0);
        }
        point_wrench_add(o, w->cp[cj], row);
        for (int k = 0; k < 6; k++) {
          B[6 * r + k] += o[k];
        }
      }
    }
  }
}
