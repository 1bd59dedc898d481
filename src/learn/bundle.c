#include "learn/bundle.h"
#include "base/rng.h"
#include "learn/randomise.h"
#include <math.h>
#include <string.h>

// bounds of a perturbation in joint space, so that a near-singular leg does not jump
static const double MAX_DQ = 0.1, MAX_DV = 0.5;

struct bundle_work {
  double *jac;             // (3, nv)
  double *state, *mean;    // (nq + nv)
  double *dq, *dv, *dctrl; // (nv, W), (nv, W), (nu, W)
  const double **branch;   // (B) scratch pointers
  int *order;              // (S) environments by first substep
};

void bundle_new(struct bundle *b, struct arena *a, const struct world *w) {
  const struct spec *s = w->spec;
  const struct robot *r = &w->robot;
  *b = (struct bundle){.world = w, .spec = s, .B = s->bundle_size};
  b->E = s->envs;
  b->N = s->horizon;
  b->S = s->shard;
  b->W = w->sim->width;
  if (!bundle_on(b)) {
    return;
  }
  int nshard = b->E / b->S, W = b->W;
  b->nstate = r->nq + r->nv;
  b->substeps = sim_model_options(w->model)->substeps;
  b->nclink = sim_nclink(w->model);
  b->ncontact = sim_ncontact(w->model);
  b->nload = sim_nload(w->model);
  b->kappa = sim_param_find(w->model, "kappa").first;
  for (int i = 0; i < r->nlink; i++) {
    b->mass += r->link[i].mass;
  }
  b->nparam = sim_nparam(w->model);
  b->nominal = ARENA_NEW(a, double, b->nparam *W);
  sim_param_default(w->model, b->nominal, W);
  // every class of equal first substeps may leave one group partly filled
  b->capacity = (b->S * b->B + W - 1) / W + b->substeps;
  b->record = ARENA_NEW(a, struct bundle_record, b->N * b->E);
  b->step = ARENA_NEW(a, struct bundle_step, b->N * nshard);
  size_t n = (size_t)(b->nstate * W);
  for (int i = 0; i < b->N * nshard; i++) {
    b->step[i].lanes = ARENA_NEW(a, struct branch_lanes, b->capacity);
    for (int k = 0; k < b->capacity; k++) {
      struct branch_lanes *l = &b->step[i].lanes[k];
      l->trail = ARENA_NEW(a, double, n *(size_t)b->substeps);
      l->after = ARENA_NEW(a, double, n);
      l->ctrl = ARENA_NEW(a, double, r->nu *W);
      l->param = randomise_on(s) ? ARENA_NEW(a, double, b->nparam *W) : b->nominal;
    }
  }
  b->left = ARENA_NEW(a, int, b->E);
  b->open = ARENA_NEW(a, struct bundle_choice, b->E);
  b->branch = ARENA_NEW(a, double, b->E * b->B * b->nstate);
  b->carry = ARENA_NEW(a, double, b->E * b->B * 2 * r->nv);
  b->start = ARENA_NEW(a, double, b->E *(2 * r->nv + r->nu));
  b->branch_substeps = ARENA_NEW(a, int64_t, nshard);
  b->open_steps = ARENA_NEW(a, int64_t, nshard);
}

struct bundle_work *bundle_work_new(struct arena *a, const struct bundle *b) {
  struct bundle_work *w = ARENA_NEW(a, struct bundle_work, 1);
  const struct robot *r = &b->world->robot;
  w->jac = ARENA_NEW(a, double, 3 * r->nv);
  w->state = ARENA_NEW(a, double, r->nq + r->nv);
  w->mean = ARENA_NEW(a, double, r->nq + r->nv);
  w->dq = ARENA_NEW(a, double, r->nv * b->W);
  w->dv = ARENA_NEW(a, double, r->nv * b->W);
  w->dctrl = ARENA_NEW(a, double, r->nu * b->W);
  w->branch = ARENA_NEW(a, const double *, b->B);
  w->order = ARENA_NEW(a, int, b->S);
  return w;
}

void bundle_begin(struct bundle *b, int shard) {
  memset(b->left + shard * b->S, 0, sizeof(int) * (size_t)b->S);
  b->branch_substeps[shard] = b->open_steps[shard] = 0;
}

void bundle_close(struct bundle *b, int env) {
  b->left[env] = 0;
}

