#include "learn/rollout.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

void rollout_new(struct rollout *r, struct arena *a, const struct world *w, bool keep) {
  const struct spec *s = w->spec;
  *r = (struct rollout){
      .world = w, .spec = s, .keep = keep, .E = s->envs, .N = s->horizon, .S = s->shard};
  r->W = w->sim->width;
  r->nshard = r->E / r->S;
  r->ngroup = r->E / r->W;
  r->nq = w->robot.nq;
  r->nv = w->robot.nv;
  r->nu = w->robot.nu;
  r->nobs = w->track.nobs;
  BUG_IF(r->E % r->S || r->S % r->W);

  size_t W = (size_t)r->W, nq = (size_t)r->nq * W, nv = (size_t)r->nv * W, nu = (size_t)r->nu * W;
  size_t nobs = (size_t)r->nobs * W, rows = (size_t)r->E * (size_t)r->N;
  r->nstate = (size_t)r->ngroup * (nq + nv + nu);
  r->ncounter = (size_t)r->ngroup * 3 * W;
  r->state = ARENA_NEW(a, double, r->nstate);
  r->counter = ARENA_NEW(a, int32_t, r->ncounter);
  r->group = ARENA_NEW(a, struct lane_group, r->ngroup);
  for (int i = 0; i < r->ngroup; i++) {
    struct lane_group *g = &r->group[i];
    g->qpos = r->state + (size_t)i * (nq + nv + nu);
    g->qvel = g->qpos + nq;
    g->prev_action = g->qvel + nv;
    g->frame = r->counter + (size_t)i * 3 * W;
    g->length = g->frame + W;
    g->episode = g->length + W;
    g->obs = ARENA_NEW(a, double, nobs);
    g->dq = ARENA_NEW(a, double, nv);
    g->dv = ARENA_NEW(a, double, nv);
    g->daction = ARENA_NEW(a, double, nu);
    g->dprev = ARENA_NEW(a, double, nu);
    g->dctrl = ARENA_NEW(a, double, nu);
  }
  size_t substeps = (size_t)sim_model_options(w->model)->substeps;
  size_t loads = substeps * (size_t)sim_nload(w->model) * W;
  r->step = ARENA_NEW(a, struct lane_step, r->N * r->ngroup);
  for (int i = 0; i < r->N * r->ngroup; i++) {
    struct lane_step *p = &r->step[i];
    if (!keep && i >= r->ngroup) {
      *p = r->step[i % r->ngroup]; // all steps of a group in the same memory
      continue;
    }
    p->trail = ARENA_NEW(a, double, substeps *(nq + nv));
    p->after = ARENA_NEW(a, double, nq + nv);
    p->ctrl = ARENA_NEW(a, double, nu);
    p->load = s->bundle_size > 1 ? ARENA_NEW(a, double, loads) : NULL;
    p->action = ARENA_NEW(a, double, nu);
    p->noise = ARENA_NEW(a, double, nu);
    p->prev = ARENA_NEW(a, double, nu);
  }
  r->sum = ARENA_NEW(a, struct rollout_sums, r->nshard);
  for (int i = 0; i < r->nshard; i++) {
    r->sum[i].obs = ARENA_NEW(a, double, nobs);
    r->sum[i].obs_square = ARENA_NEW(a, double, nobs);
  }
  r->param = ARENA_NEW(a, double, (size_t)sim_nparam(w->model) * W);
  sim_param_default(w->model, r->param, r->W);

  r->nparam = sim_nparam(w->model);
  r->randomised = randomise_on(s);
  for (int i = 0; i < r->ngroup; i++) {
    struct lane_group *g = &r->group[i];
    g->param = r->param;
    if (r->randomised) {
      int versions = keep ? r->N + 2 : 1;
      g->version = ARENA_NEW(a, double *, versions);
      for (int k = 0; k < versions; k++) {
        g->version[k] = ARENA_NEW(a, double, (r->nparam + r->nu) * r->W);
      }
    }
  }
  bundle_new(&r->bundle, a, w);

  size_t numbers = rows * (size_t)r->nobs;
  r->obs = ARENA_NEW(a, float, numbers);
  r->input = s->observation_noise > 0 ? ARENA_NEW(a, float, numbers) : r->obs;
  r->next = ARENA_NEW(a, float, numbers);
  size_t residuals = rows * (size_t)w->track.nres;
  r->residual = residuals ? ARENA_NEW(a, float, residuals) : NULL;
  r->slope = residuals ? ARENA_NEW(a, float, residuals) : NULL;
  r->reward = ARENA_NEW(a, double, rows);
  r->end = ARENA_NEW(a, unsigned char, rows);

  double *q1 = ARENA_NEW(a, double, r->nq), *v1 = ARENA_NEW(a, double, r->nv);
  for (int e = 0; e < r->E; e++) {
    struct lane_group *g = &r->group[e / r->W];
    int l = e % r->W, frame;
    track_reset(&w->track, q1, v1, &frame, (uint32_t)e, 0);
    g->frame[l] = frame;
    for (int i = 0; i < r->nq; i++) {
      g->qpos[i * r->W + l] = q1[i];
    }
    for (int i = 0; i < r->nv; i++) {
      g->qvel[i * r->W + l] = v1[i];
    }
  }
}

