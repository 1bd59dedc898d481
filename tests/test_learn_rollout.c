// Gradients through a window of environments on the G1 in contact with the floor: the way back in
// double, against central differences in actions; then the whole loss, float networks included,
// along directions of the policy's weights. Episodes end inside the window.
#include "base/file.h"
#include "learn/gemm.h"
#include "learn/shac.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { E = 16, N = 12 };

struct scene {
  struct arena arena;
  struct spec spec;
  struct world world;
  struct shac shac;
  double *state; // of the environments before the window
  int32_t *counter;
};

static void remember(struct scene *s) {
  memcpy(s->state, s->shac.rollout.state, sizeof(double) * s->shac.rollout.nstate);
  memcpy(s->counter, s->shac.rollout.counter, sizeof(int32_t) * s->shac.rollout.ncounter);
}
static void restore(struct scene *s) {
  memcpy(s->shac.rollout.state, s->state, sizeof(double) * s->shac.rollout.nstate);
  memcpy(s->shac.rollout.counter, s->counter, sizeof(int32_t) * s->shac.rollout.ncounter);
}

static bool adaptive; // bundles of the next scene

static struct scene *scene_new_with(double observation_noise, int size, double sigma,
                                    bool randomised, enum spec_reward reward) {
  struct scene *s = calloc(1, sizeof *s);
  struct err e = {0};
  arena_init(&s->arena);
  spec_default(&s->spec);
  struct spec *p = &s->spec;
  p->robot = "robots/g1.xml";
  p->motion = "motions/walk.csv.gz";
  p->envs = E;
  p->horizon = N;
  p->shard = 8;
  p->threads = 1;
  p->actor_layers = (struct spec_ints){.n = 2, .v = {24, 16}};
  p->critic_layers = (struct spec_ints){.n = 1, .v = {16}};
  p->observation_noise = observation_noise;
  p->seed = 9;
  p->reward = reward;
  p->bundle_size = size;
  p->bundle_sigma_p = sigma;
  p->bundle_sigma_v = 2 * sigma;
  p->bundle_force = 250; // so low that many windows open
  p->bundle_adaptive = adaptive;
  p->bundle_tolerance = 0.04; // so small that most loaded contacts open one
  if (randomised) {           // the paper's ranges, with many late actions
    p->random_friction_hi = 1.2;
    p->random_base_mass = 3;
    p->random_link_mass = p->random_gain = 0.2;
    p->random_com = 0.03;
    p->random_armature = 0.25;
    p->random_dry = p->random_latency = 0.5;
    p->random_pose = 0.01;
    p->random_push = 1;
  }
  p->terminate_root = 0.05; // so close that some episodes fail within the window
  if (world_open(&s->world, &s->arena, p, &e)) {
    fail_msg("%s", e.text);
  }
  shac_new(&s->shac, &s->arena, &s->world);
  s->state = ARENA_NEW(&s->arena, double, s->shac.rollout.nstate);
  s->counter = ARENA_NEW(&s->arena, int32_t, s->shac.rollout.ncounter);
  // some environments near the clip's end, so that truncation is among the ends
  struct rollout *r = &s->shac.rollout;
  for (int e1 = 0; e1 < E; e1 += 5) {
    struct lane_group *g = &r->group[e1 / r->W];
    int l = e1 % r->W, frame = s->world.motion.nframe - 5 - e1 / 5;
    g->frame[l] = frame;
    for (int i = 0; i < r->nq; i++) {
      g->qpos[i * r->W + l] = s->world.motion.qpos[frame * r->nq + i];
    }
    for (int i = 0; i < r->nv; i++) {
      g->qvel[i * r->W + l] = s->world.motion.qvel[frame * r->nv + i];
    }
  }
  // episodes long under way, so that pushes fall into the window
  for (int e1 = 0; randomised && e1 < E; e1++) {
    r->group[e1 / r->W].length[e1 % r->W] = 50 + 3 * e1;
  }
  remember(s);
  return s;
}

static struct scene *scene_new(double observation_noise) {
  return scene_new_with(observation_noise, 1, 0, false, REWARD_EXPONENTIAL);
}

static void scene_free(struct scene *s) {
  arena_release(&s->arena);
  free(s);
}

// ---- the environment alone, in double

