#include "learn/evaluate.h"

struct evaluator {
  const struct world *world;
  struct sim_work *sim;
  struct track_work *task;
  struct feet feet;
  double *qpos, *qvel, *obs, *action, *ctrl, *param; // lanes
  double *qpos1, *qvel1;                             // one instance
};

struct evaluator *evaluator_new(struct arena *a, const struct world *w) {
  struct evaluator *ev = ARENA_NEW(a, struct evaluator, 1);
  const struct robot *r = &w->robot;
  int W = w->sim->width;
  ev->world = w;
  ev->sim = sim_work_new(a, w->model, W);
  ev->task = track_work_new(a, &w->track, W);
  feet_find(&ev->feet, r);
  ev->qpos = ARENA_NEW(a, double, r->nq *W);
  ev->qvel = ARENA_NEW(a, double, r->nv *W);
  ev->obs = ARENA_NEW(a, double, w->track.nobs *W);
  ev->action = ARENA_NEW(a, double, r->nu *W);
  ev->ctrl = ARENA_NEW(a, double, r->nu *W);
  ev->param = ARENA_NEW(a, double, sim_nparam(w->model) * W);
  ev->qpos1 = ARENA_NEW(a, double, r->nq);
  ev->qvel1 = ARENA_NEW(a, double, r->nv);
  sim_param_default(w->model, ev->param, W);
  return ev;
}

static void start_lane(struct evaluator *ev, const struct episode *ep, double noise, int l) {
  const struct world *w = ev->world;
  const struct robot *r = &w->robot;
  int W = w->sim->width;
  episode_start(ep, ev->qpos1, ev->qvel1, &w->track, noise);
  for (int i = 0; i < r->nq; i++) {
    ev->qpos[i * W + l] = ev->qpos1[i];
  }
  for (int i = 0; i < r->nv; i++) {
    ev->qvel[i * W + l] = ev->qvel1[i];
  }
}

// Up to W episodes side by side, until the last of them has ended. Spare lanes repeat the first.
static void run_lanes(struct evaluator *ev, struct policy *p, struct episode *episode, int n,
                      const double *noise) {
  const struct world *w = ev->world;
  const struct robot *r = &w->robot;
  int W = w->sim->width, frame[SIM_WIDTH], last[SIM_WIDTH];
  bool running[SIM_WIDTH] = {false};
  for (int l = 0; l < W; l++) {
    const struct episode *ep = &episode[l < n ? l : 0];
    start_lane(ev, ep, noise[l < n ? l : 0], l);
    frame[l] = ep->start;
    last[l] = motion_last(&w->motion, ep->start);
    running[l] = l < n;
  }
  for (int active = n; active > 0;) {
    w->task->obs_fwd(&w->track, ev->task, ev->sim, ev->obs, ev->qpos, ev->qvel, frame);
    policy_act(p, ev->action, ev->obs, W);
    track_ctrl(&w->track, ev->ctrl, ev->action, frame, W);
    w->sim->step_fwd(w->model, ev->sim, ev->qpos, ev->qvel, NULL, ev->ctrl, ev->param);
    for (int l = 0; l < W; l++) {
      frame[l] = frame[l] < last[l] ? frame[l] + 1 : last[l];
      if (!running[l]) {
        continue;
      }
      for (int i = 0; i < r->nq; i++) {
        ev->qpos1[i] = ev->qpos[i * W + l];
      }
      for (int i = 0; i < r->nv; i++) {
        ev->qvel1[i] = ev->qvel[i * W + l];
      }
      running[l] = episode_step(&episode[l], &w->track, &ev->feet, ev->qpos1, ev->qvel1, frame[l]);
      if (track_end(&w->track, ev->qpos1, ev->qvel1, frame[l]) == TRACK_FAILED) {
        episode[l].fell = true;
        running[l] = false;
      }
      active -= !running[l];
    }
  }
}

void evaluator_episodes(struct evaluator *ev, struct policy *p, struct episode *episode, int n,
                        const double *noise) {
  int W = ev->world->sim->width;
  for (int i = 0; i < n; i += W) {
    run_lanes(ev, p, episode + i, n - i < W ? n - i : W, noise + i);
  }
}

void evaluator_run(struct evaluation *v, struct arena *a, struct evaluator *ev, struct policy *p,
                   int starts, int first_seed, int last_seed, double noise) {
  const struct motion *m = &ev->world->motion;
  int n = 0;
  *v = (struct evaluation){.n = m->nclip * starts * (last_seed - first_seed + 1)};
  v->episode = ARENA_NEW(a, struct episode, v->n);
  for (int c = 0; c < m->nclip; c++) {
    for (int seed = first_seed; seed <= last_seed; seed++) {
      for (int k = 0; k < starts; k++) {
        int start = (int)((int64_t)k * (m->clip[c].nframe - 1) / starts);
        episode_begin(&v->episode[n++], seed, m->clip[c].first + start);
      }
    }
  }
  double *each = ARENA_NEW(a, double, v->n);
  for (int i = 0; i < v->n; i++) {
    each[i] = noise;
  }
  evaluator_episodes(ev, p, v->episode, v->n, each);
  int counted = 0;
  for (int i = 0; i < v->n; i++) {
    const struct episode *ep = &v->episode[i];
    v->reached += !ep->fell;
    v->survival += ep->time_s / ((motion_last(m, ep->start) - ep->start) * m->dt) / v->n;
    if (ep->e_track_cm == ep->e_track_cm) { // NaN when the first step already came apart
      v->e_track_cm += ep->e_track_cm;
      v->e_track_local_cm += ep->e_track_local_cm;
      counted++;
    }
  }
  v->e_track_cm /= counted > 0 ? counted : 1;
  v->e_track_local_cm /= counted > 0 ? counted : 1;
  v->score = v->survival - 0.1 * 0.01 * v->e_track_cm;
}
