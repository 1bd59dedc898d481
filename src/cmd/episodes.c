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

struct episodes_summary episodes_summarise(const struct episodes *es, int clip) {
  struct episodes_summary s = {0};
  struct arena a;
  arena_init(&a);
  size_t n = (size_t)es->n;
  double *x = ARENA_NEW(&a, double, 6 * n), unused;
  for (int i = 0; i < es->n; i++) {
    const struct episode *ep = &es->episode[i];
    if (clip != ALL_CLIPS && motion_clip_of(es->motion, ep->start) != clip) {
      continue;
    }
    s.falls += ep->fell;
    double *to = x + s.n++;
    to[0] = ep->e_track_cm;
    to[n] = ep->e_track_local_cm;
    to[2 * n] = ep->penetration_mm;
    to[3 * n] = ep->time_s;
    to[4 * n] = es->saturation ? es->saturation[i] : NAN;
    to[5 * n] = es->penetration_train ? es->penetration_train[i] : NAN;
  }
  s.track = mean_of(x, s.n, &s.track_std);
  s.local = mean_of(x + n, s.n, &s.local_std);
  s.depth = mean_of(x + 2 * n, s.n, &s.depth_std);
  s.time = mean_of(x + 3 * n, s.n, &unused);
  s.saturation = mean_of(x + 4 * n, s.n, &unused);
  s.depth_train = mean_of(x + 5 * n, s.n, &unused);
  arena_release(&a);
  return s;
}

// name of the clip that an episode is of
static const char *clip_of(const struct episodes *es, const struct episode *ep) {
  return es->motion->clip[motion_clip_of(es->motion, ep->start)].name;
}

static double start_s(const struct episodes *es, const struct episode *ep) {
  int first = es->motion->clip[motion_clip_of(es->motion, ep->start)].first;
  return (ep->start - first) * es->motion->dt;
}

static int replace(struct csv *c, const char *path, const char *header, struct err *e) {
  if (unlink(path) != 0 && errno != ENOENT) {
    return err_set(e, EXIT_IO, "%s: %s", path, strerror(errno));
  }
  return csv_open(c, path, header, e);
}

