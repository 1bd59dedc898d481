#include "base/file.h"
#include "cmd/summary.h"
#include "cmd/sweep_private.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *sweep_format(struct arena *a, const char *fmt, ...) {
  char buf[2 * PATH_MAX];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(buf, sizeof buf, fmt, ap);
  va_end(ap);
  return arena_strdup(a, buf);
}

// Prefixes a message that names no place with that of a node.
static int located(struct sweep_reader *r, const struct ytree *t) {
  return err_prefix(r->err, "%s:%d:%d: ", t->path, t->line, t->column);
}

static int fail(struct sweep_reader *r, const struct ytree *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(struct sweep_reader *r, const struct ytree *t, const char *fmt, ...) {
  char text[800];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return err_set(r->err, EXIT_USAGE, "%s:%d:%d: %s", t->path, t->line, t->column, text);
}

// ---- fields and their values

void sweep_add(struct sweep_reader *r, struct assigns *list, struct assign one) {
  if (list->n == list->room) {
    int room = list->room ? 2 * list->room : 8;
    struct assign *v = ARENA_NEW(r->arena, struct assign, room);
    if (list->n > 0) {
      memcpy(v, list->v, sizeof *v * (size_t)list->n);
    }
    list->v = v;
    list->room = room;
  }
  list->v[list->n++] = one;
}

const struct assign *sweep_find(const struct assigns *list, const struct field *f) {
  for (int i = 0; i < list->n; i++) {
    if (list->v[i].field == f) {
      return &list->v[i];
    }
  }
  return NULL;
}

// Fields that belong to the sweep itself, and why they cannot be set. NULL: may be set.
const char *sweep_reserved(const struct field *f) {
  if (strcmp(f->path, "seed") == 0) {
    return "'seed' is not a field of cells; write 'seeds: [first, last]' or --seeds A..B";
  }
  if (strcmp(f->path, "threads") == 0) {
    return "'threads' changes no result and is no field of a sweep; use --jobs and --threads";
  }
  if (strcmp(f->path, "experiment") == 0 || strcmp(f->path, "variant") == 0) {
    return "'experiment' and 'variant' name a cell's folder; the sweep makes them";
  }
  return NULL;
}

// Sets the fields of a mapping, nested or dotted, one entry each.
static int read_fields(struct sweep_reader *r, struct assigns *list, const struct ytree *map,
                       const char *prefix, const char *skip) {
  if (map->kind != YTREE_MAP) {
    return fail(r, map, "expected fields, as in 'bundle.size: 10'");
  }
  for (int i = 0; i < map->n && r->err->code == 0; i++) {
    const struct ytree *key = map->key[i], *value = map->item[i];
    if (skip != NULL && prefix[0] == '\0' && strcmp(key->text, skip) == 0) {
      continue;
    }
    if (strlen(prefix) + strlen(key->text) + 1 > SPEC_KEY_MAX) {
      return fail(r, key, "a key of more than %d characters", SPEC_KEY_MAX);
    }
    char path[SPEC_KEY_MAX + 1];
    snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key->text);
    const struct field *f = field_find(path);
    if (f == NULL && field_is_group(path)) {
      if (value->kind != YTREE_MAP) {
        return fail(r, key, "'%s' is a group: expected keys under it", path);
      }
      read_fields(r, list, value, path, NULL);
    } else if (f == NULL) {
      field_unknown(path, r->err);
      return located(r, key);
    } else if (sweep_reserved(f) != NULL) {
      return fail(r, key, "%s", sweep_reserved(f));
    } else if (sweep_find(list, f) != NULL) {
      return fail(r, key, "'%s' stands here twice", path);
    } else {
      sweep_add(r, list, (struct assign){.field = f, .node = value});
    }
  }
  return r->err->code;
}

// Gives a field of the spec its value.
int sweep_apply(struct sweep_reader *r, struct spec *s, const struct assign *x) {
  if (x->node == NULL) {
    return spec_set(s, r->arena, x->text, r->err);
  }
  const struct ytree *t = x->node;
  char place[PATH_MAX + 32], expects[256];
  snprintf(place, sizeof place, "%s:%d:%d", t->path, t->line, t->column);
  if (t->kind == YTREE_TEXT) {
    struct scalar value = {.text = t->text, .quoted = t->quoted};
    field_set(x->field, s, r->arena, &value, place, r->err);
  } else if (t->kind == YTREE_LIST) {
    struct scalar items[64];
    int n = 0;
    for (; n < t->n && n < 64 && t->item[n]->kind == YTREE_TEXT; n++) {
      items[n] = (struct scalar){.text = t->item[n]->text, .quoted = t->item[n]->quoted};
    }
    if (n < t->n) {
      err_set(r->err, EXIT_USAGE, "%s: expected %s", x->field->path,
              field_expects(x->field, expects, sizeof expects));
    } else {
      field_set_list(x->field, s, r->arena, items, n, place, r->err);
    }
  } else {
    err_set(r->err, EXIT_USAGE, "%s: expected %s, found keys", x->field->path,
            field_expects(x->field, expects, sizeof expects));
  }
  return located(r, t);
}

