// Gradient estimators against each other, from the table of dsim ablate gradients.
#include "figure/figure.h"
#include "out/csv.h"
#include "task/estimate.h"
#include <stdio.h>
#include <string.h>

// -1: no such name
static int estimator_of(const char *name) {
  for (int i = 0; i < ESTIMATE_KINDS; i++) {
    if (strcmp(name, estimate_name[i]) == 0) {
      return i;
    }
  }
  return -1;
}

static int task_of(const char *name) {
  for (int i = 0; i < ESTIMATE_PROBLEMS; i++) {
    struct problem p;
    estimate_problem(&p, i, NULL);
    if (strcmp(name, p.name) == 0) {
      return i;
    }
  }
  return -1;
}

static int write_data(const char *path, const struct csv_table *t, struct arena *a, struct err *e) {
  static const char *const column[] = {"bias_relative", "bias_error", "truth",  "std_relative",
                                       "cost",          "final_loss", "success"};
  enum { N = sizeof column / sizeof *column };
  double *value[N];
  struct csv out;
  for (int i = 0; i < N; i++) {
    if (csv_reals(&value[i], a, t, column[i], e)) {
      return e->code;
    }
  }
  remove(path);
  if (csv_open(&out, path,
               "task,estimator,bias_relative,bias_error,truth,std_relative,cost,final_loss,success",
               e)) {
    return e->code;
  }
  for (int k = 0; k < t->nrow && !e->code; k++) {
    int task = task_of(csv_cell(t, k, csv_find(t, "task")));
    int estimator = estimator_of(csv_cell(t, k, csv_find(t, "estimator")));
    if (task < 0 || estimator < 0) {
      continue;
    }
    csv_int(&out, task);
    csv_int(&out, estimator);
    for (int i = 0; i < N; i++) {
      csv_real_or_missing(&out, value[i][k]);
    }
    csv_end(&out, e);
  }
  csv_close(&out);
  return e->code;
}

int figure_gradients(struct figure_context *c, char why[200], struct err *e) {
  int drawn = 0;
  for (int i = 0; i < c->nrun && !e->code; i++) {
    struct csv_table t;
    const char *path = run_file(&c->run[i], c->arena, "table.csv");
    if (!path || csv_read(&t, c->arena, path, e) || csv_find(&t, "bias_relative") < 0) {
      continue;
    }
    char base[256];
    const char *name = c->run[i].variant;
    bool usual = strcmp(name, "gradients") == 0;
    snprintf(base, sizeof base, "gradients%s%.100s", usual ? "" : "_", usual ? "" : name);
    const char *data = figure_path(c, base, ".csv");
    if (write_data(data, &t, c->arena, e) == 0 &&
        figure_picture(c, "gradients", base, data, e, NULL) == 0) {
      drawn++;
    }
  }
  if (!drawn) {
    snprintf(why, 200, "no table of dsim ablate gradients");
  }
  return e->code;
}
