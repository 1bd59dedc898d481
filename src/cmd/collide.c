// The three collision tasks of arXiv 2207.05060 (task/collide.h): loss and gradient at the paper's
// start by fixed and adaptive steps, with events, with contacts from distance, beside central
// differences of the converged loss; and where descent by each of them ends.
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "task/collide.h"
#include "task/estimate.h"
#include <math.h>
#include <omp.h>
#include <string.h>

enum { NTASK = 3, NKIND = ESTIMATE_ADAPTIVE_CFD + 1, NROW = NTASK * NKIND };
static const int first_task = ESTIMATE_PROBLEMS - NTASK;

// of hard contact; two_balls with free control, as the paper has it
static const double optimum[NTASK] = {0, 0, 1.396542};

struct row {
  struct estimate start;
  double difference[ESTIMATE_MAX]; // central, of the converged loss
  double error;                    // of the gradient against it, relative
  double final_loss, final_true;   // as the method sees it, and converged
  bool ok;
};

static double exact_loss(bool *ok, const struct problem *p, struct arena *a, const double *u) {
  struct rollout_request request = {.exact = true, .u = u};
  struct rollout_answer r = {0};
  p->roll(&r, p, a, &request);
  *ok &= r.ok;
  return r.loss;
}

static void fill(struct row *row, const struct spec *s, const struct problem *p,
                 enum estimate_kind kind, struct arena *a) {
  const double eps = 1e-4;
  struct adam_number adam[ESTIMATE_MAX];
  struct spec own = *s;
  struct estimate g;
  double u[ESTIMATE_MAX], distance = 0, length = 0;
  memcpy(u, p->start, sizeof u);
  *row = (struct row){.ok = true};
  own.fit_lr = p->lr;
  estimate_gradient(&row->start, p, a, kind, u, 1, NULL);
  for (int i = 0; i < p->n; i++) {
    adam[i] = (struct adam_number){.power1 = 1, .power2 = 1};
    u[i] = p->start[i] + eps;
    row->difference[i] = exact_loss(&row->ok, p, a, u) / (2 * eps);
    u[i] = p->start[i] - eps;
    row->difference[i] -= exact_loss(&row->ok, p, a, u) / (2 * eps);
    u[i] = p->start[i];
    distance += pow(row->start.grad[i] - row->difference[i], 2);
    length += pow(row->difference[i], 2);
  }
  row->error = sqrt(distance / length);
  for (int k = 0; k <= s->iterations && row->ok; k++) {
    estimate_gradient(&g, p, a, kind, u, 1, NULL);
    row->ok &= g.ok;
    row->final_loss = g.loss;
    for (int i = 0; i < p->n && k < s->iterations; i++) {
      u[i] -= adam_number_step(&adam[i], &own, g.grad[i]);
    }
  }
  row->final_true = exact_loss(&row->ok, p, a, u);
}

int table_collide(const struct spec *s, const char *path, struct err *e) {
  struct estimate_settings settings = {
      .tolerance = s->ode_tolerance,
      .cfd_solimp = {s->cfd_dmin, s->cfd_dmax, s->cfd_width, s->cfd_mid, s->cfd_power},
      .cfd_softplus = s->cfd_law == CFD_LAW_SOFTPLUS};
  struct problem p[NTASK];
  struct row row[NROW];
  int workers = s->threads > 0 ? s->threads : omp_get_max_threads();
  for (int i = 0; i < NTASK; i++) {
    estimate_problem(&p[i], first_task + i, &settings);
  }
#pragma omp parallel num_threads(workers)
  {
    struct arena own;
    arena_init(&own);
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < NROW; i++) {
      fill(&row[i], s, &p[i / NKIND], (enum estimate_kind)(i % NKIND), &own);
    }
    arena_release(&own);
  }
  struct csv c;
  if (csv_open(&c, path,
               "task,estimator,ok,loss,grad_0,grad_1,grad_fd_0,grad_fd_1,error,final_loss,"
               "final_true_loss,optimum",
               e)) {
    return e->code;
  }
  for (int i = 0; i < NROW && !e->code; i++) {
    const struct row *r = &row[i];
    const struct problem *of = &p[i / NKIND];
    csv_text(&c, of->name);
    csv_text(&c, estimate_name[i % NKIND]);
    csv_int(&c, r->ok);
    csv_exact(&c, r->start.loss);
    csv_exact(&c, r->start.grad[0]);
    csv_real_or_missing(&c, of->n > 1 ? r->start.grad[1] : NAN);
    csv_exact(&c, r->difference[0]);
    csv_real_or_missing(&c, of->n > 1 ? r->difference[1] : NAN);
    csv_real(&c, r->error);
    csv_real(&c, r->final_loss);
    csv_real(&c, r->final_true);
    csv_real(&c, optimum[i / NKIND]);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code;
}
