// The program from outside: command lines and their answers (tests/pain/commands.txt), help screens
// held against golden files, one run from start to resume. $DSIM_BIN is the program.
#include "base/file.h"
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char program[PATH_MAX], tree[PATH_MAX];
static char folder[] = "/tmp/dsim_test_cli_XXXXXX";

// What a program wrote and how it ended.
struct outcome {
  int code;
  const char *out, *err;
};

static const char *read_all(const char *path) {
  char *text;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&arena, path, 1 << 22, &text, &size, &e), 0);
  return text;
}

static struct outcome run(char *const *argv) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int out = open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(program, argv);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return (struct outcome){.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                          .out = read_all("stdout"),
                          .err = read_all("stderr")};
}

// Splits at spaces, '...' holds together. argv[0] is "dsim".
static void split_words(char *line, char **argv, int max) {
  static char name[] = "dsim";
  int n = 0;
  argv[n++] = name;
  for (char *p = line; *p != '\0';) {
    p += strspn(p, " ");
    if (*p == '\0') {
      break;
    }
    assert_true(n + 1 < max);
    char end = *p == '\'' ? '\'' : ' ';
    p += end == '\'';
    argv[n++] = p;
    p += strcspn(p, end == '\'' ? "'" : " ");
    if (*p != '\0') {
      *p++ = '\0';
    }
  }
  argv[n] = NULL;
}

static struct outcome run_line(const char *line) {
  char *argv[64];
  split_words(arena_strdup(&arena, line), argv, 64);
  return run(argv);
}

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  const char *given = getenv("DSIM_BIN");
  if (realpath(given != NULL ? given : "./dsim", program) == NULL || realpath(".", tree) == NULL ||
      mkdtemp(folder) == NULL || chdir(folder) != 0) {
    fprintf(stderr, "test_cli: run from the root of the tree, with $DSIM_BIN or ./dsim built\n");
    return -1;
  }
  // specs, robots and motions come from the tree; results go to a folder of this test
  setenv("DSIM_HOME", tree, 1);
  struct err e = {0};
  dir_make("taken", &e);
  file_write_atomic("taken/notes.txt", "x", 1, &e);
  file_write_atomic("file", "x", 1, &e);
  return e.code != 0 || run_line("train tests/cli.yaml --out run --quiet").code != 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

static void command_lines(void **state) {
  (void)state;
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/tests/pain/commands.txt", tree);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  char line[512];
  int rows = 0, wrong = 0;
  while (fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *first = strstr(line, " => ");
    char *second = first != NULL ? strstr(first + 4, " => ") : NULL;
    if (line[0] == '#' || line[0] == '\0') {
      continue;
    }
    assert_non_null(second);
    *first = *second = '\0';
    int code = atoi(first + 4);
    const char *text = second + 4;
    struct outcome o = run_line(line);
    bool said = strstr(o.out, text) != NULL || strstr(o.err, text) != NULL;
    // a mistake is explained on stderr, in a line that begins with the program's name
    bool explained = code == 0 || line[0] == '\0' || strncmp(o.err, "dsim: ", 6) == 0;
    if (o.code != code || !said || !explained) {
      wrong++;
      print_error("dsim %s\n  expected %d: %s\n  found %d: %.300s\n", line, code, text, o.code,
                  o.err);
    }
    rows++;
  }
  fclose(f);
  assert_int_equal(wrong, 0);
  assert_true(rows > 50);
  assert_true(file_exists("taken/notes.txt"));
}

// tests/golden/NAME.out holds what `dsim NAME` prints, '_' standing for a space.
static void golden_outputs(void **state) {
  (void)state;
  static const char *const names[] = {"help_spec", "spec_tests-cli.yaml"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char path[PATH_MAX + 64], line[128];
    snprintf(path, sizeof path, "%s/tests/golden/%s.out", tree, names[i]);
    snprintf(line, sizeof line, "%s", names[i]);
    for (char *p = line; *p != '\0'; p++) {
      *p = *p == '_' ? ' ' : *p == '-' ? '/' : *p;
    }
    struct outcome o = run_line(line);
    assert_int_equal(o.code, 0);
    // golden output of a spec names the fields that the file sets, in order; the rest may grow
    char *golden = arena_strdup(&arena, read_all(path));
    const char *at = o.out;
    for (char *want = strtok(golden, "\n"); want != NULL; want = strtok(NULL, "\n")) {
      at = strstr(at, want);
      if (at == NULL) {
        fail_msg("dsim %s: '%s' is missing, or not in its place", line, want);
      }
      at += strlen(want);
    }
  }
}

static void full_disk_is_an_error(void **state) {
  (void)state;
  if (!file_exists("/dev/full")) {
    skip();
  }
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execl(program, "dsim", "spec", (char *)NULL);
    _exit(127);
  }
  int status;
  waitpid(child, &status, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), EXIT_IO);
}

// The spec of a run repeats it: same bytes in every result but the wall clock.
static void run_directory_repeats_the_run(void **state) {
  (void)state;
  struct outcome o = run_line("train tests/cli.yaml --out once --set log.wall=false --quiet");
  assert_int_equal(o.code, 0);
  assert_string_equal(o.out, "");
  assert_string_equal(o.err, "");
  o = run_line("train once/spec.yaml --out twice --quiet");
  assert_int_equal(o.code, 0);
  assert_string_equal(read_all("once/progress.csv"), read_all("twice/progress.csv"));
  assert_string_equal(read_all("once/spec.yaml"), read_all("twice/spec.yaml"));
  assert_string_equal(read_all("once/command.txt"),
                      "dsim train tests/cli.yaml --out once --set log.wall=false --quiet\n");
  assert_string_equal(read_all("once/overrides.txt"), "log.wall=false\n");
  assert_int_equal(run_line("spec once").code, 0); // a run directory is a spec, too
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(command_lines),
      cmocka_unit_test(golden_outputs),
      cmocka_unit_test(full_disk_is_an_error),
      cmocka_unit_test(run_directory_repeats_the_run),
  };
  return cmocka_run_group_tests_name("cli", tests, set_up, tear_down);
}
