// One value as it stands in a spec or on the command line, turned into a number or a truth value by
// rules that hold everywhere: decimal only, a point and no comma, no infinities, true and false
// only.
#pragma once
#include <stdbool.h>

struct scalar {
  const char *text;
  bool quoted; // stood in quotes: a string, never a number
};

struct scalar_note {
  char hint[128];    // why it was refused, "" when there is nothing to add
  bool leading_zero; // accepted, but "010" may have been meant as octal
};

bool scalar_is_empty(const struct scalar *s); // nothing, ~ or null: no value was given
bool scalar_real(const struct scalar *s, double *v, struct scalar_note *note);
bool scalar_int(const struct scalar *s, int *v, struct scalar_note *note); // 1E3 is a whole number
bool scalar_bool(const struct scalar *s, bool *v, struct scalar_note *note);

// The shortest decimal that reads back as v. buf holds at least 32 characters.
const char *scalar_print(double v, char *buf);
