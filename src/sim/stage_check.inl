// Stages one by one, for gradient checks: what sim/stage_check.h describes. Each function below
// runs a stage on inputs that the caller may have shifted and, in adjoint mode, seeds the
// cotangents of its outputs and hands back those of its inputs, by the very functions that the
// substep calls.
#include "sim/stage_check.h"

// ---- cursors over extras and outputs: contiguous pieces in a fixed order

static void block_add(struct sim_stage_block *block, int *nblock, int *total, const char *name,
                      int n) {
  if (*nblock && !strcmp(block[*nblock - 1].name, name)) {
    block[*nblock - 1].count += n;
  } else {
    block[(*nblock)++] = (struct sim_stage_block){name, *total, n};
  }
  *total += n;
}

// the next n extras are x: their values go out, the caller's shift is added
static void extra_shift(struct sim_stage_call *c, const char *name, realw *x, int n) {
  int at = c->nextra;
  block_add(c->extra_block, &c->nextra_block, &c->nextra, name, n);
  if (c->mode != SIM_STAGE_FORWARD) {
    return;
  }
  for (int i = 0; i < n; i++) {
    if (c->extra) {
      ((realw *)c->extra)[at + i] = x[i];
    }
    if (c->shift) {
      x[i] += ((const realw *)c->shift)[at + i];
    }
  }
}

// the next n cotangents of extras, in the same order
static void extra_grad(struct sim_stage_call *c, int *at, const realw *d_x, int n) {
  for (int i = 0; i < n; i++) {
    ((realw *)c->extra)[(*at)++] = d_x[i];
  }
}

static void out_value(struct sim_stage_call *c, const char *name, const realw *y, int n) {
  int at = c->nout;
  block_add(c->out_block, &c->nout_block, &c->nout, name, n);
  if (c->mode == SIM_STAGE_FORWARD) {
    for (int i = 0; i < n; i++) {
      ((realw *)c->out)[at + i] = y[i];
    }
  }
}

static void out_seed(struct sim_stage_call *c, int *at, realw *d_y, int n) {
  for (int i = 0; i < n; i++) {
    d_y[i] = ((const realw *)c->out)[(*at)++];
  }
}

// off-diagonal entries of L, which share the packed rows with the diagonal of M
static void factor_shift(struct sim_stage_call *c, const struct sim_model *m, struct sim_work *w) {
  for (int d = 0; d < m->nv; d++) {
    extra_shift(c, "L", w->M + m->madr[d] + 1, m->dep[d] - 1);
  }
}
static void factor_grad(struct sim_stage_call *c, int *at, const struct sim_model *m,
                        const struct sim_work *w) {
  for (int d = 0; d < m->nv; d++) {
    extra_grad(c, at, w->d_M + m->madr[d] + 1, m->dep[d] - 1);
  }
}

// Delassus blocks of the active links as one symmetric matrix: an extra per entry of its lower
// triangle, because the solves rely on the symmetry. Blocks of links that share no DoF are zero by
// structure and left out.
static int space_pair(const struct sim_model *m, const struct sim_work *w, int i, int j) {
  return m->common[w->act[i / 6] * m->nclink + w->act[j / 6]] != 0;
}
static realw *space_entry(realw (*A6)[36], const struct sim_work *w, int i, int j) {
  return &A6[i / 6 * w->nact + j / 6][6 * (i % 6) + j % 6];
}

// ---- cotangent arrays that the stages add to

static void stage_clear(const struct sim_model *m, struct sim_work *w) {
  realw zero = splat(0);
  for (int d = 0; d < m->nv; d++) {
    w->d_q[d] = w->d_v[d] = w->d_r[d] = w->d_e[d] = w->d_Di[d] = w->g[d] = w->z[d] = zero;
    for (int k = 0; k < 6; k++) {
      w->d_S[d][k] = zero;
    }
  }
  for (int i = 0; i < m->nM; i++) {
    w->d_M[i] = zero;
  }
  for (int i = 0; i <= m->nlink; i++) {
    for (int k = 0; k < 6; k++) {
      w->Fw[i][k] = w->d_V[i][k] = w->d_A[i][k] = zero;
    }
    for (int k = 0; k < 10; k++) {
      w->d_I[i][k] = zero;
    }
  }
}

