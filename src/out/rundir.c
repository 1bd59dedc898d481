#include "out/rundir.h"
#include "base/file.h"
#include "base/log.h"
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// printf into the arena
static const char *arena_format(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static const char *arena_format(struct arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  BUG_IF(n < 0);
  char *text = arena_alloc(a, (size_t)n + 1);
  vsnprintf(text, (size_t)n + 1, fmt, again);
  va_end(again);
  return text;
}

const char *rundir_path(struct arena *a, const struct spec *s, const char *out) {
  if (out != NULL) {
    return arena_strdup(a, out);
  }
  return arena_format(a, "results/%s/%s/seed%d", s->experiment[0] ? s->experiment : "default",
                      s->variant, s->seed);
}

const char *rundir_file(struct arena *a, const char *path, const char *name) {
  return arena_format(a, "%s/%s", path, name);
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_run(struct arena *a, const char *path) {
  return file_exists(rundir_file(a, path, "spec.yaml"));
}

// ---- what a directory holds
// ------------------------------------------------------------------------

static bool is_hidden(const char *name) {
  return name[0] == '.';
}

static bool is_empty(const char *path) {
  DIR *dir = opendir(path);
  bool empty = true;
  for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
    empty = empty && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0);
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return empty;
}

// Files that dsim writes into a run directory. Pictures and notes that a user put there stay.
static bool is_ours(const char *name) {
  static const char *const names[] = {"spec.yaml", "overrides.txt", "command.txt", "manifest.json",
                                      "latest"};
  static const char *const starts[] = {"ckpt_", "checkpoint", "policy", "best"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(name, names[i]) == 0) {
      return true;
    }
  }
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
      return true;
    }
  }
  const char *dot = strrchr(name, '.');
  return dot != NULL && strcmp(dot, ".csv") == 0;
}

static int remove_old_files(struct arena *a, const char *path, struct err *e) {
  DIR *dir = opendir(path);
  for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
    if (is_hidden(d->d_name) || !is_ours(d->d_name)) {
      continue;
    }
    const char *file = rundir_file(a, path, d->d_name);
    if (!is_folder(file) && unlink(file) != 0) {
      err_set(e, EXIT_IO, "cannot remove '%s': %s", file, strerror(errno));
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return e->code;
}

// ---- text files
// ------------------------------------------------------------------------------------

static int write_spec(const char *path, const struct spec *s, struct err *e) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  BUG_IF(memory == NULL);
  spec_print(s, memory);
  fclose(memory);
  file_write_atomic(path, text, size, e);
  free(text);
  return e->code;
}

static int write_overrides(const char *path, const char *const *sets, int nset, struct err *e) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  BUG_IF(memory == NULL);
  for (int i = 0; i < nset; i++) {
    fprintf(memory, "%s\n", sets[i]);
  }
  fclose(memory);
  file_write_atomic(path, text, size, e);
  free(text);
  return e->code;
}

// a word as the shell reads it back
static void print_word(FILE *out, const char *word) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,+@%";
  if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
    fputs(word, out);
    return;
  }
  fputc('\'', out);
  for (; *word != '\0'; word++) {
    if (*word == '\'') {
      fputs("'\\''", out);
    } else {
      fputc(*word, out);
    }
  }
  fputc('\'', out);
}

static int append_command(const char *path, int argc, char *const *argv, struct err *e) {
  FILE *f = fopen(path, "a");
  if (f == NULL) {
    return err_set(e, EXIT_IO, "cannot write '%s': %s", path, strerror(errno));
  }
  fputs("dsim", f); // not argv[0]: the path to a binary means nothing elsewhere
  for (int i = 0; i < argc; i++) {
    fputc(' ', f);
    print_word(f, argv[i]);
  }
  fputc('\n', f);
  if (fclose(f) != 0) {
    return err_set(e, EXIT_IO, "cannot write '%s': %s", path, strerror(errno));
  }
  return 0;
}

// ---- opening
// ---------------------------------------------------------------------------------------

// Lines "path: a -> b" that matter for going on with a run; the others may change.
static bool may_differ(const char *line) {
  static const char *const free_paths[] = {"iterations:", "threads:", "checkpoint."};
  for (size_t i = 0; i < sizeof free_paths / sizeof free_paths[0]; i++) {
    if (strncmp(line, free_paths[i], strlen(free_paths[i])) == 0) {
      return true;
    }
  }
  return false;
}

