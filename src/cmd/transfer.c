// dsim transfer RUN: the policy of a run in MuJoCo. Same observation code, other physics.
#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/episodes.h"
#include "cmd/options.h"
#include "learn/policy.h"
#include "learn/world.h"
#include "plant/plant.h"
#include <stdio.h>
#include <string.h>

struct transfer { // what one episode needs
  struct policy policy;
  struct world world;
  struct plant plant;
  struct feet feet;
  struct track_work *tw;
  struct sim_work *sw;
  double *qpos, *qvel; // lanes
  double *qpos1, *qvel1, *obs, *obs1, *action, *ctrl;
  int frame[SIM_WIDTH];
};

static int open_all(struct transfer *x, struct arena *a, const char *run_path, const char *robot,
                    const struct option_list *set, double timestep, struct err *e) {
  if (policy_load(&x->policy, a, run_path, e)) {
    return e->code;
  }
  struct spec *spec = &x->policy.spec;
  for (int i = 0; i < set->n; i++) {
    if (spec_set(spec, a, set->v[i], e)) {
      return e->code;
    }
  }
  if (spec_check(spec, e) || world_open(&x->world, a, spec, e)) {
    return e->code;
  }
  const struct robot *r = &x->world.robot;
  const char **name = ARENA_NEW(a, const char *, r->nu);
  for (int i = 0; i < r->nu; i++) {
    name[i] = r->actuator[i].name;
  }
  if (policy_check(&x->policy, x->world.track.nobs, r->nu, name, e) ||
      plant_open(&x->plant, a, r, robot ? robot : r->path, spec->control_dt, timestep, e)) {
    return e->code;
  }
  int width = x->world.sim->width;
  x->tw = track_work_new(a, &x->world.track, width);
  x->sw = sim_work_new(a, x->world.model, width);
  x->qpos = ARENA_NEW(a, double, r->nq *width);
  x->qvel = ARENA_NEW(a, double, r->nv *width);
  x->obs = ARENA_NEW(a, double, x->world.track.nobs *width);
  x->qpos1 = ARENA_NEW(a, double, r->nq);
  x->qvel1 = ARENA_NEW(a, double, r->nv);
  x->obs1 = ARENA_NEW(a, double, x->world.track.nobs);
  x->action = ARENA_NEW(a, double, r->nu);
  x->ctrl = ARENA_NEW(a, double, r->nu);
  feet_find(&x->feet, r);
  return 0;
}

// the observation works on lanes: all of them get the one state there is
static void observe(struct transfer *x, int frame) {
  const struct world *w = &x->world;
  int width = w->sim->width;
  for (int l = 0; l < width; l++) {
    for (int i = 0; i < w->robot.nq; i++) {
      x->qpos[i * width + l] = x->qpos1[i];
    }
    for (int i = 0; i < w->robot.nv; i++) {
      x->qvel[i * width + l] = x->qvel1[i];
    }
    x->frame[l] = frame;
  }
  w->task->obs_fwd(&w->track, x->tw, x->sw, x->obs, x->qpos, x->qvel, x->frame);
  for (int i = 0; i < w->track.nobs; i++) {
    x->obs1[i] = x->obs[i * width];
  }
}

// The start of episode `seed`: the reference at frame, with a fifth of the paper's reset noise
// unless exact.
static void start_state(struct transfer *x, int seed, int frame, bool exact) {
  struct spec spec = x->policy.spec;
  struct track track = x->world.track;
  track.spec = &spec;
  spec.seed = seed;
  spec.reset_first = 1;
  spec.reset_noise = 0.2;
  if (exact) {
    const struct motion *mo = &x->world.motion;
    memcpy(x->qpos1, mo->qpos + (size_t)frame * mo->nq, sizeof(double) * mo->nq);
    memcpy(x->qvel1, mo->qvel + (size_t)frame * mo->nv, sizeof(double) * mo->nv);
  } else {
    BUG_IF(frame != 0);
    track_reset(&track, x->qpos1, x->qvel1, &frame, 0, 0);
  }
}

