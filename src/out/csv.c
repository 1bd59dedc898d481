#include "out/csv.h"
#include "base/file.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CSV_MAX_BYTES ((size_t)4 << 30)

// numbers are written and read in the C locale, even if a library has called setlocale
static locale_t c_locale(void) {
  static locale_t loc;
  if (!loc) {
    loc = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  }
  return loc;
}

// ---- headers

static const char *const *split_names(struct arena *a, const char *header, int *n) {
  int count = 1;
  for (const char *p = header; *p; p++) {
    count += *p == ',';
  }
  char **name = ARENA_NEW(a, char *, count);
  char *text = arena_strdup(a, header), *rest = NULL;
  *n = 0;
  for (char *s = strtok_r(text, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
    name[(*n)++] = s;
  }
  return (const char *const *)name;
}

static void list_missing(char *out, size_t size, const char *const *from, int nfrom,
                         const char *const *in, int nin) {
  out[0] = 0;
  for (int i = 0; i < nfrom; i++) {
    bool found = false;
    for (int j = 0; j < nin; j++) {
      found |= strcmp(from[i], in[j]) == 0;
    }
    if (!found) {
      size_t used = strlen(out);
      snprintf(out + used, size - used, "%s'%s'", used ? ", " : "", from[i]);
    }
  }
}

// says which columns differ, not only that they do
static int header_differs(const char *path, const char *have, const char *want, struct err *e) {
  struct arena a;
  arena_init(&a);
  int nhave, nwant;
  const char *const *h = split_names(&a, have, &nhave);
  const char *const *w = split_names(&a, want, &nwant);
  char lacks[400], extra[400];
  list_missing(lacks, sizeof lacks, w, nwant, h, nhave);
  list_missing(extra, sizeof extra, h, nhave, w, nwant);
  arena_release(&a);
  if (!lacks[0] && !extra[0]) {
    return err_set(e, EXIT_USAGE,
                   "%s: columns are in another order: file has '%.300s', expected '%.300s'", path,
                   have, want);
  }
  return err_set(e, EXIT_USAGE,
                 "%s: cannot append, its columns differ:%s%s%s%s%s (move the file away, or start "
                 "the run anew with --overwrite)",
                 path, lacks[0] ? " file lacks " : "", lacks, lacks[0] && extra[0] ? ";" : "",
                 extra[0] ? " file has unknown " : "", extra);
}

// ---- writing

static int write_all(int fd, const char *data, size_t size, const char *path, struct err *e) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return err_set(e, EXIT_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

// bytes up to and including the last newline
static size_t whole_lines(const char *data, size_t size) {
  while (size > 0 && data[size - 1] != '\n') {
    size--;
  }
  return size;
}

// an existing file: same columns, and it ends with a whole row
static int check_existing(const char *path, const char *header, bool *empty, struct err *e) {
  struct arena a;
  arena_init(&a);
  char *data;
  size_t size;
  int rc = file_read(&a, path, CSV_MAX_BYTES, &data, &size, e);
  size_t whole = rc ? 0 : whole_lines(data, size);
  *empty = whole == 0;
  if (!rc && !*empty) {
    size_t len = strcspn(data, "\r\n");
    data[len] = 0;
    if (strcmp(data, header) != 0) {
      rc = header_differs(path, data, header, e);
    }
  }
  if (!rc && whole < size) {
    log_warn("%s: its last line is incomplete and is dropped", path);
    if (truncate(path, (off_t)whole) != 0) {
      rc = err_set(e, EXIT_IO, "%s: cannot truncate: %s", path, strerror(errno));
    }
  }
  arena_release(&a);
  return rc;
}

int csv_open(struct csv *c, const char *path, const char *header, struct err *e) {
  c->fd = -1;
  c->col = 0;
  c->used = 0;
  c->ncol = 1;
  for (const char *p = header; *p; p++) {
    c->ncol += *p == ',';
  }
  BUG_IF(strlen(path) >= sizeof c->path);
  strcpy(c->path, path);

  // folder first, so that callers need not care
  char folder[sizeof c->path];
  strcpy(folder, path);
  char *slash = strrchr(folder, '/');
  if (slash && slash != folder) {
    *slash = 0;
    if (dir_make(folder, e)) {
      return e->code;
    }
  }

  bool empty = true;
  if (file_exists(path) && check_existing(path, header, &empty, e)) {
    return e->code;
  }
  c->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (c->fd < 0) {
    return err_set(e, EXIT_IO, "%s: cannot open: %s", path, strerror(errno));
  }
  if (empty) {
    char line[sizeof c->row];
    int n = snprintf(line, sizeof line, "%s\n", header);
    BUG_IF(n < 0 || (size_t)n >= sizeof line);
    if (write_all(c->fd, line, (size_t)n, path, e)) {
      csv_close(c);
    }
  }
  return e->code;
}

static void add_cell(struct csv *c, const char *s, size_t len) {
  BUG_IF(c->col >= c->ncol);
  BUG_IF(c->used + len + 1 >= sizeof c->row);
  if (c->col++) {
    c->row[c->used++] = ',';
  }
  memcpy(c->row + c->used, s, len);
  c->used += len;
}

static void add_number(struct csv *c, double x, int digits) {
  // printf may write "-nan", which is the same to a reader but not to a byte comparison
  if (isnan(x)) {
    add_cell(c, "nan", 3);
    return;
  }
  char buf[40];
  locale_t old = uselocale(c_locale());
  int n = snprintf(buf, sizeof buf, "%.*g", digits, x);
  uselocale(old);
  add_cell(c, buf, (size_t)n);
}

void csv_real(struct csv *c, double x) {
  add_number(c, x, 9);
}

void csv_exact(struct csv *c, double x) {
  add_number(c, x, 17);
}

void csv_real_or_missing(struct csv *c, double x) {
  if (isnan(x)) {
    csv_missing(c);
  } else {
    csv_real(c, x);
  }
}

void csv_int(struct csv *c, long long x) {
  char buf[32];
  int n = snprintf(buf, sizeof buf, "%lld", x);
  add_cell(c, buf, (size_t)n);
}

void csv_text(struct csv *c, const char *s) {
  if (!s[strcspn(s, ",\"\r\n")]) {
    add_cell(c, s, strlen(s));
    return;
  }
  char buf[2048];
  size_t n = 0;
  buf[n++] = '"';
  for (; *s; s++) {
    BUG_IF(n + 3 >= sizeof buf);
    if (*s == '"') {
      buf[n++] = '"';
    }
    // a cell stays on its row: readers go by lines
    buf[n++] = *s == '\n' || *s == '\r' ? ' ' : *s;
  }
  buf[n++] = '"';
  add_cell(c, buf, n);
}

void csv_missing(struct csv *c) {
  add_cell(c, "", 0);
}

int csv_end(struct csv *c, struct err *e) {
  BUG_IF(c->col != c->ncol);
  c->row[c->used++] = '\n';
  int rc = write_all(c->fd, c->row, c->used, c->path, e);
  c->col = 0;
  c->used = 0;
  return rc;
}

int csv_break(struct csv *c, struct err *e) {
  BUG_IF(c->col != 0);
  return write_all(c->fd, "\n\n", 2, c->path, e);
}

void csv_close(struct csv *c) {
  if (c->fd >= 0) {
    close(c->fd);
  }
  c->fd = -1;
}

// ---- reading

// Splits one line (NUL-terminated, in place) into at most max cells. Returns the number found, or
// -1 for an open quote.
static int split_cells(char *line, const char **cell, int max) {
  int n = 0;
  for (char *p = line;; p++) {
    char *out = p;
    if (n < max) {
      cell[n] = p;
    }
    n++;
    if (*p == '"') {
      for (p++;; p++) {
        if (!*p) {
          return -1;
        }
        if (*p == '"' && *++p != '"') {
          break;
        }
        *out++ = *p;
      }
    }
    while (*p && *p != ',') {
      *out++ = *p++;
    }
    bool last = !*p;
    *out = 0;
    if (last) {
      return n;
    }
  }
}

int csv_read(struct csv_table *t, struct arena *a, const char *path, struct err *e) {
  char *data;
  size_t size;
  *t = (struct csv_table){.path = arena_strdup(a, path)};
  if (file_read(a, path, CSV_MAX_BYTES, &data, &size, e)) {
    return e->code;
  }
  size = whole_lines(data, size);
  data[size] = 0;
  if (size == 0) {
    return err_set(e, EXIT_USAGE, "%s:1: no header line", path);
  }

  // counted first, so that each array is allocated once
  long long nline = 0;
  for (size_t i = 0; i < size; i++) {
    nline += data[i] == '\n';
  }
  t->ncol = 1;
  for (const char *p = data; *p != '\n'; p++) {
    t->ncol += *p == ',';
  }
  t->name = ARENA_NEW(a, const char *, t->ncol);
  t->cell = ARENA_NEW(a, const char *, (size_t)(nline - 1) * (size_t)t->ncol + 1);

  char *line = data;
  for (long long i = 0; i < nline; i++) {
    char *end = strchr(line, '\n');
    if (!end) {
      return err_set(e, EXIT_USAGE, "%s:%lld: not a text file", path, i + 1);
    }
    *end = 0;
    if (end > line && end[-1] == '\r') {
      end[-1] = 0;
    }
    const char **cell = i == 0 ? t->name : t->cell + (size_t)t->nrow * (size_t)t->ncol;
    int n = *line || t->ncol == 1 ? split_cells(line, cell, t->ncol) : 0;
    if (n < 0) {
      return err_set(e, EXIT_USAGE, "%s:%lld: a quote is not closed", path, i + 1);
    }
    if (i == 0) {
      t->ncol = n;
    } else if (n == t->ncol) {
      t->nrow++;
    } else if (n != 0) { // empty lines are nothing
      return err_set(e, EXIT_USAGE, "%s:%lld: %d cells, but the header has %d columns", path, i + 1,
                     n, t->ncol);
    }
    line = end + 1;
  }
  for (int i = 0; i < t->ncol; i++) {
    if (csv_find(t, t->name[i]) != i) {
      return err_set(e, EXIT_USAGE, "%s:1: column '%s' appears twice", path, t->name[i]);
    }
  }
  return 0;
}

int csv_find(const struct csv_table *t, const char *name) {
  for (int i = 0; i < t->ncol; i++) {
    if (strcmp(t->name[i], name) == 0) {
      return i;
    }
  }
  return -1;
}

const char *csv_cell(const struct csv_table *t, int row, int col) {
  BUG_IF(row < 0 || row >= t->nrow || col < 0 || col >= t->ncol);
  return t->cell[(size_t)row * (size_t)t->ncol + (size_t)col];
}

int csv_reals(double **x, struct arena *a, const struct csv_table *t, const char *name,
              struct err *e) {
  int col = csv_find(t, name);
  if (col < 0) {
    const char *near = err_nearest(name, t->name, t->ncol);
    return err_set(e, EXIT_USAGE, "%s:1: no column '%s'%s%s%s", t->path, name,
                   near ? " (nearest: '" : "", near ? near : "", near ? "')" : "");
  }
  *x = ARENA_NEW(a, double, t->nrow + 1);
  locale_t old = uselocale(c_locale());
  for (int i = 0; i < t->nrow; i++) {
    const char *s = csv_cell(t, i, col);
    char *end;
    (*x)[i] = *s ? strtod(s, &end) : NAN;
    if (*s && (end == s || *end)) {
      err_set(e, EXIT_USAGE, "%s: row %d, column '%s': expected a number, got '%.40s'", t->path,
              i + 1, name, s);
      break;
    }
  }
  uselocale(old);
  return e->code;
}

// ---- resuming

// offset of the byte after the header and the first nrow rows, or 0 if there are fewer
static size_t offset_of_row(const char *data, size_t size, long long nrow) {
  for (size_t i = 0; i < size; i++) {
    if (data[i] == '\n' && nrow-- == 0) {
      return i + 1;
    }
  }
  return 0;
}

int csv_keep_rows(const char *path, long long nrow, struct err *e) {
  if (!file_exists(path)) {
    return nrow == 0 ? 0
                     : err_set(e, EXIT_IO, "%s: missing, cannot resume at row %lld", path, nrow);
  }
  struct arena a;
  arena_init(&a);
  char *data;
  size_t size;
  int rc = file_read(&a, path, CSV_MAX_BYTES, &data, &size, e);
  size_t keep = rc ? 0 : offset_of_row(data, size, nrow);
  arena_release(&a);
  if (rc) {
    return rc;
  }
  if (keep == 0 && nrow > 0) {
    return err_set(e, EXIT_IO, "%s: has fewer than the %lld rows that the checkpoint knows of",
                   path, nrow);
  }
  if (truncate(path, (off_t)keep) != 0) {
    return err_set(e, EXIT_IO, "%s: cannot truncate: %s", path, strerror(errno));
  }
  return 0;
}

int csv_keep_below(const char *path, const char *column, double limit, struct err *e) {
  if (!file_exists(path)) {
    return 0;
  }
  struct arena a;
  arena_init(&a);
  struct csv_table t;
  double *x = NULL;
  int keep = 0;
  int rc = csv_read(&t, &a, path, e);
  if (!rc) {
    rc = csv_reals(&x, &a, &t, column, e);
  }
  while (!rc && keep < t.nrow && x[keep] < limit) {
    keep++;
  }
  arena_release(&a);
  return rc ? rc : csv_keep_rows(path, keep, e);
}
