// From what a spec says ("walk", a clip, a sidecar) to a motion that has passed lint.
#include "motion/lint.h"
#include "motion/sidecar.h"
#include "base/file.h"
#include "base/log.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *s, const char *ending) {
  size_t n = strlen(s), k = strlen(ending);
  return n >= k && strcmp(s + n - k, ending) == 0;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Names of the clips in dsim's own motions folder, sorted; returns how many.
static int shipped(const char **name, int room, struct arena *a) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/motions", dsim_home());
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *f; d != NULL && n < room && (f = readdir(d)) != NULL;) {
    if (ends_with(f->d_name, ".csv") || ends_with(f->d_name, ".csv.gz")) {
      name[n++] = clip_name(a, f->d_name);
    }
  }
  if (d != NULL) {
    closedir(d);
  }
  qsort(name, (size_t)n, sizeof *name, compare_names);
  return n;
}

static int not_found(struct arena *a, const char *path, struct err *e) {
  const char *name[64];
  int n = shipped(name, 64, a);
  char list[300] = "none";
  for (int i = 0, used = 0; i < n && used < 280; i++) {
    used += snprintf(list + used, sizeof list - (size_t)used, "%s%.40s", i ? ", " : "", name[i]);
  }
  const char *near = err_nearest(clip_name(a, path), name, n);
  return err_set(e, EXIT_USAGE, "no motion '%s'%s%s%s (shipped: %s)", path,
                 near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

// The clip that a sidecar belongs to.
static int clip_of(const char **file, const struct sidecar *s, struct arena *a, const char *path,
                   struct err *e) {
  if (s->file != NULL) {
    *file = s->file;
    return file_exists(s->file)
               ? 0
               : err_set(e, EXIT_USAGE, "%s: no file '%s' (key 'file')", path, s->file);
  }
  static const char *const ending[] = {".csv.gz", ".csv"};
  size_t stem = strlen(path) - strlen(".yaml");
  for (int i = 0; i < 2; i++) {
    char *clip = arena_alloc(a, stem + strlen(ending[i]) + 1);
    memcpy(clip, path, stem);
    strcpy(clip + stem, ending[i]);
    if (file_exists(clip)) {
      *file = clip;
      return 0;
    }
  }
  return err_set(e, EXIT_USAGE,
                 "%s: no clip beside it: %.*s.csv.gz, %.*s.csv, or one named by 'file:'", path,
                 (int)stem, path, (int)stem, path);
}

// Finds path or name; *file is a clip or a sidecar.
static int find(const char **file, struct arena *a, const char *path, struct err *e) {
  if ((*file = file_find(a, path)) != NULL) {
    return 0;
  }
  static const char *const ending[] = {".csv.gz", ".csv", ".yaml"};
  for (int i = 0; i < 3 && strchr(path, '/') == NULL; i++) {
    char name[512];
    int n = snprintf(name, sizeof name, "motions/%s%s", path, ending[i]);
    if (n < (int)sizeof name && (*file = file_find(a, name)) != NULL) {
      return 0;
    }
  }
  return not_found(a, path, e);
}

int motion_open(struct clip *c, const char **file, struct arena *a, const struct robot *r,
                const char *path, const struct clip_options *opt, struct err *e) {
  const char *found;
  if (find(&found, a, path, e) != 0) {
    return e->code;
  }
  if (!ends_with(found, ".yaml")) {
    *file = found;
    return clip_read(c, a, r, found, opt, e);
  }
  struct sidecar s;
  if (sidecar_read(&s, a, found, e) != 0 || clip_of(file, &s, a, found, e) != 0) {
    return e->code;
  }
  return clip_read_with(c, a, r, *file, &s, opt, e);
}

int motion_load(struct motion *m, struct arena *a, const struct robot *r, const char *path,
                double dt, struct err *e) {
  struct clip c;
  const char *file;
  if (motion_open(&c, &file, a, r, path, NULL, e) != 0) {
    return e->code;
  }
  struct lint lint;
  lint_clip(&lint, r, &c);
  if (lint_refuse(&lint, file, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < lint.n; i++) {
    log_warn("%s: %s", file, lint.finding[i].text);
  }
  if (motion_build(m, a, r, &c, clip_name(a, path), dt, e) != 0) {
    return e->code;
  }
  return file_sha256(file, m->sha256, e);
}