struct rollout_work *rollout_work_new(struct arena *a, const struct rollout *r) {
  struct rollout_work *w = ARENA_NEW(a, struct rollout_work, 1);
  w->sim = sim_work_new(a, r->world->model, r->W);
  w->task = track_work_new(a, &r->world->track, r->W);
  w->qpos1 = ARENA_NEW(a, double, r->nq);
  w->qvel1 = ARENA_NEW(a, double, r->nv);
  w->term = ARENA_NEW(a, double, TRACK_NTERM * r->W);
  w->dobs = ARENA_NEW(a, double, r->nobs * r->W);
  w->noisy = ARENA_NEW(a, double, r->nobs * r->W);
  w->delta = ARENA_NEW(a, double, r->world->track.nres * r->W);
  w->bundle = bundle_work_new(a, &r->bundle);
  w->view = ARENA_NEW(a, struct bundle_view, r->S);
  return w;
}

size_t rollout_row(const struct rollout *r, int t, int e) {
  return ((size_t)(e / r->S) * (size_t)r->N + (size_t)t) * (size_t)r->S + (size_t)(e % r->S);
}

// first row of a group at step t, as a place in an array of observations
static float *group_rows(const struct rollout *r, float *x, int t, int g) {
  return x + rollout_row(r, t, g * r->W) * (size_t)r->nobs;
}

static struct lane_step *step_of(const struct rollout *r, int t, int g) {
  return &r->step[t * r->ngroup + g];
}

static struct rollout_sums *sums_of(const struct rollout *r, int g) {
  return &r->sum[g * r->W / r->S];
}

void rollout_reference_statistics(struct normalizer *z, struct arena *a, const struct rollout *r,
                                  struct rollout_work *w) {
  const struct motion *m = &r->world->motion;
  const int W = r->W;
  double *qpos = ARENA_NEW(a, double, r->nq *W), *qvel = ARENA_NEW(a, double, r->nv *W);
  double *sum = ARENA_NEW(a, double, r->nobs), *square = ARENA_NEW(a, double, r->nobs);
  // two passes: the mean first, the spread about it second
  for (int pass = 0; pass < 2; pass++) {
    for (int f = 0; f < m->nframe; f += W) {
      int frame[SIM_WIDTH];
      for (int l = 0; l < W; l++) {
        frame[l] = f + l < m->nframe ? f + l : m->nframe - 1;
        for (int i = 0; i < r->nq; i++) {
          qpos[i * W + l] = m->qpos[(size_t)frame[l] * (size_t)m->nq + (size_t)i];
        }
        for (int i = 0; i < r->nv; i++) {
          qvel[i * W + l] = m->qvel[(size_t)frame[l] * (size_t)m->nv + (size_t)i];
        }
      }
      r->world->task->obs_fwd(&r->world->track, w->task, w->sim, w->dobs, qpos, qvel, frame);
      for (int i = 0; i < r->nobs; i++) {
        for (int l = 0; l < W && f + l < m->nframe; l++) {
          double d = w->dobs[i * W + l] - z->mean[i];
          sum[i] += pass == 0 ? d / m->nframe : 0;
          square[i] += pass == 1 ? d * d / m->nframe : 0;
        }
      }
    }
    for (int i = 0; i < r->nobs; i++) {
      z->mean[i] += pass == 0 ? sum[i] : 0;
      // numbers that the reference holds still get room to move
      z->var[i] = square[i] > 1e-4 ? square[i] : 1e-4;
    }
  }
  z->count = 100;
  normalizer_refresh(z);
}

