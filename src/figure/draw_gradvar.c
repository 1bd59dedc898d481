// Figures of dsim gradvar: variance of the policy's gradient along training, and clouds of state
// gradients at contacts with their spread over the length of the rollout.
#include "figure/figure.h"
#include "learn/gradstat.h"
#include "out/csv.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VARIANTS = 10, ELLIPSE = 72 };

// the runs of one series that have a file, seeds next to each other
struct group {
  const struct run **run;
  int n;
};

// next group with that file among the runs from *at on; n = 0: no more
static struct group next_group(struct figure_context *c, int *at, const char *file) {
  struct group g = {.run = ARENA_NEW(c->arena, const struct run *, c->nrun + 1)};
  for (; *at < c->nrun; (*at)++) {
    const struct run *r = &c->run[*at];
    if (!run_file(r, c->arena, file)) {
      continue;
    }
    if (g.n > 0 && !run_same_series(g.run[0], r)) {
      break;
    }
    g.run[g.n++] = r;
  }
  return g;
}

static void name_group(char base[512], const char *figure, const struct run *r) {
  snprintf(base, 512, "%s_%.150s%s%.150s_%.150s", figure, r->collection, *r->collection ? "_" : "",
           r->experiment, r->variant);
}

struct names { // in order of appearance
  int n;
  const char *name[MAX_VARIANTS];
};

static int name_index(struct names *s, const char *name) {
  for (int i = 0; i < s->n; i++) {
    if (strcmp(s->name[i], name) == 0) {
      return i;
    }
  }
  if (s->n == MAX_VARIANTS) {
    return -1;
  }
  s->name[s->n] = name;
  return s->n++;
}

static void join_names(char *text, size_t size, const struct names *s) {
  text[0] = 0;
  for (int i = 0; i < s->n; i++) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s\"%.60s\"", i ? " " : "", s->name[i]);
  }
}

// ---- variance along training

enum { NQUANTITY = 3 };
static const char *const quantity[NQUANTITY][3] = { // value, band
    {"variance", "lo", "hi"},
    {"direction_spread", "dlo", "dhi"},
    {"ratio", "ratio_lo", "ratio_hi"}};

struct sample { // a row of a gradvar.csv
  int variant;
  double iteration, env_steps, y[NQUANTITY][3];
};

static int read_samples(struct sample **sample, int *n, struct names *names,
                        struct figure_context *c, const struct group *g, struct err *e) {
  int room = 0;
  struct csv_table *t = ARENA_NEW(c->arena, struct csv_table, g->n);
  for (int k = 0; k < g->n; k++) {
    if (csv_read(&t[k], c->arena, run_file(g->run[k], c->arena, "gradvar.csv"), e)) {
      return e->code;
    }
    room += t[k].nrow;
  }
  *sample = ARENA_NEW(c->arena, struct sample, room + 1);
  *n = 0;
  for (int k = 0; k < g->n; k++) {
    double *iteration, *steps, *y[NQUANTITY][3];
    int column = csv_find(&t[k], "variant");
    if (column < 0) {
      return err_set(e, EXIT_USAGE, "%s: no column 'variant'", t[k].path);
    }
    if (csv_reals(&iteration, c->arena, &t[k], "iteration", e) ||
        csv_reals(&steps, c->arena, &t[k], "env_steps", e)) {
      return e->code;
    }
    for (int q = 0; q < 3 * NQUANTITY; q++) {
      if (csv_reals(&y[q / 3][q % 3], c->arena, &t[k], quantity[q / 3][q % 3], e)) {
        return e->code;
      }
    }
    for (int i = 0; i < t[k].nrow; i++) {
      int variant = name_index(names, csv_cell(&t[k], i, column));
      if (variant < 0) {
        continue;
      }
      struct sample *s = &(*sample)[(*n)++];
      *s = (struct sample){variant, iteration[i], steps[i], {{0}}};
      for (int q = 0; q < 3 * NQUANTITY; q++) {
        s->y[q / 3][q % 3] = y[q / 3][q % 3][i];
      }
    }
  }
  return 0;
}

