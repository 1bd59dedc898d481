// The parts of the learner that know no robot: networks against a plain double implementation and
// its central differences, Adam, returns, normaliser and critics against closed forms.
#include "base/err.h"
#include "learn/adam.h"
#include "learn/critic.h"
#include "learn/gemm.h"
#include "learn/mlp.h"
#include "learn/normalizer.h"
#include "learn/returns.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka last: it needs the headers above
#include <cmocka.h>

// holds for no NaN
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

// ---- networks

enum { ROWS = 5, NIN = 11, NOUT = 3 };
static const int hidden[3] = {16, 13, 7}; // not all multiples of the vector width

// The network again, in double, row by row, straight from its definition.
static void reference_row(double *y, const struct mlp *m, const double *param, const double *x) {
  double in[64], out[64];
  memcpy(in, x, sizeof(double) * (size_t)m->size[0]);
  for (int l = 0; l < m->nlayer; l++) {
    int ni = m->size[l], no = m->size[l + 1];
    for (int j = 0; j < no; j++) {
      out[j] = param[m->bias[l] + (size_t)j];
      for (int i = 0; i < ni; i++) {
        out[j] += param[m->weight[l] + (size_t)(j * ni + i)] * in[i];
      }
    }
    if (l < m->nlayer - 1) {
      double mean = 0, var = 0;
      for (int j = 0; j < no; j++) {
        out[j] = out[j] > 0 ? out[j] : expm1(out[j]);
        mean += out[j] / no;
      }
      if (!m->layer_norm) {
        memcpy(in, out, sizeof in);
        continue;
      }
      for (int j = 0; j < no; j++) {
        var += (out[j] - mean) * (out[j] - mean) / no;
      }
      for (int j = 0; j < no; j++) {
        out[j] = (out[j] - mean) / sqrt(var + 1e-5) * param[m->gain[l] + (size_t)j] +
                 param[m->shift[l] + (size_t)j];
      }
    }
    memcpy(in, out, sizeof in);
  }
  memcpy(y, out, sizeof(double) * (size_t)m->size[m->nlayer]);
}

struct net {
  struct arena arena;
  struct mlp m;
  float *param, *grad, *x, *y, *dy, *dx, *tmp;
  struct mlp_cache cache;
};

static void net_new(struct net *n, bool layer_norm) {
  arena_init(&n->arena);
  struct arena *a = &n->arena;
  mlp_shape(&n->m, NIN, hidden, 3, NOUT, layer_norm);
  n->param = ARENA_NEW(a, float, n->m.nparam);
  n->grad = ARENA_NEW(a, float, n->m.nparam);
  n->x = ARENA_NEW(a, float, ROWS *NIN);
  n->dx = ARENA_NEW(a, float, ROWS *NIN);
  n->y = ARENA_NEW(a, float, ROWS *NOUT);
  n->dy = ARENA_NEW(a, float, ROWS *NOUT);
  n->tmp = ARENA_NEW(a, float, 2 * ROWS * (n->m.widest + 1));
  mlp_cache_new(&n->cache, a, &n->m, ROWS);
  mlp_init(n->param, &n->m, 7, 0, 1);
  // every number away from its special initial value
  struct rng r = rng_stream(1, RNG_TEST, 0, 0, 0);
  for (size_t i = 0; i < n->m.nparam; i++) {
    n->param[i] += (float)rng_range(&r, -0.3, 0.3);
  }
  for (int i = 0; i < ROWS * NIN; i++) {
    n->x[i] = (float)rng_range(&r, -3, 3);
  }
  for (int i = 0; i < ROWS * NOUT; i++) {
    n->dy[i] = (float)rng_range(&r, -1, 1);
  }
}

