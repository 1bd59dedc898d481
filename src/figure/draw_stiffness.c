// The stiffness table: falls after transfer and the depth of feet, training minus MuJoCo, over
// kappa, a line per motion, beside the paper's (arXiv 2609.30951). Sweeps named stiffness..., with
// variants like kappa50_run. Also prints the table.
#include "base/file.h"
#include "figure/figure.h"
#include "figure/sweeps.h"
#include "out/table.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MOTIONS = 8 };

struct paper {
  struct csv_table t;
  double *kappa, *falls, *runs, *delta;
};

struct point { // one variant
  int motion;
  double kappa;
  struct sweep_number falls, delta, train, mujoco, track;
  double paper_falls, paper_delta; // share and mm; NaN when the paper has no such row
};

static int read_paper(struct paper *p, struct arena *a, struct err *e) {
  const char *path = file_find(a, "plots/paper_stiffness.csv");
  *p = (struct paper){0};
  if (!path) {
    return 0;
  }
  if (csv_read(&p->t, a, path, e) || csv_reals(&p->kappa, a, &p->t, "kappa", e) ||
      csv_reals(&p->falls, a, &p->t, "falls", e) || csv_reals(&p->runs, a, &p->t, "runs", e)) {
    return e->code;
  }
  return csv_reals(&p->delta, a, &p->t, "delta_d_mm", e);
}

static void find_paper(struct point *x, const struct paper *p, const char *motion) {
  int column = p->t.nrow ? csv_find(&p->t, "motion") : -1;
  x->paper_falls = x->paper_delta = NAN;
  for (int i = 0; column >= 0 && i < p->t.nrow; i++) {
    if (strcmp(csv_cell(&p->t, i, column), motion) == 0 && p->kappa[i] == x->kappa) {
      x->paper_falls = p->falls[i] / p->runs[i];
      x->paper_delta = p->delta[i];
    }
  }
}

// "kappa50_run", "paper_kappa300_jump": what stands before kappa, if anything, is part of the name
static bool split_variant(const char *variant, double *kappa, char name[96]) {
  const char *at = strstr(variant, "kappa");
  char *end;
  if (!at) {
    return false;
  }
  *kappa = strtod(at + 5, &end);
  snprintf(name, 96, "%.*s%.60s", at - variant > 30 ? 30 : (int)(at - variant), variant,
           *end == '_' ? end + 1 : end);
  return end > at + 5;
}

static int read_points(struct point *x, int *n, char motion[MAX_MOTIONS][96], int *nmotion,
                       const struct sweep_table *s, const struct paper *paper) {
  *n = *nmotion = 0;
  for (int v = 0; v < s->nvariant; v++) {
    char name[96];
    double kappa;
    int m = 0;
    if (!split_variant(s->variant[v], &kappa, name)) {
      continue;
    }
    while (m < *nmotion && strcmp(motion[m], name) != 0) {
      m++;
    }
    if (m == MAX_MOTIONS) {
      continue;
    }
    if (m == *nmotion) {
      snprintf(motion[(*nmotion)++], 96, "%s", name);
    }
    struct point *p = &x[(*n)++];
    *p = (struct point){.motion = m, .kappa = kappa};
    p->falls = sweep_number(s, s->variant[v], "fall_share");
    p->delta = sweep_number(s, s->variant[v], "delta_d_mm");
    p->train = sweep_number(s, s->variant[v], "penetration_train_mm");
    p->mujoco = sweep_number(s, s->variant[v], "penetration_mm");
    p->track = sweep_number(s, s->variant[v], "e_track_cm");
    find_paper(p, paper, name);
  }
  return *n;
}

static int write_points(const char *path, const struct point *x, int n,
                        char motion[MAX_MOTIONS][96], int nmotion, struct err *e) {
  struct csv out;
  remove(path);
  if (csv_open(&out, path,
               "series,motion,kappa,seeds,falls,falls_lo,falls_hi,delta_d,delta_d_lo,delta_d_hi,"
               "train_mm,mujoco_mm,e_track_cm,paper_falls,paper_delta_d",
               e)) {
    return e->code;
  }
  // lines go from soft to stiff
  for (int m = 0; m < nmotion; m++) {
    for (double last = -INFINITY;;) {
      const struct point *p = NULL;
      for (int i = 0; i < n; i++) {
        if (x[i].motion == m && x[i].kappa > last && (!p || x[i].kappa < p->kappa)) {
          p = &x[i];
        }
      }
      if (!p || e->code) {
        break;
      }
      last = p->kappa;
      csv_int(&out, m);
      csv_text(&out, motion[m]);
      csv_real(&out, p->kappa);
      csv_int(&out, (long long)p->falls.n);
      const double y[] = {p->falls.mean, p->falls.lo,    p->falls.hi,   p->delta.mean,
                          p->delta.lo,   p->delta.hi,    p->train.mean, p->mujoco.mean,
                          p->track.mean, p->paper_falls, p->paper_delta};
      for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        csv_real_or_missing(&out, y[i]);
      }
      csv_end(&out, e);
    }
  }
  csv_close(&out);
  return e->code;
}

