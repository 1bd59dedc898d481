// dsim bench: the simulator against MuJoCo's own step and finite differences, in one run. Timings
// are quoted as medians of interleaved repetitions, so that a drifting machine slows both sides
// alike.
#include "base/log.h"
#include "cmd/bench_sim.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/gemm.h"
#include "learn/learner.h"
#include "out/json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double *x, int n) {
  qsort(x, (size_t)n, sizeof *x, compare);
  return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
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

static void add_times(cJSON *o, const struct bench_sim *b) {
  json_add_real(o, "forward_us", b->forward);
  json_add_real(o, "gradient_us", b->gradient);
  json_add_real(o, "mujoco_step_us", b->mujoco_step);
  json_add_real(o, "mujoco_fd_us", b->mujoco_fd);
  json_add_real(o, "forward_ratio", b->mujoco_step / b->forward);
  json_add_real(o, "gradient_ratio", b->mujoco_fd / b->gradient);
}

static void print_times(const char *title, const struct bench_sim *b) {
  printf("%s\n", title);
  printf("  step              %8.2f   MuJoCo %s mj_step          %8.1f   ratio %6.1f\n", b->forward,
         mj_versionString(), b->mujoco_step, b->mujoco_step / b->forward);
  printf("  step and adjoint  %8.2f   MuJoCo %s mjd_transitionFD %8.1f   ratio %6.1f\n",
         b->gradient, mj_versionString(), b->mujoco_fd, b->mujoco_fd / b->gradient);
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
          "mjd_transitionFD, standing on all foot contacts, with the smoothed contact and with\n"
          "MuJoCo's own (also a cube at rest); then iterations of training on all cores.",
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
  // the smoothed contact, and MuJoCo's own, of which the cube is the smallest example
  struct bench_sim b, own, cube;
  if (bench_sim_open(&b, &arena, robot, "stand", SIM_SMOOTHED, &e) ||
      bench_sim_open(&own, &arena, robot, "stand", SIM_MUJOCO, &e) ||
      bench_sim_open(&cube, &arena, "robots/cube.xml", "resting", SIM_MUJOCO, &e)) {
    return err_report(&e);
  }
  bench_sim_run(&b, repetitions, "bench");
  bench_sim_run(&own, repetitions, "bench, MuJoCo's contacts");
  bench_sim_run(&cube, repetitions, "bench, cube");
  int contacts = bench_sim_contacts(&b);
  double own_error = bench_sim_error(&own), cube_error = bench_sim_error(&cube);
  bench_sim_close(&b);
  bench_sim_close(&own);
  bench_sim_close(&cube);
  struct train_times t = {0};
  bool trained = strcmp(train, "none") != 0;
  if (trained && bench_train(&t, &arena, train, threads, &e)) {
    return err_report(&e);
  }

  if (run.json) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "isa", b.k->isa);
    cJSON_AddStringToObject(o, "robot", b.robot.name);
    cJSON_AddNumberToObject(o, "lanes", b.k->width);
    cJSON_AddNumberToObject(o, "contacts", contacts);
    add_times(o, &b);
    cJSON_AddStringToObject(o, "mujoco", mj_versionString());
    cJSON *x = cJSON_AddObjectToObject(o, "mujoco_contact");
    add_times(x, &own);
    json_add_real(x, "max_rel_error", own_error);
    x = cJSON_AddObjectToObject(o, "mujoco_contact_cube");
    add_times(x, &cube);
    json_add_real(x, "max_rel_error", cube_error);
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
    printf("%s build, %d lanes; us per instance and substep, one core\n", b.k->isa, b.k->width);
    char title[128];
    snprintf(title, sizeof title, "%s, smoothed contact, %d bear load", b.robot.name, contacts);
    print_times(title, &b);
    snprintf(title, sizeof title, "%s, MuJoCo's contacts, next state within %.1e", own.robot.name,
             own_error);
    print_times(title, &own);
    snprintf(title, sizeof title, "%s, MuJoCo's contacts, next state within %.1e", cube.robot.name,
             cube_error);
    print_times(title, &cube);
    if (trained) {
      printf("training '%s': %.1f ms an iteration, %.1f ms of it simulator and task; %.0f "
             "environment steps a second\n",
             train, 1e3 * t.iteration, 1e3 * t.sim, t.env_steps);
    }
  }
  arena_release(&arena);
  return err_report(&e);
}
