// Identification of a cube's side from tosses: the loop of dsim train, the prediction of held-out
// tosses by dsim evaluate.
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "out/json.h"
#include "out/rundir.h"
#include "out/stats.h"
#include "plant/cube.h"
#include "task/bodies.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static const char identify_header[] =
    "iteration,env_steps,wall_s,loss,grad,side_mm,side_error_percent";

enum { MADE_TOSSES = 64, MADE_FRAMES = 110 };

static int open_tosses(struct tosses *t, struct arena *a, const struct spec *s, struct err *e) {
  if (s->identify_data[0]) {
    tosses_read(t, a, s->identify_data, e);
  } else {
    cube_make_tosses(t, a, MADE_TOSSES, MADE_FRAMES, 0, e);
  }
  if (!e->code && t->n < 4) {
    err_set(e, EXIT_USAGE, "identify.data: expected four tosses or more, found %d", t->n);
  }
  return e->code;
}

// the last quarter is never fitted to
static int first_held_out(const struct tosses *t) {
  return t->n * 3 / 4;
}

static struct piece_fit piece_fit_of(const struct spec *s) {
  struct piece_fit f = {.scene = cube_scene(),
                        .ode = spec_ode_options(s),
                        .gradient =
                            s->ode_gradient == ODE_GRADIENT_EVENTS ? ODE_EVENTS : ODE_STEPS};
  f.scene.cfd = spec_cfd(s);
  f.ode.dt = 1 / TOSS_RATE; // the frames' own step, or the first one tried
  f.ode.max_steps = f.ode.adaptive ? f.ode.max_steps : 4;
  return f;
}

struct pieces_result {
  double loss, grad; // means; grad by the side's logarithm
  long long steps;
  int failed;
};

// All pieces, in parallel; sums in their order.
static struct pieces_result all_pieces(const struct pieces *p, const struct piece_fit *f,
                                       double side, double clip, int threads, struct arena *a) {
  struct arena_mark mark = arena_mark(a);
  double *loss = ARENA_NEW(a, double, p->n), *grad = ARENA_NEW(a, double, p->n);
  int *steps = ARENA_NEW(a, int, p->n);
  bool *failed = ARENA_NEW(a, bool, p->n);
#pragma omp parallel num_threads(threads)
  {
    struct arena own;
    arena_init(&own);
#pragma omp for schedule(dynamic, 8)
    for (int i = 0; i < p->n; i++) {
      failed[i] = piece_loss(&loss[i], &grad[i], &steps[i], &own, f, p->state[i], p->length,
                             side) != ODE_DONE ||
                  !isfinite(grad[i]);
    }
    arena_release(&own);
  }
  struct pieces_result r = {0};
  for (int i = 0; i < p->n; i++) {
    r.failed += failed[i];
    r.steps += steps[i];
    r.loss += failed[i] ? 0 : loss[i];
    // pieces that just graze the floor have no bounded derivative, and must not steer the rest
    double clipped = fmin(fmax(grad[i] * side, -clip), clip);
    r.grad += failed[i] ? 0 : clipped;
  }
  int good = p->n - r.failed;
  r.loss /= good;
  r.grad /= good;
  arena_reset(a, mark);
  return r;
}

