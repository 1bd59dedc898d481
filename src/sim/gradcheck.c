#include "sim/gradcheck.h"

#include "base/rng.h"
#include "sim/stage_check.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NSTATE = 6, POINTS = 4, PAIR = 2, MAX_PER_BLOCK = 200, NPARAM_BLOCK = 14 };
static const double point_at[POINTS] = {-2, -1, 1, 2};
// In order of usefulness: where a kink is near or a motor strong only short steps see a smooth
// function, where an input matters little only long ones rise above rounding.
static const double step_sizes[] = {2e-5, 2e-4, 2e-6, 2e-3, 6e-5, 6e-4,
                                    6e-3, 2e-2, 6e-6, 6e-7, 2e-7, 2e-8};

// Outputs are scaled to one. Rounding leaves about 1e-15 of a stage's, 1e-14 of a control step's,
// and a difference of step h divides that by h: what moves the outputs by less than this per unit
// (of the input's own size) is not resolved to 1e-6 by any step.
// MuJoCo's contact forces D (J a - aref) are small differences of large accelerations: there
// rounding grows to 1e-12 of the outputs (measured on a function that does not depend on its
// input).
#define RESOLUTION      1e-5
#define RESOLUTION_SOFT 1e-4
static const double rollout_steps[] = {1e-5, 1e-6, 1e-7, 1e-4, 1e-8, 1e-9};
enum {
  NSTEP_SIZE = sizeof step_sizes / sizeof step_sizes[0],
  NROLLOUT_STEP = sizeof rollout_steps / sizeof rollout_steps[0]
};

static double central(const double *L, double h) { // fourth order, from the four points
  return (8 * (L[2] - L[1]) - (L[3] - L[0])) / (12 * h);
}

struct check_state {
  double *qpos, *qvel, *ctrl;
};

struct check {
  struct gradcheck *g;
  struct arena *a;
  const struct robot *r;
  const struct sim_kernels *k;
  struct rng rng;
  int W;
  struct check_state state[NSTATE];
  // of the model under check
  const struct sim_model *m;
  struct sim_work *w;
  struct sim_stage_call call;
  double *param;                                   // one lane
  double *lq, *lv, *lu, *lp, *shift, *extra, *out; // lane arrays
  double *qpos_out, *d_qpos_out, *dq, *dv, *du, *dp, *trail;
  uint64_t *kinks;
  double *out0, *qpos_out0, *weight, *qweight, *turn, *q1; // one lane
};

// ---- rows of the report

static struct gradcheck_row *row_of(struct gradcheck *g, const char *name, double tolerance) {
  for (int i = 0; i < g->nrow; i++) {
    if (!strcmp(g->row[i].name, name)) {
      return &g->row[i];
    }
  }
  BUG_IF(g->nrow == GRADCHECK_MAX_ROW);
  struct gradcheck_row *row = &g->row[g->nrow++];
  *row = (struct gradcheck_row){.tolerance = tolerance};
  snprintf(row->name, sizeof row->name, "%s", name);
  return row;
}

static void row_note(struct gradcheck_row *row, double error, const char *block, int i) {
  row->checked++;
  if (!(error <= row->max_rel_error)) { // a NaN stays
    row->max_rel_error = isnan(row->max_rel_error) ? row->max_rel_error : error;
    snprintf(row->worst, sizeof row->worst, "%s[%d]", block, i);
  }
}

bool gradcheck_row_passes(const struct gradcheck_row *row) {
  return row->max_rel_error <= row->tolerance && row->checked > 0;
}

bool gradcheck_passes(const struct gradcheck *g) {
  bool all = g->nrow > 0 && (!g->has_contacts || g->ncontact_state > 0);
  for (int i = 0; i < g->nrow; i++) {
    all = gradcheck_row_passes(&g->row[i]) && all;
  }
  return all;
}

// ---- lanes

static void fill(const struct check *c, double *lanes, const double *x, int n) { // all lanes alike
  for (int i = 0; i < n; i++) {
    for (int l = 0; l < c->W; l++) {
      lanes[i * c->W + l] = x ? x[i] : 0;
    }
  }
}

static void fill_state(struct check *c, const struct check_state *s) {
  fill(c, c->lq, s->qpos, c->r->nq);
  fill(c, c->lv, s->qvel, c->r->nv);
  fill(c, c->lu, s->ctrl, c->r->nu);
}

static double rnd(struct check *c) {
  return rng_range(&c->rng, -1, 1);
}

// ---- the model under check

