// Stage: contact geometry and the operational-space quantities of the links near the floor
// A link whose every candidate has s = 0 in every lane is skipped; so is a single
// candidate. That is exact: with s = 0 its impulse stays zero.
//
// Normal e_z; tangents e_x, e_y. Six columns per contact link stand for all its points:
//   Y = L^-T S on the link's chain, A_fg = Y_f' D^-1 Y_g, U_f = V_f + Y_f' D^-1 r (free velocity).

// s = T(z) / (1 + exp z), z = kappa c. T is 1 up to z = 6 and falls to 0 at 7.5, where the
// published s goes from 2.5e-3 to 5.5e-4, as a polynomial with three continuous derivatives: a
// contact 25 mm away (kappa 300) costs nothing, as a shin over a standing foot, and there is no
// kink.
#define CONTACT_NEAR 6.
#define CONTACT_FAR  7.5
LANE realw contact_smoothing(realw z, realw *slope) {
  const double width = CONTACT_FAR - CONTACT_NEAR;
  realw ex = expw(minw(z, splat(CONTACT_FAR))), sigmoid = 1. / (1. + ex);
  realw t = clampw((CONTACT_FAR - z) * (1 / width), splat(0), splat(1));
  realw t2 = t * t, rise = t * (1. - t);
  realw T = t2 * t2 * (35. - 84. * t + 70. * t2 - 20. * (t2 * t));
  *slope = sigmoid * (rise * rise * rise * (-140 / width) - (1. - sigmoid) * T);
  return sigmoid * T;
}

struct rim_parts { // of a cylinder's end: axis a, lowest direction d = (a a_z - e_z) / N
  realw a[3], d[3], N;
};
LANE void rim_direction(struct rim_parts *rim, const realw *R, const double *rot) {
  for (int r = 0; r < 3; r++) {
    rim->a[r] = R[3 * r] * rot[2] + R[3 * r + 1] * rot[5] + R[3 * r + 2] * rot[8];
  }
  // an upright cylinder has no single lowest point; the floor under the root keeps it finite
  rim->N = sqrtw(maxw(1. - rim->a[2] * rim->a[2], splat(1e-12)));
  for (int r = 0; r < 3; r++) {
    rim->d[r] = (rim->a[r] * rim->a[2] - (r == 2 ? 1. : 0.)) / rim->N;
  }
}

struct ellipsoid_parts { // world axes g_i, y_i = size_i^2 g_iz, D^2 = sum size_i^2 g_iz^2
  realw g[3][3], y[3], off[3], D;
};
LANE void ellipsoid_lowest(struct ellipsoid_parts *el, const realw *R, const double *rot,
                           const realw *size) {
  realw D2 = splat(0);
  for (int i = 0; i < 3; i++) {
    for (int r = 0; r < 3; r++) {
      el->g[i][r] = R[3 * r] * rot[i] + R[3 * r + 1] * rot[3 + i] + R[3 * r + 2] * rot[6 + i];
    }
    el->y[i] = size[i] * size[i] * el->g[i][2];
    D2 += el->y[i] * el->g[i][2];
  }
  el->D = sqrtw(D2);
  for (int r = 0; r < 3; r++) {
    el->off[r] =
        -(el->g[0][r] * el->y[0] + el->g[1][r] * el->y[1] + el->g[2][r] * el->y[2]) / el->D;
  }
}

