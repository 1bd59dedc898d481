// Methods against each other: return and tracking error against samples and against wall-clock
// time, from curves.csv of sweeps named methods..., and the table of what they need to get to a
// tracking error, from summary.csv.
#include "base/file.h"
#include "figure/figure.h"
#include "figure/sweeps.h"
#include "out/table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NQUANTITY = 3, MAX_GOALS = 8 };
static const char *const quantity[NQUANTITY] = {"reward", "eval_e_track_cm", "eval_survival"};

// "shac_bcg_run" is SHAC+BCG on run: the method as it is written in text, and what follows it.
static const char *method_of(const char *variant, const char **suffix) {
  static const char *const names[][2] = {
      {"shac_bcg", "SHAC+BCG"}, {"shac", "SHAC"}, {"ppo", "PPO"}};
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(names[i][0]);
    if (strncmp(variant, names[i][0], n) == 0 && (variant[n] == 0 || variant[n] == '_')) {
      *suffix = variant + n;
      return names[i][1];
    }
  }
  *suffix = "";
  return variant;
}

static const char *method_label(struct arena *a, const char *variant) {
  const char *suffix, *method = method_of(variant, &suffix);
  char label[256];
  snprintf(label, sizeof label, "%.100s%s%.100s", method, *suffix ? " " : "",
           *suffix ? suffix + 1 : "");
  return arena_strdup(a, label);
}

// Rows of curves.csv under series numbers; a quantity without a number in any row is not shown.
static int write_curves(const char *path, char *labels, size_t size, char *shown, size_t nshown,
                        int *nseries, struct figure_context *c, const char *dir, struct err *e) {
  struct csv_table t;
  double *steps, *wall, *seeds, *y[3 * NQUANTITY];
  char name[512];
  bool has[NQUANTITY] = {false};
  *nseries = 0;
  snprintf(name, sizeof name, "%.500s/curves.csv", dir);
  if (!file_exists(name)) {
    return 0;
  }
  if (csv_read(&t, c->arena, name, e) || csv_reals(&steps, c->arena, &t, "env_steps", e) ||
      csv_reals(&wall, c->arena, &t, "wall_s", e) || csv_reals(&seeds, c->arena, &t, "seeds", e)) {
    return e->code;
  }
  char header[512] = "series,variant,seeds,env_steps,wall_s";
  for (int q = 0; q < 3 * NQUANTITY; q++) {
    static const char *const ends[3] = {"", "_lo", "_hi"};
    snprintf(name, sizeof name, "%s%s", quantity[q / 3], ends[q % 3]);
    if (csv_reals(&y[q], c->arena, &t, name, e)) {
      return e->code;
    }
    size_t used = strlen(header);
    snprintf(header + used, sizeof header - used, ",%s", name);
  }
  struct csv out;
  remove(path);
  if (csv_open(&out, path, header, e)) {
    return e->code;
  }
  int column = csv_find(&t, "variant");
  const char *last = "";
  for (int i = 0; i < t.nrow && column >= 0 && !e->code; i++) {
    const char *variant = csv_cell(&t, i, column);
    if (*nseries == 0 || strcmp(variant, last) != 0) {
      size_t used = strlen(labels);
      snprintf(labels + used, size - used, "%s\"%.100s\"", used ? " " : "",
               method_label(c->arena, variant));
      last = variant;
      (*nseries)++;
    }
    csv_int(&out, *nseries - 1);
    csv_text(&out, variant);
    csv_real_or_missing(&out, seeds[i]);
    csv_real_or_missing(&out, steps[i]);
    csv_real_or_missing(&out, wall[i]);
    for (int q = 0; q < 3 * NQUANTITY; q++) {
      csv_real_or_missing(&out, y[q][i]);
      has[q / 3] |= q % 3 == 0 && !isnan(y[q][i]);
    }
    csv_end(&out, e);
  }
  csv_close(&out);
  for (int q = 0; q < NQUANTITY; q++) {
    size_t used = strlen(shown);
    if (has[q]) {
      snprintf(shown + used, nshown - used, "%s%s", used ? " " : "", quantity[q]);
    }
  }
  return e->code;
}

// the tracking errors that the sweep asks about: X of steps_to_X_cm, largest first
static int find_goals(double goal[MAX_GOALS], const struct sweep_table *s) {
  int n = 0, column = csv_find(&s->t, "metric");
  for (int i = 0; i < s->t.nrow && n < MAX_GOALS; i++) {
    double x;
    char end;
    const char *metric = csv_cell(&s->t, i, column);
    if (sscanf(metric, "steps_to_%lf_c%c", &x, &end) != 2 || end != 'm' || strstr(metric, "iqm")) {
      continue;
    }
    int at = 0;
    while (at < n && goal[at] > x) {
      at++;
    }
    if (at < n && goal[at] == x) {
      continue;
    }
    memmove(goal + at + 1, goal + at, sizeof *goal * (size_t)(n - at));
    goal[at] = x;
    n++;
  }
  return n;
}

