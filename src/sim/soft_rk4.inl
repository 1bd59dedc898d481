// MuJoCo's RK4 on the constrained acceleration: four states X_i = X_0 moved by c_i dt times the
// rates of X_{i-1}, each with its own contacts; damping is explicit, unlike in Euler's step.
// Controls are constant over the step.

static const double rk4_c[4] = {0, .5, .5, 1}, rk4_b[4] = {1. / 6, 1. / 3, 1. / 3, 1. / 6};

// state i from the step's start (w->rk_q0, w->rk_v) and the rates of state i - 1
static void soft_rk4_state(const struct sim_model *m, struct sim_work *w, int i) {
  int nv = m->nv;
  double h = rk4_c[i] * m->opt.dt;
  if (i == 0) {
    for (int k = 0; k < m->nq; k++) {
      w->rk_q[k] = w->rk_q0[k];
    }
    return;
  }
  positions_move(m, w->rk_q, w->rk_q0, h, w->rk_v + (i - 1) * nv);
  for (int d = 0; d < nv; d++) {
    w->rk_v[i * nv + d] = w->rk_v[d] + h * w->rk_a[(i - 1) * nv + d];
  }
}

// (q, v, ctrl) -> w->v_new and w->rk_move, by which the positions move
static void soft_rk4_fwd(const struct sim_model *m, struct sim_work *w, const realw *q,
                         const realw *v, const realw *ctrl, const realw *param) {
  int nv = m->nv;
  double dt = m->opt.dt;
  for (int k = 0; k < m->nq; k++) {
    w->rk_q0[k] = q[k];
  }
  for (int d = 0; d < nv; d++) {
    w->rk_v[d] = w->v_new[d] = v[d];
    w->rk_move[d] = splat(0);
  }
  for (int i = 0; i < 4; i++) {
    soft_rk4_state(m, w, i);
    soft_acceleration_fwd(m, w, w->rk_q, w->rk_v + i * nv, ctrl, param);
    for (int d = 0; d < nv; d++) {
      w->rk_a[i * nv + d] = w->qacc[d];
      w->v_new[d] += rk4_b[i] * dt * w->qacc[d];
      w->rk_move[d] += rk4_b[i] * dt * w->rk_v[i * nv + d];
    }
  }
}

// After soft_rk4_fwd: (d_q, d_v) after the step -> before; d_ctrl, d_param +=. The states are
// solved again, last to first; the last is still there.
static void soft_rk4_bwd(const struct sim_model *m, struct sim_work *w, realw *d_q, realw *d_v,
                         realw *d_ctrl, realw *d_param, const realw *ctrl, const realw *param) {
  int nv = m->nv;
  double dt = m->opt.dt;
  realw *d_move = w->g, *d_x = w->g;
  for (int d = 0; d < nv; d++) {
    d_move[d] = splat(0);
  }
  positions_move_adj(m, d_q, d_move, d_q, 1., w->rk_move);
  for (int i = 0; i < 4; i++) {
    for (int d = 0; d < nv; d++) {
      w->d_rk_v[i * nv + d] = rk4_b[i] * dt * d_move[d];
      w->d_rk_a[i * nv + d] = rk4_b[i] * dt * d_v[d];
    }
  }
  for (int i = 3; i >= 0; i--) {
    double h = rk4_c[i] * dt;
    if (i < 3) {
      soft_rk4_state(m, w, i);
      soft_acceleration_fwd(m, w, w->rk_q, w->rk_v + i * nv, ctrl, param);
    }
    if (m->opt.cfd.on) {
      soft_widen(m, w, param);
    }
    soft_adjoint_clear(m, w);
    for (int d = 0; d < nv; d++) {
      w->d_qacc[d] = w->d_rk_a[i * nv + d];
    }
    soft_acceleration_bwd(m, w, d_ctrl, d_param, ctrl, param);
    for (int d = 0; d < nv; d++) {
      realw x = w->d_v[d] + w->d_rk_v[i * nv + d];
      d_v[d] += x;
      if (i) {
        w->d_rk_a[(i - 1) * nv + d] += h * x;
      }
    }
    if (i) {
      positions_move_adj(m, d_x, w->d_rk_v + (i - 1) * nv, w->d_q, h, w->rk_v + (i - 1) * nv);
    }
    for (int d = 0; d < nv; d++) {
      d_q[d] += i ? d_x[d] : w->d_q[d];
    }
  }
}
