// Learning curves: progress.csv of every run, one line per experiment and variant, seeds averaged.
#include "base/log.h"
#include "out/csv.h"
#include "figure/figure.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NBIN = 120, MAX_SEEDS = 64 };

// what is drawn, and the column of progress.csv that holds it
static const struct quantity {
  const char *name, *column;
} quantity[] = {
    {"reward", "reward"},         {"episode_s", "episode_s"},        {"survival", "eval_survival"},
    {"e_track_cm", "e_track_cm"}, {"failures", "failures_per_1000"},
};
enum { NQUANTITY = sizeof quantity / sizeof *quantity };

struct series {
  const struct run *run[MAX_SEEDS];
  int nseed;
};

// the rows of one run: quantities, and the clock
struct record {
  struct csv_table table;
  double *wall;
};

struct curve { // one seed, cut into bins of consecutive iterations; NaN: nothing in this bin
  double steps[NBIN], wall[NBIN], iteration[NBIN], y[NQUANTITY][NBIN];
};

// mean of the finite numbers of x[first..last)
static double mean_of(const double *x, int first, int last) {
  double sum = 0;
  int n = 0;
  for (int i = first; i < last; i++) {
    if (isfinite(x[i])) {
      sum += x[i];
      n++;
    }
  }
  return n ? sum / n : NAN;
}

// rows [bin_first(b), bin_first(b + 1)) make bin b of the nrow rows that all seeds have
static int bin_first(int b, int nbin, int nrow) {
  return (int)((long long)b * nrow / nbin);
}

// Runs that must repeat byte for byte keep their clock out of progress.csv (log.wall false): it is
// then in timing.csv, row for row.
static int read_record(struct record *t, struct arena *a, const struct run *r, struct err *e) {
  if (csv_read(&t->table, a, run_file(r, a, "progress.csv"), e) ||
      csv_reals(&t->wall, a, &t->table, "wall_s", e)) {
    return e->code;
  }
  int n = t->table.nrow;
  const char *timing = run_file(r, a, "timing.csv");
  if (n > 0 && !(t->wall[n - 1] > 0) && timing) {
    struct csv_table clock;
    double *wall;
    if (csv_read(&clock, a, timing, e) || csv_reals(&wall, a, &clock, "wall_s", e)) {
      return e->code;
    }
    t->wall = clock.nrow >= n ? wall : t->wall;
  }
  return 0;
}

static int read_curve(struct curve *c, struct arena *a, const struct record *record, int nbin,
                      int nrow, struct err *e) {
  const struct csv_table *t = &record->table;
  double *it, *steps;
  if (csv_reals(&it, a, t, "iteration", e) || csv_reals(&steps, a, t, "env_steps", e)) {
    return e->code;
  }
  for (int b = 0; b < nbin; b++) {
    int first = bin_first(b, nbin, nrow), last = bin_first(b + 1, nbin, nrow);
    c->iteration[b] = mean_of(it, first, last);
    c->steps[b] = mean_of(steps, first, last);
    c->wall[b] = mean_of(record->wall, first, last);
  }
  for (int q = 0; q < NQUANTITY; q++) {
    double *y = NULL;
    if (csv_find(t, quantity[q].column) >= 0 && csv_reals(&y, a, t, quantity[q].column, e)) {
      return e->code;
    }
    for (int b = 0; b < nbin; b++) {
      c->y[q][b] = y ? mean_of(y, bin_first(b, nbin, nrow), bin_first(b + 1, nbin, nrow)) : NAN;
    }
  }
  return 0;
}

