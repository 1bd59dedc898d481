#include "motion/columns.h"
#include "motion/motion.h"
#include "base/file.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// text under construction; the caller reserves enough
struct text {
  char *data;
  size_t used, size;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(t->data + t->used, t->size - t->used, fmt, ap);
  va_end(ap);
  BUG_IF(n < 0 || (size_t)n >= t->size - t->used);
  t->used += (size_t)n;
}

// a YAML scalar that needs no knowledge of what is in it: single quotes, doubled inside
static void put_quoted(struct text *t, const char *s) {
  put(t, "'");
  for (; *s != '\0'; s++) {
    put(t, "%s%c", *s == '\'' ? "'" : "", *s == '\n' || *s == '\r' ? ' ' : *s);
  }
  put(t, "'");
}

static int write_sidecar(const struct clip *c, const struct robot *r, const struct columns *cols,
                         const char *path, const char *credit, struct arena *a, struct err *e) {
  struct text t = {.size = 1024 + 2 * strlen(credit)};
  for (int k = 0; k < cols->n; k++) {
    t.size += 16 + 2 * strlen(cols->name[k]);
  }
  t.data = arena_alloc(a, t.size);
  put(&t, "fps: %.9g\n", c->fps);
  put(&t, "quaternion: xyzw\n");
  // a name per column keeps the clip right on a robot whose joints stand in another order
  bool base = r->link[0].type == JOINT_FREE && r->nq == 7 + r->nlink - 1;
  if (base && r->nlink > 1) {
    put(&t, "joints:\n");
    for (int k = 7; k < cols->n; k++) {
      put(&t, "  - ");
      put_quoted(&t, cols->name[k]);
      put(&t, "\n");
    }
  }
  if (c->allow_jumps) {
    put(&t, "allow_jumps: true\n");
  }
  if (c->loop) {
    put(&t, "loop: true\n");
  }
  if (credit[0] != '\0') {
    put(&t, "credit: ");
    put_quoted(&t, credit);
    put(&t, "\n");
  }
  return file_write_atomic(sidecar_path(a, path), t.data, t.used, e);
}

int clip_write(const struct clip *c, const struct robot *r, const char *path, const char *credit,
               struct err *e) {
  BUG_IF(c->nq != r->nq);
  struct arena a;
  arena_init(&a);
  struct columns cols;
  columns_native(&cols, &a, r, CLIP_ORDER_XYZW);
  // "-1.23456789e-300,": 17 characters at most for 9 digits
  struct text t = {.size = (size_t)c->nframe * (size_t)cols.n * 18 + 1};
  t.data = arena_alloc(&a, t.size);
  for (int k = 0; k < c->nframe; k++) {
    const double *q = c->qpos + (size_t)k * (size_t)c->nq;
    for (int i = 0; i < cols.n; i++) {
      put(&t, "%.9g%c", q[cols.qadr[i]] + 0.0, i + 1 < cols.n ? ',' : '\n'); // + 0.0: no "-0"
    }
  }
  size_t n = strlen(path);
  bool gz = n > 3 && strcmp(path + n - 3, ".gz") == 0;
  // the sidecar first: a clip without it could be read with a wrong guess
  if (write_sidecar(c, r, &cols, path, credit, &a, e) == 0) {
    (gz ? file_write_gz : file_write_atomic)(path, t.data, t.used, e);
  }
  arena_release(&a);
  return e->code;
}
