#include "base/err.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...) {
  // the first error is the cause, later ones are usually its consequences
  if (e->code != 0) {
    return e->code;
  }
  e->code = code;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->text, sizeof e->text, fmt, ap);
  va_end(ap);
  return code;
}

int err_prefix(struct err *e, const char *fmt, ...) {
  if (e->code == 0) {
    return 0;
  }
  char old[sizeof e->text];
  memcpy(old, e->text, sizeof old);
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
  va_end(ap);
  // a message that no longer fits loses its end
  size_t used = n < 0 ? 0 : strlen(e->text);
  size_t room = sizeof e->text - 1 - used;
  size_t len = strlen(old);
  if (len > room) {
    len = room;
  }
  memcpy(e->text + used, old, len);
  e->text[used + len] = '\0';
  return e->code;
}

int err_report(const struct err *e) {
  if (e->code != 0) {
    fprintf(stderr, "dsim: %s\n", e->text);
  }
  return e->code;
}

enum { WORD_MAX = 96 };

// Edits (insert, delete, replace, swap of neighbours) that turn a into b: swaps count as one
// because they are what fingers do. Both shorter than WORD_MAX.
static int edit_distance(const char *a, const char *b) {
  int na = (int)strlen(a), nb = (int)strlen(b);
  int before[WORD_MAX], last[WORD_MAX], now[WORD_MAX];
  memset(before, 0, sizeof before);
  for (int j = 0; j <= nb; j++) {
    last[j] = j;
  }
  for (int i = 1; i <= na; i++) {
    now[0] = i;
    for (int j = 1; j <= nb; j++) {
      int best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best) {
        best = last[j] + 1;
      }
      if (now[j - 1] + 1 < best) {
        best = now[j - 1] + 1;
      }
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
          before[j - 2] + 1 < best) {
        best = before[j - 2] + 1;
      }
      now[j] = best;
    }
    memcpy(before, last, sizeof before);
    memcpy(last, now, sizeof last);
  }
  return last[nb];
}

const char *err_nearest(const char *word, const char *const *names, int n) {
  if (strlen(word) >= WORD_MAX) {
    return NULL;
  }
  const char *best = NULL;
  int best_distance = 4;
  for (int i = 0; i < n; i++) {
    if (strlen(names[i]) >= WORD_MAX) {
      continue;
    }
    int d = edit_distance(word, names[i]);
    if (d < best_distance && 2 * d < (int)strlen(word)) {
      best = names[i];
      best_distance = d;
    }
  }
  return best;
}

void bug_abort(const char *file, int line, const char *what) {
  fprintf(stderr, "dsim: bug: %s:%d: %s\n", file, line, what);
  abort();
}