// sum of dy * y by the double implementation, parameters and inputs shifted by h along directions
static double reference_loss(const struct net *n, const double *along_param, const double *along_x,
                             double h) {
  double param[2048], x[NIN], y[NOUT], loss = 0;
  assert_true(n->m.nparam <= 2048);
  for (size_t i = 0; i < n->m.nparam; i++) {
    param[i] = (double)n->param[i] + (along_param ? h * along_param[i] : 0);
  }
  for (int r = 0; r < ROWS; r++) {
    for (int i = 0; i < NIN; i++) {
      x[i] = (double)n->x[r * NIN + i] + (along_x ? h * along_x[r * NIN + i] : 0);
    }
    reference_row(y, &n->m, param, x);
    for (int j = 0; j < NOUT; j++) {
      loss += (double)n->dy[r * NOUT + j] * y[j];
    }
  }
  return loss;
}

static void check_forward(bool layer_norm) {
  struct net n;
  net_new(&n, layer_norm);
  mlp_fwd(n.y, &n.cache, &n.m, n.param, n.x, 0, ROWS);
  float again[ROWS * NOUT];
  mlp_eval(again, &n.m, n.param, n.x, ROWS, n.tmp);
  assert_memory_equal(again, n.y, sizeof again);
  double param[2048], x[NIN], y[NOUT];
  for (size_t i = 0; i < n.m.nparam; i++) {
    param[i] = (double)n.param[i];
  }
  for (int r = 0; r < ROWS; r++) {
    for (int i = 0; i < NIN; i++) {
      x[i] = (double)n.x[r * NIN + i];
    }
    reference_row(y, &n.m, param, x);
    for (int j = 0; j < NOUT; j++) {
      assert_near((double)n.y[r * NOUT + j], y[j], 5e-6);
    }
  }
  arena_release(&n.arena);
}

static void test_forward(void **state) {
  (void)state;
  check_forward(true);
  check_forward(false);
}

// ELU alone, over its whole range: two units of opposite input, read from the cache.
static void test_elu(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct mlp m;
  int two = 2;
  mlp_shape(&m, 1, &two, 1, 1, true);
  float *param = ARENA_NEW(&a, float, m.nparam), y;
  struct mlp_cache c;
  mlp_cache_new(&c, &a, &m, 1);
  param[m.weight[0]] = 1;
  param[m.weight[0] + 1] = -1;
  for (double x = 1e-7; x < 200; x *= 1.03) {
    float in = (float)x;
    mlp_fwd(&y, &c, &m, param, &in, 0, 1);
    assert_true(c.h[0][0] == in);
    double want = expm1(-(double)in);
    assert_true(fabs((double)c.h[0][1] - want) <= 3e-7 * fabs(want));
  }
  arena_release(&a);
}

static void check_backward(bool layer_norm) {
  struct net n;
  net_new(&n, layer_norm);
  // rows in two pieces, last first, as a rollout does; gradients add up
  mlp_fwd(n.y, &n.cache, &n.m, n.param, n.x, 0, 2);
  mlp_fwd(n.y + 2 * NOUT, &n.cache, &n.m, n.param, n.x + 2 * NIN, 2, ROWS - 2);
  mlp_bwd(n.dx + 2 * NIN, n.grad, &n.cache, &n.m, n.param, n.dy + 2 * NOUT, 2, ROWS - 2, n.tmp);
  mlp_bwd(n.dx, n.grad, &n.cache, &n.m, n.param, n.dy, 0, 2, n.tmp);
  mlp_grad(n.grad, &n.cache, &n.m, n.x, 0, ROWS);

  double *one = ARENA_NEW(&n.arena, double, n.m.nparam), h = 1e-5;
  double scale = 0;
  for (size_t i = 0; i < n.m.nparam; i++) {
    scale = fmax(scale, fabs((double)n.grad[i]));
  }
  assert_true(scale > 0.1);
  for (size_t i = 0; i < n.m.nparam; i++) {
    one[i] = 1;
    double fd = (reference_loss(&n, one, NULL, h) - reference_loss(&n, one, NULL, -h)) / (2 * h);
    assert_true(fabs(fd - (double)n.grad[i]) <= 1e-5 * scale);
    one[i] = 0;
  }
  for (int i = 0; i < ROWS * NIN; i++) {
    one[i] = 1;
    double fd = (reference_loss(&n, NULL, one, h) - reference_loss(&n, NULL, one, -h)) / (2 * h);
    assert_true(fabs(fd - (double)n.dx[i]) <= 1e-5 * scale);
    one[i] = 0;
  }
  arena_release(&n.arena);
}

