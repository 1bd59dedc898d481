// dsim evaluate: the policy in the simulator it was trained in, without noise.
#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/episodes.h"
#include "cmd/experiment.h"
#include "cmd/options.h"
#include "learn/evaluate.h"
#include "learn/gemm.h"
#include "out/rundir.h"
#include <string.h>

struct evaluate_options {
  struct run_options run;
  int episodes;
  double noise;
};

// The folder of the run that name stands for. A spec stands for the run that training it makes.
static const char *find_run(const char *name, const struct evaluate_options *o, struct arena *a,
                            struct err *e) {
  struct err not_a_run = {0};
  const char *dir = rundir_locate(a, name, &not_a_run);
  if (dir) {
    return dir;
  }
  struct spec spec;
  struct err not_a_spec = {0};
  if (run_options_spec(&spec, a, name, &o->run, &not_a_spec) == 0) {
    return rundir_path(a, &spec, NULL);
  }
  *e = file_find(a, name) ? not_a_spec : not_a_run;
  return NULL;
}

static int evaluate(const char *name, struct evaluate_options *o, struct arena *a, struct err *e) {
  const char *dir = find_run(name, o, a, e);
  if (!dir) {
    return e->code;
  }
  struct spec fit;
  if (spec_read(&fit, a, rundir_file(a, dir, "spec.yaml"), e) || fit.task != TASK_TRACK) {
    return e->code ? e->code : experiment_evaluate(&fit, dir, &o->run, e);
  }
  // one checkpoint file may be named; else the folder's best policy counts
  size_t n = strlen(name);
  bool is_file = n > 5 && strcmp(name + n - 5, ".dsim") == 0;
  struct policy p;
  struct world world;
  struct spec spec;
  if (policy_load(&p, a, is_file ? name : dir, e) ||
      run_options_spec(&spec, a, rundir_file(a, dir, "spec.yaml"), &o->run, e) ||
      world_open(&world, a, &spec, e)) {
    return e->code;
  }
  const char **names = ARENA_NEW(a, const char *, world.robot.nu);
  for (int j = 0; j < world.robot.nu; j++) {
    names[j] = world.robot.actuator[j].name;
  }
  if (policy_check(&p, world.track.nobs, world.robot.nu, names, e)) {
    return e->code;
  }

  int first = o->run.seeds.given ? o->run.seeds.first : 0;
  int last = o->run.seeds.given ? o->run.seeds.last : 0;
  int starts = o->episodes > 0 ? o->episodes : spec.eval_starts;
  struct evaluation v;
  evaluator_run(&v, a, evaluator_new(a, &world), &p, starts, first, last, o->noise);
  struct episodes table = {
      .simulator = "dsim", .motion = &world.motion, .n = v.n, .episode = v.episode};
  const char *csv = o->run.out ? o->run.out : rundir_file(a, dir, "eval.csv");
  if (episodes_write(&table, csv, e)) {
    return e->code;
  }
  if (o->run.json) {
    return episodes_json(&table, e);
  }
  episodes_print(&table, a);
  log_info("%d of %d episodes track to the end of the clip (policy of iteration %lld); wrote %s",
           v.reached, v.n, (long long)p.iteration, csv);
  return 0;
}

int cmd_evaluate(int argc, char **argv) {
  struct evaluate_options o = {0};
  const struct option rows[] = {
      {"episodes", OPTION_INT, &o.episodes, "N",
       "evenly spaced starts in each clip, the first at its first frame (default: eval.starts)", 1,
       100000},
      OPTION_SEEDS(o.run),
      {"noise", OPTION_REAL, &o.noise, "SCALE",
       "noise on the initial states, 1 = the paper's resets; drawn per seed (default 0)", 0, 10},
      {"out", OPTION_TEXT, &o.run.out, "FILE", "CSV to write instead of RUN/eval.csv", 0, 0},
      OPTION_SET(o.run),
      OPTION_THREADS(o.run),
      OPTION_QUIET(o.run),
      OPTION_JSON(o.run),
  };
  struct command_line line = {
      .usage = "evaluate RUN|SPEC",
      .about =
          "Rolls a trained policy out in the training simulator, deterministically, from evenly\n"
          "spaced starts to the end of the clip (with several clips, of each). An episode falls\n"
          "when the root is below terminate.height or farther than terminate.root from the\n"
          "reference. RUN is a run's folder (its best policy) or a checkpoint in it.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  log_quiet(o.run.quiet);
  gemm_start();
  struct arena a;
  arena_init(&a);
  evaluate(line.args[0], &o, &a, &e);
  arena_release(&a);
  return err_report(&e);
}