// ---- parts of the file

const struct axis *sweep_axis(const struct sweep_reader *r, const struct field *f) {
  for (int i = 0; i < r->naxis; i++) {
    if (r->axis[i].field == f) {
      return &r->axis[i];
    }
  }
  return NULL;
}

static int read_axes(struct sweep_reader *r, const struct ytree *map) {
  struct assigns list = {0};
  if (read_fields(r, &list, map, "", NULL) != 0) {
    return r->err->code;
  }
  if (list.n > SWEEP_MAX_AXES) {
    return fail(r, map, "more than %d swept fields", SWEEP_MAX_AXES);
  }
  for (int i = 0; i < list.n; i++) {
    const struct ytree *values = list.v[i].node;
    const struct field *f = list.v[i].field;
    if (values->kind != YTREE_LIST || values->n == 0) {
      return fail(r, values, "%s: expected a list of values, as in [1, 2]", f->path);
    }
    if (sweep_find(&r->shared, f) != NULL) {
      return fail(r, values, "'%s' is swept here and set for all cells as well", f->path);
    }
    struct axis *x = &r->axis[r->naxis++];
    *x = (struct axis){f, values->n, ARENA_NEW(r->arena, struct assign, values->n)};
    for (int k = 0; k < values->n; k++) {
      x->value[k] = (struct assign){.field = f, .node = values->item[k]};
    }
  }
  return 0;
}

bool sweep_is_name(const char *name) {
  static const char allowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
  size_t n = strlen(name);
  return n > 0 && n <= 100 && name[0] != '.' && strspn(name, allowed) == n;
}

static int read_variants(struct sweep_reader *r, const struct ytree *list) {
  if (list->kind != YTREE_LIST || list->n == 0) {
    return fail(r, list, "variants: expected a list, as in '- name: plain'");
  }
  r->named = ARENA_NEW(r->arena, struct named, list->n);
  for (int i = 0; i < list->n; i++) {
    struct named *v = &r->named[r->nnamed++];
    const struct ytree *map = list->item[i];
    const struct ytree *name = ytree_get(map, "name");
    v->place = map;
    if (map->kind != YTREE_MAP || name == NULL) {
      return fail(r, map, "variants: expected 'name: NAME' and fields under it");
    }
    if (ytree_text(&v->name, name, "name", r->err) != 0) {
      return r->err->code;
    }
    if (!sweep_is_name(v->name)) {
      return fail(r, name,
                  "name: expected letters, digits and '_.+-' (it names a folder), found "
                  "'%.80s'",
                  v->name);
    }
    for (int k = 0; k < i; k++) {
      if (strcmp(r->named[k].name, v->name) == 0) {
        return fail(r, name, "variant '%s' stands here twice (first in line %d)", v->name,
                    r->named[k].place->line);
      }
    }
    if (read_fields(r, &v->assigns, map, "", "name") != 0) {
      return r->err->code;
    }
    for (int k = 0; k < v->assigns.n; k++) {
      if (sweep_axis(r, v->assigns.v[k].field) != NULL) {
        return fail(r, v->assigns.v[k].node, "'%s' is swept; a variant cannot set it as well",
                    v->assigns.v[k].field->path);
      }
    }
  }
  return 0;
}

static int read_seeds(struct sweep_reader *r, const struct ytree *t) {
  if (t->kind != YTREE_LIST || t->n != 2) {
    return fail(r, t, "seeds: expected [first, last], as in [0, 4] for five of them");
  }
  if (ytree_int(&r->first_seed, t->item[0], "seeds", r->err) != 0 ||
      ytree_int(&r->last_seed, t->item[1], "seeds", r->err) != 0) {
    return r->err->code;
  }
  if (r->first_seed < 0 || r->first_seed > r->last_seed) {
    return fail(r, t, "seeds: expected 0 <= first <= last, found [%d, %d]", r->first_seed,
                r->last_seed);
  }
  return 0;
}