static int check_model(struct check *c, const struct sim_options *opt, struct err *e) {
  struct arena *a = c->a;
  int W = c->W, nq = c->r->nq, nv = c->r->nv, nu = c->r->nu;
  struct sim_model *m = sim_model_new(a, c->r, opt, e);
  if (!m) {
    return e->code;
  }
  int np = sim_nparam(m), nc = sim_ncontact(m);
  // sizes of the largest stages: Delassus blocks of all contact links, packed mass matrix
  size_t links = (size_t)(nc < c->r->nlink ? nc : c->r->nlink);
  size_t most = 36 * links * links + 6 * links + 4 * (size_t)nc + 3 * (size_t)c->r->nbody +
                (size_t)sim_mass_entries(m, NULL, NULL) + 4 * (size_t)nv + 64;
  double **arrays[] = {&c->lq,         &c->lv, &c->lu, &c->lp, &c->qpos_out,
                       &c->d_qpos_out, &c->dq, &c->dv, &c->du, &c->dp};
  int size[] = {nq, nv, nu, np, nq, nv, nv, nv, nu, np};
  for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
    *arrays[i] = ARENA_NEW(a, double, (size[i] + 1) * W);
  }
  c->m = m;
  c->w = sim_work_new(a, m, W);
  c->shift = ARENA_NEW(a, double, most *(size_t)W);
  c->extra = ARENA_NEW(a, double, most *(size_t)W);
  c->out = ARENA_NEW(a, double, most *(size_t)W);
  c->trail = ARENA_NEW(a, double, opt->substeps *(nq + nv) * W);
  c->kinks = ARENA_NEW(a, uint64_t, W);
  c->out0 = ARENA_NEW(a, double, most);
  c->weight = ARENA_NEW(a, double, most);
  c->qpos_out0 = ARENA_NEW(a, double, nq);
  c->qweight = ARENA_NEW(a, double, nv);
  c->turn = ARENA_NEW(a, double, nv);
  c->q1 = ARENA_NEW(a, double, nq);
  c->param = ARENA_NEW(a, double, np);
  sim_param_default(m, c->param, 1);
  fill(c, c->lp, c->param, np);
  c->call = (struct sim_stage_call){.qpos = c->lq,
                                    .qvel = c->lv,
                                    .ctrl = c->lu,
                                    .param = c->lp,
                                    .shift = c->shift,
                                    .extra = c->extra,
                                    .out = c->out,
                                    .qpos_out = c->qpos_out,
                                    .d_qpos_out = c->d_qpos_out,
                                    .trail = c->trail,
                                    .d_qpos = c->dq,
                                    .d_qvel = c->dv,
                                    .d_ctrl = c->du,
                                    .d_param = c->dp,
                                    .kinks = c->kinks};
  return 0;
}

static void call_stage(struct check *c, enum sim_stage stage, enum sim_stage_mode mode) {
  c->call.stage = stage;
  c->call.mode = mode;
  c->k->stage(c->m, c->w, &c->call);
}

// ---- inputs of a stage, in blocks

enum input_kind { INPUT_QPOS, INPUT_QVEL, INPUT_CTRL, INPUT_PARAM, INPUT_EXTRA };
struct input {
  enum input_kind kind;
  const char *name;
  int first, count;
  const double *grad; // lane array of the kind: entry first + i, lane 0
  double base_max;    // largest value of the block, for the size of the steps
  double grad_max;
};
enum { MAX_INPUT = 3 + NPARAM_BLOCK + SIM_STAGE_MAX_BLOCK };

static int list_inputs(struct check *c, struct input *in) {
  const struct sim_stage_call *s = &c->call;
  int n = 0, W = c->W;
  if (s->reads & SIM_STAGE_READS_QPOS) {
    in[n++] = (struct input){INPUT_QPOS, "qpos", 0, c->r->nv, c->dq, 1, 0};
  }
  if (s->reads & SIM_STAGE_READS_QVEL) {
    in[n++] = (struct input){INPUT_QVEL, "qvel", 0, c->r->nv, c->dv, 1, 0};
  }
  if (s->reads & SIM_STAGE_READS_CTRL) {
    in[n++] = (struct input){INPUT_CTRL, "ctrl", 0, c->r->nu, c->du, 1, 0};
  }
  for (int i = 0; i < sim_nparam_block(c->m); i++) {
    struct sim_param_block b = sim_param_block(c->m, i);
    if (s->reads & SIM_STAGE_READS_PARAM ||
        (s->reads & SIM_STAGE_READS_MU && !strcmp(b.name, "mu"))) {
      in[n++] = (struct input){INPUT_PARAM, b.name, b.first, b.count, c->dp, 0, 0};
    }
  }
  for (int i = 0; i < s->nextra_block; i++) {
    const struct sim_stage_block *b = &s->extra_block[i];
    in[n++] = (struct input){INPUT_EXTRA, b->name, b->first, b->count, c->extra, 0, 0};
  }
  for (int b = 0; b < n; b++) {
    for (int i = 0; i < in[b].count; i++) {
      in[b].grad_max = fmax(in[b].grad_max, fabs(in[b].grad[(in[b].first + i) * W]));
      if (in[b].kind == INPUT_PARAM) {
        in[b].base_max = fmax(in[b].base_max, fabs(c->param[in[b].first + i]));
      }
    }
  }
  return n;
}