static void stage_poses(const struct sim_stage_call *c, const struct sim_model *m,
                        struct sim_work *w) {
  for (int i = 0; i < m->nq; i++) {
    w->q[i] = ((const realw *)c->qpos)[i];
  }
  for (int d = 0; d < m->nv; d++) {
    w->v[d] = ((const realw *)c->qvel)[d];
  }
  kinematics_fwd(m, w);
}

// ---- the stages

static void stage_positions(struct sim_stage_call *c, const struct sim_model *m,
                            struct sim_work *w) {
  const realw *q = (const realw *)c->qpos, *v = (const realw *)c->qvel;
  c->reads = SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL;
  if (c->mode == SIM_STAGE_FORWARD) {
    positions_move(m, (realw *)c->qpos_out, q, SIM_STAGE_MOVE, v);
  } else if (c->mode == SIM_STAGE_ADJOINT) {
    positions_move_adj(m, w->d_q, w->d_v, (const realw *)c->d_qpos_out, SIM_STAGE_MOVE, v);
  }
}

static void stage_kinematics(struct sim_stage_call *c, const struct sim_model *m,
                             struct sim_work *w) {
  int n = m->robot->nbody;
  realw x[3];
  c->reads = SIM_STAGE_READS_QPOS;
  for (int i = 0; i < n; i++) {
    points_fwd(m, w, (double *)x, c->qpos, &i, 1);
    out_value(c, "xpos", x, 3);
  }
  if (c->mode == SIM_STAGE_ADJOINT) {
    for (int i = 0; i < n; i++) { // one body at a time: points_bwd starts from d_q = 0
      points_bwd(m, w, c->d_qpos, c->out + 3 * i * W, &i, 1);
    }
    for (int d = 0; d < m->nv; d++) {
      w->d_q[d] = ((realw *)c->d_qpos)[d];
    }
  }
}

// bias force and mass matrix share one reverse sweep; here one of them at a time is the output
static void stage_tree(struct sim_stage_call *c, const struct sim_model *m, struct sim_work *w) {
  const realw *param = (const realw *)c->param;
  bool bias = c->stage == SIM_STAGE_BIAS;
  c->reads = SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL | SIM_STAGE_READS_PARAM;
  stage_poses(c, m, w);
  inertia_fwd(m, w, param);
  bias_fwd(m, w, param);
  for (int d = 0; d < m->nv; d++) { // armature and diag belong to the actuators' reverse
    w->diag[d] = -param[m->at.armature + d];
  }
  mass_fwd(m, w, param);
  out_value(c, bias ? "bias" : "M", bias ? w->bias : w->M, bias ? m->nv : m->nM);
  if (c->mode == SIM_STAGE_ADJOINT) {
    int at = 0;
    out_seed(c, &at, bias ? w->z : w->d_M, bias ? m->nv : m->nM);
    mass_bwd(m, w);
    tree_down_bwd(m, w, (realw *)c->d_param, param);
    tree_up_bwd(m, w);
  }
}

static void stage_factor(struct sim_stage_call *c, const struct sim_model *m, struct sim_work *w) {
  mass_fwd(m, w, (const realw *)c->param);
  extra_shift(c, "M", w->M, m->nM);
  factor_fwd(m, w);
  for (int d = 0; d < m->nv; d++) {
    out_value(c, "L", w->M + m->madr[d] + 1, m->dep[d] - 1);
  }
  out_value(c, "1/D", w->Di, m->nv);
  if (c->mode == SIM_STAGE_ADJOINT) {
    int at = 0;
    for (int d = 0; d < m->nv; d++) {
      out_seed(c, &at, w->d_M + m->madr[d] + 1, m->dep[d] - 1);
    }
    out_seed(c, &at, w->d_Di, m->nv);
    factor_bwd(m, w);
    at = 0;
    extra_grad(c, &at, w->d_M, m->nM);
  }
}

