// dsim bench: the simulator against MuJoCo's own step and finite differences, in one run. Timings
// are quoted as medians of interleaved repetitions, so that a drifting machine slows both sides
// alike.
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/gemm.h"
#include "learn/learner.h"
#include "out/json.h"
#include "robot/mjcf.h"
#include "sim/sim.h"
#include <math.h>
#include <mujoco/mujoco.h>
#include <stdlib.h>
#include <string.h>

// control steps (of 4 substeps) and mj_steps a repetition: both stand for about half a second, long
// enough to forget what the other side left in the caches
enum { STEPS = 32, MUJOCO_STEPS = 128 };

struct bench {
  struct arena *arena;
  struct robot robot;
  struct sim_model *model;
  const struct sim_kernels *k;
  struct sim_work *work;
  double *qpos, *qvel, *ctrl, *trail, *param, *dq, *dv, *dctrl, *force;
  const double *stand; // qpos of the key frame
  mjModel *mj;
  mjData *data;
  double *A, *B; // of transitionFD
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, compare);
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

// every lane stands in the key frame, its knees a little different
static void stand(struct bench *b) {
  const struct robot *r = &b->robot;
  int W = b->k->width;
  for (int l = 0; l < W; l++) {
    for (int i = 0; i < r->nq; i++) {
      b->qpos[i * W + l] = b->stand[i] + (i >= 7 ? 1e-4 * l : 0);
    }
    for (int i = 0; i < r->nv; i++) {
      b->qvel[i * W + l] = 0;
    }
    for (int i = 0; i < r->nu; i++) {
      b->ctrl[i * W + l] = b->stand[r->actuator[i].qadr];
    }
  }
}

static int bench_open(struct bench *b, const char *path, struct err *e) {
  if (robot_load(&b->robot, b->arena, path, false, e)) {
    return e->code;
  }
  const struct robot *r = &b->robot;
  int key = robot_find_key(r, "stand");
  if (key < 0) {
    return err_set(e, EXIT_USAGE, "%s: bench needs a key frame 'stand'", r->path);
  }
  b->stand = r->key[key].qpos;
  b->k = sim_kernels(e);
  struct sim_options opt = sim_options_default();
  b->model = b->k ? sim_model_new(b->arena, r, &opt, e) : NULL;
  if (!b->model) {
    return e->code;
  }
  int W = b->k->width, state = r->nq + r->nv;
  b->work = sim_work_new(b->arena, b->model, W);
  b->qpos = ARENA_NEW(b->arena, double, r->nq *W);
  b->qvel = ARENA_NEW(b->arena, double, r->nv *W);
  b->ctrl = ARENA_NEW(b->arena, double, (r->nu + 1) * W);
  b->dq = ARENA_NEW(b->arena, double, r->nv *W);
  b->dv = ARENA_NEW(b->arena, double, r->nv *W);
  b->dctrl = ARENA_NEW(b->arena, double, (r->nu + 1) * W);
  b->force = ARENA_NEW(b->arena, double, (sim_ncontact(b->model) + 1) * W);
  b->trail = ARENA_NEW(b->arena, double, STEPS *opt.substeps *state *W);
  b->param = ARENA_NEW(b->arena, double, sim_nparam(b->model) * W);
  sim_param_default(b->model, b->param, W);

  b->mj = mjcf_load(b->arena, r->path, e);
  if (!b->mj) {
    return e->code;
  }
  b->mj->opt.timestep = opt.dt;
  b->mj->opt.integrator = mjINT_EULER;
  b->data = mj_makeData(b->mj);
  int nx = 2 * b->mj->nv + b->mj->na;
  b->A = ARENA_NEW(b->arena, double, nx *nx);
  b->B = ARENA_NEW(b->arena, double, nx * b->mj->nu + 1);
  return 0;
}

// ---- the four timings, microseconds per instance and substep
// ----------------------------------------