static void test_backward(void **state) {
  (void)state;
  check_backward(true);
  check_backward(false);
}

static void test_locate(void **state) {
  (void)state;
  struct mlp m;
  mlp_shape(&m, NIN, hidden, 3, NOUT, true);
  char text[64];
  mlp_locate(text, sizeof text, &m, 0);
  assert_string_equal(text, "layer 1 weight[0,0]");
  mlp_locate(text, sizeof text, &m, m.weight[1] + 16 + 3);
  assert_string_equal(text, "layer 2 weight[1,3]");
  mlp_locate(text, sizeof text, &m, m.gain[2] + 6);
  assert_string_equal(text, "layer 3 gain[6]");
  mlp_locate(text, sizeof text, &m, m.shift[0]);
  assert_string_equal(text, "layer 1 shift[0]");
  mlp_locate(text, sizeof text, &m, m.nparam - 1);
  assert_string_equal(text, "layer 4 bias[2]");
  mlp_shape(&m, NIN, hidden, 3, NOUT, false);
  mlp_locate(text, sizeof text, &m, m.weight[1] - 1);
  assert_string_equal(text, "layer 1 bias[15]");
}

// ---- Adam

enum { NPARAM = ADAM_BLOCK + 37 };

static void test_adam(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct adam adam;
  adam_new(&adam, &a, NPARAM, 0.7, 0.95);
  float *param = ARENA_NEW(&a, float, NPARAM), *part[3];
  double *want = ARENA_NEW(&a, double, NPARAM), *m = ARENA_NEW(&a, double, NPARAM);
  double *v = ARENA_NEW(&a, double, NPARAM), square[2];
  for (int k = 0; k < 3; k++) {
    part[k] = ARENA_NEW(&a, float, NPARAM);
  }
  struct rng r = rng_stream(2, RNG_TEST, 0, 0, 0);
  struct adam_update u = {.adam = &adam,
                          .param = param,
                          .part = part,
                          .nparts = 3,
                          .lr = 0.01,
                          .clip = 2,
                          .square = square};
  for (int step = 1; step <= 4; step++) {
    double norm = 0;
    double *g = ARENA_NEW(&a, double, NPARAM);
    for (int i = 0; i < NPARAM; i++) {
      for (int k = 0; k < 3; k++) {
        part[k][i] = (float)(rng_range(&r, -1, 1) * (i % 7) * (step == 3 ? 1e-4 : 1));
        g[i] += (double)part[k][i];
      }
      norm += g[i] * g[i];
    }
    norm = sqrt(norm);
    adam_update_run(&u);
    assert_true(fabs(u.norm - norm) < 1e-6 * norm);
    for (int i = 0; i < NPARAM; i++) {
      double x = g[i] * (norm > 2 ? 2 / norm : 1);
      m[i] = 0.7 * m[i] + 0.3 * x;
      v[i] = 0.95 * v[i] + 0.05 * x * x;
      want[i] -= 0.01 * (m[i] / (1 - pow(0.7, step))) / (sqrt(v[i] / (1 - pow(0.95, step))) + 1e-8);
      assert_near((double)param[i], want[i], 2e-6);
    }
  }
  assert_int_equal(adam.steps, 4);
  arena_release(&a);
}