// r = L^-T f, e = r + x, dv = L^-1 D^-1 e, in the order of substep_eval and substep_bwd
static void stage_half_solve(struct sim_stage_call *c, const struct sim_model *m,
                             struct sim_work *w) {
  realw *x = w->d_e;
  for (int d = 0; d < m->nv; d++) {
    w->r[d] = m->opt.dt * (w->tau[d] - w->bias[d]);
    x[d] = splat(.1 + .01 * d);
  }
  factor_shift(c, m, w);
  extra_shift(c, "1/D", w->Di, m->nv);
  extra_shift(c, "f", w->r, m->nv);
  extra_shift(c, "x", x, m->nv);
  half_solve(m, w, w->r);
  for (int d = 0; d < m->nv; d++) {
    w->e[d] = w->r[d] + x[d];
    w->dv[d] = w->e[d] * w->Di[d];
  }
  half_solve_up(m, w, w->dv);
  out_value(c, "r", w->r, m->nv);
  out_value(c, "dv", w->dv, m->nv);
  if (c->mode == SIM_STAGE_ADJOINT) {
    int at = 0;
    out_seed(c, &at, w->d_r, m->nv);
    out_seed(c, &at, w->g, m->nv);
    half_solve(m, w, w->g);
    for (int d = 0; d < m->nv; d++) {
      w->d_e[d] = w->Di[d] * w->g[d];
      w->d_r[d] += w->d_e[d];
      w->d_Di[d] = w->g[d] * w->e[d];
    }
    half_solve_bwd(m, w);
    at = 0;
    factor_grad(c, &at, m, w);
    extra_grad(c, &at, w->d_Di, m->nv);
    extra_grad(c, &at, w->d_r, m->nv);
    extra_grad(c, &at, w->d_e, m->nv);
  }
}

static void stage_actuator(struct sim_stage_call *c, const struct sim_model *m,
                           struct sim_work *w) {
  const realw *ctrl = (const realw *)c->ctrl, *param = (const realw *)c->param;
  c->reads =
      SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL | SIM_STAGE_READS_CTRL | SIM_STAGE_READS_PARAM;
  stage_poses(c, m, w);
  actuator_fwd(m, w, ctrl, param);
  for (int d = 0; d < m->nv; d++) {
    w->diag[d] += param[m->at.armature + d];
  }
  out_value(c, "tau", w->tau, m->nv);
  out_value(c, "diag", w->diag, m->nv);
  if (c->mode == SIM_STAGE_ADJOINT) {
    int at = 0;
    out_seed(c, &at, w->g, m->nv);
    for (int d = 0; d < m->nv; d++) {
      out_seed(c, &at, w->d_M + m->madr[d], 1);
    }
    actuator_bwd(m, w, (realw *)c->d_ctrl, (realw *)c->d_param, w->g, ctrl, param);
  }
}

static void stage_contact_points(struct sim_stage_call *c, const struct sim_model *m,
                                 struct sim_work *w) {
  const realw *param = (const realw *)c->param;
  c->reads = SIM_STAGE_READS_QPOS | SIM_STAGE_READS_PARAM;
  stage_poses(c, m, w);
  contact_points_fwd(m, w, param);
  for (int i = 0; i < m->ncontact; i++) { // a candidate that is not felt has no point
    realw p[3];
    for (int k = 0; k < 3; k++) {
      p[k] = maskedw(w->s[i] > 0., w->cp[i][k]);
    }
    out_value(c, "point", p, 3);
  }
  out_value(c, "s", w->s, m->ncontact);
  if (c->mode == SIM_STAGE_ADJOINT) {
    const realw *out = (const realw *)c->out;
    for (int slot = 0; slot < w->nslot; slot++) {
      int i = w->slot_cand[slot];
      for (int k = 0; k < 3; k++) {
        w->d_cp[slot][k] = maskedw(w->s[i] > 0., out[3 * i + k]);
      }
      w->d_s[slot] = out[3 * m->ncontact + i];
      w->d_mu[slot] = splat(0);
    }
    contact_points_bwd(m, w, (realw *)c->d_param, param);
    kinematics_bwd(m, w);
  }
}