// ---- perturbations

// inverse of the symmetric 3 x 3 matrix A
static void invert3(double inv[9], const double A[9]) {
  double c0 = A[4] * A[8] - A[5] * A[7], c1 = A[5] * A[6] - A[3] * A[8],
         c2 = A[3] * A[7] - A[4] * A[6];
  double d = 1 / (A[0] * c0 + A[1] * c1 + A[2] * c2);
  inv[0] = d * c0;
  inv[1] = inv[3] = d * c1;
  inv[2] = inv[6] = d * c2;
  inv[4] = d * (A[0] * A[8] - A[2] * A[6]);
  inv[5] = inv[7] = d * (A[1] * A[6] - A[0] * A[7]);
  inv[8] = d * (A[0] * A[4] - A[1] * A[3]);
}

static double clamp(double x, double most) {
  return x > most ? most : x < -most ? -most : x;
}

// the point of a contact link that a perturbation moves: mean of its candidates' centres
static void contact_centre(double local[3], const struct bundle *b, int f) {
  struct sim_clink_info c = sim_clink(b->world->model, f);
  local[0] = local[1] = local[2] = 0;
  for (int k = c.first; k < c.first + c.count; k++) {
    double point[3];
    sim_contact_point(b->world->model, k, point);
    for (int i = 0; i < 3; i++) {
      local[i] += point[i] / c.count;
    }
  }
}

// Moves each branch of env by dq = J^+ dp, dqdot = J^+ dv at the links whose bit is set in
// `loaded`; J^+ = J' (J J' + lambda 1)^-1 over the joints of the link's chain, the root held
// (paper, sec. 3).
static void perturb(struct bundle *b, struct bundle_work *bw, const struct bundle_view *view,
                    uint64_t loaded, const struct bundle_choice *choice, int substep, int env) {
  const struct robot *r = &b->world->robot;
  const struct spec *s = b->spec;
  int nv = r->nv;
  double *branch = b->branch + (size_t)(env * b->B * b->nstate);
  struct rng draw =
      rng_stream((uint64_t)s->seed, RNG_BUNDLE, (uint32_t)env, (uint32_t)view->episode,
                 (uint32_t)(view->length * b->substeps + substep));
  for (int f = 0; f < b->nclink; f++) {
    if (!(loaded >> f & 1)) {
      continue;
    }
    double local[3], A[9], inv[9];
    contact_centre(local, b, f);
    robot_jacobian(r, bw->jac, b->jacobian_at ? b->jacobian_at : branch,
                   sim_clink(b->world->model, f).link, local);
    for (int d = 0; d < nv; d++) { // the root is never perturbed
      if (r->link[r->dof[d].link].type == JOINT_FREE) {
        bw->jac[d] = bw->jac[nv + d] = bw->jac[2 * nv + d] = 0;
      }
    }
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        A[3 * i + j] = i == j ? s->bundle_damping : 0;
        for (int d = 0; d < nv; d++) {
          A[3 * i + j] += bw->jac[i * nv + d] * bw->jac[j * nv + d];
        }
      }
    }
    invert3(inv, A);
    for (int k = 0; k < choice->size; k++) {
      double *q = branch + k * b->nstate, *v = q + r->nq;
      for (int pass = 0; pass < 2; pass++) { // positions, then velocities
        double x[3], y[3], sigma = pass ? choice->sigma_v : choice->sigma_p;
        for (int i = 0; i < 3; i++) {
          x[i] = sigma * rng_normal(&draw);
        }
        for (int i = 0; i < 3; i++) {
          y[i] = inv[3 * i] * x[0] + inv[3 * i + 1] * x[1] + inv[3 * i + 2] * x[2];
        }
        for (int d = 0; d < nv; d++) {
          enum joint_type type = r->link[r->dof[d].link].type;
          double step = bw->jac[d] * y[0] + bw->jac[nv + d] * y[1] + bw->jac[2 * nv + d] * y[2];
          if (type != JOINT_HINGE && type != JOINT_SLIDE) {
            continue;
          }
          if (pass) {
            v[d] += clamp(step, MAX_DV);
          } else {
            q[r->link[r->dof[d].link].qadr] += clamp(step, MAX_DQ);
          }
        }
      }
    }
  }
}

// ---- mean of branches and its reverse

