// Run directories: made, refused, resumed, overwritten, found.
#include "base/file.h"
#include "out/json.h"
#include "out/rundir.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char folder[] = "/tmp/dsim_test_rundir_XXXXXX";
static char start_folder[4096];

// every test runs in a folder of its own, because results/ is relative
static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  return getcwd(start_folder, sizeof start_folder) == NULL || mkdtemp(folder) == NULL ||
         chdir(folder) != 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir(start_folder) != 0 || system(command) != 0;
}

static const char *read_all(const char *path) {
  char *text;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&arena, path, 1 << 20, &text, &size, &e), 0);
  return text;
}

static void touch(const char *path) {
  struct err e = {0};
  assert_int_equal(file_write_atomic(path, "x", 1, &e), 0);
}

static struct spec some_spec(void) {
  struct spec s;
  spec_default(&s);
  s.experiment = "walk";
  s.seed = 7;
  return s;
}

static char word_train[] = "train", word_name[] = "my walk's", word_set[] = "--set",
            word_value[] = "learn.envs=128";
static char *const command[] = {word_train, word_name, word_set, word_value};
static const char *const sets[] = {"learn.envs=128"};

static int open_run(const char *path, enum rundir_mode mode, const struct spec *s, struct err *e) {
  *e = (struct err){0};
  return rundir_open(&arena, path, mode, s, sets, 1, 4, command, e);
}

static void paths(void **state) {
  (void)state;
  struct spec s = some_spec();
  assert_string_equal(rundir_path(&arena, &s, NULL), "results/walk/main/seed7");
  assert_string_equal(rundir_path(&arena, &s, "elsewhere"), "elsewhere");
}

static void new_run_says_what_was_asked(void **state) {
  (void)state;
  struct spec s = some_spec(), back;
  struct err e;
  s.envs = 128;
  const char *path = rundir_path(&arena, &s, NULL);
  assert_int_equal(open_run(path, RUNDIR_NEW, &s, &e), 0);
  assert_int_equal(spec_read(&back, &arena, "results/walk/main/seed7", &e), 0);
  char differs[1024];
  assert_int_equal(spec_diff(&s, &back, differs, sizeof differs), 0);
  assert_string_equal(read_all("results/walk/main/seed7/overrides.txt"), "learn.envs=128\n");
  // quoted so that a shell reads it back
  assert_string_equal(read_all("results/walk/main/seed7/command.txt"),
                      "dsim train 'my walk'\\''s' --set learn.envs=128\n");
}

static void existing_runs_are_safe(void **state) {
  (void)state;
  struct spec s = some_spec();
  struct err e;
  assert_int_equal(open_run("safe", RUNDIR_NEW, &s, &e), 0);
  touch("safe/progress.csv");
  touch("safe/notes.md");
  assert_int_equal(open_run("safe", RUNDIR_NEW, &s, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "--resume"));
  assert_non_null(strstr(e.text, "--overwrite"));
  assert_true(file_exists("safe/progress.csv"));

  assert_int_equal(open_run("safe", RUNDIR_OVERWRITE, &s, &e), 0);
  assert_false(file_exists("safe/progress.csv"));
  assert_true(file_exists("safe/notes.md")); // not ours

  // a folder that never was a run
  assert_int_equal(dir_make("home", &e), 0);
  touch("home/thesis.csv");
  assert_int_equal(open_run("home", RUNDIR_OVERWRITE, &s, &e), EXIT_USAGE);
  assert_true(file_exists("home/thesis.csv"));
  assert_int_equal(open_run("home", RUNDIR_NEW, &s, &e), EXIT_USAGE);

  // an empty one is as good as none
  assert_int_equal(dir_make("empty", &e), 0);
  assert_int_equal(open_run("empty", RUNDIR_NEW, &s, &e), 0);

  // a file in the way
  touch("file");
  assert_int_equal(open_run("file", RUNDIR_NEW, &s, &e), EXIT_IO);
}

