#include "motion/import.h"
#include "motion/lint.h"
#include "motion/sidecar.h"
#include "base/file.h"
#include "base/log.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 29 };

static const char *format(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *format(struct arena *a, const char *fmt, ...) {
  char text[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return arena_strdup(a, text);
}

// sha256 of a text file with every CRLF made LF: copies of a data set differ in nothing else
static int text_sha256(char hex[65], struct arena *a, const char *file, struct err *e) {
  char *text;
  size_t size, n = 0;
  if (file_read(a, file, MAX_BYTES, &text, &size, e) != 0) {
    return e->code;
  }
  for (size_t i = 0; i < size; i++) {
    if (!(text[i] == '\r' && text[i + 1] == '\n')) {
      text[n++] = text[i];
    }
  }
  sha256_hex(text, n, hex);
  return 0;
}

// Lints and writes; credit says where it comes from.
static int write_checked(struct arena *a, const struct robot *r, struct clip *c, const char *file,
                         const char *out, const char *credit, bool force, struct err *e) {
  struct lint lint;
  lint_clip(&lint, r, c);
  for (int i = 0; i < lint.n; i++) {
    if (lint.finding[i].severity == LINT_WARNING || force) {
      log_warn("%s: %s", file, lint.finding[i].text);
    }
  }
  if (!force && lint_refuse(&lint, file, e) != 0) {
    return e->code;
  }
  clip_clean(c, r);
  const char *slash = strrchr(out, '/');
  if (slash != NULL && slash != out) {
    if (dir_make(format(a, "%.*s", (int)(slash - out), out), e) != 0) {
      return e->code;
    }
  }
  if (clip_write(c, r, out, credit, e) != 0) {
    return e->code;
  }
  log_info("%s: %d frames at %g per second, %.4g s", out, c->nframe, c->fps,
           (c->nframe - 1) / c->fps);
  return 0;
}

int import_clip(struct arena *a, const struct robot *r, const char *file, const char *out,
                const struct clip_options *opt, bool force, struct err *e) {
  struct clip c;
  const char *found;
  char hex[65];
  if (motion_open(&c, &found, a, r, file, opt, e) != 0 || text_sha256(hex, a, found, e) != 0) {
    return e->code;
  }
  if (file_exists(out) && !force) {
    return err_set(e, EXIT_USAGE, "'%s' exists: --force replaces it", out);
  }
  const char *credit = format(a, "%s%sframes %d..%d of %s.csv (sha256 of the text: %s)", c.credit,
                              c.credit[0] ? "; " : "", c.row_first, c.row_first + c.nframe - 1,
                              clip_name(a, found), hex);
  return write_checked(a, r, &c, found, out, credit, force, e);
}

// ---- lists

struct entry {
  const char *name, *file, *sha256;
  int rows[2];
  double dz;
};

struct list {
  const char *credit;
  double fps;
  enum clip_order order;
  int n;
  struct entry *entry;
};

static int read_entry(struct entry *c, const struct ytree *name, const struct ytree *t,
                      struct err *e) {
  static const char *const keys[] = {"file", "sha256", "rows", "dz"};
  *c = (struct entry){.name = name->text, .rows = {-1, -1}};
  if (ytree_check_keys(t, keys, 4, e) != 0) {
    return e->code;
  }
  const struct ytree *file = ytree_get(t, "file"), *sha = ytree_get(t, "sha256");
  const struct ytree *rows = ytree_get(t, "rows"), *dz = ytree_get(t, "dz");
  if (file == NULL || sha == NULL) {
    return err_set(e, EXIT_USAGE, "%s:%d:%d: clip '%s' needs a file and a sha256", name->path,
                   name->line, name->column, name->text);
  }
  // the name becomes a file name
  if (name->text[0] == '\0' || name->text[0] == '.' || strchr(name->text, '/') != NULL) {
    return err_set(e, EXIT_USAGE, "%s:%d:%d: '%s' cannot name a clip", name->path, name->line,
                   name->column, name->text);
  }
  ytree_text(&c->file, file, "file", e);
  ytree_text(&c->sha256, sha, "sha256", e);
  if (rows != NULL) {
    sidecar_rows(c->rows, rows, e);
  }
  if (dz != NULL) {
    ytree_real(&c->dz, dz, "dz", e);
  }
  return e->code;
}

static int read_list(struct list *l, struct arena *a, const char *path, struct err *e) {
  static const char *const keys[] = {"credit", "fps", "quaternion", "clips"};
  *l = (struct list){.credit = ""};
  struct ytree *t;
  if (ytree_read(&t, a, path, e) != 0 || ytree_check_keys(t, keys, 4, e) != 0) {
    return e->code;
  }
  const struct ytree *v;
  if ((v = ytree_get(t, "credit")) != NULL) {
    ytree_text(&l->credit, v, "credit", e);
  }
  if ((v = ytree_get(t, "fps")) != NULL) {
    ytree_real(&l->fps, v, "fps", e);
  }
  if ((v = ytree_get(t, "quaternion")) != NULL) {
    sidecar_order(&l->order, v, e);
  }
  v = ytree_get(t, "clips");
  if (v == NULL || v->kind != YTREE_MAP || v->n == 0) {
    return err_set(e, EXIT_USAGE, "%s: a mapping 'clips:' expected", path);
  }
  l->n = v->n;
  l->entry = ARENA_NEW(a, struct entry, v->n);
  for (int i = 0; i < v->n && e->code == 0; i++) {
    read_entry(&l->entry[i], v->key[i], v->item[i], e);
  }
  return e->code;
}

static int make_entry(struct arena *a, const struct robot *r, const struct list *l,
                      const struct entry *c, const char *from, const char *out, bool force,
                      struct err *e) {
  // data sets keep one folder per robot
  static const char *const place[] = {"%s/%s.csv", "%s/%s.csv.gz", "%s/g1/%s.csv",
                                      "%s/g1/%s.csv.gz"};
  const char *file = NULL;
  for (int i = 0; i < 4 && file == NULL; i++) {
    char path[4096];
    snprintf(path, sizeof path, place[i], from, c->file);
    file = file_exists(path) ? arena_strdup(a, path) : NULL;
  }
  char hex[65];
  if (file == NULL) {
    return err_set(e, EXIT_USAGE, "clip '%s': no %s.csv or %s.csv.gz in '%s'", c->name, c->file,
                   c->file, from);
  }
  if (text_sha256(hex, a, file, e) != 0) {
    return e->code;
  }
  if (strcmp(hex, c->sha256) != 0) {
    if (!force) {
      return err_set(e, EXIT_USAGE,
                     "clip '%s': %s is not the file that the rows were chosen from: sha256 %s, "
                     "expected %s (--force takes it all the same)",
                     c->name, file, hex, c->sha256);
    }
    log_warn("%s: sha256 %s, expected %s: taken because of --force", file, hex, c->sha256);
  }
  struct clip_options opt = clip_options_default();
  opt.fps = l->fps;
  opt.order = l->order;
  opt.row_first = c->rows[0];
  opt.row_last = c->rows[1];
  opt.dz = c->dz;
  struct clip clip;
  if (clip_read(&clip, a, r, file, &opt, e) != 0) {
    return e->code;
  }
  const char *credit = format(a, "%s%sframes %d..%d of %s.csv, root raised by %g m", l->credit,
                              l->credit[0] ? "; " : "", clip.row_first,
                              clip.row_first + clip.nframe - 1, c->file, c->dz);
  return write_checked(a, r, &clip, file, format(a, "%s/%s.csv.gz", out, c->name), credit, force,
                       e);
}

static bool wanted(const char *name, const char *const *only, int nonly) {
  for (int i = 0; i < nonly; i++) {
    if (strcmp(name, only[i]) == 0) {
      return true;
    }
  }
  return nonly == 0;
}

int import_list(struct arena *a, const struct robot *r, const char *list, const char *from,
                const char *out, const char *const *only, int nonly, bool force, struct err *e) {
  struct list l;
  const char *path = file_find(a, list);
  if (read_list(&l, a, path != NULL ? path : list, e) != 0) {
    return e->code;
  }
  const char **names = ARENA_NEW(a, const char *, l.n);
  for (int i = 0; i < l.n; i++) {
    names[i] = l.entry[i].name;
  }
  for (int i = 0; i < nonly; i++) {
    if (!wanted(only[i], names, l.n)) {
      const char *near = err_nearest(only[i], names, l.n);
      return err_set(e, EXIT_USAGE, "%s: no clip '%s'%s%s%s", list, only[i],
                     near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    }
  }
  out = out != NULL ? out : format(a, "results/motions/%s", clip_name(a, list));

  int all = 0, failed = 0;
  struct err first = {0};
  for (int i = 0; i < l.n; i++) {
    if (!wanted(l.entry[i].name, only, nonly)) {
      continue;
    }
    struct arena_mark mark = arena_mark(a);
    struct err one = {0};
    make_entry(a, r, &l, &l.entry[i], from, out, force, &one);
    arena_reset(a, mark);
    all++;
    failed += one.code != 0;
    if (one.code != 0 && first.code != 0) {
      log_warn("%s", one.text);
    } else if (one.code != 0) {
      first = one;
    }
  }
  if (failed > 0) {
    err_set(e, first.code, "%s", first.text);
    err_prefix(e, "%d of %d clips not made: ", failed, all);
  }
  return e->code;
}
