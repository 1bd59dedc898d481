// Sweeps: what a file stands for, what is refused and how it is said, and the command from start to
// resume on cells that train in a moment. $DSIM_BIN is the program.
#include "base/file.h"
#include "cmd/cell.h"
#include "cmd/summary.h"
#include "cmd/sweep.h"
#include "out/csv.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char program[PATH_MAX], tree[PATH_MAX];
static char folder[] = "/tmp/dsim_test_ablate_XXXXXX";

// ---- helpers

static void write_text(const char *path, const char *text) {
  struct err e = {0};
  assert_int_equal(file_write_atomic(path, text, strlen(text), &e), 0);
}

static const char *read_all(const char *path) {
  char *text;
  size_t size;
  struct err e = {0};
  if (file_read(&arena, path, 1 << 22, &text, &size, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return text;
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, word)) != NULL; p += strlen(word)) {
    n++;
  }
  return n;
}

struct outcome {
  int code;
  const char *out, *err;
};

static pid_t start(const char *line) {
  static char name[] = "dsim";
  char *argv[64] = {name};
  int n = 1;
  for (char *word = strtok(arena_strdup(&arena, line), " "); word; word = strtok(NULL, " ")) {
    assert_true(n < 63);
    argv[n++] = word;
  }
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(open("stdout", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDOUT_FILENO);
    dup2(open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO);
    execv(program, argv);
    _exit(127);
  }
  return child;
}

static struct outcome finish(pid_t child) {
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return (struct outcome){WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                          read_all("stdout"), read_all("stderr")};
}

static struct outcome run(const char *line) {
  return finish(start(line));
}

static void assert_says(const char *text, const char *words) {
  if (strstr(text, words) == NULL) {
    fail_msg("expected '%s' in:\n%.2000s", words, text);
  }
}

// two cells, each trained in a moment
static const char tiny[] = "base: smoke\n"
                           "set:\n"
                           "  iterations: 2\n"
                           "  learn: {envs: 8, shard: 8, horizon: 4}\n"
                           "  learn.actor.layers: [16]\n"
                           "  learn.critic.layers: [16]\n"
                           "  eval.every: 0\n"
                           "sweep:\n"
                           "  contact.kappa: [50, 3e2]\n"
                           "steps: [train, transfer --episodes 2, evaluate --episodes 1]\n"
                           "metrics: [falls, e_track_cm, delta_d_mm, env_steps]\n";

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  const char *given = getenv("DSIM_BIN");
  if (realpath(given != NULL ? given : "./dsim", program) == NULL || realpath(".", tree) == NULL ||
      mkdtemp(folder) == NULL || chdir(folder) != 0) {
    fprintf(stderr, "test_ablate: run from the root of the tree, with $DSIM_BIN or ./dsim built\n");
    return -1;
  }
  setenv("DSIM_HOME", tree, 1); // specs, robots and motions; results go to a folder of this test
  write_text("tiny.yaml", tiny);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return chdir("/") != 0 || system(command) != 0;
}

// ---- what a file stands for

static void product_in_file_order(void **state) {
  (void)state;
  write_text("product.yaml", "base: run\n"
                             "set: {iterations: 7, learn.horizon: 16}\n"
                             "variants:\n"
                             "  - name: b\n"
                             "    bundle.size: 10\n"
                             "    learn.horizon: 8\n"
                             "  - name: a\n"
                             "sweep:\n"
                             "  contact.kappa: [300, 50]\n"
                             "  motion: [motions/run.csv.gz, motions/jump.csv.gz]\n"
                             "  learn.actor.layers: [[128, 64]]\n"
                             "seeds: [3, 4]\n");
  struct sweep s;
  struct sweep_options o = {0};
  struct err e = {0};
  if (sweep_read(&s, &arena, "product.yaml", &o, &e) != 0) {
    fail_msg("%s", e.text);
  }
  static const char *const names[] = {"b_kappa300_run_layers128-64", "b_kappa300_jump_layers128-64",
                                      "b_kappa50_run_layers128-64",  "b_kappa50_jump_layers128-64",
                                      "a_kappa300_run_layers128-64", "a_kappa300_jump_layers128-64",
                                      "a_kappa50_run_layers128-64",  "a_kappa50_jump_layers128-64"};
  assert_int_equal(s.nvariant, 8);
  assert_int_equal(s.ncell, 16);
  for (int i = 0; i < 8; i++) {
    assert_string_equal(s.variant[i].name, names[i]);
    // every variant at the first seed comes before any at the second
    assert_ptr_equal(s.cell[i].variant, &s.variant[i]);
    assert_int_equal(s.cell[i].seed, 3);
    assert_int_equal(s.cell[8 + i].seed, 4);
  }
  const struct sweep_cell *c = &s.cell[8 + 3];
  assert_string_equal(c->dir, "results/ablate/product/b_kappa50_jump_layers128-64/seed4");
  assert_int_equal(c->spec.bundle_size, 10);
  assert_int_equal(c->spec.horizon, 8); // the variant's, not the one of set:
  assert_int_equal(c->spec.iterations, 7);
  assert_true(c->spec.contact_kappa == 50);
  assert_string_equal(c->spec.motion, "motions/jump.csv.gz");
  assert_int_equal(c->spec.actor_layers.n, 2);
  assert_int_equal(s.cell[4].spec.horizon, 16);
  assert_int_equal(s.cell[4].spec.bundle_size, 1);
  // a field stands once in the command line, with the value it has in the end
  static const char *const sets[] = {"iterations=7",
                                     "learn.horizon=8",
                                     "bundle.size=10",
                                     "contact.kappa=50",
                                     "motion=motions/jump.csv.gz",
                                     "learn.actor.layers=[128, 64]"};
  assert_int_equal(c->variant->nset, 6);
  for (int i = 0; i < 6; i++) {
    assert_string_equal(c->variant->set[i], sets[i]);
  }
  // no two cells have the same hash
  for (int i = 0; i < s.ncell; i++) {
    for (int k = 0; k < i; k++) {
      assert_string_not_equal(s.cell[i].hash, s.cell[k].hash);
    }
  }
}

