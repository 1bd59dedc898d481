// Figures of arXiv 2506.14186's small experiments, from the tables that dsim ablate makes and the
// fits of dsim train; the published points of its accuracy-cost table beside ours.
#include "base/file.h"
#include "figure/figure.h"
#include "out/csv.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads the next table.csv with these columns among the runs from *at on; false: no more.
static bool next_table(struct csv_table *t, const struct run **run, struct figure_context *c,
                       int *at, const char *const *column, struct err *e) {
  for (; *at < c->nrun && !e->code; ++*at) {
    const char *path = run_file(&c->run[*at], c->arena, "table.csv");
    if (!path || csv_read(t, c->arena, path, e)) {
      continue;
    }
    bool all = true;
    for (int i = 0; column[i]; i++) {
      all &= csv_find(t, column[i]) >= 0;
    }
    if (all) {
      *run = &c->run[(*at)++];
      return true;
    }
  }
  return false;
}

// "figure", or "figure_COLLECTION_EXPERIMENT" of tables that are not at their usual place
static void name_picture(char base[256], const char *figure, const struct run *r) {
  if (strcmp(r->variant, figure) == 0) {
    snprintf(base, 256, "%s", figure);
  } else {
    snprintf(base, 256, "%s_%.100s_%.100s", figure, r->experiment, r->variant);
  }
}

static int index_of(const char *name, const char *const *names, int n) {
  for (int i = 0; i < n; i++) {
    if (strcmp(name, names[i]) == 0) {
      return i;
    }
  }
  return -1;
}

// Columns copied from a table, behind indices for the names in some of its text columns.
struct copy {
  const char *key[2];          // text columns, key[1] may be NULL
  const char *const *names[2]; // what may stand there; rows with another text are left out
  int nnames[2];
  const char *column[8]; // numbers, NULL behind the last
};

static int copy_table(const char *path, const char *header, const struct csv_table *t,
                      const struct copy *x, struct arena *a, struct err *e) {
  double *value[8];
  int n = 0, key[2];
  struct csv out;
  for (; x->column[n]; n++) {
    if (csv_reals(&value[n], a, t, x->column[n], e)) {
      return e->code;
    }
  }
  remove(path);
  if (csv_open(&out, path, header, e)) {
    return e->code;
  }
  for (int i = 0; i < t->nrow && !e->code; i++) {
    bool known = true;
    for (int k = 0; k < 2 && x->key[k]; k++) {
      key[k] = index_of(csv_cell(t, i, csv_find(t, x->key[k])), x->names[k], x->nnames[k]);
      known &= key[k] >= 0;
    }
    if (!known) {
      continue;
    }
    for (int k = 0; k < 2 && x->key[k]; k++) {
      csv_int(&out, key[k]);
    }
    for (int k = 0; k < n; k++) {
      if (isnan(value[k][i])) {
        csv_missing(&out);
      } else {
        csv_real(&out, value[k][i]);
      }
    }
    csv_end(&out, e);
  }
  csv_close(&out);
  return e->code;
}

// ---- bounce

int figure_bounce(struct figure_context *c, char why[200], struct err *e) {
  static const char *const need[] = {"model", "setting", "q0", "slope", NULL};
  static const char *const models[] = {"exact", "ideal", "penalty"};
  static const char *const settings[] = {"", "0.1", "0.01", "1e-3", "1e-4"};
  struct csv_table t;
  const struct run *run;
  int at = 0, drawn = 0;
  for (; next_table(&t, &run, c, &at, need, e) && !e->code; drawn++) {
    char base[256];
    name_picture(base, "bounce", run);
    const char *data = figure_path(c, base, ".csv");
    struct copy x = {.key = {"model", "setting"},
                     .names = {models, settings},
                     .nnames = {3, 5},
                     .column = {"q0", "q_end", "loss", "slope", "grad"}};
    if (copy_table(data, "model,setting,q0,q_end,loss,slope,grad", &t, &x, c->arena, e) == 0) {
      figure_picture(c, "bounce", base, data, e, NULL);
    }
  }
  if (!drawn) {
    snprintf(why, 200, "no table of dsim ablate diffmjx/bounce");
  }
  return e->code;
}

// ---- toss

int figure_toss(struct figure_context *c, char why[200], struct err *e) {
  static const char *const need[] = {"body", "method", "u0", "grad_fd", NULL};
  static const char *const bodies[] = {"ball", "cube", "capsule", "cylinder", "ellipsoid"};
  static const char *const methods[] = {"euler", "adaptive", "adaptive_cfd", "adaptive_soft",
                                        "located"};
  struct csv_table t;
  const struct run *run;
  int at = 0, drawn = 0;
  for (; next_table(&t, &run, c, &at, need, e) && !e->code; drawn++) {
    char base[256];
    name_picture(base, "toss", run);
    const char *data = figure_path(c, base, ".csv");
    struct copy x = {.key = {"body", "method"},
                     .names = {bodies, methods},
                     .nnames = {5, 5},
                     .column = {"u0", "loss", "grad", "grad_event", "grad_fd"}};
    if (copy_table(data, "body,series,u0,loss,grad,grad_event,grad_fd", &t, &x, c->arena, e) == 0) {
      figure_picture(c, "toss", base, data, e, NULL);
    }
  }
  if (!drawn) {
    snprintf(why, 200, "no table of dsim ablate diffmjx/toss");
  }
  return e->code;
}

