#include "cmd/bench_sim.h"

#include "base/log.h"
#include "robot/mjcf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// control steps (of 4 substeps) and mj_steps a repetition: both stand for about half a second, long
// enough to forget what the other side left in the caches
enum { STEPS = 32, MUJOCO_STEPS = 128 };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, compare);
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

// every lane starts in the key frame, its knees a little different
static void start(struct bench_sim *b) {
  const struct robot *r = &b->robot;
  int W = b->k->width;
  for (int l = 0; l < W; l++) {
    for (int i = 0; i < r->nq; i++) {
      b->qpos[i * W + l] = b->start[i] + (i >= 7 ? 1e-4 * l : 0);
    }
    for (int i = 0; i < r->nv; i++) {
      b->qvel[i * W + l] = 0;
    }
    for (int i = 0; i < r->nu; i++) {
      b->ctrl[i * W + l] = b->start[r->actuator[i].qadr];
    }
  }
}

int bench_sim_open(struct bench_sim *b, struct arena *a, const char *path, const char *key,
                   enum sim_contact_model contact, struct err *e) {
  *b = (struct bench_sim){.arena = a};
  if (robot_load(&b->robot, a, path, false, e)) {
    return e->code;
  }
  const struct robot *r = &b->robot;
  int frame = robot_find_key(r, key);
  if (frame < 0) {
    return err_set(e, EXIT_USAGE, "%s: bench needs a key frame '%s'", r->path, key);
  }
  b->start = r->key[frame].qpos;
  b->k = sim_kernels(e);
  struct sim_options opt = sim_options_default();
  opt.contact_model = contact;
  opt.integrator = contact == SIM_MUJOCO ? SIM_EULER : opt.integrator;
  b->model = b->k ? sim_model_new(a, r, &opt, e) : NULL;
  if (!b->model) {
    return e->code;
  }
  int W = b->k->width, state = r->nq + r->nv;
  b->work = sim_work_new(a, b->model, W);
  b->qpos = ARENA_NEW(a, double, r->nq *W);
  b->qvel = ARENA_NEW(a, double, r->nv *W);
  b->ctrl = ARENA_NEW(a, double, (r->nu + 1) * W);
  b->dq = ARENA_NEW(a, double, r->nv *W);
  b->dv = ARENA_NEW(a, double, r->nv *W);
  b->dctrl = ARENA_NEW(a, double, (r->nu + 1) * W);
  b->force = ARENA_NEW(a, double, (sim_ncontact(b->model) + 1) * W);
  b->trail = ARENA_NEW(a, double, STEPS *opt.substeps *state *W);
  b->param = ARENA_NEW(a, double, sim_nparam(b->model) * W);
  sim_param_default(b->model, b->param, W);

  b->mj = mjcf_load(a, r->path, e);
  if (!b->mj) {
    return e->code;
  }
  b->mj->opt.timestep = opt.dt;
  b->mj->opt.integrator = mjINT_EULER;
  b->data = mj_makeData(b->mj);
  int nx = 2 * b->mj->nv + b->mj->na;
  b->A = ARENA_NEW(a, double, nx *nx);
  b->B = ARENA_NEW(a, double, nx * b->mj->nu + 1);
  return 0;
}

void bench_sim_close(struct bench_sim *b) {
  mj_deleteData(b->data);
  mj_deleteModel(b->mj);
}

// ---- the four timings, microseconds per instance and substep
// ----------------------------------------

static double time_forward(struct bench_sim *b) {
  int state = b->robot.nq + b->robot.nv, W = b->k->width;
  int substeps = sim_model_options(b->model)->substeps;
  start(b);
  double begin = wall_seconds();
  for (int s = 0; s < STEPS; s++) {
    b->k->step_fwd(b->model, b->work, b->qpos, b->qvel, b->trail + s * substeps * state * W,
                   b->ctrl, b->param);
  }
  return 1e6 * (wall_seconds() - begin) / (STEPS * substeps * W);
}