static void test_adam_keeps_weights(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct adam adam;
  adam_new(&adam, &a, NPARAM, 0.7, 0.95);
  float *param = ARENA_NEW(&a, float, NPARAM), *part = ARENA_NEW(&a, float, NPARAM);
  float *before = ARENA_NEW(&a, float, NPARAM);
  double square[2];
  struct adam_update u = {.adam = &adam,
                          .param = param,
                          .part = &part,
                          .nparts = 1,
                          .lr = 0.01,
                          .clip = 1,
                          .square = square};
  for (int i = 0; i < NPARAM; i++) {
    part[i] = 1;
  }
  adam_update_run(&u);
  assert_int_equal(u.nonfinite, -1);
  memcpy(before, param, sizeof(float) * NPARAM);
  part[ADAM_BLOCK + 5] = NAN;
  part[ADAM_BLOCK + 9] = INFINITY;
  adam_update_run(&u);
  assert_int_equal(u.nonfinite, ADAM_BLOCK + 5);
  assert_int_equal(adam.steps, 1);
  assert_memory_equal(before, param, sizeof(float) * NPARAM);
  arena_release(&a);
}

static void test_decay(void **state) {
  (void)state;
  assert_near(adam_decay(2e-3, 1e-5, 0, 1000), 2e-3, 0);
  assert_near(adam_decay(2e-3, 1e-5, 250, 1000), 1.5e-3, 1e-12);
  assert_near(adam_decay(2e-3, 1e-5, 999, 1000), 1e-5, 0);
  assert_near(adam_decay(2e-3, 1e-5, 5000, 1000), 1e-5, 0);
}

// ---- returns

// Three steps, three environments: one runs through, one fails at step 1 (value 0 given), one is
// truncated at step 0. Numbers by hand with gamma = 0.5, lambda = 0.5.
static void test_returns(void **state) {
  (void)state;
  const double reward[9] = {1, 1, 1, 2, 2, 2, 4, 4, 4}, value[9] = {8, 8, 8, 6, 0, 6, 2, 2, 2};
  const unsigned char cut[9] = {0, 0, 2, 0, 1, 0, 0, 0, 0};
  double target[9], loss[3], discount[9];
  returns_targets(target, reward, value, cut, 3, 3, 0.5, 0.5, 0, 3);
  returns_losses(loss, discount, reward, value, cut, 3, 3, 0.5, 0, 3);
  // last step: 4 + .5*2 = 5. Step 1 of env 0: 2 + .5 (.5*6 + .5*5) = 4.75; step 0: 1 + .5 (4
  // + 2.375)
  const double want[9] = {4.1875, 3.5, 5, 4.75, 2, 4.75, 5, 5, 5};
  const double want_discount[9] = {1, 1, 1, .5, .5, 1, .25, 1, .5};
  for (int i = 0; i < 9; i++) {
    assert_near(target[i], want[i], 1e-15);
    assert_near(discount[i], want_discount[i], 0);
  }
  assert_near(loss[0], -(1 + 1 + 1 + .125 * 2), 1e-15);
  assert_near(loss[1], -(1 + 1 + 0) - (4 + .5 * 2), 1e-15);
  assert_near(loss[2], -(1 + .5 * 8) - (2 + 2 + .25 * 2), 1e-15);
}

// Statistics of two batches are those of all their losses.
static void test_return_stats(void **state) {
  (void)state;
  const double loss[8] = {-3, 5, 2, 2.5, 7, -1, 0, 4};
  struct return_stats s;
  return_stats_init(&s);
  return_stats_merge(&s, loss, 3);
  return_stats_merge(&s, loss + 3, 5);
  double mean = 0, var = 0;
  for (int i = 0; i < 8; i++) {
    mean += loss[i] / 8;
  }
  for (int i = 0; i < 8; i++) {
    var += (loss[i] - mean) * (loss[i] - mean) / 8;
  }
  assert_near(s.mean, mean, 1e-3); // the prior counts 1e-4 samples
  assert_near(s.var, var, 1e-3);
  assert_near(return_stats_scale(&s, true, 8, 4), 1 / (8 * sqrt(s.var + 1e-5)), 1e-12);
  assert_near(return_stats_scale(&s, false, 8, 4), 1. / 32, 1e-15);
}

