#include "learn/gradcloud.h"
#include "learn/gradstat.h"
#include <math.h>
#include <omp.h>
#include <string.h>

const char *const gradcloud_variants[GRADCLOUD_NVARIANT] = {"plain", "branch", "bundle"};

void gradcloud_new(struct gradcloud *c, struct arena *a, const struct shac *s, int capacity,
                   int longest) {
  const struct rollout *r = &s->rollout;
  *c = (struct gradcloud){
      .world = s->world, .B = r->bundle.B, .longest = longest, .capacity = capacity};
  BUG_IF(!bundle_on(&r->bundle));
  c->contact = ARENA_NEW(a, struct gradcloud_contact, capacity);
  for (int i = 0; i < capacity; i++) {
    c->contact[i].state = ARENA_NEW(a, double, (1 + c->B) * (r->nq + r->nv));
    c->contact[i].ctrl = ARENA_NEW(a, double, r->nu);
  }
}

static void take_lane(double *x1, const double *x, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x1[i] = x[i * W + l];
  }
}

// ---- collecting

static bool is_contact(const struct gradcloud *c, const struct rollout *r, int t, int env) {
  const struct bundle_record *rec = &r->bundle.record[t * r->E + env];
  const struct lane_step *p = &r->step[t * r->ngroup + env / r->W];
  return rec->first < r->bundle.substeps && rec->opened &&
         p->frame[env % r->W] + c->longest <= motion_last(&c->world->motion, p->frame[env % r->W]);
}

static void take_contact(struct gradcloud_contact *k, const struct rollout *r, int t, int env) {
  const struct bundle *b = &r->bundle;
  const struct bundle_record *rec = &b->record[t * r->E + env];
  const struct lane_step *p = &r->step[t * r->ngroup + env / r->W];
  int n = r->nq + r->nv, W = r->W, l = env % W;
  size_t at = (size_t)(rec->first * n * W);
  k->frame = p->frame[l];
  k->first = rec->first;
  k->size = rec->choice.size;
  take_lane(k->ctrl, p->ctrl, r->nu, W, l);
  take_lane(k->state, p->trail + at, n, W, l);
  const struct bundle_step *step = &b->step[t * r->nshard + env / r->S];
  for (int i = 0; i < rec->choice.size; i++) {
    int instance = rec->instance + i;
    take_lane(k->state + (1 + i) * n, step->lanes[instance / W].trail + at, n, W, instance % W);
  }
}

void gradcloud_collect(struct gradcloud *c, const struct shac *s, int most) {
  const struct rollout *r = &s->rollout;
  int found = 0, seen = 0, taken = 0;
  for (int i = 0; i < r->N * r->E; i++) {
    found += is_contact(c, r, i / r->E, i % r->E);
  }
  most = most < found ? most : found;
  for (int i = 0; i < r->N * r->E && taken < most && c->n < c->capacity; i++) {
    if (!is_contact(c, r, i / r->E, i % r->E)) {
      continue;
    }
    // the first one past each of `most` evenly spaced marks
    if ((int64_t)seen * most >= (int64_t)taken * found) {
      take_contact(&c->contact[c->n++], r, i / r->E, i % r->E);
      taken++;
    }
    seen++;
  }
}

// ---- gradients

struct cloud_work { // one thread's
  struct rollout_work *rollout;
  double *trail;           // (longest, substeps, nq + nv, W)
  double *ctrl;            // (longest, nu, W)
  double *state, *obs;     // (nq + nv, W), (nobs, W)
  double *action;          // (nu, W)
  double *dq, *dv, *dctrl; // (nv, W), (nv, W), (nu, W)
  double *param;           // (nparam, W), shared
  float *x, *y, *tmp;      // rows of the policy
};

