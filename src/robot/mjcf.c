#include "robot/mjcf.h"
#include "base/file.h"
#include "base/log.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// MuJoCo calls these from inside; the defaults write MUJOCO_LOG.TXT and wait for a key press
static void on_warning(const char *text) {
  log_warn("MuJoCo: %s", text);
}

static void on_error(const char *text) {
  fprintf(stderr, "dsim: MuJoCo: %s\n", text);
  exit(EXIT_NUMERIC);
}

// the number after "line", "line =" or "Line number=", or 0
static int find_line(const char *text) {
  for (const char *s = text; *s; s++) {
    if (strncmp(s, "line", 4) != 0 && strncmp(s, "Line", 4) != 0) {
      continue;
    }
    s += 4;
    s += strncmp(s, " number", 7) == 0 ? 7 : 0;
    s += strspn(s, " =");
    if (isdigit((unsigned char)*s)) {
      return atoi(s);
    }
  }
  return 0;
}

// the word after a label, cut at a quote, comma or line end; "" when the label is absent
static void find_word(char *out, size_t size, const char *text, const char *label) {
  const char *s = strstr(text, label);
  size_t n = 0;
  if (s) {
    s += strlen(label);
    n = strcspn(s, "',\n");
    n = n < size ? n : size - 1;
    memcpy(out, s, n);
  }
  out[n] = 0;
}

// MuJoCo's several lines ("XML Error: TEXT\nElement 'joint', line 12\n") as one of ours
static void explain(struct err *e, const char *path, const char *text) {
  static const char *const prefix[] = {"XML Error: ", "Error: ", "Schema violation: "};
  char what[400], element[64], object[64];
  const char *s = text;
  for (size_t i = 0; i < sizeof prefix / sizeof prefix[0]; i++) {
    size_t n = strlen(prefix[i]);
    s += strncmp(s, prefix[i], n) == 0 ? n : 0;
  }
  snprintf(what, sizeof what, "%.*s", (int)strcspn(s, "\n"), s);
  if (strncmp(what, "XML parse error", 15) == 0) {
    find_word(element, sizeof element, text, "Error=XML_ERROR_");
    element[strcspn(element, " ")] = 0;
    for (char *c = element; *c; c++) {
      *c = *c == '_' ? ' ' : (char)tolower((unsigned char)*c);
    }
    snprintf(what, sizeof what, "not readable as XML: %s", element + strspn(element, " "));
  }
  find_word(element, sizeof element, text, "Element '");
  find_word(object, sizeof object, text, "Object name = ");

  // a file for a newer MuJoCo uses words that this one does not know
  char hint[64] = "";
  if (strncmp(what, "unrecognized", 12) == 0) {
    snprintf(hint, sizeof hint, "; this is MuJoCo %s", mj_versionString());
  }
  char at[16] = "";
  int line = find_line(text);
  if (line > 0) {
    snprintf(at, sizeof at, ":%d", line);
  }
  err_set(e, EXIT_USAGE, "%s%s: %s%s%s%s%s%s%s%s", path, at, what, *element ? " (element '" : "",
          element, *element ? "')" : "", *object ? " (in '" : "", object, *object ? "')" : "",
          hint);
}

mjModel *mjcf_load(struct arena *a, const char *path, struct err *e) {
  mju_user_warning = on_warning;
  mju_user_error = on_error;
  const char *found = file_find(a, path);
  if (!found) {
    err_set(e, EXIT_USAGE, "%s: no such robot file", path);
    return NULL;
  }
  char text[1000] = "";
  mjModel *m = mj_loadXML(found, NULL, text, sizeof text);
  if (!m) {
    explain(e, path, text);
  } else if (text[0]) {
    log_warn("%s: %.*s", path, (int)strcspn(text, "\n"), text);
  }
  return m;
}

const char *mjcf_name(const mjModel *m, int type, int id, char buf[16]) {
  const char *name = mj_id2name(m, type, id);
  if (name && *name) {
    return name;
  }
  snprintf(buf, 16, "#%d", id);
  return buf;
}
