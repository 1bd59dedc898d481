#include "spec/field.h"
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1024 }; // characters of a text

// enum members are reached through int pointers
_Static_assert(sizeof(enum spec_task) == sizeof(int), "an enum of the spec has the size of an int");

// clang-format off
const struct field spec_fields[] = {
#define INT(m, p, d, l, h, u, t)  {.kind = FIELD_INT, .path = p, .offset = offsetof(struct spec, m), .lo = l, .hi = h, .unit = u, .help = t},
#define REAL(m, p, d, l, h, u, t) {.kind = FIELD_REAL, .path = p, .offset = offsetof(struct spec, m), .lo = l, .hi = h, .unit = u, .help = t},
#define BOOL(m, p, d, t)          {.kind = FIELD_BOOL, .path = p, .offset = offsetof(struct spec, m), .unit = "", .help = t},
#define TEXT(m, p, d, t)          {.kind = FIELD_TEXT, .path = p, .offset = offsetof(struct spec, m), .unit = "", .help = t},
#define TEXTS(m, p, d, t)         {.kind = FIELD_TEXTS, .path = p, .offset = offsetof(struct spec, m), .unit = "", .help = t},
#define ENUM(m, p, e, d, c, t)    {.kind = FIELD_ENUM, .path = p, .offset = offsetof(struct spec, m), .unit = "", .choices = c, .help = t},
#define INTS(m, p, d, l, h, u, t) {.kind = FIELD_INTS, .path = p, .offset = offsetof(struct spec, m), .lo = l, .hi = h, .unit = u, .help = t},
#include "spec/spec.def"
#undef INT
#undef REAL
#undef BOOL
#undef TEXT
#undef TEXTS
#undef ENUM
#undef INTS
};
// clang-format on
const int nspec_field = sizeof spec_fields / sizeof spec_fields[0];

const struct field_synonym spec_synonyms[] = {
    {"learning_rate", "learn.actor.lr"},
    {"actor_learning_rate", "learn.actor.lr"},
    {"critic_learning_rate", "learn.critic.lr"},
    {"num_envs", "learn.envs"},
    {"num_actors", "learn.envs"},
    {"steps_num", "learn.horizon"},
    {"horizon_length", "learn.horizon"},
    {"td_lambda", "learn.lambda"},
    {"critic_iterations", "learn.critic.passes"},
    {"num_batch", "learn.critic.batches"},
    {"max_gradient_norm", "learn.actor.grad_norm"},
    {"betas", "learn.adam.beta1"},
    {"max_epochs", "iterations"},
    {"max_iterations", "iterations"},
    {"save_interval", "checkpoint.every"},
    {"rand_seed", "seed"},
    {"motion_file", "motion"},
    {"char_file", "robot"},
    {"timestep", "sim.dt"},
};
const int nspec_synonym = sizeof spec_synonyms / sizeof spec_synonyms[0];

const struct field *field_find(const char *path) {
  for (int i = 0; i < nspec_field; i++) {
    if (strcmp(spec_fields[i].path, path) == 0) {
      return &spec_fields[i];
    }
  }
  return NULL;
}

bool field_is_group(const char *path) {
  size_t n = strlen(path);
  for (int i = 0; i < nspec_field; i++) {
    if (strncmp(spec_fields[i].path, path, n) == 0 && spec_fields[i].path[n] == '.') {
      return true;
    }
  }
  return false;
}

const char *field_choice(const struct field *f, int i, char *buf, size_t size) {
  const char *p = f->choices;
  for (; i > 0 && p != NULL; i--) {
    p = strchr(p, '|');
    p = p != NULL ? p + 1 : NULL;
  }
  if (p == NULL) {
    return NULL;
  }
  snprintf(buf, size, "%.*s", (int)strcspn(p, "|"), p);
  return buf;
}

int field_enum_value(const struct field *f, const struct spec *s) {
  int v;
  memcpy(&v, (const char *)s + f->offset, sizeof v);
  return v;
}

// ---- text of values
// -------------------------------------------------------------------------------

// snprintf at the end of what buf holds
static void append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...) {
  size_t n = strlen(buf);
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(buf + n, size - n, fmt, ap);
  va_end(ap);
}

