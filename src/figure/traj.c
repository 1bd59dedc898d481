#include "figure/traj.h"
#include "base/file.h"
#include <stdio.h>
#include <string.h>

enum { NAME = 160 };

// name of number k of a link's qpos
static void qpos_name(char name[NAME], const char *prefix, const struct robot_link *l, int k) {
  static const char *const free_part[7] = {"_x", "_y", "_z", "_qw", "_qx", "_qy", "_qz"};
  const char *part = l->type == JOINT_FREE   ? free_part[k]
                     : l->type == JOINT_BALL ? free_part[3 + k]
                                             : "";
  snprintf(name, NAME, "%s%s%s", prefix, l->joint_name, part);
}

static void append(char *header, size_t size, const char *name) {
  size_t used = strlen(header);
  int n = snprintf(header + used, size - used, ",%s", name);
  BUG_IF(n < 0 || (size_t)n >= size - used);
}

int traj_open(struct csv *c, const char *path, const struct robot *r, struct err *e) {
  struct arena a;
  arena_init(&a);
  char name[NAME];
  size_t size = (size_t)(2 * r->nq + 3 * r->nbody + 1) * NAME + 64;
  char *header = arena_alloc(&a, size);
  strcpy(header, "time_s,frame,failed,e_track_cm");
  for (int side = 0; side < 2; side++) {
    for (int l = 0; l < r->nlink; l++) {
      for (int k = 0; k < r->link[l].nq; k++) {
        qpos_name(name, side ? "ref_" : "", &r->link[l], k);
        append(header, size, name);
      }
    }
  }
  for (int b = 1; b < r->nbody; b++) {
    for (int k = 0; k < 3; k++) {
      snprintf(name, NAME, "%s_%c", r->body[b].name, "xyz"[k]);
      append(header, size, name);
    }
  }
  remove(path); // rendering again replaces the file
  int rc = csv_open(c, path, header, e);
  arena_release(&a);
  return rc;
}

int traj_row(struct csv *c, const struct robot *r, double time_s, int frame, bool failed,
             double e_track_cm, const double *qpos, const double *ref, double *tmp, struct err *e) {
  csv_real(c, time_s);
  csv_int(c, frame);
  csv_int(c, failed);
  csv_real(c, e_track_cm);
  for (int side = 0; side < 2; side++) {
    for (int l = 0; l < r->nlink; l++) {
      for (int k = 0; k < r->link[l].nq; k++) {
        csv_real(c, (side ? ref : qpos)[r->link[l].qadr + k]);
      }
    }
  }
  robot_fk(r, qpos, tmp, NULL);
  for (int i = 3; i < 3 * r->nbody; i++) {
    csv_real(c, tmp[i]);
  }
  return csv_end(c, e);
}

int traj_read(struct traj *t, struct arena *a, const char *path, const struct robot *r,
              struct err *e) {
  struct csv_table table;
  if (csv_read(&table, a, path, e) || csv_reals(&t->time, a, &table, "time_s", e) ||
      csv_reals(&t->failed, a, &table, "failed", e) ||
      csv_reals(&t->e_track_cm, a, &table, "e_track_cm", e)) {
    return e->code;
  }
  t->nframe = table.nrow;
  t->qpos = ARENA_NEW(a, double, (size_t)t->nframe *(size_t)r->nq);
  t->ref = ARENA_NEW(a, double, (size_t)t->nframe *(size_t)r->nq);
  for (int side = 0; side < 2; side++) {
    for (int l = 0; l < r->nlink; l++) {
      for (int k = 0; k < r->link[l].nq; k++) {
        char name[NAME];
        double *x;
        qpos_name(name, side ? "ref_" : "", &r->link[l], k);
        if (csv_reals(&x, a, &table, name, e)) {
          return e->code;
        }
        for (int i = 0; i < t->nframe; i++) {
          (side ? t->ref : t->qpos)[(size_t)i * (size_t)r->nq + (size_t)(r->link[l].qadr + k)] =
              x[i];
        }
      }
    }
  }
  return t->nframe > 0 ? 0 : err_set(e, EXIT_USAGE, "%s: no rows", path);
}
