// Per-environment gradients against backward passes with one environment's loss alone, their
// statistics against closed forms, state gradients at contacts against central differences.
#include "base/file.h"
#include "learn/gemm.h"
#include "learn/gradcloud.h"
#include "learn/gradstat.h"
#include "learn/state.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { E = 16, N = 8 };

struct scene {
  struct arena arena;
  struct spec spec;
  struct world world;
  struct shac shac;
  struct learner learner; // view of it
};

// a small learner on the G1's walk, half a second into its episodes; size: of bundles
static struct scene *scene_new(int size, int envs, int threads) {
  struct scene *s = calloc(1, sizeof *s);
  struct err e = {0};
  arena_init(&s->arena);
  spec_default(&s->spec);
  struct spec *p = &s->spec;
  p->robot = "robots/g1.xml";
  p->motion = "motions/walk.csv.gz";
  p->envs = envs;
  p->horizon = N;
  p->shard = 8;
  p->threads = threads;
  p->actor_layers = (struct spec_ints){.n = 2, .v = {40, 16}}; // 40: more than one piece
  p->critic_layers = (struct spec_ints){.n = 1, .v = {16}};
  p->seed = 3;
  p->bundle_size = size;
  p->bundle_force = 250; // so low that many windows open
  if (world_open(&s->world, &s->arena, p, &e)) {
    fail_msg("%s", e.text);
  }
  shac_new(&s->shac, &s->arena, &s->world);
  s->learner = learner_of_shac(&s->shac);
  shac_rollout(&s->shac);
  return s;
}

static void scene_free(struct scene *s) {
  arena_release(&s->arena);
  free(s);
}

static double dot(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    sum += (double)a[i] * (double)b[i];
  }
  return sum;
}

static double distance(const float *a, const float *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double d = (double)a[i] - (double)b[i];
    sum += d * d;
  }
  return sqrt(sum);
}

// ---- gradients of single environments

// Backward with all losses but one switched off: the window's discounts weigh rewards and
// bootstrap values, so zeros there take an environment out of the loss.
static void check_shares(int size) {
  struct scene *s = scene_new(size, E, 1);
  struct shac *l = &s->shac;
  shac_rollout(l);
  size_t n = l->nactor, rows = (size_t)E * N;
  float *all = ARENA_NEW(&s->arena, float, n), *sum = ARENA_NEW(&s->arena, float, n);
  float *share = ARENA_NEW(&s->arena, float, E *n), *alone = ARENA_NEW(&s->arena, float, E *n);
  double *gram = ARENA_NEW(&s->arena, double, E *E);
  double *discount = ARENA_NEW(&s->arena, double, rows);
  memcpy(discount, l->discount, sizeof *discount * rows);

  const double scale = 0.01;
  shac_gradient(l, scale);
  memcpy(all, l->grad[0], sizeof *all * n);
  gradstat_gram(gram, &s->arena, l);
  for (int e = 0; e < E; e++) {
    gradstat_share(share + (size_t)e * n, &s->arena, l, e);
    for (size_t i = 0; i < n; i++) {
      sum[i] += share[(size_t)e * n + i];
    }
  }
  assert_true(dot(all, all, n) > 0);
  assert_true(distance(sum, all, n) < 1e-5 * sqrt(dot(all, all, n)));

  for (int e = 0; e < E; e++) {
    for (size_t i = 0; i < rows; i++) {
      l->discount[i] = (int)i % E == e ? discount[i] : 0;
    }
    shac_gradient(l, scale);
    float *g = alone + (size_t)e * n;
    memcpy(g, l->grad[0], sizeof *g * n);
    assert_true(distance(share + (size_t)e * n, g, n) < 1e-5 * sqrt(dot(g, g, n)));
  }
  for (int e = 0; e < E; e++) {
    for (int f = 0; f < E; f++) {
      const float *a = alone + (size_t)e * n, *b = alone + (size_t)f * n;
      double size_of = sqrt(dot(a, a, n) * dot(b, b, n));
      assert_true(fabs(gram[e * E + f] / E / E - dot(a, b, n)) < 1e-5 * size_of);
    }
  }
  scene_free(s);
}

static void test_shares_plain(void **state) {
  (void)state;
  check_shares(1);
}

static void test_shares_bundled(void **state) {
  (void)state;
  check_shares(4);
}

