// Tracking error per motion: eval.csv (training simulator) and transfer.csv (MuJoCo) of every run,
// beside the paper's table. Also prints the table.
#include "base/file.h"
#include "base/log.h"
#include "out/csv.h"
#include "figure/figure.h"
#include "out/table.h"
#include "spec/spec.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct error_stats { // over episodes and seeds
  int episodes, falls;
  int n; // with an error: one that falls at once has none
  double sum, sum_sq;
};

struct row {
  const struct run *run; // the first seed's
  struct error_stats train, mujoco;
  double paper, paper_std; // NaN when the paper has no such motion
};

static double mean(const struct error_stats *s) {
  return s->n ? s->sum / s->n : NAN;
}
static double deviation(const struct error_stats *s) {
  double m = mean(s);
  double var = s->n > 1 ? (s->sum_sq - s->n * m * m) / (s->n - 1) : NAN;
  return var < 0 ? 0 : sqrt(var);
}

static int add_file(struct error_stats *s, struct figure_context *c, const struct run *r,
                    const char *name, struct err *e) {
  const char *path = run_file(r, c->arena, name);
  struct csv_table t;
  double *error, *fell;
  if (!path) {
    return 0;
  }
  if (csv_read(&t, c->arena, path, e) || csv_reals(&error, c->arena, &t, "e_track_cm", e) ||
      csv_reals(&fell, c->arena, &t, "fell", e)) {
    return e->code;
  }
  for (int i = 0; i < t.nrow; i++) {
    s->episodes++;
    s->falls += fell[i] > 0;
    if (isfinite(error[i])) {
      s->n++;
      s->sum += error[i];
      s->sum_sq += error[i] * error[i];
    }
  }
  return 0;
}

// The paper tracked windows of LAFAN1: its numbers stand only beside runs on those clips.
static bool is_lafan1(struct figure_context *c, const struct run *r) {
  if (strstr(r->collection, "lafan1")) {
    return true;
  }
  struct err ignored = {0};
  struct spec s;
  const char *path = run_file(r, c->arena, "spec.yaml");
  return path && spec_read(&s, c->arena, path, &ignored) == 0 && strstr(s.motion, "lafan1");
}

static int find_paper(struct row *row, struct figure_context *c, struct err *e) {
  row->paper = row->paper_std = NAN;
  struct csv_table t;
  double *error, *std;
  const char *path = file_find(c->arena, "plots/paper_tracking.csv");
  if (!path || !is_lafan1(c, row->run)) {
    return 0;
  }
  if (csv_read(&t, c->arena, path, e) || csv_reals(&error, c->arena, &t, "e_track_cm", e) ||
      csv_reals(&std, c->arena, &t, "std_cm", e)) {
    return e->code;
  }
  const char *ours = strncmp(row->run->variant, "ppo", 3) == 0 ? "PPO" : "SHAC+BCG";
  int motion = csv_find(&t, "motion"), method = csv_find(&t, "method");
  for (int i = 0; motion >= 0 && method >= 0 && i < t.nrow; i++) {
    if (strcmp(csv_cell(&t, i, motion), row->run->experiment) == 0 &&
        strcmp(csv_cell(&t, i, method), ours) == 0) {
      row->paper = error[i];
      row->paper_std = std[i];
    }
  }
  return 0;
}

static const char *row_label(struct figure_context *c, const struct run *r) {
  char label[256];
  bool main_variant = strcmp(r->variant, "main") == 0;
  snprintf(label, sizeof label, "%.120s%s%.120s", r->experiment, main_variant ? "" : " ",
           main_variant ? "" : r->variant);
  return arena_strdup(c->arena, label);
}

static void print_rows(struct figure_context *c, const struct row *row, int n) {
  struct table t;
  table_init(&t, c->arena);
  table_column(&t, "motion", "", 0);
  table_column(&t, "training", "cm", 1);
  table_column(&t, "fell", "", 0);
  table_column(&t, "MuJoCo", "cm", 1);
  table_column(&t, "fell", "", 0);
  table_column(&t, "paper, MuJoCo", "cm", 1);
  for (int i = 0; i < n; i++) {
    table_text(&t, row_label(c, row[i].run));
    for (int k = 0; k < 2; k++) {
      const struct error_stats *s = k ? &row[i].mujoco : &row[i].train;
      char falls[32] = "";
      if (s->episodes) {
        snprintf(falls, sizeof falls, "%d/%d", s->falls, s->episodes);
      }
      table_mean_std(&t, mean(s), deviation(s));
      table_text(&t, falls);
    }
    table_mean_std(&t, row[i].paper, row[i].paper_std);
  }
  printf("E_track, mean distance of all bodies to the reference%s%s\n",
         *row[0].run->collection ? ": " : "", row[0].run->collection);
  table_print(&t, stdout);
  putchar('\n');
}

