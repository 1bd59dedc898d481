#include "task/estimate.h"
#include "task/bodies.h"
#include "task/collide.h"
#include <math.h>
#include <string.h>

const char *const estimate_name[ESTIMATE_KINDS] = {
    "truth",        "plain",  "adaptive",     "adaptive_events", "cfd",
    "adaptive_cfd", "bundle", "smooth_first", "smooth_zeroth"};

// ---- estimators

static void add(struct estimate *out, const struct rollout_answer *r, int n, double share) {
  out->ok &= r->ok;
  out->cost += r->cost;
  for (int i = 0; i < n; i++) {
    out->grad[i] += share * r->grad[i];
  }
}

// u +- sigma e, twice a pair
static void zeroth(struct estimate *out, const struct problem *p, struct arena *a, const double *u,
                   int pairs, struct rng *rng) {
  for (int k = 0; k < pairs && out->ok; k++) {
    double e[ESTIMATE_MAX], v[ESTIMATE_MAX], loss[2];
    for (int i = 0; i < p->n; i++) {
      e[i] = rng_normal(rng);
    }
    for (int side = 0; side < 2; side++) {
      struct rollout_request request = {.fixed = true, .u = v};
      struct rollout_answer r = {0};
      for (int i = 0; i < p->n; i++) {
        v[i] = u[i] + (side ? -p->sigma : p->sigma) * e[i];
      }
      p->roll(&r, p, a, &request);
      loss[side] = r.loss;
      out->ok &= r.ok;
      out->cost += r.cost;
    }
    for (int i = 0; i < p->n; i++) {
      out->grad[i] += (loss[0] - loss[1]) * e[i] / (2 * p->sigma * pairs);
    }
  }
}

void estimate_gradient(struct estimate *out, const struct problem *p, struct arena *a,
                       enum estimate_kind kind, const double *u, int samples, struct rng *rng) {
  *out = (struct estimate){.ok = true, .loss = NAN};
  if (kind == ESTIMATE_ZEROTH) {
    zeroth(out, p, a, u, samples > 1 ? samples / 2 : 1, rng);
    return;
  }
  int n = estimate_draws(kind) ? samples : 1;
  for (int k = 0; k < n && out->ok; k++) {
    double v[ESTIMATE_MAX], shift[2];
    struct rollout_request request = {.fixed = kind == ESTIMATE_PLAIN || kind == ESTIMATE_CFD ||
                                               estimate_draws(kind),
                                      .cfd = kind == ESTIMATE_CFD || kind == ESTIMATE_ADAPTIVE_CFD,
                                      .exact = kind == ESTIMATE_TRUTH,
                                      .events = kind == ESTIMATE_TRUTH || kind == ESTIMATE_EVENTS,
                                      .gradient = true,
                                      .u = v};
    struct rollout_answer r = {0};
    for (int i = 0; i < p->n; i++) {
      v[i] = u[i] + (kind == ESTIMATE_FIRST ? p->sigma * rng_normal(rng) : 0);
    }
    if (kind == ESTIMATE_BUNDLE) {
      shift[0] = p->spread * rng_normal(rng);
      shift[1] = p->spread * rng_normal(rng);
      request.shift = shift;
    }
    p->roll(&r, p, a, &request);
    add(out, &r, p->n, 1.0 / n);
    out->loss = estimate_draws(kind) ? NAN : r.loss;
  }
}

// ---- problems

static struct ode_options options(const struct problem *p, const struct rollout_request *r,
                                  double step) {
  const struct estimate_settings *s = p->more;
  struct ode_options o = ode_options_default();
  o.max_steps = 8192;
  o.rtol = o.atol = s->tolerance;
  if (r->fixed) {
    o.method = ODE_SEMI_EULER;
    o.adaptive = false;
    o.dt = step;
    o.max_steps = 1024; // 1000 at most; memory is taken for all of them
  } else if (r->exact) {
    o.method = ODE_DOPRI8;
    o.locate = true;
    o.rtol = o.atol = 1e-11;
  }
  return o;
}

static struct cfd cfd_of(const struct problem *p, const struct rollout_request *r) {
  const struct estimate_settings *s = p->more;
  struct cfd c = {.on = r->cfd, .spring = s->cfd_softplus ? CFD_SOFTPLUS : CFD_RELU};
  memcpy(c.solimp, s->cfd_solimp, sizeof c.solimp);
  return c;
}