static void test_gram_threads(void **state) {
  (void)state;
  double gram[2][E * E];
  for (int k = 0; k < 2; k++) {
    struct scene *s = scene_new(3, E, 1 + 2 * k);
    shac_gradient(&s->shac, 0.01);
    gradstat_gram(gram[k], &s->arena, &s->shac);
    scene_free(s);
  }
  assert_memory_equal(gram[0], gram[1], sizeof gram[0]);
}

// ---- statistics

enum { DIM = 5, COUNT = 12, WINDOWS = 3 };

static void random_gram(double *gram, double x[COUNT][DIM], uint32_t window) {
  struct rng r = rng_stream(1, RNG_TEST, window, 0, 0);
  for (int e = 0; e < COUNT; e++) {
    for (int d = 0; d < DIM; d++) {
      x[e][d] = rng_normal(&r) + (d == 0 ? 1 : 0);
    }
  }
  for (int e = 0; e < COUNT; e++) {
    for (int f = 0; f < COUNT; f++) {
      double *g = &gram[e * COUNT + f];
      *g = 0;
      for (int d = 0; d < DIM; d++) {
        *g += x[e][d] * x[f][d];
      }
    }
  }
}

static void test_statistics_definition(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  double gram[WINDOWS * COUNT * COUNT], variance = 0, direction = 0, mean_norm = 0;
  for (int k = 0; k < WINDOWS; k++) {
    double x[COUNT][DIM], mean[DIM] = {0}, unit[DIM] = {0}, v = 0, uu = 0, mm = 0;
    random_gram(gram + k * COUNT * COUNT, x, (uint32_t)k);
    for (int e = 0; e < COUNT; e++) {
      double norm = 0;
      for (int d = 0; d < DIM; d++) {
        norm += x[e][d] * x[e][d];
      }
      for (int d = 0; d < DIM; d++) {
        mean[d] += x[e][d] / COUNT;
        unit[d] += x[e][d] / sqrt(norm) / COUNT;
      }
    }
    for (int d = 0; d < DIM; d++) {
      for (int e = 0; e < COUNT; e++) {
        v += (x[e][d] - mean[d]) * (x[e][d] - mean[d]) / (COUNT - 1);
      }
      uu += unit[d] * unit[d];
      mm += mean[d] * mean[d];
    }
    variance += v / WINDOWS;
    direction += (1 - uu) / WINDOWS;
    mean_norm += sqrt(mm) / WINDOWS;
  }
  struct gradstat g;
  enum { RESAMPLES = 4000 };
  gradstat_measure(&g, &a, gram, WINDOWS, COUNT, RESAMPLES, 7);
  assert_float_equal(g.variance.mean, variance, 1e-12);
  assert_float_equal(g.direction.mean, direction, 1e-12);
  assert_float_equal(g.mean_norm, mean_norm, 1e-12);

  // drawing with replacement, corrected: the expectation is the estimate itself
  double mean = 0, square = 0;
  for (int i = 0; i < RESAMPLES; i++) {
    mean += g.resampled[i] / RESAMPLES;
    square += g.resampled[i] * g.resampled[i] / RESAMPLES;
  }
  double error = sqrt((square - mean * mean) / RESAMPLES);
  assert_true(fabs(mean - variance) < 4 * error);
  int inside = 0;
  for (int i = 0; i < RESAMPLES; i++) {
    inside += g.resampled[i] >= g.variance.lo && g.resampled[i] <= g.variance.hi;
  }
  assert_in_range(inside, RESAMPLES * 0.945, RESAMPLES * 0.955);

  // twice the gradients, four times the variance, resample by resample
  struct gradstat twice;
  for (int i = 0; i < WINDOWS * COUNT * COUNT; i++) {
    gram[i] *= 4;
  }
  gradstat_measure(&twice, &a, gram, WINDOWS, COUNT, RESAMPLES, 7);
  for (int i = 0; i < RESAMPLES; i++) {
    assert_true(twice.resampled[i] == 4 * g.resampled[i]);
  }
  assert_float_equal(twice.direction.lo, g.direction.lo, 1e-12);
  arena_release(&a);
}

