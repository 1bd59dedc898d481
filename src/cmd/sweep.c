#include "cmd/sweep.h"
#include "base/file.h"
#include "cmd/summary.h"
#include "cmd/sweep_private.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>

// ---- the command line

// The field of "path=value" on the command line; NULL with an error.
static const struct field *field_of(struct sweep_reader *r, const char *option, const char *text) {
  size_t n = strcspn(text, "=");
  char path[SPEC_KEY_MAX + 1];
  if (text[n] != '=' || n == 0 || n > SPEC_KEY_MAX) {
    err_set(r->err, EXIT_USAGE, "--%s %.200s: expected PATH=VALUE", option, text);
    return NULL;
  }
  snprintf(path, sizeof path, "%.*s", (int)n, text);
  const struct field *f = field_find(path);
  if (f == NULL) {
    field_unknown(path, r->err);
    err_prefix(r->err, "--%s %.200s: ", option, text);
  } else if (sweep_reserved(f) != NULL) {
    err_set(r->err, EXIT_USAGE, "--%s %.200s: %s", option, text, sweep_reserved(f));
    f = NULL;
  }
  return f;
}

static int refuse_variant_field(struct sweep_reader *r, const char *option, const char *text,
                                const struct field *f) {
  for (int i = 0; i < r->nnamed; i++) {
    if (sweep_find(&r->named[i].assigns, f) != NULL) {
      return err_set(r->err, EXIT_USAGE, "--%s %.200s: variant '%s' of %s sets it", option, text,
                     r->named[i].name, r->sweep->path);
    }
  }
  return 0;
}

// "path=v1,v2": commas in brackets and quotes are no separators
static int add_axis(struct sweep_reader *r, const char *text) {
  const struct field *f = field_of(r, "sweep", text);
  if (f == NULL || refuse_variant_field(r, "sweep", text, f) != 0) {
    return r->err->code;
  }
  struct axis *x = NULL;
  for (int i = 0; i < r->naxis; i++) {
    x = r->axis[i].field == f ? &r->axis[i] : x;
  }
  if (x == NULL) {
    if (r->naxis == SWEEP_MAX_AXES) {
      return err_set(r->err, EXIT_USAGE, "--sweep: more than %d swept fields", SWEEP_MAX_AXES);
    }
    x = &r->axis[r->naxis++];
  } else if (x->value[0].node == NULL) {
    return err_set(r->err, EXIT_USAGE, "--sweep %.200s: '%s' is swept twice", text, f->path);
  }
  const char *start = strchr(text, '=') + 1;
  *x = (struct axis){.field = f, .value = ARENA_NEW(r->arena, struct assign, strlen(start) + 1)};
  int depth = 0;
  char quote = 0;
  for (const char *p = start;; p++) {
    if (quote != 0) {
      quote = *p == quote ? 0 : quote;
    } else if (*p == '"' || *p == '\'') {
      quote = *p;
    }
    depth += quote == 0 ? (*p == '[') - (*p == ']') : 0;
    if (*p == '\0' || (*p == ',' && quote == 0 && depth == 0)) {
      const char *one = sweep_format(r->arena, "%s=%.*s", f->path, (int)(p - start), start);
      x->value[x->n++] = (struct assign){.field = f, .text = one};
      start = p + 1;
    }
    if (*p == '\0') {
      return 0;
    }
  }
}

static int read_options(struct sweep_reader *r, const struct sweep_options *o) {
  for (int i = 0; i < o->axis.n; i++) {
    if (add_axis(r, o->axis.v[i]) != 0) {
      return r->err->code;
    }
  }
  for (int i = 0; i < o->set.n; i++) {
    const char *text = o->set.v[i];
    const struct field *f = field_of(r, "set", text);
    if (f == NULL || refuse_variant_field(r, "set", text, f) != 0) {
      return r->err->code;
    }
    if (sweep_axis(r, f) != NULL) {
      return err_set(r->err, EXIT_USAGE,
                     "--set %.200s: '%s' is swept; --sweep %s=... gives it other values", text,
                     f->path, f->path);
    }
    for (int k = 0; k < i; k++) {
      if (field_of(r, "set", o->set.v[k]) == f) {
        return err_set(r->err, EXIT_USAGE, "--set %.200s: '%s' is set twice", text, f->path);
      }
    }
    // later entries win, and a field is printed once
    sweep_add(r, &r->shared, (struct assign){.field = f, .text = text});
  }
  if (o->seeds.given) {
    r->first_seed = o->seeds.first;
    r->last_seed = o->seeds.last;
  }
  return 0;
}