// moves entry i of a block by eps in lane l; eps = 0 puts it back
static void input_move(struct check *c, const struct check_state *s, const struct input *in, int i,
                       double eps, int l) {
  int W = c->W, at = (in->first + i) * W + l;
  switch (in->kind) {
  case INPUT_QPOS:
    memcpy(c->q1, s->qpos, sizeof(double) * (size_t)c->r->nq);
    if (eps != 0) {
      c->turn[i] = eps;
      robot_integrate(c->r, c->q1, c->turn);
      c->turn[i] = 0;
    }
    for (int k = 0; k < c->r->nq; k++) {
      c->lq[k * W + l] = c->q1[k];
    }
    break;
  case INPUT_QVEL:
    c->lv[at] = s->qvel[i] + eps;
    break;
  case INPUT_CTRL:
    c->lu[at] = s->ctrl[i] + eps;
    break;
  case INPUT_PARAM:
    c->lp[at] = c->param[in->first + i] + eps;
    break;
  case INPUT_EXTRA:
    c->shift[at] = eps;
    break;
  }
}

// ---- the functional: random weights on all outputs

static bool moves_positions(enum sim_stage stage) {
  return stage == SIM_STAGE_POSITIONS || stage == SIM_STAGE_STEP;
}

// change of the functional against the unmoved state, in lane l
static double functional(struct check *c, enum sim_stage stage, int l) {
  double sum = 0;
  for (int j = 0; j < c->call.nout; j++) {
    sum += c->weight[j] * (c->out[j * c->W + l] - c->out0[j]);
  }
  if (moves_positions(stage)) {
    for (int k = 0; k < c->r->nq; k++) {
      c->q1[k] = c->qpos_out[k * c->W + l];
    }
    double dx[6 * ROBOT_MAX_LINK];
    robot_difference(c->r, dx, c->qpos_out0, c->q1);
    for (int d = 0; d < c->r->nv; d++) {
      sum += c->qweight[d] * dx[d];
    }
  }
  return sum;
}

// outputs at the state, weights scaled to them, and the adjoint under those weights; extra values
// of the state into base (nextra)
static uint64_t stage_gradient(struct check *c, enum sim_stage stage, const struct check_state *s,
                               double *base) {
  int W = c->W;
  fill_state(c, s);
  call_stage(c, stage, SIM_STAGE_SIZES);
  fill(c, c->shift, NULL, c->call.nextra);
  call_stage(c, stage, SIM_STAGE_FORWARD);
  uint64_t kinks = c->kinks[0];
  for (int i = 0; i < c->call.nextra; i++) {
    base[i] = c->extra[i * W];
  }
  for (int b = 0; b < c->call.nout_block; b++) {
    const struct sim_stage_block *o = &c->call.out_block[b];
    double most = 0;
    for (int j = o->first; j < o->first + o->count; j++) {
      c->out0[j] = c->out[j * W];
      most = fmax(most, fabs(c->out0[j]));
    }
    for (int j = o->first; j < o->first + o->count; j++) {
      c->weight[j] = rnd(c) / (most > 0 ? most : 1);
    }
  }
  for (int k = 0; k < c->r->nq; k++) {
    c->qpos_out0[k] = c->qpos_out[k * W];
  }
  for (int d = 0; d < c->r->nv; d++) {
    c->qweight[d] = rnd(c);
  }
  fill(c, c->out, c->weight, c->call.nout);
  fill(c, c->d_qpos_out, c->qweight, c->r->nv);
  call_stage(c, stage, SIM_STAGE_ADJOINT);
  return kinks;
}

// ---- differences

// two entries of a block (i[1] < 0: one) by four points each; NaN where a kink was crossed
static void pair_differences(struct check *c, enum sim_stage stage, const struct check_state *s,
                             const struct input *in, const int i[PAIR], const double h[PAIR],
                             uint64_t kinks, double fd[PAIR]) {
  double L[PAIR * POINTS];
  bool crossed[PAIR] = {false, false};
  for (int from = 0; from < PAIR * POINTS; from += c->W) {
    for (int l = 0; l < c->W; l++) {
      int p = from + l, t = p / POINTS;
      if (i[t] >= 0) {
        input_move(c, s, in, i[t], h[t] * point_at[p % POINTS], l);
      }
    }
    call_stage(c, stage, SIM_STAGE_FORWARD);
    for (int l = 0; l < c->W; l++) {
      int p = from + l, t = p / POINTS;
      if (i[t] >= 0) {
        crossed[t] |= c->kinks[l] != kinks;
        L[p] = functional(c, stage, l);
        input_move(c, s, in, i[t], 0, l);
      }
    }
  }
  for (int t = 0; t < PAIR; t++) {
    fd[t] = i[t] < 0 || crossed[t] ? NAN : central(L + t * POINTS, h[t]);
  }
}

// scale of a difference step for an entry of value x
static double step_scale(const struct input *in, double x) {
  double scale = fmax(fabs(x), 1e-2 * in->base_max);
  return in->kind <= INPUT_CTRL || scale == 0 ? 1 : scale;
}