static void test_statistics_extremes(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  double same[COUNT * COUNT], apart[COUNT * COUNT];
  for (int i = 0; i < COUNT * COUNT; i++) {
    same[i] = 9; // all gradients equal, of length 3
    apart[i] = i / COUNT == i % COUNT ? 4 : 0;
  }
  struct gradstat g;
  gradstat_measure(&g, &a, same, 1, COUNT, 100, 0);
  assert_float_equal(g.variance.mean, 0, 1e-12);
  assert_float_equal(g.variance.hi, 0, 1e-12);
  assert_float_equal(g.direction.mean, 0, 1e-12);
  assert_float_equal(g.norm_median, 3, 1e-12);
  assert_float_equal(g.mean_norm, 3, 1e-12);
  // at right angles, of length 2: mean square 4 / E
  gradstat_measure(&g, &a, apart, 1, COUNT, 100, 0);
  assert_float_equal(g.variance.mean, 4, 1e-12);
  assert_float_equal(g.direction.mean, 1 - 1.0 / COUNT, 1e-12);
  assert_float_equal(g.mean_norm, 2 / sqrt(COUNT), 1e-12);
  arena_release(&a);
}

static void test_quantiles(void **state) {
  (void)state;
  double x[] = {5, 1, 3, 2, 4}, lo, hi;
  assert_float_equal(gradstat_median(x, 5), 3, 0);
  gradstat_interval(&lo, &hi, x, 5, 0.5);
  assert_float_equal(lo, 2, 1e-15);
  assert_float_equal(hi, 4, 1e-15);
}

// ---- clouds

// vertical speed of instance `which` of a contact after `length` control steps, its state moved by
// eps along number d of its tangent; the unperturbed instance gives the controls
static double final_speed(struct scene *s, const struct gradcloud_contact *k, int which, int d,
                          double eps, int length) {
  struct arena_mark mark = arena_mark(&s->arena);
  const struct world *w = &s->world;
  struct rollout *r = &s->shac.rollout;
  int W = r->W, n = r->nq + r->nv, substeps = sim_model_options(w->model)->substeps;
  struct policy policy;
  learner_policy(&policy, &s->arena, &s->learner);
  double *x1 = ARENA_NEW(&s->arena, double, n), *move = ARENA_NEW(&s->arena, double, r->nv);
  double *x = ARENA_NEW(&s->arena, double, n *W), *ctrl = ARENA_NEW(&s->arena, double, r->nu *W);
  double *obs = ARENA_NEW(&s->arena, double, r->nobs *W);
  double *trail = ARENA_NEW(&s->arena, double, substeps *n *W);
  struct rollout_work *work = s->shac.work[0].rollout;

  // lane 0 unperturbed, all others the moved one
  memcpy(x1, k->state + which * n, sizeof *x1 * (size_t)n);
  if (d < r->nv) {
    move[d] = eps;
    robot_integrate(&w->robot, x1, move);
  } else {
    x1[r->nq + d - r->nv] += eps;
  }
  for (int i = 0; i < n * W; i++) {
    x[i] = i % W ? x1[i / W] : k->state[i / W];
  }
  for (int t = 0; t < length; t++) {
    int frame[SIM_WIDTH];
    for (int l = 0; l < W; l++) {
      frame[l] = k->frame + t;
    }
    w->task->obs_fwd(&w->track, work->task, work->sim, obs, x, x + r->nq * W, frame);
    double *action = ARENA_NEW(&s->arena, double, r->nu *W);
    policy_act(&policy, action, obs, W);
    track_ctrl(&w->track, ctrl, action, frame, W);
    for (int i = 0; i < r->nu * W; i++) {
      ctrl[i] = t == 0 ? k->ctrl[i / W] : ctrl[i / W * W];
    }
    w->sim->substeps_fwd(w->model, work->sim, x, x + r->nq * W, trail, NULL, ctrl, r->param,
                         t == 0 ? k->first : 0, substeps);
  }
  double speed = x[(r->nq + 2) * W + 1];
  arena_reset(&s->arena, mark);
  return speed;
}

