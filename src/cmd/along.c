#include "cmd/along.h"
#include "out/csv.h"
#include "out/json.h"
#include "out/table.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

// the numbers of a row, under the names of the columns
enum { NNUMBER = 7 };
static const char *const number_name[NNUMBER] = {
    "time_s",         "e_track_cm",           "e_track_cm_std",   "e_track_local_cm",
    "penetration_mm", "penetration_train_mm", "torque_saturation"};

static void numbers_of(double x[NNUMBER], const struct episodes_summary *s) {
  const double all[NNUMBER] = {s->time,  s->track,       s->track_std, s->local,
                               s->depth, s->depth_train, s->saturation};
  memcpy(x, all, sizeof all);
}

int along_write(const struct along *l, const char *path, struct err *e) {
  static const char header[] =
      "iteration,env_steps,episodes,falls,time_s,e_track_cm,e_track_cm_std,e_track_local_cm,"
      "penetration_mm,penetration_train_mm,torque_saturation,simulator,checkpoint";
  struct csv c;
  if (unlink(path) != 0 && errno != ENOENT) {
    return err_set(e, EXIT_IO, "%s: %s", path, strerror(errno));
  }
  if (csv_open(&c, path, header, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < l->n && !e->code; i++) {
    const struct along_row *r = &l->row[i];
    double x[NNUMBER];
    numbers_of(x, &r->s);
    csv_int(&c, r->iteration);
    csv_int(&c, r->env_steps);
    csv_int(&c, r->s.n);
    csv_int(&c, r->s.falls);
    for (int k = 0; k < NNUMBER; k++) {
      csv_real_or_missing(&c, x[k]);
    }
    csv_text(&c, l->simulator);
    csv_text(&c, r->checkpoint);
    csv_end(&c, e);
  }
  csv_close(&c);
  return e->code;
}

void along_print(const struct along *l, struct arena *a) {
  struct table t;
  table_init(&t, a);
  table_column(&t, "iteration", "", 0);
  table_column(&t, "steps", "", 0);
  table_column(&t, "fell", "", 0);
  table_column(&t, "time", "s", 2);
  table_column(&t, "E_track", "cm", 1);
  table_column(&t, "local", "cm", 1);
  table_column(&t, "penetration", "mm", 2);
  table_column(&t, "in training", "mm", 2);
  table_column(&t, "saturated", "%", 1);
  table_column(&t, "checkpoint", "", 0);
  for (int i = 0; i < l->n; i++) {
    const struct along_row *r = &l->row[i];
    char falls[32];
    snprintf(falls, sizeof falls, "%d/%d", r->s.falls, r->s.n);
    table_int(&t, r->iteration);
    table_int(&t, r->env_steps);
    table_text(&t, falls);
    table_real(&t, r->s.time);
    table_mean_std(&t, r->s.track, r->s.track_std);
    table_real(&t, r->s.local);
    table_real(&t, r->s.depth);
    table_real(&t, r->s.depth_train);
    table_real(&t, 1e2 * r->s.saturation);
    table_text(&t, r->checkpoint);
  }
  printf("along training, in %s\n", l->simulator);
  table_print(&t, stdout);
}

int along_json(const struct along *l, struct err *e) {
  cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "checkpoints");
  for (int i = 0; i < l->n; i++) {
    const struct along_row *r = &l->row[i];
    cJSON *o = cJSON_CreateObject();
    double x[NNUMBER];
    numbers_of(x, &r->s);
    cJSON_AddNumberToObject(o, "iteration", (double)r->iteration);
    cJSON_AddNumberToObject(o, "env_steps", (double)r->env_steps);
    cJSON_AddNumberToObject(o, "episodes", r->s.n);
    cJSON_AddNumberToObject(o, "falls", r->s.falls);
    for (int k = 0; k < NNUMBER; k++) {
      json_add_real(o, number_name[k], x[k]);
    }
    cJSON_AddStringToObject(o, "checkpoint", r->checkpoint);
    cJSON_AddItemToArray(list, o);
  }
  cJSON_AddStringToObject(root, "simulator", l->simulator);
  json_print(root, e);
  cJSON_Delete(root);
  return e->code;
}
