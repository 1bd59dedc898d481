#include "motion/sidecar.h"
#include <stdio.h>
#include <string.h>

static const char *const KEYS[] = {"fps",  "quaternion",  "rows",   "dz",  "joints",
                                   "loop", "allow_jumps", "credit", "file"};
enum { NKEY = sizeof KEYS / sizeof *KEYS };

static int error_at(const struct ytree *t, const char *what, struct err *e) {
  return err_set(e, EXIT_USAGE, "%s:%d:%d: %s", t->path, t->line, t->column, what);
}

int sidecar_order(enum clip_order *order, const struct ytree *t, struct err *e) {
  const char *word;
  if (ytree_text(&word, t, "quaternion", e) != 0) {
    return e->code;
  }
  if (strcmp(word, "xyzw") == 0) {
    *order = CLIP_ORDER_XYZW;
  } else if (strcmp(word, "wxyz") == 0) {
    *order = CLIP_ORDER_WXYZ;
  } else {
    return error_at(t, "quaternion: xyzw or wxyz expected", e);
  }
  return 0;
}

static int read_joints(struct sidecar *s, struct arena *a, const struct ytree *t, struct err *e) {
  if (t->kind != YTREE_LIST || t->n == 0) {
    return error_at(t, "joints: a list of names expected", e);
  }
  s->njoint = t->n;
  s->joint_line = t->line;
  s->joint = ARENA_NEW(a, const char *, t->n);
  for (int i = 0; i < t->n; i++) {
    if (ytree_text(&s->joint[i], t->item[i], "joints", e) != 0) {
      return e->code;
    }
  }
  return 0;
}

int sidecar_rows(int rows[2], const struct ytree *t, struct err *e) {
  if (t->kind != YTREE_LIST || t->n != 2) {
    return error_at(t, "rows: [first, last] expected, counted from 0, both included", e);
  }
  int v[2];
  for (int i = 0; i < 2; i++) {
    if (ytree_int(&v[i], t->item[i], "rows", e) != 0) {
      return e->code;
    }
  }
  if (v[0] < 0 || v[1] < v[0]) {
    return error_at(t, "rows: 0 <= first <= last expected", e);
  }
  memcpy(rows, v, sizeof v);
  return 0;
}

struct sidecar sidecar_none(void) {
  return (struct sidecar){.path = "", .row_first = -1, .row_last = -1, .credit = ""};
}

int sidecar_read(struct sidecar *s, struct arena *a, const char *path, struct err *e) {
  *s = sidecar_none();
  s->path = arena_strdup(a, path);
  struct ytree *t;
  if (ytree_read(&t, a, path, e) != 0) {
    return e->code;
  }
  // a list of clips is easily taken for a motion
  if (ytree_get(t, "clips") != NULL) {
    return err_set(e, EXIT_USAGE,
                   "%s lists clips to be imported; run 'dsim motion import %s --from DIR' and use "
                   "the files it writes",
                   path, path);
  }
  if (ytree_check_keys(t, KEYS, NKEY, e) != 0) {
    return e->code;
  }
  const struct ytree *v;
  if ((v = ytree_get(t, "fps")) != NULL && ytree_real(&s->fps, v, "fps", e) == 0 &&
      !(s->fps > 0 && s->fps <= 10000)) {
    return error_at(v, "fps: a number above 0 and at most 10000 expected", e);
  }
  if ((v = ytree_get(t, "quaternion")) != NULL) {
    sidecar_order(&s->order, v, e);
  }
  if ((v = ytree_get(t, "rows")) != NULL) {
    int rows[2] = {-1, -1};
    sidecar_rows(rows, v, e);
    s->row_first = rows[0];
    s->row_last = rows[1];
  }
  if ((v = ytree_get(t, "dz")) != NULL) {
    ytree_real(&s->dz, v, "dz", e);
  }
  if ((v = ytree_get(t, "joints")) != NULL) {
    read_joints(s, a, v, e);
  }
  if ((v = ytree_get(t, "loop")) != NULL) {
    ytree_bool(&s->loop, v, "loop", e);
  }
  if ((v = ytree_get(t, "allow_jumps")) != NULL) {
    ytree_bool(&s->allow_jumps, v, "allow_jumps", e);
  }
  if ((v = ytree_get(t, "credit")) != NULL) {
    ytree_text(&s->credit, v, "credit", e);
  }
  const char *file = NULL;
  if ((v = ytree_get(t, "file")) != NULL && ytree_text(&file, v, "file", e) == 0) {
    const char *slash = strrchr(path, '/');
    int folder = file[0] == '/' || slash == NULL ? 0 : (int)(slash - path) + 1;
    size_t n = (size_t)folder + strlen(file) + 1;
    char *full = arena_alloc(a, n);
    snprintf(full, n, "%.*s%s", folder, path, file);
    s->file = full;
  }
  return e->code;
}

// length of path without the given ending, or 0 when it does not end so
static size_t without(const char *path, const char *ending) {
  size_t n = strlen(path), k = strlen(ending);
  return n > k && strcmp(path + n - k, ending) == 0 ? n - k : 0;
}

static size_t stem_length(const char *path) {
  size_t n = without(path, ".csv.gz");
  return n != 0 ? n : without(path, ".csv");
}

const char *sidecar_path(struct arena *a, const char *clip) {
  size_t n = stem_length(clip);
  if (n == 0) {
    n = strlen(clip);
  }
  char *path = arena_alloc(a, n + sizeof ".yaml");
  memcpy(path, clip, n);
  memcpy(path + n, ".yaml", sizeof ".yaml");
  return path;
}

const char *clip_name(struct arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *base = slash != NULL ? slash + 1 : path;
  size_t n = stem_length(base);
  n = n != 0 ? n : without(base, ".yaml");
  n = n != 0 ? n : strlen(base);
  char *name = arena_alloc(a, n + 1);
  memcpy(name, base, n);
  return name;
}