int identify_train(const struct spec *s, const char *dir, struct arena *a, struct err *e) {
  struct tosses t;
  struct pieces p;
  struct csv c;
  if (open_tosses(&t, a, s, e) ||
      csv_open(&c, rundir_file(a, dir, "progress.csv"), identify_header, e)) {
    return e->code;
  }
  int threads = s->threads > 0 ? s->threads : omp_get_max_threads();
  struct piece_fit f = piece_fit_of(s);
  struct adam_number adam = {.power1 = 1, .power2 = 1};
  double side = s->fit_start, start = wall_seconds();
  long long steps = 0;
  pieces_draw(&p, a, &t, 0, first_held_out(&t), s->identify_pieces, s->identify_length,
              s->identify_contact, (uint64_t)s->seed);
  for (int i = 0; i <= s->iterations && !e->code; i++) {
    struct pieces_result r = all_pieces(&p, &f, side, s->fit_clip, threads, a);
    if (r.failed == p.n) {
      err_set(e, EXIT_NUMERIC, "iteration %d, side %g m: no piece can be integrated", i, side);
      break;
    }
    steps += r.steps;
    csv_int(&c, i);
    csv_int(&c, steps);
    csv_real(&c, s->log_wall ? wall_seconds() - start : 0);
    csv_exact(&c, r.loss);
    csv_exact(&c, r.grad);
    csv_exact(&c, 1e3 * side);
    csv_real(&c, 100 * (side / TOSS_CUBE_SIDE - 1));
    csv_end(&c, e);
    log_progress("%d/%d  loss %.5f  gradient %+.4g  side %.2f mm", i, s->iterations, r.loss, r.grad,
                 1e3 * side);
    double left = 1 - (double)i / s->iterations;
    side *= exp(-left * adam_number_step(&adam, s, r.grad));
  }
  log_progress_end();
  csv_close(&c);
  return e->code;
}

// Held-out tosses from their first frame, with the side at which training ended.
int identify_evaluate(const struct spec *s, const char *dir, const struct run_options *run,
                      struct arena *a, struct err *e) {
  struct tosses t;
  struct csv_table progress;
  double *sides;
  if (csv_read(&progress, a, rundir_file(a, dir, "progress.csv"), e) ||
      csv_reals(&sides, a, &progress, "side_mm", e) || open_tosses(&t, a, s, e)) {
    return e->code;
  }
  struct piece_fit f = piece_fit_of(s);
  double side = progress.nrow > 0 ? 1e-3 * sides[progress.nrow - 1] : s->fit_start;
  int first = first_held_out(&t), n = t.n - first;
  double *position = ARENA_NEW(a, double, n), *rotation = ARENA_NEW(a, double, n);
  int threads = s->threads > 0 ? s->threads : omp_get_max_threads();
#pragma omp parallel num_threads(threads)
  {
    struct arena own;
    arena_init(&own);
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < n; i++) {
      if (toss_predict(&position[i], &rotation[i], &own, &f, &t.toss[first + i], side)) {
        position[i] = rotation[i] = NAN;
      }
      position[i] *= 100;
    }
    arena_release(&own);
  }
  const char *path = run->out ? run->out : rundir_file(a, dir, "eval.csv");
  struct csv c;
  remove(path);
  if (csv_open(&c, path, "toss,side_mm,position_percent,rotation_deg", e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    csv_int(&c, first + i);
    csv_exact(&c, 1e3 * side);
    csv_real(&c, position[i]);
    csv_real(&c, rotation[i]);
    csv_end(&c, e);
  }
  csv_close(&c);
  struct stats p = stats_of(position, n), r = stats_of(rotation, n);
  double error = 100 * (side / TOSS_CUBE_SIDE - 1);
  if (run->json && !e->code) {
    cJSON *root = cJSON_CreateObject();
    json_add_real(root, "side_mm", 1e3 * side);
    json_add_real(root, "side_error_percent", error);
    json_add_real(root, "position_percent_mean", p.mean);
    json_add_real(root, "position_percent_std", p.std);
    json_add_real(root, "rotation_deg_mean", r.mean);
    json_add_real(root, "rotation_deg_std", r.std);
    cJSON_AddNumberToObject(root, "tosses", p.n);
    json_print(root, e);
    cJSON_Delete(root);
  } else if (!e->code) {
    printf("side %.2f mm (%+.2f %%); %d held-out tosses: position %.1f ± %.1f %% of the side, "
           "rotation %.1f ± %.1f degrees\n",
           1e3 * side, error, p.n, p.mean, p.std, r.mean, r.std);
  }
  return e->code;
}