static int read_steps(struct sweep_reader *r, const struct ytree *list) {
  static const char *const names[] = {"train", "transfer", "evaluate", "gradvar", "render"};
  enum { N = sizeof names / sizeof names[0] };
  if (list->kind != YTREE_LIST || list->n == 0 || list->n > SWEEP_MAX_STEPS) {
    return fail(r, list, "steps: expected a list of 1 to %d commands, as in [train, transfer]",
                SWEEP_MAX_STEPS);
  }
  struct sweep *s = r->sweep;
  for (int i = 0; i < list->n; i++) {
    const char *text;
    if (ytree_text(&text, list->item[i], "steps", r->err) != 0) {
      return r->err->code;
    }
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " "), text);
    int k = 0;
    while (k < N && strcmp(word, names[k]) != 0) {
      k++;
    }
    if (k == N) {
      const char *nearest = err_nearest(word, names, N);
      return fail(r, list->item[i],
                  "steps: expected train, transfer, evaluate, gradvar or render, found '%s'%s%s%s",
                  word, nearest ? " (did you mean '" : "", nearest ? nearest : "",
                  nearest ? "'?)" : "");
    }
    if ((i == 0) != (k == 0)) {
      return fail(r, list->item[i], "steps: 'train' comes first, and once");
    }
    const char *out = strstr(text, "--out");
    if (out != NULL && (out[5] != ' ' || out[6 + strspn(out + 6, " ")] == '\0' ||
                        strcspn(out, "/") < strlen(out) || k == 0)) {
      return fail(r, list->item[i],
                  "steps: expected '--out FILE', a name in the cell's folder, found '%.80s'", out);
    }
    for (int j = 0; j < s->nstep; j++) {
      if (strcmp(s->step[j], text) == 0) {
        return fail(r, list->item[i], "steps: '%s' stands here twice", text);
      }
    }
    s->step[s->nstep++] = text;
  }
  return 0;
}

static int read_metrics(struct sweep_reader *r, const struct ytree *list) {
  if (list->kind != YTREE_LIST || list->n == 0 || list->n > SWEEP_MAX_METRICS) {
    return fail(r, list, "metrics: expected a list of 1 to %d names, as in [falls, e_track_cm]",
                SWEEP_MAX_METRICS);
  }
  struct sweep *s = r->sweep;
  for (int i = 0; i < list->n; i++) {
    const char *text;
    if (ytree_text(&text, list->item[i], "metrics", r->err) != 0) {
      return r->err->code;
    }
    if (summary_check_metric(text, s->step, s->nstep, r->err) != 0) {
      return located(r, list->item[i]);
    }
    s->metric[s->nmetric++] = text;
  }
  return 0;
}

void sweep_default_steps(struct sweep *s) {
  static const char *const steps[] = {"train", "transfer", "evaluate"};
  for (int i = 0; i < 3; i++) {
    s->step[s->nstep++] = steps[i];
  }
}
void sweep_default_metrics(struct sweep *s) {
  static const char *const metrics[] = {"falls",          "e_track_cm", "e_track_local_cm",
                                        "penetration_mm", "delta_d_mm", "env_steps",
                                        "wall_s"};
  for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
    struct err not_here = {0};
    if (summary_check_metric(metrics[i], s->step, s->nstep, &not_here) == 0) {
      s->metric[s->nmetric++] = metrics[i];
    }
  }
}

static const char *const keys[] = {"base", "set", "variants", "sweep", "seeds", "steps", "metrics"};
enum { NKEY = sizeof keys / sizeof keys[0] };

bool sweep_is_sweep(const struct ytree *t) {
  bool is = strstr(t->path, "experiments/ablate/") != NULL;
  for (int i = 1; i < NKEY; i++) {
    is |= ytree_get(t, keys[i]) != NULL;
  }
  return is;
}

// base: beside the file, or a name or path as on the command line
static int read_base(struct sweep_reader *r, const struct ytree *t) {
  const char *name;
  if (t == NULL) {
    return fail(r, r->file, "'base: SPEC' is missing: the spec that every cell starts from");
  }
  if (ytree_text(&name, t, "base", r->err) != 0) {
    return r->err->code;
  }
  const char *slash = strrchr(t->path, '/');
  const char *beside = sweep_format(r->arena, "%.*s%s",
                                    slash != NULL ? (int)(slash + 1 - t->path) : 0, t->path, name);
  size_t n = strlen(name);
  bool is_path = n > 5 && strcmp(name + n - 5, ".yaml") == 0;
  r->sweep->base = is_path && name[0] != '/' && file_exists(beside) ? beside : name;
  if (spec_read(&r->base, r->arena, r->sweep->base, r->err) != 0) {
    // an error inside the base names its own place
    return strncmp(r->err->text, "there is no", 11) == 0 ? located(r, t) : r->err->code;
  }
  return 0;
}

int sweep_read_file(struct sweep_reader *r) {
  const struct ytree *f = r->file, *part;
  if (ytree_check_keys(f, keys, NKEY, r->err) != 0 || read_base(r, ytree_get(f, "base")) != 0 ||
      ((part = ytree_get(f, "set")) && read_fields(r, &r->shared, part, "", NULL) != 0) ||
      ((part = ytree_get(f, "sweep")) && read_axes(r, part) != 0) ||
      ((part = ytree_get(f, "variants")) && read_variants(r, part) != 0) ||
      ((part = ytree_get(f, "seeds")) && read_seeds(r, part) != 0) ||
      ((part = ytree_get(f, "steps")) && read_steps(r, part) != 0)) {
    return r->err->code;
  }
  if (r->sweep->nstep == 0) {
    sweep_default_steps(r->sweep);
  }
  return (part = ytree_get(f, "metrics")) ? read_metrics(r, part) : 0;
}
