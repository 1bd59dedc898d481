// A policy along training in MuJoCo: falls and tracking error of every checkpoint, from
// transfer_checkpoints.csv of every run (dsim transfer RUN --checkpoints all).
#include "figure/figure.h"
#include "out/csv.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char input[] = "transfer_checkpoints.csv";

static int write_run(struct csv *out, struct figure_context *c, const struct run *r, int series,
                     int *nrow, struct err *e) {
  struct csv_table t;
  double *iteration, *steps, *episodes, *falls, *track, *std;
  if (csv_read(&t, c->arena, run_file(r, c->arena, input), e) ||
      csv_reals(&iteration, c->arena, &t, "iteration", e) ||
      csv_reals(&steps, c->arena, &t, "env_steps", e) ||
      csv_reals(&episodes, c->arena, &t, "episodes", e) ||
      csv_reals(&falls, c->arena, &t, "falls", e) ||
      csv_reals(&track, c->arena, &t, "e_track_cm", e) ||
      csv_reals(&std, c->arena, &t, "e_track_cm_std", e)) {
    return e->code;
  }
  int name = csv_find(&t, "checkpoint");
  for (int i = 0; i < t.nrow && !e->code; i++) {
    // the best policy is one of the checkpoints again, or lies between two
    if (name >= 0 && strcmp(csv_cell(&t, i, name), "policy.dsim") == 0) {
      continue;
    }
    csv_int(out, series);
    csv_text(out, r->experiment);
    csv_text(out, r->variant);
    csv_int(out, r->seed);
    csv_real(out, iteration[i]);
    csv_real(out, steps[i]);
    csv_real(out, 100 * falls[i] / episodes[i]);
    if (isnan(track[i])) {
      csv_missing(out);
      csv_missing(out);
      csv_missing(out);
    } else {
      double d = isnan(std[i]) ? 0 : std[i];
      csv_real(out, track[i]);
      csv_real(out, track[i] - d);
      csv_real(out, track[i] + d);
    }
    csv_end(out, e);
    (*nrow)++;
  }
  return e->code;
}

// One picture: all runs of a collection.
static int draw_collection(struct figure_context *c, const struct run *const *run, int n,
                           struct err *e) {
  char base[256], labels[8192] = "", count[16];
  const char *collection = run[0]->collection;
  snprintf(base, sizeof base, "checkpoints%s%.200s", *collection ? "_" : "", collection);
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  int nrow = 0;
  remove(data);
  if (csv_open(&out, data,
               "series,experiment,variant,seed,iteration,env_steps,fell_percent,e_track_cm,"
               "e_track_cm_lo,e_track_cm_hi",
               e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    size_t used = strlen(labels);
    snprintf(labels + used, sizeof labels - used, "%s\"%.80s %.80s seed %d\"", i ? " " : "",
             run[i]->experiment, run[i]->variant, run[i]->seed);
    for (char *p = labels + used + (i ? 2 : 1); p[0] && p[1]; p++) {
      *p = *p == '"' || *p == '\\' ? '_' : *p;
    }
    write_run(&out, c, run[i], i, &nrow, e);
  }
  csv_close(&out);
  if (e->code || nrow == 0) {
    return e->code;
  }
  snprintf(count, sizeof count, "%d", n);
  return figure_picture(c, "checkpoints", base, data, e, "labels", labels, "nseries", count,
                        "subtitle", collection, NULL);
}

int figure_checkpoints(struct figure_context *c, char why[200], struct err *e) {
  const struct run **run = ARENA_NEW(c->arena, const struct run *, c->nrun + 1);
  int n = 0;
  for (int i = 0; i < c->nrun; i++) {
    if (run_file(&c->run[i], c->arena, input)) {
      run[n++] = &c->run[i];
    }
  }
  if (n == 0) {
    snprintf(why, 200, "no run with a %s (dsim transfer RUN --checkpoints all)", input);
  }
  for (int first = 0, last; first < n && !e->code; first = last) {
    for (last = first + 1; last < n; last++) {
      if (strcmp(run[last]->collection, run[first]->collection) != 0) {
        break;
      }
    }
    draw_collection(c, run + first, last - first, e);
  }
  return e->code;
}