// An open-loop window: L = sum of w[t][e] * reward + c . obs of the states reached where an episode
// is truncated and at the window's end. With a discriminator's reward, the judgement is b .
// residual.
struct open_loop {
  struct scene *s;
  double *action; // (N, E, nu)
  double *w;      // (N, E)
  double *c;      // (nobs)
  double *b;      // (nres), numbers that a float holds
  double *obs;    // (nobs, W) scratch
  unsigned char end[N * E];
};

static bool bootstraps(const struct rollout *r, int t, int e) {
  int end = r->end[t * r->E + e];
  return end == TRACK_TRUNCATED || (t == r->N - 1 && end == TRACK_RUNS);
}

static double judgement(struct open_loop *o, const struct lane_step *p, const int *reached, int l) {
  const struct rollout *r = &o->s->shac.rollout;
  struct rollout_work *w = o->s->shac.work[0].rollout;
  double sum = 0;
  r->world->task->residual_fwd(&r->world->track, w->task, w->sim, w->delta, p->after,
                               p->after + r->nq * r->W, reached);
  for (int i = 0; i < r->world->track.nres; i++) {
    sum += o->b[i] * w->delta[i * r->W + l];
  }
  return sum;
}

static double open_loop_loss(struct open_loop *o) {
  struct rollout *r = &o->s->shac.rollout;
  struct rollout_work *w = o->s->shac.work[0].rollout;
  restore(o->s);
  double loss = 0;
  for (int shard = 0; shard < r->nshard; shard++) {
    rollout_begin(r, shard);
  }
  for (int t = 0; t < N; t++) {
    for (int g = 0; g < r->ngroup; g++) {
      struct lane_step *p = &r->step[t * r->ngroup + g];
      for (int l = 0; l < r->W; l++) {
        for (int j = 0; j < r->nu; j++) {
          p->action[j * r->W + l] = o->action[(t * E + g * r->W + l) * r->nu + j];
        }
      }
    }
    for (int shard = 0; shard < r->nshard; shard++) {
      rollout_step(r, w, t, shard);
    }
    for (int g = 0; g < r->ngroup; g++) {
      const struct lane_step *p = &r->step[t * r->ngroup + g];
      rollout_reach(r, w, &o->s->shac.norm, t, g);
      int reached[SIM_WIDTH];
      for (int l = 0; l < r->W; l++) {
        reached[l] = p->frame[l] + 1;
      }
      r->world->task->obs_fwd(&r->world->track, w->task, w->sim, o->obs, p->after,
                              p->after + r->nq * r->W, reached);
      for (int l = 0; l < r->W; l++) {
        int e = g * r->W + l;
        loss += o->w[t * E + e] * r->reward[t * E + e];
        if (r->residual) {
          loss += o->w[t * E + e] * judgement(o, p, reached, l);
        }
        for (int i = 0; i < r->nobs && bootstraps(r, t, e); i++) {
          loss += o->c[i] * o->obs[i * r->W + l];
        }
      }
    }
  }
  return loss;
}

static void open_loop_gradient(struct open_loop *o, double *daction) {
  struct rollout *r = &o->s->shac.rollout;
  struct rollout_work *w = o->s->shac.work[0].rollout;
  double dreward[SIM_WIDTH] __attribute__((aligned(64)));
  for (int t = N - 1; t >= 0; t--) {
    for (int g = 0; g < r->ngroup; g++) {
      for (int l = 0; l < r->W; l++) {
        int e = g * r->W + l;
        dreward[l] = o->w[t * E + e];
        for (int i = 0; i < r->nobs; i++) {
          o->obs[i * r->W + l] = bootstraps(r, t, e) ? o->c[i] : 0;
        }
      }
      rollout_reach_bwd(r, w, dreward, o->obs, t, g);
    }
    for (int shard = 0; shard < r->nshard; shard++) {
      rollout_step_bwd(r, w, t, shard);
    }
    for (int g = 0; g < r->ngroup; g++) {
      const struct lane_group *group = &r->group[g];
      for (int l = 0; l < r->W; l++) {
        for (int j = 0; j < r->nu; j++) {
          daction[(t * E + g * r->W + l) * r->nu + j] = group->daction[j * r->W + l];
        }
      }
    }
  }
}

