// dsim render RUN: what a policy does, as a trajectory, a film strip and a moving picture.
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/gemm.h"
#include "out/rundir.h"
#include "figure/strip.h"
#include "figure/traj.h"
#include "plant/transfer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FILM_RATE = 12 }; // pictures per second

struct render_options {
  struct run_options run;
  const char *simulator, *out, *clip;
  int start, poses;
  double timestep;
  bool no_film;
};

// ---- one rollout, whatever simulates it

struct rollout_state {
  struct transfer x; // policy, world and plant
  // the training simulator: lanes that all hold the one state
  struct track_work *task;
  struct sim_work *sim;
  double *qpos, *qvel, *obs, *action, *ctrl, *param; // (n, W)
  struct episode episode;
};

static void open_lanes(struct rollout_state *s, struct arena *a) {
  const struct world *w = &s->x.world;
  int width = w->sim->width;
  s->task = track_work_new(a, &w->track, width);
  s->sim = sim_work_new(a, w->model, width);
  s->qpos = ARENA_NEW(a, double, w->robot.nq *width);
  s->qvel = ARENA_NEW(a, double, w->robot.nv *width);
  s->obs = ARENA_NEW(a, double, w->track.nobs *width);
  s->action = ARENA_NEW(a, double, w->robot.nu *width);
  s->ctrl = ARENA_NEW(a, double, w->robot.nu *width);
  s->param = ARENA_NEW(a, double, sim_nparam(w->model) * width);
  sim_param_default(w->model, s->param, width);
}

static void fill_lanes(double *lanes, const double *x, int n, int width) {
  for (int i = 0; i < n; i++) {
    for (int l = 0; l < width; l++) {
      lanes[i * width + l] = x[i];
    }
  }
}

static void first_lane(double *x, const double *lanes, int n, int width) {
  for (int i = 0; i < n; i++) {
    x[i] = lanes[i * width];
  }
}

// transfer_step's twin in the training simulator
static bool train_step(struct rollout_state *s) {
  struct transfer *x = &s->x;
  const struct world *w = &x->world;
  int width = w->sim->width, frame[SIM_WIDTH];
  for (int l = 0; l < width; l++) {
    frame[l] = x->frame;
  }
  w->task->obs_fwd(&w->track, s->task, s->sim, s->obs, s->qpos, s->qvel, frame);
  policy_act(&x->policy, s->action, s->obs, width);
  track_ctrl(&w->track, s->ctrl, s->action, frame, width);
  w->sim->step_fwd(w->model, s->sim, s->qpos, s->qvel, NULL, s->ctrl, s->param);
  first_lane(x->qpos, s->qpos, w->robot.nq, width);
  first_lane(x->qvel, s->qvel, w->robot.nv, width);
  x->frame++;
  return episode_step(&s->episode, &w->track, &x->feet, x->qpos, x->qvel, x->frame);
}

// The picture goes on after a fall, to the end of the clip, unless the state is no longer a number.
static int record(struct rollout_state *s, struct arena *a, const char *path, bool mujoco,
                  struct err *e) {
  struct transfer *x = &s->x;
  const struct world *w = &x->world;
  struct csv csv;
  double *tmp = ARENA_NEW(a, double, 3 * w->robot.nbody);
  if (traj_open(&csv, path, &w->robot, e)) {
    return e->code;
  }
  int start = x->frame, first = w->motion.clip[motion_clip_of(&w->motion, start)].first;
  for (bool failed = false; isfinite(x->qpos[0]);) {
    double e_world, e_local;
    track_error(&w->track, x->qpos, x->frame, &e_world, &e_local);
    if (traj_row(&csv, &w->robot, (x->frame - start) * w->motion.dt, x->frame - first, failed,
                 100 * e_world, x->qpos, w->motion.qpos + (size_t)x->frame * (size_t)w->robot.nq,
                 tmp, e) ||
        x->frame == motion_last(&w->motion, start)) {
      break;
    }
    struct episode before = s->episode;
    if (mujoco) {
      transfer_step(x, &s->episode);
    } else {
      train_step(s);
    }
    if (failed) {
      s->episode = before; // it ended at the fall, and so do its measures
    }
    failed = s->episode.fell;
  }
  csv_close(&csv);
  return e->code;
}

// ---- the command