const char *field_expects(const struct field *f, char *buf, size_t size) {
  char lo[32], hi[32];
  scalar_print(f->lo, lo);
  scalar_print(f->hi, hi);
  buf[0] = '\0';
  switch (f->kind) {
  case FIELD_INT:
    append(buf, size, "a whole number from %s to %s", lo, hi);
    break;
  case FIELD_REAL:
    append(buf, size, "a number from %s to %s", lo, hi);
    break;
  case FIELD_INTS:
    append(buf, size, "a list of 1 to 8 whole numbers from %s to %s, as in [128, 64]", lo, hi);
    break;
  case FIELD_BOOL:
    append(buf, size, "true or false");
    break;
  case FIELD_TEXT:
    append(buf, size, "text");
    break;
  case FIELD_TEXTS:
    append(buf, size, "text, or a list of texts");
    break;
  case FIELD_ENUM: {
    char word[64];
    for (int i = 0; field_choice(f, i, word, sizeof word) != NULL; i++) {
      append(buf, size, "%s%s", i > 0 ? " or " : "", word);
    }
    break;
  }
  }
  if (f->unit[0] != '\0') {
    append(buf, size, " %s", f->unit);
  }
  return buf;
}

// a YAML double-quoted string
static void append_quoted(char *buf, size_t size, const char *text) {
  append(buf, size, "\"");
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      append(buf, size, "\\%c", c);
    } else if (c < 0x20 || c == 0x7f) {
      append(buf, size, "\\x%02x", c);
    } else {
      append(buf, size, "%c", c);
    }
  }
  append(buf, size, "\"");
}

// text that means the same without quotes
static bool is_plain(const char *text) {
  struct scalar s = {.text = text};
  return !scalar_is_empty(&s) && text[0] != '-' && text[0] != '.' &&
         text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")] ==
             '\0';
}

const char *field_print(const struct field *f, const struct spec *s, char *buf, size_t size) {
  const void *member = (const char *)s + f->offset;
  char number[32];
  buf[0] = '\0';
  switch (f->kind) {
  case FIELD_INT:
    append(buf, size, "%d", *(const int *)member);
    break;
  case FIELD_REAL:
    append(buf, size, "%s", scalar_print(*(const double *)member, number));
    break;
  case FIELD_BOOL:
    append(buf, size, "%s", *(const bool *)member ? "true" : "false");
    break;
  case FIELD_ENUM: {
    char word[64];
    append(buf, size, "%s", field_choice(f, field_enum_value(f, s), word, sizeof word));
    break;
  }
  case FIELD_TEXT:
  case FIELD_TEXTS: {
    const char *text = *(const char *const *)member;
    if (is_plain(text)) {
      append(buf, size, "%s", text);
    } else {
      append_quoted(buf, size, text);
    }
    break;
  }
  case FIELD_INTS: {
    const struct spec_ints *list = member;
    for (int i = 0; i < list->n; i++) {
      append(buf, size, "%s%d", i > 0 ? ", " : "[", list->v[i]);
    }
    append(buf, size, "]");
    break;
  }
  }
  return buf;
}

// ---- setting
// ---------------------------------------------------------------------------------------

static int refuse(const struct field *f, const struct scalar *v, const struct scalar_note *note,
                  struct err *e) {
  char expects[256];
  field_expects(f, expects, sizeof expects);
  if (scalar_is_empty(v)) {
    return err_set(e, EXIT_USAGE, "%s: no value, expected %s", f->path, expects);
  }
  return err_set(e, EXIT_USAGE, "%s: expected %s, found '%.80s'%s%s%s", f->path, expects, v->text,
                 note->hint[0] != '\0' ? " (" : "", note->hint, note->hint[0] != '\0' ? ")" : "");
}

static void warn_leading_zero(const struct field *f, const struct scalar *v, double read,
                              const char *place) {
  char number[32];
  log_warn("%s: %s: leading zero in '%s', read as decimal %s", place, f->path, v->text,
           scalar_print(read, number));
}

static int read_int(const struct field *f, const struct scalar *v, int *out, const char *place,
                    struct err *e) {
  struct scalar_note note;
  if (!scalar_int(v, out, &note) || *out < f->lo || *out > f->hi) {
    return refuse(f, v, &note, e);
  }
  if (note.leading_zero) {
    warn_leading_zero(f, v, *out, place);
  }
  return 0;
}