static void axes_from_the_command_line(void **state) {
  (void)state;
  struct sweep_options o = {
      .axis = {.n = 2, .v = {"contact.kappa=50,3e2,300.5", "learn.critic.layers=[64,32],[8]"}},
      .set = {.n = 1, .v = {"learn.horizon=9"}},
      .seeds = {true, 0, 1},
      .out = "elsewhere"};
  struct sweep s;
  struct err e = {0};
  assert_int_equal(sweep_read(&s, &arena, "run", &o, &e), 0);
  assert_int_equal(s.ncell, 12);
  assert_string_equal(s.name, "run");
  assert_string_equal(s.variant[0].name, "kappa50_layers64-32");
  assert_string_equal(s.variant[3].name, "kappa300_layers8");
  assert_string_equal(s.variant[4].name, "kappa300.5_layers64-32");
  assert_string_equal(s.cell[3].dir, "elsewhere/kappa300_layers8/seed0");
  assert_int_equal(s.cell[3].spec.horizon, 9);
  // other values for an axis of the file
  struct sweep_options other = {.axis = {.n = 1, .v = {"contact.kappa=7"}}};
  assert_int_equal(sweep_read(&s, &arena, "tiny.yaml", &other, &e), 0);
  assert_int_equal(s.ncell, 1);
  assert_string_equal(s.variant[0].name, "kappa7");
}

static void hash_leaves_threads_out(void **state) {
  (void)state;
  struct sweep a, b, c;
  struct err e = {0};
  struct sweep_options same = {.out = "there"}, other = {.set = {.n = 1, .v = {"gamma=0.9"}}};
  other.set.v[0] = "learn.gamma=0.9";
  assert_int_equal(sweep_read(&a, &arena, "tiny.yaml", &(struct sweep_options){0}, &e), 0);
  assert_int_equal(sweep_read(&b, &arena, "tiny.yaml", &same, &e), 0);
  assert_int_equal(sweep_read(&c, &arena, "tiny.yaml", &other, &e), 0);
  assert_string_equal(a.cell[0].hash, b.cell[0].hash);
  assert_string_not_equal(a.cell[0].hash, c.cell[0].hash);
  assert_int_equal(strlen(a.cell[0].hash), 64);
}

// ---- what is refused