static int draw_collection(struct figure_context *c, const struct row *row, int n, struct err *e) {
  const char *collection = row[0].run->collection;
  char base[256], count[16];
  snprintf(base, sizeof base, "tracking%s%.200s", *collection ? "_" : "", collection);
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  remove(data);
  if (csv_open(&out, data,
               "label,train_cm,train_std,train_falls,train_n,mujoco_cm,mujoco_std,mujoco_falls,"
               "mujoco_n,paper_cm,paper_std",
               e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    csv_text(&out, row_label(c, row[i].run));
    for (int k = 0; k < 2; k++) {
      const struct error_stats *s = k ? &row[i].mujoco : &row[i].train;
      if (s->n) {
        csv_real(&out, mean(s));
        csv_real(&out, s->n > 1 ? deviation(s) : 0);
        csv_int(&out, s->falls);
        csv_int(&out, s->episodes);
      } else {
        for (int j = 0; j < 4; j++) {
          csv_missing(&out);
        }
      }
    }
    if (isnan(row[i].paper)) {
      csv_missing(&out);
      csv_missing(&out);
    } else {
      csv_real(&out, row[i].paper);
      csv_real(&out, row[i].paper_std);
    }
    csv_end(&out, e);
  }
  csv_close(&out);
  if (e->code) {
    return e->code;
  }
  print_rows(c, row, n);

  // a kind of bar that no run has takes no room
  bool train = false, mujoco = false, paper = false;
  for (int i = 0; i < n; i++) {
    train |= row[i].train.n > 0;
    mujoco |= row[i].mujoco.n > 0;
    paper |= isfinite(row[i].paper);
  }
  char simulated[32], kinds[48];
  snprintf(simulated, sizeof simulated, "%s%s", train ? "train " : "", mujoco ? "mujoco " : "");
  snprintf(kinds, sizeof kinds, "%s%s", simulated, paper ? "paper" : "");
  snprintf(count, sizeof count, "%d", n);
  return figure_picture(c, "tracking", base, data, e, "nrow", count, "subtitle", collection,
                        "kinds", kinds, "simulated", simulated, NULL);
}

// Small experiments have an eval.csv of another kind.
static bool tracks(struct figure_context *c, const struct run *r) {
  struct csv_table t;
  struct err none = {0};
  const char *path = run_file(r, c->arena, "eval.csv");
  return run_file(r, c->arena, "transfer.csv") ||
         (path && (csv_read(&t, c->arena, path, &none) || csv_find(&t, "e_track_cm") >= 0));
}

int figure_tracking(struct figure_context *c, char why[200], struct err *e) {
  struct row *row = ARENA_NEW(c->arena, struct row, c->nrun + 1);
  int n = 0;
  for (int i = 0; i < c->nrun && !e->code; i++) {
    const struct run *r = &c->run[i];
    if (!tracks(c, r)) {
      continue;
    }
    const struct run *last = n ? row[n - 1].run : NULL;
    if (!last || !run_same_series(last, r)) {
      row[n++].run = r;
      find_paper(&row[n - 1], c, e);
    }
    if (!e->code && !add_file(&row[n - 1].train, c, r, "eval.csv", e)) {
      add_file(&row[n - 1].mujoco, c, r, "transfer.csv", e);
    }
  }
  if (n == 0) {
    snprintf(why, 200, "no run with an eval.csv or transfer.csv (dsim evaluate, dsim transfer)");
  }
  for (int first = 0, last; first < n && !e->code; first = last) {
    for (last = first + 1; last < n; last++) {
      if (strcmp(row[last].run->collection, row[first].run->collection) != 0) {
        break;
      }
    }
    draw_collection(c, row + first, last - first, e);
  }
  return e->code;
}
