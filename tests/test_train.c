// dsim train and dsim evaluate as commands: records, resuming, stopping, and what they refuse. Uses
// the program named by DSIM_BIN (set by make check).
#include "base/err.h"
#include "base/file.h"
#include "out/csv.h"
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

static char folder[] = "/tmp/dsim_train_XXXXXX";
static const char *program;

static const char spec_text[] = "motion: motions/walk.csv.gz\n"
                                "iterations: 6\n"
                                "learn.envs: 16\n"
                                "learn.shard: 8\n"
                                "learn.horizon: 4\n"
                                "learn.actor.layers: [32, 16]\n"
                                "learn.critic.layers: [16]\n"
                                "learn.critic.batches: 2\n"
                                "learn.lr_iterations: 6\n"
                                "eval.every: 2\n"
                                "eval.starts: 3\n"
                                "log.wall: false\n"
                                "checkpoint.every: 100\n";

static int set_up(void **state) {
  (void)state;
  program = getenv("DSIM_BIN") ? getenv("DSIM_BIN") : "./dsim";
  if (!mkdtemp(folder)) {
    return -1;
  }
  char path[128];
  snprintf(path, sizeof path, "%s/small.yaml", folder);
  FILE *f = fopen(path, "w");
  fputs(spec_text, f);
  return fclose(f);
}
static int tear_down(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

// Runs "dsim ARGS" with @ standing for the test's folder; stdout and stderr go to files there. The
// exit code.
static int dsim(const char *args) {
  char command[2048];
  int n = snprintf(command, sizeof command, "%s ", program);
  for (const char *p = args; *p; p++) {
    n += *p == '@' ? snprintf(command + n, sizeof command - (size_t)n, "%s", folder)
                   : snprintf(command + n, sizeof command - (size_t)n, "%c", *p);
  }
  snprintf(command + n, sizeof command - (size_t)n, " >%s/out 2>%s/err", folder, folder);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *text_of(const char *name) {
  static char text[1 << 16];
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  if (!f) {
    fail_msg("no %s", path);
  }
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

static void assert_says(const char *file, const char *what) {
  const char *text = text_of(file);
  if (!strstr(text, what)) {
    fail_msg("expected '%s' in: %s", what, text);
  }
}

static void assert_ok(const char *args) {
  int code = dsim(args);
  if (code != 0) {
    fail_msg("dsim %s: exit %d: %s", args, code, text_of("err"));
  }
}

static void assert_same_file(const char *a, const char *b) {
  char path[256], hex[2][65];
  struct err e = {0};
  snprintf(path, sizeof path, "%s/%s", folder, a);
  assert_int_equal(file_sha256(path, hex[0], &e), 0);
  snprintf(path, sizeof path, "%s/%s", folder, b);
  assert_int_equal(file_sha256(path, hex[1], &e), 0);
  assert_string_equal(hex[0], hex[1]);
}

// ---- records

static void test_records(void **state) {
  (void)state;
  assert_ok("train @/small.yaml --out @/whole --threads 2");
  struct arena a;
  arena_init(&a);
  struct csv_table t;
  struct err e = {0};
  char path[256];
  snprintf(path, sizeof path, "%s/whole/progress.csv", folder);
  assert_int_equal(csv_read(&t, &a, path, &e), 0);
  assert_int_equal(t.nrow, 6);
  static const char *const relied_on[] = {"iteration",       "env_steps",   "wall_s",
                                          "reward",          "episode_s",   "e_track_cm",
                                          "actor_loss",      "critic_loss", "actor_grad_norm",
                                          "bundle_fraction", "lr_actor",    "failures_per_1000"};
  for (size_t i = 0; i < sizeof relied_on / sizeof *relied_on; i++) {
    assert_true(csv_find(&t, relied_on[i]) >= 0);
  }
  for (int i = 0; i < 3; i++) {
    assert_int_equal(csv_find(&t, relied_on[i]), i);
  }
  double *steps, *lr, *reached;
  assert_int_equal(csv_reals(&steps, &a, &t, "env_steps", &e), 0);
  assert_int_equal(csv_reals(&lr, &a, &t, "lr_actor", &e), 0);
  assert_int_equal(csv_reals(&reached, &a, &t, "eval_reached", &e), 0);
  for (int i = 0; i < 6; i++) {
    assert_true(steps[i] == (i + 1) * 16 * 4);
    assert_true(fabs(lr[i] - 2e-3 * (1 - i / 6.)) < 1e-9);
    assert_true(isnan(reached[i]) == (i % 2 == 0)); // evaluated every second iteration
  }
  arena_release(&a);
}

static void test_threads_and_resume(void **state) {
  (void)state;
  assert_ok("train @/small.yaml --out @/one --threads 1 --quiet");
  assert_same_file("whole/progress.csv", "one/progress.csv");
  assert_same_file("whole/ckpt_00000006.dsim", "one/ckpt_00000006.dsim");
  assert_same_file("whole/policy.dsim", "one/policy.dsim");

  assert_ok("train @/small.yaml --out @/parts --threads 2 --quiet --iterations 3");
  assert_ok("train @/parts --resume --threads 1 --quiet --iterations 6");
  assert_same_file("whole/progress.csv", "parts/progress.csv");
  assert_same_file("whole/ckpt_00000006.dsim", "parts/ckpt_00000006.dsim");
  assert_same_file("whole/policy.dsim", "parts/policy.dsim");
}

// As after a crash: rows behind the checkpoint, the last one half written.
static void test_resume_cuts_records(void **state) {
  (void)state;
  assert_ok("train @/small.yaml --out @/crash --quiet --iterations 3");
  char path[256];
  snprintf(path, sizeof path, "%s/crash/progress.csv", folder);
  FILE *f = fopen(path, "a");
  fprintf(f, "3,256,0,9,9,9,9,9,9,0,1,1,9,9,9,9,9,9,9,9,9,9,9,9,9,,,,,,,,\n4,320,0,1");
  fclose(f);
  assert_ok("train @/crash --resume --quiet --iterations 6");
  assert_same_file("whole/progress.csv", "crash/progress.csv");
}

static void test_interrupt(void **state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char spec[256], out[256];
    snprintf(spec, sizeof spec, "%s/small.yaml", folder);
    snprintf(out, sizeof out, "%s/stopped", folder);
    execl(program, program, "train", spec, "--out", out, "--quiet", "--iterations", "100000",
          "--set", "eval.every=0", (char *)NULL);
    _exit(127);
  }
  // it is at work once there is a row
  char path[256];
  snprintf(path, sizeof path, "%s/stopped/progress.csv", folder);
  struct arena a;
  arena_init(&a);
  struct csv_table t = {0};
  for (int i = 0; i < 3000 && t.nrow == 0; i++) {
    struct err e = {0};
    usleep(10000);
    if (file_exists(path)) {
      csv_read(&t, &a, path, &e);
    }
  }
  assert_true(t.nrow > 0);
  kill(child, SIGINT);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), EXIT_INTERRUPTED);

  // every row written is in the checkpoint, and the run goes on from there
  struct err e = {0};
  assert_int_equal(csv_read(&t, &a, path, &e), 0);
  int rows = t.nrow;
  char args[128];
  snprintf(args, sizeof args, "train @/stopped --resume --quiet --iterations %d", rows + 2);
  assert_ok(args);
  assert_int_equal(csv_read(&t, &a, path, &e), 0);
  assert_int_equal(t.nrow, rows + 2);
  arena_release(&a);
}

