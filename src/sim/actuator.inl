// Stage: generalised forces but contact and bias. Affine actuators with clamped control and force;
// joint springs explicit; damping, dry friction and joint limits linearly implicit: what they add
// to the diagonal of M (w->diag) makes them stable at any stiffness, and MuJoCo's Euler treats
// damping the same way.
//   dry friction   -f tanh(v / v_s)                      diag += dt f sech^2 / v_s
//   limit          k softplus(kappa r) / kappa - b sigmoid(kappa r) v, r = lo - q (mirrored: q -
//   hi)
//                  diag += dt (dt / 2) k sigmoid + dt b sigmoid
// Limits are felt at q + (dt / 2) v under both integrators: with half of dt^2 k on the diagonal the
// undamped spring then neither gains nor loses energy (moreau).

LANE void kink_note(struct sim_work *w, maskw taken) {
  if (w->kinks) {
    for (int l = 0; l < W; l++) {
      w->kinks[l] = w->kinks[l] * 6364136223846793005u + (taken[l] ? 3 : 1);
    }
  }
}

LANE realw tanh_by_exp(realw x) { // half the cost of a library tanh, good to 1e-16 absolute
  realw ex = expw(clampw(2. * x, splat(-40), splat(40)));
  return 1. - 2. / (1. + ex);
}
LANE realw softplus_parts(realw x, realw *sigmoid) { // log(1 + exp x) and its derivative
  // both from exp(-|x|), which cannot overflow
  realw ex = expw(-absw(x));
  realw inv = 1. / (1. + ex);
  *sigmoid = selectw(x > 0., inv, ex * inv);
  return maxw(x, splat(0)) + log1pw(ex);
}

// w->q (as evaluated), w->v, ctrl -> w->tau, w->diag, w->act_on (actuator's force not clamped)
LANE_STAGE void actuator_fwd(const struct sim_model *m, struct sim_work *w, const realw *ctrl,
                             const realw *param) {
  STAGE_LOCALS(m, w);
  double dt = m->opt.dt;
  const realw *damping = param + m->at.damping, *dry = param + m->at.frictionloss;
  for (int d = 0; d < m->nv; d++) {
    realw v = w->v[d], tau = -damping[d] * v, diag = dt * damping[d];
    if (m->spring_qadr[d] >= 0) {
      tau -= m->stiffness[d] * (w->q[m->spring_qadr[d]] - m->springref[d]);
    }
    if (m->opt.dry_speed > 0 && m->robot->dof[d].frictionloss > 0) {
      realw t = w->dry[d] = tanh_by_exp(v / m->opt.dry_speed);
      tau -= dry[d] * t;
      diag += dt / m->opt.dry_speed * dry[d] * (1. - t * t);
    }
    w->tau[d] = tau;
    w->diag[d] = diag;
  }
  double ahead = 0.5 * dt - m->h_eval;
  for (int i = 0; i < m->nlimit; i++) {
    const struct sim_limit *l = &m->limit[i];
    realw v = w->v[l->dof], q = w->q[l->qadr] + ahead * v;
    double kappa = m->opt.limit_kappa;
    realw x_lo = kappa * (l->lo - q), x_hi = kappa * (q - l->hi);
    // beyond 36 widths the force is below rounding; skipping is exact, lane by lane
    maskw near_lo = x_lo > -36., near_hi = x_hi > -36.;
    if (!anyw(near_lo | near_hi)) {
      continue;
    }
    realw s_lo, s_hi;
    realw pen_lo = maskedw(near_lo, softplus_parts(x_lo, &s_lo));
    realw pen_hi = maskedw(near_hi, softplus_parts(x_hi, &s_hi));
    s_lo = maskedw(near_lo, s_lo);
    s_hi = maskedw(near_hi, s_hi);
    realw s = s_lo + s_hi;
    w->tau[l->dof] += l->stiffness / kappa * (pen_lo - pen_hi) - l->damping * s * v;
    w->diag[l->dof] += (0.5 * dt * dt * l->stiffness + dt * l->damping) * s;
  }
  const realw *gain = param + m->at.gain, *bias = param + m->at.bias;
  for (int i = 0; i < m->nu; i++) {
    const struct robot_actuator *a = &m->robot->actuator[i];
    realw u = ctrl[i];
    if (a->ctrl_limited) {
      maskw lo = u<a->ctrl_range[0], hi = u> a->ctrl_range[1];
      kink_note(w, lo | hi);
      u = selectw(lo, splat(a->ctrl_range[0]), selectw(hi, splat(a->ctrl_range[1]), u));
    }
    realw f = gain[i] * u + bias[3 * i] + bias[3 * i + 1] * (a->gear * w->q[a->qadr]) +
              bias[3 * i + 2] * (a->gear * w->v[a->dof]);
    maskw on = f == f;
    if (a->force_limited) {
      maskw lo = f<a->force_range[0], hi = f> a->force_range[1];
      kink_note(w, lo | hi);
      on &= ~(lo | hi);
      f = selectw(lo, splat(a->force_range[0]), selectw(hi, splat(a->force_range[1]), f));
    }
    w->act_on[i] = (realw)on;
    w->tau[a->dof] += a->gear * f;
  }
}