// ---- time_toss: errors against cost

// the curves of the figure: method, and the name in the key
static const char *const time_series[][2] = {
    {"mjx_euler", "MuJoCo Euler"}, {"mjx_rk4", "MuJoCo RK4"},
    {"dfx_heun", "Heun"},          {"dfx_tsit5", "Tsit5"},
    {"dfx_dopri8", "Dopri8"},      {"located_dopri8", "Dopri8, steps end at touchdown"},
};
enum { NTIME = sizeof time_series / sizeof *time_series };

struct time_table {
  struct csv_table t;
  double *loss, *grad, *event, *forward, *gradient;
};

static int read_times(struct time_table *x, struct arena *a, bool published, struct err *e) {
  csv_reals(&x->loss, a, &x->t, "loss", e);
  csv_reals(&x->grad, a, &x->t, "grad", e);
  csv_reals(&x->event, a, &x->t, published ? "grad" : "grad_event", e);
  csv_reals(&x->forward, a, &x->t, "forward_s", e);
  csv_reals(&x->gradient, a, &x->t, "gradient_s", e);
  return e->code;
}

struct truth { // of the table: its finest row
  double loss, grad, event;
};

static double setting_of(const struct csv_table *t, int row) {
  return strtod(csv_cell(t, row, csv_find(t, "setting")), NULL);
}

// Rows of one curve, coarse to fine; returns their number.
static int curve_rows(int *row, const struct csv_table *t, const char *method) {
  int n = 0;
  for (int i = 0; i < t->nrow; i++) {
    if (strcmp(csv_cell(t, i, csv_find(t, "method")), method) != 0) {
      continue;
    }
    int k = n++;
    for (; k > 0 && setting_of(t, row[k - 1]) < setting_of(t, i); k--) {
      row[k] = row[k - 1];
    }
    row[k] = i;
  }
  return n;
}

static void write_times(struct csv *out, const struct time_table *x, const struct truth *truth,
                        bool published, struct arena *a, struct err *e) {
  const struct csv_table *t = &x->t;
  int *row = ARENA_NEW(a, int, t->nrow + 1);
  for (int s = 0; s < NTIME; s++) {
    int n = curve_rows(row, t, time_series[s][0]);
    for (int k = 0; k < n && !e->code; k++) {
      int i = row[k];
      if (!published && x->grad[i] == truth->grad) { // the truth has no error
        continue;
      }
      csv_int(out, s + (published ? NTIME : 0));
      csv_text(out, csv_cell(t, i, csv_find(t, "setting")));
      csv_real(out, x->forward[i]);
      csv_real(out, x->gradient[i]);
      csv_real(out, fabs(x->loss[i] - truth->loss));
      csv_real(out, fabs(x->grad[i] - truth->grad));
      csv_real(out, fabs(x->event[i] - truth->event));
      csv_end(out, e);
    }
  }
}

static int draw_times(struct figure_context *c, const struct run *run, struct time_table *ours,
                      struct err *e) {
  struct time_table theirs;
  const char *path = file_find(c->arena, "plots/paper_time_toss.csv");
  if (!path) {
    return err_set(e, EXIT_USAGE, "%s/plots/paper_time_toss.csv: no such file", dsim_home());
  }
  if (read_times(ours, c->arena, false, e) || csv_read(&theirs.t, c->arena, path, e) ||
      read_times(&theirs, c->arena, true, e)) {
    return e->code;
  }
  struct truth truth = {NAN, NAN, NAN};
  for (int i = 0; i < ours->t.nrow; i++) { // the last located row is the finest
    if (strncmp(csv_cell(&ours->t, i, csv_find(&ours->t, "method")), "located", 7) == 0) {
      truth = (struct truth){ours->loss[i], ours->grad[i], ours->event[i]};
    }
  }
  char base[256], labels[1024] = "", count[16];
  name_picture(base, "time_toss", run);
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  remove(data);
  if (csv_open(&out, data, "series,setting,forward_s,gradient_s,loss_error,grad_error,event_error",
               e)) {
    return e->code;
  }
  write_times(&out, ours, &truth, false, c->arena, e);
  write_times(&out, &theirs, &truth, true, c->arena, e);
  csv_close(&out);
  for (int s = 0; s < NTIME; s++) {
    size_t used = strlen(labels);
    snprintf(labels + used, sizeof labels - used, "%s\"%s\"", s ? " " : "", time_series[s][1]);
  }
  snprintf(count, sizeof count, "%d", NTIME);
  if (!e->code) {
    figure_picture(c, "time_toss", base, data, e, "labels", labels, "nseries", count, NULL);
  }
  return e->code;
}