static void test_init_from(void **state) {
  (void)state;
  assert_ok("train @/small.yaml --out @/second --quiet --iterations 1 --init-from @/whole "
            "--set learn.actor.lr=0 --set learn.lr_end=0 --set eval.every=1");
  assert_int_equal(dsim("train @/small.yaml --out @/third --init-from @/nowhere"), EXIT_USAGE);
  assert_says("err", "no checkpoint to start from");
}

// ---- evaluate

static void test_evaluate(void **state) {
  (void)state;
  assert_ok("evaluate @/whole --json --episodes 4 --seeds 3..4 --noise 0.2 --quiet");
  cJSON *root = cJSON_Parse(text_of("out"));
  assert_non_null(root);
  static const char *const keys[] = {"falls", "e_track_cm_mean", "e_track_cm_std", "simulator",
                                     "penetration_mm_mean"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    assert_non_null(cJSON_GetObjectItem(root, keys[i]));
  }
  const cJSON *episodes = cJSON_GetObjectItem(root, "episodes");
  assert_int_equal(cJSON_GetArraySize(episodes), 8);
  static const char *const each[] = {
      "seed", "fell", "time_s", "e_track_cm", "e_track_local_cm", "penetration_mm"};
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(episodes, 7), each[i]));
  }
  assert_true(cJSON_GetObjectItem(cJSON_GetArrayItem(episodes, 0), "seed")->valuedouble == 3);
  assert_true(cJSON_GetObjectItem(cJSON_GetArrayItem(episodes, 7), "seed")->valuedouble == 4);
  cJSON_Delete(root);

  assert_ok("evaluate @/whole");
  assert_says("err", "of 3 episodes track to the end");
  assert_says("whole/eval.csv", "seed,fell,time_s,e_track_cm,e_track_local_cm,penetration_mm");
  assert_ok("evaluate @/whole/ckpt_00000006.dsim --quiet");
  // another observation than the policy's
  assert_int_equal(dsim("evaluate @/whole --set observation=paper"), EXIT_USAGE);
  assert_says("err", "obs: spec has 849, checkpoint has 182");
}

