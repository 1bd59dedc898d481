#include "motion/ytree.h"
#include "base/file.h"
#include "spec/scalar.h"
#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 8, MAX_ENTRIES = 4096 };

struct reader {
  yaml_parser_t parser;
  yaml_event_t event; // the one in hand
  struct arena *arena;
  const char *path;
  struct err *e;
};

static int error_here(struct reader *r, const char *what) {
  return err_set(r->e, EXIT_USAGE, "%s:%zu:%zu: %s", r->path, r->event.start_mark.line + 1,
                 r->event.start_mark.column + 1, what);
}

static int next_event(struct reader *r) {
  yaml_event_delete(&r->event);
  if (!yaml_parser_parse(&r->parser, &r->event)) {
    const yaml_parser_t *p = &r->parser;
    return err_set(r->e, EXIT_USAGE, "%s:%zu:%zu: %s", r->path, p->problem_mark.line + 1,
                   p->problem_mark.column + 1, p->problem ? p->problem : "not YAML");
  }
  return 0;
}

static struct ytree *node_new(struct reader *r, enum ytree_kind kind) {
  struct ytree *t = ARENA_NEW(r->arena, struct ytree, 1);
  t->kind = kind;
  t->path = r->path;
  t->line = (int)r->event.start_mark.line + 1;
  t->column = (int)r->event.start_mark.column + 1;
  return t;
}

static struct ytree *read_node(struct reader *r, int depth);

// entries up to the end event; keys too when the collection is a map
static struct ytree *read_entries(struct reader *r, enum ytree_kind kind, int depth) {
  bool map = kind == YTREE_MAP;
  yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
  struct ytree *t = node_new(r, kind);
  int room = 0;
  while (next_event(r) == 0 && r->event.type != end) {
    if (t->n == MAX_ENTRIES) {
      error_here(r, "too many entries");
      return t;
    }
    if (t->n == room) {
      int more = room ? 2 * room : 16;
      struct ytree **key = ARENA_NEW(r->arena, struct ytree *, more);
      struct ytree **item = ARENA_NEW(r->arena, struct ytree *, more);
      if (room > 0) {
        memcpy(key, t->key, sizeof *key * (size_t)room);
        memcpy(item, t->item, sizeof *item * (size_t)room);
      }
      t->key = key;
      t->item = item;
      room = more;
    }
    if (map) {
      struct ytree *key = read_node(r, depth);
      if (r->e->code == 0 && key->kind != YTREE_TEXT) {
        err_set(r->e, EXIT_USAGE, "%s:%d:%d: a key must be a word", r->path, key->line,
                key->column);
      }
      if (r->e->code == 0 && ytree_get(t, key->text) != NULL) {
        err_set(r->e, EXIT_USAGE, "%s:%d:%d: key '%.64s' stands here twice", r->path, key->line,
                key->column, key->text);
      }
      if (r->e->code != 0 || next_event(r) != 0) {
        return t;
      }
      t->key[t->n] = key;
    }
    t->item[t->n] = read_node(r, depth);
    if (r->e->code != 0) {
      return t;
    }
    t->n++;
  }
  return t;
}

// the node that begins with the event in hand; what it returns is complete only without an error
static struct ytree *read_node(struct reader *r, int depth) {
  const yaml_event_t *ev = &r->event;
  struct ytree *t = node_new(r, YTREE_TEXT);
  if (depth == MAX_DEPTH) {
    error_here(r, "nested too deep");
    return t;
  }
  switch (ev->type) {
  case YAML_SCALAR_EVENT:
    if (ev->data.scalar.anchor != NULL || ev->data.scalar.tag != NULL) {
      error_here(r, "anchors and tags are not supported");
      return t;
    }
    if (strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length) {
      error_here(r, "text contains a zero byte");
      return t;
    }
    t->text = arena_strdup(r->arena, (const char *)ev->data.scalar.value);
    t->quoted = ev->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                ev->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    return t;
  case YAML_SEQUENCE_START_EVENT:
    if (ev->data.sequence_start.anchor != NULL || ev->data.sequence_start.tag != NULL) {
      error_here(r, "anchors and tags are not supported");
      return t;
    }
    return read_entries(r, YTREE_LIST, depth + 1);
  case YAML_MAPPING_START_EVENT:
    if (ev->data.mapping_start.anchor != NULL || ev->data.mapping_start.tag != NULL) {
      error_here(r, "anchors and tags are not supported");
      return t;
    }
    return read_entries(r, YTREE_MAP, depth + 1);
  case YAML_ALIAS_EVENT:
    error_here(r, "aliases are not supported");
    return t;
  default:
    error_here(r, "a value was expected");
    return t;
  }
}