static double time_forward(struct bench *b) {
  int state = b->robot.nq + b->robot.nv, W = b->k->width;
  int substeps = sim_model_options(b->model)->substeps;
  stand(b);
  double start = wall_seconds();
  for (int s = 0; s < STEPS; s++) {
    b->k->step_fwd(b->model, b->work, b->qpos, b->qvel, b->trail + s * substeps * state * W,
                   b->ctrl, b->param);
  }
  return 1e6 * (wall_seconds() - start) / (STEPS * substeps * W);
}

// replay and adjoint, as backward runs them: the forward pass of the substep is in it
static double time_gradient(struct bench *b) {
  int state = b->robot.nq + b->robot.nv, W = b->k->width;
  int substeps = sim_model_options(b->model)->substeps;
  for (int i = 0; i < b->robot.nv * W; i++) {
    b->dq[i] = b->dv[i] = 1e-3;
  }
  double start = wall_seconds();
  for (int s = STEPS - 1; s >= 0; s--) {
    b->k->step_bwd(b->model, b->work, b->dq, b->dv, b->dctrl, NULL,
                   b->trail + s * substeps * state * W, b->ctrl, b->param);
  }
  return 1e6 * (wall_seconds() - start) / (STEPS * substeps * W);
}

static void mujoco_stand(struct bench *b) {
  mj_resetData(b->mj, b->data);
  mju_copy(b->data->qpos, b->stand, b->mj->nq);
  for (int i = 0; i < b->mj->nu; i++) {
    b->data->ctrl[i] = b->stand[b->robot.actuator[i].qadr];
  }
}
static double time_mujoco_step(struct bench *b) {
  mujoco_stand(b);
  double start = wall_seconds();
  for (int s = 0; s < MUJOCO_STEPS; s++) {
    mj_step(b->mj, b->data);
  }
  return 1e6 * (wall_seconds() - start) / MUJOCO_STEPS;
}
// from a state that stands in contact; one-sided differences, the cheaper kind
static double time_mujoco_fd(struct bench *b) {
  mujoco_stand(b);
  for (int s = 0; s < 30; s++) {
    mj_step(b->mj, b->data);
  }
  double start = wall_seconds();
  mjd_transitionFD(b->mj, b->data, 1e-6, 0, b->A, b->B, NULL, NULL);
  return 1e6 * (wall_seconds() - start);
}

// ---- a few iterations of training
// ------------------------------------------------------------------

struct train_times {
  double iteration, sim, learn, env_steps;
};
static int bench_train(struct train_times *t, struct arena *a, const char *name, int threads,
                       struct err *e) {
  enum { ITERATIONS = 7 };
  struct spec *s = ARENA_NEW(a, struct spec, 1);
  struct world *w = ARENA_NEW(a, struct world, 1);
  struct learner learner;
  if (spec_read(s, a, name, e)) {
    return e->code;
  }
  if (threads) {
    s->threads = threads;
  }
  if (spec_check(s, e) || world_open(w, a, s, e)) {
    return e->code;
  }
  learner_new(&learner, a, w);
  double wall[ITERATIONS], sim[ITERATIONS];
  for (int i = -1; i < ITERATIONS; i++) { // the first warms up
    struct learn_report report;
    if (learner_iterate(&learner, &report, e)) {
      return e->code;
    }
    if (i >= 0) {
      wall[i] = report.wall;
      sim[i] = report.sim;
    }
  }
  t->iteration = median(wall, ITERATIONS);
  t->sim = median(sim, ITERATIONS);
  t->learn = t->iteration - t->sim;
  t->env_steps = (double)s->envs * s->horizon / t->iteration;
  return 0;
}

