// What the parts of the sweep reader share: sweep.c (command line, finding), sweep_file.c (the
// file), sweep_cells.c (the product).
#pragma once
#include "cmd/sweep.h"
#include "motion/ytree.h"
#include "spec/field.h"

// A field and what it becomes: a node of the file, or text from the command line.
struct assign {
  const struct field *field;
  const struct ytree *node; // NULL: text counts
  const char *text;         // "path=value"
};
struct assigns {
  int n, room;
  struct assign *v;
};

struct axis {
  const struct field *field;
  int n;
  struct assign *value; // (n)
};

struct named {
  const char *name; // "": no part of the variant's name
  const struct ytree *place;
  struct assigns assigns;
};

struct sweep_reader {
  struct arena *arena;
  struct err *err;
  const struct ytree *file; // NULL: a plain spec
  struct sweep *sweep;
  struct spec base;
  struct assigns shared;
  int nnamed, naxis;
  struct named *named;
  struct axis axis[SWEEP_MAX_AXES];
  int first_seed, last_seed;
};

// printf into the arena
const char *sweep_format(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void sweep_add(struct sweep_reader *r, struct assigns *list, struct assign one);
const struct assign *sweep_find(const struct assigns *list, const struct field *f); // or NULL
const struct axis *sweep_axis(const struct sweep_reader *r, const struct field *f); // or NULL
// Why a field cannot be set by a sweep; NULL: it can.
const char *sweep_reserved(const struct field *f);
bool sweep_is_name(const char *name); // of a folder
// Gives a field of the spec its value.
int sweep_apply(struct sweep_reader *r, struct spec *s, const struct assign *x);

// Is this a sweep, not a spec? The folder says so, or a key that specs do not have.
bool sweep_is_sweep(const struct ytree *t);
// r->file into r: base, shared fields, axes, variants, seeds, steps, metrics.
int sweep_read_file(struct sweep_reader *r);
// What a sweep does that does not say otherwise.
void sweep_default_steps(struct sweep *s);
void sweep_default_metrics(struct sweep *s);

// r into the variants and cells of r->sweep.
int sweep_make_cells(struct sweep_reader *r);