static void work_new(struct cloud_work *w, struct arena *a, const struct gradcloud *c,
                     const struct shac *s) {
  const struct rollout *r = &s->rollout;
  size_t W = (size_t)r->W, n = (size_t)(r->nq + r->nv) * W, nu = (size_t)r->nu * W;
  size_t longest = (size_t)c->longest,
         substeps = (size_t)sim_model_options(c->world->model)->substeps;
  w->rollout = rollout_work_new(a, r);
  w->trail = ARENA_NEW(a, double, longest *substeps *n);
  w->ctrl = ARENA_NEW(a, double, longest *nu);
  w->state = ARENA_NEW(a, double, n);
  w->obs = ARENA_NEW(a, double, (size_t)r->nobs *W);
  w->action = ARENA_NEW(a, double, nu);
  w->dq = ARENA_NEW(a, double, (size_t)r->nv *W);
  w->dv = ARENA_NEW(a, double, (size_t)r->nv *W);
  w->dctrl = ARENA_NEW(a, double, nu);
  w->param = r->param;
  w->x = ARENA_NEW(a, float, (size_t)r->nobs *W);
  w->y = ARENA_NEW(a, float, nu);
  w->tmp = ARENA_NEW(a, float, 2 * W * (size_t)(s->actor.widest + 1));
}

// the policy's control in lane 0's state, for all lanes
static void policy_ctrl(double *ctrl, struct cloud_work *w, const struct gradcloud *c,
                        const struct shac *s, int frame) {
  const struct rollout *r = &s->rollout;
  int W = r->W, frames[SIM_WIDTH];
  for (int l = 0; l < W; l++) {
    frames[l] = frame;
  }
  c->world->task->obs_fwd(&c->world->track, w->rollout->task, w->rollout->sim, w->obs, w->state,
                          w->state + r->nq * W, frames);
  normalizer_fwd(w->x, &s->norm, w->obs, W);
  mlp_eval(w->y, &s->actor, s->param, w->x, W, w->tmp);
  for (int i = 0; i < r->nu * W; i++) {
    w->action[i] = (double)w->y[i / W];
  }
  track_ctrl(&c->world->track, ctrl, w->action, frames, W);
}

// Instances first .. first + W - 1 of a contact, forward over the longest length. The unperturbed
// one comes first, in lane 0 of the first call, which records the controls for the others.
static void contact_fwd(struct cloud_work *w, const struct gradcloud *c, const struct shac *s,
                        const struct gradcloud_contact *k, int first) {
  const struct rollout *r = &s->rollout;
  const struct world *world = c->world;
  int W = r->W, n = r->nq + r->nv, substeps = sim_model_options(world->model)->substeps;
  for (int l = 0; l < W; l++) {
    int instance = first + l <= k->size ? first + l : k->size; // idle lanes repeat the last
    for (int i = 0; i < n; i++) {
      w->state[i * W + l] = k->state[instance * n + i];
    }
  }
  for (int t = 0; t < c->longest; t++) {
    double *ctrl = w->ctrl + t * r->nu * W, *trail = w->trail + (size_t)(t * substeps * n * W);
    if (first == 0 && t == 0) {
      for (int i = 0; i < r->nu * W; i++) {
        ctrl[i] = k->ctrl[i / W];
      }
    } else if (first == 0) {
      policy_ctrl(ctrl, w, c, s, k->frame + t);
    }
    world->sim->substeps_fwd(world->model, w->rollout->sim, w->state, w->state + r->nq * W, trail,
                             NULL, ctrl, w->param, t == 0 ? k->first : 0, substeps);
  }
}

// cotangents of the state at the contact, of the root's vertical speed after `length` steps
static void contact_bwd(struct cloud_work *w, const struct gradcloud *c, const struct shac *s,
                        const struct gradcloud_contact *k, int length) {
  const struct rollout *r = &s->rollout;
  const struct world *world = c->world;
  int W = r->W, n = r->nq + r->nv, substeps = sim_model_options(world->model)->substeps;
  memset(w->dq, 0, sizeof(double) * (size_t)(r->nv * W));
  memset(w->dv, 0, sizeof(double) * (size_t)(r->nv * W));
  for (int l = 0; l < W; l++) {
    w->dv[2 * W + l] = 1; // qvel of the free root begins with the linear velocity
  }
  for (int t = length - 1; t >= 0; t--) {
    world->sim->substeps_bwd(world->model, w->rollout->sim, w->dq, w->dv, w->dctrl, NULL,
                             w->trail + (size_t)(t * substeps * n * W), w->ctrl + t * r->nu * W,
                             w->param, t == 0 ? k->first : 0, substeps);
  }
}