static bool is_rotation(const struct robot_link *l, int *qadr, int *dof) {
  *qadr = l->qadr + (l->type == JOINT_FREE ? 3 : 0);
  *dof = l->dof + (l->type == JOINT_FREE ? 3 : 0);
  return l->type == JOINT_FREE || l->type == JOINT_BALL;
}

// sum of quaternions on the first one's hemisphere; returns its length
static double chordal_sum(double sum[4], const double *const *branch, int B, int at) {
  memset(sum, 0, 4 * sizeof *sum);
  for (int k = 0; k < B; k++) {
    const double *q = branch[k] + at, *q0 = branch[0] + at;
    double dot = q[0] * q0[0] + q[1] * q0[1] + q[2] * q0[2] + q[3] * q0[3];
    for (int i = 0; i < 4; i++) {
      sum[i] += dot < 0 ? -q[i] : q[i];
    }
  }
  return sqrt(sum[0] * sum[0] + sum[1] * sum[1] + sum[2] * sum[2] + sum[3] * sum[3]);
}

// Numbers: anchored mean, exact where branches agree; rotations: chordal mean, normalised.
static void branches_mean(double *mean, const struct bundle *b, const double *const *branch,
                          int B) {
  const struct robot *r = &b->world->robot;
  for (int i = 0; i < b->nstate; i++) {
    double sum = 0;
    for (int k = 1; k < B; k++) {
      sum += branch[k][i] - branch[0][i];
    }
    mean[i] = branch[0][i] + sum / B;
  }
  for (int i = 0; i < r->nlink; i++) {
    int at, dof;
    if (is_rotation(&r->link[i], &at, &dof)) {
      double sum[4], length = chordal_sum(sum, branch, B, at);
      for (int c = 0; c < 4; c++) {
        mean[at + c] = sum[c] / length;
      }
    }
  }
}

// cotangent d (2 nv) of the mean -> its share for branch k, added to share (2 nv)
static void branches_mean_adj(double *share, const struct bundle *b, const double *const *branch,
                              int B, const double *d, int k) {
  const struct robot *r = &b->world->robot;
  for (int i = 0; i < 2 * r->nv; i++) {
    share[i] += d[i] / B;
  }
  for (int i = 0; i < r->nlink; i++) {
    int at, dof;
    if (!is_rotation(&r->link[i], &at, &dof)) {
      continue;
    }
    // mean moves by (1 / |sum|) Im((mean* q_k)(0, dth)); exact, 1 / B when all agree
    double sum[4], length = chordal_sum(sum, branch, B, at), m[4], w, x[3];
    const double *q = branch[k] + at, *t = d + dof;
    for (int c = 0; c < 4; c++) {
      m[c] = sum[c] / length;
    }
    w = m[0] * q[0] + m[1] * q[1] + m[2] * q[2] + m[3] * q[3];
    x[0] = m[0] * q[1] - m[1] * q[0] - m[2] * q[3] + m[3] * q[2];
    x[1] = m[0] * q[2] - m[2] * q[0] - m[3] * q[1] + m[1] * q[3];
    x[2] = m[0] * q[3] - m[3] * q[0] - m[1] * q[2] + m[2] * q[1];
    if (w < 0) {
      w = -w, x[0] = -x[0], x[1] = -x[1], x[2] = -x[2];
    }
    double cross[3] = {x[1] * t[2] - x[2] * t[1], x[2] * t[0] - x[0] * t[2],
                       x[0] * t[1] - x[1] * t[0]};
    for (int c = 0; c < 3; c++) {
      share[dof + c] += (w * t[c] - cross[c]) / length - t[c] / B;
    }
  }
}

// ---- lanes

static struct branch_lanes *lanes_of(const struct bundle *b, struct bundle_step *step,
                                     int instance) {
  return &step->lanes[instance / b->W];
}
static void take(double *x1, const double *x, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x1[i] = x[i * W + l];
  }
}
static void put(double *x, const double *x1, int n, int W, int l) {
  for (int i = 0; i < n; i++) {
    x[i * W + l] = x1[i];
  }
}

