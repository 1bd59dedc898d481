// One substep and one control step, forward and adjoint from the stages.

// (q, v) -> everything up to w->v_new. The impulses act in half-solved space: v+ = v + L^-1 D^-1 e,
// e = L^-T dt (tau - c) + sum_f Y_f W_f; the free velocity is never formed. keep: what only the
// reverse (and gradcheck) reads is stored too.
static void substep_eval(const struct sim_model *m, struct sim_work *w, const realw *q,
                         const realw *v, const realw *ctrl, const realw *param, int keep) {
  if (m->opt.contact_model == SIM_MUJOCO) {
    (m->opt.integrator == SIM_RK4 ? soft_rk4_fwd : soft_euler_fwd)(m, w, q, v, ctrl, param);
    return;
  }
  int chain_max = SIM_CHAIN(m);
  positions_move(m, w->q, q, m->h_eval, v);
  for (int d = 0; d < m->nv; d++) {
    w->v[d] = v[d];
  }
  kinematics_fwd(m, w);
  inertia_fwd(m, w, param);
  bias_fwd(m, w, param);
  actuator_fwd(m, w, ctrl, param);
  mass_fwd(m, w, param);
  factor_fwd(m, w);
  for (int d = 0; d < m->nv; d++) {
    w->r[d] = m->opt.dt * (w->tau[d] - w->bias[d]);
  }
  half_solve(m, w, w->r);
  for (int d = 0; d < m->nv; d++) {
    w->rD[d] = w->r[d] * w->Di[d];
    w->e[d] = w->r[d];
  }
  contact_points_fwd(m, w, param);
  if (w->nact) {
    contact_space_fwd(m, w);
    if (m->opt.contact_step == SIM_SPLIT) {
      split_prepare_fwd(w);
      if (keep) {
        split_sweeps_fwd(m, w, param);
      } else {
        split_sweeps_once(m, w, param);
      }
    } else {
      published_prepare_fwd(m, w);
      published_sweeps_fwd(m, w, param);
    }
    for (int a = 0; a < w->nact; a++) {
      const struct sim_contact_link *cl = &m->clink[w->act[a]];
      for (int t = 0; t < cl->nchain; t++) {
        w->e[cl->chain[t]] += dot6(w->Y[a * chain_max + t], w->Wr[a]);
      }
    }
  }
  for (int d = 0; d < m->nv; d++) {
    w->dv[d] = w->e[d] * w->Di[d];
  }
  half_solve_up(m, w, w->dv);
  for (int d = 0; d < m->nv; d++) {
    w->v_new[d] = v[d] + w->dv[d];
  }
}

// q+ = q moved by h_old v + h_new v+ (RK4: by its mean velocity); v+ from substep_eval. In place.
static void substep_advance(const struct sim_model *m, struct sim_work *w, realw *q, realw *v) {
  bool rk4 = m->opt.integrator == SIM_RK4;
  realw *mean = rk4 ? w->rk_move : w->g;
  for (int d = 0; !rk4 && d < m->nv; d++) {
    mean[d] = m->h_old * v[d] + m->h_new * w->v_new[d];
  }
  positions_move(m, q, q, 1., mean);
  for (int d = 0; d < m->nv; d++) {
    v[d] = w->v_new[d];
  }
}