// ---- several clips

// one policy on three clips: the same bytes for any number of threads and with a break between, and
// results clip by clip
static void test_clips(void **state) {
  (void)state;
  assert_ok("train @/small.yaml --out @/clips --threads 2 --quiet --set motion=walk,run,jump");
  assert_ok("train @/small.yaml --out @/clips1 --threads 1 --quiet --iterations 3 "
            "--set motion=walk,run,jump");
  assert_ok("train @/clips1 --resume --threads 2 --quiet --iterations 6");
  assert_same_file("clips/progress.csv", "clips1/progress.csv");
  assert_same_file("clips/ckpt_00000006.dsim", "clips1/ckpt_00000006.dsim");
  assert_same_file("clips/policy.dsim", "clips1/policy.dsim");
  assert_says("clips/manifest.json", "walk,run,jump");

  assert_ok("evaluate @/clips --episodes 2 --seeds 0..1 --noise 0.2 --json");
  cJSON *root = cJSON_Parse(text_of("out"));
  assert_non_null(root);
  const cJSON *clips = cJSON_GetObjectItem(root, "clips");
  assert_int_equal(cJSON_GetArraySize(clips), 3);
  struct arena a;
  arena_init(&a);
  struct csv_table t, all;
  struct err e = {0};
  double *error, *fell, *start, *mean, *falls, *count;
  char path[256];
  snprintf(path, sizeof path, "%s/clips/eval.csv", folder);
  assert_int_equal(csv_read(&t, &a, path, &e), 0);
  snprintf(path, sizeof path, "%s/clips/eval_clips.csv", folder);
  assert_int_equal(csv_read(&all, &a, path, &e), 0);
  csv_reals(&error, &a, &t, "e_track_cm", &e);
  csv_reals(&fell, &a, &t, "fell", &e);
  csv_reals(&start, &a, &t, "start_s", &e);
  csv_reals(&mean, &a, &all, "e_track_cm", &e);
  csv_reals(&falls, &a, &all, "falls", &e);
  csv_reals(&count, &a, &all, "episodes", &e);
  assert_int_equal(e.code, 0);
  assert_int_equal(t.nrow, 12);
  assert_int_equal(all.nrow, 4);
  static const char *const name[] = {"walk", "run", "jump", "all"};
  double total = 0, fallen = 0;
  for (int k = 0; k < 3; k++) {
    double sum = 0, n = 0;
    for (int i = 4 * k; i < 4 * k + 4; i++) {
      assert_string_equal(csv_cell(&t, i, csv_find(&t, "clip")), name[k]);
      assert_true((start[i] == 0) == (i % 2 == 0)); // of the clip's own time
      sum += error[i];
      n += fell[i];
    }
    assert_true(fabs(mean[k] - sum / 4) < 1e-6 && falls[k] == n && count[k] == 4);
    const cJSON *c = cJSON_GetArrayItem(clips, k);
    assert_string_equal(cJSON_GetObjectItem(c, "clip")->valuestring, name[k]);
    assert_true(cJSON_GetObjectItem(c, "falls")->valuedouble == n);
    total += sum;
    fallen += n;
  }
  for (int k = 0; k < 4; k++) {
    assert_string_equal(csv_cell(&all, k, csv_find(&all, "clip")), name[k]);
  }
  assert_true(fabs(mean[3] - total / 12) < 1e-6 && falls[3] == fallen && count[3] == 12);
  arena_release(&a);
  cJSON_Delete(root);
  // each clip as if it were alone
  assert_ok("evaluate @/clips --episodes 2 --quiet --out @/all.csv");
  assert_ok("evaluate @/clips --episodes 2 --quiet --set motion=run --out @/run.csv");
  const char *rows = strchr(text_of("run.csv"), '\n') + 1;
  char *run = strdup(rows);
  assert_says("all.csv", run);
  free(run);
}