// One row: the samples of a variant at one iteration, one a seed. Bands: of the resamples with one
// seed, from the lowest to the highest seed with several.
static int write_point(struct csv *out, const struct sample *s, int n, int variant,
                       double iteration, int *seeds, struct err *e) {
  double steps = 0, mean[NQUANTITY] = {0}, lo[NQUANTITY], hi[NQUANTITY];
  int count = 0;
  const struct sample *only = NULL;
  for (int i = 0; i < n; i++) {
    if (s[i].variant != variant || s[i].iteration != iteration) {
      continue;
    }
    only = &s[i];
    count++;
    steps += (s[i].env_steps - steps) / count;
    for (int q = 0; q < NQUANTITY; q++) {
      double y = s[i].y[q][0];
      mean[q] += (y - mean[q]) / count;
      lo[q] = count == 1 ? y : fmin(lo[q], y);
      hi[q] = count == 1 ? y : fmax(hi[q], y);
    }
  }
  for (int q = 0; q < NQUANTITY && count == 1; q++) {
    lo[q] = only->y[q][1];
    hi[q] = only->y[q][2];
  }
  if (count == 0) {
    return 0;
  }
  *seeds = count > *seeds ? count : *seeds;
  csv_int(out, variant);
  csv_int(out, count);
  csv_real(out, iteration);
  csv_real(out, steps);
  for (int q = 0; q < NQUANTITY; q++) {
    csv_real(out, mean[q]);
    csv_real(out, lo[q]);
    csv_real(out, hi[q]);
  }
  return csv_end(out, e);
}

static int draw_variance(struct figure_context *c, const struct group *g, struct err *e) {
  struct names names = {0};
  struct sample *s;
  int n = 0, seeds = 0;
  if (read_samples(&s, &n, &names, c, g, e) || n == 0) {
    return e->code;
  }
  char base[512], header[512], labels[1024], nseries[16], subtitle[512];
  const char *band = "Bands: 95 % of resampled environments.";
  name_group(base, "gradvar", g->run[0]);
  snprintf(header, sizeof header, "series,seeds,iteration,env_steps");
  for (int q = 0; q < NQUANTITY; q++) {
    size_t used = strlen(header);
    snprintf(header + used, sizeof header - used, ",%s,%s_lo,%s_hi", quantity[q][0], quantity[q][0],
             quantity[q][0]);
  }
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  remove(data);
  if (csv_open(&out, data, header, e)) {
    return e->code;
  }
  for (int v = 0; v < names.n; v++) {
    // iterations in rising order
    for (double last = -1, next; !e->code; last = next) {
      next = INFINITY;
      for (int i = 0; i < n; i++) {
        next = s[i].iteration > last && s[i].iteration < next ? s[i].iteration : next;
      }
      if (!isfinite(next)) {
        break;
      }
      write_point(&out, s, n, v, next, &seeds, e);
    }
  }
  csv_close(&out);
  if (e->code) {
    return e->code;
  }
  if (seeds > 1) {
    band = "Lines: mean over seeds. Bands: lowest to highest seed.";
  }
  join_names(labels, sizeof labels, &names);
  snprintf(nseries, sizeof nseries, "%d", names.n);
  snprintf(subtitle, sizeof subtitle, "%.200s %.200s", g->run[0]->experiment, g->run[0]->variant);
  return figure_picture(c, "gradvar", base, data, e, "labels", labels, "nseries", nseries, "band",
                        band, "subtitle", subtitle, NULL);
}

int figure_gradvar(struct figure_context *c, char why[200], struct err *e) {
  int drawn = 0;
  for (int at = 0; !e->code;) {
    struct group g = next_group(c, &at, "gradvar.csv");
    if (g.n == 0) {
      break;
    }
    draw_variance(c, &g, e);
    drawn++;
  }
  if (!drawn && !e->code) {
    snprintf(why, 200, "no run with a gradvar.csv (dsim gradvar)");
  }
  return e->code;
}

// ---- clouds

struct cloud { // the points of one variant
  double *x, *y;
  int n;
};

// One run shows the cloud.
static int read_clouds(struct cloud cloud[MAX_VARIANTS], struct names *names, char axes[2][32],
                       struct figure_context *c, const struct run *run, struct err *e) {
  struct csv_table t;
  double *x, *y;
  if (csv_read(&t, c->arena, run_file(run, c->arena, "cloud.csv"), e) ||
      csv_reals(&x, c->arena, &t, "x", e) || csv_reals(&y, c->arena, &t, "y", e)) {
    return e->code;
  }
  int variant = csv_find(&t, "variant"), xn = csv_find(&t, "x_name"), yn = csv_find(&t, "y_name");
  if (variant < 0 || xn < 0 || yn < 0) {
    return err_set(e, EXIT_USAGE, "%s: no column 'variant', 'x_name' or 'y_name'", t.path);
  }
  for (int i = 0; i < t.nrow; i++) {
    int v = name_index(names, csv_cell(&t, i, variant));
    snprintf(axes[0], 32, "%s", csv_cell(&t, i, xn));
    snprintf(axes[1], 32, "%s", csv_cell(&t, i, yn));
    if (v < 0) {
      continue;
    }
    struct cloud *p = &cloud[v];
    if (p->n == 0) {
      p->x = ARENA_NEW(c->arena, double, t.nrow);
      p->y = ARENA_NEW(c->arena, double, t.nrow);
    }
    p->x[p->n] = x[i];
    p->y[p->n++] = y[i];
  }
  return 0;
}