// ---- forward

// draws what lane l's episode has of its own into the group's newest version
static void randomise_lane(struct rollout *r, int g, int l) {
  struct lane_group *group = &r->group[g];
  group->latency[l] = randomise_draw(r->world, group->param, group->offset, l,
                                     (uint32_t)(g * r->W + l), (uint32_t)group->episode[l])
                          .latency;
}

static void randomise_version(struct rollout *r, int g, const double *from) {
  struct lane_group *group = &r->group[g];
  if (!r->keep && from) {
    return; // nothing will look for the old one
  }
  double *to = group->version[group->nversion++];
  if (from) {
    memcpy(to, from, sizeof(double) * (size_t)((r->nparam + r->nu) * r->W));
  } else {
    memcpy(to, r->param, sizeof(double) * (size_t)(r->nparam * r->W));
  }
  group->param = to;
  group->offset = to + r->nparam * r->W;
}

void rollout_begin(struct rollout *r, int shard) {
  int g0 = shard * r->S / r->W, g1 = g0 + r->S / r->W;
  for (int g = g0; r->randomised && g < g1; g++) {
    r->group[g].nversion = 0;
    randomise_version(r, g, NULL);
    for (int l = 0; l < r->W; l++) {
      randomise_lane(r, g, l);
    }
  }
  if (bundle_on(&r->bundle)) {
    bundle_begin(&r->bundle, shard);
  }
  struct rollout_sums *s = &r->sum[shard], empty = {.obs = s->obs, .obs_square = s->obs_square};
  size_t bytes = sizeof(double) * (size_t)r->nobs * (size_t)r->W;
  memset(s->obs, 0, bytes);
  memset(s->obs_square, 0, bytes);
  *s = empty;
}

// lanes' draws of one purpose: counted by environment, episode and step of the episode
static struct rng lane_stream(const struct rollout *r, enum rng_purpose purpose, int g, int l) {
  const struct lane_group *group = &r->group[g];
  return rng_stream((uint64_t)r->spec->seed, purpose, (uint32_t)(g * r->W + l),
                    (uint32_t)group->episode[l], (uint32_t)group->length[l]);
}

void rollout_observe(struct rollout *r, struct rollout_work *w, const struct normalizer *z, int t,
                     int g) {
  struct lane_group *group = &r->group[g];
  const int W = r->W;
  // later steps find the observation that rollout_advance left
  if (t == 0) {
    int frame[SIM_WIDTH];
    memcpy(frame, group->frame, sizeof(int) * (size_t)W);
    r->world->task->obs_fwd(&r->world->track, w->task, w->sim, group->obs, group->qpos, group->qvel,
                            frame);
  }
  struct rollout_sums *sum = sums_of(r, g);
  for (int i = 0; i < r->nobs; i++) {
    for (int l = 0; l < W; l++) {
      double d = group->obs[i * W + l] - z->mean[i];
      sum->obs[i * W + l] += d;
      sum->obs_square[i * W + l] += d * d;
    }
  }
  normalizer_fwd(group_rows(r, r->obs, t, g), z, group->obs, W);
  if (r->input != r->obs) {
    const double *half_width = r->world->track.noise;
    for (int l = 0; l < W; l++) {
      struct rng draw = lane_stream(r, RNG_OBS_NOISE, g, l);
      for (int i = 0; i < r->nobs; i++) {
        double n = half_width[i] > 0 ? rng_range(&draw, -half_width[i], half_width[i]) : 0;
        w->noisy[i * W + l] = group->obs[i * W + l] + n;
      }
    }
    normalizer_fwd(group_rows(r, r->input, t, g), z, w->noisy, W);
  }
}