// Windows of several sizes and spreads, kept while they are open; samples are what ran.
static void check_choices(const struct scene *s) {
  const struct bundle *b = &s->shac.rollout.bundle;
  int least = b->B, most = 0;
  int64_t substeps = 0, counted = 0;
  double widest = 0, narrowest = 1;
  for (int i = 0; i < N * E; i++) {
    const struct bundle_record *rec = &b->record[i];
    if (rec->first == b->substeps) {
      continue;
    }
    const struct bundle_choice *c = &rec->choice;
    substeps += c->size * (b->substeps - rec->first);
    least = c->size < least ? c->size : least;
    most = c->size > most ? c->size : most;
    widest = fmax(widest, c->sigma_p);
    narrowest = fmin(narrowest, c->sigma_p);
    assert_float_equal(c->sigma_v, 2 * c->sigma_p, 1e-12);
    if (!rec->opened) {
      assert_memory_equal(c, &rec[-E].choice, sizeof *c);
    }
  }
  for (int i = 0; i < E / s->spec.shard; i++) {
    counted += b->branch_substeps[i];
  }
  assert_int_equal(substeps, counted);
  print_message("%d to %d branches, %.2g to %.2g mm\n", least, most, 1e3 * narrowest, 1e3 * widest);
  assert_true(least >= 2 && least < most && most <= b->B);
  assert_true(narrowest < widest && widest <= s->spec.bundle_sigma_p);
}

