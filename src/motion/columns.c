#include "motion/columns.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool has_quaternion(const struct robot_link *l) {
  return l->type == JOINT_FREE || l->type == JOINT_BALL;
}

// a free root and nothing else but hinges and slides: what Unitree's layout describes
static bool is_floating_base(const struct robot *r) {
  for (int i = 0; i < r->nlink; i++) {
    if (has_quaternion(&r->link[i]) != (i == 0) || r->link[i].type == JOINT_BALL) {
      return false;
    }
  }
  return r->nlink > 0;
}

void columns_native(struct columns *cols, struct arena *a, const struct robot *r,
                    enum clip_order order) {
  static const char *const xyz[] = {"x", "y", "z"};
  static const char *const quat[] = {"qw", "qx", "qy", "qz"};
  cols->n = 0;
  cols->qadr = ARENA_NEW(a, int, r->nq);
  cols->name = ARENA_NEW(a, const char *, r->nq);
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    int adr = l->qadr;
    for (int k = 0; k < 3 && l->type == JOINT_FREE; k++) {
      cols->name[cols->n] = xyz[k];
      cols->qadr[cols->n++] = adr++;
    }
    for (int k = 0; k < 4 && has_quaternion(l); k++) {
      int part = order == CLIP_ORDER_WXYZ ? k : (k + 1) % 4;
      cols->name[cols->n] = quat[part];
      cols->qadr[cols->n++] = adr + part;
    }
    if (!has_quaternion(l)) {
      cols->name[cols->n] = l->joint_name;
      cols->qadr[cols->n++] = adr;
    }
  }
}

// "left_knee_joint" and "left_knee" are one name; so are "root_x" and "x"
static bool same_name(const char *a, const char *b) {
  size_t na = strlen(a), nb = strlen(b);
  na -= na > 6 && strcmp(a + na - 6, "_joint") == 0 ? 6 : 0;
  nb -= nb > 6 && strcmp(b + nb - 6, "_joint") == 0 ? 6 : 0;
  return na == nb && strncmp(a, b, na) == 0;
}

static bool same_column(const char *native, const char *given) {
  if (strncasecmp(given, "root_", 5) == 0 && strlen(native) <= 2) {
    given += 5;
  }
  // x, qw, ... in any case; joints as they are spelled
  return strlen(native) <= 2 && strcasecmp(native, given) == 0 ? true : same_name(native, given);
}

// Appends to a list of names, which ends in "..." when it grows too long.
static void list_add(char *list, size_t size, const char *name) {
  size_t used = strlen(list);
  if (used + strlen(name) + 8 < size) {
    snprintf(list + used, size - used, "%s%.60s", used ? ", " : "", name);
  } else if (used + 5 < size && strcmp(list + used - 3, "...") != 0) {
    strcat(list, ", ...");
  }
}

// Columns [skip, skip+n) of the file carry the given names; the first skip are the native ones.
static int map_by_name(struct columns *cols, struct arena *a, const struct columns *native,
                       const char *const *given, int n, int skip, const char *where, int line,
                       const struct robot *r, struct err *e) {
  char missing[400] = "", unknown[400] = "";
  cols->n = skip + n;
  cols->qadr = ARENA_NEW(a, int, skip + n);
  cols->name = ARENA_NEW(a, const char *, skip + n);
  bool *used = ARENA_NEW(a, bool, native->n);
  for (int k = 0; k < skip; k++) {
    cols->qadr[k] = native->qadr[k];
    cols->name[k] = native->name[k];
    used[k] = true;
  }
  for (int k = 0; k < n; k++) {
    int hit = -1;
    for (int j = 0; j < native->n && hit < 0; j++) {
      hit = same_column(native->name[j], given[k]) ? j : -1;
    }
    if (hit < 0) {
      list_add(unknown, sizeof unknown, given[k]);
      continue;
    }
    if (used[hit]) {
      return err_set(e, EXIT_USAGE, "%s:%d: column '%.60s' is named twice", where, line, given[k]);
    }
    used[hit] = true;
    cols->qadr[skip + k] = native->qadr[hit];
    cols->name[skip + k] = native->name[hit];
  }
  for (int j = 0; j < native->n; j++) {
    if (!used[j]) {
      list_add(missing, sizeof missing, native->name[j]);
    }
  }
  if (missing[0] == '\0' && unknown[0] == '\0') {
    return 0;
  }
  return err_set(e, EXIT_USAGE,
                 "%s:%d: the columns do not match robot '%s': missing: %s; not in the robot: %s",
                 where, line, r->name, missing[0] ? missing : "none",
                 unknown[0] ? unknown : "none");
}

int columns_map(struct columns *cols, struct arena *a, const struct robot *r, char *const *header,
                int n, enum clip_order order, const struct columns_source *from, struct err *e) {
  const struct sidecar *s = from->sidecar;
  struct columns native;
  columns_native(&native, a, r, order);
  bool named = s->njoint > 0, base = is_floating_base(r);
  if (header != NULL) {
    if (named) {
      return err_set(e, EXIT_USAGE, "%s:%d: columns are named here and again by 'joints' in %s:%d",
                     from->path, from->line, s->path, s->joint_line);
    }
    const char **given = ARENA_NEW(a, const char *, n);
    for (int k = 0; k < n; k++) {
      given[k] = arena_strdup(a, header[k]); // the line is reused
    }
    return map_by_name(cols, a, &native, given, n, 0, from->path, from->line, r, e);
  }
  // only Unitree's layout has a quaternion order of its own
  bool any = false;
  for (int i = 0; i < r->nlink; i++) {
    any |= has_quaternion(&r->link[i]);
  }
  if (any && !base && order == CLIP_ORDER_UNSAID) {
    return err_set(e, EXIT_USAGE,
                   "%s: order of the quaternions unknown: give --quaternion xyzw or wxyz, or write "
                   "'quaternion:' into the sidecar",
                   from->path);
  }
  int root = base ? 7 : 0;
  if (named) {
    if (any && !base) {
      return err_set(e, EXIT_USAGE,
                     "%s:%d: 'joints' cannot name the columns of robot '%s', which has "
                     "quaternions beyond its root",
                     s->path, s->joint_line, r->name);
    }
    if (map_by_name(cols, a, &native, s->joint, s->njoint, root, s->path, s->joint_line, r, e)) {
      return e->code;
    }
  } else {
    *cols = native;
  }
  if (n != cols->n) {
    return err_set(e, EXIT_USAGE,
                   "%s:%d: %d columns, robot '%s' has %d (%d of the root, %d of joints); other "
                   "layouts need a header line or 'joints' in the sidecar",
                   from->path, from->line, n, r->name, cols->n, root, cols->n - root);
  }
  return 0;
}