static int write_xy(struct csv *out, const char *kind, int series, double x, double y,
                    struct err *e) {
  csv_text(out, kind);
  csv_int(out, series);
  csv_real(out, x);
  csv_real(out, y);
  return csv_end(out, e);
}

// two standard deviations about the mean, as a closed line
static int write_ellipse(struct csv *out, const struct cloud *p, int series, struct err *e) {
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (int i = 0; i < p->n; i++) {
    mx += p->x[i] / p->n;
    my += p->y[i] / p->n;
  }
  for (int i = 0; i < p->n; i++) {
    double dx = p->x[i] - mx, dy = p->y[i] - my;
    xx += dx * dx / (p->n - 1);
    xy += dx * dy / (p->n - 1);
    yy += dy * dy / (p->n - 1);
  }
  // Cholesky factor of the covariance, times circles
  double a = sqrt(xx), b = a > 0 ? xy / a : 0, d = sqrt(fmax(yy - b * b, 0));
  for (int i = 0; i <= ELLIPSE && p->n > 2 && !e->code; i++) {
    double angle = 2 * 3.14159265358979323846 * i / ELLIPSE, u = 2 * cos(angle), v = 2 * sin(angle);
    write_xy(out, "ellipse", series, mx + a * u, my + b * u + d * v, e);
  }
  return e->code;
}

// what 98 % of the points need, with a margin
static void view(char text[64], struct arena *a, const struct cloud *cloud, int n, int axis) {
  int count = 0;
  for (int v = 0; v < n; v++) {
    count += cloud[v].n;
  }
  double *all = ARENA_NEW(a, double, count), lo, hi;
  count = 0;
  for (int v = 0; v < n; v++) {
    for (int i = 0; i < cloud[v].n; i++) {
      all[count++] = axis ? cloud[v].y[i] : cloud[v].x[i];
    }
  }
  gradstat_interval(&lo, &hi, all, count, 0.98);
  double margin = 0.15 * (hi - lo) + 1e-9;
  snprintf(text, 64, "[%.6g:%.6g]", lo - margin, hi + margin);
}

static int draw_cloud(struct figure_context *c, const struct group *g, struct err *e) {
  struct cloud cloud[MAX_VARIANTS] = {{0}};
  struct names names = {0};
  char axes[2][32] = {"", ""}, base[512], labels[1024], xview[64], yview[64], subtitle[512];
  if (read_clouds(cloud, &names, axes, c, g->run[0], e) || names.n == 0) {
    return e->code;
  }
  name_group(base, "cloud", g->run[0]);
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  remove(data);
  if (csv_open(&out, data, "kind,series,x,y", e)) {
    return e->code;
  }
  for (int v = 0; v < names.n && !e->code; v++) {
    for (int i = 0; i < cloud[v].n && !e->code; i++) {
      write_xy(&out, "point", v, cloud[v].x[i], cloud[v].y[i], e);
    }
    write_ellipse(&out, &cloud[v], v, e);
  }
  csv_close(&out);
  if (e->code) {
    return e->code;
  }
  join_names(labels, sizeof labels, &names);
  view(xview, c->arena, cloud, names.n, 0);
  view(yview, c->arena, cloud, names.n, 1);
  snprintf(subtitle, sizeof subtitle, "%.200s %.200s", g->run[0]->experiment, g->run[0]->variant);
  const char *spread = run_file(g->run[0], c->arena, "spread.csv");
  return figure_picture(c, "cloud", base, data, e, "labels", labels, "xname", axes[0], "yname",
                        axes[1], "xview", xview, "yview", yview, "spread", spread ? spread : "",
                        "subtitle", subtitle, NULL);
}

int figure_cloud(struct figure_context *c, char why[200], struct err *e) {
  int drawn = 0;
  for (int at = 0; !e->code;) {
    struct group g = next_group(c, &at, "cloud.csv");
    if (g.n == 0) {
      break;
    }
    draw_cloud(c, &g, e);
    drawn++;
  }
  if (!drawn && !e->code) {
    snprintf(why, 200, "no run with a cloud.csv (dsim gradvar)");
  }
  return e->code;
}
