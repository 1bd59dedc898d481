// The discriminator of ADD. Its mathematics is one text, compiled here in double as well: values in
// closed form, the double backward against differences; then the learner's float build against
// that, its optimiser, normaliser and replay buffer.
#include "learn/add.h"
#include "base/rng.h"
#include "learn/gemm.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void gemm_double(double *c, const double *a, const double *b, int m, int n, int k,
                        double beta, int a_row, int a_col, int b_row, int b_col) {
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int l = 0; l < k; l++) {
        sum += a[i * a_row + l * a_col] * b[l * b_row + j * b_col];
      }
      c[i * n + j] = sum + (beta != 0 ? beta * c[i * n + j] : 0);
    }
  }
}
static void double_nt(double *c, const double *a, const double *b, int m, int n, int k,
                      double beta) {
  gemm_double(c, a, b, m, n, k, beta, k, 1, 1, k);
}
static void double_nn(double *c, const double *a, const double *b, int m, int n, int k,
                      double beta) {
  gemm_double(c, a, b, m, n, k, beta, k, 1, n, 1);
}
static void double_tn(double *c, const double *a, const double *b, int m, int n, int k,
                      double beta) {
  gemm_double(c, a, b, m, n, k, beta, 1, m, n, 1);
}
#define disc_real       double
#define DISC_GEMM(kind) double_##kind
#include "learn/discriminator.inl"

static struct arena arena;

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  return 0;
}

static void assert_near(double got, double want, double tol) {
  if (!(fabs(got - want) <= tol)) {
    fail_msg("got %.17g, want %.17g, off by %g", got, want, got - want);
  }
}

static struct rng stream(uint32_t which) {
  return rng_stream(1, RNG_TEST, which, 0, 0);
}

// ---- the mathematics, in double

// D(x) = 3 relu(2 x + 1) - 1, on the negative x = 1/2 and the positive 0
static void test_closed_form(void **state) {
  (void)state;
  struct disc d;
  struct disc_cache c;
  disc_shape(&d, 1, (const int[]){1}, 1);
  disc_cache_new(&c, &arena, &d, 2);
  assert_int_equal(d.nparam, 4);
  double param[4] = {2, 1, 3, -1}, grad[4];
  c.h[0][0] = 0.5;
  c.h[0][1] = 0;
  disc_fwd(&c, &d, param, 2);
  disc_bwd(&c, &d, param, 2);
  assert_near(c.out[0], 5, 0);
  assert_near(c.out[1], 2, 0);
  assert_near(c.dx[0], 6, 0);
  double loss = disc_loss(grad, &c, &d, param, 1, true, 1, 2);
  assert_near(loss, 0.5 * log(1 + exp(-2)) + 0.5 * log(1 + exp(5)) + 36 + 36, 1e-12);
  assert_near(disc_logit_loss(grad, &d, param, 0.01), 0.09, 1e-15);
  // e of the negative and of the positive; the penalty is (w v)^2 each
  double en = 0.5 / (1 + exp(-5)), ep = -0.5 / (1 + exp(2));
  assert_near(grad[0], en * 3 * 0.5 + 2 * (2 * 2 * 9), 1e-12);
  assert_near(grad[1], (en + ep) * 3, 1e-12);
  assert_near(grad[2], en * 2 + ep * 1 + 2 * (2 * 4 * 3) + 0.06, 1e-12);
  assert_near(grad[3], en + ep, 1e-12);
}

static void test_softplus(void **state) {
  (void)state;
  static const double at[] = {-700, -30, -1, 0, 1, 30, 700};
  for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
    double x = at[i], want = x > 100 ? x : log1p(exp(x));
    assert_near(disc_softplus(x), want, 1e-15 * (1 + fabs(want)));
    assert_near(disc_sigmoid(x), 1 / (1 + exp(-x)), 1e-15);
  }
}

struct problem {
  struct disc d;
  struct disc_cache c;
  double *x, *param, *grad;
  int negative;
  double lambda, mu;
};

