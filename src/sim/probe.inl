// What tests and `dsim gradcheck` look at: the quantities inside a substep.

static void put_rows(double *out, const void *rows, int n) {
  if (out) {
    memcpy(out, rows, sizeof(realw) * (size_t)n);
  }
}

static void probe(const struct sim_model *m, struct sim_work *w, struct sim_probe *out,
                  const double *qpos, const double *qvel, const double *ctrl, const double *param) {
  denormals_off();
  w->kinks = out->kinks;
  const realw *prm = (const realw *)param, *q = (const realw *)qpos, *v = (const realw *)qvel;
  // smooth quantities at (q, v) itself, whatever the integrator
  for (int i = 0; i < m->nq; i++) {
    w->q[i] = q[i];
  }
  for (int d = 0; d < m->nv; d++) {
    w->v[d] = v[d];
  }
  kinematics_fwd(m, w);
  inertia_fwd(m, w, prm);
  bias_fwd(m, w, prm);
  actuator_fwd(m, w, (const realw *)ctrl, prm);
  mass_fwd(m, w, prm);
  put_rows(out->mass, w->M, m->nM);
  put_rows(out->bias, w->bias, m->nv);
  put_rows(out->tau, w->tau, m->nv);
  put_rows(out->xpos, w->p, 3 * m->nlink);
  put_rows(out->xmat, w->R, 9 * m->nlink);
  if (out->qacc) {
    factor_fwd(m, w);
    realw *x = (realw *)out->qacc;
    for (int d = 0; d < m->nv; d++) {
      x[d] = w->tau[d] - w->bias[d];
    }
    half_solve(m, w, x);
    for (int d = 0; d < m->nv; d++) {
      x[d] = x[d] * w->Di[d];
    }
    half_solve_up(m, w, x);
  }
  if (m->opt.contact_model == SIM_MUJOCO) {
    uint64_t *kinks = w->kinks;
    w->kinks = NULL;
    soft_acceleration_fwd(m, w, q, v, (const realw *)ctrl, prm);
    w->kinks = kinks;
    put_rows(out->qacc_constrained, w->qacc, m->nv);
    put_rows(out->qfrc_constraint, w->soft_gs, m->nv);
    for (int i = 0; out->contact_force && i < 3 * m->ncontact; i++) {
      ((realw *)out->contact_force)[i] = w->Q[i / 3][i % 3] / m->opt.dt;
    }
  } else {
    contact_points_fwd(m, w, prm);
  }
  put_rows(out->height, w->height, m->ncontact);
  if (out->kinks) {
    for (int l = 0; l < W; l++) {
      out->kinks[l] = 0;
    }
    substep_eval(m, w, q, v, (const realw *)ctrl, prm, 1);
  }
  w->kinks = NULL;
}