static long long cost_of(const struct rollout_request *r, const struct ode_options *o, int nrhs,
                         int accepted) {
  int stages = ode_table(o->method)->stages;
  return nrhs + (r->gradient ? 2LL * accepted * (stages > 1 ? stages : 1) : 0);
}

static void roll_collide(struct rollout_answer *out, const struct problem *p, struct arena *a,
                         const struct rollout_request *r) {
  struct ode_options o = options(p, r, collide_row((enum collide_task)p->which)->step);
  struct cfd cfd = cfd_of(p, r);
  struct collide_result c;
  collide_solve(&c, a, (enum collide_task)p->which, &o, &cfd, r->u, r->shift, r->gradient);
  out->ok = c.status == ODE_DONE;
  out->loss = c.loss;
  out->cost = cost_of(r, &o, c.nrhs, c.accepted);
  memcpy(out->grad, r->events ? c.grad_event : c.grad, sizeof(double) * (size_t)p->n);
}

static const double toss_goal =
    -0.4; // y(1 s) of the cube (m); y(u) has local minima on the way to the right

static void roll_body(struct rollout_answer *out, const struct problem *p, struct arena *a,
                      const struct rollout_request *r) {
  struct ode_options o = options(p, r, p->which == TASK_TOSS ? 1e-3 : 0.01);
  struct body_work w = {.arena = a,
                        .want_gradient = r->gradient && !r->events,
                        .want_event = r->gradient && r->events,
                        .shift = r->shift};
  struct body_result b;
  double scale = 1;
  if (p->which == TASK_TOSS) {
    struct freebody_scene scene = toss_scene(TOSS_CUBE, false);
    scene.cfd = cfd_of(p, r);
    toss_solve(&b, &w, &scene, TOSS_CUBE, &o, r->u[0]);
    scale = 2 * (b.loss - toss_goal);
    out->loss = (b.loss - toss_goal) * (b.loss - toss_goal);
  } else {
    struct billiard shot = {.cfd = cfd_of(p, r)};
    struct billiard_result more;
    billiard_solve(&b, &more, &w, &shot, &o, r->u[0]);
    out->loss = b.loss;
  }
  out->ok = b.status == ODE_DONE;
  out->cost = cost_of(r, &o, b.nrhs, b.accepted);
  out->grad[0] = r->gradient ? scale * (r->events ? b.grad_event : b.grad) : 0;
}

void estimate_problem(struct problem *p, int which, const struct estimate_settings *settings) {
  static const struct problem shipped[ESTIMATE_PROBLEMS] = {
      {.name = "bounce",
       .n = 1,
       .start = {1},
       .around = 0.2,
       .sigma = 0.05,
       .spread = 0.01,
       .lr = 0.05,
       .success = 1e-3,
       .roll = roll_collide,
       .which = COLLIDE_DROP},
      {.name = "toss",
       .n = 1,
       .start = {-2},
       .around = 0.2,
       .sigma = 0.05,
       .spread = 0.01,
       .lr = 0.02,
       .success = 1e-4,
       .roll = roll_body,
       .which = TASK_TOSS},
      {.name = "billiard",
       .n = 1,
       .start = {2.5},
       .around = 0.7,
       .sigma = 0.3,
       .spread = 0.01,
       .lr = 0.1,
       .success = 0.0135,
       .roll = roll_body,
       .which = TASK_BILLIARD},
      {.name = "ground",
       .n = 1,
       .start = {-2},
       .around = 0.2,
       .sigma = 0.05,
       .spread = 0.01,
       .lr = 0.05,
       .success = 1e-3,
       .roll = roll_collide,
       .which = COLLIDE_BOUNCE},
      {.name = "ground_wall",
       .n = 2,
       .start = {5, -5},
       .around = 0.2,
       .sigma = 0.05,
       .spread = 0.01,
       .lr = 0.2,
       .success = 1e-2,
       .roll = roll_collide,
       .which = COLLIDE_WALL},
      {.name = "two_balls",
       .n = COLLIDE_MAX_INPUT,
       .around = 0.2,
       .sigma = 0.05,
       .spread = 0.01,
       .lr = 0.2,
       .success = 1.45,
       .roll = roll_collide,
       .which = COLLIDE_PAIR},
  };
  *p = shipped[which];
  p->more = settings;
  for (int i = 0; p->which == COLLIDE_PAIR && p->roll == roll_collide && i < p->n; i++) {
    p->start[i] = 3;
  }
}
