// dsim transfer RUN: the policy of a run in MuJoCo. Same observation code, other physics.
#include "base/log.h"
#include "cmd/along.h"
#include "cmd/cmd.h"
#include "cmd/episodes.h"
#include "cmd/options.h"
#include "learn/evaluate.h"
#include "learn/gemm.h"
#include "learn/state.h"
#include "out/rundir.h"
#include "plant/transfer.h"
#include <stdio.h>
#include <string.h>

static const double start_noise = 0.2; // of the paper's reset noise, on all episodes but the first

struct transfer_options {
  struct run_options run;
  struct option_list perturb;
  int episodes, starts;
  double timestep;
  const char *robot, *out, *checkpoints;
};

// the plain test, whose numbers belong to the run
static bool is_nominal(const struct transfer_options *o) {
  return !o->starts && !o->robot && !o->perturb.n && !o->run.set.n && o->timestep == 0.002;
}

// One episode list for both simulators: clip by clip, evenly spaced exact starts or the clip's
// start with a little noise.
static void begin_episodes(struct episode *ep, double *noise, int n, const struct motion *m,
                           const struct transfer_options *o) {
  int each = n / m->nclip; // of a clip
  for (int i = 0; i < n; i++) {
    const struct motion_clip *clip = &m->clip[i / each];
    int k = i % each, steps = clip->nframe - 1;
    int start = o->starts ? (int)((int64_t)k * steps / o->starts) : 0;
    episode_begin(&ep[i], k, clip->first + start);
    noise[i] = o->starts || k == 0 ? 0 : start_noise;
  }
}

// The episodes in MuJoCo and, of an undisturbed robot, in the training simulator as well: how deep
// do its feet stand there?
static void run_episodes(struct episodes *es, struct arena *a, struct transfer *x,
                         struct evaluator *training, const struct transfer_options *o) {
  const struct motion *m = &x->world.motion;
  int n = m->nclip * (o->starts ? o->starts : o->episodes);
  double *noise = ARENA_NEW(a, double, n), *saturation = ARENA_NEW(a, double, n);
  *es = (struct episodes){.simulator = es->simulator,
                          .motion = m,
                          .n = n,
                          .episode = ARENA_NEW(a, struct episode, n),
                          .saturation = saturation};
  if (training) {
    double *depth = ARENA_NEW(a, double, n);
    begin_episodes(es->episode, noise, n, m, o);
    evaluator_episodes(training, &x->policy, es->episode, n, noise);
    for (int i = 0; i < n; i++) {
      depth[i] = es->episode[i].penetration_mm;
    }
    es->penetration_train = depth;
  }
  begin_episodes(es->episode, noise, n, m, o);
  for (int i = 0; i < n; i++) {
    struct episode *ep = &es->episode[i];
    transfer_start(x, ep, noise[i]);
    while (transfer_step(x, ep)) {
    }
    saturation[i] = plant_saturation(&x->plant);
    if (!o->checkpoints) {
      log_progress("episode %d of %d: %s after %.2f s, E_track %.1f cm", i + 1, n,
                   ep->fell ? "fell" : "clip end", ep->time_s, ep->e_track_cm);
    }
  }
  log_progress_end();
}

// The file that a result goes to: --out, or for the plain test NAME in the run's folder, or NULL.
static const char *out_file(struct arena *a, const struct transfer *x, const char *name,
                            const struct transfer_options *o) {
  return o->out || !is_nominal(o) ? o->out : rundir_file(a, x->policy.run, name);
}

// Every checkpoint of the run, oldest first, and the best policy at its place among them.
static int transfer_all(struct transfer *x, struct arena *a, struct evaluator *training,
                        const char *simulator, const struct transfer_options *o, struct err *e) {
  const struct policy named = x->policy; // others live only while they are measured
  const char **path, *best = rundir_file(a, named.run, "policy.dsim");
  int n = state_list(&path, a, named.run);
  struct along along = {.simulator = simulator, .row = ARENA_NEW(a, struct along_row, n + 1)};
  for (int i = 0; i <= n; i++) {
    const char *file = i < n ? path[i] : best;
    struct arena_mark mark = arena_mark(a);
    struct err unreadable = {0};
    struct episodes es = {.simulator = simulator};
    if (transfer_policy(x, a, file, i < n ? e : &unreadable)) {
      if (e->code) {
        break;
      }
      continue; // training has not evaluated yet
    }
    run_episodes(&es, a, x, training, o);
    int at = along.n++;
    for (; at > 0 && along.row[at - 1].iteration > x->policy.iteration; at--) {
      along.row[at] = along.row[at - 1];
    }
    const char *slash = strrchr(file, '/');
    along.row[at] = (struct along_row){slash ? slash + 1 : file, x->policy.iteration,
                                       x->policy.env_steps, episodes_summarise(&es, ALL_CLIPS)};
    arena_reset(a, mark);
    log_info("iteration %lld: %d of %d fell, E_track %.1f cm", (long long)x->policy.iteration,
             along.row[at].s.falls, es.n, along.row[at].s.track);
  }
  x->policy = named;
  if (e->code) {
    return e->code;
  }
  if (n < 3) {
    log_info("the run kept %d checkpoint%s: checkpoint.keep says how many, checkpoint.every how "
             "often",
             n, n == 1 ? "" : "s");
  }
  const char *out = out_file(a, x, "transfer_checkpoints.csv", o);
  if (out && along_write(&along, out, e) == 0) {
    log_info("wrote %s", out);
  }
  if (o->run.json) {
    return along_json(&along, e);
  }
  along_print(&along, a);
  return e->code;
}

