// dsim train: optimises what the spec describes. Here: the run directory, the loop around the
// learner, its records, evaluations and checkpoints, and stopping when asked to.
#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/experiment.h"
#include "cmd/options.h"
#include "learn/evaluate.h"
#include "learn/gemm.h"
#include "learn/state.h"
#include "out/csv.h"
#include "out/manifest.h"
#include "out/rundir.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char progress_header[] =
    "iteration,env_steps,wall_s,reward,episode_s,e_track_cm,actor_loss,critic_loss,"
    "actor_grad_norm,bundle_fraction,lr_actor,lr_critic,critic_grad_norm,failures_per_1000,sigma,"
    "value,root_cm,joint_rad,return_std,episodes,failed,truncated,nonfinite,bad_cotangents,"
    "skipped_updates,eval_survival,eval_reached,eval_e_track_cm,eval_e_track_local_cm,"
    "disc_residual,disc_zero,disc_accuracy,disc_gradient";
static const char timing_header[] =
    "iteration,env_steps,wall_s,iteration_s,sim_s,forward_s,backward_s,actor_s,critic_s,eval_s,"
    "discriminator_s";

// ---- signals: the first asks to finish the iteration, the second ends at once

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
  stop_signal = number;
  signal(number, SIG_DFL);
}

// ---- one training run

struct training {
  const struct spec *spec;
  struct world world;
  struct learner learner;
  struct evaluator *evaluator;
  struct arena *arena;
  struct best_policy best;
  const char *dir;
  struct csv progress, timing;
  double wall_before; // seconds of earlier parts of a resumed run
  double wall_start;
  int64_t first_iteration;
  // counted over the run, so that each kind is explained once
  int64_t nonfinite, bad_cotangents, skipped_updates;
  struct evaluation last; // newest evaluation; n = 0: none yet
};

// Wall-clock seconds so far, of all parts of a resumed run.
static double wall_so_far(const struct training *t) {
  return t->wall_before + wall_seconds() - t->wall_start;
}

// The wall clock goes on where the records that are kept stop.
static int read_wall_before(struct training *t, const char *path, struct err *e) {
  struct arena_mark mark = arena_mark(t->arena);
  struct csv_table table;
  double *wall;
  if (file_exists(path) && csv_read(&table, t->arena, path, e) == 0 &&
      csv_reals(&wall, t->arena, &table, "wall_s", e) == 0 && table.nrow > 0) {
    t->wall_before = wall[table.nrow - 1];
  }
  arena_reset(t->arena, mark);
  return e->code;
}

static int open_records(struct training *t, struct err *e) {
  const char *progress = rundir_file(t->arena, t->dir, "progress.csv");
  const char *timing = rundir_file(t->arena, t->dir, "timing.csv");
  // rows behind the checkpoint are made again
  double limit = (double)*t->learner.iteration;
  if (csv_keep_below(progress, "iteration", limit, e) ||
      csv_keep_below(timing, "iteration", limit, e) || read_wall_before(t, progress, e) ||
      csv_open(&t->progress, progress, progress_header, e) ||
      csv_open(&t->timing, timing, timing_header, e)) {
    return e->code;
  }
  return 0;
}

static void real_or_missing(struct csv *c, double x) {
  if (isnan(x)) {
    csv_missing(c);
  } else {
    csv_real(c, x);
  }
}

static int write_records(struct training *t, const struct learn_report *p,
                         const struct evaluation *v, double eval_seconds, struct err *e) {
  long long iteration = *t->learner.iteration - 1, steps = *t->learner.env_steps;
  double wall = wall_so_far(t);
  struct csv *c = &t->progress;
  csv_int(c, iteration);
  csv_int(c, steps);
  csv_real(c, t->spec->log_wall ? wall : 0);
  csv_real(c, p->reward);
  real_or_missing(c, p->episode_s);
  real_or_missing(c, p->e_track_cm);
  csv_real(c, p->actor_loss);
  csv_real(c, p->critic_loss);
  csv_real(c, p->actor_norm);
  csv_real(c, p->bundle_fraction);
  csv_real(c, p->lr_actor);
  csv_real(c, p->lr_critic);
  csv_real(c, p->critic_norm);
  csv_real(c, p->failures_per_1000);
  csv_real(c, p->sigma);
  csv_real(c, p->value);
  csv_real(c, p->root_cm);
  csv_real(c, p->joint_rad);
  csv_real(c, p->return_std);
  csv_int(c, p->episodes);
  csv_int(c, p->failed);
  csv_int(c, p->truncated);
  csv_int(c, p->nonfinite);
  csv_int(c, p->bad_cotangent);
  csv_int(c, p->bad_gradient[0] != 0);
  real_or_missing(c, v ? v->survival : NAN);
  real_or_missing(c, v ? v->reached : NAN);
  real_or_missing(c, v ? v->e_track_cm : NAN);
  real_or_missing(c, v ? v->e_track_local_cm : NAN);
  real_or_missing(c, p->add.out);
  real_or_missing(c, p->add.zero);
  real_or_missing(c, p->add.told);
  real_or_missing(c, p->add.grad);
  if (csv_end(c, e)) {
    return e->code;
  }
  c = &t->timing;
  csv_int(c, iteration);
  csv_int(c, steps);
  csv_real(c, wall);
  csv_real(c, p->wall);
  csv_real(c, p->sim);
  csv_real(c, p->forward);
  csv_real(c, p->backward);
  csv_real(c, p->actor);
  csv_real(c, p->critic);
  csv_real(c, eval_seconds);
  csv_real(c, p->discriminator);
  return csv_end(c, e);
}

