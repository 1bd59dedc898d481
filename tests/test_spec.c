// Specs: values, keys, errors with their place, the echo, cross-field bounds.
#include "base/file.h"
#include "spec/field.h"
#include "spec/spec.h"
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char folder[] = "/tmp/dsim_test_spec_XXXXXX";
static char spec_file[256], capture_file[256];

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  if (mkdtemp(folder) == NULL) {
    return -1;
  }
  snprintf(spec_file, sizeof spec_file, "%s/case.yaml", folder);
  snprintf(capture_file, sizeof capture_file, "%s/stderr", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  remove(spec_file);
  remove(capture_file);
  arena_release(&arena);
  return rmdir(folder);
}

static void write_spec_file(const char *text, size_t size) {
  struct err e = {0};
  assert_int_equal(file_write_atomic(spec_file, text, size, &e), 0);
}

// Reads TEXT as a file; returns the message ("" when fine) without "FILE:line:column: ".
static const char *read_text(struct spec *s, const char *text) {
  write_spec_file(text, strlen(text));
  struct err e = {0};
  if (spec_read(s, &arena, spec_file, &e) == 0) {
    return "";
  }
  assert_int_equal(e.code, EXIT_USAGE);
  char *message = arena_strdup(&arena, e.text);
  return message + (strncmp(message, spec_file, strlen(spec_file)) == 0 ? strlen(spec_file) : 0);
}

// What is written to stderr between these two.
static int saved_stderr;
static void capture_begin(void) {
  fflush(stderr);
  saved_stderr = dup(STDERR_FILENO);
  assert_non_null(freopen(capture_file, "w", stderr));
}
static const char *capture_end(void) {
  fflush(stderr);
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
  char *text;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&arena, capture_file, 1 << 20, &text, &size, &e), 0);
  return text;
}

// ---- tests/pain/scalars.txt
// ------------------------------------------------------------------------

static void check_scalar(const char *row, const char *path, const char *answer, const char *message,
                         const struct spec *s, const char *warnings) {
  static const char error[] = "error ", warning[] = " warning ";
  if (strncmp(answer, error, strlen(error)) == 0) {
    char expected[1024];
    snprintf(expected, sizeof expected, "%s: %s", path, answer + strlen(error));
    size_t place = strlen(message) - strlen(expected); // what stands in front: file or --set
    if (strlen(message) < strlen(expected) || strcmp(message + place, expected) != 0) {
      fail_msg("%s\n  expected error: %s\n  found:          %s", row, expected, message);
    }
    return;
  }
  const char *split = strstr(answer, warning);
  int length = split != NULL ? (int)(split - answer) : (int)strlen(answer);
  char expected[256], value[8192];
  snprintf(expected, sizeof expected, "%.*s", length, answer);
  if (message[0] != '\0') {
    fail_msg("%s\n  unexpected error: %s", row, message);
  }
  field_print(field_find(path), s, value, sizeof value);
  if (strcmp(value, expected) != 0) {
    fail_msg("%s\n  expected value %s, found %s", row, expected, value);
  }
  const char *expected_warning = split != NULL ? split + strlen(warning) : "";
  if (split != NULL ? strstr(warnings, expected_warning) == NULL : warnings[0] != '\0') {
    fail_msg("%s\n  expected warning '%s', found '%s'", row, expected_warning, warnings);
  }
}

static void scalars(void **state) {
  (void)state;
  FILE *f = fopen("tests/pain/scalars.txt", "r");
  assert_non_null(f);
  char line[512], path[128], text[1024], assignment[1024];
  int rows = 0;
  while (fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const char *arrow = strstr(line, " => ");
    if (line[0] == '#' || line[0] == '\0') {
      continue;
    }
    assert_non_null(arrow);
    size_t n = strcspn(line, ":");
    snprintf(path, sizeof path, "%.*s", (int)n, line);
    const char *value = line + n + 2;
    int value_length = arrow > value ? (int)(arrow - value) : 0;
    assert_non_null(field_find(path));

    struct spec s;
    snprintf(text, sizeof text, "%s: %.*s\n", path, value_length, value);
    capture_begin();
    const char *message = read_text(&s, text);
    check_scalar(line, path, arrow + 4, message, &s, capture_end());

    // the same value on the command line means the same
    spec_default(&s);
    struct err e = {0};
    snprintf(assignment, sizeof assignment, "%s=%.*s", path, value_length, value);
    capture_begin();
    spec_set(&s, &arena, assignment, &e);
    check_scalar(line, path, arrow + 4, e.text, &s, capture_end());
    if (e.code != 0) {
      snprintf(text, sizeof text, "--set %s: ", assignment);
      assert_memory_equal(e.text, text, strlen(text));
    }
    rows++;
  }
  fclose(f);
  assert_true(rows > 70);
}