// ---- what is refused, and how

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *args, *message;
  } want[] = {
      {"train", "SPEC"},
      {"train @/missing.yaml", "missing.yaml"},
      {"train @/small.yaml --out @/whole", "exists"},
      {"train @/small.yaml --out @/whole --resume --set learn.gamma=0.5", "learn.gamma"},
      {"train @/small.yaml --out @/new --resume", "@/new"},
      {"train @/small.yaml --resume --overwrite --out @/new", "exclude"},
      {"train @/small.yaml --out @/new --seeds 0..1", "--seeds"},
      {"train @/small.yaml --out @/new --set iterations=0", "iterations"},
      {"train @/small.yaml --out @/new --set learn.envs=12", "multiple of 8"},
      {"train @/small.yaml --out @/new --set learn.actor.layres=8", "learn.actor.layers"},
      {"train @/small.yaml --out @/new --set motion=motions/nowhere.csv", "nowhere.csv"},
      {"train @/small.yaml --out @/new --set robot=robots/pendulum.xml", "pendulum"},
      {"train @/small.yaml --out /proc/none", "/proc/none"},
      {"evaluate @/nowhere", "nowhere"},
      {"evaluate @/whole --episodes 0", "episodes"},
  };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    int code = dsim(want[i].args);
    if (code != EXIT_USAGE && !(code == EXIT_IO && strstr(want[i].args, "/proc"))) {
      fail_msg("dsim %s: exit %d: %s", want[i].args, code, text_of("err"));
    }
    const char *message = want[i].message[0] == '@' ? want[i].message + 1 : want[i].message;
    assert_says("err", message);
  }
  // nothing was left behind by what was refused
  char path[256];
  snprintf(path, sizeof path, "%s/new", folder);
  assert_false(file_exists(path));
}

static void test_seeds(void **state) {
  (void)state;
  char here[1024];
  assert_non_null(getcwd(here, sizeof here));
  char command[4096];
  // relative to another folder: results/ appears there
  snprintf(command, sizeof command,
           "home=$(pwd); bin=$(realpath %s); cd %s && DSIM_HOME=$home $bin train small.yaml "
           "--seeds 1..2 --quiet --iterations 1",
           program, folder);
  assert_int_equal(system(command), 0);
  assert_says("results/small/main/seed1/spec.yaml", "seed: 1");
  assert_says("results/small/main/seed2/spec.yaml", "seed: 2");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_threads_and_resume),
      cmocka_unit_test(test_resume_cuts_records),
      cmocka_unit_test(test_interrupt),
      cmocka_unit_test(test_init_from),
      cmocka_unit_test(test_evaluate),
      cmocka_unit_test(test_clips),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_seeds),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