// ---- normaliser

static void test_normalizer(void **state) {
  (void)state;
  enum { N = 3, A = 40, SAMPLES = 100, LANES = 8 };
  struct arena a;
  arena_init(&a);
  struct normalizer z;
  normalizer_new(&z, &a, N);
  struct rng r = rng_stream(3, RNG_TEST, 0, 0, 0);
  double x[SAMPLES][N];
  for (int s = 0; s < SAMPLES; s++) {
    for (int i = 0; i < N; i++) {
      x[s][i] = 1e3 * i + (i + 1) * rng_normal(&r);
    }
  }
  // in two batches, each as sums about the mean known before it
  for (int from = 0, to = A; from < SAMPLES; from = to, to = SAMPLES) {
    double sum[N] = {0}, square[N] = {0};
    for (int s = from; s < to; s++) {
      for (int i = 0; i < N; i++) {
        double d = x[s][i] - z.mean[i];
        sum[i] += d;
        square[i] += d * d;
      }
    }
    normalizer_merge(&z, sum, square, to - from);
  }
  assert_near(z.count, SAMPLES, 0);
  for (int i = 0; i < N; i++) {
    double mean = 0, var = 0;
    for (int s = 0; s < SAMPLES; s++) {
      mean += x[s][i] / SAMPLES;
    }
    for (int s = 0; s < SAMPLES; s++) {
      var += (x[s][i] - mean) * (x[s][i] - mean) / SAMPLES;
    }
    assert_near(z.mean[i], mean, 1e-9);
    assert_near(z.var[i], var, 1e-8);
  }

  // lanes to rows, clamped; the gradient is 0 where the clamp holds
  double obs[N * LANES], dobs[N * LANES], scale[LANES];
  float row[LANES * N], drow[LANES * N];
  for (int l = 0; l < LANES; l++) {
    scale[l] = l + 1;
    for (int i = 0; i < N; i++) {
      obs[i * LANES + l] = z.mean[i] + (l - 3) * 2 / z.inv_std[i];
      drow[l * N + i] = 0.5f;
    }
  }
  normalizer_fwd(row, &z, obs, LANES);
  normalizer_bwd(dobs, &z, drow, row, scale, LANES);
  for (int l = 0; l < LANES; l++) {
    for (int i = 0; i < N; i++) {
      double want = (l - 3) * 2;
      bool clamped = fabs(want) > 5;
      assert_near((double)row[l * N + i], clamped ? copysign(5, want) : want, 1e-5);
      assert_near(dobs[i * LANES + l], clamped ? 0 : 0.5 * z.inv_std[i] * (l + 1), 1e-9);
    }
  }
  arena_release(&a);
}

// ---- critics

static void critic_for_test(struct critic *c, struct critic_work *w, struct arena *a) {
  struct spec s;
  spec_default(&s);
  s.critic_layers = (struct spec_ints){.n = 2, .v = {16, 8}};
  s.critic_count = 3;
  critic_new(c, a, &s, NIN);
  critic_work_new(w, a, c);
  struct rng r = rng_stream(4, RNG_TEST, 0, 0, 0);
  for (size_t i = 0; i < c->nparam; i++) {
    c->param[i] += (float)rng_range(&r, -0.3, 0.3);
  }
}

static double smallest_value(const struct critic *c, const double *x) {
  double param[2048], y, least = INFINITY;
  for (int k = 0; k < c->count; k++) {
    for (size_t i = 0; i < c->net.nparam; i++) {
      param[i] = (double)c->param[(size_t)k * c->net.nparam + i];
    }
    reference_row(&y, &c->net, param, x);
    least = fmin(least, c->unit * y);
  }
  return least;
}