// ---- tests/pain/specs: NAME.yaml is refused with the text of NAME.err
// --------------------------------

static void refused_files(void **state) {
  (void)state;
  DIR *dir = opendir("tests/pain/specs");
  assert_non_null(dir);
  int cases = 0;
  for (struct dirent *d; (d = readdir(dir)) != NULL;) {
    const char *dot = strrchr(d->d_name, '.');
    if (dot == NULL || strcmp(dot, ".yaml") != 0) {
      continue;
    }
    char yaml[512], expected_file[512], *expected;
    size_t size;
    snprintf(yaml, sizeof yaml, "tests/pain/specs/%s", d->d_name);
    snprintf(expected_file, sizeof expected_file, "tests/pain/specs/%.*s.err",
             (int)(dot - d->d_name), d->d_name);
    struct err e = {0};
    assert_int_equal(file_read(&arena, expected_file, 4096, &expected, &size, &e), 0);
    expected[strcspn(expected, "\n")] = '\0';
    // "..." at the end: the message may go on
    char *dots = strstr(expected, "...");
    struct spec s;
    spec_read(&s, &arena, yaml, &e);
    bool same = dots != NULL ? strncmp(e.text, expected, (size_t)(dots - expected)) == 0
                             : strcmp(e.text, expected) == 0;
    if (e.code != EXIT_USAGE || !same) {
      fail_msg("%s\n  expected: %s\n  found %d:  %s", yaml, expected, e.code, e.text);
    }
    cases++;
  }
  closedir(dir);
  assert_true(cases >= 30);
}

static void huge_and_deep_files(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  size_t size = 10 << 20;
  char *text = arena_alloc(&arena, size);
  memset(text, '#', size);
  write_spec_file(text, size);
  assert_int_equal(spec_read(&s, &arena, spec_file, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "larger than the 1048576 bytes"));

  // a thousand levels, of keys and of lists
  enum { DEPTH = 1000 };
  for (int lists = 0; lists < 2; lists++) {
    char *p = text;
    if (lists) {
      p += sprintf(p, "learn.actor.layers: ");
    }
    for (int i = 0; i < DEPTH; i++) {
      p += sprintf(p, "%s", lists ? "[" : "{learn: ");
    }
    memset(p, lists ? ']' : '}', DEPTH);
    p[DEPTH] = '\n';
    write_spec_file(text, (size_t)(p + DEPTH + 1 - text));
    e = (struct err){0};
    assert_int_equal(spec_read(&s, &arena, spec_file, &e), EXIT_USAGE);
    assert_non_null(strstr(e.text, lists ? "found a nested one" : "unknown key 'learn.learn'"));
  }
}

// ---- what is accepted
// --------------------------------------------------------------------------------

static void forms_of_a_file(void **state) {
  (void)state;
  static const char *const forms[] = {
      "seed: 3\nlearn:\n  envs: 128\n  actor:\n    layers: [64, 32]\n",
      "learn.actor.layers: [64, 32]\nlearn.envs: 128\nseed: 3\n",
      "\xef\xbb\xbfseed: 3\nlearn: {envs: 128, actor: {layers: [64, 32,]}}\n", // BOM, flow style
      "seed: 3 # c\r\nlearn:\r\n  envs: 128\r\n  actor.layers:\r\n  - 64\r\n  - 32\r\n", // CRLF
      "---\nseed: 3\nlearn: {envs: 128}\nlearn.actor: {layers: [64, 32]}\n...\n",
  };
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    struct spec s;
    assert_string_equal(read_text(&s, forms[i]), "");
    assert_int_equal(s.seed, 3);
    assert_int_equal(s.envs, 128);
    assert_int_equal(s.actor_layers.n, 2);
    assert_int_equal(s.actor_layers.v[1], 32);
    assert_string_equal(s.experiment, "case"); // the file's name
    assert_string_equal(s.path, spec_file);
  }
}

static void base_files_come_first(void **state) {
  (void)state;
  char other[512];
  snprintf(other, sizeof other, "%s/other.yaml", folder);
  struct err e = {0};
  static const char text[] = "seed: 5\nlearn.envs: 256\n";
  file_write_atomic(other, text, sizeof text - 1, &e);
  struct spec s;
  assert_string_equal(read_text(&s, "base: other.yaml\nlearn.envs: 128\n"), "");
  remove(other);
  assert_int_equal(s.seed, 5);
  assert_int_equal(s.envs, 128);
  assert_string_equal(s.experiment, "case");
}