// The extra "qpos" moves the poses, and through them S alone: V, L, 1/D and r are extras of their
// own. Includes e = r + sum Y' W under fixed impulses.
static void stage_contact_space(struct sim_stage_call *c, const struct sim_model *m,
                                struct sim_work *w) {
  int chain_max = SIM_CHAIN(m), at = 0;
  realw *turn = w->z; // zero
  extra_shift(c, "qpos", turn, m->nv);
  positions_move(m, w->q, w->q, 1., turn);
  kinematics_fwd(m, w);
  for (int a = 0; a < w->nact; a++) {
    extra_shift(c, "V", w->V[m->clink[w->act[a]].link], 6);
    for (int k = 0; k < 6; k++) { // fixed impulses, so that e moves by Y alone
      w->Wr[a][k] = splat(.3 + .1 * k - .05 * a);
    }
  }
  factor_shift(c, m, w);
  extra_shift(c, "1/D", w->Di, m->nv);
  extra_shift(c, "r", w->r, m->nv);
  for (int d = 0; d < m->nv; d++) {
    w->rD[d] = w->r[d] * w->Di[d];
    w->e[d] = w->r[d];
  }
  contact_space_fwd(m, w);
  for (int a = 0; a < w->nact; a++) {
    const struct sim_contact_link *cl = &m->clink[w->act[a]];
    for (int t = 0; t < cl->nchain; t++) {
      w->e[cl->chain[t]] += dot6(w->Y[a * chain_max + t], w->Wr[a]);
    }
  }
  for (int i = 0; i < 6 * w->nact; i++) {
    for (int j = 0; j <= i; j++) {
      if (space_pair(m, w, i, j)) {
        out_value(c, "A", space_entry(w->A6, w, i, j), 1);
      }
    }
  }
  for (int a = 0; a < w->nact; a++) {
    out_value(c, "U", w->U0[a], 6);
  }
  out_value(c, "e", w->e, m->nv);
  if (c->mode != SIM_STAGE_ADJOINT) {
    return;
  }
  for (int i = 0; i < 6 * w->nact; i++) {
    for (int j = 0; j < 6 * w->nact; j++) {
      *space_entry(w->d_A6, w, i, j) = splat(0);
    }
    for (int j = 0; j <= i; j++) {
      if (space_pair(m, w, i, j)) {
        out_seed(c, &at, space_entry(w->d_A6, w, i, j), 1);
      }
    }
  }
  for (int a = 0; a < w->nact; a++) {
    out_seed(c, &at, w->d_U[a], 6);
  }
  out_seed(c, &at, w->d_e, m->nv);
  for (int d = 0; d < m->nv; d++) {
    w->d_r[d] = w->d_e[d];
  }
  contact_space_bwd(m, w);
  contact_chain_bwd(m, w);
  // cotangents of S -> wrenches -> d_q, with no velocities and no bias in the sweep
  for (int d = 0; d < m->nv; d++) {
    w->z[d] = splat(0);
    w->v[d] = splat(0);
  }
  for (int i = 0; i <= m->nlink; i++) {
    for (int k = 0; k < 6; k++) {
      w->V[i][k] = splat(0);
    }
  }
  tree_up_bwd(m, w);
  at = 0;
  extra_grad(c, &at, w->d_q, m->nv);
  for (int a = 0; a < w->nact; a++) {
    extra_grad(c, &at, w->d_U[a], 6);
  }
  factor_grad(c, &at, m, w);
  extra_grad(c, &at, w->d_Di, m->nv);
  extra_grad(c, &at, w->d_r, m->nv);
}