static double problem_loss(struct problem *p, const double *param, double *grad) {
  size_t n = (size_t)(p->negative * p->d.size[0]);
  memcpy(p->c.h[0], p->x, sizeof(double) * n);
  memset(p->c.h[0] + n, 0, sizeof(double) * (size_t)p->d.size[0]);
  double loss =
      disc_loss(grad, &p->c, &p->d, param, p->negative, true, 1.0 / p->negative, p->lambda);
  return loss + disc_logit_loss(grad, &p->d, param, p->mu);
}

static void check_double_backward(const int *hidden, int nhidden, double lambda, double mu) {
  struct problem p = {.negative = 12, .lambda = lambda, .mu = mu};
  struct rng draw = stream((uint32_t)(10 + nhidden));
  int nin = 11;
  disc_shape(&p.d, nin, hidden, nhidden);
  disc_cache_new(&p.c, &arena, &p.d, p.negative + 1);
  size_t n = p.d.nparam;
  p.x = ARENA_NEW(&arena, double, p.negative *nin);
  p.param = ARENA_NEW(&arena, double, n);
  p.grad = ARENA_NEW(&arena, double, n);
  double *other = ARENA_NEW(&arena, double, n), *scratch = ARENA_NEW(&arena, double, n);
  for (int i = 0; i < p.negative * nin; i++) {
    p.x[i] = rng_normal(&draw);
  }
  for (size_t i = 0; i < n; i++) {
    p.param[i] = 0.5 * rng_normal(&draw);
  }
  problem_loss(&p, p.param, p.grad);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < n; i++) {
    largest = fmax(largest, fabs(p.grad[i]));
  }
  // every parameter, and twenty directions through all of them
  int kinks = 0;
  for (size_t k = 0; k < n + 20; k++) {
    double slope = 0, fd[2];
    double *along = ARENA_NEW(&arena, double, n);
    for (size_t i = 0; i < n; i++) {
      along[i] = k < n ? i == k : rng_normal(&draw) / sqrt((double)n);
      slope += along[i] * p.grad[i];
    }
    for (int half = 0; half < 2; half++) {
      // four-point differences: error of order h^4
      static const double at[4] = {-2, -1, 1, 2},
                          weight[4] = {1. / 12, -8. / 12, 8. / 12, -1. / 12};
      double h = half ? 1e-4 : 2e-4;
      fd[half] = 0;
      for (int j = 0; j < 4; j++) {
        for (size_t i = 0; i < n; i++) {
          other[i] = p.param[i] + at[j] * h * along[i];
        }
        fd[half] += weight[j] / h * problem_loss(&p, other, scratch);
      }
    }
    // a ReLU opens or closes within the step: differences do not agree with themselves
    if (fabs(fd[0] - fd[1]) > 1e-7 * largest) {
      kinks++;
      continue;
    }
    worst = fmax(worst, fabs(fd[1] - slope) / fmax(fabs(slope), 1e-3 * largest));
  }
  print_message("%d hidden layers, penalty %g: worst relative error %.1e, %d kinks in %d\n",
                nhidden, lambda, worst, kinks, (int)n + 20);
  assert_true(worst < 1e-6);
  assert_true(kinks * 20 < (int)n);
}
static void test_double_backward(void **state) {
  (void)state;
  check_double_backward((const int[]){9}, 1, 2, 0.01);
  check_double_backward((const int[]){13, 7}, 2, 2, 0.01);
  check_double_backward((const int[]){13, 7}, 2, 0, 0);
  check_double_backward((const int[]){13, 7}, 2, 40, 0);
  check_double_backward((const int[]){8, 9, 6}, 3, 2, 0.01);
}

