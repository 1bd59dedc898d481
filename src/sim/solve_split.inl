// Stage: smoothed contact solve, scale-free step.
// Gauss-Seidel over the active candidates in slot order, `sweeps` times, on the applied impulse Q =
// s P: a normal step with 1 / G_nn, then a tangent step with 1 / tr G_tt, then the cone. The
// reverse unrolls the sweeps: a gradient is the derivative of the function as computed.
//
// A visit's coefficients, once per point (k = 1 - s):
//   s, an = s r_n, at = s r_t, B0 B1 = k r_n G_nt, C00 C11 = 1 - k r_t G_tt, C01 = k r_t G_01, H =
//   r_t G_nt
enum { CS, CAN, CAT, CB0, CB1, CC00, CC11, CC01, CH0, CH1 };
// A visit remembers: Q after it (3), angular part of U before it (3), x = point velocity (3), e =
// tangent direction where sliding (2), cone scale (1)
enum { VQ = 0, VU = 3, VX = 6, VE = 9, VSC = 11 };

// -> w->K = A X' (columns: A (p x e_k; e_k)), w->G, w->rn, w->rt, w->coef
LANE_STAGE void split_prepare_fwd(struct sim_work *w) {
  STAGE_LOCAL(struct sim_work, w);
  for (int a = 0; a < w->nact; a++) {
    const realw *A = w->A6[a * w->nact + a];
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      int i = w->slot_cand[slot];
      const realw *p = w->cp[i];
      realw *K = w->K[slot], *G = w->G[slot], *c = w->coef[slot];
      for (int r = 0; r < 6; r++) {
        const realw *row = A + 6 * r;
        K[3 * r] = row[3] + row[1] * p[2] - row[2] * p[1];
        K[3 * r + 1] = row[4] + row[2] * p[0] - row[0] * p[2];
        K[3 * r + 2] = row[5] + row[0] * p[1] - row[1] * p[0];
      }
      // G = X K, entries 00 11 22 01 02 12
      G[0] = K[9] + K[3] * p[2] - K[6] * p[1];
      G[1] = K[13] + K[7] * p[0] - K[1] * p[2];
      G[2] = K[17] + K[2] * p[1] - K[5] * p[0];
      G[3] = K[10] + K[4] * p[2] - K[7] * p[1];
      G[4] = K[11] + K[5] * p[2] - K[8] * p[1];
      G[5] = K[14] + K[8] * p[0] - K[2] * p[2];
      realw s = w->s[i], k = 1. - s, rn = 1. / G[2], rt = 1. / (G[0] + G[1]);
      w->rn[slot] = rn;
      w->rt[slot] = rt;
      c[CS] = s;
      c[CAN] = s * rn;
      c[CAT] = s * rt;
      c[CB0] = k * rn * G[4];
      c[CB1] = k * rn * G[5];
      c[CC00] = 1. - k * rt * G[0];
      c[CC11] = 1. - k * rt * G[1];
      c[CC01] = k * rt * G[3];
      c[CH0] = rt * G[4];
      c[CH1] = rt * G[5];
    }
  }
}

