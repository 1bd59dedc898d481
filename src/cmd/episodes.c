#include "cmd/episodes.h"
#include "out/csv.h"
#include "out/json.h"
#include "out/table.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

// mean and standard deviation over the episodes (n - 1), missing ones left out
static double mean_of(const double *x, int n, double *std) {
  double sum = 0, square = 0;
  int count = 0;
  for (int i = 0; i < n; i++) {
    sum += isnan(x[i]) ? 0 : x[i];
    count += !isnan(x[i]);
  }
  double mean = count ? sum / count : NAN;
  for (int i = 0; i < n; i++) {
    square += isnan(x[i]) ? 0 : (x[i] - mean) * (x[i] - mean);
  }
  *std = count > 1 ? sqrt(square / (count - 1)) : NAN;
  return mean;
}

struct summary {
  int falls;
  double track, track_std, local, local_std, depth, depth_std, saturation;
};

static struct summary summarise(const struct episodes *es) {
  struct summary s = {0};
  struct arena a;
  arena_init(&a);
  double *x = ARENA_NEW(&a, double, 3 * es->n), unused;
  for (int i = 0; i < es->n; i++) {
    const struct episode *ep = &es->episode[i];
    s.falls += ep->fell;
    x[i] = ep->e_track_cm;
    x[es->n + i] = ep->e_track_local_cm;
    x[2 * es->n + i] = ep->penetration_mm;
  }
  s.track = mean_of(x, es->n, &s.track_std);
  s.local = mean_of(x + es->n, es->n, &s.local_std);
  s.depth = mean_of(x + 2 * es->n, es->n, &s.depth_std);
  s.saturation = es->saturation ? mean_of(es->saturation, es->n, &unused) : NAN;
  arena_release(&a);
  return s;
}

static void real_or_missing(struct csv *c, double x) {
  if (isnan(x)) {
    csv_missing(c);
  } else {
    csv_real(c, x);
  }
}

int episodes_write(const struct episodes *es, const char *path, double dt, struct err *e) {
  static const char header[] = "seed,fell,time_s,e_track_cm,e_track_local_cm,penetration_mm,"
                               "simulator,start_s,steps,torque_saturation";
  struct csv c;
  if (unlink(path) != 0 && errno != ENOENT) {
    return err_set(e, EXIT_IO, "%s: %s", path, strerror(errno));
  }
  if (csv_open(&c, path, header, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < es->n && !e->code; i++) {
    const struct episode *ep = &es->episode[i];
    csv_int(&c, ep->seed);
    csv_int(&c, ep->fell);
    csv_real(&c, ep->time_s);
    real_or_missing(&c, ep->e_track_cm);
    real_or_missing(&c, ep->e_track_local_cm);
    real_or_missing(&c, ep->penetration_mm);
    csv_text(&c, es->simulator);
    csv_real(&c, ep->start * dt);
    csv_int(&c, ep->nsteps);
    real_or_missing(&c, es->saturation ? es->saturation[i] : NAN);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code;
}

void episodes_print(const struct episodes *es, struct arena *a) {
  struct table t;
  table_init(&t, a);
  table_column(&t, "seed", "", 0);
  table_column(&t, "end", "", 0);
  table_column(&t, "time", "s", 2);
  table_column(&t, "E_track", "cm", 1);
  table_column(&t, "local", "cm", 1);
  table_column(&t, "penetration", "mm", 2);
  if (es->saturation) {
    table_column(&t, "saturated", "%", 1);
  }
  for (int i = 0; i < es->n; i++) {
    const struct episode *ep = &es->episode[i];
    table_int(&t, ep->seed);
    table_text(&t, ep->fell ? "fell" : "clip end");
    table_real(&t, ep->time_s);
    table_real(&t, ep->e_track_cm);
    table_real(&t, ep->e_track_local_cm);
    table_real(&t, ep->penetration_mm);
    if (es->saturation) {
      table_real(&t, 1e2 * es->saturation[i]);
    }
  }
  struct summary s = summarise(es);
  char falls[32];
  snprintf(falls, sizeof falls, "%d/%d fell", s.falls, es->n);
  table_rule(&t);
  table_text(&t, "mean");
  table_text(&t, falls);
  table_real(&t, NAN);
  table_mean_std(&t, s.track, s.track_std);
  table_mean_std(&t, s.local, s.local_std);
  table_mean_std(&t, s.depth, s.depth_std);
  if (es->saturation) {
    table_real(&t, 1e2 * s.saturation);
  }
  printf("%s in %s\n", es->motion, es->simulator);
  table_print(&t, stdout);
}

int episodes_json(const struct episodes *es, double dt, struct err *e) {
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "episodes");
  for (int i = 0; i < es->n; i++) {
    const struct episode *ep = &es->episode[i];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "seed", ep->seed);
    cJSON_AddBoolToObject(o, "fell", ep->fell);
    json_add_real(o, "time_s", ep->time_s);
    json_add_real(o, "e_track_cm", ep->e_track_cm);
    json_add_real(o, "e_track_local_cm", ep->e_track_local_cm);
    json_add_real(o, "penetration_mm", ep->penetration_mm);
    json_add_real(o, "start_s", ep->start * dt);
    if (es->saturation) {
      json_add_real(o, "torque_saturation", es->saturation[i]);
    }
    cJSON_AddItemToArray(list, o);
  }
  struct summary s = summarise(es);
  cJSON_AddNumberToObject(root, "falls", s.falls);
  json_add_real(root, "e_track_cm_mean", s.track);
  json_add_real(root, "e_track_cm_std", s.track_std);
  json_add_real(root, "e_track_local_cm_mean", s.local);
  json_add_real(root, "penetration_mm_mean", s.depth);
  cJSON_AddStringToObject(root, "simulator", es->simulator);
  cJSON_AddStringToObject(root, "motion", es->motion);
  json_print(root, e);
  cJSON_Delete(root);
  return e->code;
}