static void test_cloud_gradients(void **state) {
  (void)state;
  enum { B = 9, MOST = 3 }; // with the unperturbed one: more instances than lanes
  struct scene *s = scene_new(B, E, 1);
  struct gradcloud c;
  gradcloud_new(&c, &s->arena, &s->shac, MOST, 4);
  gradcloud_collect(&c, &s->shac, MOST);
  assert_int_equal(c.n, MOST);

  int nv = s->world.robot.nv, size = 2 * nv, length[2] = {1, 3};
  double *grad = ARENA_NEW(&s->arena, double, 2 * c.n * (1 + B) * size);
  gradcloud_gradients(grad, &s->arena, &c, &s->shac, length, 2);
  int checked = 0;
  for (int j = 0; j < 2; j++) {
    for (int i = 0; i < c.n; i++) {
      for (int which = 1; which <= B; which += 4) {
        const double *g = grad + ((j * c.n + i) * (1 + B) + which) * size;
        double norm = 0;
        for (int d = 0; d < size; d++) {
          norm += g[d] * g[d];
        }
        for (int d = 2; d < size; d += 13) { // the height, and some of everything
          double step = 1e-6, fd[2];
          for (int h = 0; h < 2; h++, step /= 4) {
            fd[h] = (final_speed(s, &c.contact[i], which, d, step, length[j]) -
                     final_speed(s, &c.contact[i], which, d, -step, length[j])) /
                    (2 * step);
          }
          // differences that disagree with themselves straddle a kink
          if (fabs(fd[0] - fd[1]) < 1e-6 * sqrt(norm)) {
            assert_true(fabs(fd[1] - g[d]) < 1e-5 * sqrt(norm));
            checked++;
          }
        }
      }
    }
  }
  assert_true(checked > 2 * MOST * 3 * 6 * 8 / 10);

  // the bundle is the mean of the branches
  double *point = ARENA_NEW(&s->arena, double, c.n *B *size);
  int contact[MOST * B], branch[MOST * B];
  assert_int_equal(gradcloud_points(point, contact, branch, &c, grad, GRADCLOUD_BRANCH), MOST * B);
  double mean = 0;
  for (int k = 0; k < MOST * B; k++) {
    mean += contact[k] == 1 ? point[k * size + 2] / B : 0;
  }
  assert_int_equal(gradcloud_points(point, contact, branch, &c, grad, GRADCLOUD_BUNDLE), MOST);
  assert_float_equal(point[size + 2], mean, 1e-12 * (1 + fabs(mean)));
  scene_free(s);
}

static void test_cloud_spread(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  const double point[] = {3, 0, 0, 4, -3, 0, 0, -4};
  struct gradcloud_spread s;
  gradcloud_spread(&s, &a, point, 4, 2);
  assert_float_equal(s.norm_median, 3.5, 1e-15);
  assert_float_equal(s.deviation, sqrt(50.0 / 3), 1e-14);
  assert_float_equal(s.direction_spread, 1, 1e-15);
  gradcloud_spread(&s, &a, point, 1, 2);
  assert_float_equal(s.direction_spread, 0, 1e-15);
  arena_release(&a);
}

// ---- checkpoints measured with another number of environments

static void test_load_learned(void **state) {
  (void)state;
  struct scene *from = scene_new(1, E, 1), *to = scene_new(3, 2 * E, 1);
  struct err e = {0};
  struct learn_report report;
  struct best_policy best = {.score = 0};
  char dir[] = "/tmp/dsim_gradstat_XXXXXX";
  assert_non_null(mkdtemp(dir));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(shac_iterate(&from->shac, &report, &e), 0);
    assert_int_equal(state_save(&from->learner, &best, dir, &e), 0);
  }
  const char **path;
  assert_int_equal(state_list(&path, &to->arena, dir), 2);
  assert_true(strcmp(path[0], path[1]) < 0);

  double *episodes = ARENA_NEW(&to->arena, double, to->shac.rollout.nstate);
  size_t bytes = sizeof(double) * to->shac.rollout.nstate;
  memcpy(episodes, to->shac.rollout.state, bytes);
  assert_int_equal(state_load_learned(&to->learner, &to->arena, path[1], &e), 0);
  assert_memory_equal(to->shac.param, from->shac.param, sizeof(float) * from->shac.nactor);
  assert_memory_equal(to->shac.norm.inv_std, from->shac.norm.inv_std,
                      sizeof(double) * (size_t)from->shac.rollout.nobs);
  assert_true(to->shac.returns.var == from->shac.returns.var);
  assert_int_equal(to->shac.iteration, 2);
  assert_memory_equal(to->shac.rollout.state, episodes, bytes);
  for (int i = 0; i < 2; i++) {
    unlink(path[i]);
  }
  rmdir(dir);
  scene_free(from);
  scene_free(to);
}

int main(void) {
  gemm_start();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shares_plain),        cmocka_unit_test(test_shares_bundled),
      cmocka_unit_test(test_gram_threads),        cmocka_unit_test(test_statistics_definition),
      cmocka_unit_test(test_statistics_extremes), cmocka_unit_test(test_quantiles),
      cmocka_unit_test(test_cloud_gradients),     cmocka_unit_test(test_cloud_spread),
      cmocka_unit_test(test_load_learned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