static int read_enum(const struct field *f, const struct scalar *v, int *out, struct err *e) {
  enum { MAX = 32 };
  char words[MAX][64];
  const char *names[MAX];
  int n = 0;
  while (n < MAX && field_choice(f, n, words[n], sizeof words[n]) != NULL) {
    if (strcmp(v->text, words[n]) == 0) {
      *out = n;
      return 0;
    }
    names[n] = words[n];
    n++;
  }
  struct scalar_note note = {0};
  const char *nearest = err_nearest(v->text, names, n);
  if (nearest != NULL) {
    snprintf(note.hint, sizeof note.hint, "did you mean '%s'?", nearest);
  }
  return refuse(f, v, &note, e);
}

int field_set(const struct field *f, struct spec *s, struct arena *a, const struct scalar *value,
              const char *place, struct err *e) {
  void *member = (char *)s + f->offset;
  struct scalar_note note = {0};
  // an empty string is a text's way of saying "none"; for everything else no value is a mistake
  bool is_text = f->kind == FIELD_TEXT || f->kind == FIELD_TEXTS;
  if (scalar_is_empty(value) && !(is_text && value->quoted)) {
    return refuse(f, value, &note, e);
  }
  switch (f->kind) {
  case FIELD_INT:
    return read_int(f, value, member, place, e);
  case FIELD_REAL: {
    double x;
    if (!scalar_real(value, &x, &note) || x < f->lo || x > f->hi) {
      return refuse(f, value, &note, e);
    }
    if (note.leading_zero) {
      warn_leading_zero(f, value, x, place);
    }
    *(double *)member = x;
    return 0;
  }
  case FIELD_BOOL:
    if (!scalar_bool(value, member, &note)) {
      return refuse(f, value, &note, e);
    }
    return 0;
  case FIELD_TEXT:
  case FIELD_TEXTS:
    if (strlen(value->text) > TEXT_MAX) {
      snprintf(note.hint, sizeof note.hint, "longer than %d characters", TEXT_MAX);
      return refuse(f, value, &note, e);
    }
    *(const char **)member = arena_strdup(a, value->text);
    return 0;
  case FIELD_ENUM: {
    int choice;
    if (read_enum(f, value, &choice, e) != 0) {
      return e->code;
    }
    memcpy(member, &choice, sizeof choice);
    return 0;
  }
  case FIELD_INTS:
    snprintf(note.hint, sizeof note.hint, "put it in brackets");
    return refuse(f, value, &note, e);
  }
  return 0;
}

// Texts are kept as one, with commas between them.
static int set_texts(const struct field *f, struct spec *s, struct arena *a,
                     const struct scalar *items, int n, struct err *e) {
  char text[TEXT_MAX + 1] = "", expects[256];
  size_t used = 0;
  for (int i = 0; i < n; i++) {
    size_t more = strlen(items[i].text) + (i > 0);
    const char *wrong = scalar_is_empty(&items[i])           ? "an empty one"
                        : strchr(items[i].text, ',') != NULL ? "one with a comma"
                        : used + more > TEXT_MAX             ? "more than 1024 characters"
                                                             : NULL;
    if (wrong != NULL) {
      return err_set(e, EXIT_USAGE, "%s: expected %s, found %s", f->path,
                     field_expects(f, expects, sizeof expects), wrong);
    }
    snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "," : "", items[i].text);
    used += more;
  }
  *(const char **)((char *)s + f->offset) = arena_strdup(a, text);
  return 0;
}

int field_set_list(const struct field *f, struct spec *s, struct arena *a,
                   const struct scalar *items, int n, const char *place, struct err *e) {
  struct spec_ints list = {.n = n};
  char expects[256];
  field_expects(f, expects, sizeof expects);
  if (f->kind == FIELD_TEXTS && n > 0) {
    return set_texts(f, s, a, items, n, e);
  }
  if (f->kind != FIELD_INTS && f->kind != FIELD_TEXTS) {
    return err_set(e, EXIT_USAGE, "%s: expected %s, found a list", f->path, expects);
  }
  if (n < 1 || n > (int)(sizeof list.v / sizeof list.v[0])) {
    return err_set(e, EXIT_USAGE, "%s: expected %s, found %s", f->path, expects,
                   n < 1 ? "an empty list" : "more");
  }
  for (int i = 0; i < n; i++) {
    if (read_int(f, &items[i], &list.v[i], place, e) != 0) {
      return e->code;
    }
  }
  memcpy((char *)s + f->offset, &list, sizeof list);
  return 0;
}