static void print_points(struct figure_context *c, const char *name, const struct point *x, int n,
                         char motion[MAX_MOTIONS][96]) {
  struct table t;
  table_init(&t, c->arena);
  table_column(&t, "motion", "", 0);
  table_column(&t, "kappa", "1/m", 0);
  table_column(&t, "seeds", "", 0);
  table_column(&t, "falls", "%", 0);
  table_column(&t, "paper", "%", 0);
  table_column(&t, "training - MuJoCo", "mm", 1);
  table_column(&t, "paper", "mm", 1);
  table_column(&t, "training", "mm", 1);
  table_column(&t, "MuJoCo", "mm", 1);
  for (int i = 0; i < n; i++) {
    const struct point *p = &x[i];
    table_text(&t, motion[p->motion]);
    table_real(&t, p->kappa);
    table_int(&t, (long long)p->falls.n);
    table_real(&t, 100 * p->falls.mean);
    table_real(&t, 100 * p->paper_falls);
    table_mean_std(&t, p->delta.mean, p->delta.std);
    table_real(&t, p->paper_delta);
    table_real(&t, p->train.mean);
    table_real(&t, p->mujoco.mean);
  }
  printf("Falls in MuJoCo and depth of feet, by stiffness of the training contacts: %s\n", name);
  table_print(&t, stdout);
  putchar('\n');
}

static int draw_sweep(struct figure_context *c, const struct sweep_dir *d,
                      const struct paper *paper, int *drawn, struct err *e) {
  struct sweep_table s;
  struct point x[SWEEP_SHOWN];
  char motion[MAX_MOTIONS][96], labels[1024] = "", count[16], any_paper[2] = "";
  int n, nmotion;
  if (sweep_table_read(&s, c->arena, d->dir, e) ||
      !read_points(x, &n, motion, &nmotion, &s, paper)) {
    return e->code;
  }
  char *base = figure_path(c, d->name, "");
  base = strrchr(base, '/') + 1;
  const char *data = figure_path(c, base, ".csv");
  if (write_points(data, x, n, motion, nmotion, e)) {
    return e->code;
  }
  print_points(c, d->name, x, n, motion);
  for (int m = 0; m < nmotion; m++) {
    size_t used = strlen(labels);
    snprintf(labels + used, sizeof labels - used, "%s\"%s\"", m ? " " : "", motion[m]);
  }
  for (int i = 0; i < n; i++) {
    any_paper[0] = isfinite(x[i].paper_falls) ? '1' : any_paper[0];
  }
  char xview[64], ticks[256] = "";
  double lo = x[0].kappa, hi = lo;
  for (int i = 0; i < n; i++) {
    size_t used = strlen(ticks);
    lo = fmin(lo, x[i].kappa);
    hi = fmax(hi, x[i].kappa);
    if (x[i].motion == 0 && used < sizeof ticks - 32) {
      snprintf(ticks + used, sizeof ticks - used, "%s%g", used ? ", " : "", x[i].kappa);
    }
  }
  snprintf(xview, sizeof xview, "[%g:%g]", lo / 1.25, hi * 1.25);
  snprintf(count, sizeof count, "%d", nmotion);
  (*drawn)++;
  const char *subtitle = strcmp(d->name, "stiffness") == 0 ? "" : d->name;
  return figure_picture(c, "stiffness", base, data, e, "labels", labels, "nseries", count, "paper",
                        any_paper, "xview", xview, "ticks", ticks, "subtitle", subtitle, NULL);
}

int figure_stiffness(struct figure_context *c, char why[200], struct err *e) {
  struct sweep_dir *d;
  struct paper paper;
  int n, drawn = 0;
  if (read_paper(&paper, c->arena, e) ||
      sweeps_find(&d, &n, c->arena, c->from, "reference", "stiffness", e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    draw_sweep(c, &d[i], &paper, &drawn, e);
  }
  if (!drawn && !e->code) {
    snprintf(why, 200, "no sweep with variants like kappa50_run (dsim ablate stiffness)");
  }
  return e->code;
}