void rollout_act(struct rollout *r, const float *mean, const double *sigma, int t, int g) {
  struct lane_step *p = step_of(r, t, g);
  const int W = r->W;
  for (int l = 0; l < W; l++) {
    struct rng draw = lane_stream(r, RNG_ACTION, g, l);
    for (int j = 0; j < r->nu; j++) {
      double n = rng_normal(&draw);
      p->noise[j * W + l] = n;
      p->action[j * W + l] = (double)mean[l * r->nu + j] + sigma[j] * n;
    }
  }
}

static void take_lane(double *x1, const double *x, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x1[i] = x[i * W + l];
  }
}
static void put_lane(double *x, const double *x1, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x[i * W + l] = x1[i];
  }
}
static void zero_lane(double *x, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x[i * W + l] = 0;
  }
}

// episode of lane l ended with step t: count it, start the next
static void next_episode(struct rollout *r, struct rollout_work *w, struct lane_step *p, int t,
                         int g, int l) {
  struct lane_group *group = &r->group[g];
  struct rollout_sums *sum = sums_of(r, g);
  int env = g * r->W + l, frame;
  sum->episodes++;
  sum->episode_steps += group->length[l];
  sum->failed += p->end[l] != TRACK_TRUNCATED;
  sum->truncated += p->end[l] == TRACK_TRUNCATED;
  if (p->end[l] == TRACK_NONFINITE && sum->nonfinite++ == 0) {
    sum->nonfinite_step = t;
    sum->nonfinite_env = env;
  }
  if (bundle_on(&r->bundle)) {
    bundle_close(&r->bundle, env);
  }
  group->episode[l]++;
  group->length[l] = 0;
  track_reset(&r->world->track, w->qpos1, w->qvel1, &frame, (uint32_t)env,
              (uint32_t)group->episode[l]);
  group->frame[l] = frame;
  put_lane(group->qpos, w->qpos1, r->nq, r->W, l);
  put_lane(group->qvel, w->qvel1, r->nv, r->W, l);
  zero_lane(group->prev_action, r->nu, r->W, l);
}

// resets and pushes after step t; true when a state changed
static bool between_steps(struct rollout *r, struct rollout_work *w, struct lane_step *p, int t,
                          int g) {
  struct lane_group *group = &r->group[g];
  bool changed = false, renewed = false;
  for (int l = 0; l < r->W; l++) {
    double push[6];
    group->frame[l] = p->frame[l] + 1;
    group->length[l]++;
    if (p->end[l] != TRACK_RUNS) {
      next_episode(r, w, p, t, g, l);
      if (r->randomised) {
        if (!renewed) {
          randomise_version(r, g, group->param);
        }
        renewed = true;
        randomise_lane(r, g, l);
      }
      changed = true;
    } else if (randomise_push(r->world, push, (uint32_t)(g * r->W + l), (uint32_t)group->episode[l],
                              group->length[l])) {
      for (int i = 0; i < 6; i++) { // a constant: cotangents pass unchanged
        group->qvel[i * r->W + l] += push[i];
      }
      changed = true;
    }
  }
  return changed;
}

// what the environments of a shard show to their bundles at step t
static const struct bundle_view *bundle_views(struct rollout *r, struct rollout_work *w, int t,
                                              int shard) {
  for (int i = 0; i < r->S; i++) {
    int g = (shard * r->S + i) / r->W, l = i % r->W;
    struct lane_group *group = &r->group[g];
    const struct lane_step *p = step_of(r, t, g);
    w->view[i] = (struct bundle_view){.lane = l,
                                      .episode = group->episode[l],
                                      .length = group->length[l],
                                      .qpos = group->qpos,
                                      .qvel = group->qvel,
                                      .trail = p->trail,
                                      .load = p->load,
                                      .ctrl = p->ctrl,
                                      .param = p->param,
                                      .dq = group->dq,
                                      .dv = group->dv,
                                      .dctrl = group->dctrl};
  }
  return w->view;
}