static int transfer(struct transfer *x, struct arena *a, const char *run,
                    const struct transfer_options *o, struct err *e) {
  // one checkpoint file may be named, else the run's best policy counts
  size_t length = strlen(run);
  bool is_file = length > 5 && strcmp(run + length - 5, ".dsim") == 0;
  if (o->checkpoints && strcmp(o->checkpoints, "all") != 0) {
    return err_set(e, EXIT_USAGE, "--checkpoints: expected all, found '%.80s'", o->checkpoints);
  }
  if (o->checkpoints && is_file) {
    return err_set(e, EXIT_USAGE, "--checkpoints all needs the run's folder, not one checkpoint");
  }
  const char *from = is_file ? run : rundir_locate(a, run, e);
  if (!from || transfer_open(x, a, from, o->run.set.v, o->run.set.n, o->robot, o->timestep, e)) {
    return e->code;
  }
  for (int i = 0; i < o->perturb.n; i++) {
    if (transfer_perturb(x, a, o->perturb.v[i], e)) {
      return e->code;
    }
  }
  char simulator[32];
  snprintf(simulator, sizeof simulator, "mujoco %s", mj_versionString());
  struct evaluator *training = o->robot || o->perturb.n ? NULL : evaluator_new(a, &x->world);
  if (o->checkpoints) {
    return transfer_all(x, a, training, simulator, o, e);
  }
  struct episodes es = {.simulator = simulator};
  run_episodes(&es, a, x, training, o);
  const char *out = out_file(a, x, "transfer.csv", o);
  if (out && episodes_write(&es, out, e) == 0) {
    log_info("wrote %s", out);
  }
  if (o->run.json) {
    return episodes_json(&es, e);
  }
  episodes_print(&es, a);
  return e->code;
}

int cmd_transfer(int argc, char **argv) {
  struct transfer_options o = {.episodes = 5, .timestep = 0.002};
  const struct option rows[] = {
      {"episodes", OPTION_INT, &o.episodes, "N",
       "from each clip's start; the first exact, the others with a fifth of the reset noise", 1,
       100000},
      {"starts", OPTION_INT, &o.starts, "K", "instead: K exact starts spread evenly over each clip",
       1, 100000},
      {"robot", OPTION_TEXT, &o.robot, "XML", "simulate this MJCF instead of the one trained on", 0,
       0},
      {"perturb", OPTION_LIST, &o.perturb, "NAME=VALUE",
       "a disturbance, of those above (repeatable)", 0, 0},
      {"checkpoints", OPTION_TEXT, &o.checkpoints, "all",
       "a row for every checkpoint of the run, in RUN/transfer_checkpoints.csv", 0, 0},
      {"timestep", OPTION_REAL, &o.timestep, "S", "MuJoCo's time step (default 0.002)", 1e-5, 0.05},
      {"out", OPTION_TEXT, &o.out, "FILE", "CSV to write instead of RUN/transfer.csv", 0, 0},
      OPTION_SET(o.run),
      OPTION_QUIET(o.run),
      OPTION_JSON(o.run),
  };
  struct command_line line = {
      .usage = "transfer RUN",
      .about =
          "Runs a trained policy in MuJoCo, an independent simulator with other contacts, joint\n"
          "limits and dry friction. Reports falls (the root below terminate.height), the mean\n"
          "distance of all bodies to the reference in the world (E_track) and relative to the\n"
          "root (local), and the mean depth of a foot's deepest point while it is below the "
          "floor.\n"
          "Disturbances: friction=COEFFICIENT; mass, gain, armature, dry=FACTOR; latency=STEPS;\n"
          "push=M/S every 2 s; noise=SCALE of the published observation noise; random=SCALE of "
          "the\n"
          "published randomisation, drawn per episode; all = noise=1 and random=1.\n"
          "RUN is a run's folder or a checkpoint in it. Results go to RUN/transfer.csv; with\n"
          "another robot, starts, time step, disturbances or settings only where --out says.",
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
  struct transfer x = {0};
  transfer(&x, &a, line.args[0], &o, &e);
  transfer_close(&x);
  arena_release(&a);
  return err_report(&e);
}
