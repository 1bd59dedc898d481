#include "plant/transfer.h"
#include "learn/randomise.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// draws of episodes here are nobody's in training
static const uint32_t transfer_env = UINT32_MAX;

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
  // the task's half-widths as published; nothing else here asks for this field
  spec->observation_noise = 1;
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
  if (spec->integrator == INTEGRATOR_RK4) { // trained in MuJoCo's RK4; all others meet its Euler
    x->plant.m->opt.integrator = mjINT_RK4;
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

int transfer_policy(struct transfer *x, struct arena *a, const char *checkpoint, struct err *e) {
  struct policy p;
  const struct robot *r = &x->world.robot;
  const char **name = ARENA_NEW(a, const char *, r->nu);
  for (int i = 0; i < r->nu; i++) {
    name[i] = r->actuator[i].name;
  }
  if (policy_load(&p, a, checkpoint, e) || policy_check(&p, x->world.track.nobs, r->nu, name, e)) {
    return e->code;
  }
  p.spec = x->policy.spec; // with what was set for this transfer
  x->policy = p;
  return 0;
}

// ---- disturbances

// The ranges of arXiv 2609.30951 (domain randomisation), scaled.
static void set_ranges(struct spec *s, double scale) {
  s->random_friction_lo = fmax(0.75 - 0.45 * scale, 0.05);
  s->random_friction_hi = 0.75 + 0.45 * scale;
  s->random_base_mass = 3 * scale;
  s->random_link_mass = fmin(0.2 * scale, 0.9);
  s->random_com = 0.03 * scale;
  s->random_gain = fmin(0.2 * scale, 0.9);
  s->random_armature = fmin(0.25 * scale, 0.9);
  s->random_dry = fmin(0.5 * scale, 1);
  s->random_pose = 0.01 * scale;
  s->random_latency = scale > 0 ? 0.5 : 0;
  s->random_push = scale;
}

static void random_on(struct transfer *x, struct arena *a, double scale) {
  const struct robot *r = &x->world.robot;
  const int W = x->world.sim->width;
  x->random = scale;
  x->ranges = x->policy.spec;
  set_ranges(&x->ranges, scale);
  x->variant = x->world;
  x->variant.spec = &x->ranges;
  x->param = ARENA_NEW(a, double, sim_nparam(x->world.model) * W);
  x->pose = ARENA_NEW(a, double, r->nu *W);
  x->factor = ARENA_NEW(a, double, 4 * r->nlink + 2 * r->nu + 2 * r->nv);
}

int transfer_perturb(struct transfer *x, struct arena *a, const char *assignment, struct err *e) {
  if (strcmp(assignment, "all") == 0) {
    x->noise = 1;
    random_on(x, a, 1);
    return 0;
  }
  static const char *const names[] = {"noise", "random"};
  for (int i = 0; i < 2; i++) {
    size_t n = strlen(names[i]);
    if (strncmp(assignment, names[i], n) != 0 || (assignment[n] != '=' && assignment[n])) {
      continue;
    }
    char *end = NULL;
    double scale = assignment[n] ? strtod(assignment + n + 1, &end) : 0;
    if (!end || end == assignment + n + 1 || *end || !(scale >= 0 && scale <= 10)) {
      return err_set(e, EXIT_USAGE, "perturb: %s needs a scale from 0 to 10: %s=1", names[i],
                     names[i]);
    }
    if (i == 0) {
      x->noise = scale;
    } else {
      random_on(x, a, scale);
    }
    return 0;
  }
  return plant_perturb(&x->plant, assignment, e);
}

static double ratio(double x, double nominal) {
  return nominal != 0 ? x / nominal : 1;
}

// The robot of this episode: the same draw as training makes, put into MuJoCo's model by factors,
// so that another plant than the one trained on varies as well.
static void vary_plant(struct transfer *x, int seed) {
  const struct world *w = &x->variant;
  const struct robot *r = &w->robot;
  const struct sim_model *m = w->model;
  const int W = w->sim->width;
  x->ranges.seed = seed;
  sim_param_default(m, x->param, W);
  struct randomise_episode drawn =
      randomise_draw(w, x->param, x->pose, 0, transfer_env, (uint32_t)seed);
  struct sim_param_block mass = sim_param_find(m, "mass"), com = sim_param_find(m, "com"),
                         gain = sim_param_find(m, "gain"), bias = sim_param_find(m, "bias"),
                         arm = sim_param_find(m, "armature"),
                         dry = sim_param_find(m, "frictionloss"), mu = sim_param_find(m, "mu");
  double *mass_f = x->factor, *com_d = mass_f + r->nlink, *kp = com_d + 3 * r->nlink,
         *kd = kp + r->nu, *arm_f = kd + r->nu, *dry_f = arm_f + r->nv;
  for (int i = 0; i < r->nlink; i++) {
    mass_f[i] = ratio(x->param[(mass.first + i) * W], r->link[i].mass);
    for (int c = 0; c < 3; c++) {
      com_d[3 * i + c] = x->param[(com.first + 3 * i + c) * W] - r->link[i].com[c];
    }
  }
  for (int i = 0; i < r->nu; i++) {
    kp[i] = ratio(x->param[(gain.first + i) * W], r->actuator[i].gain);
    kd[i] = ratio(x->param[(bias.first + 3 * i + 2) * W], r->actuator[i].bias[2]);
  }
  for (int d = 0; d < r->nv; d++) {
    arm_f[d] = ratio(x->param[(arm.first + d) * W], r->dof[d].armature);
    dry_f[d] = ratio(x->param[(dry.first + d) * W], r->dof[d].frictionloss);
  }
  plant_vary(&x->plant, &(struct plant_vary){.mass = mass_f,
                                             .com = com_d,
                                             .kp = kp,
                                             .kd = kd,
                                             .armature = arm_f,
                                             .dry = dry_f,
                                             .friction = mu.count > 0 ? x->param[mu.first * W] : -1,
                                             .latency = drawn.latency});
}

// ---- an episode

void transfer_start(struct transfer *x, const struct episode *ep, double noise) {
  x->frame = ep->start;
  if (x->random > 0) {
    vary_plant(x, ep->seed);
  }
  episode_start(ep, x->qpos, x->qvel, &x->world.track, noise);
  plant_reset(&x->plant, x->qpos, x->qvel, (uint64_t)ep->seed);
}

const double *transfer_observe(struct transfer *x, const struct episode *ep) {
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
  struct rng draw = rng_stream((uint64_t)ep->seed, RNG_OBS_NOISE, transfer_env, (uint32_t)ep->start,
                               (uint32_t)ep->nsteps);
  for (int i = 0; i < w->track.nobs && x->noise > 0; i++) {
    double half = x->noise * w->track.noise[i];
    s->obs1[i] += half > 0 ? rng_range(&draw, -half, half) : 0;
  }
  return s->obs1;
}

bool transfer_step(struct transfer *x, struct episode *ep) {
  const struct track *t = &x->world.track;
  policy_act(&x->policy, x->action, transfer_observe(x, ep), 1);
  track_ctrl(t, x->ctrl, x->action, &x->frame, 1);
  if (x->random > 0) {
    double push[6];
    for (int i = 0; i < x->world.robot.nu; i++) {
      x->ctrl[i] += x->pose[i * x->world.sim->width];
    }
    if (randomise_push(&x->variant, push, transfer_env, (uint32_t)ep->seed, ep->nsteps)) {
      plant_kick(&x->plant, push);
    }
  }
  plant_step(&x->plant, x->ctrl);
  plant_state(&x->plant, x->qpos, x->qvel);
  x->frame++;
  return episode_step(ep, t, &x->feet, x->qpos, x->qvel, x->frame);
}
