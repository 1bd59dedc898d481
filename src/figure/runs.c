#include "figure/runs.h"
#include "base/file.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 10 };

static const char *const run_files[] = {"progress.csv",
                                        "eval.csv",
                                        "transfer.csv",
                                        "strip.csv",
                                        "gradvar.csv",
                                        "table.csv",
                                        "transfer_checkpoints.csv"};
enum { NRUN_FILE = sizeof run_files / sizeof *run_files };

struct search {
  struct arena *arena;
  struct err *err;
  const char *skip;
  struct run *run;
  int n, capacity;
};

static char *join(struct arena *a, const char *dir, const char *name) {
  size_t size = strlen(dir) + strlen(name) + 2;
  char *s = arena_alloc(a, size);
  snprintf(s, size, "%s/%s", dir, name);
  return s;
}

const char *run_file(const struct run *r, struct arena *a, const char *name) {
  const char *path = join(a, r->dir, name);
  return file_exists(path) ? path : NULL;
}

bool run_same_series(const struct run *a, const struct run *b) {
  return strcmp(a->collection, b->collection) == 0 && strcmp(a->experiment, b->experiment) == 0 &&
         strcmp(a->variant, b->variant) == 0;
}

static bool is_seed(const char *s) {
  if (strncmp(s, "seed", 4) != 0 || !isdigit((unsigned char)s[4])) {
    return false;
  }
  return s[4 + strspn(s + 4, "0123456789")] == 0;
}

// Names of a run from its folder: the last parts of the path below root; parts that are missing
// there (root is itself an experiment, or a run) come from root's own absolute path.
static void name_run(struct search *s, struct run *r, const char *root, const char *below) {
  char full[PATH_MAX + 2], absolute[PATH_MAX];
  if (!realpath(root, absolute)) {
    absolute[0] = 0;
  }
  snprintf(full, sizeof full, "%s", absolute);
  size_t nroot = strlen(full);
  if (*below) {
    snprintf(full + nroot, sizeof full - nroot, "/%s", below);
  }

  char *last = strrchr(full, '/');
  r->seed = 0;
  if (last && is_seed(last + 1)) {
    r->seed = atoi(last + 5);
    *last = 0;
  }
  last = strrchr(full, '/');
  r->variant = arena_strdup(s->arena, last ? last + 1 : "");
  if (last) {
    *last = 0;
  }
  last = strrchr(full, '/');
  r->experiment = arena_strdup(s->arena, last ? last + 1 : "");
  if (last) {
    *last = 0;
  }
  r->collection = strlen(full) > nroot ? arena_strdup(s->arena, full + nroot + 1) : "";
}

static void add_run(struct search *s, const char *root, const char *below, const char *dir) {
  if (s->n == s->capacity) {
    int capacity = s->capacity ? 2 * s->capacity : 64;
    struct run *grown = ARENA_NEW(s->arena, struct run, capacity);
    if (s->n) {
      memcpy(grown, s->run, sizeof *grown * (size_t)s->n);
    }
    s->run = grown;
    s->capacity = capacity;
  }
  struct run *r = &s->run[s->n++];
  r->dir = dir;
  name_run(s, r, root, below);
}

static void search_folder(struct search *s, const char *root, const char *below, int depth) {
  const char *dir = *below ? join(s->arena, root, below) : arena_strdup(s->arena, root);
  bool is_run = false;
  for (int i = 0; i < NRUN_FILE; i++) {
    is_run |= file_exists(join(s->arena, dir, run_files[i]));
  }
  if (is_run) {
    add_run(s, root, below, dir);
  }

  struct dirent **entry;
  int n = scandir(dir, &entry, NULL, alphasort);
  if (n < 0) {
    if (depth == 0) {
      err_set(s->err, EXIT_USAGE, "%s: cannot read this folder: %s", dir, strerror(errno));
    }
    return;
  }
  for (int i = 0; i < n; i++) {
    const char *name = entry[i]->d_name;
    struct stat st;
    const char *path = join(s->arena, dir, name);
    bool skipped = name[0] == '.' || (depth == 0 && s->skip && strcmp(name, s->skip) == 0);
    if (!skipped && depth < MAX_DEPTH && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
      search_folder(s, root, *below ? join(s->arena, below, name) : arena_strdup(s->arena, name),
                    depth + 1);
    }
    free(entry[i]);
  }
  free(entry);
}

// collections whole, although their folders may lie within each other
static int compare_runs(const void *pa, const void *pb) {
  const struct run *a = pa, *b = pb;
  int d = strverscmp(a->collection, b->collection);
  d = d ? d : strverscmp(a->experiment, b->experiment);
  d = d ? d : strverscmp(a->variant, b->variant);
  return d ? d : a->seed - b->seed;
}

int runs_find(struct run **run, int *n, struct arena *a, const char *root, const char *skip,
              struct err *e) {
  struct search s = {.arena = a, .err = e, .skip = skip};
  search_folder(&s, root, "", 0);
  if (s.n > 1) {
    qsort(s.run, (size_t)s.n, sizeof *s.run, compare_runs);
  }
  *run = s.run;
  *n = s.n;
  return e->code;
}
