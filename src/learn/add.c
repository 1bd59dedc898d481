#include "learn/add.h"
#include "base/rng.h"
#include "learn/adam.h"
#include "learn/gemm.h"
#include <math.h>
#include <omp.h>

#define disc_real       float
#define DISC_GEMM(kind) gemm_##kind
#include "learn/discriminator.inl"

static const double MEAN_MIN = 1e-4; // of a normaliser's mean, so that constants do not blow up

// what the random numbers of an iteration are for
enum add_draw { DRAW_PUSH, DRAW_SHUFFLE, DRAW_REPLAY };
enum { INIT_NETWORK = 1000 }; // of RNG_INIT_WEIGHTS; the policy is 0, critics follow it

struct add_work { // one thread's
  struct disc_cache cache;
};

// Hidden weights uniform in +-1/sqrt(in), the output's in +-1, biases 0.
static void init_weights(float *param, const struct disc *d, uint64_t seed) {
  for (int l = 0; l < d->nlayer; l++) {
    struct rng draw = rng_stream(seed, RNG_INIT_WEIGHTS, INIT_NETWORK, (uint32_t)l, 0);
    double half_width = l < d->nlayer - 1 ? 1 / sqrt(d->size[l]) : 1;
    for (int i = 0; i < d->size[l] * d->size[l + 1]; i++) {
      param[d->weight[l] + (size_t)i] = (float)rng_range(&draw, -half_width, half_width);
    }
  }
}

// new rows in a full batch, and how many batches make a pass
static int batches_of(const struct add *a) {
  int64_t size = (int64_t)a->spec->add_batch * a->spec->envs;
  return size < a->rows ? (int)(a->rows / size) : 1;
}

void add_new(struct add *a, struct arena *arena, const struct spec *s, int nres, int rows,
             int nshard, int threads) {
  *a = (struct add){.spec = s, .nres = nres, .rows = rows};
  disc_shape(&a->net, nres, s->add_layers.v, s->add_layers.n);
  a->param = ARENA_NEW(arena, float, a->net.nparam);
  a->velocity = ARENA_NEW(arena, float, a->net.nparam);
  init_weights(a->param, &a->net, (uint64_t)s->seed);
  a->mean = ARENA_NEW(arena, double, nres);
  a->inverse = ARENA_NEW(arena, float, nres);
  for (int i = 0; i < nres; i++) {
    a->mean[i] = 1;
  }
  add_refresh(a);
  a->replay = ARENA_NEW(arena, float, (size_t)s->add_replay *(size_t)nres);

  a->order = ARENA_NEW(arena, int, rows);
  // a batch of new rows, which the last of a pass may exceed, and as many replayed ones
  int most = 2 * (rows / batches_of(a) + 1), chunks = (most + ADD_CHUNK - 1) / ADD_CHUNK;
  a->grad = ARENA_NEW(arena, float *, chunks);
  for (int i = 0; i < chunks; i++) {
    a->grad[i] = ARENA_NEW(arena, float, a->net.nparam);
  }
  a->total = ARENA_NEW(arena, double, nres);
  a->square = ARENA_NEW(arena, double, adam_blocks(a->net.nparam));
  a->sum = ARENA_NEW(arena, struct add_sums, nshard);
  a->work = ARENA_NEW(arena, struct add_work *, threads);
  for (int i = 0; i < threads; i++) {
    a->work[i] = ARENA_NEW(arena, struct add_work, 1);
    disc_cache_new(&a->work[i]->cache, arena, &a->net, ADD_CHUNK + 1); // one for the positive
  }
}

void add_refresh(struct add *a) {
  for (int i = 0; i < a->nres; i++) {
    a->inverse[i] = (float)(1 / fmax(a->mean[i], MEAN_MIN));
  }
}

static void normalise(float *x, const struct add *a, const float *residual) {
  for (int i = 0; i < a->nres; i++) {
    x[i] = residual[i] * a->inverse[i];
  }
}

// ---- reward

