// Specs from YAML, by libyaml's events so that every error knows its line and column. Accepted is
// the part of YAML that has one reading: nested or dotted keys, plain and quoted values, flow or
// block lists of numbers. Anchors, aliases, merge keys, tags and several documents are refused.
#include "base/file.h"
#include "base/log.h"
#include "spec/field.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

enum {
  LIST_MAX = 64,            // items of a list
  FILE_BYTES_MAX = 1 << 20, // a spec is a page of text
  BASES_MAX = 8,            // base: files upon base: files
  FIELDS_MAX = 512,
};

struct reader {
  yaml_parser_t parser;
  yaml_event_t event; // the one being looked at
  const char *source; // file, or "--set a=b"
  bool is_file;       // errors carry line and column
  const char *text;   // what is being parsed
  struct spec *spec;
  struct arena *arena;
  struct err *err;
  int depth;                // of base files
  int line_set[FIELDS_MAX]; // line of each field set in this file, 0 for none
};

static int read_file(struct spec *s, struct arena *a, const char *path, int depth, struct err *e);

// "experiments/run.yaml:14:5", of the start of the current event
static const char *place(const struct reader *r, yaml_mark_t mark, char buf[PATH_MAX]) {
  if (r->is_file) {
    snprintf(buf, PATH_MAX, "%s:%zu:%zu", r->source, mark.line + 1, mark.column + 1);
  } else {
    snprintf(buf, PATH_MAX, "%s", r->source);
  }
  return buf;
}

// Records an error at the current event.
static int fail(struct reader *r, const char *what) {
  char at[PATH_MAX];
  return err_set(r->err, EXIT_USAGE, "%s: %s", place(r, r->event.start_mark, at), what);
}

// Prefixes an error made by field_*() with a place.
static int located(struct reader *r, yaml_mark_t mark) {
  char at[PATH_MAX];
  return err_prefix(r->err, "%s: ", place(r, mark, at));
}

static bool has_extras(const yaml_event_t *ev) {
  switch (ev->type) {
  case YAML_SCALAR_EVENT:
    return ev->data.scalar.anchor != NULL || ev->data.scalar.tag != NULL;
  case YAML_SEQUENCE_START_EVENT:
    return ev->data.sequence_start.anchor != NULL || ev->data.sequence_start.tag != NULL;
  case YAML_MAPPING_START_EVENT:
    return ev->data.mapping_start.anchor != NULL || ev->data.mapping_start.tag != NULL;
  default:
    return ev->type == YAML_ALIAS_EVENT;
  }
}

// Where libyaml's error is. Its marks count characters it has understood; bytes that are no text at
// all have an offset only.
static yaml_mark_t problem_mark(const struct reader *r) {
  const yaml_parser_t *p = &r->parser;
  if (p->error != YAML_READER_ERROR) {
    return p->problem_mark;
  }
  yaml_mark_t mark = {0};
  for (size_t i = 0; i < p->problem_offset; i++) {
    mark.line += r->text[i] == '\n';
    mark.column = r->text[i] == '\n' ? 0 : mark.column + 1;
  }
  return mark;
}

// Moves on to the next event. Text with a NUL inside is refused here, so that it can be a C string.
static int next(struct reader *r) {
  yaml_event_delete(&r->event);
  if (!yaml_parser_parse(&r->parser, &r->event)) {
    const yaml_parser_t *p = &r->parser;
    char at[PATH_MAX];
    return err_set(r->err, EXIT_USAGE, "%s: %s%s%s", place(r, problem_mark(r), at),
                   p->problem != NULL ? p->problem : "not a YAML text",
                   p->context != NULL ? " " : "", p->context != NULL ? p->context : "");
  }
  if (has_extras(&r->event)) {
    return fail(r, "anchors, aliases and tags are not supported");
  }
  if (r->event.type == YAML_SCALAR_EVENT &&
      memchr(r->event.data.scalar.value, '\0', r->event.data.scalar.length) != NULL) {
    return fail(r, "a NUL character is not accepted");
  }
  return 0;
}

