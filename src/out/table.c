#include "out/table.h"
#include "base/err.h"
#include <math.h>
#include <string.h>

static const char rule_mark[] = "-rule-"; // its address marks a rule, not its letters

void table_init(struct table *t, struct arena *a) {
  *t = (struct table){.arena = a};
}

void table_column(struct table *t, const char *name, const char *unit, int decimals) {
  BUG_IF(t->ncol == TABLE_MAX_COLUMNS || t->ncell > 0);
  t->column[t->ncol++] = (struct table_column){name, unit, decimals};
}

static void add_cell(struct table *t, const char *text, bool right) {
  if (t->ncell == t->capacity) {
    int capacity = t->capacity ? 2 * t->capacity : 8 * t->ncol;
    struct table_cell *cell = ARENA_NEW(t->arena, struct table_cell, capacity);
    if (t->ncell) {
      memcpy(cell, t->cell, sizeof *cell * (size_t)t->ncell);
    }
    t->cell = cell;
    t->capacity = capacity;
  }
  t->cell[t->ncell++] = (struct table_cell){text, right};
}

void table_text(struct table *t, const char *s) {
  add_cell(t, arena_strdup(t->arena, s), false);
}

static void format_real(char *buf, size_t size, double x, int decimals) {
  if (isnan(x)) {
    snprintf(buf, size, "-");
  } else if (fabs(x) >= 1e12) { // a column of digits says less than an exponent
    snprintf(buf, size, "%.3g", x);
  } else {
    snprintf(buf, size, "%.*f", decimals, x);
  }
}

void table_real(struct table *t, double x) {
  char buf[64];
  format_real(buf, sizeof buf, x, t->column[t->ncell % t->ncol].decimals);
  add_cell(t, arena_strdup(t->arena, buf), true);
}

void table_int(struct table *t, long long x) {
  char buf[32];
  snprintf(buf, sizeof buf, "%lld", x);
  add_cell(t, arena_strdup(t->arena, buf), true);
}

void table_mean_std(struct table *t, double mean, double std) {
  int decimals = t->column[t->ncell % t->ncol].decimals;
  char m[64], s[64], buf[136];
  format_real(m, sizeof m, mean, decimals);
  format_real(s, sizeof s, std, decimals);
  snprintf(buf, sizeof buf, isnan(std) ? "%s" : "%s ± %s", m, s);
  add_cell(t, arena_strdup(t->arena, buf), true);
}

void table_rule(struct table *t) {
  BUG_IF(t->ncell % t->ncol != 0);
  for (int c = 0; c < t->ncol; c++) {
    add_cell(t, rule_mark, false);
  }
}

// characters on the screen: UTF-8's continuation bytes take no room
static int text_width(const char *s) {
  int n = 0;
  for (; *s; s++) {
    n += ((unsigned char)*s & 0xC0) != 0x80;
  }
  return n;
}

static void print_padded(FILE *out, const char *s, int width, bool right, bool last) {
  int pad = width - text_width(s);
  // no blanks at a line's end
  bool nothing = last && !*s;
  fprintf(out, "%*s%s%*s", right && !nothing ? pad : 0, "", s, right || last ? 0 : pad, "");
}

static void print_dashes(FILE *out, int n) {
  while (n-- > 0) {
    fputc('-', out);
  }
}

void table_print(const struct table *t, FILE *out) {
  BUG_IF(t->ncol == 0 || t->ncell % t->ncol != 0);
  int width[TABLE_MAX_COLUMNS], total = 2 * (t->ncol - 1);
  bool right[TABLE_MAX_COLUMNS], any_unit = false;
  for (int c = 0; c < t->ncol; c++) {
    int w = text_width(t->column[c].name), u = text_width(t->column[c].unit);
    any_unit |= u > 0;
    width[c] = w > u ? w : u;
    right[c] = false;
    for (int i = c; i < t->ncell; i += t->ncol) {
      if (t->cell[i].text != rule_mark) {
        int n = text_width(t->cell[i].text);
        width[c] = n > width[c] ? n : width[c];
        right[c] |= t->cell[i].right;
      }
    }
    total += width[c];
  }

  // header: names, then units; a heading stands over its numbers
  for (int c = 0; c < t->ncol; c++) {
    bool last = c == t->ncol - 1;
    print_padded(out, t->column[c].name, width[c], right[c], last);
    fputs(last ? "\n" : "  ", out);
  }
  for (int c = 0; any_unit && c < t->ncol; c++) {
    bool last = c == t->ncol - 1;
    print_padded(out, t->column[c].unit, width[c], right[c], last);
    fputs(last ? "\n" : "  ", out);
  }
  print_dashes(out, total);
  fputc('\n', out);

  for (int i = 0; i < t->ncell; i++) {
    int c = i % t->ncol;
    bool last = c == t->ncol - 1;
    if (t->cell[i].text == rule_mark) {
      if (c == 0) {
        print_dashes(out, total);
      }
      fputs(last ? "\n" : "", out);
      continue;
    }
    print_padded(out, t->cell[i].text, width[c], t->cell[i].right, last);
    fputs(last ? "\n" : "  ", out);
  }
}