// links (as bits) that carry more than tau in a substep, or one of whose candidates does
static uint64_t loaded_links(const struct bundle *b, const double *load, int lane) {
  uint64_t loaded = 0;
  for (int f = 0; f < b->nclink && f < 64; f++) {
    struct sim_clink_info c = sim_clink(b->world->model, f);
    bool sphere = b->spec->bundle_trigger == TRIGGER_SPHERE;
    int first = sphere ? b->nclink + c.first : f, count = sphere ? c.count : 1;
    for (int i = first; i < first + count; i++) {
      loaded |= load[i * b->W + lane] > b->spec->bundle_force ? (uint64_t)1 << f : 0;
    }
  }
  return loaded;
}

// of the loaded links' own choices, the one with most branches
static struct bundle_choice choose(const struct bundle *b, const struct bundle_view *v,
                                   const double *load, uint64_t loaded) {
  if (!b->spec->bundle_adaptive) {
    return bundle_choice_fixed(b->spec);
  }
  struct bundle_choice most = {.size = 1};
  for (int f = 0; f < b->nclink; f++) {
    struct sim_clink_info c = sim_clink(b->world->model, f);
    const double *force = load + (b->nclink + c.first) * b->W + v->lane;
    if (loaded >> f & 1) {
      struct bundle_choice own =
          bundle_choice_adaptive(b->spec, force, force + b->ncontact * b->W, c.count, b->W,
                                 v->param[b->kappa * b->W + v->lane], b->mass);
      most = own.size > most.size ? own : most;
    }
  }
  return most;
}

// First substep, links and choice with which a window opens; substeps if none does.
static int trigger(const struct bundle *b, const struct bundle_view *v, uint64_t *loaded,
                   struct bundle_choice *choice) {
  for (int s = 0; s < b->substeps; s++) {
    const double *load = v->load + s * b->nload * b->W;
    *loaded = loaded_links(b, load, v->lane);
    if (*loaded) {
      *choice = choose(b, v, load, *loaded);
      if (choice->size > 1) {
        return s;
      }
    }
  }
  return b->substeps;
}

// the same where and as it was before
static int trigger_held(const struct bundle *b, const struct bundle_view *v, uint64_t *loaded,
                        struct bundle_choice *choice, const struct bundle_record *held) {
  if (!held->opened) {
    return b->substeps;
  }
  *choice = held->choice;
  *loaded = loaded_links(b, v->load + held->first * b->nload * b->W, v->lane);
  return held->first;
}

// decides what is open at step t; states of new branches into b->branch
static void open_windows(struct bundle *b, struct bundle_work *bw, const struct bundle_view *view,
                         int t, int shard) {
  for (int i = 0; i < b->S; i++) {
    int env = shard * b->S + i;
    struct bundle_record *rec = &b->record[t * b->E + env];
    uint64_t loaded;
    *rec = (struct bundle_record){.first = b->substeps};
    if (b->left[env] > 0) {
      rec->first = 0;
      rec->choice = b->open[env];
      continue;
    }
    rec->first = b->held
                     ? trigger_held(b, &view[i], &loaded, &rec->choice, &b->held[t * b->E + env])
                     : trigger(b, &view[i], &loaded, &rec->choice);
    if (rec->first == b->substeps) {
      continue;
    }
    rec->opened = true;
    b->open[env] = rec->choice;
    b->left[env] = b->spec->bundle_horizon;
    double *branch = b->branch + (size_t)(env * b->B * b->nstate);
    take(branch, view[i].trail + (size_t)(rec->first * b->nstate * b->W), b->nstate, b->W,
         view[i].lane);
    for (int k = 1; k < rec->choice.size; k++) {
      memcpy(branch + k * b->nstate, branch, sizeof(double) * (size_t)b->nstate);
    }
    perturb(b, bw, &view[i], loaded, &rec->choice, rec->first, env);
  }
}