static void check_actions(int bundle_size, double sigma, bool randomised, enum spec_reward reward) {
  struct scene *s = scene_new_with(0, bundle_size, sigma, randomised, reward);
  struct rollout *r = &s->shac.rollout;
  // perturbations are constants of the gradient: here their Jacobian must not follow the state
  int key = robot_find_key(&s->world.robot, "stand");
  r->bundle.jacobian_at = s->world.robot.key[key].qpos;
  struct open_loop o = {.s = s};
  int n = N * E * r->nu;
  o.action = ARENA_NEW(&s->arena, double, n);
  o.w = ARENA_NEW(&s->arena, double, N *E);
  o.c = ARENA_NEW(&s->arena, double, r->nobs);
  o.obs = ARENA_NEW(&s->arena, double, r->nobs * r->W);
  double *daction = ARENA_NEW(&s->arena, double, n), *at = ARENA_NEW(&s->arena, double, n);
  double *along = ARENA_NEW(&s->arena, double, n);
  struct rng draw = rng_stream(1, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < n; i++) {
    at[i] = 0.3 * rng_normal(&draw);
  }
  for (int i = 0; i < N * E; i++) {
    o.w[i] = rng_range(&draw, 0.5, 1);
  }
  for (int i = 0; i < r->nobs; i++) {
    o.c[i] = 0.1 * rng_normal(&draw);
  }
  int nres = s->world.track.nres;
  o.b = ARENA_NEW(&s->arena, double, nres);
  for (int i = 0; i < nres; i++) {
    o.b[i] = (double)(float)rng_normal(&draw);
    for (int row = 0; row < N * E; row++) {
      r->slope[row * nres + i] = (float)o.b[i];
    }
  }
  memcpy(o.action, at, sizeof(double) * (size_t)n);
  open_loop_loss(&o);
  memcpy(o.end, r->end, sizeof o.end);
  open_loop_gradient(&o, daction);
  int failed = 0, truncated = 0;
  for (int i = 0; i < N * E; i++) {
    failed += o.end[i] == TRACK_FAILED;
    truncated += o.end[i] == TRACK_TRUNCATED;
  }
  assert_true(failed > 0 && truncated > 0);
  // so are the sizes and spreads that windows chose
  struct bundle_record *held = ARENA_NEW(&s->arena, struct bundle_record, N * E);
  if (adaptive) {
    memcpy(held, r->bundle.record, sizeof *held * N * E);
    r->bundle.held = held;
    check_choices(s);
  }
  int opened = 0, went_on = 0;
  for (int i = 0; i < N * E && bundle_on(&r->bundle); i++) {
    const struct bundle_record *rec = &r->bundle.record[i];
    opened += rec->opened;
    went_on += rec->first == 0 && !rec->opened;
  }
  assert_true(bundle_size == 1 || (opened > 5 && went_on > 5));

  // directions: all actions at once, and those of single steps; up to three of each, until one has
  // no kink
  double worst = 0;
  int kinks = 0, judged = 0;
  for (int k = -3, tried = 0; k < N; k++) {
    double slope = 0, norm = 0, fd[2];
    for (int i = 0; i < n; i++) {
      bool moves = k < 0 || i / (E * r->nu) == k;
      along[i] = moves ? rng_normal(&draw) : 0;
      slope += along[i] * daction[i];
      norm += moves ? daction[i] * daction[i] : 0;
    }
    norm = sqrt(norm); // what a random direction's slope is like: a small slope is chance
    double corner = 0;
    for (int half = 0; half < 2; half++) {
      // four points: steps long enough for round-off, error of fourth order; the middle for corners
      static const double at_h[5] = {-2, -1, 1, 2, 0};
      double loss[5], h = half ? 1e-6 : 2e-6;
      for (int point = 0; point < 5; point++) {
        for (int i = 0; i < n; i++) {
          o.action[i] = at[i] + at_h[point] * h * along[i];
        }
        loss[point] = open_loop_loss(&o);
        assert_memory_equal(o.end, r->end, sizeof o.end);
      }
      fd[half] = (8 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / (12 * h);
      // the second difference of a smooth loss grows as h^2, that of a jump in slope as h: this is
      // the jump, if it is at the middle: differences of all lengths are then half of it off
      double near = loss[1] + loss[2] - 2 * loss[4], far = loss[0] + loss[3] - 2 * loss[4];
      corner = fmax(corner, fabs(4 * near - far) / (2 * h));
    }
    assert_true(fabs(slope) > 1e-3);
    // a contact's cone edge or a clamp within the step: differences do not agree with themselves
    if (fabs(fd[1] - fd[0]) > 1e-6 * norm || corner > 2e-6 * norm) {
      kinks++;
      tried = (tried + 1) % 3;
      k -= tried > 0;
      continue;
    }
    tried = 0;
    judged++;
    worst = fmax(worst, fabs(fd[1] - slope) / norm);
  }
  print_message("open loop, %d branches: %d failures, %d truncations, %d windows opened, worst "
                "relative error %.1e, %d kinks\n",
                bundle_size, failed, truncated, opened, worst, kinks);
  assert_true(worst < 1e-6);
  assert_true(judged >= (N + 3) * 2 / 3);
  scene_free(s);
}

static void test_actions(void **state) {
  (void)state;
  check_actions(1, 0, false, REWARD_EXPONENTIAL);
}
static void test_actions_bundled(void **state) {
  (void)state;
  check_actions(5, 0.002, false, REWARD_EXPONENTIAL);
}
// parameters, offsets, latency and pushes of an episode, redrawn by resets inside the window
static void test_actions_randomised(void **state) {
  (void)state;
  check_actions(1, 0, true, REWARD_EXPONENTIAL);
}
static void test_actions_randomised_bundled(void **state) {
  (void)state;
  check_actions(5, 0.002, true, REWARD_EXPONENTIAL);
}

static void test_actions_judged(void **state) {
  (void)state;
  check_actions(1, 0, false, REWARD_ADD);
}
static void test_actions_judged_bundled_and_randomised(void **state) {
  (void)state;
  check_actions(5, 0.002, true, REWARD_ADD);
}

// sizes and spreads from each contact
static void test_actions_adaptive(void **state) {
  (void)state;
  adaptive = true;
  check_actions(6, 0.003, true, REWARD_EXPONENTIAL);
  adaptive = false;
}

// sigma = 0: the same bytes as without bundles, forward and backward, whatever their size
static void test_bundle_identity(void **state) {
  (void)state;
  struct scene *s[2] = {scene_new(0), scene_new_with(0, 10, 0, false, REWARD_EXPONENTIAL)};
  for (int k = 0; k < 2; k++) {
    shac_rollout(&s[k]->shac);
    shac_gradient(&s[k]->shac, 1);
  }
  const struct shac *a = &s[0]->shac, *b = &s[1]->shac;
  int64_t opened = 0;
  for (int i = 0; i < b->rollout.nshard; i++) {
    opened += b->rollout.bundle.open_steps[i];
  }
  assert_true(opened > 5);
  assert_memory_equal(a->loss, b->loss, sizeof(double) * E);
  assert_memory_equal(a->rollout.state, b->rollout.state, sizeof(double) * a->rollout.nstate);
  assert_memory_equal(a->grad[0], b->grad[0], sizeof(float) * a->nactor);
  scene_free(s[0]);
  scene_free(s[1]);
}

// ---- what opens a window

// what the last substep of a control step reports is what the solver's contacts say, and a link's
// load is that of its contacts
static void test_loads(void **state) {
  (void)state;
  struct scene *s = scene_new(0);
  const struct world *w = &s->world;
  struct rollout *r = &s->shac.rollout;
  int W = r->W, S = sim_model_options(w->model)->substeps, n = sim_nload(w->model);
  int links = sim_nclink(w->model), contacts = sim_ncontact(w->model), touching = 0;
  struct sim_work *sim = s->shac.work[0].rollout->sim;
  double *load = ARENA_NEW(&s->arena, double, S *n *W),
         *ctrl = ARENA_NEW(&s->arena, double, 64 * W);
  double *force = ARENA_NEW(&s->arena, double, 2 * contacts * W), *height = force + contacts * W;
  assert_int_equal(n, links + 2 * contacts);
  for (int g = 0; g < r->ngroup; g++) {
    w->sim->substeps_fwd(w->model, sim, r->group[g].qpos, r->group[g].qvel, NULL, load, ctrl,
                         r->param, 0, S);
    w->sim->contacts(w->model, sim, force, height);
    const double *last = load + (S - 1) * n * W;
    assert_memory_equal(last + links * W, force, sizeof(double) * (size_t)(2 * contacts * W));
    for (int l = 0; l < W; l++) {
      for (int f = 0; f < links; f++) {
        struct sim_clink_info c = sim_clink(w->model, f);
        double sum = 0;
        for (int k = c.first; k < c.first + c.count; k++) {
          sum += force[k * W + l];
        }
        touching += sum > 0;
        assert_float_equal(last[f * W + l], sum, 1e-9);
      }
    }
  }
  assert_true(touching > 10);
  scene_free(s);
}

// A window opens in the first substep in which the contacts of a link together, or one of them,
// carry more than tau; nowhere else.
static void check_trigger(enum spec_trigger trigger, double tau, int *loaded) {
  struct scene *s = scene_new_with(0, 4, 0.002, false, REWARD_EXPONENTIAL);
  s->spec.bundle_trigger = trigger;
  s->spec.bundle_force = tau;
  shac_rollout(&s->shac);
  const struct rollout *r = &s->shac.rollout;
  const struct bundle *b = &r->bundle;
  int links = sim_nclink(s->world.model), n = sim_nload(s->world.model), W = r->W;
  int opened = 0;
  *loaded = 0;
  for (int i = 0; i < N * E; i++) {
    int t = i / E, e = i % E, want = b->substeps;
    const double *load = r->step[t * r->ngroup + e / W].load + e % W;
    for (int sub = b->substeps - 1; sub >= 0; sub--) {
      for (int f = 0; f < links; f++) {
        struct sim_clink_info c = sim_clink(s->world.model, f);
        double sum = 0, most = 0;
        for (int k = c.first; k < c.first + c.count; k++) {
          double one = load[(sub * n + links + k) * W];
          sum += one;
          most = fmax(most, one);
        }
        want = (trigger == TRIGGER_SPHERE ? most : sum) > tau ? sub : want;
      }
    }
    const struct bundle_record *rec = &b->record[i];
    bool open = rec->first == 0 && !rec->opened; // since the step before
    assert_true(open || rec->first == want);
    assert_true(open || rec->opened == (want < b->substeps));
    opened += rec->opened;
    *loaded += want < b->substeps;
  }
  assert_true(opened > 5);
  scene_free(s);
}
static void test_triggers(void **state) {
  (void)state;
  int foot, sphere;
  check_trigger(TRIGGER_FOOT, 150, &foot);
  check_trigger(TRIGGER_SPHERE, 150, &sphere);
  assert_true(sphere < foot); // a foot stands on several
}

// ---- the whole loss

static double whole_loss(struct scene *s) {
  restore(s);
  shac_rollout(&s->shac);
  double sum = 0;
  for (int e = 0; e < E; e++) {
    sum += s->shac.loss[e];
  }
  return sum;
}

// Floats limit the differences: the step is large enough for round-off, small enough for curvature.
static void check_weights(double observation_noise) {
  struct scene *s = scene_new(observation_noise);
  struct shac *k = &s->shac;
  // a policy whose observations matter, and a critic whose gradient does
  struct rng draw = rng_stream(2, RNG_TEST, 0, 0, 0);
  for (size_t i = k->actor.weight[2]; i < k->actor.bias[2]; i++) {
    k->param[i] *= 5;
  }
  for (size_t i = 0; i < k->critic.nparam; i++) {
    k->critic.param[i] += (float)rng_range(&draw, -0.05, 0.05);
  }
  float *at = ARENA_NEW(&s->arena, float, k->nactor);
  double *along = ARENA_NEW(&s->arena, double, k->nactor);
  memcpy(at, k->param, sizeof(float) * k->nactor);
  whole_loss(s);
  unsigned char end[N * E];
  memcpy(end, k->rollout.end, sizeof end);
  shac_gradient(k, 1);
  // whole slab, each layer's weights, log sigma
  double whole = 0;
  int kinks = 0;
  for (int part = 0; part < 5; part++) {
    bool layer = part > 0 && part < 4;
    size_t first = layer ? k->actor.weight[part - 1] : part ? k->actor.nparam : 0;
    size_t last = layer ? k->actor.bias[part - 1] : k->nactor;
    // half random, half along the gradient itself, so that the slope is not small by chance
    double norm = 0, size = sqrt((double)(last - first));
    for (size_t i = 0; i < k->nactor; i++) {
      along[i] = i >= first && i < last ? (double)k->grad[0][i] : 0;
      norm += along[i] * along[i];
    }
    norm = sqrt(norm);
    for (size_t i = first; i < last; i++) {
      along[i] = along[i] / norm + rng_normal(&draw) / size;
    }
    double slope[2] = {0}, fd[2];
    for (int half = 0; half < 2; half++) {
      double loss[2], h = half ? 1e-4 : 2e-4;
      for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < k->nactor; i++) {
          k->param[i] = (float)((double)at[i] + (side ? h : -h) * along[i]);
          // the step as floats have it
          slope[half] += (side ? 1 : -1) * (double)k->param[i] * (double)k->grad[0][i] / (2 * h);
        }
        loss[side] = whole_loss(s);
        assert_memory_equal(end, k->rollout.end, sizeof end);
      }
      fd[half] = (loss[1] - loss[0]) / (2 * h);
    }
    memcpy(k->param, at, sizeof(float) * k->nactor);
    whole = part == 0 ? fabs(slope[1]) : whole;
    print_message("part %d: slope % .6e, differences % .6e % .6e\n", part, slope[1], fd[0], fd[1]);
    assert_true(fabs(slope[1]) > 1e-3 * whole && whole > 1);
    // kinks within the step: differences that disagree with themselves cannot judge
    if (fabs(fd[1] - fd[0]) > 1e-3 * fabs(fd[1])) {
      kinks++;
      continue;
    }
    assert_true(fabs(fd[1] - slope[1]) < 1e-3 * fabs(fd[1]) + 1e-5 * whole);
  }
  assert_true(kinks <= 2); // of five
  scene_free(s);
}
static void test_weights(void **state) {
  (void)state;
  check_weights(0);
}
static void test_weights_with_noise(void **state) {
  (void)state;
  check_weights(0.5);
}

int main(void) {
  gemm_start();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_actions),
      cmocka_unit_test(test_actions_bundled),
      cmocka_unit_test(test_actions_randomised),
      cmocka_unit_test(test_actions_randomised_bundled),
      cmocka_unit_test(test_actions_judged),
      cmocka_unit_test(test_actions_judged_bundled_and_randomised),
      cmocka_unit_test(test_actions_adaptive),
      cmocka_unit_test(test_bundle_identity),
      cmocka_unit_test(test_loads),
      cmocka_unit_test(test_triggers),
      cmocka_unit_test(test_weights),
      cmocka_unit_test(test_weights_with_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
