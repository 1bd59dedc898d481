// The Makefile includes build_facts.h ahead of this file: DSIM_COMMIT, DSIM_DIRTY, DSIM_COMPILER,
// DSIM_FLAGS.
#include "out/manifest.h"
#include "base/file.h"
#include "out/json.h"
#include <cblas.h>
#include <limits.h>
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *manifest_commit(void) {
  return DSIM_DIRTY ? DSIM_COMMIT "-dirty" : DSIM_COMMIT;
}

// "model name" of the first processor, or "unknown"
static void processor_name(char *name, size_t size) {
  snprintf(name, size, "unknown");
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[512];
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    const char *colon = strstr(line, ": ");
    if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
      snprintf(name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
      break;
    }
  }
  if (f != NULL) {
    fclose(f);
  }
}

static void add_text(cJSON *root, const char *key, const char *text) {
  if (text != NULL) {
    cJSON_AddStringToObject(root, key, text);
  }
}

int manifest_write(const char *folder, const struct manifest *m, struct err *e) {
  char cpu[256], date[32], path[PATH_MAX];
  processor_name(cpu, sizeof cpu);
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  if (snprintf(path, sizeof path, "%s/manifest.json", folder) >= (int)sizeof path) {
    return err_set(e, EXIT_IO, "path is too long: '%.200s...'", folder);
  }

  cJSON *root = cJSON_CreateObject();
  add_text(root, "command", m->command);
  add_text(root, "version", DSIM_VERSION);
  add_text(root, "commit", DSIM_COMMIT);
  cJSON_AddBoolToObject(root, "dirty", DSIM_DIRTY);
  add_text(root, "compiler", DSIM_COMPILER);
  add_text(root, "flags", DSIM_FLAGS);
  add_text(root, "cpu", cpu);
  add_text(root, "isa", m->isa);
  // results depend on the kernel that OpenBLAS picks for the processor, and on nothing else here
  add_text(root, "openblas_core", openblas_get_corename());
  add_text(root, "mujoco", mj_versionString());
  cJSON_AddNumberToObject(root, "threads", m->threads);
  cJSON_AddNumberToObject(root, "seed", (double)m->seed);
  add_text(root, "robot", m->robot);
  add_text(root, "robot_sha256", m->robot_sha256);
  add_text(root, "motion", m->motion);
  add_text(root, "motion_sha256", m->motion_sha256);
  add_text(root, "date", date);
  json_write(path, root, e);
  cJSON_Delete(root);
  return e->code;
}
