// A small YAML file as a tree in the arena: sidecars and lists of clips. Every node knows its
// place, so that errors can name file:line:column.
//
// Taken: mappings, lists and scalars, nested at most 8 deep. Refused: anchors, aliases, tags,
// several documents, a key twice.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>

enum ytree_kind { YTREE_TEXT, YTREE_LIST, YTREE_MAP };

struct ytree {
  enum ytree_kind kind;
  const char *path;    // of the file
  int line, column;    // from 1
  const char *text;    // YTREE_TEXT
  bool quoted;         // YTREE_TEXT
  int n;               // entries of a list or map
  struct ytree **key;  // (n) keys of a map, in the file's order
  struct ytree **item; // (n) values of a map, entries of a list
};

// An empty file is an empty map. EXIT_USAGE.
int ytree_read(struct ytree **tree, struct arena *a, const char *path, struct err *e);

const struct ytree *ytree_get(const struct ytree *map, const char *key); // NULL when absent
// Refuses keys outside names[0..n), with the nearest one.
int ytree_check_keys(const struct ytree *map, const char *const *names, int n, struct err *e);

// Typed readers. what names the value in the message ("fps"). Errors leave *x alone.
int ytree_real(double *x, const struct ytree *t, const char *what, struct err *e);
int ytree_int(int *x, const struct ytree *t, const char *what, struct err *e);
int ytree_bool(bool *x, const struct ytree *t, const char *what, struct err *e);
int ytree_text(const char **x, const struct ytree *t, const char *what, struct err *e);