void add_judge(double *reward, float *slope, struct add *a, const float *residual, int rows,
               int shard, int thread) {
  struct disc_cache *c = &a->work[thread]->cache;
  struct add_sums *sum = &a->sum[shard];
  const struct spec *s = a->spec;
  size_t nres = (size_t)a->nres;
  *sum = (struct add_sums){0};
  for (int first = 0; first < rows; first += ADD_CHUNK) {
    int n = rows - first < ADD_CHUNK ? rows - first : ADD_CHUNK;
    for (int r = 0; r < n; r++) {
      normalise(c->h[0] + (size_t)r * nres, a, residual + (size_t)(first + r) * nres);
    }
    disc_fwd(c, &a->net, a->param, n);
    disc_bwd(c, &a->net, a->param, n);
    for (int r = 0; r < n; r++) {
      double out = (double)c->out[r], value = disc_softplus(out), square = 0;
      bool inside = value < s->add_clamp;
      float gain = inside ? (float)(s->add_scale * disc_sigmoid(out)) : 0;
      const float *dx = c->dx + (size_t)r * nres;
      float *to = slope + (size_t)(first + r) * nres;
      reward[first + r] = s->add_scale * (inside ? value : s->add_clamp);
      for (size_t i = 0; i < nres; i++) {
        square += (double)dx[i] * (double)dx[i];
        to[i] = gain * dx[i] * a->inverse[i];
      }
      sum->out += out;
      sum->grad += sqrt(square);
      sum->told += out < 0;
    }
  }
}

void add_judge_shard(struct add *a, struct rollout *r, double *reward, int shard, int thread) {
  int e0 = shard * r->S;
  size_t first = rollout_row(r, 0, e0) * (size_t)a->nres;
  add_judge(reward, r->slope + first, a, r->residual + first, r->N * r->S, shard, thread);
  for (int t = 0; t < r->N; t++) {
    for (int e = 0; e < r->S; e++) {
      int i = t * r->E + e0 + e;
      r->reward[i] += r->end[i] == TRACK_NONFINITE ? 0 : reward[t * r->S + e];
    }
  }
}

void add_sum_up(struct add_report *p, struct add *a, int nshard) {
  struct disc_cache *c = &a->work[0]->cache;
  *p = (struct add_report){0};
  for (int i = 0; i < nshard; i++) {
    p->out += a->sum[i].out / a->rows;
    p->grad += a->sum[i].grad / a->rows;
    p->told += a->sum[i].told / a->rows;
  }
  memset(c->h[0], 0, sizeof(float) * (size_t)a->nres);
  disc_fwd(c, &a->net, a->param, 1);
  p->zero = (double)c->out[0];
}

// ---- training

static struct rng draw_of(const struct add *a, enum add_draw what, int64_t iteration, int step) {
  return rng_stream((uint64_t)a->spec->seed, RNG_REPLAY, (uint32_t)what, (uint32_t)iteration,
                    (uint32_t)step);
}

static void shuffle(struct add *a, enum add_draw what, int64_t iteration, int step) {
  struct rng draw = draw_of(a, what, iteration, step);
  rng_shuffle(&draw, a->order, a->rows);
}

// The whole window until the buffer is full, then a random part of it over the oldest.
static void push_replay(struct add *a, const float *residual, int64_t iteration) {
  int64_t size = a->spec->add_replay;
  size_t nres = (size_t)a->nres;
  int push = a->replay_count < size || a->spec->add_replay_push > a->rows
                 ? a->rows
                 : a->spec->add_replay_push;
  shuffle(a, DRAW_PUSH, iteration, 0);
  for (int i = 0; i < push && size > 0; i++) {
    memcpy(a->replay + (size_t)a->replay_head * nres, residual + (size_t)a->order[i] * nres,
           sizeof(float) * nres);
    a->replay_head = (a->replay_head + 1) % size;
    a->replay_count += a->replay_count < size;
  }
}

struct batch {
  const float *residual;      // of the window
  int first, fresh, replayed; // rows: first .. first + fresh of the order, and replayed ones
  int64_t iteration;
  int step; // of the iteration
};