// ---- unknown keys
// ----------------------------------------------------------------------------------

static const char *last_component(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot != NULL ? dot + 1 : path;
}

// Lists "learn.actor or learn.critic": the groups that have a field of this name. Returns how many.
static int list_homes(const char *name, char *buf, size_t size) {
  int n = 0;
  buf[0] = '\0';
  for (int i = 0; i < nspec_field; i++) {
    const char *path = spec_fields[i].path;
    const char *last = last_component(path);
    if (strcmp(last, name) != 0) {
      continue;
    }
    const char *home = last == path ? "the top level" : path;
    int length = last == path ? (int)strlen(home) : (int)(last - path - 1);
    append(buf, size, "%s%.*s", n++ > 0 ? " or " : "", length, home);
  }
  return n;
}

// Fields and groups directly under a group ("" is the top), for messages.
static void list_children(const char *group, char *buf, size_t size) {
  size_t n = strlen(group);
  char seen[SPEC_KEY_MAX + 1] = "";
  buf[0] = '\0';
  for (int i = 0; i < nspec_field; i++) {
    const char *path = spec_fields[i].path;
    if (n > 0 && (strncmp(path, group, n) != 0 || path[n] != '.')) {
      continue;
    }
    const char *child = path + n + (n > 0);
    int length = (int)strcspn(child, ".");
    if (strncmp(seen, child, (size_t)length) == 0 && seen[length] == '\0') {
      continue; // the next field of a group just named
    }
    append(buf, size, "%s%.*s", buf[0] != '\0' ? ", " : "", length, child);
    snprintf(seen, sizeof seen, "%.*s", length, child);
  }
}

int field_unknown(const char *path, struct err *e) {
  const char *name = last_component(path);
  char parent[SPEC_KEY_MAX + 1];
  snprintf(parent, sizeof parent, "%.*s", name > path ? (int)(name - path - 1) : 0, path);
  bool parent_exists = parent[0] == '\0' || field_is_group(parent);
  char homes[512];

  for (int i = 0; i < nspec_synonym; i++) {
    if (strcmp(name, spec_synonyms[i].name) == 0) {
      const char *ours = spec_synonyms[i].path;
      const char *last = last_component(ours);
      bool top = last == ours;
      return err_set(e, EXIT_USAGE, "unknown key '%s' (it is called '%s' here and belongs %s%.*s)",
                     path, last, top ? "at the top level" : "under ",
                     top ? 0 : (int)(last - ours - 1), ours);
    }
  }
  // a good name in a group that exists but is not its own: misplaced rather than misspelt
  if (parent_exists && list_homes(name, homes, sizeof homes) > 0) {
    return err_set(e, EXIT_USAGE, "unknown key '%s' ('%s' belongs under %s)", path, name, homes);
  }
  // every field, and the groups that lead to them
  enum { MAX = 512 };
  const char *names[2 * MAX];
  char groups[MAX][SPEC_KEY_MAX + 1];
  int n = 0, ngroup = 0;
  for (int i = 0; i < nspec_field && i < MAX; i++) {
    const char *field = spec_fields[i].path;
    names[n++] = field;
    int length = (int)(last_component(field) - field) - 1;
    if (length > 0 && ngroup < MAX) {
      snprintf(groups[ngroup], sizeof groups[0], "%.*s", length, field);
      names[n++] = groups[ngroup++];
    }
  }
  const char *nearest = err_nearest(path, names, n);
  if (nearest != NULL) {
    return err_set(e, EXIT_USAGE, "unknown key '%s' (did you mean '%s'?)", path, nearest);
  }
  if (list_homes(name, homes, sizeof homes) > 0) {
    return err_set(e, EXIT_USAGE, "unknown key '%s' ('%s' belongs under %s)", path, name, homes);
  }
  if (!parent_exists) {
    parent[0] = '\0';
  }
  list_children(parent, homes, sizeof homes);
  return err_set(e, EXIT_USAGE, "unknown key '%s' (%s%s has: %s)", path,
                 parent[0] != '\0' ? "" : "the top level", parent, homes);
}