static void check_block(struct check *c, enum sim_stage stage, const struct check_state *s,
                        const struct input *in, const double *base, double floor_scale,
                        uint64_t kinks, struct gradcheck_row *row) {
  int stride = in->count / MAX_PER_BLOCK + 1, offset = (int)rng_below(&c->rng, (uint32_t)stride);
  // adjoints are read before the differences overwrite `extra`
  double *g = ARENA_NEW(c->a, double, in->count);
  for (int i = 0; i < in->count; i++) {
    g[i] = in->grad[(in->first + i) * c->W];
  }
  double scale = fmax(in->grad_max, floor_scale);
  bool soft = sim_model_options(c->m)->contact_model == SIM_MUJOCO && stage >= SIM_STAGE_SOFT_ACC;
  double resolution = soft ? RESOLUTION_SOFT : RESOLUTION;
  for (int k = offset; k < in->count; k += PAIR * stride) {
    int i[PAIR] = {k, k + stride < in->count ? k + stride : -1};
    double best[PAIR] = {NAN, NAN};
    for (int n = 0; n < NSTEP_SIZE; n++) {
      double h[PAIR] = {0, 0}, fd[PAIR];
      for (int t = 0; t < PAIR && i[t] >= 0; t++) {
        double x = in->kind == INPUT_PARAM   ? c->param[in->first + i[t]]
                   : in->kind == INPUT_EXTRA ? base[in->first + i[t]]
                                             : 0;
        h[t] = step_sizes[n] * step_scale(in, x);
      }
      pair_differences(c, stage, s, in, i, h, kinks, fd);
      bool good = true;
      for (int t = 0; t < PAIR && i[t] >= 0; t++) {
        if (!isnan(fd[t]) || !isfinite(g[i[t]])) {
          double resolved = resolution / (h[t] / step_sizes[n]);
          double error = fabs(fd[t] - g[i[t]]) / fmax(scale, resolved);
          error = isfinite(error) ? error : INFINITY;
          best[t] = fmin(best[t], error); // of a NaN and a number, the number
        }
        good = good && best[t] < 1e-2 * GRADCHECK_TOLERANCE;
      }
      if (good) {
        break;
      }
    }
    for (int t = 0; t < PAIR && i[t] >= 0; t++) {
      if (isnan(best[t])) {
        row->kinks_skipped++;
      } else {
        row_note(row, best[t], in->name, i[t]);
      }
    }
  }
}

// One stage on all states. prefix: rows are "prefix.block" and "param.block"; NULL: one row, name.
static void check_stage(struct check *c, enum sim_stage stage, const char *name,
                        const char *prefix) {
  struct input in[MAX_INPUT];
  struct {
    const char *name;
    double grad;
  } top[MAX_INPUT] = {{NULL, 0}};
  struct arena_mark mark = arena_mark(c->a);
  double *base = NULL;
  for (int pass = 0; pass < 2; pass++) { // first the largest gradients, then the differences
    for (int k = 0; k < NSTATE; k++) {
      struct arena_mark inner = arena_mark(c->a);
      call_stage(c, stage, SIM_STAGE_SIZES);
      fill_state(c, &c->state[k]);
      call_stage(c, stage, SIM_STAGE_SIZES);
      base = ARENA_NEW(c->a, double, c->call.nextra + 1);
      c->rng = rng_stream(1, RNG_TEST, (uint32_t)stage, (uint32_t)k, 0);
      uint64_t kinks = stage_gradient(c, stage, &c->state[k], base);
      int n = list_inputs(c, in);
      double *grads = ARENA_NEW(c->a, double, (c->call.nextra + 1) * c->W);
      memcpy(grads, c->extra, sizeof(double) * (size_t)(c->call.nextra * c->W));
      for (int b = 0; b < n; b++) {
        if (in[b].kind == INPUT_EXTRA) {
          in[b].grad = grads;
          for (int i = 0; i < in[b].count; i++) {
            in[b].base_max = fmax(in[b].base_max, fabs(base[in[b].first + i]));
          }
        }
        int t = 0;
        while (top[t].name && strcmp(top[t].name, in[b].name)) {
          t++;
        }
        top[t].name = in[b].name;
        if (pass == 0) {
          top[t].grad = fmax(top[t].grad, in[b].grad_max);
          continue;
        }
        // a block that nothing feels is checked to be just that, but makes no row of its own
        char title[48];
        snprintf(title, sizeof title, "%s.%s", in[b].kind == INPUT_PARAM ? "param" : prefix,
                 in[b].name);
        struct gradcheck_row nobody = {0};
        check_block(c, stage, &c->state[k], &in[b], base, 1e-6 * top[t].grad, kinks,
                    top[t].grad > 0 ? row_of(c->g, prefix ? title : name, GRADCHECK_TOLERANCE)
                                    : &nobody);
        if (!(nobody.max_rel_error <= GRADCHECK_TOLERANCE)) {
          row_note(row_of(c->g, prefix ? title : name, GRADCHECK_TOLERANCE), nobody.max_rel_error,
                   in[b].name, 0);
        }
      }
      arena_reset(c->a, inner);
    }
  }
  arena_reset(c->a, mark);
}

// ---- random states in contact