static struct scalar event_scalar(struct reader *r) {
  return (struct scalar){
      .text = arena_strdup(r->arena, (const char *)r->event.data.scalar.value),
      .quoted = r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
  };
}

// The value of a field: a scalar, or a list of scalars. The current event is its first.
static int read_value(struct reader *r, const struct field *f) {
  char at[PATH_MAX], expects[256];
  yaml_mark_t mark = r->event.start_mark;
  if (r->event.type == YAML_SCALAR_EVENT) {
    struct scalar value = event_scalar(r);
    field_set(f, r->spec, r->arena, &value, place(r, mark, at), r->err);
    return located(r, mark);
  }
  if (r->event.type == YAML_MAPPING_START_EVENT) {
    err_set(r->err, EXIT_USAGE, "%s: expected %s, found keys", f->path,
            field_expects(f, expects, sizeof expects));
    return located(r, mark);
  }
  struct scalar items[LIST_MAX];
  int n = 0;
  for (;;) {
    if (next(r) != 0) {
      return r->err->code;
    }
    if (r->event.type == YAML_SEQUENCE_END_EVENT) {
      break;
    }
    if (r->event.type != YAML_SCALAR_EVENT || n == LIST_MAX) {
      err_set(r->err, EXIT_USAGE, "%s: expected %s, found %s", f->path,
              field_expects(f, expects, sizeof expects), n == LIST_MAX ? "more" : "a nested one");
      return located(r, r->event.start_mark);
    }
    items[n++] = event_scalar(r);
  }
  field_set_list(f, r->spec, r->arena, items, n, place(r, mark, at), r->err);
  return located(r, mark);
}

// "base: other.yaml": read first, so that what follows overrides it. Looked for beside this file.
static int read_base(struct reader *r, bool first) {
  if (!r->is_file || !first) {
    return fail(r, r->is_file ? "'base' must be the first key of the file"
                              : "'base' can only stand in a file");
  }
  if (r->depth >= BASES_MAX) {
    return fail(r, "base files upon base files, or one that includes itself");
  }
  if (next(r) != 0) {
    return r->err->code;
  }
  if (r->event.type != YAML_SCALAR_EVENT || r->event.data.scalar.length == 0) {
    return fail(r, "base: expected the name of a file");
  }
  const char *name = (const char *)r->event.data.scalar.value;
  const char *slash = strrchr(r->source, '/');
  char path[PATH_MAX];
  int folder = slash != NULL && name[0] != '/' ? (int)(slash + 1 - r->source) : 0;
  if (snprintf(path, sizeof path, "%.*s%s", folder, r->source, name) >= (int)sizeof path) {
    return fail(r, "base: the path is too long");
  }
  if (!file_exists(path)) {
    char what[PATH_MAX + 32];
    snprintf(what, sizeof what, "base: there is no file '%.900s'", path);
    return fail(r, what);
  }
  return read_file(r->spec, r->arena, arena_strdup(r->arena, path), r->depth + 1, r->err);
}

