// The product of a sweep: variants with their names, and cells.
#include "base/file.h"
#include "cmd/sweep_private.h"
#include "motion/motion.h"
#include <stdio.h>
#include <string.h>

// Part of a variant's name for a swept value: "kappa50", "run" (a clip), "shac" (a choice).
static void append_name(char *name, size_t size, const struct sweep_reader *r,
                        const struct field *f, const struct spec *s) {
  char value[8192];
  field_print(f, s, value, sizeof value);
  const char *last = strrchr(f->path, '.');
  last = last != NULL ? last + 1 : f->path;
  // two fields of one last name (learn.actor.lr, learn.critic.lr) are told apart by their path
  for (int i = 0; i < r->naxis; i++) {
    const char *other = strrchr(r->axis[i].field->path, '.');
    other = other != NULL ? other + 1 : r->axis[i].field->path;
    last = r->axis[i].field != f && strcmp(other, last) == 0 ? f->path : last;
  }
  const char *text = value;
  char files[512] = "";
  if (f->kind == FIELD_TEXT || f->kind == FIELD_TEXTS) {
    // a file stands by its name without folder and endings, several with + between them
    const char **part;
    int n = motion_split(&part, r->arena, value);
    for (int i = 0; i < n; i++) {
      const char *slash = strrchr(part[i], '/');
      const char *file = slash != NULL && slash[1] != '\0' ? slash + 1 : part[i];
      const char *dot = strchr(file, '.');
      int length = dot != NULL && dot > file ? (int)(dot - file) : (int)strlen(file);
      size_t end = strlen(files);
      snprintf(files + end, sizeof files - end, "%s%.*s", i > 0 ? "+" : "", length, file);
    }
    text = files;
  }
  bool bare = f->kind == FIELD_TEXT || f->kind == FIELD_TEXTS || f->kind == FIELD_ENUM;
  size_t used = strlen(name);
  snprintf(name + used, size - used, "%s%s%s", used > 0 ? "_" : "", bare ? "" : last, text);
  for (char *p = name + used; *p != '\0'; p++) {
    bool keep = strchr("_.+-", *p) != NULL || (*p >= '0' && *p <= '9') ||
                (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    *p = keep ? *p : *p == ' ' || *p == '"' || *p == '[' || *p == ']' ? '\a' : '-';
  }
  // characters that only quote or bracket are left out
  char *to = name + used;
  for (const char *p = to; *p != '\0'; p++) {
    if (*p != '\a') {
      *to++ = *p;
    }
  }
  *to = '\0';
}

static void hash_spec(char hex[65], struct arena *a, const struct spec *s) {
  struct arena_mark mark = arena_mark(a);
  enum { SIZE = 1 << 18 };
  char *text = arena_alloc(a, SIZE), value[8192];
  size_t used = 0;
  for (int i = 0; i < nspec_field; i++) {
    if (strcmp(spec_fields[i].path, "threads") != 0) {
      used += (size_t)snprintf(text + used, SIZE - used, "%s: %s\n", spec_fields[i].path,
                               field_print(&spec_fields[i], s, value, sizeof value));
      BUG_IF(used >= SIZE);
    }
  }
  sha256_hex(text, used, hex);
  arena_reset(a, mark);
}

// "path=value" of every field that something sets, each once, as they stand in the end
static void list_sets(struct sweep_variant *v, struct sweep_reader *r, const struct spec *s,
                      const struct assigns *const *lists, int nlist) {
  char value[8192];
  const char **set = ARENA_NEW(r->arena, const char *, nspec_field);
  bool *seen = ARENA_NEW(r->arena, bool, nspec_field);
  for (int l = 0; l < nlist; l++) {
    for (int i = 0; i < lists[l]->n; i++) {
      const struct field *f = lists[l]->v[i].field;
      if (!seen[f - spec_fields]) {
        seen[f - spec_fields] = true;
        set[v->nset++] =
            sweep_format(r->arena, "%s=%s", f->path, field_print(f, s, value, sizeof value));
      }
    }
  }
  v->set = set;
}

// Variant number `which` of the product: the last axis runs fastest.
static int make_variant(struct sweep_reader *r, struct sweep_variant *v, struct spec *s,
                        int which) {
  struct assigns axes = {0};
  int rest = which, pick[SWEEP_MAX_AXES];
  for (int i = r->naxis - 1; i >= 0; i--) {
    pick[i] = rest % r->axis[i].n;
    rest /= r->axis[i].n;
  }
  const struct named *named = &r->named[rest];
  for (int i = 0; i < r->naxis; i++) {
    sweep_add(r, &axes, r->axis[i].value[pick[i]]);
  }
  const struct assigns *const lists[] = {&r->shared, &named->assigns, &axes};
  *s = r->base;
  for (int l = 0; l < 3; l++) {
    for (int i = 0; i < lists[l]->n; i++) {
      if (sweep_apply(r, s, &lists[l]->v[i]) != 0) {
        return r->err->code;
      }
    }
  }
  char name[512];
  snprintf(name, sizeof name, "%s", named->name);
  for (int i = 0; i < r->naxis; i++) {
    append_name(name, sizeof name, r, r->axis[i].field, s);
  }
  v->name = arena_strdup(r->arena, name[0] != '\0' ? name : "main");
  if (!sweep_is_name(v->name)) {
    return err_set(r->err, EXIT_USAGE, "%s: '%.120s...' is no name for a folder", r->sweep->path,
                   v->name);
  }
  list_sets(v, r, s, lists, 3);
  s->experiment = sweep_format(r->arena, "ablate/%s", r->sweep->name);
  s->variant = v->name;
  s->threads = 0;
  if (spec_check(s, r->err) != 0) {
    return err_prefix(r->err, "%s: variant %s: ", r->sweep->path, v->name);
  }
  return 0;
}

// Files that cells need are looked for now, not when it is their turn after hours.
static int check_files(struct sweep_reader *r, const struct spec *s) {
  if (file_find(r->arena, s->robot) == NULL) {
    err_set(r->err, EXIT_USAGE, "%s: variant %s: robot: there is no file '%.300s'", r->sweep->path,
            s->variant, s->robot);
  }
  // a clip of ours goes by its bare name, too
  const char **motion;
  int n = motion_split(&motion, r->arena, s->motion);
  for (int i = 0; i < n; i++) {
    if (strchr(motion[i], '/') != NULL && file_find(r->arena, motion[i]) == NULL) {
      err_set(r->err, EXIT_USAGE, "%s: variant %s: motion: there is no file '%.300s'",
              r->sweep->path, s->variant, motion[i]);
    }
  }
  return r->err->code;
}

int sweep_make_cells(struct sweep_reader *r) {
  struct sweep *s = r->sweep;
  long long n = r->nnamed, nseed = (long long)r->last_seed - r->first_seed + 1;
  for (int i = 0; i < r->naxis && n <= SWEEP_MAX_CELLS; i++) {
    n *= r->axis[i].n;
  }
  if (n * nseed > SWEEP_MAX_CELLS) {
    return err_set(r->err, EXIT_USAGE, "%s: more than %d cells", s->path, SWEEP_MAX_CELLS);
  }
  s->nvariant = (int)n;
  s->ncell = (int)(n * nseed);
  s->variant = ARENA_NEW(r->arena, struct sweep_variant, s->nvariant);
  s->cell = ARENA_NEW(r->arena, struct sweep_cell, s->ncell);
  for (int i = 0; i < s->nvariant; i++) {
    struct spec spec;
    if (make_variant(r, &s->variant[i], &spec, i) != 0 || check_files(r, &spec) != 0) {
      return r->err->code;
    }
    for (int k = 0; k < i; k++) {
      if (strcmp(s->variant[k].name, s->variant[i].name) == 0) {
        return err_set(r->err, EXIT_USAGE, "%s: two variants would share the folder '%s'", s->path,
                       s->variant[i].name);
      }
    }
    for (int k = 0; k < nseed; k++) {
      struct sweep_cell *c = &s->cell[k * s->nvariant + i];
      *c = (struct sweep_cell){.variant = &s->variant[i], .seed = r->first_seed + k, .spec = spec};
      c->spec.seed = c->seed;
      c->dir = sweep_format(r->arena, "%s/%s/seed%d", s->out, c->variant->name, c->seed);
      hash_spec(c->hash, r->arena, &c->spec);
    }
  }
  return 0;
}
