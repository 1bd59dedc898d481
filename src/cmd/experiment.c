// Small experiments behind `dsim ablate`, `dsim train` and `dsim evaluate`: folders, records, the
// loop of a fit.
#include "cmd/experiment.h"
#include "base/file.h"
#include "base/log.h"
#include "out/csv.h"
#include "out/json.h"
#include "out/manifest.h"
#include "out/rundir.h"
#include "task/bodies.h"
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static int write_manifest(const char *dir, const char *command, const struct spec *s,
                          struct err *e) {
  struct manifest m = {.command = command,
                       .isa = "scalar",
                       .threads = s->threads > 0 ? s->threads : omp_get_max_threads(),
                       .seed = s->seed};
  return manifest_write(dir, &m, e);
}

static int open_folder(struct arena *a, const char *dir, const char *command, const struct spec *s,
                       const struct run_options *run, int argc, char *const *argv, struct err *e) {
  if (run->resume) {
    return err_set(e, EXIT_USAGE,
                   "--resume: a small experiment is done in one go; --overwrite starts it again");
  }
  enum rundir_mode mode = run->overwrite ? RUNDIR_OVERWRITE : RUNDIR_NEW;
  if (rundir_open(a, dir, mode, s, run->set.v, run->set.n, argc, argv, e) == 0) {
    write_manifest(dir, command, s, e);
  }
  return e->code;
}

// ---- tables

int experiment_table(bool *handled, const char *name, const struct run_options *run, int threads,
                     const char *refused, int argc, char *const *argv, struct err *e) {
  static int (*const table[])(const struct spec *, const char *, struct err *) = {
      [TASK_TRACK] = NULL,
      [TASK_BOUNCE] = table_bounce,
      [TASK_TOSS] = table_toss,
      [TASK_TIME_TOSS] = table_time_toss,
      [TASK_BILLIARD] = table_billiard,
      [TASK_IDENTIFY] = NULL,
      [TASK_GRADIENTS] = table_gradients,
      [TASK_COLLIDE] = table_collide,
  };
  struct arena a;
  struct spec s;
  struct err none = {0};
  arena_init(&a);
  *handled = spec_read(&s, &a, name, &none) == 0 && s.task != TASK_TRACK;
  if (*handled && refused) {
    err_set(e, EXIT_USAGE, "%s: '%.80s' is one table, made in one go", refused, name);
  }
  if (*handled && !table[s.task]) {
    err_set(e, EXIT_USAGE, "this spec describes a fit, made by dsim train");
  }
  if (*handled && !e->code && run_options_spec(&s, &a, name, run, e) == 0) {
    s.threads = threads > 0 ? threads : s.threads;
    char dir[600];
    snprintf(dir, sizeof dir, "results/%s", s.experiment);
    const char *out = run->out ? run->out : dir;
    if (open_folder(&a, out, "ablate", &s, run, argc, argv, e) == 0) {
      const char *path = rundir_file(&a, out, "table.csv");
      double start = wall_seconds();
      if (table[s.task](&s, path, e) == 0) {
        log_info("wrote %s (%.1f s)", path, wall_seconds() - start);
      }
    }
  }
  arena_release(&a);
  return e->code;
}

// ---- fits

static const char billiard_header[] =
    "iteration,env_steps,wall_s,loss,grad,u0,target_x,target_y,gap_mm";

double adam_number_step(struct adam_number *a, const struct spec *s, double gradient) {
  const double beta1 = s->adam_beta1, beta2 = s->adam_beta2;
  a->power1 *= beta1;
  a->power2 *= beta2;
  a->m += (1 - beta1) * (gradient - a->m);
  a->v += (1 - beta2) * (gradient * gradient - a->v);
  return s->fit_lr * a->m / (1 - a->power1) / (sqrt(a->v / (1 - a->power2)) + 1e-8);
}

static struct billiard billiard_of(const struct spec *s) {
  return (struct billiard){.gravity = s->billiard_gravity,
                           .hold = s->billiard_push == BILLIARD_HOLD,
                           .cfd = spec_cfd(s)};
}

