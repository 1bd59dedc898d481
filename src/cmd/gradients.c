// The table of gradient estimators (task/estimate.h): bias, spread, cost, and what optimisation by
// each of them comes to at an equal budget of right-hand sides.
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "task/estimate.h"
#include <math.h>
#include <omp.h>
#include <string.h>
#include <time.h>

enum { NROW = ESTIMATE_PROBLEMS * ESTIMATE_KINDS };

struct row {
  bool ok;
  double bias, bias_error, std, truth; // norms, root mean squares over the places
  double cost, cpu_s;                  // of one gradient, mean
  double iterations, loss, loss_std, success;
  int runs;
};

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Place k of a problem: the same for every estimator and seed.
static void place(double *u, const struct problem *p, int which, int k) {
  struct rng rng = rng_stream(0, RNG_ESTIMATE, (uint32_t)which, (uint32_t)k, 0);
  for (int i = 0; i < p->n; i++) {
    u[i] = p->start[i] + p->around * rng_normal(&rng);
  }
}

// Bias and spread. The mean over draws is uncertain by std / sqrt(draws), which bias_error gives.
static void measure(struct row *row, const struct spec *s, const struct problem *p, int which,
                    enum estimate_kind kind, struct arena *a) {
  int draws = estimate_draws(kind) ? s->estimate_draws : 1;
  double bias = 0, variance = 0, truth = 0, cpu = 0, cost = 0;
  for (int k = 0; k < s->range_points; k++) {
    double u[ESTIMATE_MAX], mean[ESTIMATE_MAX] = {0}, square[ESTIMATE_MAX] = {0};
    struct estimate exact, g;
    place(u, p, which, k);
    estimate_gradient(&exact, p, a, ESTIMATE_TRUTH, u, 1, NULL);
    row->ok &= exact.ok;
    for (int d = 0; d < draws; d++) {
      struct rng rng = rng_stream((uint64_t)s->seed, RNG_ESTIMATE, (uint32_t)which,
                                  1000 + (uint32_t)k, 1 + (uint32_t)d);
      double start = cpu_seconds();
      estimate_gradient(&g, p, a, kind, u, s->bundle_size, &rng);
      cpu += cpu_seconds() - start;
      cost += (double)g.cost;
      row->ok &= g.ok;
      for (int i = 0; i < p->n; i++) { // Welford's
        double delta = g.grad[i] - mean[i];
        mean[i] += delta / (d + 1);
        square[i] += delta * (g.grad[i] - mean[i]);
      }
    }
    for (int i = 0; i < p->n; i++) {
      bias += (mean[i] - exact.grad[i]) * (mean[i] - exact.grad[i]);
      variance += draws > 1 ? square[i] / (draws - 1) : 0;
      truth += exact.grad[i] * exact.grad[i];
    }
  }
  int n = s->range_points;
  row->bias = sqrt(bias / n);
  row->std = sqrt(variance / n);
  row->bias_error = row->std / sqrt(draws);
  row->truth = sqrt(truth / n);
  row->cost = cost / (n * draws);
  row->cpu_s = s->log_wall ? cpu / (n * draws) : 0;
}

// Adam from the start until the budget is used; the converged loss of where it ends.
static void optimise(double *loss, int *iterations, const struct spec *s, const struct problem *p,
                     int which, enum estimate_kind kind, int repeat, double budget,
                     struct arena *a) {
  struct adam_number adam[ESTIMATE_MAX];
  struct spec own = *s;
  double u[ESTIMATE_MAX], used = 0;
  own.fit_lr = p->lr;
  memcpy(u, p->start, sizeof u);
  for (int i = 0; i < p->n; i++) {
    adam[i] = (struct adam_number){.power1 = 1, .power2 = 1};
  }
  for (*iterations = 0; used < budget; ++*iterations) {
    struct rng rng = rng_stream((uint64_t)s->seed, RNG_ESTIMATE, (uint32_t)which,
                                2000 + (uint32_t)repeat, 1 + (uint32_t)*iterations);
    struct estimate g;
    estimate_gradient(&g, p, a, kind, u, s->bundle_size, &rng);
    used += (double)g.cost;
    if (!g.ok || used > budget) {
      break;
    }
    for (int i = 0; i < p->n; i++) {
      u[i] -= adam_number_step(&adam[i], &own, g.grad[i]);
    }
  }
  struct rollout_request request = {.exact = true, .u = u};
  struct rollout_answer end = {0};
  p->roll(&end, p, a, &request);
  *loss = end.ok ? end.loss : NAN;
}

static void fill(struct row *row, const struct spec *s, int which, enum estimate_kind kind,
                 struct arena *a) {
  struct estimate_settings settings = {
      .tolerance = s->ode_tolerance,
      .cfd_solimp = {s->cfd_dmin, s->cfd_dmax, s->cfd_width, s->cfd_mid, s->cfd_power},
      .cfd_softplus = s->cfd_law == CFD_LAW_SOFTPLUS};
  struct problem p;
  struct estimate plain;
  estimate_problem(&p, which, &settings);
  *row = (struct row){.ok = true};
  measure(row, s, &p, which, kind, a);
  estimate_gradient(&plain, &p, a, ESTIMATE_PLAIN, p.start, 1, NULL);
  double budget = (double)s->iterations * (double)plain.cost, mean = 0, square = 0;
  row->runs = estimate_draws(kind) ? s->estimate_repeats : 1;
  for (int k = 0; k < row->runs; k++) {
    double loss;
    int iterations;
    optimise(&loss, &iterations, s, &p, which, kind, k, budget, a);
    double delta = loss - mean;
    mean += delta / (k + 1);
    square += delta * (loss - mean);
    row->iterations += (double)iterations / row->runs;
    row->success += (loss <= p.success ? 1.0 : 0.0) / row->runs;
  }
  row->loss = mean;
  row->loss_std = row->runs > 1 ? sqrt(square / (row->runs - 1)) : 0;
}

int table_gradients(const struct spec *s, const char *path, struct err *e) {
  struct row row[NROW];
  int done = 0, workers = s->threads > 0 ? s->threads : omp_get_max_threads();
#pragma omp parallel num_threads(workers)
  {
    struct arena own;
    arena_init(&own);
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < NROW; i++) {
      fill(&row[i], s, i / ESTIMATE_KINDS, (enum estimate_kind)(i % ESTIMATE_KINDS), &own);
#pragma omp critical
      log_progress("%d of %d", ++done, NROW);
    }
    arena_release(&own);
  }
  log_progress_end();
  struct csv c;
  if (csv_open(&c, path,
               "task,estimator,ok,truth,bias,bias_error,std,bias_relative,std_relative,cost,cpu_s,"
               "iterations,final_loss,final_loss_std,success,runs",
               e)) {
    return e->code;
  }
  for (int i = 0; i < NROW && !e->code; i++) {
    const struct row *r = &row[i];
    struct problem p;
    estimate_problem(&p, i / ESTIMATE_KINDS, NULL);
    csv_text(&c, p.name);
    csv_text(&c, estimate_name[i % ESTIMATE_KINDS]);
    csv_int(&c, r->ok);
    const double x[] = {r->truth,           r->bias,           r->bias_error, r->std,
                        r->bias / r->truth, r->std / r->truth, r->cost,       r->cpu_s,
                        r->iterations,      r->loss,           r->loss_std,   r->success};
    for (size_t k = 0; k < sizeof x / sizeof *x; k++) {
      csv_real_or_missing(&c, x[k]);
    }
    csv_int(&c, r->runs);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code;
}