// Every field of every kind survives echo and reading, to the last bit.
static void echo_reads_back(void **state) {
  (void)state;
  struct spec s, back;
  spec_default(&s);
  assert_string_equal(s.path, "");
  s.experiment = "a/b";
  s.motion = "my \"odd\" \\ name: # \t\n.csv";
  s.robot = "-";
  s.variant = "true";
  s.reward_key = 0.1 + 0.2;
  s.actor_lr = 1. / 3;
  s.terminate_height = -0.;
  s.integrator = INTEGRATOR_EULER;
  s.return_norm = false;
  s.actor_layers = (struct spec_ints){.n = 3, .v = {7, 5, 3}};
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  spec_print(&s, f);
  fclose(f);
  assert_string_equal(read_text(&back, text), "");
  free(text);
  char differs[4096];
  int n = spec_diff(&s, &back, differs, sizeof differs);
  if (n != 0) {
    fail_msg("%s", differs);
  }
  assert_memory_equal(&s.reward_key, &back.reward_key, sizeof s.reward_key);
  assert_true(signbit(back.terminate_height));
  assert_string_equal(back.motion, s.motion);

  // and differences are named
  back.envs = 128;
  back.motion = "x";
  assert_int_equal(spec_diff(&s, &back, differs, sizeof differs), 2);
  assert_non_null(strstr(differs, "learn.envs: 64 -> 128\n"));
  assert_int_equal(spec_diff(&s, &back, differs, 10), 2); // a short buffer is filled, not overrun
  assert_int_equal(strlen(differs), 9);
}

static void shortest_decimals(void **state) {
  (void)state;
  char buf[32];
  assert_string_equal(scalar_print(0.1, buf), "0.1");
  assert_string_equal(scalar_print(2e-3, buf), "0.002");
  assert_string_equal(scalar_print(0.1 + 0.2, buf), "0.30000000000000004");
  assert_string_equal(scalar_print(1e9, buf), "1000000000");
  assert_string_equal(scalar_print(-0., buf), "-0");
}

// Defaults lie within their own bounds, names are unique, and hints point at fields that exist.
static void table_is_sound(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  spec_default(&s);
  assert_int_equal(spec_check(&s, &e), 0);
  for (int i = 0; i < nspec_field; i++) {
    const struct field *f = &spec_fields[i];
    assert_ptr_equal(field_find(f->path), f);
    assert_true(strlen(f->path) <= SPEC_KEY_MAX);
    assert_false(field_is_group(f->path));
    assert_true(f->help[0] != '\0');
    char value[8192], assignment[9000];
    field_print(f, &s, value, sizeof value);
    snprintf(assignment, sizeof assignment, "%s=%s", f->path, value);
    if (spec_set(&s, &arena, assignment, &e) != 0) {
      fail_msg("default of %s: %s", f->path, e.text);
    }
  }
  for (int i = 0; i < nspec_synonym; i++) {
    assert_non_null(field_find(spec_synonyms[i].path));
    assert_null(field_find(spec_synonyms[i].name));
  }
}

// ---- --set
// -------------------------------------------------------------------------------------------

static void assignments(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"learn.envs=128", ""},
      {"learn.actor.layers=[8,8]", ""},
      {"motion=a=b", ""},
      {"", "--set : expected PATH=VALUE, as in --set learn.envs=128"},
      {"a", "--set a: expected PATH=VALUE, as in --set learn.envs=128"},
      {"a.b", "--set a.b: expected PATH=VALUE, as in --set learn.envs=128"},
      {"=1", "--set =1: expected PATH=VALUE, as in --set learn.envs=128"},
      {"learn.envs=", "--set learn.envs=: learn.envs: no value, expected a whole number from 8 to "
                      "65536"},
      {"learn.envs= ", "--set learn.envs= : learn.envs: no value, expected a whole number from 8 "
                       "to 65536"},
      {"learn..envs=1", "--set learn..envs=1: unknown key 'learn..envs' (did you mean "
                        "'learn.envs'?)"},
      {"learn=1", "--set learn=1: 'learn' is a group, not a field"},
      {"lern.envs=1", "--set lern.envs=1: unknown key 'lern.envs' (did you mean 'learn.envs'?)"},
      {"motion=*x", "--set motion=*x: anchors, aliases and tags are not supported"},
      {"motion=#x", "--set motion=#x: the text is empty"},
      {"seed=1\n---\n2", "--set seed=1\n---\n2: a second document is not supported"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct spec s;
    spec_default(&s);
    struct err e = {0};
    spec_set(&s, &arena, cases[i].text, &e);
    assert_string_equal(e.text, cases[i].message);
    assert_int_equal(e.code, cases[i].message[0] != '\0' ? EXIT_USAGE : 0);
  }
  char key[200] = "";
  memset(key, 'k', 100);
  strcpy(key + 100, "=1");
  struct spec s;
  struct err e = {0};
  assert_int_equal(spec_set(&s, &arena, key, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "a key of more than 64 characters"));
}