// Keys and values up to the end of a mapping; prefix is the path of the mapping, "" at the top.
// Recursion is bounded: a group that does not exist in spec.def is refused before it is entered.
static int read_mapping(struct reader *r, const char *prefix) {
  for (bool first = true;; first = false) {
    if (next(r) != 0) {
      return r->err->code;
    }
    if (r->event.type == YAML_MAPPING_END_EVENT) {
      return first ? fail(r, "expected keys, found none") : 0;
    }
    if (r->event.type != YAML_SCALAR_EVENT) {
      return fail(r, "expected a key");
    }
    const char *key = (const char *)r->event.data.scalar.value;
    yaml_mark_t mark = r->event.start_mark;
    if (prefix[0] == '\0' && strcmp(key, "base") == 0) {
      if (read_base(r, first) != 0) {
        return r->err->code;
      }
      continue;
    }
    if (strcmp(key, "<<") == 0) {
      return fail(r, "merge keys are not supported; use 'base: other.yaml'");
    }
    char path[SPEC_KEY_MAX + 1];
    int n = snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
    if (n > SPEC_KEY_MAX) {
      return fail(r, "a key of more than 64 characters");
    }
    const struct field *f = field_find(path);
    bool group = f == NULL && field_is_group(path);
    if (f == NULL && !group) {
      field_unknown(path, r->err);
      return located(r, mark);
    }
    if (f != NULL) {
      int *line = &r->line_set[f - spec_fields];
      if (*line != 0) {
        err_set(r->err, EXIT_USAGE, "duplicate key '%s' (first in line %d)", path, *line);
        return located(r, mark);
      }
      *line = (int)mark.line + 1;
    }
    if (next(r) != 0) {
      return r->err->code;
    }
    if (f != NULL) {
      read_value(r, f);
    } else if (r->event.type == YAML_MAPPING_START_EVENT) {
      read_mapping(r, path);
    } else {
      err_set(r->err, EXIT_USAGE, "'%s' is a group: expected keys under it, found a value", path);
      located(r, mark);
    }
    if (r->err->code != 0) {
      return r->err->code;
    }
  }
}

static int expect_document(struct reader *r) {
  if (next(r) != 0 || next(r) != 0) { // the stream's start, then the document's
    return r->err->code;
  }
  return r->event.type == YAML_DOCUMENT_START_EVENT ? next(r) : fail(r, "the text is empty");
}

static int expect_end(struct reader *r) {
  if (next(r) != 0 || next(r) != 0) { // the document's end, then the stream's
    return r->err->code;
  }
  return r->event.type == YAML_STREAM_END_EVENT ? 0 : fail(r, "a second document is not supported");
}

static void reader_open(struct reader *r, const char *text, size_t size) {
  BUG_IF(!yaml_parser_initialize(&r->parser));
  BUG_IF(nspec_field > FIELDS_MAX);
  r->text = text;
  yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, size);
}

static void reader_close(struct reader *r) {
  yaml_event_delete(&r->event);
  yaml_parser_delete(&r->parser);
}

static int read_file(struct spec *s, struct arena *a, const char *path, int depth, struct err *e) {
  char *text;
  size_t size;
  if (file_read(a, path, FILE_BYTES_MAX, &text, &size, e) != 0) {
    return e->code;
  }
  struct reader *r = ARENA_NEW(a, struct reader, 1);
  *r = (struct reader){
      .source = path, .is_file = true, .spec = s, .arena = a, .err = e, .depth = depth};
  reader_open(r, text, size);
  if (expect_document(r) == 0) {
    if (r->event.type != YAML_MAPPING_START_EVENT) {
      fail(r, "expected keys, as in 'seed: 1'");
    } else if (read_mapping(r, "") == 0) {
      expect_end(r);
    }
  }
  reader_close(r);
  return e->code;
}

int spec_set(struct spec *s, struct arena *a, const char *assignment, struct err *e) {
  const char *equals = strchr(assignment, '=');
  size_t n = equals != NULL ? (size_t)(equals - assignment) : 0;
  if (n == 0) {
    return err_set(e, EXIT_USAGE, "--set %.200s: expected PATH=VALUE, as in --set learn.envs=128",
                   assignment);
  }
  if (n > SPEC_KEY_MAX) {
    return err_set(e, EXIT_USAGE, "--set %.100s...: a key of more than 64 characters", assignment);
  }
  char path[SPEC_KEY_MAX + 1];
  snprintf(path, sizeof path, "%.*s", (int)n, assignment);
  char source[256];
  snprintf(source, sizeof source, "--set %.200s", assignment);
  const struct field *f = field_find(path);
  if (f == NULL) {
    if (field_is_group(path)) {
      return err_set(e, EXIT_USAGE, "%s: '%s' is a group, not a field", source, path);
    }
    field_unknown(path, e);
    return err_prefix(e, "%s: ", source);
  }
  // the value is a YAML text of its own, so that quotes and lists mean the same as in a file
  struct reader *r = ARENA_NEW(a, struct reader, 1);
  *r = (struct reader){.source = source, .spec = s, .arena = a, .err = e};
  const char *value = equals + 1;
  if (value[strspn(value, " \t")] == '\0') {
    struct scalar nothing = {.text = ""};
    field_set(f, s, a, &nothing, source, e);
    return err_prefix(e, "%s: ", source);
  }
  reader_open(r, value, strlen(value));
  if (expect_document(r) == 0 && read_value(r, f) == 0) {
    expect_end(r);
  }
  reader_close(r);
  return e->code;
}