static void run_episode(struct episode *ep, struct transfer *x, int seed, int start, bool exact) {
  const struct track *t = &x->world.track;
  int frame = start;
  episode_begin(ep, seed, start);
  start_state(x, seed, start, exact);
  plant_reset(&x->plant, x->qpos1, x->qvel1, (uint64_t)seed);
  do {
    observe(x, frame);
    policy_act(&x->policy, x->action, x->obs1, 1);
    track_ctrl(t, x->ctrl, x->action, &frame, 1);
    plant_step(&x->plant, x->ctrl);
    plant_state(&x->plant, x->qpos1, x->qvel1);
    frame++;
  } while (episode_step(ep, t, &x->feet, x->qpos1, x->qvel1, frame));
}

int cmd_transfer(int argc, char **argv) {
  struct run_options run = {0};
  struct option_list perturb = {0};
  int episodes = 5, starts = 0;
  double timestep = 0.002;
  const char *robot = NULL, *out = NULL;
  const struct option rows[] = {
      {"episodes", OPTION_INT, &episodes, "N",
       "episodes from the clip's start; the first exact, the others with a fifth of the reset "
       "noise",
       1, 100000},
      {"starts", OPTION_INT, &starts, "K", "instead: K exact starts spread evenly over the clip", 1,
       100000},
      {"robot", OPTION_TEXT, &robot, "XML", "simulate this MJCF instead of the one trained on", 0,
       0},
      {"perturb", OPTION_LIST, &perturb, "NAME=VALUE",
       "disturb the plant (repeatable): friction=MU; mass, gain, armature, dry=FACTOR; "
       "latency=STEPS; "
       "push=M/S every 2 s",
       0, 0},
      {"timestep", OPTION_REAL, &timestep, "S", "MuJoCo's time step", 1e-5, 0.05},
      {"out", OPTION_TEXT, &out, "FILE", "CSV to write instead of RUN/transfer.csv", 0, 0},
      OPTION_SET(run),
      OPTION_QUIET(run),
      OPTION_JSON(run),
  };
  struct command_line line = {
      .usage = "transfer RUN",
      .about =
          "Runs a trained policy in MuJoCo, an independent simulator with other contacts, joint\n"
          "limits and dry friction, and reports falls (root below terminate.height), the mean\n"
          "distance of all bodies to the reference in the world (E_track) and relative to the "
          "root\n"
          "(local), and the mean depth of a foot's deepest point while it is below the floor.\n"
          "RUN is a run's folder or a checkpoint in it. Results go to RUN/transfer.csv; those "
          "with\n"
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
  log_quiet(run.quiet);
  struct arena a;
  arena_init(&a);
  struct transfer x = {0};
  open_all(&x, &a, line.args[0], robot, &run.set, timestep, &e);
  for (int i = 0; i < perturb.n && !e.code; i++) {
    plant_perturb(&x.plant, &a, perturb.v[i], &e);
  }
  if (!e.code) {
    char simulator[32];
    snprintf(simulator, sizeof simulator, "mujoco %s", mj_versionString());
    int n = starts ? starts : episodes;
    double *saturation = ARENA_NEW(&a, double, n);
    struct episodes es = {simulator, x.world.motion.name, n, ARENA_NEW(&a, struct episode, n),
                          saturation};
    for (int k = 0; k < n; k++) {
      // a start leaves at least one step
      int start = starts ? (int)((long)k * (x.world.motion.nframe - 1) / starts) : 0;
      run_episode(&es.episode[k], &x, k, start, starts || k == 0);
      saturation[k] = plant_saturation(&x.plant);
      log_progress("episode %d of %d: %s after %.2f s, E_track %.1f cm", k + 1, n,
                   es.episode[k].fell ? "fell" : "clip end", es.episode[k].time_s,
                   es.episode[k].e_track_cm);
    }
    log_progress_end();

    bool nominal = !starts && !robot && !perturb.n && !run.set.n && timestep == 0.002;
    if (!out && nominal) {
      char *path = ARENA_NEW(&a, char, strlen(x.policy.run) + 16);
      sprintf(path, "%s/transfer.csv", x.policy.run);
      out = path;
    }
    double dt = x.world.motion.dt;
    if (out && episodes_write(&es, out, dt, &e) == 0) {
      log_info("wrote %s", out);
    }
    if (run.json) {
      episodes_json(&es, dt, &e);
    } else {
      episodes_print(&es, &a);
    }
  }
  if (x.plant.m) {
    plant_close(&x.plant);
  }
  arena_release(&a);
  return err_report(&e);
}