static void stage_contact_solve(struct sim_stage_call *c, const struct sim_model *m,
                                struct sim_work *w) {
  const realw *param = (const realw *)c->param;
  bool split = m->opt.contact_step == SIM_SPLIT;
  int at = 0;
  c->reads = SIM_STAGE_READS_MU;
  for (int i = 0; i < 6 * w->nact; i++) {
    for (int j = 0; j <= i; j++) {
      if (space_pair(m, w, i, j)) {
        extra_shift(c, "A", space_entry(w->A6, w, i, j), 1);
        *space_entry(w->A6, w, j, i) = *space_entry(w->A6, w, i, j);
      }
    }
  }
  for (int a = 0; a < w->nact; a++) {
    extra_shift(c, "U", w->U0[a], 6);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_shift(c, "point", w->cp[w->slot_cand[slot]], 3);
    for (int k = 0; k < 3; k++) {
      w->Q[w->slot_cand[slot]][k] = splat(0);
    }
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_shift(c, "s", w->s + w->slot_cand[slot], 1);
  }
  if (split) {
    split_prepare_fwd(w);
    split_sweeps_fwd(m, w, param);
  } else {
    published_prepare_fwd(m, w);
    published_sweeps_fwd(m, w, param);
  }
  for (int a = 0; a < w->nact; a++) {
    out_value(c, "wrench", w->Wr[a], 6);
  }
  if (c->mode != SIM_STAGE_ADJOINT) {
    return;
  }
  for (int a = 0; a < w->nact; a++) {
    out_seed(c, &at, w->d_W[a], 6);
  }
  if (split) {
    split_sweeps_bwd(m, w, param);
    split_prepare_bwd(m, w);
  } else {
    published_sweeps_bwd(m, w, param);
    published_prepare_bwd(m, w);
  }
  at = 0;
  for (int i = 0; i < 6 * w->nact; i++) {
    for (int j = 0; j <= i; j++) {
      if (space_pair(m, w, i, j)) {
        realw x = *space_entry(w->d_A6, w, i, j);
        if (i != j) {
          x += *space_entry(w->d_A6, w, j, i);
        }
        extra_grad(c, &at, &x, 1);
      }
    }
  }
  for (int a = 0; a < w->nact; a++) {
    extra_grad(c, &at, w->d_U[a], 6);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_grad(c, &at, w->d_cp[slot], 3);
    ((realw *)c->d_param)[m->at.mu + w->slot_cand[slot]] += w->d_mu[slot];
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_grad(c, &at, w->d_s + slot, 1);
  }
}

// ---- MuJoCo's soft constraints

static void stage_soft_law(struct sim_stage_call *c, const struct sim_model *m,
                           struct sim_work *w) {
  const realw *param = (const realw *)c->param;
  int at = 0;
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_shift(c, "residual", w->soft_w[slot], 6);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_shift(c, "D", w->soft_D + slot, 1);
  }
  soft_evaluate(m, w, param);
  soft_kinks(m, w, param);
  for (int slot = 0; slot < w->nslot; slot++) {
    out_value(c, "force", w->soft_f[slot] + 3, 3);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    out_value(c, "moment", w->soft_f[slot], 3);
  }
  if (c->mode != SIM_STAGE_ADJOINT) {
    return;
  }
  realw(*y)[6] = w->soft_dw, (*d_w)[6] = w->soft_dw, *d_D = w->soft_Kds;
  for (int slot = 0; slot < w->nslot; slot++) {
    out_seed(c, &at, y[slot] + 3, 3);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    out_seed(c, &at, y[slot], 3);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    const struct sim_soft_contact *s = &m->soft_contact[w->slot_cand[slot]];
    struct soft_coefs coefs = soft_slot_coefs(m, w, param, slot);
    struct soft_coefs_cot d_c;
    realw o[6];
#define CALL(kind)                                                                                 \
  soft_contact_force_bwd(kind, o, &d_c, m, s, &coefs, w->soft_C[slot], w->soft_f[slot],            \
                         w->soft_w[slot], y[slot])
    SOFT_BY_KIND(m, s, CALL)
#undef CALL
    for (int k = 0; k < 6; k++) {
      d_w[slot][k] = o[k];
    }
    d_D[slot] = d_c.log_D / coefs.D;
  }
  at = 0;
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_grad(c, &at, d_w[slot], 6);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    extra_grad(c, &at, d_D + slot, 1);
  }
}