// w->R, w->p -> w->x, w->cp, w->height, w->s, the lists of active links and candidates; w->Q = 0
LANE_STAGE void contact_points_fwd(const struct sim_model *m, struct sim_work *w,
                                   const realw *param) {
  realw kappa = param[m->at.kappa];
  w->nact = w->nslot = 0;
  for (int f = 0; f < m->nclink; f++) {
    const struct sim_contact_link *cl = &m->clink[f];
    const realw *R = w->R[cl->link], *p = w->p[cl->link];
    int before = w->nslot;
    for (int i = cl->first; i < cl->first + cl->count; i++) {
      const struct sim_candidate *c = &m->candidate[i];
      const realw *point = param + m->at.point + 3 * i, *size = param + m->at.size + 3 * i;
      realw *x = w->x[i], *cp = w->cp[i];
      for (int r = 0; r < 3; r++) {
        x[r] = cp[r] =
            p[r] + R[3 * r] * point[0] + R[3 * r + 1] * point[1] + R[3 * r + 2] * point[2];
      }
      if (c->kind == CANDIDATE_POINT) {
        cp[2] -= size[0];
      } else if (c->kind == CANDIDATE_RIM) {
        struct rim_parts rim;
        rim_direction(&rim, R, c->rot);
        for (int r = 0; r < 3; r++) {
          cp[r] += size[0] * rim.d[r];
        }
      } else {
        struct ellipsoid_parts el;
        ellipsoid_lowest(&el, R, c->rot, size);
        for (int r = 0; r < 3; r++) {
          cp[r] += el.off[r];
        }
      }
      w->height[i] = cp[2] + (w->z_root[cl->tree] - m->floor);
      realw z = kappa * w->height[i];
      for (int k = 0; k < 3; k++) {
        w->Q[i][k] = splat(0);
      }
      if (m->opt.contact_step == SIM_PUBLISHED) { // whose step size looks at all with s > 0
        kink_note(w, z < CONTACT_FAR);
      }
      if (anyw(z < CONTACT_FAR)) {
        w->s[i] = contact_smoothing(z, &w->s_slope[i]);
        w->slot_act[w->nslot] = w->nact;
        w->slot_cand[w->nslot++] = i;
      } else {
        w->s[i] = w->s_slope[i] = splat(0);
      }
    }
    if (w->nslot > before) {
      w->act_first[w->nact] = before;
      w->act[w->nact++] = f;
      w->act_first[w->nact] = w->nslot;
    }
  }
}

// -> w->Y, w->A6, w->U0 of the active links
LANE_STAGE void contact_space_fwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  int chain_max = SIM_CHAIN(m);
  for (int a = 0; a < w->nact; a++) {
    int f = w->act[a];
    const struct sim_contact_link *cl = &m->clink[f];
    const int *ch = cl->chain;
    int n = cl->nchain;
    realw(*Y)[6] = w->Y + a * chain_max, U[6];
    for (int k = 0; k < 6; k++) {
      U[k] = w->V[cl->link][k];
    }
    for (int t = 0; t < n; t++) {
      realw y[6];
      for (int c = 0; c < 6; c++) {
        y[c] = w->S[ch[t]][c];
      }
      for (int u = 0; u < t; u++) {
        realw l = w->M[m->madr[ch[u]] + t - u];
        for (int c = 0; c < 6; c++) {
          y[c] -= l * Y[u][c];
        }
      }
      realw rD = w->rD[ch[t]];
      for (int c = 0; c < 6; c++) {
        Y[t][c] = y[c];
        U[c] += y[c] * rD;
      }
    }
    for (int k = 0; k < 6; k++) {
      w->U0[a][k] = U[k];
    }
    // own block: 21 sums in registers
    realw A[21];
    for (int k = 0; k < 21; k++) {
      A[k] = splat(0);
    }
    for (int t = 0; t < n; t++) {
      const realw *y = Y[t];
      realw Di = w->Di[ch[t]];
#pragma clang loop unroll(full)
      for (int r = 0; r < 6; r++) {
        realw x = y[r] * Di;
#pragma clang loop unroll(full)
        for (int c = 0; c <= r; c++) {
          A[r * (r + 1) / 2 + c] += x * y[c];
        }
      }
    }
    realw *O = w->A6[a * w->nact + a];
    for (int r = 0, k = 0; r < 6; r++) {
      for (int c = 0; c <= r; c++, k++) {
        O[6 * r + c] = O[6 * c + r] = A[k];
      }
    }
    // blocks with earlier links, over the common tail of both chains
    for (int b = 0; b < a; b++) {
      int g = w->act[b], common = m->common[f * m->nclink + g], ng = m->clink[g].nchain;
      realw *O1 = w->A6[a * w->nact + b], *O2 = w->A6[b * w->nact + a];
      for (int r = 0; common && r < 6; r++) {
        realw acc[6];
        for (int c = 0; c < 6; c++) {
          acc[c] = splat(0);
        }
        for (int t = 0; t < common; t++) {
          realw yd = Y[n - 1 - t][r] * w->Di[ch[n - 1 - t]];
          const realw *y2 = w->Y[b * chain_max + ng - 1 - t];
          for (int c = 0; c < 6; c++) {
            acc[c] += yd * y2[c];
          }
        }
        for (int c = 0; c < 6; c++) {
          O1[6 * r + c] = O2[6 * c + r] = acc[c];
        }
      }
    }
  }
}