// lays the open branches out in lanes, classes of equal first substep one after the other
static void lay_out(struct bundle *b, struct bundle_step *step, const struct bundle_view *view,
                    int t, int shard) {
  const struct robot *r = &b->world->robot;
  const int W = b->W;
  step->nlanes = 0;
  for (int first = 0; first < b->substeps; first++) {
    int n = 0, base = step->nlanes * W; // instances of this class
    for (int i = 0; i < b->S; i++) {
      int env = shard * b->S + i;
      struct bundle_record *rec = &b->record[t * b->E + env];
      if (rec->first != first) {
        continue;
      }
      rec->instance = base + n;
      for (int k = 0; k < rec->choice.size; k++, n++) {
        struct branch_lanes *l = lanes_of(b, step, base + n);
        l->first = first;
        put(l->after, b->branch + (size_t)((env * b->B + k) * b->nstate), b->nstate, W,
            (base + n) % W);
        for (int j = 0; j < r->nu; j++) {
          l->ctrl[j * W + (base + n) % W] = view[i].ctrl[j * W + view[i].lane];
        }
        for (int j = 0; l->param != b->nominal && j < b->nparam; j++) {
          l->param[j * W + (base + n) % W] = view[i].param[j * W + view[i].lane];
        }
      }
      b->branch_substeps[shard] += rec->choice.size * (b->substeps - first);
      b->open_steps[shard]++;
    }
    // idle lanes repeat the last branch: their results are never read
    for (int pad = base + n; n > 0 && pad % W; pad++) {
      struct branch_lanes *l = lanes_of(b, step, pad);
      for (int i = 0; i < b->nstate; i++) {
        l->after[i * W + pad % W] = l->after[i * W + (pad - 1) % W];
      }
      for (int j = 0; j < r->nu; j++) {
        l->ctrl[j * W + pad % W] = l->ctrl[j * W + (pad - 1) % W];
      }
      for (int j = 0; l->param != b->nominal && j < b->nparam; j++) {
        l->param[j * W + pad % W] = l->param[j * W + (pad - 1) % W];
      }
    }
    step->nlanes += (n + W - 1) / W;
  }
}

void bundle_fwd(struct bundle *b, struct bundle_work *bw, struct sim_work *sim,
                const struct bundle_view *view, int t, int shard) {
  const struct world *w = b->world;
  const int W = b->W, nq = w->robot.nq, nv = w->robot.nv;
  struct bundle_step *step = &b->step[t * (b->E / b->S) + shard];
  open_windows(b, bw, view, t, shard);
  lay_out(b, step, view, t, shard);
  for (int i = 0; i < step->nlanes; i++) {
    struct branch_lanes *l = &step->lanes[i];
    w->sim->substeps_fwd(w->model, sim, l->after, l->after + nq * W, l->trail, NULL, l->ctrl,
                         l->param, l->first, b->substeps);
  }
  for (int i = 0; i < b->S; i++) {
    int env = shard * b->S + i;
    struct bundle_record *rec = &b->record[t * b->E + env];
    if (rec->first == b->substeps) {
      continue;
    }
    double *branch = b->branch + (size_t)(env * b->B * b->nstate);
    rec->same = true;
    for (int k = 0; k < rec->choice.size; k++) {
      int at = rec->instance + k;
      take(branch + k * b->nstate, lanes_of(b, step, at)->after, b->nstate, W, at % W);
      bw->branch[k] = branch + k * b->nstate;
      rec->same &= !memcmp(branch, bw->branch[k], sizeof(double) * (size_t)b->nstate);
    }
    if (rec->same) {
      memcpy(bw->mean, branch, sizeof(double) * (size_t)b->nstate);
    } else {
      branches_mean(bw->mean, b, bw->branch, rec->choice.size);
    }
    put(view[i].qpos, bw->mean, nq, W, view[i].lane);
    put(view[i].qvel, bw->mean + nq, nv, W, view[i].lane);
    b->left[env]--;
    memcpy(branch, bw->mean, sizeof(double) * (size_t)b->nstate); // branch 0 goes on from the mean
  }
}

// ---- reverse