// o = packed symmetric matrix times x
static void packed_mul(realw *o, const struct sim_model *m, const realw *M, const realw *x) {
  for (int d = 0; d < m->nv; d++) {
    const realw *row = M + m->madr[d];
    const int *anc = m->anc + m->madr[d];
    o[d] = row[0] * x[d];
    for (int t = 1; t < m->dep[d]; t++) {
      o[d] += row[t] * x[anc[t]];
      o[anc[t]] += row[t] * x[d];
    }
  }
}

static void stage_soft_residual(struct sim_stage_call *c, const struct sim_model *m,
                                struct sim_work *w) {
  const realw *param = (const realw *)c->param;
  int at = 0;
  c->reads = SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL | SIM_STAGE_READS_PARAM;
  for (int d = 0; d < m->nv; d++) { // any acceleration, the same at every state
    w->qacc[d] = splat((d % 2 ? -1 : 1) * (.3 + .1 * d));
  }
  extra_shift(c, "qacc", w->qacc, m->nv);
  packed_mul(w->soft_gs, m, w->M, w->qacc);
  for (int d = 0; d < m->nv; d++) {
    w->soft_gs[d] += w->bias[d];
  }
  soft_residuals(m, w);
  soft_evaluate(m, w, param);
  if (w->kinks) { // as the contact stage noted them
    for (int i = 0, slot = 0; i < m->ncontact; i++) {
      bool on = slot < w->nslot && w->slot_cand[slot] == i;
      kink_note(w, on ? w->soft_D[slot] > 0. : splat(0) != 0.);
      slot += on;
    }
  }
  soft_kinks(m, w, param);
  out_value(c, "residual", w->soft_g, m->nv);
  if (c->mode == SIM_STAGE_ADJOINT) {
    realw *y = w->soft_x, *d_a = w->soft_Mx;
    out_seed(c, &at, y, m->nv);
    soft_hessian(m, w);
    packed_mul(d_a, m, w->soft_H, y);
    for (int d = 0; d < m->nv; d++) {
      y[d] = -y[d];
    }
    soft_residual_bwd(m, w, (realw *)c->d_param, param, y);
    at = 0;
    extra_grad(c, &at, d_a, m->nv);
  }
}

static void stage_soft_acc(struct sim_stage_call *c, const struct sim_model *m,
                           struct sim_work *w) {
  const realw *param = (const realw *)c->param, *ctrl = (const realw *)c->ctrl;
  c->reads =
      SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL | SIM_STAGE_READS_CTRL | SIM_STAGE_READS_PARAM;
  soft_acceleration_fwd(m, w, (const realw *)c->qpos, (const realw *)c->qvel, ctrl, param);
  if (c->stage == SIM_STAGE_SOFT_WIDE) {
    soft_widen(m, w, param);
    soft_kinks(m, w, param);
  }
  out_value(c, "qacc", w->qacc, m->nv);
  if (c->mode == SIM_STAGE_ADJOINT) {
    int at = 0;
    out_seed(c, &at, w->d_qacc, m->nv);
    soft_acceleration_bwd(m, w, (realw *)c->d_ctrl, (realw *)c->d_param, ctrl, param);
  }
}