// chunks of a batch add up to the whole
static void test_chunks_add_up(void **state) {
  (void)state;
  struct disc d;
  struct disc_cache c;
  disc_shape(&d, 5, (const int[]){7, 4}, 2);
  disc_cache_new(&c, &arena, &d, 10);
  struct rng draw = stream(3);
  double x[45], *param = ARENA_NEW(&arena, double, d.nparam);
  double *whole = ARENA_NEW(&arena, double, d.nparam), *part = ARENA_NEW(&arena, double, d.nparam);
  for (int i = 0; i < 45; i++) {
    x[i] = rng_normal(&draw);
  }
  for (size_t i = 0; i < d.nparam; i++) {
    param[i] = rng_normal(&draw);
  }
  memcpy(c.h[0], x, sizeof x);
  memset(c.h[0] + 45, 0, 5 * sizeof(double));
  double loss = disc_loss(whole, &c, &d, param, 9, true, 1. / 9, 2);
  memcpy(c.h[0], x, 20 * sizeof(double));
  memset(c.h[0] + 20, 0, 5 * sizeof(double));
  loss -= disc_loss(part, &c, &d, param, 4, true, 1. / 9, 2);
  for (size_t i = 0; i < d.nparam; i++) {
    whole[i] -= part[i];
  }
  memcpy(c.h[0], x + 20, 25 * sizeof(double));
  loss -= disc_loss(part, &c, &d, param, 5, false, 1. / 9, 2);
  assert_near(loss, 0, 1e-12);
  for (size_t i = 0; i < d.nparam; i++) {
    assert_near(whole[i], part[i], 1e-12);
  }
}

// ---- the learner's build

enum { NRES = 6, ROWS = 300 };

static void small_spec(struct spec *s) {
  spec_default(s);
  s->envs = 16;
  s->add_layers = (struct spec_ints){.n = 2, .v = {20, 12}};
}

static float *residuals_new(uint32_t which) {
  float *x = ARENA_NEW(&arena, float, NRES *ROWS);
  struct rng draw = stream(which);
  for (int i = 0; i < NRES * ROWS; i++) {
    x[i] = (float)(0.3 * (1 + i % NRES) * rng_normal(&draw) + 0.1);
  }
  return x;
}

// its weights, as doubles
static double *weights_of(const struct add *a) {
  double *param = ARENA_NEW(&arena, double, a->net.nparam);
  for (size_t i = 0; i < a->net.nparam; i++) {
    param[i] = (double)a->param[i];
  }
  return param;
}

static void test_initial_weights(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  spec_default(&s);
  add_new(&a, &arena, &s, 85, 2048, 2, 1);
  assert_int_equal(a.net.nparam, 85 * 256 + 256 + 256 * 128 + 128 + 128 + 1);
  static const double bound[] = {1 / 9.219544457292887, 1. / 16, 1}; // 1/sqrt(85), 1/sqrt(256), 1
  for (int l = 0; l < 3; l++) {
    double largest = 0, square = 0;
    int n = a.net.size[l] * a.net.size[l + 1];
    for (int i = 0; i < n; i++) {
      double w = (double)a.param[a.net.weight[l] + (size_t)i];
      largest = fmax(largest, fabs(w));
      square += w * w / n;
    }
    assert_true(largest <= bound[l] && largest > 0.95 * bound[l]);
    // variance of a uniform number; five standard errors of its estimate
    assert_near(square / (bound[l] * bound[l]), 1. / 3, 5 * 0.3 / sqrt(n));
    for (int i = 0; i < a.net.size[l + 1]; i++) {
      assert_true(a.param[a.net.bias[l] + (size_t)i] == 0);
    }
  }
}