// Cotangents d_tau (nv) of w->tau and d_M's diagonal (of w->diag) -> w->d_q, w->d_v, d_ctrl,
// d_param (may be NULL), all added to.
LANE_STAGE void actuator_bwd(const struct sim_model *m, struct sim_work *w, realw *d_ctrl,
                             realw *d_param, const realw *d_tau, const realw *ctrl,
                             const realw *param) {
  STAGE_LOCALS(m, w);
  double dt = m->opt.dt;
  const realw *damping = param + m->at.damping, *dry = param + m->at.frictionloss;
  for (int d = 0; d < m->nv; d++) {
    realw v = w->v[d], x = d_tau[d], y = w->d_M[m->madr[d]];
    w->d_v[d] -= damping[d] * x;
    if (m->spring_qadr[d] >= 0) {
      w->d_q[d] -= m->stiffness[d] * x;
    }
    realw t = splat(0), sech2 = splat(0);
    if (m->opt.dry_speed > 0 && m->robot->dof[d].frictionloss > 0) {
      double inv = 1 / m->opt.dry_speed;
      t = w->dry[d];
      sech2 = 1. - t * t;
      w->d_v[d] -= inv * dry[d] * sech2 * (x + 2. * dt * inv * t * y);
      if (d_param) {
        d_param[m->at.frictionloss + d] += dt * inv * sech2 * y - t * x;
      }
    }
    if (d_param) {
      d_param[m->at.armature + d] += y;
      d_param[m->at.damping + d] += dt * y - v * x;
    }
  }
  double ahead = 0.5 * dt - m->h_eval;
  for (int i = 0; i < m->nlimit; i++) {
    const struct sim_limit *l = &m->limit[i];
    realw v = w->v[l->dof], q = w->q[l->qadr] + ahead * v;
    double kappa = m->opt.limit_kappa;
    realw x_lo = kappa * (l->lo - q), x_hi = kappa * (q - l->hi);
    maskw near_lo = x_lo > -36., near_hi = x_hi > -36.;
    if (!anyw(near_lo | near_hi)) {
      continue;
    }
    realw s_lo, s_hi;
    softplus_parts(x_lo, &s_lo);
    softplus_parts(x_hi, &s_hi);
    s_lo = maskedw(near_lo, s_lo);
    s_hi = maskedw(near_hi, s_hi);
    realw x = d_tau[l->dof], y = w->d_M[m->madr[l->dof]];
    // of the two sigmoids; then dq moves x_lo by -kappa, x_hi by +kappa
    realw d_s = (0.5 * dt * dt * l->stiffness + dt * l->damping) * y - l->damping * v * x;
    realw ds_hi = s_hi * (1. - s_hi), ds_lo = s_lo * (1. - s_lo);
    realw d_q = kappa * (ds_hi - ds_lo) * d_s - l->stiffness * (s_lo + s_hi) * x;
    w->d_q[l->dof] += d_q;
    w->d_v[l->dof] += ahead * d_q - l->damping * (s_lo + s_hi) * x;
  }
  const realw *gain = param + m->at.gain, *bias = param + m->at.bias;
  for (int i = 0; i < m->nu; i++) {
    const struct robot_actuator *a = &m->robot->actuator[i];
    realw x = maskedw((maskw)w->act_on[i], a->gear * d_tau[a->dof]), u = ctrl[i], d_u = gain[i] * x;
    if (a->ctrl_limited) {
      maskw lo = u<a->ctrl_range[0], hi = u> a->ctrl_range[1];
      u = selectw(lo, splat(a->ctrl_range[0]), selectw(hi, splat(a->ctrl_range[1]), u));
      d_u = maskedw(~(lo | hi), d_u);
    }
    d_ctrl[i] += d_u;
    w->d_q[a->dof] += a->gear * bias[3 * i + 1] * x;
    w->d_v[a->dof] += a->gear * bias[3 * i + 2] * x;
    if (d_param) {
      d_param[m->at.gain + i] += u * x;
      d_param[m->at.bias + 3 * i] += x;
      d_param[m->at.bias + 3 * i + 1] += a->gear * w->q[a->qadr] * x;
      d_param[m->at.bias + 3 * i + 2] += a->gear * w->v[a->dof] * x;
    }
  }
}
