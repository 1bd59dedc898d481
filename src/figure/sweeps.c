#include "figure/sweeps.h"
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 6, MAX_SWEEPS = 256 };

struct search {
  struct arena *arena;
  const char *skip, *prefix;
  struct sweep_dir *found;
  int n;
};

static void add_sweep(struct search *s, const char *dir, const char *below) {
  const char *slash = strrchr(dir, '/'), *last = slash ? slash + 1 : dir;
  if (s->n == MAX_SWEEPS || strncmp(last, s->prefix, strlen(s->prefix)) != 0) {
    return;
  }
  const char *name = strncmp(below, "ablate/", 7) == 0 ? below + 7 : below;
  s->found[s->n++] =
      (struct sweep_dir){arena_strdup(s->arena, dir), arena_strdup(s->arena, *name ? name : last)};
}

static int search_folder(struct search *s, const char *dir, const char *below, int depth) {
  char path[PATH_MAX], inner[PATH_MAX];
  snprintf(path, sizeof path, "%s/summary.csv", dir);
  if (file_exists(path)) {
    add_sweep(s, dir, below);
  }
  struct dirent **entry;
  int n = scandir(dir, &entry, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    const char *name = entry[i]->d_name;
    struct stat st;
    bool skipped = name[0] == '.' || (depth == 0 && s->skip && strcmp(name, s->skip) == 0);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(inner, sizeof inner, "%s%s%s", below, *below ? "/" : "", name);
    if (!skipped && depth < MAX_DEPTH && lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
      search_folder(s, path, inner, depth + 1);
    }
    free(entry[i]);
  }
  if (n >= 0) {
    free(entry);
  }
  return n;
}

int sweeps_find(struct sweep_dir **sweep, int *n, struct arena *a, const char *root,
                const char *skip, const char *prefix, struct err *e) {
  struct search s = {a, skip, prefix, ARENA_NEW(a, struct sweep_dir, MAX_SWEEPS), 0};
  if (search_folder(&s, root, "", 0) < 0) {
    return err_set(e, EXIT_USAGE, "%s: cannot read this folder: %s", root, strerror(errno));
  }
  *sweep = s.found;
  *n = s.n;
  return 0;
}

int sweep_table_read(struct sweep_table *s, struct arena *a, const char *dir, struct err *e) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/summary.csv", dir);
  *s = (struct sweep_table){0};
  if (csv_read(&s->t, a, path, e) || csv_reals(&s->n, a, &s->t, "n", e) ||
      csv_reals(&s->mean, a, &s->t, "mean", e) || csv_reals(&s->std, a, &s->t, "std", e) ||
      csv_reals(&s->lo, a, &s->t, "lo", e) || csv_reals(&s->hi, a, &s->t, "hi", e)) {
    return e->code;
  }
  int column = csv_find(&s->t, "variant");
  if (column < 0 || csv_find(&s->t, "metric") < 0) {
    return err_set(e, EXIT_USAGE, "%s: columns 'variant' and 'metric' expected", path);
  }
  for (int i = 0; i < s->t.nrow; i++) {
    const char *name = csv_cell(&s->t, i, column);
    int v = 0;
    while (v < s->nvariant && strcmp(s->variant[v], name) != 0) {
      v++;
    }
    if (v == s->nvariant && v < SWEEP_SHOWN) {
      s->variant[s->nvariant++] = name;
    }
  }
  return 0;
}

struct sweep_number sweep_number(const struct sweep_table *s, const char *variant,
                                 const char *metric) {
  int vc = csv_find(&s->t, "variant"), mc = csv_find(&s->t, "metric");
  for (int i = 0; i < s->t.nrow; i++) {
    if (strcmp(csv_cell(&s->t, i, vc), variant) == 0 &&
        strcmp(csv_cell(&s->t, i, mc), metric) == 0) {
      double m = s->mean[i];
      return (struct sweep_number){s->n[i], m, s->std[i], isnan(s->lo[i]) ? m : s->lo[i],
                                   isnan(s->hi[i]) ? m : s->hi[i]};
    }
  }
  return (struct sweep_number){0, NAN, NAN, NAN, NAN};
}

bool sweep_has(const struct sweep_table *s, const char *metric) {
  for (int v = 0; v < s->nvariant; v++) {
    if (!isnan(sweep_number(s, s->variant[v], metric).mean)) {
      return true;
    }
  }
  return false;
}