// -> w->Q, w->Wr (wrench per link); for the reverse also w->visit and w->dW, if keep
LANE void split_sweeps(const struct sim_model *m, struct sim_work *w, const realw *param,
                       const int keep) {
  const realw *mu = param + m->at.mu;
  for (int a = 0; a < w->nact; a++) {
    for (int k = 0; k < 6; k++) {
      w->U[a][k] = w->U0[a][k];
      w->Wr[a][k] = splat(0);
    }
  }
  for (int it = 0; it < m->opt.sweeps; it++) {
    for (int a = 0; a < w->nact; a++) {
      int f = w->act[a];
      realw u[6], dW[6];
      for (int k = 0; k < 6; k++) {
        u[k] = w->U[a][k];
        dW[k] = splat(0);
      }
      for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
        int i = w->slot_cand[slot];
        const realw *p = w->cp[i], *K = w->K[slot], *c = w->coef[slot];
        realw *Q = w->Q[i], Q0 = Q[0], Q1 = Q[1], Q2 = Q[2], sq = c[CS] * Q2;
        realw bn = sq - (c[CB0] * Q0 + c[CB1] * Q1);
        realw b0 = (c[CC00] * Q0 - c[CC01] * Q1) + c[CH0] * sq;
        realw b1 = (c[CC11] * Q1 - c[CC01] * Q0) + c[CH1] * sq;
        realw x2 = u[5] + (u[0] * p[1] - u[1] * p[0]);
        realw x0 = u[3] + (u[1] * p[2] - u[2] * p[1]);
        realw x1 = u[4] + (u[2] * p[0] - u[0] * p[2]);
        realw n = maxw(bn - c[CAN] * x2, splat(0));
        realw t0 = (b0 - c[CAT] * x0) - c[CH0] * n, t1 = (b1 - c[CAT] * x1) - c[CH1] * n;
        // root and division only where some lane slides: they are half of a sticking visit's
        // latency
        realw lim = mu[i] * n, tt = t0 * t0 + t1 * t1, inv = splat(0), sc = splat(1);
        maskw sliding = tt > lim * lim;
        if (anyw(sliding)) {
          inv = maskedw(sliding, 1. / sqrtw(maxw(tt, splat(1e-280))));
          sc = selectw(sliding, lim * inv, sc);
        }
        realw N0 = t0 * sc, N1 = t1 * sc;
        realw d0 = N0 - Q0, d1 = N1 - Q1, d2 = n - Q2;
        if (keep) {
          kink_note(w, n > 0.);
          kink_note(w, sliding & (n > 0.));
          realw *h = w->visit[it * w->nslot + slot];
          h[VU] = u[0];
          h[VU + 1] = u[1];
          h[VU + 2] = u[2];
          h[VQ] = N0;
          h[VQ + 1] = N1;
          h[VQ + 2] = n;
          h[VX] = x0;
          h[VX + 1] = x1;
          h[VX + 2] = x2;
          h[VE] = t0 * inv;
          h[VE + 1] = t1 * inv;
          h[VSC] = sc;
        }
        for (int k = 0; k < 6; k++) {
          u[k] = (u[k] + K[3 * k + 2] * d2) + (K[3 * k] * d0 + K[3 * k + 1] * d1);
        }
        Q[0] = N0;
        Q[1] = N1;
        Q[2] = n;
        dW[0] += p[1] * d2 - p[2] * d1;
        dW[1] += p[2] * d0 - p[0] * d2;
        dW[2] += p[0] * d1 - p[1] * d0;
        dW[3] += d0;
        dW[4] += d1;
        dW[5] += d2;
      }
      for (int k = 0; k < 6; k++) {
        w->U[a][k] = u[k];
        w->Wr[a][k] += dW[k];
        if (keep) {
          w->dW[it * w->nact + a][k] = dW[k];
        }
      }
      for (int b = 0; b < w->nact; b++) {
        int g = w->act[b];
        if (b == a || !m->common[f * m->nclink + g]) {
          continue;
        }
        const realw *A = w->A6[b * w->nact + a];
        realw *U = w->U[b], next[6];
        for (int r = 0; r < 6; r++) {
          next[r] = U[r] + ((A[6 * r] * dW[0] + A[6 * r + 1] * dW[1] + A[6 * r + 2] * dW[2]) +
                            (A[6 * r + 3] * dW[3] + A[6 * r + 4] * dW[4] + A[6 * r + 5] * dW[5]));
        }
        for (int r = 0; r < 6; r++) {
          U[r] = next[r];
        }
      }
    }
  }
}
LANE_STAGE void split_sweeps_fwd(const struct sim_model *m, struct sim_work *w,
                                 const realw *param) {
  STAGE_LOCALS(m, w);
  split_sweeps(m, w, param, 1);
}

// the history is more than a first-level cache holds: a pass without reverse is faster without it
LANE_STAGE void split_sweeps_once(const struct sim_model *m, struct sim_work *w,
                                  const realw *param) {
  STAGE_LOCALS(m, w);
  split_sweeps(m, w, param, 0);
}

// ---- reverse: first the recurrence, then the accumulation per point in registers
// --------------------