static int train_billiard(const struct spec *s, const char *dir, struct arena *a, struct err *e) {
  struct billiard b = billiard_of(s);
  struct ode_options o = spec_ode_options(s);
  struct adam_number adam = {.power1 = 1, .power2 = 1};
  struct body_work w = {.arena = a, .want_gradient = true, .want_event = true};
  double u0 = s->fit_start, start = wall_seconds();
  long long steps = 0;
  struct csv c;
  if (csv_open(&c, rundir_file(a, dir, "progress.csv"), billiard_header, e)) {
    return e->code;
  }
  // the last row is that of the final parameter
  for (int i = 0; i <= s->iterations && !e->code; i++) {
    struct body_result r;
    struct billiard_result more;
    billiard_solve(&r, &more, &w, &b, &o, u0);
    if (r.status != ODE_DONE) {
      err_set(e, EXIT_NUMERIC, "iteration %d, u0 = %g: %s", i, u0,
              r.status == ODE_TOO_MANY_STEPS ? "more than ode.max_steps steps"
                                             : "the state is not finite");
      break;
    }
    double grad = s->ode_gradient == ODE_GRADIENT_EVENTS ? r.grad_event : r.grad;
    steps += r.accepted + r.rejected;
    csv_int(&c, i);
    csv_int(&c, steps);
    csv_real(&c, s->log_wall ? wall_seconds() - start : 0);
    csv_exact(&c, r.loss);
    csv_exact(&c, grad);
    csv_exact(&c, u0);
    csv_real(&c, more.target[0]);
    csv_real(&c, more.target[1]);
    csv_real(&c, 1e3 * more.gap);
    csv_end(&c, e);
    log_progress("%d/%d  loss %.6f  gradient %+.4g  u0 %+.3f N", i, s->iterations, r.loss, grad,
                 u0);
    u0 -= adam_number_step(&adam, s, grad);
  }
  log_progress_end();
  csv_close(&c);
  return e->code;
}

int experiment_train(const struct spec *s, const char *dir, const struct run_options *run, int argc,
                     char *const *argv, struct err *e) {
  if (s->task != TASK_BILLIARD && s->task != TASK_IDENTIFY) {
    return err_set(e, EXIT_USAGE, "this spec describes a table, made by dsim ablate");
  }
  struct arena a;
  arena_init(&a);
  if (open_folder(&a, dir, "train", s, run, argc, argv, e) == 0 &&
      (s->task == TASK_IDENTIFY ? identify_train : train_billiard)(s, dir, &a, e) == 0) {
    log_info("results in %s", dir);
  }
  arena_release(&a);
  return e->code;
}

// The shot that training ended with, solved as exactly as dsim can.
static int evaluate_billiard(const struct spec *s, const char *dir, const struct run_options *run,
                             struct arena *arena, struct err *e) {
  struct csv_table progress;
  double *u0;
  if (csv_read(&progress, arena, rundir_file(arena, dir, "progress.csv"), e) == 0 &&
      csv_reals(&u0, arena, &progress, "u0", e) == 0) {
    struct billiard b = billiard_of(s);
    struct ode_options o = spec_ode_options(s);
    struct body_work w = {.arena = arena, .want_gradient = true, .want_event = true};
    struct body_result r;
    struct billiard_result more;
    b.cfd.on = false;
    o.method = ODE_DOPRI8;
    o.adaptive = o.locate = true;
    o.rtol = o.atol = 1e-10;
    o.max_steps = 20000;
    double u = progress.nrow > 0 ? u0[progress.nrow - 1] : s->fit_start;
    billiard_solve(&r, &more, &w, &b, &o, u);
    bool hit = more.gap < 0;
    const char *path = run->out ? run->out : rundir_file(arena, dir, "eval.csv");
    struct csv c;
    remove(path);
    if (csv_open(&c, path, "u0,loss,grad,target_x,target_y,gap_mm,hit", e) == 0) {
      csv_exact(&c, u);
      csv_exact(&c, r.loss);
      csv_exact(&c, r.grad_event);
      csv_real(&c, more.target[0]);
      csv_real(&c, more.target[1]);
      csv_real(&c, 1e3 * more.gap);
      csv_int(&c, hit);
      csv_end(&c, e);
      csv_close(&c);
    }
    if (run->json) {
      cJSON *root = cJSON_CreateObject();
      json_add_real(root, "u0", u);
      json_add_real(root, "loss", r.loss);
      json_add_real(root, "grad", r.grad_event);
      json_add_real(root, "gap_mm", 1e3 * more.gap);
      cJSON_AddBoolToObject(root, "hit", hit);
      json_print(root, e);
      cJSON_Delete(root);
    } else if (!e->code) {
      printf("u0 %.4f N: the target ends at (%.4f, %.4f) m, loss %.6f; %s\n", u, more.target[0],
             more.target[1], r.loss, hit ? "hit" : "missed");
    }
  }
  return e->code;
}

int experiment_evaluate(const struct spec *s, const char *dir, const struct run_options *run,
                        struct err *e) {
  struct arena a;
  arena_init(&a);
  (s->task == TASK_IDENTIFY ? identify_evaluate : evaluate_billiard)(s, dir, run, &a, e);
  arena_release(&a);
  return e->code;
}