static int root_link(const struct robot *r, int link) {
  while (r->link[link].parent >= 0) {
    link = r->link[link].parent;
  }
  return link;
}

// Index into qpos of a slide that lifts every contact candidate, or -1 (planar robots have one).
static int vertical_slide(struct check *c, double *height, double *moved) {
  int nc = sim_ncontact(c->m);
  struct sim_probe p = {.height = height}, p1 = {.height = moved};
  for (int i = 0; nc && i < c->r->nlink; i++) {
    if (c->r->link[i].type != JOINT_SLIDE) {
      continue;
    }
    int at = c->r->link[i].qadr;
    fill(c, c->lq, c->r->qpos0, c->r->nq);
    c->k->probe(c->m, c->w, &p, c->lq, c->lv, c->lu, c->lp);
    c->lq[at * c->W] += 1;
    c->k->probe(c->m, c->w, &p1, c->lq, c->lv, c->lu, c->lp);
    bool all = true;
    for (int k = 0; k < nc; k++) {
      all = all && fabs(moved[k * c->W] - height[k * c->W] - 1) < 1e-9;
    }
    if (all) {
      return at;
    }
  }
  return -1;
}

// Puts the lowest candidate of what hangs on a free joint, or else on that slide, near the floor.
static void put_on_floor(struct check *c, struct check_state *s, const double *height, int slide) {
  const struct robot *r = c->r;
  for (int i = 0; i < r->nlink; i++) {
    bool free = r->link[i].type == JOINT_FREE, slides = r->link[i].qadr == slide;
    double lowest = INFINITY;
    for (int k = 0; (free || slides) && k < sim_ncontact(c->m); k++) {
      if (slides || root_link(r, sim_contact(c->m, k).link) == i) {
        lowest = fmin(lowest, height[k * c->W]);
      }
    }
    if (isfinite(lowest)) {
      s->qpos[r->link[i].qadr + (free ? 2 : 0)] += rng_range(&c->rng, -0.006, 0.003) - lowest;
    }
  }
}

static void random_state(struct check *c, struct check_state *s, int number) {
  const struct robot *r = c->r;
  int stand = robot_find_key(r, "stand");
  bool tumbled = number % 2 == 1;
  const double *from = stand >= 0 ? r->key[stand].qpos : r->qpos0;
  memcpy(s->qpos, from, sizeof(double) * (size_t)r->nq);
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    for (int k = 0; k < l->ndof; k++) {
      const struct robot_dof *dof = &r->dof[l->dof + k];
      bool turns = l->type == JOINT_BALL || l->type == JOINT_HINGE || k >= 3;
      c->turn[l->dof + k] = (tumbled && !dof->limited && turns ? 3 : 0.15) * rnd(c);
      s->qvel[l->dof + k] = (l->type == JOINT_FREE ? 0.4 : 1.5) * rnd(c);
    }
  }
  robot_integrate(r, s->qpos, c->turn);
  memset(c->turn, 0, sizeof(double) * (size_t)r->nv);
  for (int d = 0; d < r->nv; d++) { // some joints at their limits
    const struct robot_dof *f = &r->dof[d];
    if (f->limited && rng_uniform(&c->rng) < 0.3) {
      s->qpos[r->link[f->link].qadr] = f->range[rng_below(&c->rng, 2)] + 0.01 * rnd(c);
    }
  }
  for (int i = 0; i < r->nu; i++) { // some actuators beyond their limits
    const struct robot_actuator *a = &r->actuator[i];
    double at = a->bias[1] != 0 ? a->gear * s->qpos[a->qadr] : 0;
    double reach = a->ctrl_limited ? 1.2 * a->ctrl_range[1] : 1;
    s->ctrl[i] = a->bias[1] != 0 ? at + (i % 4 == 3 ? 4 : 0.3) * rnd(c) : reach * rnd(c);
  }
}

static void make_states(struct check *c) {
  const struct robot *r = c->r;
  int nc = sim_ncontact(c->m), W = c->W;
  double *height = ARENA_NEW(c->a, double, (nc + 1) * W);
  double *force = ARENA_NEW(c->a, double, (nc + 1) * W);
  int slide = vertical_slide(c, height, force);
  struct sim_probe p = {.height = height};
  c->g->has_contacts = nc > 0;
  c->g->nstate = NSTATE;
  for (int k = 0; k < NSTATE; k++) {
    struct check_state *s = &c->state[k];
    s->qpos = ARENA_NEW(c->a, double, r->nq);
    s->qvel = ARENA_NEW(c->a, double, r->nv);
    s->ctrl = ARENA_NEW(c->a, double, r->nu + 1);
    c->rng = rng_stream(1, RNG_TEST, 1000, (uint32_t)k, 0);
    random_state(c, s, k);
    fill_state(c, s);
    c->k->probe(c->m, c->w, &p, c->lq, c->lv, c->lu, c->lp);
    put_on_floor(c, s, height, slide);
    fill_state(c, s);
    c->k->step_fwd(c->m, c->w, c->lq, c->lv, NULL, c->lu, c->lp);
    c->k->contacts(c->m, c->w, force, NULL);
    bool bears = false;
    for (int i = 0; i < nc; i++) {
      bears = bears || force[i * W] > 0;
    }
    c->g->ncontact_state += bears;
  }
}

