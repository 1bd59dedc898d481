#include "figure/gnuplot.h"
#include "base/arena.h"
#include "base/file.h"
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// "name='value'" in gnuplot's single quotes, where only the quote itself is special and is doubled
static char *assignment(struct arena *a, const char *name, const char *value) {
  char *text = arena_alloc(a, strlen(name) + 2 * strlen(value) + 4);
  char *p = text + sprintf(text, "%s='", name);
  for (; *value; value++) {
    if (*value == '\'') {
      *p++ = '\'';
    }
    *p++ = *value == '\n' ? ' ' : *value;
  }
  *p = '\'';
  return text;
}

static int wait_for(pid_t pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      return -1;
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int gnuplot_run(const char *script, const char *out, const struct gnuplot_var *vars, int n,
                struct err *e) {
  struct arena a;
  arena_init(&a);
  const char *dot = strrchr(out, '.');
  BUG_IF(!dot);
  char name[256];
  snprintf(name, sizeof name, "plots/%s.gp", script);
  const char *found = file_find(&a, name);
  if (!found) {
    arena_release(&a);
    return err_set(e, EXIT_USAGE, "%s/%s: no such gnuplot script", dsim_home(), name);
  }
  char *path = arena_strdup(&a, found), *home = arena_strdup(&a, found);
  size_t nhome = strlen(found) - strlen(name);
  strcpy(home + (nhome ? nhome - 1 : 0), nhome ? "" : ".");

  // -d: the user's own start-up files must not change a figure
  char **argv = ARENA_NEW(&a, char *, 2 * (n + 3) + 4);
  int argc = 0;
  argv[argc++] = arena_strdup(&a, "gnuplot");
  argv[argc++] = arena_strdup(&a, "-d");
  const struct gnuplot_var own[3] = {{"home", home}, {"out", out}, {"ext", dot + 1}};
  for (int i = 0; i < n + 3; i++) {
    const struct gnuplot_var *v = i < 3 ? &own[i] : &vars[i - 3];
    argv[argc++] = arena_strdup(&a, "-e");
    argv[argc++] = assignment(&a, v->name, v->value);
  }
  argv[argc++] = path;

  pid_t pid;
  int failed = posix_spawnp(&pid, "gnuplot", NULL, NULL, argv, environ);
  if (failed == ENOENT) {
    err_set(e, EXIT_IO, "gnuplot is not installed: figures need it (apt-get install gnuplot-nox)");
  } else if (failed) {
    err_set(e, EXIT_IO, "cannot start gnuplot: %s", strerror(failed));
  } else if (wait_for(pid) != 0) {
    unlink(out); // half a picture is worse than none
    err_set(e, EXIT_IO, "gnuplot failed on %s (its message is above)", path);
  }
  arena_release(&a);
  return e->code;
}