// reward and slope against the double build, with normaliser and clamp; slope against differences
static void test_judge(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  small_spec(&s);
  s.add_scale = 1.7;
  s.add_clamp = 0.8;
  add_new(&a, &arena, &s, NRES, ROWS, 2, 1);
  for (int i = 0; i < NRES; i++) {
    a.mean[i] = i == 2 ? 1e-9 : 0.5 + i; // one that stays below the floor
  }
  add_refresh(&a);
  float *x = residuals_new(1), *slope = ARENA_NEW(&arena, float, NRES *ROWS);
  double reward[ROWS], *param = weights_of(&a);
  for (int r = 0; r < ROWS; r++) {
    x[r * NRES + 2] *= 1e-4f;
  }
  // two shards, as the learner calls it
  add_judge(reward, slope, &a, x, 200, 0, 0);
  add_judge(reward + 200, slope + 200 * NRES, &a, x + 200 * NRES, ROWS - 200, 1, 0);

  struct disc_cache c;
  disc_cache_new(&c, &arena, &a.net, 1);
  int clamped = 0, told = 0;
  double out = 0, grad = 0;
  for (int r = 0; r < ROWS; r++) {
    double inverse[NRES], square = 0;
    for (int i = 0; i < NRES; i++) {
      inverse[i] = 1 / (i == 2 ? 1e-4 : 0.5 + i);
      c.h[0][i] = (double)x[r * NRES + i] * inverse[i];
    }
    disc_fwd(&c, &a.net, param, 1);
    disc_bwd(&c, &a.net, param, 1);
    double value = log1p(exp(c.out[0]));
    bool over = value > 0.8;
    assert_true(fabs(value - 0.8) > 1e-5); // float and double are of one mind
    assert_near(reward[r], 1.7 * fmin(value, 0.8), 1e-5);
    for (int i = 0; i < NRES; i++) {
      double want = over ? 0 : 1.7 / (1 + exp(-c.out[0])) * c.dx[i] * inverse[i];
      assert_near((double)slope[r * NRES + i], want, 1e-5 * fmax(1, fabs(want)));
      square += c.dx[i] * c.dx[i];
    }
    clamped += over;
    told += c.out[0] < 0;
    out += c.out[0] / ROWS;
    grad += sqrt(square) / ROWS;
  }
  assert_true(clamped > 5 && clamped < ROWS - 5);
  struct add_report p;
  add_sum_up(&p, &a, 2);
  assert_near(p.told, (double)told / ROWS, 1e-12);
  assert_near(p.out, out, 1e-5);
  assert_near(p.grad, grad, 1e-5);
  assert_near(p.zero, 0, 0); // biases are 0 so far
}

// One update is param - lr (gradient + decay param), then the same with momentum.
static void test_update(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  small_spec(&s);
  s.envs = ROWS;
  s.add_batch = 1; // the window is one batch
  s.add_epochs = 1;
  s.add_replay = 0;
  s.add_lr = 0.05;
  s.add_weight_decay = 0.02;
  add_new(&a, &arena, &s, NRES, ROWS, 1, 1);
  float *x = residuals_new(1);
  size_t n = a.net.nparam;
  double *param = weights_of(&a), *grad = ARENA_NEW(&arena, double, n);
  double *velocity = ARENA_NEW(&arena, double, n);
  struct disc_cache c;
  disc_cache_new(&c, &arena, &a.net, ROWS + 1);
  for (int step = 0; step < 3; step++) {
    for (int i = 0; i < NRES * ROWS; i++) {
      c.h[0][i] = (double)x[i];
    }
    memset(c.h[0] + NRES * ROWS, 0, NRES * sizeof(double));
    disc_loss(grad, &c, &a.net, param, ROWS, true, 1.0 / ROWS, s.add_gradient_penalty);
    disc_logit_loss(grad, &a.net, param, s.add_logit_reg);
    add_train(&a, x, step);
    double moved = 0;
    for (size_t i = 0; i < n; i++) {
      velocity[i] = 0.9 * velocity[i] + grad[i] + 0.02 * param[i];
      param[i] -= 0.05 * velocity[i];
      moved = fmax(moved, fabs(0.05 * velocity[i]));
      assert_near((double)a.param[i], param[i], 2e-6);
    }
    assert_true(moved > 0.01);
  }
  assert_int_equal(a.bad_updates, 0);
}

// a gradient that is not finite changes nothing, and is counted
static void test_bad_update(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  small_spec(&s);
  add_new(&a, &arena, &s, NRES, ROWS, 1, 1);
  float *x = residuals_new(1), *before = ARENA_NEW(&arena, float, a.net.nparam);
  memcpy(before, a.param, sizeof *before * a.net.nparam);
  for (int r = 0; r < ROWS; r++) {
    x[r * NRES] = NAN;
  }
  add_train(&a, x, 0);
  assert_int_equal(a.bad_updates, s.add_epochs * (ROWS / (s.add_batch * s.envs)));
  assert_memory_equal(before, a.param, sizeof *before * a.net.nparam);
}

