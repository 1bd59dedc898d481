// Eight lanes as two halves of four, for processors whose vectors hold four doubles or fewer: a
// lane vector then fills half as many registers, and the stages spill less (5 to 10 % faster on
// AVX2). The stages run four lanes wide; these wrappers deal the callers' arrays of eight out and
// back.

#define HALF_LANES 4

// n rows of half h: out of an array of eight lanes, and back
static void take_half(void *out, const double *x, int n, int h) {
  for (int i = 0; i < n; i++) {
    ((realw *)out)[i] = *(const realw *)(x + SIM_WIDTH * i + HALF_LANES * h);
  }
}
static void put_half(double *x, const void *in, int n, int h) {
  for (int i = 0; i < n; i++) {
    *(realw *)(x + SIM_WIDTH * i + HALF_LANES * h) = ((const realw *)in)[i];
  }
}

static void half_substeps_fwd(const struct sim_model *m, struct sim_work *w, double *qpos,
                              double *qvel, double *trail, double *load, const double *ctrl,
                              const double *param, int first, int end) {
  int state = m->nq + m->nv, steps = end - first;
  for (int h = 0; h < 2; h++) {
    struct sim_half *io = &w->half[h];
    take_half(io->q, qpos, m->nq, h);
    take_half(io->v, qvel, m->nv, h);
    take_half(io->ctrl, ctrl, m->nu, h);
    take_half(io->param, param, m->at.count, h);
    substeps_fwd(m, io->work, io->q, io->v, trail ? io->trail : NULL, load ? io->load : NULL,
                 io->ctrl, io->param, first, end);
    put_half(qpos, io->q, m->nq, h);
    put_half(qvel, io->v, m->nv, h);
    if (trail) {
      put_half(trail + first * state * SIM_WIDTH, io->trail + first * state * HALF_LANES,
               steps * state, h);
    }
    if (load) {
      int n = sim_nload(m);
      put_half(load + first * n * SIM_WIDTH, io->load + first * n * HALF_LANES, steps * n, h);
    }
  }
}

static void half_substeps_bwd(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                              double *dctrl, double *dparam, const double *trail,
                              const double *ctrl, const double *param, int first, int end) {
  int state = m->nq + m->nv;
  for (int h = 0; h < 2; h++) {
    struct sim_half *io = &w->half[h];
    take_half(io->dq, dq, m->nv, h);
    take_half(io->dv, dv, m->nv, h);
    take_half(io->dctrl, dctrl, m->nu, h);
    take_half(io->ctrl, ctrl, m->nu, h);
    take_half(io->param, param, m->at.count, h);
    take_half(io->trail + first * state * HALF_LANES, trail + first * state * SIM_WIDTH,
              (end - first) * state, h);
    if (dparam) {
      take_half(io->dparam, dparam, m->at.count, h);
    }
    substeps_bwd(m, io->work, io->dq, io->dv, io->dctrl, dparam ? io->dparam : NULL, io->trail,
                 io->ctrl, io->param, first, end);
    put_half(dq, io->dq, m->nv, h);
    put_half(dv, io->dv, m->nv, h);
    put_half(dctrl, io->dctrl, m->nu, h);
    if (dparam) {
      put_half(dparam, io->dparam, m->at.count, h);
    }
  }
}

static void half_step_fwd(const struct sim_model *m, struct sim_work *w, double *qpos, double *qvel,
                          double *trail, const double *ctrl, const double *param) {
  half_substeps_fwd(m, w, qpos, qvel, trail, NULL, ctrl, param, 0, m->opt.substeps);
}

static void half_step_bwd(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                          double *dctrl, double *dparam, const double *trail, const double *ctrl,
                          const double *param) {
  half_substeps_bwd(m, w, dq, dv, dctrl, dparam, trail, ctrl, param, 0, m->opt.substeps);
}

static void half_contacts(const struct sim_model *m, const struct sim_work *w, double *force,
                          double *height) {
  for (int h = 0; h < 2; h++) {
    const struct sim_half *io = &w->half[h];
    double *rows = io->rows;
    contacts(m, io->work, force ? rows : NULL, height ? rows + m->ncontact * HALF_LANES : NULL);
    if (force) {
      put_half(force, rows, m->ncontact, h);
    }
    if (height) {
      put_half(height, rows + m->ncontact * HALF_LANES, m->ncontact, h);
    }
  }
}

static void half_points_fwd(const struct sim_model *m, struct sim_work *w, double *x,
                            const double *qpos, const int *body, int n) {
  for (int h = 0; h < 2; h++) {
    struct sim_half *io = &w->half[h];
    take_half(io->q, qpos, m->nq, h);
    points_fwd(m, io->work, io->rows, io->q, body, n);
    put_half(x, io->rows, 3 * n, h);
  }
}

static void half_points_bwd(const struct sim_model *m, struct sim_work *w, double *dq,
                            const double *dx, const int *body, int n) {
  for (int h = 0; h < 2; h++) {
    struct sim_half *io = &w->half[h];
    take_half(io->dq, dq, m->nv, h);
    take_half(io->rows, dx, 3 * n, h);
    points_bwd(m, io->work, io->dq, io->rows, body, n);
    put_half(dq, io->dq, m->nv, h);
  }
}

static void half_probe(const struct sim_model *m, struct sim_work *w, struct sim_probe *out,
                       const double *qpos, const double *qvel, const double *ctrl,
                       const double *param) {
  for (int h = 0; h < 2; h++) {
    struct sim_half *io = &w->half[h];
    take_half(io->q, qpos, m->nq, h);
    take_half(io->v, qvel, m->nv, h);
    take_half(io->ctrl, ctrl, m->nu, h);
    take_half(io->param, param, m->at.count, h);
    struct sim_probe part = {0};
    double *free = io->rows;
    double *const whole[] = {out->mass,
                             out->bias,
                             out->tau,
                             out->qacc,
                             out->xpos,
                             out->xmat,
                             out->height,
                             out->qacc_constrained,
                             out->qfrc_constraint,
                             out->contact_force};
    double **const piece[] = {&part.mass,
                              &part.bias,
                              &part.tau,
                              &part.qacc,
                              &part.xpos,
                              &part.xmat,
                              &part.height,
                              &part.qacc_constrained,
                              &part.qfrc_constraint,
                              &part.contact_force};
    const int count[] = {m->nM,        m->nv,       m->nv, m->nv, 3 * m->nlink,
                         9 * m->nlink, m->ncontact, m->nv, m->nv, 3 * m->ncontact};
    enum { PIECES = sizeof count / sizeof count[0] };
    for (int i = 0; i < PIECES; i++) {
      *piece[i] = whole[i] ? free : NULL;
      free += count[i] * HALF_LANES;
    }
    part.kinks = out->kinks ? out->kinks + HALF_LANES * h : NULL;
    probe(m, io->work, &part, io->q, io->v, io->ctrl, io->param);
    for (int i = 0; i < PIECES; i++) {
      if (whole[i]) {
        put_half(whole[i], *piece[i], count[i], h);
      }
    }
  }
}