void gradcloud_gradients(double *grad, struct arena *a, const struct gradcloud *c,
                         const struct shac *s, const int *length, int nlength) {
  struct arena_mark mark = arena_mark(a);
  int W = s->rollout.W, nv = s->rollout.nv;
  struct cloud_work *work = ARENA_NEW(a, struct cloud_work, s->threads);
  for (int i = 0; i < s->threads; i++) {
    work_new(&work[i], a, c, s);
  }
#pragma omp parallel for schedule(dynamic) num_threads(s->threads)
  for (int i = 0; i < c->n; i++) {
    struct cloud_work *w = &work[omp_get_thread_num()];
    int size = c->contact[i].size;
    for (int first = 0; first <= c->B; first += W) {
      contact_fwd(w, c, s, &c->contact[i], first);
      for (int j = 0; j < nlength; j++) {
        contact_bwd(w, c, s, &c->contact[i], length[j]);
        for (int l = 0; l < W && first + l <= c->B; l++) {
          double *g = grad + ((size_t)(j * c->n + i) * (size_t)(1 + c->B) + (size_t)(first + l)) *
                                 (size_t)(2 * nv);
          bool finite = first + l <= size;
          take_lane(g, w->dq, nv, W, l);
          take_lane(g + nv, w->dv, nv, W, l);
          for (int d = 0; d < 2 * nv; d++) {
            finite &= isfinite(g[d]) != 0;
          }
          for (int d = 0; d < 2 * nv && !finite; d++) {
            g[d] = NAN;
          }
        }
      }
    }
  }
  arena_reset(a, mark);
}

// ---- points and their spread

int gradcloud_points(double *point, int *contact, int *branch, const struct gradcloud *c,
                     const double *grad, enum gradcloud_variant variant) {
  int size = 2 * c->world->robot.nv, n = 0;
  for (int i = 0; i < c->n; i++) {
    const double *g = grad + (size_t)(i * (1 + c->B)) * (size_t)size;
    int npoint = variant == GRADCLOUD_BRANCH ? c->B : 1;
    for (int k = 0; k < npoint; k++) {
      double *p = point + (size_t)n * (size_t)size;
      if (variant == GRADCLOUD_BUNDLE) {
        int B = c->contact[i].size;
        for (int d = 0; d < size; d++) {
          p[d] = 0;
          for (int j = 1; j <= B; j++) {
            p[d] += g[j * size + d] / B;
          }
        }
      } else {
        memcpy(p, g + (variant == GRADCLOUD_BRANCH ? 1 + k : 0) * size, sizeof *p * (size_t)size);
      }
      if (isfinite(p[0])) {
        contact[n] = i;
        branch[n++] = variant == GRADCLOUD_BRANCH ? k : -1;
      }
    }
  }
  return n;
}

void gradcloud_spread(struct gradcloud_spread *s, struct arena *a, const double *point, int n,
                      int size) {
  struct arena_mark mark = arena_mark(a);
  double *norm = ARENA_NEW(a, double, n + 1), *mean = ARENA_NEW(a, double, size),
         *unit = ARENA_NEW(a, double, size);
  for (int i = 0; i < n; i++) {
    const double *p = point + (size_t)i * (size_t)size;
    for (int d = 0; d < size; d++) {
      norm[i] += p[d] * p[d];
    }
    norm[i] = sqrt(norm[i]);
    for (int d = 0; d < size; d++) {
      mean[d] += p[d] / n;
      unit[d] += norm[i] > 0 ? p[d] / norm[i] / n : 0;
    }
  }
  double square = 0, length = 0;
  for (int d = 0; d < size; d++) {
    for (int i = 0; i < n; i++) {
      double x = point[(size_t)i * (size_t)size + (size_t)d] - mean[d];
      square += x * x;
    }
    length += unit[d] * unit[d];
  }
  *s = (struct gradcloud_spread){.norm_median = gradstat_median(norm, n),
                                 .deviation = n > 1 ? sqrt(square / (n - 1)) : NAN,
                                 .direction_spread = n > 0 ? 1 - length : NAN};
  arena_reset(a, mark);
}