// the clip named; of several one must be
static const struct motion_clip *choose_clip(const struct motion *m, const char *want,
                                             struct arena *a, struct err *e) {
  const char **name = ARENA_NEW(a, const char *, m->nclip);
  for (int i = 0; i < m->nclip; i++) {
    name[i] = m->clip[i].name;
    if (want ? strcmp(want, name[i]) == 0 : m->nclip == 1) {
      return &m->clip[i];
    }
  }
  const char *near = want ? err_nearest(want, name, m->nclip) : NULL;
  if (want) {
    err_set(e, EXIT_USAGE, "--clip: no clip '%s' in %s%s%s%s", want, m->name,
            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
  } else {
    err_set(e, EXIT_USAGE, "%s has %d clips: --clip NAME says which to show, %s for one", m->name,
            m->nclip, name[0]);
  }
  return NULL;
}

static int render(struct rollout_state *s, struct arena *a, const char *run,
                  const struct render_options *o, struct err *e) {
  bool mujoco = strcmp(o->simulator, "mujoco") == 0;
  if (!mujoco && strcmp(o->simulator, "train") != 0) {
    return err_set(e, EXIT_USAGE, "--simulator is mujoco or train, not '%s'", o->simulator);
  }
  struct transfer *x = &s->x;
  if (transfer_open(x, a, run, o->run.set.v, o->run.set.n, NULL, o->timestep, e)) {
    return e->code;
  }
  const struct world *w = &x->world;
  const struct motion_clip *clip = choose_clip(&w->motion, o->clip, a, e);
  if (!clip) {
    return e->code;
  }
  if (o->start >= clip->nframe - 1) {
    return err_set(e, EXIT_USAGE, "--start %d is not before the clip's last frame, %d", o->start,
                   clip->nframe - 1);
  }
  episode_begin(&s->episode, 0, clip->first + o->start);
  transfer_start(x, &s->episode, 0);
  if (!mujoco) {
    open_lanes(s, a);
    fill_lanes(s->qpos, x->qpos, w->robot.nq, w->sim->width);
    fill_lanes(s->qvel, x->qvel, w->robot.nv, w->sim->width);
  }

  const char *dir = o->out ? o->out : x->policy.run;
  const char *traj_path = rundir_file(a, dir, "traj.csv");
  const char *strip_path = rundir_file(a, dir, "strip.csv");
  const char *film_path = rundir_file(a, dir, "film.csv");
  char title[512];
  snprintf(title, sizeof title, "%.100s tracks %.200s in %s", w->robot.name, clip->name,
           mujoco ? "MuJoCo" : "the training simulator");
  struct traj t;
  if (record(s, a, traj_path, mujoco, e) || traj_read(&t, a, traj_path, &w->robot, e) ||
      strip_write(strip_path, title, &w->robot, &t, o->poses, (o->poses + 1) / 2, e) ||
      strip_picture(strip_path, rundir_file(a, dir, "strip"), e)) {
    return e->code;
  }
  log_info("%s after %.2f s, E_track %.1f cm",
           s->episode.fell ? "fell" : "tracks to the clip's end", s->episode.time_s,
           s->episode.e_track_cm);
  log_info("wrote %s/traj.csv, strip.csv, strip.svg, strip.png", dir);
  if (o->no_film) {
    return 0;
  }
  double seconds = t.time[t.nframe - 1];
  if (strip_write(film_path, title, &w->robot, &t, (int)(seconds * FILM_RATE) + 1, 0, e) == 0 &&
      strip_film(film_path, rundir_file(a, dir, "film"), e) == 0) {
    log_info("wrote %s/film.gif", dir);
  }
  remove(film_path); // all of it is in traj.csv
  return e->code;
}

int cmd_render(int argc, char **argv) {
  struct render_options o = {.simulator = "mujoco", .poses = 14, .timestep = 0.002};
  const struct option rows[] = {
      {"simulator", OPTION_TEXT, &o.simulator, "NAME", "mujoco (default) or train", 0, 0},
      {"clip", OPTION_TEXT, &o.clip, "NAME", "which of a policy's several clips", 0, 0},
      {"start", OPTION_INT, &o.start, "FRAME", "frame of the clip to start at (default: 0)", 0,
       10000000},
      {"poses", OPTION_INT, &o.poses, "N", "stick figures in the strip (default: 14)", 2, 60},
      {"no-film", OPTION_FLAG, &o.no_film, NULL, "no moving picture", 0, 0},
      {"timestep", OPTION_REAL, &o.timestep, "S", "MuJoCo's time step (default: 0.002)", 1e-5,
       0.05},
      {"out", OPTION_TEXT, &o.out, "DIR", "folder to write to instead of RUN", 0, 0},
      OPTION_SET(o.run),
      OPTION_QUIET(o.run),
  };
  struct command_line line = {
      .usage = "render RUN",
      .about =
          "Rolls a policy out once, deterministically, and draws it over its reference: a film\n"
          "strip (strip.svg, strip.png), a moving picture (film.gif), and every state of it\n"
          "(traj.csv: time, qpos, the reference's qpos, body positions). RUN is a run's\n"
          "folder or a checkpoint in it. traj.csv holds the reference clip too: mind the\n"
          "clip's licence before you pass it on.",
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
  struct rollout_state s = {0};
  render(&s, &a, line.args[0], &o, &e);
  transfer_close(&s.x);
  arena_release(&a);
  return err_report(&e);
}