// PPO of the same sweep on the same ("_run"), or NULL
static const char *baseline(const struct sweep_table *s, const char *variant) {
  const char *suffix, *other;
  method_of(variant, &suffix);
  for (int v = 0; v < s->nvariant; v++) {
    if (strcmp(method_of(s->variant[v], &other), "PPO") == 0 && strcmp(other, suffix) == 0) {
      return s->variant[v];
    }
  }
  return NULL;
}

// One row per method and goal: samples and seconds until then, how many seeds came so far, and how
// many times more PPO needs. Printed and written.
static int write_goals(struct figure_context *c, const struct sweep_dir *d, struct err *e) {
  struct sweep_table s;
  double goal[MAX_GOALS];
  if (sweep_table_read(&s, c->arena, d->dir, e)) {
    return e->code;
  }
  int ngoal = find_goals(goal, &s);
  if (ngoal == 0) {
    return 0;
  }
  struct table t;
  table_init(&t, c->arena);
  table_column(&t, "method", "", 0);
  table_column(&t, "E_track", "cm", 0);
  table_column(&t, "seeds there", "", 0);
  table_column(&t, "samples", "1e6", 2);
  table_column(&t, "time", "min", 1);
  table_column(&t, "PPO's samples", "times", 1);
  table_column(&t, "PPO's time", "times", 1);
  struct csv out;
  char *base = strrchr(figure_path(c, d->name, ""), '/') + 1;
  const char *path = figure_path(c, base, "_goals.csv");
  remove(path);
  if (csv_open(&out, path,
               "variant,e_track_cm,seeds,env_steps,env_steps_lo,env_steps_hi,wall_s,wall_s_lo,"
               "wall_s_hi,ppo_steps_ratio,ppo_wall_ratio",
               e)) {
    return e->code;
  }
  for (int g = 0; g < ngoal; g++) {
    for (int v = 0; v < s.nvariant && !e->code; v++) {
      char steps_to[64], wall_to[64];
      snprintf(steps_to, sizeof steps_to, "steps_to_%g_cm", goal[g]);
      snprintf(wall_to, sizeof wall_to, "wall_s_to_%g_cm", goal[g]);
      struct sweep_number steps = sweep_number(&s, s.variant[v], steps_to),
                          wall = sweep_number(&s, s.variant[v], wall_to);
      const char *ppo = baseline(&s, s.variant[v]);
      double times[2] = {NAN, NAN};
      if (ppo) {
        times[0] = sweep_number(&s, ppo, steps_to).mean / steps.mean;
        times[1] = sweep_number(&s, ppo, wall_to).mean / wall.mean;
      }
      table_text(&t, method_label(c->arena, s.variant[v]));
      table_real(&t, goal[g]);
      table_int(&t, isnan(steps.mean) ? 0 : (long long)steps.n);
      table_real(&t, 1e-6 * steps.mean);
      table_real(&t, wall.mean / 60);
      table_real(&t, times[0]);
      table_real(&t, times[1]);
      csv_text(&out, s.variant[v]);
      csv_real(&out, goal[g]);
      csv_int(&out, isnan(steps.mean) ? 0 : (long long)steps.n);
      const double y[] = {steps.mean, steps.lo, steps.hi, wall.mean,
                          wall.lo,    wall.hi,  times[0], times[1]};
      for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        csv_real_or_missing(&out, y[i]);
      }
      csv_end(&out, e);
    }
  }
  csv_close(&out);
  printf("Training until an evaluation comes through everywhere with E_track: %s\n", d->name);
  table_print(&t, stdout);
  putchar('\n');
  return e->code;
}

static int draw_sweep(struct figure_context *c, const struct sweep_dir *d, int *drawn,
                      struct err *e) {
  char labels[4096] = "", shown[256] = "", count[16];
  int nseries;
  char *base = strrchr(figure_path(c, d->name, ""), '/') + 1;
  const char *data = figure_path(c, base, ".csv");
  if (write_curves(data, labels, sizeof labels, shown, sizeof shown, &nseries, c, d->dir, e) ||
      write_goals(c, d, e) || nseries == 0 || !shown[0]) {
    return e->code;
  }
  snprintf(count, sizeof count, "%d", nseries);
  (*drawn)++;
  const char *subtitle = strcmp(d->name, "methods") == 0 ? "" : d->name;
  return figure_picture(c, "methods", base, data, e, "labels", labels, "nseries", count, "shown",
                        shown, "subtitle", subtitle, NULL);
}

int figure_methods(struct figure_context *c, char why[200], struct err *e) {
  struct sweep_dir *d;
  int n, drawn = 0;
  if (sweeps_find(&d, &n, c->arena, c->from, "reference", "methods", e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    draw_sweep(c, &d[i], &drawn, e);
  }
  if (!drawn && !e->code) {
    snprintf(why, 200, "no sweep named methods with a curves.csv (dsim ablate methods)");
  }
  return e->code;
}