// ---- finding the file

static bool ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && strcmp(s + n - m, end) == 0;
}

// A sweep file of this name, or NULL. experiments/ablate/ comes before experiments/: stiffness is
// looked for among the sweeps, run among the specs.
static const char *find_file(struct arena *a, const char *name) {
  const char *tries[] = {
      ends_with(name, ".yaml") ? name : "",
      sweep_format(a, "experiments/ablate/%s", ends_with(name, ".yaml") ? name : ""),
      sweep_format(a, "experiments/ablate/%s.yaml", name),
      sweep_format(a, "experiments/%s.yaml", name),
  };
  for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
    if (ends_with(tries[i], ".yaml")) {
      const char *path = file_find(a, tries[i]);
      if (path != NULL) {
        return path;
      }
    }
  }
  return NULL;
}

// stiffness of .../experiments/ablate/stiffness.yaml; else the file's name
static const char *sweep_name(struct arena *a, const char *path) {
  const char *start = path;
  static const char *const folders[] = {"experiments/", "ablate/"};
  for (int i = 0; i < 2; i++) {
    for (const char *p; (p = strstr(start, folders[i])) != NULL;) {
      start = p + strlen(folders[i]);
    }
  }
  if (start == path) {
    const char *slash = strrchr(path, '/');
    start = slash != NULL ? slash + 1 : path;
  }
  return sweep_format(a, "%.*s", (int)(strlen(start) - strlen(".yaml")), start);
}

// The sweep whose name is nearest, or NULL.
static const char *nearest_sweep(struct arena *a, const char *name) {
  enum { MAX = 256 };
  const char *names[MAX];
  int n = 0;
  DIR *dir = opendir(sweep_format(a, "%s/experiments/ablate", dsim_home()));
  for (struct dirent *d; dir != NULL && n < MAX && (d = readdir(dir)) != NULL;) {
    if (ends_with(d->d_name, ".yaml")) {
      names[n++] = sweep_name(a, d->d_name);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return err_nearest(name, names, n);
}

// A spec without a sweep file: its axes are on the command line.
static int read_spec(struct sweep_reader *r, const char *name) {
  struct sweep *s = r->sweep;
  if (spec_read(&r->base, r->arena, name, r->err) != 0) {
    if (strncmp(r->err->text, "there is no spec", 16) == 0) {
      const char *nearest = nearest_sweep(r->arena, name);
      err_prefix(r->err, "there is no sweep experiments/ablate/%.200s.yaml%s%s%s; ", name,
                 nearest != NULL ? " (did you mean '" : "", nearest != NULL ? nearest : "",
                 nearest != NULL ? "'?)" : "");
    }
    return r->err->code;
  }
  s->path = r->base.path;
  s->name = r->base.experiment;
  s->base = name;
  sweep_default_steps(s);
  return 0;
}

int sweep_read(struct sweep *s, struct arena *a, const char *name, const struct sweep_options *o,
               struct err *e) {
  *s = (struct sweep){0};
  struct sweep_reader *r = ARENA_NEW(a, struct sweep_reader, 1);
  *r = (struct sweep_reader){.arena = a, .err = e, .sweep = s};
  struct ytree *tree;
  const char *file = find_file(a, name);
  if (file != NULL && ytree_read(&tree, a, file, e) != 0) {
    return e->code;
  }
  if (file != NULL && sweep_is_sweep(tree)) {
    r->file = tree;
    s->path = file;
    s->name = sweep_name(a, file);
    sweep_read_file(r);
  } else {
    read_spec(r, name);
  }
  if (e->code != 0) {
    return e->code;
  }
  s->out = o->out != NULL ? o->out : sweep_format(a, "results/ablate/%s", s->name);
  if (s->nmetric == 0) {
    sweep_default_metrics(s);
  }
  if (r->nnamed == 0) { // one nameless variant: the axes alone
    r->named = ARENA_NEW(a, struct named, 1);
    r->named[0].name = "";
    r->nnamed = 1;
  }
  return read_options(r, o) != 0 ? e->code : sweep_make_cells(r);
}