// w->d_W (of the links' wrenches) -> w->d_U (of U0), off-diagonal w->d_A6, w->d_visit, w->d_dW,
// w->d_mu
LANE_STAGE void split_sweeps_bwd(const struct sim_model *m, struct sim_work *w,
                                 const realw *param) {
  STAGE_LOCALS(m, w);
  const realw *mu = param + m->at.mu;
  for (int a = 0; a < w->nact; a++) {
    for (int b = 0; b < w->nact; b++) {
      for (int k = 0; k < 36; k++) {
        w->d_A6[a * w->nact + b][k] = splat(0);
      }
    }
    for (int k = 0; k < 6; k++) {
      w->d_U[a][k] = splat(0);
    }
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      w->d_mu[slot] = splat(0);
      for (int k = 0; k < 3; k++) {
        w->d_Q[slot][k] = splat(0);
      }
    }
  }
  for (int it = m->opt.sweeps - 1; it >= 0; it--) {
    for (int a = w->nact - 1; a >= 0; a--) {
      int f = w->act[a];
      const realw *dW = w->dW[it * w->nact + a];
      realw d_dW[6], ub[6];
      for (int k = 0; k < 6; k++) {
        d_dW[k] = w->d_W[a][k];
        ub[k] = w->d_U[a][k];
      }
      for (int b = 0; b < w->nact; b++) {
        int g = w->act[b];
        if (b == a || !m->common[f * m->nclink + g]) {
          continue;
        }
        const realw *A = w->A6[a * w->nact + b], *Ug = w->d_U[b];
        realw *B = w->d_A6[b * w->nact + a];
        for (int r = 0; r < 6; r++) {
          d_dW[r] += (A[6 * r] * Ug[0] + A[6 * r + 1] * Ug[1] + A[6 * r + 2] * Ug[2]) +
                     (A[6 * r + 3] * Ug[3] + A[6 * r + 4] * Ug[4] + A[6 * r + 5] * Ug[5]);
          for (int c = 0; c < 6; c++) {
            B[6 * r + c] += Ug[r] * dW[c];
          }
        }
      }
      for (int k = 0; k < 6; k++) {
        w->d_dW[it * w->nact + a][k] = d_dW[k];
      }
      for (int slot = w->act_first[a + 1] - 1; slot >= w->act_first[a]; slot--) {
        int i = w->slot_cand[slot];
        const realw *p = w->cp[i], *K = w->K[slot], *c = w->coef[slot];
        const realw *h = w->visit[it * w->nslot + slot];
        realw *g = w->d_visit[it * w->nslot + slot], *Qb = w->d_Q[slot], tb[3];
        cross3(tb, d_dW, p); // X d_dW + K' ub
        for (int k = 0; k < 6; k++) {
          g[k] = ub[k];
        }
        for (int k = 0; k < 3; k++) {
          tb[k] += d_dW[3 + k];
          tb[k] += (K[k] * ub[0] + K[3 + k] * ub[1] + K[6 + k] * ub[2]) +
                   (K[9 + k] * ub[3] + K[12 + k] * ub[4] + K[15 + k] * ub[5]);
        }
        realw e0 = h[VE], e1 = h[VE + 1], sc = h[VSC];
        realw m0 = Qb[0] + tb[0], m1 = Qb[1] + tb[1], mn = Qb[2] + tb[2];
        realw pr = e0 * m0 + e1 * m1;
        realw T0 = sc * (m0 - e0 * pr), T1 = sc * (m1 - e1 * pr);
        realw HT = c[CH0] * T0 + c[CH1] * T1;
        realw N = maskedw(h[VQ + 2] > 0., (mn + mu[i] * pr) - HT);
        w->d_mu[slot] += h[VQ + 2] * pr;
        realw q0 = -c[CAT] * T0, q1 = -c[CAT] * T1, q2 = -c[CAN] * N;
        g[6] = T0;
        g[7] = T1;
        g[8] = N;
        ub[0] += p[1] * q2 - p[2] * q1;
        ub[1] += p[2] * q0 - p[0] * q2;
        ub[2] += p[0] * q1 - p[1] * q0;
        ub[3] += q0;
        ub[4] += q1;
        ub[5] += q2;
        Qb[0] = (c[CC00] * T0 - c[CC01] * T1) - (c[CB0] * N + tb[0]);
        Qb[1] = (c[CC11] * T1 - c[CC01] * T0) - (c[CB1] * N + tb[1]);
        Qb[2] = c[CS] * (N + HT) - tb[2];
      }
      for (int k = 0; k < 6; k++) {
        w->d_U[a][k] = ub[k];
      }
    }
  }
}