static void test_normaliser(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  small_spec(&s);
  add_new(&a, &arena, &s, NRES, ROWS, 1, 1);
  float *x[2] = {residuals_new(1), residuals_new(2)};
  assert_true(a.inverse[3] == 1);
  for (int k = 0; k < 2; k++) {
    add_finish(&a, x[k]);
    for (int i = 0; i < NRES; i++) {
      double sum = 0;
      for (int r = 0; r < ROWS; r++) {
        sum += fabs((double)x[0][r * NRES + i]) + (k ? fabs((double)x[1][r * NRES + i]) : 0);
      }
      double mean = sum / (ROWS * (k + 1));
      assert_near(a.mean[i], mean, 1e-12);
      assert_near((double)a.inverse[i] * mean, 1, 1e-6);
    }
  }
}

static bool has_row(const float *x, int n, const float *row) {
  for (int r = 0; r < n; r++) {
    if (!memcmp(x + r * NRES, row, NRES * sizeof *row)) {
      return true;
    }
  }
  return false;
}

static void test_replay(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  small_spec(&s);
  s.add_epochs = 0;
  s.add_replay = ROWS + 40;
  s.add_replay_push = 10;
  add_new(&a, &arena, &s, NRES, ROWS, 1, 1);
  float *x[3] = {residuals_new(1), residuals_new(2), residuals_new(3)};
  int count[3];
  // whole windows until it is full, the oldest going first; then ten at a time
  static const int want[3][3] = {{ROWS, 0, 0}, {40, ROWS, 0}, {30, ROWS, 10}};
  for (int k = 0; k < 3; k++) {
    add_train(&a, x[k], k);
    assert_int_equal(a.replay_count, k ? ROWS + 40 : ROWS);
    for (int w = 0; w < 3; w++) {
      count[w] = 0;
      for (int r = 0; r < a.replay_count; r++) {
        count[w] += has_row(x[w], ROWS, a.replay + r * NRES);
      }
      assert_int_equal(count[w], want[k][w]);
    }
  }
}

// the same bytes for any number of threads
static void test_threads(void **state) {
  (void)state;
  float *first = NULL;
  for (int threads = 1; threads <= 4; threads++) {
    struct spec s;
    struct add a;
    small_spec(&s);
    s.envs = 150;
    s.add_batch = 1; // batches of 150 new and 150 replayed: three chunks
    s.add_lr = 0.01;
    add_new(&a, &arena, &s, NRES, ROWS, 1, threads);
    for (int k = 0; k < 3; k++) {
      float *x = residuals_new((uint32_t)k);
#pragma omp parallel num_threads(threads)
      add_train(&a, x, k);
      add_finish(&a, x);
    }
    first = first ? first : a.param;
    assert_memory_equal(first, a.param, sizeof(float) * a.net.nparam);
  }
}

// It learns to tell residuals from zero, and the penalty keeps its slope near what it asks for.
static void test_learns(void **state) {
  (void)state;
  struct spec s;
  struct add a;
  struct add_report p;
  small_spec(&s);
  s.add_lr = 0.01;
  add_new(&a, &arena, &s, NRES, ROWS, 1, 1);
  float *slope = ARENA_NEW(&arena, float, NRES *ROWS);
  double reward[ROWS];
  for (int k = 0; k < 200; k++) {
    float *x = residuals_new((uint32_t)k);
    add_judge(reward, slope, &a, x, ROWS, 0, 0);
    add_sum_up(&p, &a, 1);
    add_train(&a, x, k);
    add_finish(&a, x);
  }
  assert_true(p.zero > 0.2 && p.out < -0.05 && p.told > 0.6);
  assert_true(p.grad > 0.05 && p.grad < 1);
}

int main(void) {
  gemm_start();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_closed_form),     cmocka_unit_test(test_softplus),
      cmocka_unit_test(test_double_backward), cmocka_unit_test(test_chunks_add_up),
      cmocka_unit_test(test_initial_weights), cmocka_unit_test(test_judge),
      cmocka_unit_test(test_update),          cmocka_unit_test(test_bad_update),
      cmocka_unit_test(test_normaliser),      cmocka_unit_test(test_replay),
      cmocka_unit_test(test_threads),         cmocka_unit_test(test_learns),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