// ---- reverse
// --------------------------------------------------------------------------------------

// w->d_A6, w->d_U (of U0), w->Wr, w->d_e -> w->d_Y; adds to w->d_r, w->d_Di
LANE_STAGE void contact_space_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  int chain_max = SIM_CHAIN(m);
  for (int a = 0; a < w->nact; a++) {
    int f = w->act[a];
    const struct sim_contact_link *cl = &m->clink[f];
    const int *ch = cl->chain;
    realw As[36];
    const realw *B = w->d_A6[a * w->nact + a];
    for (int r = 0; r < 6; r++) {
      for (int c = 0; c < 6; c++) {
        As[6 * r + c] = B[6 * r + c] + B[6 * c + r];
      }
    }
    for (int t = 0; t < cl->nchain; t++) {
      const realw *y = w->Y[a * chain_max + t];
      int k = ch[t];
      realw Di = w->Di[k], o[6], q = splat(0), yu = dot6(y, w->d_U[a]);
      for (int r = 0; r < 6; r++) {
        o[r] = As[6 * r] * y[0];
        for (int c = 1; c < 6; c++) {
          o[r] += As[6 * r + c] * y[c];
        }
        q += .5 * o[r] * y[r];
      }
      w->d_r[k] += Di * yu;
      w->d_Di[k] += q + yu * w->r[k];
      realw *d_Y = w->d_Y[a * chain_max + t];
      for (int r = 0; r < 6; r++) {
        d_Y[r] = Di * o[r] + w->d_U[a][r] * w->rD[k] + w->d_e[k] * w->Wr[a][r];
      }
    }
  }
  for (int a = 0; a < w->nact; a++) {
    int f = w->act[a], n = m->clink[f].nchain;
    for (int b = 0; b < a; b++) {
      int g = w->act[b], ng = m->clink[g].nchain, common = m->common[f * m->nclink + g];
      if (!common) {
        continue;
      }
      realw As[36];
      const realw *B1 = w->d_A6[a * w->nact + b], *B2 = w->d_A6[b * w->nact + a];
      for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
          As[6 * r + c] = B1[6 * r + c] + B2[6 * c + r];
        }
      }
      for (int t = 0; t < common; t++) {
        int i1 = a * chain_max + n - 1 - t, i2 = b * chain_max + ng - 1 - t;
        const realw *y1 = w->Y[i1], *y2 = w->Y[i2];
        realw *b1 = w->d_Y[i1], *b2 = w->d_Y[i2];
        int k = m->clink[f].chain[n - 1 - t];
        realw Di = w->Di[k], q = splat(0), o2[6];
        for (int c = 0; c < 6; c++) {
          o2[c] = splat(0);
        }
        for (int r = 0; r < 6; r++) {
          realw o = splat(0);
          for (int c = 0; c < 6; c++) {
            o += As[6 * r + c] * y2[c];
            o2[c] += As[6 * r + c] * y1[r];
          }
          b1[r] += Di * o;
          q += o * y1[r];
        }
        for (int c = 0; c < 6; c++) {
          b2[c] += Di * o2[c];
        }
        w->d_Di[k] += q;
      }
    }
  }
}