static void cross_field_bounds(void **state) {
  (void)state;
  static const struct {
    const char *set, *message;
  } cases[] = {
      {"learn.envs=60", "learn.envs: expected a multiple of 8 (lanes), found 60"},
      {"learn.envs=48", "learn.envs: expected a multiple of learn.shard (32), found 48"},
      {"learn.shard=20", "learn.shard: expected a multiple of 8 (lanes), found 20"},
      {"sim.dt=0.003", "control.dt: expected a multiple of sim.dt (0.003 s), found 0.02 s"},
      {"sim.dt=0.05",
       "control.dt: expected a multiple of sim.dt (0.05 s), found 0.02 s (0.4 times)"},
      {"contact.friction=-0.5", "contact.friction: expected 0 or more, or -1"},
      {"experiment=../x", "experiment: '../x' is no folder below results/"},
      {"variant=/etc", "variant: '/etc' is no folder below results/"},
      {"variant=a b", "variant: expected letters, digits"},
      {"motion=\"\"", "motion: expected a name, found ''"},
      {"contact.model=mujoco", "integrator: expected euler or rk4 with contact.model mujoco"},
      {"integrator=rk4", "integrator: rk4 needs contact.model mujoco"},
      {"cfd.law=relu", "cfd.law: expected off with contact.model smoothed"},
      {"sim.dt=0.002", ""},
      {"learn.envs=8192", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct spec s;
    spec_default(&s);
    struct err e = {0};
    assert_int_equal(spec_set(&s, &arena, cases[i].set, &e), 0);
    spec_check(&s, &e);
    if (strncmp(e.text, cases[i].message, strlen(cases[i].message)) != 0 ||
        (cases[i].message[0] == '\0') != (e.code == 0)) {
      fail_msg("%s\n  expected: %s\n  found:    %s", cases[i].set, cases[i].message, e.text);
    }
  }
}

static void missing_specs(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  assert_int_equal(spec_read(&s, &arena, "no_such_spec_xyz", &e), EXIT_USAGE);
  assert_string_equal(
      e.text, "there is no spec 'no_such_spec_xyz', nor experiments/no_such_spec_xyz[.yaml]");
  e = (struct err){0};
  assert_int_equal(spec_read(&s, &arena, "", &e), EXIT_USAGE);
}

// Every spec that is shipped can be read and is consistent. Folders below hold other kinds of
// files, as sweeps, which have their own tests.
static int check_shipped(const char *path) {
  DIR *dir = opendir(path);
  int n = 0;
  for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
    char file[PATH_MAX];
    snprintf(file, sizeof file, "%s/%s", path, d->d_name);
    const char *dot = strrchr(d->d_name, '.');
    if (dot != NULL && strcmp(dot, ".yaml") == 0) {
      struct spec s;
      struct err e = {0};
      if (spec_read(&s, &arena, file, &e) != 0 || spec_check(&s, &e) != 0) {
        fail_msg("%s: %s", file, e.text);
      }
      n++;
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return n;
}

static void shipped_specs(void **state) {
  (void)state;
  if (check_shipped("experiments") == 0) {
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scalars),
      cmocka_unit_test(refused_files),
      cmocka_unit_test(huge_and_deep_files),
      cmocka_unit_test(forms_of_a_file),
      cmocka_unit_test(base_files_come_first),
      cmocka_unit_test(echo_reads_back),
      cmocka_unit_test(shortest_decimals),
      cmocka_unit_test(table_is_sound),
      cmocka_unit_test(assignments),
      cmocka_unit_test(cross_field_bounds),
      cmocka_unit_test(missing_specs),
      cmocka_unit_test(shipped_specs),
  };
  return cmocka_run_group_tests_name("spec", tests, set_up, tear_down);
}
