// From what a spec says ("walk", a clip, a sidecar) to a motion that has passed lint.
#include "motion/lint.h"
#include "motion/sidecar.h"
#include "base/file.h"
#include "base/log.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int motion_open(struct clip *c, const char **file, struct arena *a, const struct robot *r,
                const char *path, const struct clip_options *opt, struct err *e) {
  const char *found;
  if (find(&found, a, path, e) != 0) {
    return e->code;
  }
  if (is_folder(found)) {
    return err_set(e, EXIT_USAGE, "'%s' is a folder; one clip expected here", path);
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

// ---- several clips

struct paths {
  struct arena *arena;
  int n, room;
  const char **path;
};

static void add_path(struct paths *p, const char *path) {
  if (p->n == p->room) {
    p->room = p->room ? 2 * p->room : 16;
    const char **grown = ARENA_NEW(p->arena, const char *, p->room);
    if (p->n > 0) {
      memcpy(grown, p->path, sizeof *grown * (size_t)p->n);
    }
    p->path = grown;
  }
  p->path[p->n++] = path;
}

int motion_split(const char ***path, struct arena *a, const char *text) {
  struct paths p = {.arena = a};
  for (char *at = arena_strdup(a, text); at != NULL;) {
    char *one = at + strspn(at, " \t");
    at = strchr(one, ',');
    if (at != NULL) {
      *at++ = '\0';
    }
    size_t n = strlen(one);
    while (n > 0 && (one[n - 1] == ' ' || one[n - 1] == '\t')) {
      one[--n] = '\0';
    }
    add_path(&p, one);
  }
  *path = p.path;
  return p.n;
}

// the clips of a folder, by name; those in folders below are not looked for
static int add_folder(struct paths *p, const char *folder, struct err *e) {
  int first = p->n;
  DIR *d = opendir(folder);
  if (d == NULL) {
    return err_set(e, EXIT_USAGE, "cannot read the folder '%s': %s", folder, strerror(errno));
  }
  for (struct dirent *f; (f = readdir(d)) != NULL;) {
    if (f->d_name[0] != '.' && (ends_with(f->d_name, ".csv") || ends_with(f->d_name, ".csv.gz"))) {
      size_t n = strlen(folder) + strlen(f->d_name) + 2;
      char *path = arena_alloc(p->arena, n);
      snprintf(path, n, "%s/%s", folder, f->d_name);
      add_path(p, path);
    }
  }
  closedir(d);
  if (p->n == first) {
    return err_set(e, EXIT_USAGE, "no clips in the folder '%s' (.csv or .csv.gz)", folder);
  }
  qsort(p->path + first, (size_t)(p->n - first), sizeof *p->path, compare_names);
  return 0;
}

// every clip that text names, folders by what is in them; folder: text is one
static int list_clips(struct paths *p, bool *folder, const char *text, struct err *e) {
  const char **part;
  int n = motion_split(&part, p->arena, text);
  for (int i = 0; i < n && e->code == 0; i++) {
    const char *found = part[i][0] != '\0' ? file_find(p->arena, part[i]) : NULL;
    if (part[i][0] == '\0') {
      err_set(e, EXIT_USAGE, "motion: '%s' has nothing between two commas", text);
    } else if (found != NULL && is_folder(found)) {
      *folder = n == 1;
      add_folder(p, found, e);
    } else {
      add_path(p, part[i]);
    }
  }
  return e->code;
}

// results tell clips apart by their names
static int check_names(const struct paths *p, const char *const *name, struct err *e) {
  for (int i = 0; i < p->n; i++) {
    for (int k = 0; k < i; k++) {
      if (strcmp(name[i], name[k]) == 0) {
        return err_set(e, EXIT_USAGE, "two clips have the name '%s': '%s' and '%s'", name[i],
                       p->path[k], p->path[i]);
      }
    }
  }
  return 0;
}

// reads a clip and lets lint judge it; hex: of its file
static int load_clip(struct clip *c, char hex[65], struct arena *a, const struct robot *r,
                     const char *path, struct err *e) {
  const char *file;
  if (motion_open(c, &file, a, r, path, NULL, e) != 0) {
    return e->code;
  }
  struct lint lint;
  lint_clip(&lint, r, c);
  if (lint_refuse(&lint, file, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < lint.n; i++) {
    log_warn("%s: %s", file, lint.finding[i].text);
  }
  return file_sha256(file, hex, e);
}

// what a motion of several clips goes by: the folder's name, or the clips'; and the digest of
// theirs
static void name_all(struct motion *m, struct arena *a, struct arena *scratch, const char *folder) {
  size_t n = 1;
  for (int i = 0; i < m->nclip; i++) {
    n += strlen(m->clip[i].name) + 80;
  }
  char *names = arena_alloc(scratch, n), *text = arena_alloc(scratch, n), *at = names, *to = text;
  for (int i = 0; i < m->nclip; i++) {
    at += sprintf(at, "%s%s", i > 0 ? "," : "", m->clip[i].name);
    to += sprintf(to, "%s %s\n", m->clip[i].sha256, m->clip[i].name);
  }
  m->name = folder != NULL ? clip_name(a, folder) : arena_strdup(a, names);
  sha256_hex(text, (size_t)(to - text), m->sha256);
}

static int load_all(struct motion *m, struct arena *a, struct arena *scratch, const struct robot *r,
                    const char *text, double dt, struct err *e) {
  struct paths p = {.arena = scratch};
  bool folder = false;
  if (list_clips(&p, &folder, text, e) != 0) {
    return e->code;
  }
  struct clip *clip = ARENA_NEW(scratch, struct clip, p.n);
  const char **name = ARENA_NEW(scratch, const char *, p.n);
  char(*hex)[65] = arena_alloc(scratch, sizeof *hex * (size_t)p.n);
  for (int i = 0; i < p.n; i++) {
    name[i] = clip_name(scratch, p.path[i]);
  }
  if (check_names(&p, name, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < p.n; i++) {
    if (load_clip(&clip[i], hex[i], scratch, r, p.path[i], e) != 0) {
      return e->code;
    }
  }
  if (motion_build_clips(m, a, r, clip, name, p.n, dt, e) != 0) {
    return e->code;
  }
  for (int i = 0; i < p.n; i++) {
    memcpy(m->clip[i].sha256, hex[i], sizeof hex[i]);
  }
  if (p.n == 1) {
    memcpy(m->sha256, hex[0], sizeof hex[0]);
  } else {
    size_t length = strlen(text); // a folder's name without the slash behind it
    while (length > 1 && text[length - 1] == '/') {
      length--;
    }
    char *trimmed = arena_alloc(scratch, length + 1);
    memcpy(trimmed, text, length);
    name_all(m, a, scratch, folder ? trimmed : NULL);
  }
  return 0;
}

int motion_load(struct motion *m, struct arena *a, const struct robot *r, const char *path,
                double dt, struct err *e) {
  // files as text are many times their frames: they go when those are made
  struct arena scratch;
  arena_init(&scratch);
  load_all(m, a, &scratch, r, path, dt, e);
  arena_release(&scratch);
  return e->code;
}