// replay and adjoint, as backward runs them: the forward pass of the substep is in it
static double time_gradient(struct bench_sim *b) {
  int state = b->robot.nq + b->robot.nv, W = b->k->width;
  int substeps = sim_model_options(b->model)->substeps;
  for (int i = 0; i < b->robot.nv * W; i++) {
    b->dq[i] = b->dv[i] = 1e-3;
  }
  double begin = wall_seconds();
  for (int s = STEPS - 1; s >= 0; s--) {
    b->k->step_bwd(b->model, b->work, b->dq, b->dv, b->dctrl, NULL,
                   b->trail + s * substeps * state * W, b->ctrl, b->param);
  }
  return 1e6 * (wall_seconds() - begin) / (STEPS * substeps * W);
}

static void mujoco_start(struct bench_sim *b) {
  mj_resetData(b->mj, b->data);
  mju_copy(b->data->qpos, b->start, b->mj->nq);
  for (int i = 0; i < b->mj->nu; i++) {
    b->data->ctrl[i] = b->start[b->robot.actuator[i].qadr];
  }
}
static double time_mujoco_step(struct bench_sim *b) {
  mujoco_start(b);
  double begin = wall_seconds();
  for (int s = 0; s < MUJOCO_STEPS; s++) {
    mj_step(b->mj, b->data);
  }
  return 1e6 * (wall_seconds() - begin) / MUJOCO_STEPS;
}
// from a state that stands in contact; one-sided differences, the cheaper kind
static double time_mujoco_fd(struct bench_sim *b) {
  mujoco_start(b);
  for (int s = 0; s < 30; s++) {
    mj_step(b->mj, b->data);
  }
  double begin = wall_seconds();
  mjd_transitionFD(b->mj, b->data, 1e-6, 0, b->A, b->mj->nu ? b->B : NULL, NULL, NULL);
  return 1e6 * (wall_seconds() - begin);
}

void bench_sim_run(struct bench_sim *b, int repetitions, const char *title) {
  double *x = ARENA_NEW(b->arena, double, 4 * repetitions);
  double *fwd = x, *grad = x + repetitions, *step = x + 2 * repetitions, *fd = x + 3 * repetitions;
  for (int i = 0; i < repetitions; i++) {
    log_progress("%s %d/%d", title, i + 1, repetitions);
    fwd[i] = time_forward(b);
    grad[i] = time_gradient(b);
    step[i] = time_mujoco_step(b);
    fd[i] = time_mujoco_fd(b);
  }
  log_progress_end();
  b->forward = median(fwd, repetitions);
  b->gradient = median(grad, repetitions);
  b->mujoco_step = median(step, repetitions);
  b->mujoco_fd = median(fd, repetitions);
}

int bench_sim_contacts(struct bench_sim *b) {
  int contacts = 0;
  b->k->contacts(b->model, b->work, b->force, NULL);
  for (int i = 0; i < sim_ncontact(b->model); i++) {
    contacts += b->force[i * b->k->width] > 0;
  }
  return contacts;
}

static double difference(const double *lane, const double *want, int n, int W) {
  double most = 0, off = 0;
  for (int i = 0; i < n; i++) {
    double x = fabs(lane[i * W] - want[i]);
    most = fmax(most, fabs(want[i]));
    off = x <= off ? off : x; // a NaN stays
  }
  return off / fmax(most, 1e-3);
}

double bench_sim_error(struct bench_sim *b) {
  int nq = b->robot.nq, nv = b->robot.nv, W = b->k->width, state = nq + nv;
  int steps = STEPS * sim_model_options(b->model)->substeps;
  mjOption own = b->mj->opt;
  b->mj->opt.tolerance = 0;
  b->mj->opt.iterations = 300;
  time_forward(b);
  double worst = 0;
  for (int s = 0; s + 1 < steps; s++) {
    const double *x = b->trail + s * state * W, *next = x + state * W;
    mj_resetData(b->mj, b->data);
    for (int i = 0; i < nq; i++) {
      b->data->qpos[i] = x[i * W];
    }
    for (int i = 0; i < nv; i++) {
      b->data->qvel[i] = x[(nq + i) * W];
    }
    for (int i = 0; i < b->mj->nu; i++) {
      b->data->ctrl[i] = b->ctrl[i * W];
    }
    mj_step(b->mj, b->data);
    worst = fmax(worst, difference(next, b->data->qpos, nq, W));
    worst = fmax(worst, difference(next + nq * W, b->data->qvel, nv, W));
  }
  b->mj->opt = own;
  return worst;
}