int cmd_bench(int argc, char **argv) {
  struct run_options run = {0};
  const char *robot = "robots/g1.xml", *train = "run";
  int repetitions = 25, threads = 0;
  const struct option rows[] = {
      {"robot", OPTION_TEXT, &robot, "FILE",
       "MJCF with a key frame 'stand' (default robots/g1.xml)", 0, 0},
      {"train", OPTION_TEXT, &train, "SPEC", "spec whose iterations are timed; none: 'none'", 0, 0},
      {"repetitions", OPTION_INT, &repetitions, "N", "interleaved repetitions", 1, 10000},
      {"threads", OPTION_INT, &threads, "N", "workers of the training part", 0, 256},
      OPTION_QUIET(run),
      OPTION_JSON(run),
  };
  struct command_line line = {
      .usage = "bench [--json]",
      .about =
          "Times one core: the simulator's substep and its gradient against MuJoCo's mj_step and\n"
          "mjd_transitionFD, standing on all foot contacts; then iterations of training on all "
          "cores.",
      .option = rows,
      .noption = OPTION_COUNT(rows)};
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) || line.help) {
    return err_report(&e);
  }
  log_quiet(run.quiet);
  gemm_start();
  struct arena arena;
  arena_init(&arena);
  struct bench b = {.arena = &arena};
  if (bench_open(&b, robot, &e)) {
    return err_report(&e);
  }
  double *x = ARENA_NEW(&arena, double, 4 * repetitions);
  double *fwd = x, *grad = x + repetitions, *step = x + 2 * repetitions, *fd = x + 3 * repetitions;
  for (int i = 0; i < repetitions; i++) {
    log_progress("bench %d/%d", i + 1, repetitions);
    fwd[i] = time_forward(&b);
    grad[i] = time_gradient(&b);
    step[i] = time_mujoco_step(&b);
    fd[i] = time_mujoco_fd(&b);
  }
  log_progress_end();
  // contacts that carry load after the run, in the first lane
  int contacts = 0, W = b.k->width;
  b.k->contacts(b.model, b.work, b.force, NULL);
  for (int i = 0; i < sim_ncontact(b.model); i++) {
    contacts += b.force[i * W] > 0;
  }
  double f = median(fwd, repetitions), g = median(grad, repetitions);
  double s = median(step, repetitions), d = median(fd, repetitions);
  mj_deleteData(b.data);
  mj_deleteModel(b.mj);
  struct train_times t = {0};
  bool trained = strcmp(train, "none") != 0;
  if (trained && bench_train(&t, &arena, train, threads, &e)) {
    return err_report(&e);
  }

  if (run.json) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "isa", b.k->isa);
    cJSON_AddStringToObject(o, "robot", b.robot.name);
    cJSON_AddNumberToObject(o, "lanes", W);
    cJSON_AddNumberToObject(o, "contacts", contacts);
    json_add_real(o, "forward_us", f);
    json_add_real(o, "gradient_us", g);
    json_add_real(o, "mujoco_step_us", s);
    json_add_real(o, "mujoco_fd_us", d);
    json_add_real(o, "forward_ratio", s / f);
    json_add_real(o, "gradient_ratio", d / g);
    cJSON_AddStringToObject(o, "mujoco", mj_versionString());
    if (trained) {
      cJSON *y = cJSON_AddObjectToObject(o, "train");
      json_add_real(y, "iteration_s", t.iteration);
      json_add_real(y, "sim_s", t.sim);
      json_add_real(y, "learn_s", t.learn);
      json_add_real(y, "env_steps_per_s", t.env_steps);
    }
    json_print(o, &e);
    cJSON_Delete(o);
  } else {
    printf(
        "%s, %s build, %d lanes, %d contacts carry load; us per instance and substep, one core\n",
        b.robot.name, b.k->isa, W, contacts);
    printf("  step              %8.2f   MuJoCo %s mj_step          %8.1f   ratio %6.1f\n", f,
           mj_versionString(), s, s / f);
    printf("  step and adjoint  %8.2f   MuJoCo %s mjd_transitionFD %8.1f   ratio %6.1f\n", g,
           mj_versionString(), d, d / g);
    if (trained) {
      printf("training '%s': %.1f ms an iteration, %.1f ms of it simulator and task; %.0f "
             "environment steps a second\n",
             train, 1e3 * t.iteration, 1e3 * t.sim, t.env_steps);
    }
  }
  arena_release(&arena);
  return err_report(&e);
}