// After substep_eval of the same state: (d_q, d_v) after the substep -> before; d_ctrl, d_param +=.
static void substep_bwd(const struct sim_model *m, struct sim_work *w, realw *d_q, realw *d_v,
                        realw *d_ctrl, realw *d_param, const realw *ctrl, const realw *param) {
  if (m->opt.integrator == SIM_RK4) {
    soft_rk4_bwd(m, w, d_q, d_v, d_ctrl, d_param, ctrl, param);
    return;
  }
  int chain_max = SIM_CHAIN(m), nv = m->nv;
  realw *mean = w->z, *d_mean = w->d_r;
  for (int d = 0; d < nv; d++) {
    mean[d] = m->h_old * w->v[d] + m->h_new * w->v_new[d];
    d_mean[d] = splat(0);
  }
  positions_move_adj(m, d_q, d_mean, d_q, 1., mean);
  if (m->opt.contact_model == SIM_MUJOCO) {
    for (int d = 0; d < nv; d++) {
      w->g[d] = d_v[d] + m->h_new * d_mean[d]; // of v+; h_old = 0
    }
    soft_euler_bwd(m, w, d_ctrl, d_param, w->g, ctrl, param);
    for (int d = 0; d < nv; d++) {
      d_q[d] += w->d_q[d];
      d_v[d] = w->d_v[d];
    }
    return;
  }
  for (int d = 0; d < nv; d++) {
    realw x = d_v[d] + m->h_new * d_mean[d]; // of v+
    w->g[d] = x;
    w->d_v[d] = x + m->h_old * d_mean[d];
    w->d_q[d] = splat(0);
  }
  // v+ = v + L^-1 D^-1 e
  half_solve(m, w, w->g);
  for (int d = 0; d < nv; d++) {
    w->d_e[d] = w->d_r[d] = w->Di[d] * w->g[d];
    w->d_Di[d] = w->g[d] * w->e[d];
    for (int k = 0; k < 6; k++) {
      w->d_S[d][k] = splat(0);
    }
  }
  for (int i = 0; i <= m->nlink; i++) {
    for (int k = 0; k < 6; k++) {
      w->Fw[i][k] = splat(0);
    }
  }
  if (w->nact) {
    for (int a = 0; a < w->nact; a++) {
      const struct sim_contact_link *cl = &m->clink[w->act[a]];
      realw x[6];
      for (int k = 0; k < 6; k++) {
        x[k] = splat(0);
      }
      for (int t = 0; t < cl->nchain; t++) {
        for (int k = 0; k < 6; k++) {
          x[k] += w->Y[a * chain_max + t][k] * w->d_e[cl->chain[t]];
        }
      }
      for (int k = 0; k < 6; k++) {
        w->d_W[a][k] = x[k];
      }
    }
    if (m->opt.contact_step == SIM_SPLIT) {
      split_sweeps_bwd(m, w, param);
      split_prepare_bwd(m, w);
    } else {
      published_sweeps_bwd(m, w, param);
      published_prepare_bwd(m, w);
    }
    contact_space_bwd(m, w);
  }
  half_solve_bwd(m, w);
  contact_chain_bwd(m, w);
  factor_bwd(m, w);
  realw *d_tau = w->d_r;
  for (int d = 0; d < nv; d++) {
    d_tau[d] = m->opt.dt * w->d_r[d];
    w->z[d] = -d_tau[d];
  }
  actuator_bwd(m, w, d_ctrl, d_param, d_tau, ctrl, param);
  mass_bwd(m, w);
  tree_down_bwd(m, w, d_param, param);
  for (int a = 0; a < w->nact; a++) {
    for (int k = 0; k < 6; k++) {
      w->d_V[m->clink[w->act[a]].link][k] += w->d_U[a][k];
    }
  }
  contact_points_bwd(m, w, d_param, param);
  tree_up_bwd(m, w);
  // q as evaluated = q moved by h_eval v
  realw *d_q0 = w->z;
  positions_move_adj(m, d_q0, w->d_v, w->d_q, m->h_eval, w->v);
  for (int d = 0; d < nv; d++) {
    d_q[d] += d_q0[d];
    d_v[d] = w->d_v[d];
  }
}

// ---- what the kernel table exports
// ------------------------------------------------------------------

// same rounding mode and no denormals, in every build and thread: they cost tenfold and hide in
// padding
LANE void denormals_off(void) {
#if defined __x86_64__
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined __aarch64__
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | (1u << 24)));
#endif
}

// what each contact link and candidate carries, and where it is, in the substep just evaluated
static void contact_loads(const struct sim_model *m, const struct sim_work *w, realw *load) {
  for (int f = 0; f < m->nclink; f++) {
    load[f] = splat(0);
  }
  for (int slot = 0; slot < w->nslot; slot++) {
    load[w->act[w->slot_act[slot]]] += w->Q[w->slot_cand[slot]][2] / m->opt.dt;
  }
  for (int i = 0; i < m->ncontact; i++) {
    load[m->nclink + i] = w->Q[i][2] / m->opt.dt;
    load[m->nclink + m->ncontact + i] = w->height[i];
  }
}

