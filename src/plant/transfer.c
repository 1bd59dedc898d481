#include "plant/transfer.h"

// The observation works on lanes, as in training: all of them get the one state there is.
struct transfer_lanes {
  struct track_work *task;
  struct sim_work *sim;
  double *qpos, *qvel, *obs; // (n, W)
  double *obs1;              // (nobs)
  int frame[SIM_WIDTH];
};

static struct transfer_lanes *lanes_new(struct arena *a, const struct world *w) {
  struct transfer_lanes *s = ARENA_NEW(a, struct transfer_lanes, 1);
  int width = w->sim->width;
  s->task = track_work_new(a, &w->track, width);
  s->sim = sim_work_new(a, w->model, width);
  s->qpos = ARENA_NEW(a, double, w->robot.nq *width);
  s->qvel = ARENA_NEW(a, double, w->robot.nv *width);
  s->obs = ARENA_NEW(a, double, w->track.nobs *width);
  s->obs1 = ARENA_NEW(a, double, w->track.nobs);
  return s;
}

int transfer_open(struct transfer *x, struct arena *a, const char *run,
                  const char *const *overrides, int n, const char *plant_xml, double timestep,
                  struct err *e) {
  *x = (struct transfer){0};
  if (policy_load(&x->policy, a, run, e)) {
    return e->code;
  }
  struct spec *spec = &x->policy.spec;
  for (int i = 0; i < n; i++) {
    if (spec_set(spec, a, overrides[i], e)) {
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
      plant_open(&x->plant, a, r, plant_xml ? plant_xml : r->path, spec->control_dt, timestep, e)) {
    return e->code;
  }
  feet_find(&x->feet, r);
  x->lanes = lanes_new(a, &x->world);
  x->qpos = ARENA_NEW(a, double, r->nq);
  x->qvel = ARENA_NEW(a, double, r->nv);
  x->action = ARENA_NEW(a, double, r->nu);
  x->ctrl = ARENA_NEW(a, double, r->nu);
  return 0;
}

void transfer_close(struct transfer *x) {
  plant_close(&x->plant);
}

void transfer_start(struct transfer *x, const struct episode *ep, double noise) {
  x->frame = ep->start;
  episode_start(ep, x->qpos, x->qvel, &x->world.track, noise);
  plant_reset(&x->plant, x->qpos, x->qvel, (uint64_t)ep->seed);
}

static const double *observe(struct transfer *x) {
  const struct world *w = &x->world;
  struct transfer_lanes *s = x->lanes;
  int width = w->sim->width;
  for (int l = 0; l < width; l++) {
    for (int i = 0; i < w->robot.nq; i++) {
      s->qpos[i * width + l] = x->qpos[i];
    }
    for (int i = 0; i < w->robot.nv; i++) {
      s->qvel[i * width + l] = x->qvel[i];
    }
    s->frame[l] = x->frame;
  }
  w->task->obs_fwd(&w->track, s->task, s->sim, s->obs, s->qpos, s->qvel, s->frame);
  for (int i = 0; i < w->track.nobs; i++) {
    s->obs1[i] = s->obs[i * width];
  }
  return s->obs1;
}

bool transfer_step(struct transfer *x, struct episode *ep) {
  const struct track *t = &x->world.track;
  policy_act(&x->policy, x->action, observe(x), 1);
  track_ctrl(t, x->ctrl, x->action, &x->frame, 1);
  plant_step(&x->plant, x->ctrl);
  plant_state(&x->plant, x->qpos, x->qvel);
  x->frame++;
  return episode_step(ep, t, &x->feet, x->qpos, x->qvel, x->frame);
}