// Numerical trouble is counted; the first of each kind says where it was.
static void warn_of_trouble(struct training *t, const struct learn_report *p) {
  long long iteration = *t->learner.iteration - 1;
  if (p->nonfinite > 0 && t->nonfinite == 0) {
    log_warn("a state is not finite or faster than any robot: iteration %lld, step %d, "
             "environment %d; the episode ends there (more are counted in progress.csv)",
             iteration, p->nonfinite_step, p->nonfinite_env);
  }
  if (p->bad_cotangent > 0 && t->bad_cotangents == 0) {
    log_warn("a gradient through the simulator is not finite: iteration %lld, step %d, "
             "environment %d; it is left out (more are counted in progress.csv)",
             iteration, p->bad_step, p->bad_env);
  }
  if (p->bad_gradient[0] && t->skipped_updates == 0) {
    log_warn("iteration %lld: the gradient of %s is not finite; the update is left out and the "
             "weights are kept (more are counted in progress.csv)",
             iteration, p->bad_gradient);
  }
  t->nonfinite += p->nonfinite;
  t->bad_cotangents += p->bad_cotangent;
  t->skipped_updates += p->bad_gradient[0] != 0;
}

static void show_progress(struct training *t, const struct learn_report *p) {
  int64_t done = *t->learner.iteration, all = t->spec->iterations;
  double seconds = wall_seconds() - t->wall_start;
  double per_iteration = seconds / (double)(done - t->first_iteration);
  long left = lround(per_iteration * (double)(all - done));
  char eval[80] = "";
  if (t->last.n > 0) {
    snprintf(eval, sizeof eval, "  eval %d/%d reach the end, %.1f cm", t->last.reached, t->last.n,
             t->last.e_track_cm);
  }
  log_progress("%lld/%lld  reward %.3f  failures %.2f/1000  root %.1f cm  joints %.3f rad%s  "
               "%.0f ms  ETA %ld:%02ld",
               (long long)done, (long long)all, p->reward, p->failures_per_1000, p->root_cm,
               p->joint_rad, eval, 1e3 * per_iteration, left / 60, left % 60);
}

static int evaluate_policy(struct training *t, struct err *e) {
  struct arena_mark mark = arena_mark(t->arena);
  struct policy p;
  learner_policy(&p, t->arena, &t->learner);
  evaluator_run(&t->last, t->arena, t->evaluator, &p, t->spec->eval_starts, 0, 0, 0);
  if (t->last.score > t->best.score) {
    t->best = (struct best_policy){t->last.score, *t->learner.iteration};
    policy_save(&p, rundir_file(t->arena, t->dir, "policy.dsim"), e);
  }
  t->last.episode = NULL; // goes with the mark
  arena_reset(t->arena, mark);
  return e->code;
}

static int train_loop(struct training *t, struct err *e) {
  const struct spec *s = t->spec;
  t->wall_start = wall_seconds();
  t->first_iteration = *t->learner.iteration;
  bool saved = false;
  while (*t->learner.iteration < s->iterations && !stop_signal) {
    struct learn_report report;
    learner_iterate(&t->learner, &report, e);
    warn_of_trouble(t, &report);
    struct evaluation *v = NULL;
    double start = wall_seconds();
    if (!e->code && s->eval_every > 0 && *t->learner.iteration % s->eval_every == 0) {
      if (evaluate_policy(t, e)) {
        return e->code;
      }
      v = &t->last;
    }
    struct err io = {0};
    if (write_records(t, &report, v, wall_seconds() - start, &io)) {
      return e->code ? e->code : (*e = io).code;
    }
    show_progress(t, &report);
    if (e->code) {
      return e->code; // numerical abort: the checkpoint before it stays
    }
    saved = *t->learner.iteration % s->checkpoint_every == 0;
    if (saved && state_save(&t->learner, &t->best, t->dir, e)) {
      return e->code;
    }
  }
  log_progress_end();
  return saved ? 0 : state_save(&t->learner, &t->best, t->dir, e);
}

static int write_manifest(const struct training *t, struct err *e) {
  const struct world *w = &t->world;
  struct manifest m = {
      .command = "train",
      .isa = w->sim->isa,
      .threads = w->threads,
      .seed = t->spec->seed,
      .robot = w->robot.path,
      .robot_sha256 = w->robot.sha256,
      .motion = w->motion.name,
      .motion_sha256 = w->motion.sha256,
  };
  return manifest_write(t->dir, &m, e);
}