// Writes the rows of one series: means over seeds with the lowest and highest seed.
static int write_series(struct csv *out, struct figure_context *c, const struct series *s,
                        int index, bool shown[NQUANTITY], struct err *e) {
  struct record t[MAX_SEEDS];
  int nrow = 0, longest = 0;
  for (int k = 0; k < s->nseed; k++) {
    if (read_record(&t[k], c->arena, s->run[k], e)) {
      return e->code;
    }
    int n = t[k].table.nrow;
    nrow = k == 0 || n < nrow ? n : nrow;
    longest = n > longest ? n : longest;
  }
  if (nrow < longest) {
    log_info("%s: seeds reach different iterations, drawn to the shortest (%d of %d rows)",
             s->run[0]->experiment, nrow, longest);
  }

  int nbin = nrow < NBIN ? nrow : NBIN;
  struct curve *curve = ARENA_NEW(c->arena, struct curve, s->nseed);
  for (int k = 0; k < s->nseed; k++) {
    if (read_curve(&curve[k], c->arena, &t[k], nbin, nrow, e)) {
      return e->code;
    }
  }
  for (int b = 0; b < nbin; b++) {
    double iteration = 0, steps = 0, wall = 0;
    for (int k = 0; k < s->nseed; k++) {
      iteration += curve[k].iteration[b] / s->nseed;
      steps += curve[k].steps[b] / s->nseed;
      wall += curve[k].wall[b] / s->nseed;
    }
    csv_int(out, index);
    csv_text(out, s->run[0]->experiment);
    csv_text(out, s->run[0]->variant);
    csv_int(out, s->nseed);
    csv_real(out, iteration);
    csv_real(out, steps);
    csv_real(out, wall);
    for (int q = 0; q < NQUANTITY; q++) {
      double sum = 0, lo = INFINITY, hi = -INFINITY;
      int n = 0;
      for (int k = 0; k < s->nseed; k++) {
        double y = curve[k].y[q][b];
        if (isfinite(y)) {
          sum += y;
          n++;
          lo = y < lo ? y : lo;
          hi = y > hi ? y : hi;
        }
      }
      if (n) {
        shown[q] = true;
        csv_real(out, sum / n);
        csv_real(out, lo);
        csv_real(out, hi);
      } else {
        csv_missing(out);
        csv_missing(out);
        csv_missing(out);
      }
    }
    if (csv_end(out, e)) {
      return e->code;
    }
  }
  return 0;
}

static void add_word(char *list, size_t size, const char *word) {
  size_t used = strlen(list);
  snprintf(list + used, size - used, "%s%s", used ? " " : "", word);
}

// "run" for the main variant, "run paper" for others; gnuplot's word() keeps quoted words together
static void add_label(char *list, size_t size, const struct run *r) {
  char label[256];
  bool main_variant = strcmp(r->variant, "main") == 0;
  snprintf(label, sizeof label, "\"%.120s%s%.120s\"", r->experiment, main_variant ? "" : " ",
           main_variant ? "" : r->variant);
  for (char *p = label + 1; p[0] && p[1]; p++) {
    *p = *p == '"' || *p == '\\' ? '_' : *p;
  }
  add_word(list, size, label);
}

// One picture: all series of a collection.
static int draw_collection(struct figure_context *c, const char *collection,
                           const struct series *series, int nseries, struct err *e) {
  char base[256], header[512], labels[8192] = "", shown_names[256] = "", count[16];
  snprintf(base, sizeof base, "curves%s%.200s", *collection ? "_" : "", collection);
  snprintf(header, sizeof header, "series,experiment,variant,seeds,iteration,env_steps,wall_s");
  for (int q = 0; q < NQUANTITY; q++) {
    size_t used = strlen(header);
    snprintf(header + used, sizeof header - used, ",%s,%s_lo,%s_hi", quantity[q].name,
             quantity[q].name, quantity[q].name);
  }
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  bool shown[NQUANTITY] = {0};
  remove(data); // a picture's numbers are made anew
  if (csv_open(&out, data, header, e)) {
    return e->code;
  }
  for (int i = 0; i < nseries && !e->code; i++) {
    add_label(labels, sizeof labels, series[i].run[0]);
    write_series(&out, c, &series[i], i, shown, e);
  }
  csv_close(&out);
  for (int q = 0; q < NQUANTITY; q++) {
    if (shown[q]) {
      add_word(shown_names, sizeof shown_names, quantity[q].name);
    }
  }
  if (e->code || !shown_names[0]) {
    return e->code;
  }
  snprintf(count, sizeof count, "%d", nseries);
  return figure_picture(c, "curves", base, data, e, "labels", labels, "nseries", count, "shown",
                        shown_names, "subtitle", collection, NULL);
}

int figure_curves(struct figure_context *c, char why[200], struct err *e) {
  // runs come sorted by path, so seeds of one series, and series of one collection, are neighbours
  struct series *series = ARENA_NEW(c->arena, struct series, c->nrun + 1);
  int n = 0;
  for (int i = 0; i < c->nrun; i++) {
    const struct run *r = &c->run[i];
    if (!run_file(r, c->arena, "progress.csv")) {
      continue;
    }
    if (n == 0 || !run_same_series(series[n - 1].run[0], r) || series[n - 1].nseed == MAX_SEEDS) {
      n++;
    }
    series[n - 1].run[series[n - 1].nseed++] = r;
  }
  if (n == 0) {
    snprintf(why, 200, "no run with a progress.csv");
  }
  for (int first = 0, last; first < n && !e->code; first = last) {
    const char *collection = series[first].run[0]->collection;
    for (last = first + 1; last < n; last++) {
      if (strcmp(series[last].run[0]->collection, collection) != 0) {
        break;
      }
    }
    draw_collection(c, collection, series + first, last - first, e);
  }
  return e->code;
}
