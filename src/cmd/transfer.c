// dsim transfer RUN: the policy of a run in MuJoCo. Same observation code, other physics.
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/episodes.h"
#include "cmd/options.h"
#include "learn/gemm.h"
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
  const char *robot, *out;
};

// the plain test, whose numbers belong to the run
static bool is_nominal(const struct transfer_options *o) {
  return !o->starts && !o->robot && !o->perturb.n && !o->run.set.n && o->timestep == 0.002;
}

static void run_episodes(struct episodes *es, double *saturation, struct transfer *x,
                         const struct transfer_options *o) {
  const struct motion *m = &x->world.motion;
  int each = es->n / m->nclip; // of a clip
  for (int i = 0; i < es->n; i++) {
    const struct motion_clip *clip = &m->clip[i / each];
    struct episode *ep = &es->episode[i];
    int k = i % each, steps = clip->nframe - 1;
    int start = o->starts ? (int)((int64_t)k * steps / o->starts) : 0;
    episode_begin(ep, k, clip->first + start);
    transfer_start(x, ep, o->starts || k == 0 ? 0 : start_noise);
    while (transfer_step(x, ep)) {
    }
    saturation[i] = plant_saturation(&x->plant);
    log_progress("episode %d of %d: %s after %.2f s, E_track %.1f cm", i + 1, es->n,
                 ep->fell ? "fell" : "clip end", ep->time_s, ep->e_track_cm);
  }
  log_progress_end();
}

static int transfer(struct transfer *x, struct arena *a, const char *run,
                    const struct transfer_options *o, struct err *e) {
  // one checkpoint file may be named, else the run's best policy counts
  size_t length = strlen(run);
  bool is_file = length > 5 && strcmp(run + length - 5, ".dsim") == 0;
  const char *from = is_file ? run : rundir_locate(a, run, e);
  if (!from || transfer_open(x, a, from, o->run.set.v, o->run.set.n, o->robot, o->timestep, e)) {
    return e->code;
  }
  for (int i = 0; i < o->perturb.n; i++) {
    if (transfer_perturb(x, a, o->perturb.v[i], e)) {
      return e->code;
    }
  }
  char simulator[32], path[4096];
  snprintf(simulator, sizeof simulator, "mujoco %s", mj_versionString());
  int n = x->world.motion.nclip * (o->starts ? o->starts : o->episodes);
  double *saturation = ARENA_NEW(a, double, n);
  struct episodes es = {.simulator = simulator,
                        .motion = &x->world.motion,
                        .n = n,
                        .episode = ARENA_NEW(a, struct episode, n),
                        .saturation = saturation};
  run_episodes(&es, saturation, x, o);

  const char *out = o->out;
  if (!out && is_nominal(o)) {
    snprintf(path, sizeof path, "%s/transfer.csv", x->policy.run);
    out = path;
  }
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