// w->d_visit, w->d_dW -> w->d_cp, w->d_s, own blocks of w->d_A6
LANE_STAGE void split_prepare_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  for (int a = 0; a < w->nact; a++) {
    const realw *A = w->A6[a * w->nact + a];
    realw *B = w->d_A6[a * w->nact + a];
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      int i = w->slot_cand[slot];
      const realw *p = w->cp[i], *K = w->K[slot], *c = w->coef[slot], *G = w->G[slot];
      realw Kb[18], pb[3], cb[10], Qo[3];
      for (int k = 0; k < 18; k++) {
        Kb[k] = splat(0);
      }
      for (int k = 0; k < 3; k++) {
        Qo[k] = pb[k] = splat(0);
      }
      for (int it = 0; it < m->opt.sweeps; it++) {
        const realw *h = w->visit[it * w->nslot + slot], *g = w->d_visit[it * w->nslot + slot];
        realw dQ[3];
        for (int k = 0; k < 3; k++) {
          dQ[k] = h[VQ + k] - Qo[k];
          Qo[k] = h[VQ + k];
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < 6; r++) {
          Kb[3 * r] += g[r] * dQ[0];
          Kb[3 * r + 1] += g[r] * dQ[1];
          Kb[3 * r + 2] += g[r] * dQ[2];
        }
      }
      for (int k = 0; k < 10; k++) {
        cb[k] = splat(0);
      }
      for (int k = 0; k < 3; k++) {
        Qo[k] = splat(0);
      }
      for (int it = 0; it < m->opt.sweeps; it++) {
        const realw *h = w->visit[it * w->nslot + slot], *g = w->d_visit[it * w->nslot + slot];
        const realw *d_dW = w->d_dW[it * w->nact + a];
        realw T0 = g[6], T1 = g[7], N = g[8], dQ[3];
        for (int k = 0; k < 3; k++) {
          dQ[k] = h[VQ + k] - Qo[k];
        }
        cb[CS] += Qo[2] * (N + c[CH0] * T0 + c[CH1] * T1);
        cb[CAN] -= N * h[VX + 2];
        cb[CAT] -= T0 * h[VX] + T1 * h[VX + 1];
        cb[CB0] -= N * Qo[0];
        cb[CB1] -= N * Qo[1];
        cb[CC00] += T0 * Qo[0];
        cb[CC11] += T1 * Qo[1];
        cb[CC01] -= T0 * Qo[1] + T1 * Qo[0];
        realw z = c[CS] * Qo[2] - h[VQ + 2];
        cb[CH0] += T0 * z;
        cb[CH1] += T1 * z;
        realw q[3] = {-c[CAT] * T0, -c[CAT] * T1, -c[CAN] * N};
        cross3_add(pb, q, h + VU);
        cross3_add(pb, dQ, d_dW);
        for (int k = 0; k < 3; k++) {
          Qo[k] = h[VQ + k];
        }
      }
      // coefficients -> s, G
      realw s = c[CS], k1 = 1. - s, rn = w->rn[slot], rt = w->rt[slot], Gb[6];
      realw gB = G[4] * cb[CB0] + G[5] * cb[CB1];
      realw gC = G[3] * cb[CC01] - G[0] * cb[CC00] - G[1] * cb[CC11];
      realw rnb = s * cb[CAN] + k1 * gB;
      realw rtb = s * cb[CAT] + k1 * gC + (G[4] * cb[CH0] + G[5] * cb[CH1]);
      w->d_s[slot] = cb[CS] + rn * (cb[CAN] - gB) + rt * (cb[CAT] - gC);
      realw y = rt * rt * rtb, cr = k1 * rt, cn = k1 * rn;
      Gb[0] = -cr * cb[CC00] - y;
      Gb[1] = -cr * cb[CC11] - y;
      Gb[2] = -rn * rn * rnb;
      Gb[3] = cr * cb[CC01];
      Gb[4] = cn * cb[CB0] + rt * cb[CH0];
      Gb[5] = cn * cb[CB1] + rt * cb[CH1];
      // G = X K: rows of G's lower triangle by column k
      realw zero = splat(0);
      realw gc[3][3] = {{Gb[0], zero, zero}, {Gb[3], Gb[1], zero}, {Gb[4], Gb[5], Gb[2]}};
      for (int k = 0; k < 3; k++) {
        realw kw[3] = {K[k], K[3 + k], K[6 + k]}, t[3];
        cross3_add(pb, gc[k], kw);
        cross3(t, p, gc[k]);
        for (int r = 0; r < 3; r++) {
          Kb[3 * r + k] += t[r];
          Kb[9 + 3 * r + k] += gc[k][r];
        }
      }
      // K = A X': column k = A (p x e_k; e_k)
      for (int r = 0; r < 6; r++) {
        realw q0 = Kb[3 * r], q1 = Kb[3 * r + 1], q2 = Kb[3 * r + 2], *b = B + 6 * r;
        b[3] += q0;
        b[4] += q1;
        b[5] += q2;
        b[0] += p[1] * q2 - p[2] * q1;
        b[1] += p[2] * q0 - p[0] * q2;
        b[2] += p[0] * q1 - p[1] * q0;
      }
      for (int k = 0; k < 3; k++) {
        realw yk[3]; // (A' Kb_k), angular part; its product with dp x e_k is dp . (e_k x y)
        for (int cc = 0; cc < 3; cc++) {
          yk[cc] = A[cc] * Kb[k];
          for (int r = 1; r < 6; r++) {
            yk[cc] += A[6 * r + cc] * Kb[3 * r + k];
          }
        }
        int n1 = (k + 1) % 3, n2 = (k + 2) % 3;
        pb[n1] -= yk[n2];
        pb[n2] += yk[n1];
      }
      for (int k = 0; k < 3; k++) {
        w->d_cp[slot][k] = pb[k];
      }
    }
  }
}