// the gradient of one chunk of a batch into its slab; chunk 0 also has the positive and mu |w|^2
static void chunk_gradient(struct add *a, const struct batch *b, int chunk, int thread) {
  struct disc_cache *c = &a->work[thread]->cache;
  size_t nres = (size_t)a->nres;
  int negative = b->fresh + b->replayed, row = chunk * ADD_CHUNK;
  int rows = negative - row < ADD_CHUNK ? negative - row : ADD_CHUNK;
  for (int r = 0; r < rows; r++) {
    int i = row + r;
    const float *from;
    if (i < b->fresh) {
      from = b->residual + (size_t)a->order[b->first + i] * nres;
    } else {
      // one draw of a stream of its own, so that chunks need not know of each other
      struct rng draw =
          rng_stream((uint64_t)a->spec->seed, RNG_REPLAY, (uint32_t)(DRAW_REPLAY + i - b->fresh),
                     (uint32_t)b->iteration, (uint32_t)b->step);
      from = a->replay + (size_t)rng_below(&draw, (uint32_t)a->replay_count) * nres;
    }
    normalise(c->h[0] + (size_t)r * nres, a, from);
  }
  if (chunk == 0) {
    memset(c->h[0] + (size_t)rows * nres, 0, sizeof(float) * nres);
  }
  disc_loss(a->grad[chunk], c, &a->net, a->param, rows, chunk == 0, 1.0 / negative,
            a->spec->add_gradient_penalty);
  if (chunk == 0) {
    disc_logit_loss(a->grad[0], &a->net, a->param, a->spec->add_logit_reg);
  }
}

// Stochastic gradient descent with momentum on a block of the slab, the gradient being in grad[0].
static void descend(struct add *a, int block) {
  const struct spec *s = a->spec;
  const float lr = (float)s->add_lr, momentum = (float)s->add_momentum;
  const float decay = (float)s->add_weight_decay, *grad = a->grad[0];
  size_t first = (size_t)block * ADAM_BLOCK, n = a->net.nparam;
  size_t end = first + ADAM_BLOCK < n ? first + ADAM_BLOCK : n;
  for (size_t i = first; i < end; i++) {
    a->velocity[i] = momentum * a->velocity[i] + (grad[i] + decay * a->param[i]);
    a->param[i] -= lr * a->velocity[i];
  }
}

static void update(struct add *a, const struct batch *b) {
  int nchunk = (b->fresh + b->replayed + ADD_CHUNK - 1) / ADD_CHUNK;
  int nblock = adam_blocks(a->net.nparam);
#pragma omp for schedule(static)
  for (int i = 0; i < nchunk; i++) {
    chunk_gradient(a, b, i, omp_get_thread_num());
  }
#pragma omp for schedule(static)
  for (int i = 0; i < nblock; i++) {
    a->square[i] = gradient_sum(a->grad, nchunk, a->net.nparam, i);
  }
#pragma omp single
  {
    double square = 0;
    for (int i = 0; i < nblock; i++) {
      square += a->square[i];
    }
    a->finite = isfinite(square) != 0;
    a->bad_updates += !a->finite;
  }
  if (a->finite) {
#pragma omp for schedule(static)
    for (int i = 0; i < nblock; i++) {
      descend(a, i);
    }
  }
}

void add_train(struct add *a, const float *residual, int64_t iteration) {
  int n = batches_of(a);
#pragma omp single
  push_replay(a, residual, iteration);
  for (int epoch = 0; epoch < a->spec->add_epochs; epoch++) {
#pragma omp single
    shuffle(a, DRAW_SHUFFLE, iteration, epoch);
    for (int k = 0; k < n; k++) {
      int first = (int)((int64_t)k * a->rows / n), end = (int)((int64_t)(k + 1) * a->rows / n);
      struct batch b = {.residual = residual,
                        .first = first,
                        .fresh = end - first,
                        .replayed = a->replay_count > 0 ? end - first : 0,
                        .iteration = iteration,
                        .step = epoch * n + k};
      update(a, &b);
    }
  }
}

void add_finish(struct add *a, const float *residual) {
  double share = a->rows / (a->count + a->rows);
  memset(a->total, 0, sizeof(double) * (size_t)a->nres);
  for (int r = 0; r < a->rows; r++) {
    for (int i = 0; i < a->nres; i++) {
      a->total[i] += fabs((double)*residual++);
    }
  }
  for (int i = 0; i < a->nres; i++) {
    a->mean[i] += share * (a->total[i] / a->rows - a->mean[i]);
  }
  a->count += a->rows;
  add_refresh(a);
}