// ---- finding the file
// ------------------------------------------------------------------------------

static bool is_file(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

// name, or what it stands for: NAME/spec.yaml of a run directory, experiments/NAME[.yaml] here or
// in the program's own tree
static const char *find_spec(struct arena *a, const char *name) {
  static const char *const patterns[] = {"%s%s", "%s%s/spec.yaml", "%sexperiments/%s",
                                         "%sexperiments/%s.yaml"};
  char home[PATH_MAX + 1], path[2 * PATH_MAX];
  snprintf(home, sizeof home, "%s/", dsim_home());
  const char *const roots[] = {"", home};
  for (int i = 0; i < 2 && (i == 0 || name[0] != '/'); i++) {
    for (int k = 0; k < 4; k++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
      int n = snprintf(path, sizeof path, patterns[k], roots[i], name);
#pragma GCC diagnostic pop
      if (n < PATH_MAX && is_file(path)) {
        return arena_strdup(a, path);
      }
    }
  }
  return NULL;
}

static int refuse_missing(struct arena *a, const char *name, struct err *e) {
  // names in the folder of experiments that name points into
  const char *slash = strrchr(name, '/');
  int folder = slash != NULL ? (int)(slash + 1 - name) : 0;
  char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s/experiments/%.*s", dsim_home(), folder, name);
  enum { MAX = 256 };
  const char *names[MAX];
  int n = 0;
  DIR *dir = opendir(path);
  for (struct dirent *d; dir != NULL && n < MAX && (d = readdir(dir)) != NULL;) {
    const char *dot = strrchr(d->d_name, '.');
    if (dot != NULL && strcmp(dot, ".yaml") == 0) {
      char full[PATH_MAX];
      snprintf(full, sizeof full, "%.*s%.*s", folder, name, (int)(dot - d->d_name), d->d_name);
      names[n++] = arena_strdup(a, full);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
  const char *nearest = err_nearest(name, names, n);
  return err_set(e, EXIT_USAGE, "there is no spec '%.200s', nor experiments/%.200s[.yaml]%s%s%s",
                 name, name, nearest != NULL ? " (did you mean '" : "",
                 nearest != NULL ? nearest : "", nearest != NULL ? "'?)" : "");
}

// Name of the run's folder when the spec gives none: the path below experiments/, else the file
// name, without .yaml.
static const char *default_experiment(struct arena *a, const char *path) {
  const char *start = path;
  for (const char *p; (p = strstr(start, "experiments/")) != NULL;) {
    start = p + strlen("experiments/");
  }
  if (start == path) {
    const char *slash = strrchr(path, '/');
    start = slash != NULL ? slash + 1 : path;
  }
  char *stem = arena_strdup(a, start);
  char *dot = strrchr(stem, '.');
  if (dot != NULL && dot > stem && strchr(dot, '/') == NULL) {
    *dot = '\0';
  }
  return stem;
}

int spec_read(struct spec *s, struct arena *a, const char *name, struct err *e) {
  spec_default(s);
  const char *path = name[0] != '\0' ? find_spec(a, name) : NULL;
  if (path == NULL) {
    return refuse_missing(a, name, e);
  }
  if (read_file(s, a, path, 0, e) != 0) {
    return e->code;
  }
  s->path = path;
  if (s->experiment[0] == '\0') {
    s->experiment = default_experiment(a, path);
  }
  return 0;
}