// Reverse half solve of Y, root -> leaf: w->d_Y -> w->d_S and the free roots' wrench; adds to
// w->d_M
LANE_STAGE void contact_chain_bwd(const struct sim_model *m, struct sim_work *w) {
  STAGE_LOCALS(m, w);
  int chain_max = SIM_CHAIN(m);
  for (int a = 0; a < w->nact; a++) {
    const struct sim_contact_link *cl = &m->clink[w->act[a]];
    const struct sim_tree *tree = &m->tree[cl->tree];
    const int *ch = cl->chain;
    int n = cl->nchain;
    for (int t = n - 1; t >= 0; t--) {
      int d = ch[t];
      const realw *l = w->M + m->madr[d], *y = w->Y[a * chain_max + t];
      realw *d_L = w->d_M + m->madr[d], yb[6];
      for (int c = 0; c < 6; c++) {
        yb[c] = w->d_Y[a * chain_max + t][c];
      }
      for (int u = 1; u < n - t; u++) {
        const realw *q = w->d_Y[a * chain_max + t + u];
        d_L[u] -= dot6(q, y);
        for (int c = 0; c < 6; c++) {
          yb[c] -= l[u] * q[c];
        }
      }
      for (int c = 0; c < 6; c++) {
        w->d_Y[a * chain_max + t][c] = yb[c];
      }
      int r = tree->free ? d - tree->first_dof : 6;
      if (r >= 6) {
        for (int c = 0; c < 6; c++) {
          w->d_S[d][c] += yb[c];
        }
      } else if (r >= 3) { // a free root's rotation; its translations are fixed in the world
        cross3_add(w->Fw[tree->first_link], w->S[d], yb);
      }
    }
  }
}

// Cotangents w->d_cp (of contact points), w->d_s -> link wrenches, w->d_q of free roots' z, d_param
LANE_STAGE void contact_points_bwd(const struct sim_model *m, struct sim_work *w, realw *d_param,
                                   const realw *param) {
  STAGE_LOCALS(m, w);
  realw kappa = param[m->at.kappa];
  for (int a = 0; a < w->nact; a++) {
    const struct sim_contact_link *cl = &m->clink[w->act[a]];
    const struct sim_tree *tree = &m->tree[cl->tree];
    const realw *R = w->R[cl->link];
    realw *F = w->Fw[cl->link];
    for (int slot = w->act_first[a]; slot < w->act_first[a + 1]; slot++) {
      int i = w->slot_cand[slot];
      const struct sim_candidate *c = &m->candidate[i];
      const realw *size = param + m->at.size + 3 * i, *x = w->x[i];
      realw d_z = w->s_slope[i] * w->d_s[slot], d_height = kappa * d_z;
      realw d_x[3] = {w->d_cp[slot][0], w->d_cp[slot][1], w->d_cp[slot][2] + d_height};
      realw d_size[3] = {splat(0), splat(0), splat(0)};
      if (tree->free) {
        w->d_q[tree->first_dof + 2] += d_height;
      }
      if (c->kind == CANDIDATE_POINT) {
        d_size[0] = -d_x[2];
      } else if (c->kind == CANDIDATE_RIM) {
        struct rim_parts rim;
        rim_direction(&rim, R, c->rot);
        realw inv = 1. / rim.N, d_a[3], along = dot3(d_x, rim.a);
        d_size[0] = dot3(d_x, rim.d);
        for (int r = 0; r < 3; r++) {
          d_a[r] = size[0] * inv * rim.a[2] * d_x[r];
        }
        realw through_N = maskedw(rim.N > 1.0000001e-6, d_size[0] * inv * rim.a[2]);
        d_a[2] += size[0] * inv * (along + through_N);
        cross3_add(F, rim.a, d_a);
      } else {
        struct ellipsoid_parts el;
        ellipsoid_lowest(&el, R, c->rot, size);
        realw inv = 1. / el.D, d_D = -dot3(d_x, el.off) * inv;
        for (int k = 0; k < 3; k++) {
          realw d_y = -dot3(d_x, el.g[k]) * inv, s2 = size[k] * size[k], d_g[3];
          for (int r = 0; r < 3; r++) {
            d_g[r] = -el.y[k] * inv * d_x[r];
          }
          d_g[2] += s2 * (d_y + d_D * inv * el.g[k][2]);
          d_size[k] = size[k] * el.g[k][2] * (2. * d_y + d_D * inv * el.g[k][2]);
          cross3_add(F, el.g[k], d_g);
        }
      }
      // wrench at the feature's centre
      cross3_add(F, x, d_x);
      for (int k = 0; k < 3; k++) {
        F[3 + k] += d_x[k];
      }
      if (d_param) {
        realw d_point[3];
        rot_tmul(d_point, R, d_x);
        for (int k = 0; k < 3; k++) {
          d_param[m->at.point + 3 * i + k] += d_point[k];
          d_param[m->at.size + 3 * i + k] += d_size[k];
        }
        d_param[m->at.mu + i] += w->d_mu[slot];
        d_param[m->at.kappa] += w->height[i] * d_z;
      }
    }
  }
}