static void resume_wants_the_same_spec(void **state) {
  (void)state;
  struct spec s = some_spec();
  struct err e;
  assert_int_equal(open_run("again", RUNDIR_RESUME, &s, &e), EXIT_USAGE);
  assert_string_equal(e.text, "there is no run to resume in 'again'");
  assert_false(file_exists("again"));

  assert_int_equal(open_run("again", RUNDIR_NEW, &s, &e), 0);
  touch("again/progress.csv");
  s.iterations = 2000;
  s.threads = 2;
  assert_int_equal(open_run("again", RUNDIR_RESUME, &s, &e), 0);
  assert_true(file_exists("again/progress.csv"));
  assert_non_null(strstr(read_all("again/spec.yaml"), "iterations: 2000"));
  // the first command line, and the one that resumed
  static const char line[] = "dsim train 'my walk'\\''s' --set learn.envs=128\n";
  char both[2 * sizeof line];
  snprintf(both, sizeof both, "%s%s", line, line);
  assert_string_equal(read_all("again/command.txt"), both);

  s.envs = 256;
  s.motion = "other.csv";
  assert_int_equal(open_run("again", RUNDIR_RESUME, &s, &e), EXIT_USAGE);
  assert_string_equal(e.text,
                      "cannot resume 'again': the spec differs from the run's (run -> now)\n"
                      "  motion: motions/walk.csv.gz -> other.csv\n"
                      "  learn.envs: 64 -> 256");
  assert_non_null(strstr(read_all("again/spec.yaml"), "learn.envs: 64"));
}

static void runs_are_found(void **state) {
  (void)state;
  struct spec s = some_spec();
  struct err e = {0};
  assert_int_equal(open_run("results/fly/main/seed0", RUNDIR_NEW, &s, &e), 0);
  touch("results/fly/main/seed0/progress.csv");
  static const char *const names[] = {"results/fly/main/seed0",
                                      "results/fly/main/seed0/",
                                      "results/fly/main/seed0/progress.csv",
                                      "fly",
                                      "results/fly",
                                      "fly/main/seed0"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *found = rundir_locate(&arena, names[i], &e);
    assert_non_null(found);
    assert_string_equal(found, "results/fly/main/seed0");
  }
  assert_int_equal(open_run("results/fly/main/seed1", RUNDIR_NEW, &s, &e), 0);
  assert_null(rundir_locate(&arena, "fly", &e));
  assert_string_equal(e.text, "'results/fly' holds several runs, name one of them");
  e = (struct err){0};
  assert_null(rundir_locate(&arena, "nothing", &e));
  assert_int_equal(e.code, EXIT_USAGE);
  assert_string_equal(e.text, "there is no run 'nothing', nor results/nothing");
  e = (struct err){0};
  assert_null(rundir_locate(&arena, "", &e));
  assert_int_equal(e.code, EXIT_USAGE);
  touch("loose");
  e = (struct err){0};
  assert_int_equal(dir_make("void", &e), 0);
  assert_null(rundir_locate(&arena, "void", &e));
  assert_string_equal(e.text, "'void' holds no run (no spec.yaml)");
}

static void manifest_names_the_binary(void **state) {
  (void)state;
  struct err e = {0};
  char sha[65];
  sha256_hex("abc", 3, sha);
  assert_int_equal(dir_make("m", &e), 0);
  struct manifest m = {.command = "train",
                       .isa = "v3",
                       .threads = 2,
                       .seed = 7,
                       .robot = "robots/g1.xml",
                       .robot_sha256 = sha};
  assert_int_equal(manifest_write("m", &m, &e), 0);
  cJSON *root = json_read("m/manifest.json", &e);
  assert_non_null(root);
  static const char *const texts[] = {"version", "commit",        "compiler", "flags",
                                      "cpu",     "openblas_core", "mujoco",   "date"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    const char *value;
    assert_int_equal(json_get_text(&value, root, texts[i], "m/manifest.json", &e), 0);
    assert_true(value[0] != '\0');
  }
  const char *value;
  json_get_text(&value, root, "robot_sha256", "", &e);
  assert_string_equal(value, sha);
  json_get_text(&value, root, "isa", "", &e);
  assert_string_equal(value, "v3");
  json_get_text(&value, root, "flags", "", &e);
  assert_non_null(strstr(value, "-ffp-contract=off"));
  assert_null(cJSON_GetObjectItem(root, "motion"));
  assert_non_null(cJSON_GetObjectItem(root, "dirty"));
  cJSON_Delete(root);
  assert_int_equal(manifest_write("no/such", &m, &e), EXIT_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths),
      cmocka_unit_test(new_run_says_what_was_asked),
      cmocka_unit_test(existing_runs_are_safe),
      cmocka_unit_test(resume_wants_the_same_spec),
      cmocka_unit_test(runs_are_found),
      cmocka_unit_test(manifest_names_the_binary),
  };
  return cmocka_run_group_tests_name("rundir", tests, set_up, tear_down);
}