static void substeps_fwd(const struct sim_model *m, struct sim_work *w, double *qpos, double *qvel,
                         double *trail, double *load, const double *ctrl, const double *param,
                         int first, int end) {
  realw *q = (realw *)qpos, *v = (realw *)qvel;
  denormals_off();
  for (int s = first; s < end; s++) {
    if (trail) {
      realw *save = (realw *)trail + s * (m->nq + m->nv);
      for (int i = 0; i < m->nq; i++) {
        *save++ = q[i];
      }
      for (int i = 0; i < m->nv; i++) {
        *save++ = v[i];
      }
    }
    substep_eval(m, w, q, v, (const realw *)ctrl, (const realw *)param, w->kinks != NULL);
    if (load) {
      contact_loads(m, w, (realw *)load + s * sim_nload(m));
    }
    substep_advance(m, w, q, v);
  }
}

static void substeps_bwd(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                         double *dctrl, double *dparam, const double *trail, const double *ctrl,
                         const double *param, int first, int end) {
  denormals_off();
  for (int s = end - 1; s >= first; s--) {
    const realw *q = (const realw *)trail + s * (m->nq + m->nv);
    substep_eval(m, w, q, q + m->nq, (const realw *)ctrl, (const realw *)param, 1);
    substep_bwd(m, w, (realw *)dq, (realw *)dv, (realw *)dctrl, (realw *)dparam,
                (const realw *)ctrl, (const realw *)param);
  }
}

static void step_fwd(const struct sim_model *m, struct sim_work *w, double *qpos, double *qvel,
                     double *trail, const double *ctrl, const double *param) {
  substeps_fwd(m, w, qpos, qvel, trail, NULL, ctrl, param, 0, m->opt.substeps);
}

static void step_bwd(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                     double *dctrl, double *dparam, const double *trail, const double *ctrl,
                     const double *param) {
  substeps_bwd(m, w, dq, dv, dctrl, dparam, trail, ctrl, param, 0, m->opt.substeps);
}

static void contacts(const struct sim_model *m, const struct sim_work *w, double *force,
                     double *height) {
  for (int i = 0; i < m->ncontact; i++) {
    if (force) {
      ((realw *)force)[i] = w->Q[i][2] / m->opt.dt;
    }
    if (height) {
      ((realw *)height)[i] = w->height[i];
    }
  }
}

static void points_fwd(const struct sim_model *m, struct sim_work *w, double *x, const double *qpos,
                       const int *body, int n) {
  denormals_off();
  for (int i = 0; i < m->nq; i++) {
    w->q[i] = ((const realw *)qpos)[i];
  }
  kinematics_fwd(m, w);
  for (int i = 0; i < n; i++) {
    const struct robot_body *b = &m->robot->body[body[i]];
    int slot = b->link < 0 ? m->nlink : b->link;
    frame_place((realw *)x + 3 * i, w->p[slot], w->R[slot], b->pos);
  }
}

static void points_bwd(const struct sim_model *m, struct sim_work *w, double *dq, const double *dx,
                       const int *body, int n) {
  denormals_off();
  for (int i = 0; i <= m->nlink; i++) {
    for (int k = 0; k < 6; k++) {
      w->Fw[i][k] = splat(0);
    }
  }
  for (int d = 0; d < m->nv; d++) {
    w->d_q[d] = splat(0);
  }
  for (int i = 0; i < n; i++) {
    const struct robot_body *b = &m->robot->body[body[i]];
    int slot = b->link < 0 ? m->nlink : b->link;
    const realw *d_x = (const realw *)dx + 3 * i;
    realw x[3], *F = w->Fw[slot];
    frame_place(x, w->p[slot], w->R[slot], b->pos);
    cross3_add(F, x, d_x);
    for (int k = 0; k < 3; k++) {
      F[3 + k] += d_x[k];
    }
  }
  kinematics_bwd(m, w);
  for (int d = 0; d < m->nv; d++) {
    ((realw *)dq)[d] += w->d_q[d];
  }
}