void bundle_bwd(struct bundle *b, struct bundle_work *bw, struct sim_work *sim,
                const struct bundle_view *view, int t, int shard) {
  const struct world *w = b->world;
  const int W = b->W, nv = w->robot.nv, nu = w->robot.nu;
  struct bundle_step *step = &b->step[t * (b->E / b->S) + shard];

  // deal out what the boundary collected; carry[k] holds what the next step's branch k asks for
  for (int i = 0; i < b->S; i++) {
    int env = shard * b->S + i;
    const struct bundle_record *rec = &b->record[t * b->E + env];
    if (rec->first == b->substeps) {
      continue;
    }
    const struct bundle_record *next = t + 1 < b->N ? &b->record[(t + 1) * b->E + env] : NULL;
    bool goes_on = next && next->first == 0 && !next->opened;
    double *carry = b->carry + (size_t)(env * b->B * 2 * nv);
    if (!goes_on) {
      memset(carry, 0, sizeof(double) * (size_t)(b->B * 2 * nv));
    }
    double *d = bw->state; // cotangent of the mean; nq + nv >= 2 nv numbers
    double *states = b->branch + (size_t)(env * b->B * b->nstate); // free to use, backward
    take(d, view[i].dq, nv, W, view[i].lane);
    take(d + nv, view[i].dv, nv, W, view[i].lane);
    memset(carry, 0, sizeof(double) * (size_t)(2 * nv)); // branch 0 went on from the mean
    for (int k = 0; k < rec->choice.size; k++) {
      int at = rec->instance + k;
      take(states + k * b->nstate, lanes_of(b, step, at)->after, b->nstate, W, at % W);
      bw->branch[k] = states + k * b->nstate;
    }
    for (int k = 0; k < rec->choice.size; k++) {
      double *share = carry + k * 2 * nv;
      if (!rec->same) {
        branches_mean_adj(share, b, bw->branch, rec->choice.size, d, k);
      } else if (k == 0) {
        memcpy(share, d, sizeof(double) * (size_t)(2 * nv));
      }
    }
    for (int d1 = 0; d1 < nv; d1++) {
      view[i].dq[d1 * W + view[i].lane] = view[i].dv[d1 * W + view[i].lane] = 0;
    }
    double *start = b->start + (size_t)(env * (2 * nv + nu));
    memset(start, 0, sizeof(double) * (size_t)(2 * nv + nu));
  }

  // through the branches; environments' sums in order of instances
  int owner[SIM_WIDTH], number[SIM_WIDTH];
  for (int i = 0; i < step->nlanes; i++) {
    struct branch_lanes *l = &step->lanes[i];
    memset(bw->dq, 0, sizeof(double) * (size_t)(nv * W));
    memset(bw->dv, 0, sizeof(double) * (size_t)(nv * W));
    memset(bw->dctrl, 0, sizeof(double) * (size_t)(nu * W));
    for (int j = 0; j < W; j++) {
      owner[j] = -1;
    }
    for (int e = 0; e < b->S; e++) {
      const struct bundle_record *rec = &b->record[t * b->E + shard * b->S + e];
      int from = rec->instance > i * W ? rec->instance : i * W;
      for (int at = from;
           rec->first < b->substeps && at < rec->instance + rec->choice.size && at < (i + 1) * W;
           at++) {
        owner[at % W] = shard * b->S + e;
        number[at % W] = at - rec->instance;
      }
    }
    for (int j = 0; j < W; j++) {
      if (owner[j] >= 0) {
        const double *carry = b->carry + (size_t)((owner[j] * b->B + number[j]) * 2 * nv);
        put(bw->dq, carry, nv, W, j);
        put(bw->dv, carry + nv, nv, W, j);
      }
    }
    w->sim->substeps_bwd(w->model, sim, bw->dq, bw->dv, bw->dctrl, NULL, l->trail, l->ctrl,
                         l->param, l->first, b->substeps);
    for (int j = 0; j < W; j++) {
      if (owner[j] < 0) {
        continue;
      }
      const struct bundle_record *rec = &b->record[t * b->E + owner[j]];
      double *start = b->start + (size_t)(owner[j] * (2 * nv + nu));
      double *carry = b->carry + (size_t)((owner[j] * b->B + number[j]) * 2 * nv);
      take(carry, bw->dq, nv, W, j);
      take(carry + nv, bw->dv, nv, W, j);
      // branches that opened here began at the environment's own state; of those that went on only
      // the first did
      bool same_dead = rec->same && number[j] > 0;
      for (int d = 0; d < 2 * nv && (rec->opened || number[j] == 0) && !same_dead; d++) {
        start[d] += carry[d];
      }
      for (int u = 0; u < nu && !same_dead; u++) {
        start[2 * nv + u] += bw->dctrl[u * W + j];
      }
    }
  }
}

void bundle_inject(const struct bundle *b, double *dq, double *dv, double *dctrl, int lane,
                   int env) {
  int nv = b->world->robot.nv, nu = b->world->robot.nu;
  const double *start = b->start + (size_t)(env * (2 * nv + nu));
  put(dq, start, nv, b->W, lane);
  put(dv, start + nv, nv, b->W, lane);
  put(dctrl, start + 2 * nv, nu, b->W, lane);
}
