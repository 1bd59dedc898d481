#include "out/json.h"
#include "base/file.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cJSON *json_read(const char *path, struct err *e) {
  struct arena a;
  arena_init(&a);
  char *data;
  size_t size;
  cJSON *root = NULL;
  if (!file_read(&a, path, (size_t)256 << 20, &data, &size, e)) {
    const char *end = NULL;
    root = cJSON_ParseWithOpts(data, &end, 1);
    if (!root) {
      // cJSON tells where it stopped; people count in lines and columns
      int line = 1, column = 1;
      for (const char *p = data; end && p < end; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
      }
      err_set(e, EXIT_USAGE, "%s:%d:%d: not valid JSON from here on", path, line, column);
    }
  }
  arena_release(&a);
  return root;
}

static char *print_tree(const cJSON *root) {
  char *text = cJSON_Print(root);
  BUG_IF(!text); // only when memory is out
  return text;
}

int json_write(const char *path, const cJSON *root, struct err *e) {
  char *text = print_tree(root);
  struct arena a;
  arena_init(&a);
  size_t n = strlen(text);
  char *line = arena_alloc(&a, n + 2);
  memcpy(line, text, n);
  line[n] = '\n';
  int rc = file_write_atomic(path, line, n + 1, e);
  arena_release(&a);
  cJSON_free(text);
  return rc;
}

int json_print(const cJSON *root, struct err *e) {
  char *text = print_tree(root);
  int failed = printf("%s\n", text) < 0 || fflush(stdout) != 0;
  cJSON_free(text);
  return failed ? err_set(e, EXIT_IO, "cannot write to standard output: %s", strerror(errno)) : 0;
}

static const cJSON *find_member(const cJSON *root, const char *member) {
  char name[128];
  while (root && *member) {
    size_t len = strcspn(member, ".");
    BUG_IF(len >= sizeof name);
    memcpy(name, member, len);
    name[len] = 0;
    root = cJSON_GetObjectItemCaseSensitive(root, name);
    member += len + (member[len] == '.');
  }
  return root;
}

int json_get_real(double *x, const cJSON *root, const char *member, const char *path,
                  struct err *e) {
  const cJSON *it = find_member(root, member);
  if (!cJSON_IsNumber(it)) {
    return err_set(e, EXIT_USAGE, "%s: '%s' %s", path, member, it ? "is no number" : "is missing");
  }
  *x = it->valuedouble;
  return 0;
}

int json_get_text(const char **s, const cJSON *root, const char *member, const char *path,
                  struct err *e) {
  const cJSON *it = find_member(root, member);
  if (!cJSON_IsString(it)) {
    return err_set(e, EXIT_USAGE, "%s: '%s' %s", path, member, it ? "is no text" : "is missing");
  }
  *s = it->valuestring;
  return 0;
}

static cJSON *rounded(double x) {
  if (!isfinite(x)) {
    return cJSON_CreateNull();
  }
  char buf[40];
  snprintf(buf, sizeof buf, "%.9g", x);
  return cJSON_CreateNumber(strtod(buf, NULL)); // same locale both ways
}

void json_add_real(cJSON *object, const char *name, double x) {
  cJSON_AddItemToObject(object, name, rounded(x));
}

void json_add_reals(cJSON *object, const char *name, const double *x, int n) {
  cJSON *list = cJSON_AddArrayToObject(object, name);
  for (int i = 0; i < n; i++) {
    cJSON_AddItemToArray(list, rounded(x[i]));
  }
}