void rollout_step(struct rollout *r, struct rollout_work *w, int t, int shard) {
  const struct world *world = r->world;
  int g0 = shard * r->S / r->W, g1 = g0 + r->S / r->W;
  for (int g = g0; g < g1; g++) {
    struct lane_group *group = &r->group[g];
    struct lane_step *p = step_of(r, t, g);
    for (int l = 0; l < r->W; l++) {
      p->frame[l] = group->frame[l];
      p->first[l] = group->length[l] == 0;
    }
    memcpy(p->prev, group->prev_action, sizeof(double) * (size_t)(r->nu * r->W));
    track_ctrl(&world->track, p->ctrl, p->action, p->frame, r->W);
    p->param = group->param;
    for (int l = 0; r->randomised && l < r->W; l++) {
      // a late action is that of the step before; the first of an episode has none to wait for
      p->late[l] = group->latency[l] && !p->first[l];
      for (int j = 0; j < r->nu; j++) {
        int i = j * r->W + l;
        p->ctrl[i] += group->offset[i];
        if (p->late[l]) {
          p->ctrl[i] += r->spec->control_action_scale * (p->prev[i] - p->action[i]);
        }
      }
    }
    world->sim->substeps_fwd(world->model, w->sim, group->qpos, group->qvel, p->trail, p->load,
                             p->ctrl, p->param, 0, sim_model_options(world->model)->substeps);
  }
  if (bundle_on(&r->bundle)) {
    bundle_fwd(&r->bundle, w->bundle, w->sim, bundle_views(r, w, t, shard), t, shard);
  }
}

// rows of the residual of the state reached
static void store_residual(struct rollout *r, struct rollout_work *w, int t, int g) {
  const struct lane_step *p = step_of(r, t, g);
  const int W = r->W, nres = r->world->track.nres;
  float *row = r->residual + rollout_row(r, t, g * W) * (size_t)nres;
  int reached[SIM_WIDTH];
  for (int l = 0; l < W; l++) {
    reached[l] = p->frame[l] + 1;
  }
  r->world->task->residual_fwd(&r->world->track, w->task, w->sim, w->delta, p->after,
                               p->after + r->nq * W, reached);
  for (int l = 0; l < W; l++) {
    bool dead = p->end[l] == TRACK_NONFINITE;
    for (int i = 0; i < nres; i++) {
      row[l * nres + i] = dead ? 0 : (float)w->delta[i * W + l];
    }
  }
}

void rollout_reach(struct rollout *r, struct rollout_work *w, const struct normalizer *z, int t,
                   int g) {
  const struct world *world = r->world;
  const struct track *track = &world->track;
  struct lane_group *group = &r->group[g];
  struct lane_step *p = step_of(r, t, g);
  struct rollout_sums *sum = sums_of(r, g);
  const int W = r->W;
  size_t nq = (size_t)(r->nq * W), nv = (size_t)(r->nv * W), nu = (size_t)(r->nu * W);

  int reached[SIM_WIDTH];
  for (int l = 0; l < W; l++) {
    reached[l] = group->frame[l] + 1;
  }
  memcpy(p->after, group->qpos, sizeof(double) * nq);
  memcpy(p->after + nq, group->qvel, sizeof(double) * nv);
  memcpy(group->prev_action, p->action, sizeof(double) * nu);

  double *reward = r->reward + (size_t)t * (size_t)r->E + (size_t)(g * W);
  world->task->reward_fwd(track, w->task, w->sim, reward, w->term, group->qpos, group->qvel,
                          p->action, p->prev, reached, p->first);
  world->task->obs_fwd(track, w->task, w->sim, group->obs, group->qpos, group->qvel, reached);

  for (int l = 0; l < W; l++) {
    take_lane(w->qpos1, group->qpos, r->nq, W, l);
    take_lane(w->qvel1, group->qvel, r->nv, W, l);
    p->end[l] = track_end(track, w->qpos1, w->qvel1, reached[l]);
    if (!isfinite(reward[l])) {
      p->end[l] = TRACK_NONFINITE;
    }
    if (p->end[l] == TRACK_NONFINITE) {
      reward[l] = 0;
      zero_lane(group->obs, r->nobs, W, l);
    } else {
      sum->term[TRACK_JOINT_SQ] += sqrt(w->term[TRACK_JOINT_SQ * W + l]);
      sum->term[TRACK_ROOT_SQ] += sqrt(w->term[TRACK_ROOT_SQ * W + l]);
      sum->term[TRACK_RATE] += w->term[TRACK_RATE * W + l];
      if (t == r->N - 1) { // scalar kinematics are slow: one look per window
        double world_error, local_error;
        track_error(track, w->qpos1, reached[l], &world_error, &local_error);
        sum->e_track += world_error;
        sum->e_track_n++;
      }
    }
    r->end[(size_t)t * (size_t)r->E + (size_t)(g * W + l)] = (unsigned char)p->end[l];
  }
  normalizer_fwd(group_rows(r, r->next, t, g), z, group->obs, W);
  if (r->residual) {
    store_residual(r, w, t, g);
  }

  if (between_steps(r, w, p, t, g)) {
    int frame[SIM_WIDTH];
    memcpy(frame, group->frame, sizeof(int) * (size_t)W);
    world->task->obs_fwd(track, w->task, w->sim, group->obs, group->qpos, group->qvel, frame);
  }
}