static void malformed_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } rows[] = {
      {"sweep: {contact.kappa: [1]}\n", "bad.yaml:1:1: 'base: SPEC' is missing"},
      {"base: run\nsweeps: {contact.kappa: [1]}\nseeds: [0, 1]\n",
       "bad.yaml:2:1: unknown key 'sweeps' (did you mean 'sweep'?)"},
      {"base: rum\nseeds: [0, 1]\n", "bad.yaml:1:7: there is no spec 'rum'"},
      {"base: rum\nseeds: [0, 1]\n", "(did you mean 'run'?)"},
      {"base: run\nsweep:\n  contact.kapa: [1]\n",
       "bad.yaml:3:3: unknown key 'contact.kapa' (did you mean 'contact.kappa'?)"},
      {"base: run\nsweep:\n  contact.kappa: 50\n",
       "bad.yaml:3:18: contact.kappa: expected a list of values"},
      {"base: run\nsweep:\n  contact.kappa: []\n",
       "bad.yaml:3:18: contact.kappa: expected a list of values"},
      {"base: run\nsweep:\n  contact.kappa: [50, soft]\n",
       "bad.yaml:3:23: contact.kappa: expected a number from 1 to 100000 1/m, found 'soft'"},
      {"base: run\nsweep:\n  contact.kappa: [50, 0.5]\n", "bad.yaml:3:23: contact.kappa: expected"},
      {"base: run\nsweep:\n  contact.kappa: [50, 5e1]\n",
       "two variants would share the folder 'kappa50'"},
      {"base: run\nsweep:\n  motion: [a/run.csv, b/run.csv]\n", "there is no file 'a/run.csv'"},
      {"base: run\nsweep:\n  reward: [add, exponentail]\n",
       "bad.yaml:3:17: reward: expected exponential or add, found 'exponentail' (did you mean "
       "'exponential'?)"},
      {"base: run\nsweep:\n  seed: [1, 2]\n", "bad.yaml:3:3: 'seed' is not a field of cells"},
      {"base: run\nset: {variant: x}\nseeds: [0, 1]\n", "bad.yaml:2:7: 'experiment' and 'variant'"},
      {"base: run\nset: {contact: 5}\nseeds: [0, 1]\n",
       "bad.yaml:2:7: 'contact' is a group: expected keys under it"},
      {"base: run\nset: {learn.envs: 12}\nseeds: [0, 1]\n",
       "bad.yaml: variant main: learn.envs: expected a multiple of 8"},
      {"base: run\nset: {contact.kappa: 3}\nsweep: {contact.kappa: [50]}\n",
       "'contact.kappa' is swept here and set for all cells as well"},
      {"base: run\nset: {contact: {kappa: 3}, contact.kappa: 4}\nseeds: [0, 1]\n",
       "bad.yaml:2:28: 'contact.kappa' stands here twice"},
      {"base: run\nvariants: {a: 1}\n", "bad.yaml:2:11: variants: expected a list"},
      {"base: run\nvariants:\n  - bundle.size: 1\n",
       "bad.yaml:3:5: variants: expected 'name: NAME'"},
      {"base: run\nvariants:\n  - name: ../up\n", "bad.yaml:3:11: name: expected letters, digits"},
      {"base: run\nvariants:\n  - name: a\n  - name: a\n",
       "bad.yaml:4:11: variant 'a' stands here twice (first in line 3)"},
      {"base: run\nvariants:\n  - name: a\n    bundle.sise: 3\n",
       "bad.yaml:4:5: unknown key 'bundle.sise' (did you mean 'bundle.size'?)"},
      {"base: run\nvariants:\n  - name: a\n    bundle.size: 3\nsweep: {bundle.size: [1]}\n",
       "bad.yaml:4:18: 'bundle.size' is swept; a variant cannot set it as well"},
      {"base: run\nseeds: 5\n", "bad.yaml:2:8: seeds: expected [first, last]"},
      {"base: run\nseeds: [4, 0]\n", "bad.yaml:2:8: seeds: expected 0 <= first <= last"},
      {"base: run\nseeds: [0, 2.5]\n", "bad.yaml:2:12: seeds: a whole number expected"},
      {"base: run\nseeds: [0, 999999]\n", "bad.yaml: more than 10000 cells"},
      {"base: run\nsteps: [transfer]\n", "bad.yaml:2:9: steps: 'train' comes first"},
      {"base: run\nsteps: [train, trasfer]\n", "found 'trasfer' (did you mean 'transfer'?)"},
      {"base: run\nsteps: [train, train]\n", "bad.yaml:2:16: steps: 'train' comes first, and once"},
      {"base: run\nmetrics: [fals]\n",
       "bad.yaml:2:11: unknown metric 'fals' (did you mean 'falls'?)"},
      {"base: run\nsteps: [train, transfer --out /tmp/x.csv]\n",
       "bad.yaml:2:16: steps: expected '--out FILE', a name in the cell's folder"},
      {"base: run\nsteps: [train --out x]\n", "bad.yaml:2:9: steps: expected '--out FILE'"},
      {"base: run\nsteps: [train, transfer --out]\n",
       "bad.yaml:2:16: steps: expected '--out FILE'"},
      {"base: run\nmetrics: [steps_to_x_cm]\n", "bad.yaml:2:11: unknown metric 'steps_to_x_cm'"},
      {"base: run\nsteps: [train]\nmetrics: [reward, falls]\n",
       "bad.yaml:3:19: metric 'falls' needs the step 'transfer'"},
      {"base: run\nsteps: [train, transfer]\nmetrics: [delta_d_mm]\n",
       "metric 'delta_d_mm' needs the step 'evaluate'"},
      {"base: run\nseeds: [0, 1\n", "bad.yaml:3:1: "},
      {"base: run\nbase: jump\nseeds: [0, 1]\n", "bad.yaml:2:1: key 'base' stands here twice"},
      {"base: run\nseeds: &x [0, 1]\n", "anchors and tags are not supported"},
  };
  int wrong = 0;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct sweep s;
    struct err e = {0};
    write_text("bad.yaml", rows[i].text);
    sweep_read(&s, &arena, "bad.yaml", &(struct sweep_options){0}, &e);
    if (e.code != EXIT_USAGE || strstr(e.text, rows[i].says) == NULL) {
      wrong++;
      print_error("%s  expected: %s\n  found %d: %s\n", rows[i].text, rows[i].says, e.code, e.text);
    }
  }
  assert_int_equal(wrong, 0);
}