int ytree_read(struct ytree **tree, struct arena *a, const char *path, struct err *e) {
  char *data;
  size_t size;
  if (file_read(a, path, MAX_BYTES, &data, &size, e) != 0) {
    return e->code;
  }
  struct reader r = {.arena = a, .path = arena_strdup(a, path), .e = e};
  if (!yaml_parser_initialize(&r.parser)) {
    return err_set(e, EXIT_IO, "out of memory reading '%s'", path);
  }
  yaml_parser_set_input_string(&r.parser, (const unsigned char *)data, size);
  *tree = ARENA_NEW(a, struct ytree, 1);
  **tree = (struct ytree){.kind = YTREE_MAP, .path = r.path, .line = 1, .column = 1};
  // stream start, then one document or none
  if (next_event(&r) == 0 && next_event(&r) == 0 && r.event.type == YAML_DOCUMENT_START_EVENT &&
      next_event(&r) == 0) {
    struct ytree *t = read_node(&r, 0);
    // nothing but comments reads as one empty scalar
    if (e->code == 0 && !(t->kind == YTREE_TEXT && t->text[0] == '\0' && !t->quoted)) {
      *tree = t;
    }
    if (e->code == 0 && next_event(&r) == 0 && next_event(&r) == 0 &&
        r.event.type != YAML_STREAM_END_EVENT) {
      error_here(&r, "a second document begins here; one is expected");
    }
  }
  yaml_event_delete(&r.event);
  yaml_parser_delete(&r.parser);
  return e->code;
}

const struct ytree *ytree_get(const struct ytree *map, const char *key) {
  for (int i = 0; map->kind == YTREE_MAP && i < map->n; i++) {
    if (strcmp(map->key[i]->text, key) == 0) {
      return map->item[i];
    }
  }
  return NULL;
}

static int wrong(const struct ytree *t, const char *what, const char *expected, struct err *e) {
  if (t->kind != YTREE_TEXT) {
    return err_set(e, EXIT_USAGE, "%s:%d:%d: %s: %s expected, found a %s", t->path, t->line,
                   t->column, what, expected, t->kind == YTREE_LIST ? "list" : "mapping");
  }
  if (t->text[0] == '\0') {
    return err_set(e, EXIT_USAGE, "%s:%d:%d: %s has no value, %s expected", t->path, t->line,
                   t->column, what, expected);
  }
  return err_set(e, EXIT_USAGE, "%s:%d:%d: %s: %s expected, found '%.64s'%s", t->path, t->line,
                 t->column, what, expected, t->text, t->quoted ? " in quotes" : "");
}

int ytree_check_keys(const struct ytree *map, const char *const *names, int n, struct err *e) {
  if (map->kind != YTREE_MAP) {
    return err_set(e, EXIT_USAGE, "%s:%d:%d: 'key: value' lines expected", map->path, map->line,
                   map->column);
  }
  for (int i = 0; i < map->n; i++) {
    const struct ytree *key = map->key[i];
    int k = 0;
    while (k < n && strcmp(key->text, names[k]) != 0) {
      k++;
    }
    if (k < n) {
      continue;
    }
    const char *near = err_nearest(key->text, names, n);
    return err_set(e, EXIT_USAGE, "%s:%d:%d: unknown key '%.64s'%s%s%s", key->path, key->line,
                   key->column, key->text, near ? " (did you mean '" : "", near ? near : "",
                   near ? "'?)" : "");
  }
  return 0;
}

// a value that scalar_* refused, with its reason
static int refused(const struct ytree *t, const char *what, const char *expected,
                   const struct scalar_note *note, struct err *e) {
  struct err plain = {0};
  wrong(t, what, expected, &plain);
  bool hint = note->hint[0] != '\0';
  return err_set(e, EXIT_USAGE, "%s%s%s%s", plain.text, hint ? " (" : "", note->hint,
                 hint ? ")" : "");
}

int ytree_real(double *x, const struct ytree *t, const char *what, struct err *e) {
  struct scalar_note note = {0};
  struct scalar s = {t->text, t->quoted};
  if (t->kind != YTREE_TEXT || !scalar_real(&s, x, &note)) {
    return refused(t, what, "a number", &note, e);
  }
  return 0;
}

int ytree_int(int *x, const struct ytree *t, const char *what, struct err *e) {
  struct scalar_note note = {0};
  struct scalar s = {t->text, t->quoted};
  if (t->kind != YTREE_TEXT || !scalar_int(&s, x, &note)) {
    return refused(t, what, "a whole number", &note, e);
  }
  return 0;
}

int ytree_bool(bool *x, const struct ytree *t, const char *what, struct err *e) {
  struct scalar_note note = {0};
  struct scalar s = {t->text, t->quoted};
  if (t->kind != YTREE_TEXT || !scalar_bool(&s, x, &note)) {
    return refused(t, what, "true or false", &note, e);
  }
  return 0;
}

int ytree_text(const char **x, const struct ytree *t, const char *what, struct err *e) {
  if (t->kind != YTREE_TEXT || t->text[0] == '\0') {
    return wrong(t, what, "text", e);
  }
  *x = t->text;
  return 0;
}