static void test_critic_minimum(void **state) {
  (void)state;
  enum { N = CRITIC_CHUNK + 9 };
  struct arena a;
  arena_init(&a);
  struct critic c;
  struct critic_work w;
  critic_for_test(&c, &w, &a);
  float *x = ARENA_NEW(&a, float, N *NIN), *dx = ARENA_NEW(&a, float, N *NIN);
  double *value = ARENA_NEW(&a, double, N), scale[8], xd[NIN];
  struct rng r = rng_stream(5, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < N * NIN; i++) {
    x[i] = (float)rng_range(&r, -2, 2);
  }
  critic_value(value, &c, &w, x, N);
  for (int s = 0; s < N; s++) {
    for (int i = 0; i < NIN; i++) {
      xd[i] = (double)x[s * NIN + i];
    }
    assert_near(value[s], smallest_value(&c, xd), 1e-4);
  }
  for (int s = 0; s < 8; s++) {
    scale[s] = s % 3; // some rows do not count
  }
  critic_gradient(dx, &c, &w, x, scale, 8);
  for (int s = 0; s < 8; s++) {
    for (int i = 0; i < NIN; i++) {
      xd[i] = (double)x[s * NIN + i];
    }
    for (int i = 0; i < NIN; i++) {
      double h = 1e-5, at = xd[i], fd;
      xd[i] = at + h;
      fd = smallest_value(&c, xd);
      xd[i] = at - h;
      fd = scale[s] * (fd - smallest_value(&c, xd)) / (2 * h);
      xd[i] = at;
      assert_near((double)dx[s * NIN + i], fd, 1e-3);
    }
  }
  arena_release(&a);
}

// Gradient of the batch's mean squared error, in two chunks, against differences of the loss.
static void test_critic_loss(void **state) {
  (void)state;
  enum { N = 12, FIRST = 5 };
  struct arena a;
  arena_init(&a);
  struct critic c;
  struct critic_work w;
  critic_for_test(&c, &w, &a);
  float x[N * NIN], target[N];
  struct rng r = rng_stream(6, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < N * NIN; i++) {
    x[i] = (float)rng_range(&r, -2, 2);
  }
  for (int s = 0; s < N; s++) {
    target[s] = (float)rng_range(&r, -1, 1);
  }
  float *grad = ARENA_NEW(&a, float, c.net.nparam);
  double loss = critic_loss(grad, &c, 1, &w, x, target, FIRST, N);
  loss += critic_loss(grad, &c, 1, &w, x + FIRST * NIN, target + FIRST, N - FIRST, N);
  double param[2048], shifted[2];
  for (size_t p = 0; p < c.net.nparam; p += 17) {
    for (int side = 0; side < 2; side++) {
      for (size_t i = 0; i < c.net.nparam; i++) {
        param[i] = (double)c.param[c.net.nparam + i] + (i == p ? (side ? 1e-5 : -1e-5) : 0);
      }
      shifted[side] = 0;
      for (int s = 0; s < N; s++) {
        double xd[NIN], y;
        for (int i = 0; i < NIN; i++) {
          xd[i] = (double)x[s * NIN + i];
        }
        reference_row(&y, &c.net, param, xd);
        shifted[side] += (y - (double)target[s]) * (y - (double)target[s]);
      }
    }
    assert_near((double)grad[p], (shifted[1] - shifted[0]) / 2e-5 / N, 2e-5);
    assert_near(loss, shifted[0], 1e-2);
  }
  arena_release(&a);
}

int main(void) {
  gemm_start();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward),        cmocka_unit_test(test_elu),
      cmocka_unit_test(test_backward),       cmocka_unit_test(test_locate),
      cmocka_unit_test(test_adam),           cmocka_unit_test(test_adam_keeps_weights),
      cmocka_unit_test(test_decay),          cmocka_unit_test(test_returns),
      cmocka_unit_test(test_return_stats),   cmocka_unit_test(test_normalizer),
      cmocka_unit_test(test_critic_minimum), cmocka_unit_test(test_critic_loss),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