// a row for each clip, and one for all of them
static int write_clips(const struct episodes *es, const char *path, struct err *e) {
  static const char header[] = "clip,episodes,falls,time_s,e_track_cm,e_track_cm_std,"
                               "e_track_local_cm,penetration_mm,torque_saturation,simulator";
  struct csv c;
  char beside[4096];
  size_t n = strlen(path);
  n = n > 4 && strcmp(path + n - 4, ".csv") == 0 ? n - 4 : n;
  snprintf(beside, sizeof beside, "%.*s_clips.csv", (int)n, path);
  if (replace(&c, beside, header, e) != 0) {
    return e->code;
  }
  for (int i = 0; i <= es->motion->nclip && !e->code; i++) {
    bool all = i == es->motion->nclip;
    struct episodes_summary s = episodes_summarise(es, all ? ALL_CLIPS : i);
    csv_text(&c, all ? "all" : es->motion->clip[i].name);
    csv_int(&c, s.n);
    csv_int(&c, s.falls);
    csv_real_or_missing(&c, s.time);
    csv_real_or_missing(&c, s.track);
    csv_real_or_missing(&c, s.track_std);
    csv_real_or_missing(&c, s.local);
    csv_real_or_missing(&c, s.depth);
    csv_real_or_missing(&c, s.saturation);
    csv_text(&c, es->simulator);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code;
}

int episodes_write(const struct episodes *es, const char *path, struct err *e) {
  static const char header[] =
      "seed,fell,time_s,e_track_cm,e_track_local_cm,penetration_mm,"
      "simulator,start_s,steps,torque_saturation,clip,penetration_train_mm";
  struct csv c;
  if (replace(&c, path, header, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < es->n && !e->code; i++) {
    const struct episode *ep = &es->episode[i];
    csv_int(&c, ep->seed);
    csv_int(&c, ep->fell);
    csv_real(&c, ep->time_s);
    csv_real_or_missing(&c, ep->e_track_cm);
    csv_real_or_missing(&c, ep->e_track_local_cm);
    csv_real_or_missing(&c, ep->penetration_mm);
    csv_text(&c, es->simulator);
    csv_real(&c, start_s(es, ep));
    csv_int(&c, ep->nsteps);
    csv_real_or_missing(&c, es->saturation ? es->saturation[i] : NAN);
    csv_text(&c, clip_of(es, ep));
    csv_real_or_missing(&c, es->penetration_train ? es->penetration_train[i] : NAN);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code == 0 && es->motion->nclip > 1 ? write_clips(es, path, e) : e->code;
}

// means below the episodes: of one clip, or of all
static void print_summary(struct table *t, const struct episodes *es, int clip) {
  struct episodes_summary s = episodes_summarise(es, clip);
  char falls[32];
  snprintf(falls, sizeof falls, "%d/%d fell", s.falls, s.n);
  if (es->motion->nclip > 1) {
    table_text(t, clip == ALL_CLIPS ? "all" : es->motion->clip[clip].name);
  }
  table_text(t, "mean");
  table_text(t, falls);
  table_real(t, NAN);
  table_mean_std(t, s.track, s.track_std);
  table_mean_std(t, s.local, s.local_std);
  table_mean_std(t, s.depth, s.depth_std);
  if (es->penetration_train) {
    table_real(t, s.depth_train);
  }
  if (es->saturation) {
    table_real(t, 1e2 * s.saturation);
  }
}

void episodes_print(const struct episodes *es, struct arena *a) {
  struct table t;
  table_init(&t, a);
  int nclip = es->motion->nclip;
  if (nclip > 1) {
    table_column(&t, "clip", "", 0);
  }
  table_column(&t, "seed", "", 0);
  table_column(&t, "end", "", 0);
  table_column(&t, "time", "s", 2);
  table_column(&t, "E_track", "cm", 1);
  table_column(&t, "local", "cm", 1);
  table_column(&t, "penetration", "mm", 2);
  if (es->penetration_train) {
    table_column(&t, "in training", "mm", 2);
  }
  if (es->saturation) {
    table_column(&t, "saturated", "%", 1);
  }
  for (int i = 0; i < es->n; i++) {
    const struct episode *ep = &es->episode[i];
    if (nclip > 1) {
      table_text(&t, clip_of(es, ep));
    }
    table_int(&t, ep->seed);
    table_text(&t, ep->fell ? "fell" : "clip end");
    table_real(&t, ep->time_s);
    table_real(&t, ep->e_track_cm);
    table_real(&t, ep->e_track_local_cm);
    table_real(&t, ep->penetration_mm);
    if (es->penetration_train) {
      table_real(&t, es->penetration_train[i]);
    }
    if (es->saturation) {
      table_real(&t, 1e2 * es->saturation[i]);
    }
  }
  table_rule(&t);
  for (int i = 0; i < nclip && nclip > 1; i++) {
    print_summary(&t, es, i);
  }
  print_summary(&t, es, ALL_CLIPS);
  printf("%s in %s\n", es->motion->name, es->simulator);
  table_print(&t, stdout);
}

static void json_summary(cJSON *o, const struct episodes *es, int clip) {
  struct episodes_summary s = episodes_summarise(es, clip);
  cJSON_AddNumberToObject(o, "falls", s.falls);
  json_add_real(o, "e_track_cm_mean", s.track);
  json_add_real(o, "e_track_cm_std", s.track_std);
  json_add_real(o, "e_track_local_cm_mean", s.local);
  json_add_real(o, "penetration_mm_mean", s.depth);
  if (es->penetration_train) {
    json_add_real(o, "penetration_train_mm_mean", s.depth_train);
  }
  if (es->saturation) {
    json_add_real(o, "torque_saturation_mean", s.saturation);
  }
}

int episodes_json(const struct episodes *es, struct err *e) {
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
    if (es->penetration_train) {
      json_add_real(o, "penetration_train_mm", es->penetration_train[i]);
    }
    json_add_real(o, "start_s", start_s(es, ep));
    if (es->saturation) {
      json_add_real(o, "torque_saturation", es->saturation[i]);
    }
    cJSON_AddStringToObject(o, "clip", clip_of(es, ep));
    cJSON_AddItemToArray(list, o);
  }
  json_summary(root, es, ALL_CLIPS);
  cJSON_AddStringToObject(root, "simulator", es->simulator);
  cJSON_AddStringToObject(root, "motion", es->motion->name);
  cJSON *clips = cJSON_AddArrayToObject(root, "clips");
  for (int i = 0; i < es->motion->nclip; i++) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "clip", es->motion->clip[i].name);
    json_summary(o, es, i);
    cJSON_AddItemToArray(clips, o);
  }
  json_print(root, e);
  cJSON_Delete(root);
  return e->code;
}
