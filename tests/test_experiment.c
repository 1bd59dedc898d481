// The small experiments as commands see them: the published table row for row, training through a
// miss with and without contacts from distance, the same bytes for any number of threads.
#include "base/file.h"
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "task/bodies.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char folder[] = "/tmp/dsim_test_experiment_XXXXXX";

static const char *in_folder(const char *name) {
  char *path = arena_alloc(&arena, strlen(folder) + strlen(name) + 2);
  sprintf(path, "%s/%s", folder, name);
  return path;
}

static void read_spec(struct spec *s, const char *name, const char *const *set) {
  struct err e = {0};
  spec_read(s, &arena, name, &e);
  for (int i = 0; set && set[i]; i++) {
    spec_set(s, &arena, set[i], &e);
  }
  spec_check(s, &e);
  if (e.code) {
    fail_msg("%s", e.text);
  }
}

static double *column(const struct csv_table *t, const char *name) {
  struct err e = {0};
  double *x;
  assert_int_equal(csv_reals(&x, &arena, t, name, &e), 0);
  return x;
}

static struct csv_table read_table(const char *path) {
  struct csv_table t;
  struct err e = {0};
  if (csv_read(&t, &arena, path, &e)) {
    fail_msg("%s", e.text);
  }
  return t;
}

static const char *text(const struct csv_table *t, int row, const char *name) {
  return csv_cell(t, row, csv_find(t, name));
}

// Every row of the published table (arXiv 2506.14186, code release). Fixed steps and pairs of
// second order to 1e-9 of the loss and 1e-5 of the gradient; higher orders, whose step sequence
// hangs on round-off, within a band of their tolerance. The event gradient of the finest row is the
// derivative.
static void test_time_toss(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  const char *path = in_folder("time_toss.csv");
  read_spec(&s, "diffmjx/time_toss", (const char *const[]){"log.wall=false", NULL});
  assert_int_equal(table_time_toss(&s, path, &e), 0);
  struct csv_table ours = read_table(path);
  struct csv_table paper = read_table(file_find(&arena, "plots/paper_time_toss.csv"));
  double *loss = column(&ours, "loss"), *grad = column(&ours, "grad");
  double *event = column(&ours, "grad_event"), *fd = column(&ours, "grad_fd");
  double *paper_loss = column(&paper, "loss"), *paper_grad = column(&paper, "grad");
  double *paper_fd = column(&paper, "grad_fd");
  int exact = 0;
  assert_int_equal(paper.nrow, 39);
  for (int i = 0; i < paper.nrow; i++) { // ours begins with the same rows in the same order
    const char *method = text(&paper, i, "method"), *setting = text(&paper, i, "setting");
    assert_string_equal(text(&ours, i, "method"), method);
    assert_string_equal(text(&ours, i, "setting"), setting);
    bool low = strncmp(method, "mjx", 3) == 0 || !!strstr(method, "euler") ||
               !!strstr(method, "heun") || !!strstr(method, "ralston") ||
               !!strstr(method, "midpoint");
    double tolerance = strtod(setting, NULL);
    double band = low ? 1e-9 * fabs(paper_loss[i]) : fmax(100 * tolerance, 3e-8);
    if (!(fabs(loss[i] - paper_loss[i]) <= band)) {
      fail_msg("%s %s: loss %.15g, published %.15g", method, setting, loss[i], paper_loss[i]);
    }
    if (low && !(fabs(grad[i] - paper_grad[i]) <= 1e-5 * fabs(paper_grad[i]) &&
                 fabs(fd[i] - paper_fd[i]) <= 1e-6 * fabs(paper_fd[i]))) {
      fail_msg("%s %s: gradient %.12g, published %.12g", method, setting, grad[i], paper_grad[i]);
    }
    exact += low;
  }
  assert_int_equal(exact, 27);
  assert_string_equal(text(&ours, ours.nrow - 1, "method"), "located_dopri8");
  assert_true(fabs(event[ours.nrow - 1] - 0.1716957) < 1e-5 * 0.1716957);
}

static void test_threads(void **state) {
  (void)state;
  char *bytes[2];
  size_t size[2];
  for (int i = 0; i < 2; i++) {
    struct spec s;
    struct err e = {0};
    char threads[] = "threads=1";
    threads[8] = (char)('1' + i);
    const char *path = in_folder(i ? "toss2.csv" : "toss1.csv");
    read_spec(&s, "diffmjx/toss",
              (const char *const[]){"range.points=2", "ode.tolerance=1e-6", threads, NULL});
    assert_int_equal(table_toss(&s, path, &e), 0);
    assert_int_equal(file_read(&arena, path, 1 << 20, &bytes[i], &size[i], &e), 0);
  }
  assert_int_equal(size[0], size[1]);
  assert_memory_equal(bytes[0], bytes[1], size[0]);
}

static double final_loss(const char *dir, const char *const *set) {
  struct spec s;
  struct err e = {0};
  struct run_options run = {0};
  static char name[] = "train";
  char *argv[] = {name};
  read_spec(&s, "diffmjx/billiard", set);
  if (experiment_train(&s, dir, &run, 1, argv, &e)) {
    fail_msg("%s", e.text);
  }
  char path[300];
  snprintf(path, sizeof path, "%s/progress.csv", dir);
  struct csv_table t = read_table(path);
  assert_int_equal(t.nrow, s.iterations + 1);
  return column(&t, "loss")[t.nrow - 1];
}

// A shot that misses by 9 mm: solved with contacts from distance, soft contact and hard, by either
// law and by fixed steps; without them the loss stays what it was, to the last bit.
static void test_billiard_training(void **state) {
  (void)state;
  // the best shot's loss is 0.012914
  assert_true(final_loss(in_folder("cfd"), NULL) < 0.01295);
  assert_true(final_loss(in_folder("softplus"), (const char *const[]){"cfd.law=softplus", NULL}) <
              0.01295);
  const char *const plain[] = {"cfd.law=off", NULL};
  double missed = final_loss(in_folder("plain"), plain);
  assert_true(fabs(missed - 0.05) < 1e-15);
  assert_true(final_loss(in_folder("euler"), (const char *const[]){"integrator=euler", NULL}) <
              0.03); // which overshoots: its landscape is another one
}

static void test_evaluate(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  struct run_options run = {.out = in_folder("eval.csv")};
  final_loss(in_folder("shot"), NULL);
  read_spec(&s, "diffmjx/billiard", NULL);
  assert_int_equal(experiment_evaluate(&s, in_folder("shot"), &run, &e), 0);
  struct csv_table t = read_table(run.out);
  assert_true(column(&t, "hit")[0] == 1 && column(&t, "gap_mm")[0] < 0);
  assert_true(fabs(column(&t, "loss")[0] - 0.012924) < 2e-6);
}

// What does not go together is refused by name.
static void test_refusals(void **state) {
  (void)state;
  struct spec s;
  struct err e = {0};
  spec_default(&s);
  s.integrator = INTEGRATOR_TSIT5;
  assert_int_equal(spec_check(&s, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "integrator"));
  e = (struct err){0};
  s.task = TASK_TOSS;
  assert_int_equal(spec_check(&s, &e), 0);
  s.integrator = INTEGRATOR_MOREAU;
  assert_int_equal(spec_check(&s, &e), EXIT_USAGE);
}

static int setup(void **state) {
  (void)state;
  arena_init(&arena);
  log_quiet(true);
  return mkdtemp(folder) ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  char command[200];
  arena_release(&arena);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_time_toss),         cmocka_unit_test(test_threads),
      cmocka_unit_test(test_billiard_training), cmocka_unit_test(test_evaluate),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