// ---- rollouts: random directions over the start and all controls

enum { NDIRECTION = 4, NROLLOUT = 3, NKIND = 4 };
static const char *const direction_kind[NKIND] = {"qpos", "qvel", "ctrl", "all"};

struct rollout_check {
  double *ctrl;  // (T, nu) nominal
  double *dir;   // (NDIRECTION * NKIND, nv + nv + T nu)
  double *trail; // (T, substeps, nq + nv, W)
  double *end_q; // (nq)
  double *end_v; // (nv)
};

// lane l starts at s moved by eps[l] along direction dir[l] (NULL: not); the end in c->lq, c->lv
static void rollout_run(struct check *c, const struct rollout_check *ro,
                        const struct check_state *s, const double *const *dir, const double *eps,
                        uint64_t *hash, double *trail) {
  int W = c->W, nq = c->r->nq, nv = c->r->nv, nu = c->r->nu;
  fill_state(c, s);
  for (int l = 0; l < W; l++) {
    hash[l] = 0;
    if (!dir) {
      continue;
    }
    memcpy(c->q1, s->qpos, sizeof(double) * (size_t)nq);
    for (int d = 0; d < nv; d++) {
      c->turn[d] = eps[l] * dir[l][d];
      c->lv[d * W + l] += eps[l] * dir[l][nv + d];
    }
    robot_integrate(c->r, c->q1, c->turn);
    for (int i = 0; i < nq; i++) {
      c->lq[i * W + l] = c->q1[i];
    }
  }
  memset(c->turn, 0, sizeof(double) * (size_t)nv);
  size_t stride = (size_t)(sim_model_options(c->m)->substeps * (nq + nv) * W);
  for (int t = 0; t < GRADCHECK_ROLLOUT; t++) {
    for (int i = 0; i < nu; i++) {
      for (int l = 0; l < W; l++) {
        c->lu[i * W + l] = ro->ctrl[t * nu + i] + (dir ? eps[l] * dir[l][2 * nv + t * nu + i] : 0);
      }
    }
    c->call.trail = trail ? trail + (size_t)t * stride : NULL;
    call_stage(c, SIM_STAGE_STEP, SIM_STAGE_FORWARD);
    memcpy(c->lq, c->qpos_out, sizeof(double) * (size_t)(nq * W));
    memcpy(c->lv, c->out, sizeof(double) * (size_t)(nv * W));
    for (int l = 0; l < W; l++) {
      hash[l] = hash[l] * 31 + c->kinks[l];
    }
  }
}

// adjoint of the weighted end state -> grad (2 nv + T nu)
static void rollout_gradient(struct check *c, const struct rollout_check *ro, double *grad) {
  int W = c->W, nq = c->r->nq, nv = c->r->nv, nu = c->r->nu;
  size_t stride = (size_t)(sim_model_options(c->m)->substeps * (nq + nv) * W);
  fill(c, c->d_qpos_out, c->qweight, nv);
  fill(c, c->out, c->weight, nv);
  for (int t = GRADCHECK_ROLLOUT - 1; t >= 0; t--) {
    fill(c, c->lu, ro->ctrl + t * nu, nu);
    c->call.trail = ro->trail + (size_t)t * stride;
    call_stage(c, SIM_STAGE_STEP, SIM_STAGE_ADJOINT);
    memcpy(c->d_qpos_out, c->dq, sizeof(double) * (size_t)(nv * W));
    memcpy(c->out, c->dv, sizeof(double) * (size_t)(nv * W));
    for (int i = 0; i < nu; i++) {
      grad[2 * nv + t * nu + i] = c->du[i * W];
    }
  }
  for (int d = 0; d < nv; d++) {
    grad[d] = c->dq[d * W];
    grad[nv + d] = c->dv[d * W];
  }
}

static double rollout_functional(struct check *c, const struct rollout_check *ro, int l) {
  double dx[6 * ROBOT_MAX_LINK], sum = 0;
  for (int k = 0; k < c->r->nq; k++) {
    c->q1[k] = c->lq[k * c->W + l];
  }
  robot_difference(c->r, dx, ro->end_q, c->q1);
  for (int d = 0; d < c->r->nv; d++) {
    sum += c->qweight[d] * dx[d] + c->weight[d] * (c->lv[d * c->W + l] - ro->end_v[d]);
  }
  return sum;
}

