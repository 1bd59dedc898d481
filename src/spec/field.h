// spec.def as a table: what the reader, the echo, the help and the hints walk over.
#pragma once
#include "spec/scalar.h"
#include "spec/spec.h"
#include <stddef.h>

enum field_kind {
  FIELD_INT,
  FIELD_REAL,
  FIELD_BOOL,
  FIELD_TEXT,
  FIELD_TEXTS,
  FIELD_ENUM,
  FIELD_INTS
};

struct field {
  enum field_kind kind;
  const char *path;
  size_t offset;       // of the member in struct spec
  double lo, hi;       // INT, REAL, INTS
  const char *unit;    // "" for none
  const char *choices; // ENUM: "a|b|c", constants 0, 1, 2
  const char *help;
};
extern const struct field spec_fields[];
extern const int nspec_field;

enum { SPEC_KEY_MAX = 64 }; // characters of a path

const struct field *field_find(const char *path); // NULL: no such field
bool field_is_group(const char *path);            // "learn", "learn.actor"
// "a whole number from 1 to 512 steps": what a value must be, for messages and the help.
const char *field_expects(const struct field *f, char *buf, size_t size);
// The value in s as it would stand in a YAML file.
const char *field_print(const struct field *f, const struct spec *s, char *buf, size_t size);

// Sets a field from one value, or from the items of a list. EXIT_USAGE without a place: the caller
// prefixes it. place is for warnings.
int field_set(const struct field *f, struct spec *s, struct arena *a, const struct scalar *value,
              const char *place, struct err *e);
int field_set_list(const struct field *f, struct spec *s, struct arena *a,
                   const struct scalar *items, int n, const char *place, struct err *e);

// "unknown key 'x' (did you mean 'y'?)", or where a key of that name belongs, or what the group
// has.
int field_unknown(const char *path, struct err *e);

// Word i of "a|b|c", or NULL.
const char *field_choice(const struct field *f, int i, char *buf, size_t size);
// The choice that stands in s, for an ENUM field.
int field_enum_value(const struct field *f, const struct spec *s);

// Names that other toolkits give to these settings, used in hints only.
struct field_synonym {
  const char *name, *path;
};
extern const struct field_synonym spec_synonyms[];
extern const int nspec_synonym;