static void report_end(const struct training *t) {
  const struct spec *s = t->spec;
  if (t->best.score > -1e30) {
    log_info("best policy: after iteration %lld, %s/policy.dsim", (long long)t->best.iteration,
             t->dir);
  }
  if (stop_signal) {
    log_info("stopped at iteration %lld of %d; dsim train %s --resume goes on from there",
             (long long)*t->learner.iteration, s->iterations, t->dir);
  } else {
    log_info("%d iterations, %lld environment steps, %.0f s; results in %s", s->iterations,
             (long long)*t->learner.env_steps, wall_so_far(t), t->dir);
  }
}

struct train_options {
  struct run_options run;
  const char *init_from;
  int argc;
  char **argv;
};

static int train_run(const struct spec *s, const char *dir, const struct train_options *o,
                     struct arena *arena, struct err *e) {
  struct training *t = ARENA_NEW(arena, struct training, 1);
  *t = (struct training){.spec = s, .arena = arena, .dir = dir, .best = {.score = -1e30}};
  enum rundir_mode mode = o->run.resume      ? RUNDIR_RESUME
                          : o->run.overwrite ? RUNDIR_OVERWRITE
                                             : RUNDIR_NEW;
  // everything that can be wrong with the input shows before the run directory is touched
  if (world_open(&t->world, arena, s, e)) {
    return e->code;
  }
  learner_new(&t->learner, arena, &t->world);
  t->evaluator = evaluator_new(arena, &t->world);
  if (o->init_from && state_init_from(&t->learner, arena, o->init_from, e)) {
    return e->code;
  }
  if (rundir_open(arena, dir, mode, s, o->run.set.v, o->run.set.n, o->argc, o->argv, e) ||
      (o->run.resume && state_load(&t->learner, &t->best, arena, dir, e)) || write_manifest(t, e) ||
      open_records(t, e)) {
    return e->code;
  }
  if (*t->learner.iteration >= s->iterations) {
    log_info("%s: all %d iterations are done; --iterations N asks for more", dir, s->iterations);
  } else {
    log_info(
        "%s: %s, %d observations, %d actions, %d environments x %d steps, %d threads, %s, BLAS %s",
        dir, t->learner.algorithm, t->learner.rollout->nobs, t->learner.rollout->nu, s->envs,
        s->horizon, t->world.threads, t->world.sim->isa, gemm_kernel());
    if (train_loop(t, e) == 0) {
      report_end(t);
    }
  }
  csv_close(&t->progress);
  csv_close(&t->timing);
  return e->code;
}

// Folder of the run: --out, else the RUN that was named, else results/EXPERIMENT/VARIANT/seedN.
static const char *choose_folder(struct arena *a, const char *name, const struct spec *s,
                                 const struct train_options *o) {
  if (!o->run.out && !o->run.seeds.given && file_exists(rundir_file(a, name, "spec.yaml"))) {
    return name;
  }
  return rundir_path(a, s, o->run.out);
}

static int train_all(const char *name, struct train_options *o, struct err *e) {
  struct option_interval seeds = o->run.seeds;
  if (seeds.given && seeds.last > seeds.first && o->run.out) {
    return err_set(e, EXIT_USAGE, "--seeds makes several runs, --out names one folder");
  }
  for (int seed = seeds.first; seed <= seeds.last && !e->code && !stop_signal; seed++) {
    struct arena arena;
    arena_init(&arena);
    struct spec spec;
    if (run_options_spec(&spec, &arena, name, &o->run, e) == 0) {
      spec.seed = seeds.given ? seed : spec.seed;
      const char *dir = choose_folder(&arena, name, &spec, o);
      if (spec.task != TASK_TRACK) {
        experiment_train(&spec, dir, &o->run, o->argc, o->argv, e);
      } else {
        train_run(&spec, dir, o, &arena, e);
      }
    }
    arena_release(&arena);
  }
  return e->code;
}

int cmd_train(int argc, char **argv) {
  struct train_options o = {.argc = argc, .argv = argv};
  const struct option rows[] = {
      OPTION_SET(o.run),
      OPTION_SEED(o.run),
      OPTION_SEEDS(o.run),
      OPTION_ITERATIONS(o.run),
      OPTION_OUT(o.run),
      OPTION_RESUME(o.run),
      OPTION_OVERWRITE(o.run),
      {"init-from", OPTION_TEXT, &o.init_from, "RUN", "start with the networks of another run", 0,
       0},
      OPTION_THREADS(o.run),
      OPTION_QUIET(o.run),
  };
  struct command_line line = {
      .usage = "train SPEC|RUN",
      .about = "Trains a policy. Writes progress.csv, timing.csv, checkpoints and the best policy\n"
               "into the run's folder. Ctrl-C finishes the iteration, saves and exits with 130;\n"
               "--resume goes on from there, bit for bit.",
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
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  train_all(line.args[0], &o, &e);
  if (e.code == 0 && stop_signal) {
    return EXIT_INTERRUPTED;
  }
  return err_report(&e);
}
