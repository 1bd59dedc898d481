#include "spec/scalar.h"
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool one_of(const char *text, const char *const *words) {
  for (; *words != NULL; words++) {
    if (strcasecmp(text, *words) == 0) {
      return true;
    }
  }
  return false;
}

bool scalar_is_empty(const struct scalar *s) {
  static const char *const nothing[] = {"~", "null", NULL};
  return s->text[0] == '\0' || (!s->quoted && one_of(s->text, nothing));
}

static const char *skip_digits(const char *p) {
  while (isdigit((unsigned char)*p)) {
    p++;
  }
  return p;
}

// [+-] digits [. digits] [e [+-] digits], with a digit before or after the point
static bool is_decimal(const char *text) {
  const char *p = text + (*text == '+' || *text == '-');
  const char *whole = p;
  p = skip_digits(p);
  bool digits = p > whole;
  if (*p == '.') {
    const char *fraction = p + 1;
    p = skip_digits(fraction);
    digits = digits || p > fraction;
  }
  if (digits && (*p == 'e' || *p == 'E')) {
    p += 1 + (p[1] == '+' || p[1] == '-');
    const char *exponent = p;
    p = skip_digits(p);
    digits = p > exponent;
  }
  return digits && *p == '\0';
}

// Copies text without one kind of character; what remains may be the number that was meant.
static const char *without(const char *text, char unwanted, char buf[32]) {
  int n = 0;
  for (; *text != '\0' && n < 31; text++) {
    if (*text != unwanted) {
      buf[n++] = *text;
    }
  }
  buf[n] = '\0';
  return buf;
}

static void explain_number(const struct scalar *s, char hint[128]) {
  static const char *const infinite[] = {".inf", "-.inf", "+.inf", "inf",  "-inf",
                                         "+inf", ".nan",  "nan",   "-nan", NULL};
  const char *t = s->text;
  char buf[32];
  const char *comma = strchr(t, ',');
  if (one_of(t, infinite)) {
    snprintf(hint, 128, "it must be finite");
  } else if (t[0] == '0' && (t[1] == 'x' || t[1] == 'X')) {
    snprintf(hint, 128, "hexadecimal is not accepted");
  } else if (strchr(t, '_') != NULL && is_decimal(without(t, '_', buf))) {
    snprintf(hint, 128, "write %s", buf);
  } else if (comma != NULL && strchr(comma + 1, ',') == NULL && is_decimal(without(t, ',', buf))) {
    snprintf(hint, 128, "a decimal point is written '.', not ','");
  }
}

bool scalar_real(const struct scalar *s, double *v, struct scalar_note *note) {
  *note = (struct scalar_note){0};
  if (s->quoted) {
    snprintf(note->hint, sizeof note->hint, "string where number expected: take the quotes away");
    return false;
  }
  if (!is_decimal(s->text)) {
    explain_number(s, note->hint);
    return false;
  }
  *v = strtod(s->text, NULL);
  if (!isfinite(*v)) {
    snprintf(note->hint, sizeof note->hint, "too large for a number");
    return false;
  }
  const char *p = s->text + (s->text[0] == '+' || s->text[0] == '-');
  note->leading_zero = p[0] == '0' && isdigit((unsigned char)p[1]);
  return true;
}

bool scalar_int(const struct scalar *s, int *v, struct scalar_note *note) {
  double x;
  if (!scalar_real(s, &x, note)) {
    return false;
  }
  if (x != floor(x)) {
    return false;
  }
  if (x < INT_MIN || x > INT_MAX) {
    snprintf(note->hint, sizeof note->hint, "too large for a whole number");
    return false;
  }
  *v = (int)x;
  return true;
}

bool scalar_bool(const struct scalar *s, bool *v, struct scalar_note *note) {
  static const char *const like_true[] = {"true", "yes", "on", "y", "1", NULL};
  static const char *const like_false[] = {"false", "no", "off", "n", "0", NULL};
  *note = (struct scalar_note){0};
  if (s->quoted) {
    snprintf(note->hint, sizeof note->hint, "take the quotes away");
    return false;
  }
  *v = strcmp(s->text, "true") == 0;
  if (*v || strcmp(s->text, "false") == 0) {
    return true;
  }
  if (one_of(s->text, like_true)) {
    snprintf(note->hint, sizeof note->hint, "write true");
  } else if (one_of(s->text, like_false)) {
    snprintf(note->hint, sizeof note->hint, "write false");
  }
  return false;
}

const char *scalar_print(double v, char *buf) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(buf, 32, "%.*g", digits, v);
    if (strtod(buf, NULL) == v) {
      break;
    }
  }
  return buf;
}