// directions of one kind: the scale of their errors is the largest derivative among them
static void rollout_directions(struct check *c, const struct rollout_check *ro,
                               const struct check_state *s, const double *exact, const double *dir,
                               int n, const char *kind, uint64_t hash0, struct gradcheck_row *row) {
  double scale = 0;
  for (int i = 0; i < NDIRECTION; i++) {
    scale = fmax(scale, fabs(exact[i]));
  }
  for (int i = 0; i < NDIRECTION; i++) {
    double best = NAN;
    for (int k = 0; k < NROLLOUT_STEP && !(best < 1e-2 * row->tolerance); k++) {
      double L[SIM_WIDTH], h = rollout_steps[k];
      bool crossed = false;
      for (int from = 0; from < POINTS; from += c->W) {
        const double *lane_dir[SIM_WIDTH];
        double eps[SIM_WIDTH];
        uint64_t hash[SIM_WIDTH];
        for (int l = 0; l < c->W; l++) {
          lane_dir[l] = dir + i * n;
          eps[l] = h * point_at[(from + l) % POINTS];
        }
        rollout_run(c, ro, s, lane_dir, eps, hash, NULL);
        for (int l = 0; l < c->W && from + l < POINTS; l++) {
          L[from + l] = rollout_functional(c, ro, l);
          crossed = crossed || hash[l] != hash0;
        }
      }
      if (!crossed || !isfinite(exact[i])) {
        double error = fabs(central(L, h) - exact[i]) / scale;
        best = fmin(best, isfinite(error) ? error : INFINITY);
      }
    }
    if (isnan(best)) {
      row->kinks_skipped++;
    } else {
      row_note(row, best, kind, i);
    }
  }
}

static void check_rollout(struct check *c) {
  const struct robot *r = c->r;
  int W = c->W, nq = r->nq, nv = r->nv, nu = r->nu, T = GRADCHECK_ROLLOUT, n = 2 * nv + T * nu;
  int substeps = sim_model_options(c->m)->substeps;
  struct gradcheck_row *row = row_of(c->g, "rollout", GRADCHECK_TOLERANCE_ROLLOUT);
  struct rollout_check ro = {
      .ctrl = ARENA_NEW(c->a, double, T *nu + 1),
      .dir = ARENA_NEW(c->a, double, NDIRECTION *n),
      .trail = ARENA_NEW(c->a, double, (size_t)(T * substeps * (nq + nv)) * (size_t)W),
      .end_q = ARENA_NEW(c->a, double, nq),
      .end_v = ARENA_NEW(c->a, double, nv),
  };
  double *grad = ARENA_NEW(c->a, double, n);
  double *trail = c->call.trail;
  for (int k = 0; k < NROLLOUT; k++) {
    const struct check_state *s = &c->state[2 * k]; // upright ones
    c->rng = rng_stream(1, RNG_TEST, 2000, (uint32_t)k, 0);
    for (int i = 0; i < nu; i++) {
      const struct robot_actuator *a = &r->actuator[i];
      double at = a->bias[1] != 0 ? a->gear * s->qpos[a->qadr] : 0;
      double reach = a->bias[1] == 0 && a->ctrl_limited ? 0.03 * a->ctrl_range[1] : 0.2;
      for (int t = 0; t < T; t++) {
        ro.ctrl[t * nu + i] = at + reach * rnd(c);
      }
    }
    for (int d = 0; d < nv; d++) {
      c->qweight[d] = rnd(c);
      c->weight[d] = rnd(c);
    }
    uint64_t hash[SIM_WIDTH];
    rollout_run(c, &ro, s, NULL, NULL, hash, ro.trail);
    for (int i = 0; i < nq; i++) {
      ro.end_q[i] = c->lq[i * W];
    }
    for (int d = 0; d < nv; d++) {
      ro.end_v[d] = c->lv[d * W];
    }
    rollout_gradient(c, &ro, grad);
    for (int kind = 0; kind < NKIND; kind++) {
      if (kind == 2 && nu == 0) {
        continue;
      }
      int from = kind == 1 ? nv : kind == 2 ? 2 * nv : 0;
      int to = kind == 0 ? nv : kind == 1 ? 2 * nv : n;
      double exact[NDIRECTION] = {0};
      memset(ro.dir, 0, sizeof(double) * (size_t)(NDIRECTION * n));
      for (int i = 0; i < NDIRECTION; i++) {
        for (int j = from; j < to; j++) {
          ro.dir[i * n + j] = rnd(c);
          exact[i] += ro.dir[i * n + j] * grad[j];
        }
      }
      rollout_directions(c, &ro, s, exact, ro.dir, n, direction_kind[kind], hash[0], row);
    }
  }
  c->call.trail = trail;
}

// ---- the whole

// stages that every model has
static void check_tree_stages(struct check *c) {
  check_stage(c, SIM_STAGE_POSITIONS, "positions", NULL);
  check_stage(c, SIM_STAGE_KINEMATICS, "kinematics", NULL);
  check_stage(c, SIM_STAGE_BIAS, "bias", NULL);
  check_stage(c, SIM_STAGE_MASS, "mass", NULL);
  check_stage(c, SIM_STAGE_FACTOR, "factor", NULL);
  check_stage(c, SIM_STAGE_HALF_SOLVE, "half_solve", NULL);
  check_stage(c, SIM_STAGE_ACTUATOR, "actuator", NULL);
}