static void stage_step(struct sim_stage_call *c, const struct sim_model *m, struct sim_work *w) {
  size_t nq = sizeof(realw) * (size_t)m->nq, nv = sizeof(realw) * (size_t)m->nv;
  c->reads =
      SIM_STAGE_READS_QPOS | SIM_STAGE_READS_QVEL | SIM_STAGE_READS_CTRL | SIM_STAGE_READS_PARAM;
  block_add(c->out_block, &c->nout_block, &c->nout, "qvel", m->nv);
  if (c->mode == SIM_STAGE_FORWARD) {
    memcpy(c->qpos_out, c->qpos, nq);
    memcpy(c->out, c->qvel, nv);
    step_fwd(m, w, c->qpos_out, c->out, c->trail, c->ctrl, c->param);
  } else if (c->mode == SIM_STAGE_ADJOINT) {
    memcpy(c->d_qpos, c->d_qpos_out, nv);
    memcpy(c->d_qvel, c->out, nv);
    step_bwd(m, w, c->d_qpos, c->d_qvel, c->d_ctrl, c->d_param, c->trail, c->ctrl, c->param);
  }
}

static void stage_call(const struct sim_model *m, struct sim_work *w, struct sim_stage_call *c) {
  static void (*const run[SIM_NSTAGE])(struct sim_stage_call *, const struct sim_model *,
                                       struct sim_work *) = {
      [SIM_STAGE_POSITIONS] = stage_positions,
      [SIM_STAGE_KINEMATICS] = stage_kinematics,
      [SIM_STAGE_BIAS] = stage_tree,
      [SIM_STAGE_MASS] = stage_tree,
      [SIM_STAGE_FACTOR] = stage_factor,
      [SIM_STAGE_HALF_SOLVE] = stage_half_solve,
      [SIM_STAGE_ACTUATOR] = stage_actuator,
      [SIM_STAGE_CONTACT_POINTS] = stage_contact_points,
      [SIM_STAGE_CONTACT_SPACE] = stage_contact_space,
      [SIM_STAGE_CONTACT_SOLVE] = stage_contact_solve,
      [SIM_STAGE_SOFT_LAW] = stage_soft_law,
      [SIM_STAGE_SOFT_RESIDUAL] = stage_soft_residual,
      [SIM_STAGE_SOFT_ACC] = stage_soft_acc,
      [SIM_STAGE_SOFT_WIDE] = stage_soft_acc,
      [SIM_STAGE_STEP] = stage_step,
  };
  denormals_off();
  c->reads = c->nextra = c->nout = c->nextra_block = c->nout_block = 0;
  bool adjoint = c->mode == SIM_STAGE_ADJOINT, whole = c->stage == SIM_STAGE_STEP;
  if (!whole) { // intermediates that the stage does not compute itself
    const realw *q = (const realw *)c->qpos, *v = (const realw *)c->qvel;
    const realw *ctrl = (const realw *)c->ctrl, *param = (const realw *)c->param;
    if (m->opt.integrator == SIM_RK4) { // whose step ends at another state
      soft_acceleration_fwd(m, w, q, v, ctrl, param);
    } else {
      substep_eval(m, w, q, v, ctrl, param, 1);
    }
    if (m->opt.contact_model == SIM_MUJOCO && c->stage == SIM_STAGE_HALF_SOLVE) {
      factor_fwd(m, w); // this step factors other matrices
    }
    stage_clear(m, w);
  }
  if (adjoint) {
    memset(c->d_qpos, 0, sizeof(realw) * (size_t)m->nv);
    memset(c->d_qvel, 0, sizeof(realw) * (size_t)m->nv);
    memset(c->d_ctrl, 0, sizeof(realw) * (size_t)m->nu);
    memset(c->d_param, 0, sizeof(realw) * (size_t)m->at.count);
  }
  w->kinks = c->mode == SIM_STAGE_FORWARD ? c->kinks : NULL;
  for (int l = 0; w->kinks && l < W; l++) {
    w->kinks[l] = 0;
  }
  run[c->stage](c, m, w);
  w->kinks = NULL;
  if (adjoint && !whole) {
    memcpy(c->d_qpos, w->d_q, sizeof(realw) * (size_t)m->nv);
    memcpy(c->d_qvel, w->d_v, sizeof(realw) * (size_t)m->nv);
  }
}