int figure_time_toss(struct figure_context *c, char why[200], struct err *e) {
  static const char *const need[] = {"method", "setting", "forward_s", "grad_event", NULL};
  struct time_table ours;
  const struct run *run;
  int at = 0, drawn = 0;
  for (; next_table(&ours.t, &run, c, &at, need, e) && !e->code; drawn++) {
    draw_times(c, run, &ours, e);
  }
  if (!drawn) {
    snprintf(why, 200, "no table of dsim ablate diffmjx/time_toss");
  }
  return e->code;
}

// ---- billiard: the sweep, and every fit found beside it

static int collect_fits(const char *path, char *labels, size_t size, int *n,
                        struct figure_context *c, struct err *e) {
  struct csv out;
  *n = 0;
  labels[0] = 0;
  remove(path);
  if (csv_open(&out, path, "series,iteration,loss,u0", e)) {
    return e->code;
  }
  for (int r = 0; r < c->nrun && !e->code; r++) {
    struct csv_table t;
    double *iteration, *loss, *u0;
    const char *progress = run_file(&c->run[r], c->arena, "progress.csv");
    if (!progress || csv_read(&t, c->arena, progress, e) || csv_find(&t, "gap_mm") < 0) {
      continue;
    }
    if (csv_reals(&iteration, c->arena, &t, "iteration", e) ||
        csv_reals(&loss, c->arena, &t, "loss", e) || csv_reals(&u0, c->arena, &t, "u0", e)) {
      break;
    }
    for (int i = 0; i < t.nrow && !e->code; i++) {
      csv_int(&out, *n);
      csv_real(&out, iteration[i]);
      csv_real(&out, loss[i]);
      csv_real(&out, u0[i]);
      csv_end(&out, e);
    }
    size_t used = strlen(labels);
    snprintf(labels + used, size - used, "%s\"%.60s\"", *n ? " " : "", c->run[r].variant);
    ++*n;
  }
  csv_close(&out);
  return e->code;
}

int figure_billiard(struct figure_context *c, char why[200], struct err *e) {
  static const char *const need[] = {"method", "u0", "gap", "grad_event", NULL};
  static const char *const methods[] = {"located",           "adaptive", "adaptive_cfd",
                                        "adaptive_softplus", "euler",    "euler_cfd"};
  struct csv_table t;
  const struct run *run;
  int at = 0, drawn = 0;
  for (; next_table(&t, &run, c, &at, need, e) && !e->code; drawn++) {
    char base[256], labels[1024], count[16];
    int nfit;
    name_picture(base, "billiard_sweep", run);
    const char *data = figure_path(c, base, ".csv");
    const char *fits = figure_path(c, base, "_training.csv");
    struct copy x = {.key = {"method"},
                     .names = {methods},
                     .nnames = {6},
                     .column = {"u0", "loss", "grad", "grad_event", "gap"}};
    if (copy_table(data, "series,u0,loss,grad,grad_event,gap", &t, &x, c->arena, e) ||
        collect_fits(fits, labels, sizeof labels, &nfit, c, e)) {
      break;
    }
    snprintf(count, sizeof count, "%d", nfit);
    figure_picture(c, "billiard", base, data, e, "training", fits, "labels", labels, "nfit", count,
                   NULL);
  }
  if (!drawn) {
    snprintf(why, 200, "no table of dsim ablate diffmjx/billiard_sweep");
  }
  return e->code;
}

// ---- identify: the side along every fit

int figure_identify(struct figure_context *c, char why[200], struct err *e) {
  char labels[4096] = "", count[16];
  const char *data = figure_path(c, "identify", ".csv");
  struct csv out;
  int n = 0;
  const struct run *last = NULL;
  remove(data);
  if (csv_open(&out, data, "series,iteration,side_mm,loss", e)) {
    return e->code;
  }
  for (int r = 0; r < c->nrun && !e->code; r++) {
    struct csv_table t;
    double *iteration, *side, *loss;
    const char *progress = run_file(&c->run[r], c->arena, "progress.csv");
    if (!progress || csv_read(&t, c->arena, progress, e) || csv_find(&t, "side_mm") < 0) {
      continue;
    }
    if (csv_reals(&iteration, c->arena, &t, "iteration", e) ||
        csv_reals(&side, c->arena, &t, "side_mm", e) || csv_reals(&loss, c->arena, &t, "loss", e)) {
      break;
    }
    if (!last || !run_same_series(last, &c->run[r])) { // seeds share a line type
      size_t used = strlen(labels);
      snprintf(labels + used, sizeof labels - used, "%s\"%.60s\"", n ? " " : "", c->run[r].variant);
      n++;
      last = &c->run[r];
    }
    for (int i = 0; i < t.nrow && !e->code; i++) {
      csv_int(&out, n - 1);
      csv_real(&out, iteration[i]);
      csv_real(&out, side[i]);
      csv_real(&out, loss[i]);
      csv_end(&out, e);
    }
  }
  csv_close(&out);
  if (n == 0) {
    remove(data);
    snprintf(why, 200, "no run of dsim train diffmjx/identify");
  } else if (!e->code) {
    snprintf(count, sizeof count, "%d", n);
    figure_picture(c, "identify", "identify", data, e, "labels", labels, "nseries", count, NULL);
  }
  return e->code;
}