void rollout_merge_observations(struct normalizer *z, struct rollout *r) {
  // shards in order, then the lanes of each number
  struct rollout_sums *total = &r->sum[0];
  for (int k = 1; k < r->nshard; k++) {
    for (int i = 0; i < r->nobs * r->W; i++) {
      total->obs[i] += r->sum[k].obs[i];
      total->obs_square[i] += r->sum[k].obs_square[i];
    }
  }
  for (int i = 0; i < r->nobs; i++) {
    double sum = 0, square = 0;
    for (int l = 0; l < r->W; l++) {
      sum += total->obs[i * r->W + l];
      square += total->obs_square[i * r->W + l];
    }
    total->obs[i] = sum;
    total->obs_square[i] = square;
  }
  normalizer_merge(z, total->obs, total->obs_square, (double)r->E * r->N);
}

// ---- backward

static bool lane_is_finite(const double *x, int n, int W, int l) {
  bool finite = true;
  for (int i = 0; i < n; i++) {
    finite &= isfinite(x[i * W + l]) != 0;
  }
  return finite;
}

// the discriminator's part of the reward, by way of the residual of the state reached
static void residual_bwd(struct rollout *r, struct rollout_work *w, const double *dreward, int t,
                         int g) {
  const struct lane_step *p = step_of(r, t, g);
  struct lane_group *group = &r->group[g];
  const int W = r->W, nres = r->world->track.nres;
  const float *slope = r->slope + rollout_row(r, t, g * W) * (size_t)nres;
  int reached[SIM_WIDTH];
  for (int l = 0; l < W; l++) {
    reached[l] = p->frame[l] + 1;
    for (int i = 0; i < nres; i++) {
      w->delta[i * W + l] = dreward[l] * (double)slope[l * nres + i];
    }
  }
  r->world->task->residual_bwd(&r->world->track, w->task, w->sim, group->dq, group->dv, w->delta,
                               p->after, p->after + r->nq * W, reached);
}

void rollout_reach_bwd(struct rollout *r, struct rollout_work *w, const double *dreward,
                       const double *dobs, int t, int g) {
  const struct world *world = r->world;
  const struct track *track = &world->track;
  struct lane_group *group = &r->group[g];
  const struct lane_step *p = step_of(r, t, g);
  const int W = r->W;
  size_t nq = (size_t)(r->nq * W), nu = (size_t)(r->nu * W);

  // nothing flows back over the window's end or through a reset
  int reached[SIM_WIDTH];
  for (int l = 0; l < W; l++) {
    reached[l] = p->frame[l] + 1;
    if (t == r->N - 1 || p->end[l] != TRACK_RUNS) {
      zero_lane(group->dq, r->nv, W, l);
      zero_lane(group->dv, r->nv, W, l);
      zero_lane(group->dprev, r->nu, W, l);
    }
  }
  const double *qpos = p->after, *qvel = p->after + nq;
  if (dobs) {
    world->task->obs_bwd(track, w->task, w->sim, group->dq, group->dv, dobs, qpos, qvel, reached);
  }
  // this action's cotangent starts with what the next step's action-rate term gave it
  memcpy(group->daction, group->dprev, sizeof(double) * nu);
  memset(group->dprev, 0, sizeof(double) * nu);
  world->task->reward_bwd(track, w->task, w->sim, group->dq, group->dv, group->daction,
                          group->dprev, dreward, qpos, qvel, p->action, p->prev, reached, p->first);
  if (r->slope) {
    residual_bwd(r, w, dreward, t, g);
  }
}