static int check_resume(struct arena *a, const char *path, const struct spec *s, struct err *e) {
  if (!is_run(a, path)) {
    return err_set(e, EXIT_USAGE, "there is no run to resume in '%.300s'", path);
  }
  struct spec before;
  if (spec_read(&before, a, rundir_file(a, path, "spec.yaml"), e) != 0) {
    return e->code;
  }
  enum { SIZE = 1 << 16 };
  char *text = arena_alloc(a, SIZE);
  spec_diff(&before, s, text, SIZE);
  char differs[512] = "";
  size_t used = 0;
  for (const char *line = text; *line != '\0';) {
    size_t n = strcspn(line, "\n");
    if (!may_differ(line) && used + n + 3 < sizeof differs) {
      used += (size_t)snprintf(differs + used, sizeof differs - used, "\n  %.*s", (int)n, line);
    }
    line += n + (line[n] == '\n');
  }
  if (used > 0) {
    return err_set(e, EXIT_USAGE,
                   "cannot resume '%.200s': the spec differs from the run's (run -> now)%s", path,
                   differs);
  }
  return 0;
}

int rundir_open(struct arena *a, const char *path, enum rundir_mode mode, const struct spec *s,
                const char *const *sets, int nset, int argc, char *const *argv, struct err *e) {
  bool holds_files = is_folder(path) && !is_empty(path);
  if (mode == RUNDIR_RESUME) {
    if (check_resume(a, path, s, e) != 0) {
      return e->code;
    }
  } else if (holds_files && mode == RUNDIR_NEW) {
    return err_set(e, EXIT_USAGE,
                   "'%.300s' exists: --resume continues it, --overwrite starts again, --out DIR "
                   "writes elsewhere",
                   path);
  } else if (holds_files && !is_run(a, path)) {
    return err_set(e, EXIT_USAGE, "'%.300s' holds other files and no run; it is not overwritten",
                   path);
  } else if (holds_files && remove_old_files(a, path, e) != 0) {
    return e->code;
  }
  if (dir_make(path, e) != 0) {
    return e->code;
  }
  if (write_spec(rundir_file(a, path, "spec.yaml"), s, e) != 0 ||
      write_overrides(rundir_file(a, path, "overrides.txt"), sets, nset, e) != 0) {
    return e->code;
  }
  return append_command(rundir_file(a, path, "command.txt"), argc, argv, e);
}

// ---- finding
// ---------------------------------------------------------------------------------------

// Walks folders below path, up to four deep. Counts runs and keeps the first found.
static int find_runs(struct arena *a, const char *path, int depth, const char **found) {
  if (is_run(a, path)) {
    *found = *found != NULL ? *found : path;
    return 1;
  }
  int count = 0;
  DIR *dir = depth > 0 ? opendir(path) : NULL;
  for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
    const char *below = rundir_file(a, path, d->d_name);
    if (!is_hidden(d->d_name) && is_folder(below)) {
      count += find_runs(a, below, depth - 1, found);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return count;
}

const char *rundir_locate(struct arena *a, const char *name, struct err *e) {
  // trailing slashes come from the shell's completion
  char *path = arena_strdup(a, name);
  for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) {
    path[n - 1] = '\0';
  }
  if (!file_exists(path) && path[0] == '/') {
    err_set(e, EXIT_USAGE, "there is no run '%.300s'", path);
    return NULL;
  }
  if (!file_exists(path)) {
    const char *below = rundir_file(a, "results", path);
    if (path[0] == '\0' || !file_exists(below)) {
      err_set(e, EXIT_USAGE, "there is no run '%.200s', nor results/%.200s", path, path);
      return NULL;
    }
    path = arena_strdup(a, below);
  }
  if (!is_folder(path)) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
      path = arena_strdup(a, ".");
    } else {
      slash[slash == path] = '\0'; // "/file" lies in "/"
    }
  }
  const char *found = NULL;
  int count = find_runs(a, path, 4, &found);
  if (count != 1) {
    err_set(e, EXIT_USAGE, "'%.300s' holds %s", path,
            count == 0 ? "no run (no spec.yaml)" : "several runs, name one of them");
    return NULL;
  }
  return found;
}