// both integrators, both steps of the solve
static int check_smoothed(struct check *c, const struct sim_options *opt, struct err *e) {
  static const char *const integrator_name[] = {"moreau", "euler"};
  static const char *const step_name[] = {"split", "published"};
  for (int integrator = 0; integrator < 2; integrator++) {
    for (int step = 0; step < 2; step++) {
      struct sim_options o = *opt;
      o.integrator = (enum sim_integrator)integrator;
      o.contact_step = (enum sim_contact_step)step;
      o.substeps = 1;
      if (check_model(c, &o, e)) {
        return e->code;
      }
      bool first = integrator == 0 && step == 0;
      if (first) {
        make_states(c);
        check_tree_stages(c);
      }
      if (c->g->has_contacts && first) {
        check_stage(c, SIM_STAGE_CONTACT_POINTS, "contact_points", NULL);
        check_stage(c, SIM_STAGE_CONTACT_SPACE, "contact_space", NULL);
      }
      if (c->g->has_contacts && integrator == 0) {
        char name[48];
        snprintf(name, sizeof name, "contact_%s", step_name[step]);
        check_stage(c, SIM_STAGE_CONTACT_SOLVE, name, NULL);
      }
      char prefix[48];
      snprintf(prefix, sizeof prefix, "%s.%s", integrator_name[integrator], step_name[step]);
      check_stage(c, SIM_STAGE_STEP, NULL, prefix);
    }
  }
  return 0;
}

// Contacts from distance, whose derivative is that of the reaching problem: it alone is a function
// to take differences of, the step is the hard one's. Each cone with one of the springs.
static int check_reaching(struct check *c, const struct sim_options *opt, const char *cone,
                          struct err *e) {
  struct sim_options o = *opt;
  o.cfd = opt->cfd.on ? opt->cfd : cfd_default();
  o.cfd.on = true;
  o.cfd.spring = c->r->cone ? CFD_SOFTPLUS : CFD_RELU;
  if (check_model(c, &o, e)) {
    return e->code;
  }
  char name[48];
  snprintf(name, sizeof name, "cfd_%s_%s", c->r->cone ? "softplus" : "relu", cone);
  check_stage(c, SIM_STAGE_SOFT_WIDE, name, NULL);
  return 0;
}

// both cones
static int check_mujoco(struct check *c, const struct sim_options *opt, struct err *e) {
  static const char *const cone_name[] = {"pyramidal", "elliptic"};
  const struct robot *own = c->r;
  for (int cone = 0; cone < 2; cone++) {
    struct robot *r = ARENA_NEW(c->a, struct robot, 1);
    struct sim_options o = *opt;
    *r = *own;
    r->cone = cone;
    c->r = r;
    o.substeps = 1;
    o.cfd.on = false;
    if (check_model(c, &o, e)) {
      return e->code;
    }
    if (cone == 0) {
      make_states(c);
      check_tree_stages(c);
    }
    char name[48];
    if (c->g->has_contacts) {
      snprintf(name, sizeof name, "contact_%s", cone_name[cone]);
      check_stage(c, SIM_STAGE_SOFT_LAW, name, NULL);
    }
    snprintf(name, sizeof name, "residual_%s", cone_name[cone]);
    check_stage(c, SIM_STAGE_SOFT_RESIDUAL, name, NULL);
    snprintf(name, sizeof name, "acceleration_%s", cone_name[cone]);
    check_stage(c, SIM_STAGE_SOFT_ACC, name, NULL);
    check_stage(c, SIM_STAGE_STEP, NULL, cone_name[cone]);
    if (c->g->has_contacts && check_reaching(c, &o, cone_name[cone], e)) {
      return e->code;
    }
  }
  struct sim_options o = *opt;
  o.integrator = SIM_RK4;
  o.substeps = 1;
  o.cfd.on = false;
  if (check_model(c, &o, e)) {
    return e->code;
  }
  check_stage(c, SIM_STAGE_STEP, NULL, "rk4");
  c->r = own;
  return 0;
}

int gradcheck_run(struct gradcheck *g, struct arena *a, const struct robot *r,
                  const struct sim_options *opt, const struct sim_kernels *k, struct err *e) {
  struct check c = {.g = g, .a = a, .r = r, .k = k->as_compiled, .W = k->as_compiled->width};
  bool mujoco = opt->contact_model == SIM_MUJOCO;
  *g = (struct gradcheck){0};
  BUG_IF(c.W > SIM_WIDTH || (PAIR * POINTS) % c.W != 0 || NSTATE < 2 * NROLLOUT);
  struct sim_options hard = *opt;
  hard.cfd.on = false;
  if ((mujoco ? check_mujoco : check_smoothed)(&c, opt, e) || check_model(&c, &hard, e)) {
    return e->code;
  }
  check_stage(&c, SIM_STAGE_STEP, "control_step", NULL);
  for (int i = 0; i < g->nrow; i++) {
    g->max_rel_error = fmax(g->max_rel_error, g->row[i].max_rel_error);
  }
  check_rollout(&c);
  return 0;
}