// Nominal substeps backward, from the last to the first; where a lane's branches began, the
// cotangent that came back through them takes the place of the lane's own.
static void nominal_bwd(struct rollout *r, struct rollout_work *w, int t, int g) {
  const struct world *world = r->world;
  struct lane_group *group = &r->group[g];
  const struct lane_step *p = step_of(r, t, g);
  int end = sim_model_options(world->model)->substeps;
  bool bundles = bundle_on(&r->bundle);
  memset(group->dctrl, 0, sizeof(double) * (size_t)(r->nu * r->W));
  while (end > 0) {
    int first = 0;
    for (int l = 0; bundles && l < r->W; l++) {
      int began = bundle_first(&r->bundle, t, g * r->W + l);
      first = began < end && began > first ? began : first;
    }
    world->sim->substeps_bwd(world->model, w->sim, group->dq, group->dv, group->dctrl, NULL,
                             p->trail, p->ctrl, p->param, first, end);
    for (int l = 0; bundles && l < r->W; l++) {
      int env = g * r->W + l;
      if (bundle_first(&r->bundle, t, env) == first) {
        bundle_inject(&r->bundle, group->dq, group->dv, group->dctrl, l, env);
      }
    }
    end = first;
  }
}

static void drop_bad_cotangents(struct rollout *r, int t, int g) {
  struct lane_group *group = &r->group[g];
  const struct lane_step *p = step_of(r, t, g);
  const int W = r->W;
  struct rollout_sums *sum = sums_of(r, g);
  for (int l = 0; l < W; l++) {
    bool dead = p->end[l] == TRACK_NONFINITE;
    bool finite =
        lane_is_finite(group->dq, r->nv, W, l) && lane_is_finite(group->dv, r->nv, W, l) &&
        lane_is_finite(group->daction, r->nu, W, l) && lane_is_finite(group->dprev, r->nu, W, l);
    if (!dead && !finite && sum->bad_cotangent++ == 0) {
      sum->bad_step = t;
      sum->bad_env = g * W + l;
    }
    if (dead || !finite) {
      zero_lane(group->dq, r->nv, W, l);
      zero_lane(group->dv, r->nv, W, l);
      zero_lane(group->daction, r->nu, W, l);
      zero_lane(group->dprev, r->nu, W, l);
    }
    if (p->first[l]) {
      zero_lane(group->dprev, r->nu, W, l);
    }
  }
}

void rollout_step_bwd(struct rollout *r, struct rollout_work *w, int t, int shard) {
  int g0 = shard * r->S / r->W, g1 = g0 + r->S / r->W;
  if (bundle_on(&r->bundle)) {
    bundle_bwd(&r->bundle, w->bundle, w->sim, bundle_views(r, w, t, shard), t, shard);
  }
  for (int g = g0; g < g1; g++) {
    struct lane_group *group = &r->group[g];
    nominal_bwd(r, w, t, g);
    const struct lane_step *p = step_of(r, t, g);
    for (int i = 0; i < r->nu * r->W; i++) {
      double *d = r->randomised && p->late[i % r->W] ? group->dprev : group->daction;
      d[i] += r->spec->control_action_scale * group->dctrl[i];
    }
    drop_bad_cotangents(r, t, g);
  }
}

void rollout_observe_bwd(struct rollout *r, struct rollout_work *w, const double *dobs, int t,
                         int g) {
  struct lane_group *group = &r->group[g];
  const struct lane_step *p = step_of(r, t, g);
  size_t nq = (size_t)(r->nq * r->W);
  r->world->task->obs_bwd(&r->world->track, w->task, w->sim, group->dq, group->dv, dobs, p->trail,
                          p->trail + nq, p->frame);
}