static void malformed_command_lines(void **state) {
  (void)state;
  write_text("methods.yaml", "base: run\nvariants:\n  - name: a\n    bundle.size: 3\n");
  static const struct {
    const char *line, *says;
  } rows[] = {
      {"ablate", "dsim: an argument is missing; usage: dsim ablate NAME|SPEC"},
      {"ablate stifness --dry-run", "(did you mean 'stiffness'?)"},
      {"ablate tiny.yaml --shard 3/2", "dsim: --shard: expected I/N with 1 <= I <= N"},
      {"ablate tiny.yaml --shard 1/2x", "dsim: --shard: expected I/N"},
      {"ablate tiny.yaml --jobs 0", "dsim: --jobs: expected a whole number from 1"},
      {"ablate tiny.yaml --set contact.kappa=5", "'contact.kappa' is swept; --sweep"},
      {"ablate tiny.yaml --set seed=5", "'seed' is not a field of cells"},
      {"ablate tiny.yaml --set learn.gama=5", "did you mean 'learn.gamma'?"},
      {"ablate tiny.yaml --set learn.gamma=.5 --set learn.gamma=.6", "'learn.gamma' is set twice"},
      {"ablate tiny.yaml --sweep contact.kappa=5,", "contact.kappa: no value"},
      {"ablate tiny.yaml --sweep contact.kappa=5 --sweep contact.kappa=6", "is swept twice"},
      {"ablate tiny.yaml --sweep threads=1,2", "'threads' changes no result"},
      {"ablate methods.yaml --set bundle.size=5", "variant 'a' of methods.yaml sets it"},
      {"ablate methods.yaml --sweep bundle.size=5", "variant 'a' of methods.yaml sets it"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct outcome o = run(rows[i].line);
    assert_says(o.err, rows[i].says);
    assert_int_equal(o.code, EXIT_USAGE);
  }
  assert_false(file_exists("results"));
}

// ---- numbers

static void metrics_of_a_run(void **state) {
  (void)state;
  struct err e = {0};
  assert_int_equal(dir_make("made", &e), 0);
  write_text("made/transfer.csv", "fell,time_s,e_track_cm,penetration_mm\n"
                                  "1,2,10,\n0,4,20,1.5\n1,3,60,2.5\n");
  write_text("made/eval.csv", "fell,penetration_mm\n0,7\n0,9\n");
  // 20 rows: the last tenth is two of them
  char text[2048] = "iteration,env_steps,wall_s,reward,eval_survival,eval_e_track_cm\n";
  for (int i = 0; i < 20; i++) {
    size_t n = strlen(text);
    // evaluations after every fifth iteration: 12 cm and failing, 8 failing, 9 through, 4 through
    static const char *const evals[] = {"0.5,12", "0.9,8", "1,9", "1,4"};
    snprintf(text + n, sizeof text - n, "%d,%d,%g,%d,%s\n", i, 100 * (i + 1), 0.5 * (i + 1), i * i,
             i % 5 == 4 ? evals[i / 5] : ",");
  }
  write_text("made/progress.csv", text);
  write_text("made/noisy.csv", "fell,time_s,e_track_cm\n1,2,11\n1,4,21\n1,3,61\n");
  write_text("made/timing.csv", "iteration,wall_s,iteration_s,sim_s,forward_s,backward_s,actor_s,"
                                "critic_s,discriminator_s\n"
                                "0,1,10,2,3,4,0.5,1,0.25\n1,2,10,4,4,5,0.5,0.5,0.25\n");
  static const struct {
    const char *metric;
    double value;
  } rows[] = {{"falls", 2},
              {"falls@noisy", 3},
              {"e_track_cm@noisy", 31},
              {"split_sim", 0.3},
              {"split_actor", (7 + 9 - 6 + 1) / 20.0},
              {"split_critic", 0.075},
              {"split_discriminator", 0.025},
              {"split_rest", 1 - 0.3 - 0.55 - 0.075 - 0.025},
              {"fall_share", 2.0 / 3},
              {"time_s", 3},
              {"e_track_cm", 30},
              {"penetration_mm", 2},
              {"penetration_train_mm", 8},
              {"delta_d_mm", 6},
              {"eval_falls", 0},
              {"env_steps", 2000},
              {"wall_s", 10},
              {"reward", 342.5},
              {"steps_to_10_cm", 1500},
              {"steps_to_8.5_cm", 2000},
              {"wall_s_to_10_cm", 7.5}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    double x;
    assert_int_equal(summary_value(&x, &arena, rows[i].metric, "made", &e), 0);
    if (!(fabs(x - rows[i].value) < 1e-12)) {
      fail_msg("%s: %.17g, expected %.17g", rows[i].metric, x, rows[i].value);
    }
  }
  double never;
  assert_int_equal(summary_value(&never, &arena, "steps_to_3_cm", "made", &e), 0);
  assert_true(isnan(never));
  assert_int_equal(summary_value(&never, &arena, "torque_saturation", "made", &e), EXIT_USAGE);
  assert_says(e.text, "torque_saturation");
}

// Runs that must repeat byte for byte have no clock in progress.csv, but beside it.
static void wall_clock_from_timing(void **state) {
  (void)state;
  struct err e = {0};
  double x;
  assert_int_equal(dir_make("clock", &e), 0);
  write_text("clock/progress.csv", "iteration,env_steps,wall_s,eval_survival,eval_e_track_cm\n"
                                   "0,10,0,1,20\n1,20,0,1,8\n2,30,0,1,5\n");
  write_text("clock/timing.csv", "iteration,wall_s\n0,3\n1,6\n2,9.5\n");
  assert_int_equal(summary_value(&x, &arena, "wall_s", "clock", &e), 0);
  assert_true(x == 9.5);
  assert_int_equal(summary_value(&x, &arena, "wall_s_to_8_cm", "clock", &e), 0);
  assert_true(x == 6);
}

static void metrics_of_other_files(void **state) {
  (void)state;
  const char *const steps[] = {"train", "transfer", "transfer --perturb noise=1 --out noisy.csv"};
  static const struct {
    const char *metric, *says;
  } rows[] = {{"falls@noisy", NULL},
              {"e_track_cm@noisy", NULL},
              {"split_sim", NULL},
              {"falls@nois", "--out nois.csv"},
              {"eval_falls@noisy", "needs a step 'evaluate ... --out noisy.csv'"},
              {"reward@noisy", "only those of transfer and evaluate"},
              {"fals@noisy", "did you mean 'falls'"},
              {"split_smi", "did you mean 'split_sim'"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct err e = {0};
    int code = summary_check_metric(rows[i].metric, steps, 3, &e);
    assert_int_equal(code, rows[i].says != NULL ? EXIT_USAGE : 0);
    if (rows[i].says != NULL) {
      assert_says(e.text, rows[i].says);
    }
  }
}

// Two seeds whose curves are known, and a third that is not finished.
static void curves_are_means_over_seeds(void **state) {
  (void)state;
  struct err e = {0};
  struct sweep_variant v = {.name = "one"};
  struct sweep_cell cell[3] = {{.variant = &v, .dir = "curve/seed0"},
                               {.variant = &v, .dir = "curve/seed1"},
                               {.variant = &v, .dir = "curve/seed2"}};
  struct sweep s = {.nvariant = 1, .ncell = 3, .variant = &v, .cell = cell, .nmetric = 1};
  s.metric[0] = "reward";
  const bool finished[] = {true, true, false};
  enum { ROWS = 2 * SUMMARY_BINS }; // two rows a stretch
  for (int k = 0; k < 2; k++) {
    assert_int_equal(dir_make(cell[k].dir, &e), 0);
    char *text = arena_alloc(&arena, 64 * ROWS + 256);
    strcpy(text, "iteration,env_steps,wall_s,reward,e_track_cm,eval_e_track_cm,eval_survival\n");
    for (int i = 0; i < ROWS; i++) {
      // reward i of seed 0 and 3 i of seed 1; one evaluation, of seed 1 only
      sprintf(text + strlen(text), "%d,%d,%d,%d,,%s\n", i, 10 * i, k, (2 * k + 1) * i,
              k == 1 && i == 3 ? "5,1" : ",");
    }
    char path[64];
    snprintf(path, sizeof path, "%s/progress.csv", cell[k].dir);
    write_text(path, text);
  }
  assert_int_equal(summary_write_curves(&arena, &s, finished, "curves.csv", &e), 0);
  struct csv_table t;
  double *iteration, *steps, *reward, *lo, *hi, *eval, *eval_lo, *seeds;
  assert_int_equal(csv_read(&t, &arena, "curves.csv", &e), 0);
  assert_int_equal(csv_reals(&iteration, &arena, &t, "iteration", &e), 0);
  assert_int_equal(csv_reals(&steps, &arena, &t, "env_steps", &e), 0);
  assert_int_equal(csv_reals(&seeds, &arena, &t, "seeds", &e), 0);
  assert_int_equal(csv_reals(&reward, &arena, &t, "reward", &e), 0);
  assert_int_equal(csv_reals(&lo, &arena, &t, "reward_lo", &e), 0);
  assert_int_equal(csv_reals(&hi, &arena, &t, "reward_hi", &e), 0);
  assert_int_equal(csv_reals(&eval, &arena, &t, "eval_e_track_cm", &e), 0);
  assert_int_equal(csv_reals(&eval_lo, &arena, &t, "eval_e_track_cm_lo", &e), 0);
  assert_int_equal(t.nrow, SUMMARY_BINS);
  for (int b = 0; b < SUMMARY_BINS; b++) {
    double middle = 2 * b + 0.5; // of rows 2 b and 2 b + 1
    assert_true(iteration[b] == middle && steps[b] == 10 * middle && seeds[b] == 2);
    // two seeds: the interval reaches from one to the other
    assert_true(reward[b] == 2 * middle && lo[b] == middle && hi[b] == 3 * middle);
    assert_true(b == 1 ? eval[b] == 5 && isnan(eval_lo[b]) : isnan(eval[b]));
  }
  // the same two in a summary: tail of seed 0 is the mean of i over the last tenth
  struct summary_row *row;
  int n;
  assert_int_equal(summary_make(&row, &n, &arena, &s, finished, &e), 0);
  double tail = ROWS - 1 - (ROWS / 10 - 1) / 2.0;
  assert_int_equal(n, 1);
  assert_true(row[0].stats.n == 2 && fabs(row[0].stats.mean - 2 * tail) < 1e-9);
  assert_true(fabs(row[0].stats.std - sqrt(2) * tail) < 1e-9);
  assert_true(row[0].stats.lo == tail && row[0].stats.hi == 3 * tail);
}

// ---- the command

static void dry_run_touches_nothing(void **state) {
  (void)state;
  struct outcome o = run("ablate tiny.yaml --dry-run --out dry --jobs 2 --threads 4");
  assert_int_equal(o.code, 0);
  assert_false(file_exists("dry"));
  assert_int_equal(count(o.out, "# kappa"), 2);
  assert_says(o.out, "# kappa50 seed 0: fresh\n"
                     "dsim train smoke --set iterations=2 --set learn.envs=8 --set learn.shard=8 ");
  assert_says(o.out, "--set 'learn.actor.layers=[16]' ");
  assert_says(o.out, " --seed 0 --out dry/kappa50/seed0 --threads 2\n"
                     "dsim transfer dry/kappa50/seed0 --episodes 2\n"
                     "dsim evaluate dry/kappa50/seed0 --episodes 1 --threads 2\n");
  // one more transfer, into a file of the cell's own folder
  write_text("noisy.yaml", "base: smoke\nseeds: [0, 0]\n"
                           "steps: [train, transfer --perturb noise=1 --out noisy.csv]\n"
                           "metrics: [falls@noisy]\n");
  assert_says(run("ablate noisy.yaml --dry-run --out dry").out,
              "dsim transfer dry/main/seed0 --perturb noise=1 --out dry/main/seed0/noisy.csv\n");
  // shards share the cells out: every one once
  int cells = 0;
  for (int i = 1; i <= 3; i++) {
    char line[128];
    snprintf(line, sizeof line, "ablate tiny.yaml --dry-run --seeds 0..3 --shard %d/3", i);
    cells += count(run(line).out, "# kappa");
  }
  assert_int_equal(cells, 8);
}

static void end_to_end(void **state) {
  (void)state;
  struct outcome o = run("ablate tiny.yaml --jobs 2 --seeds 0..1 --quiet");
  assert_string_equal(o.err, "");
  assert_int_equal(o.code, 0);
  assert_says(o.out, "kappa300");

  // the summary, from the cells' own files
  struct err e = {0};
  struct csv_table t;
  assert_int_equal(csv_read(&t, &arena, "results/ablate/tiny/summary.csv", &e), 0);
  assert_int_equal(t.nrow, 8);
  const char *summary = read_all("results/ablate/tiny/summary.csv");
  assert_ptr_equal(strstr(summary, "variant,metric,n,mean,std,lo,hi\nkappa50,falls,2,"), summary);
  double value[2], *mean, *lo, *hi;
  for (int k = 0; k < 2; k++) {
    char path[128];
    snprintf(path, sizeof path, "results/ablate/tiny/kappa50/seed%d/transfer.csv", k);
    struct csv_table cell;
    double *track;
    assert_int_equal(csv_read(&cell, &arena, path, &e), 0);
    assert_int_equal(csv_reals(&track, &arena, &cell, "e_track_cm", &e), 0);
    assert_int_equal(cell.nrow, 2);
    value[k] = (track[0] + track[1]) / 2;
  }
  assert_int_equal(csv_reals(&mean, &arena, &t, "mean", &e), 0);
  assert_int_equal(csv_reals(&lo, &arena, &t, "lo", &e), 0);
  assert_int_equal(csv_reals(&hi, &arena, &t, "hi", &e), 0);
  assert_string_equal(csv_cell(&t, 1, 1), "e_track_cm");
  assert_true(value[0] != value[1]); // seeds reached the training
  assert_true(fabs(mean[1] - (value[0] + value[1]) / 2) < 1e-6);
  assert_true(fabs(lo[1] - fmin(value[0], value[1])) < 1e-6);
  assert_true(fabs(hi[1] - fmax(value[0], value[1])) < 1e-6);
  assert_true(mean[2] > 3 + mean[6]); // delta d: kappa 50 sinks deeper than 300
  assert_true(mean[3] == 64);         // 8 environments x 4 steps x 2 iterations
  assert_int_equal(csv_read(&t, &arena, "results/ablate/tiny/curves.csv", &e), 0);
  assert_int_equal(t.nrow, 4);

  // a cell is an ordinary run, whose every checkpoint can be put into MuJoCo
  assert_int_equal(run("transfer results/ablate/tiny/kappa50/seed1 --checkpoints all --quiet").code,
                   0);
  double *iteration, *falls;
  assert_int_equal(
      csv_read(&t, &arena, "results/ablate/tiny/kappa50/seed1/transfer_checkpoints.csv", &e), 0);
  assert_int_equal(csv_reals(&iteration, &arena, &t, "iteration", &e), 0);
  assert_int_equal(csv_reals(&falls, &arena, &t, "falls", &e), 0);
  assert_string_equal(csv_cell(&t, 0, csv_find(&t, "checkpoint")), "ckpt_00000002.dsim");
  assert_true(iteration[0] == 2 && falls[0] == 5);
  assert_int_equal(run("evaluate results/ablate/tiny/kappa50/seed1 --episodes 1").code, 0);
}

static const char cell_dir[] = "results/ablate/tiny/kappa50/seed0";

static const char *cell_file(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", cell_dir, name);
  return arena_strdup(&arena, path);
}

// Follows end_to_end: its cells are there.
static void finished_cells_are_skipped(void **state) {
  (void)state;
  const char *marker = read_all(cell_file("cell.csv")),
             *command = read_all(cell_file("command.txt"));
  const char *summary = read_all("results/ablate/tiny/summary.csv");
  struct outcome o = run("ablate tiny.yaml --seeds 0..1 --json");
  assert_int_equal(o.code, 0);
  assert_says(o.err, "4 cells, 0 to run here");
  assert_int_equal(count(o.out, "\"finished\""), 5); // four states and the count
  assert_string_equal(read_all(cell_file("cell.csv")), marker);
  assert_string_equal(read_all(cell_file("command.txt")), command);
  assert_string_equal(read_all("results/ablate/tiny/summary.csv"), summary);
}

static void lost_steps_are_done_again(void **state) {
  (void)state;
  // the marker without its last step: evaluation alone is missing
  char *marker = arena_strdup(&arena, read_all(cell_file("cell.csv")));
  const char *command = read_all(cell_file("command.txt"));
  assert_int_equal(count(marker, "\n"), 4);
  *strstr(marker, "evaluate") = '\0';
  write_text(cell_file("cell.csv"), marker);
  struct outcome o = run("ablate tiny.yaml --seeds 0..1 --dry-run");
  assert_says(o.out, "# kappa50 seed 0: started\ndsim evaluate ");
  assert_int_equal(run("ablate tiny.yaml --seeds 0..1 --quiet").code, 0);
  assert_int_equal(count(read_all(cell_file("cell.csv")), "\n"), 4);
  assert_string_equal(read_all(cell_file("command.txt")), command); // not trained again

  // no marker: trained to the end, as a resume finds; then all that follows
  assert_int_equal(unlink(cell_file("cell.csv")), 0);
  assert_int_equal(run("ablate tiny.yaml --seeds 0..1 --quiet").code, 0);
  assert_says(read_all(cell_file("command.txt")), "--resume");
  assert_int_equal(count(read_all(cell_file("cell.csv")), "\n"), 4);

  // stopped before the first checkpoint
  assert_int_equal(unlink(cell_file("cell.csv")), 0);
  assert_int_equal(unlink(cell_file("ckpt_00000002.dsim")), 0);
  assert_int_equal(run("ablate tiny.yaml --seeds 0..1 --quiet").code, 0);
  assert_says(read_all(cell_file("command.txt")), "--overwrite");
}

static void another_spec_is_refused(void **state) {
  (void)state;
  const char *progress = read_all(cell_file("progress.csv"));
  struct outcome o = run("ablate tiny.yaml --seeds 0..1 --set learn.gamma=0.9");
  assert_int_equal(o.code, EXIT_USAGE);
  assert_says(o.err,
              "dsim: 4 cells of tiny hold a run of another spec; --overwrite runs them again");
  assert_says(o.err,
              "'results/ablate/tiny/kappa50/seed0' (run -> now):\nlearn.gamma: 0.99 -> 0.9\n");
  assert_string_equal(read_all(cell_file("progress.csv")), progress);
  o = run("ablate tiny.yaml --set learn.gamma=0.9 --dry-run");
  assert_int_equal(o.code, 0);
  assert_says(o.out, "# kappa50 seed 0: changed\n#   learn.gamma: 0.99 -> 0.9\n# dsim train ");

  // overwritten: cells of that spec now; the other seed's are left alone
  o = run("ablate tiny.yaml --set learn.gamma=0.9 --overwrite --quiet");
  assert_int_equal(o.code, 0);
  assert_says(read_all(cell_file("spec.yaml")), "learn.gamma: 0.9 ");
  assert_int_equal(count(read_all(cell_file("cell.csv")), "\n"), 4);
  assert_says(read_all("results/ablate/tiny/kappa50/seed1/spec.yaml"), "learn.gamma: 0.99 ");
  o = run("ablate tiny.yaml --set learn.gamma=0.9 --overwrite");
  assert_says(o.err, "2 cells, 0 to run here");
}

// A cell that cannot run costs no other one, and is tried again the next time.
static void failed_cell(void **state) {
  (void)state;
  struct err e = {0};
  assert_int_equal(dir_make("clips", &e), 0);
  write_text("clips/bad.csv", "1,2,three\n");
  struct outcome o = run("ablate tiny.yaml --out failed --sweep contact.kappa=300 --sweep "
                         "motion=clips/bad.csv,motions/walk.csv.gz");
  assert_int_equal(o.code, EXIT_CHECK);
  assert_says(o.err,
              "dsim: warning: kappa300_bad seed 0: train ended with code 2: dsim: clips/bad.csv");
  assert_says(o.err, "(all of it: failed/log/kappa300_bad_seed0.txt)");
  assert_says(o.err, "dsim: 1 of 2 cells failed");
  const char *summary = read_all("failed/summary.csv");
  assert_int_equal(count(summary, "kappa300_walk,"), 4);
  assert_int_equal(count(summary, "bad"), 0);
}

// Interrupted, resumed: the same bytes as without.
static void interrupt_and_resume(void **state) {
  (void)state;
  write_text("long.yaml", "base: smoke\n"
                          "set:\n"
                          "  iterations: 120\n"
                          "  log.wall: false\n"
                          "  learn: {envs: 8, shard: 8, horizon: 4, lr_iterations: 120}\n"
                          "  learn.actor.layers: [16]\n"
                          "  learn.critic.layers: [16]\n"
                          "  eval.every: 0\n"
                          "sweep: {contact.kappa: [200, 300]}\n"
                          "steps: [train]\n");
  assert_int_equal(run("ablate long.yaml --out whole --sweep contact.kappa=200 --quiet").code, 0);
  pid_t child = start("ablate long.yaml --out parts");
  // until it has trained a little
  char path[] = "parts/kappa200/seed0/progress.csv";
  for (int i = 0; i < 2000; i++) {
    if (file_exists(path) && count(read_all(path), "\n") > 5) {
      break;
    }
    usleep(2000);
  }
  assert_int_equal(kill(child, SIGINT), 0);
  struct outcome o = finish(child);
  assert_int_equal(o.code, EXIT_INTERRUPTED);
  assert_says(o.err, "stopped; the same command goes on from here");
  int rows = count(read_all(path), "\n");
  assert_true(rows > 5 && rows < 121);
  assert_false(file_exists("parts/kappa300")); // nothing was started any more
  assert_false(file_exists("parts/kappa200/seed0/cell.csv"));
  o = run("ablate long.yaml --out parts --sweep contact.kappa=200 --quiet");
  assert_int_equal(o.code, 0);
  assert_says(read_all("parts/kappa200/seed0/command.txt"), "--resume");
  assert_string_equal(read_all(path), read_all("whole/kappa200/seed0/progress.csv"));
}

static void shipped_sweeps(void **state) {
  (void)state;
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/experiments/ablate", tree);
  DIR *dir = opendir(path);
  assert_non_null(dir);
  int files = 0;
  for (struct dirent *d; (d = readdir(dir)) != NULL;) {
    char *dot = strrchr(d->d_name, '.');
    if (dot == NULL || strcmp(dot, ".yaml") != 0) {
      continue;
    }
    *dot = '\0';
    struct sweep s;
    struct err e = {0};
    if (sweep_read(&s, &arena, d->d_name, &(struct sweep_options){0}, &e) != 0) {
      fail_msg("%s", e.text);
    }
    assert_string_equal(s.name, d->d_name);
    files++;
  }
  closedir(dir);
  assert_true(files >= 3);
  struct sweep s;
  struct err e = {0};
  assert_int_equal(sweep_read(&s, &arena, "stiffness", &(struct sweep_options){0}, &e), 0);
  assert_string_equal(s.variant[0].name, "kappa50_run");
  assert_string_equal(s.variant[11].name, "kappa300_dance");

  // the PPO that SHAC is compared with is the one of ppo.yaml, on the sweep's own motion
  struct spec ppo;
  assert_int_equal(sweep_read(&s, &arena, "methods", &(struct sweep_options){0}, &e), 0);
  assert_int_equal(spec_read(&ppo, &arena, "ppo", &e), 0);
  char differs[2048];
  for (int i = 0; i < s.nvariant; i++) {
    bool same = strcmp(s.variant[i].name, "ppo") == 0;
    spec_diff(&ppo, &s.cell[i].spec, differs, sizeof differs);
    assert_true((strstr(differs, "learn.envs") == NULL) == same);
    assert_true((strstr(differs, "learn.actor") == NULL) == same);
    assert_true((strstr(differs, "learn.critic") == NULL) == same);
    assert_true((strstr(differs, "learn.gamma") == NULL && strstr(differs, "adam") == NULL) ==
                same);
    assert_true(strstr(differs, "observation") == NULL && strstr(differs, "reward") == NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(product_in_file_order),
      cmocka_unit_test(axes_from_the_command_line),
      cmocka_unit_test(hash_leaves_threads_out),
      cmocka_unit_test(malformed_files),
      cmocka_unit_test(malformed_command_lines),
      cmocka_unit_test(metrics_of_a_run),
      cmocka_unit_test(wall_clock_from_timing),
      cmocka_unit_test(metrics_of_other_files),
      cmocka_unit_test(curves_are_means_over_seeds),
      cmocka_unit_test(dry_run_touches_nothing),
      cmocka_unit_test(end_to_end),
      cmocka_unit_test(finished_cells_are_skipped),
      cmocka_unit_test(lost_steps_are_done_again),
      cmocka_unit_test(another_spec_is_refused),
      cmocka_unit_test(failed_cell),
      cmocka_unit_test(interrupt_and_resume),
      cmocka_unit_test(shipped_sweeps),
  };
  return cmocka_run_group_tests_name("ablate", tests, set_up, tear_down);
}
