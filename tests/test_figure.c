// From result files to figures: runs are found and named, seeds averaged, episodes counted,
// pictures made. Needs plots/ from the repository's root; pictures need gnuplot.
#include "base/file.h"
#include "base/log.h"
#include "out/csv.h"
#include "figure/figure.h"
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
static char folder[] = "/tmp/dsim_test_figure_XXXXXX";
static bool have_gnuplot;

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  log_quiet(true);
  have_gnuplot = system("gnuplot --version > /dev/null 2>&1") == 0;
  return mkdtemp(folder) == NULL;
}

static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

static const char *in_folder(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return arena_strdup(&arena, path);
}

static void put_file(const char *name, const char *text) {
  struct err e = {0};
  const char *path = in_folder(name);
  char dir[512];
  snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
  assert_int_equal(dir_make(dir, &e), 0);
  assert_int_equal(file_write_atomic(path, text, strlen(text), &e), 0);
}

static double cell(const char *name, int row, const char *column) {
  struct csv_table t;
  double *x;
  struct err e = {0};
  if (csv_read(&t, &arena, in_folder(name), &e) || csv_reals(&x, &arena, &t, column, &e)) {
    fail_msg("%s", e.text);
    return NAN;
  }
  assert_in_range(row, 0, t.nrow - 1);
  return x[row];
}

static void assert_starts(const char *name, const char *magic) {
  char *data;
  size_t size;
  struct err e = {0};
  if (file_read(&arena, in_folder(name), 100 << 20, &data, &size, &e)) {
    fail_msg("%s", e.text);
  }
  assert_true(size > 2000);
  assert_memory_equal(data, magic, strlen(magic));
}

static void assert_pictures(const char *base) {
  char name[256];
  snprintf(name, sizeof name, "%s.svg", base);
  assert_starts(name, "<?xml");
  snprintf(name, sizeof name, "%s.png", base);
  assert_starts(name, "\x89PNG");
}

// ---- runs

static void runs_are_named_by_their_folders(void **state) {
  (void)state;
  put_file("tree/walk/main/seed10/eval.csv", "x\n");
  put_file("tree/walk/main/seed2/progress.csv", "x\n");
  put_file("tree/lafan1/fight/paper/seed0/transfer.csv", "x\n");
  put_file("tree/lafan1/fight/paper/seed0/notes.txt", "x\n");
  put_file("tree/reference/walk/main/seed0/progress.csv", "x\n");
  put_file("tree/.hidden/walk/main/seed0/progress.csv", "x\n");
  put_file("tree/empty/main/seed0/spec.yaml", "x\n");
  assert_int_equal(symlink("walk", in_folder("tree/link")), 0);
  struct run *run;
  int n;
  struct err e = {0};
  assert_int_equal(runs_find(&run, &n, &arena, in_folder("tree"), "reference", &e), 0);
  assert_int_equal(n, 3);
  assert_string_equal(run[0].collection, "");
  assert_string_equal(run[0].experiment, "walk");
  assert_string_equal(run[0].variant, "main");
  assert_int_equal(run[0].seed, 2);
  assert_int_equal(run[1].seed, 10);
  assert_true(run_same_series(&run[0], &run[1]) && !run_same_series(&run[1], &run[2]));
  assert_string_equal(run[2].collection, "lafan1");
  assert_string_equal(run[2].experiment, "fight");
  assert_string_equal(run[2].variant, "paper");
  assert_non_null(run_file(&run[0], &arena, "progress.csv"));
  assert_null(run_file(&run[0], &arena, "eval.csv"));
}

static void a_run_alone_keeps_its_names(void **state) {
  (void)state;
  put_file("tree/walk/main/seed2/progress.csv", "x\n");
  struct run *run;
  int n;
  struct err e = {0};
  assert_int_equal(runs_find(&run, &n, &arena, in_folder("tree/walk/main/seed2"), NULL, &e), 0);
  assert_int_equal(n, 1);
  assert_string_equal(run[0].collection, "");
  assert_string_equal(run[0].experiment, "walk");
  assert_string_equal(run[0].variant, "main");
  assert_int_equal(run[0].seed, 2);
  assert_int_equal(runs_find(&run, &n, &arena, in_folder("nowhere"), NULL, &e), EXIT_USAGE);
}

// ---- figures

// reward of seed k at iteration i is i + k, the clock runs at k + 1 seconds per iteration
static void put_progress(const char *name, int seed, int rows, bool wall) {
  char text[65536];
  int used = sprintf(text, "iteration,env_steps,wall_s,reward,e_track_cm,eval_survival\n");
  for (int i = 0; i < rows; i++) {
    used += sprintf(text + used, "%d,%d,%d,%d,,%s\n", i, 100 * (i + 1), wall ? i * (seed + 1) : 0,
                    i + seed, i % 2 ? "0.5" : "");
  }
  put_file(name, text);
}

static int draw(const char *figure, const char *from, const char *out, int *made, struct err *e) {
  return figures_draw(&figure, 1, in_folder(from), in_folder(out), made, e);
}

static void curves_average_seeds(void **state) {
  (void)state;
  put_progress("curves/run/main/seed0/progress.csv", 0, 4, true);
  put_progress("curves/run/main/seed1/progress.csv", 1, 4, true);
  put_progress("curves/run/main/seed2/progress.csv", 2, 3, true); // stopped early
  put_progress("curves/run/slow/seed0/progress.csv", 0, 4, false);
  put_file("curves/run/slow/seed0/timing.csv", "iteration,wall_s\n0,10\n1,20\n2,30\n3,40\n");
  int made;
  struct err e = {0};
  draw("curves", "curves", "out1", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_int_equal(made, 2);
    assert_pictures("out1/curves");
  }
  // three rows that all seeds have, then the four of the other series
  assert_true(cell("out1/curves.csv", 2, "series") == 0);
  assert_true(cell("out1/curves.csv", 3, "series") == 1);
  assert_true(cell("out1/curves.csv", 2, "seeds") == 3);
  assert_true(cell("out1/curves.csv", 2, "env_steps") == 300);
  assert_true(cell("out1/curves.csv", 2, "wall_s") == 4);
  assert_true(cell("out1/curves.csv", 2, "reward") == 3);
  assert_true(cell("out1/curves.csv", 2, "reward_lo") == 2);
  assert_true(cell("out1/curves.csv", 2, "reward_hi") == 4);
  assert_true(isnan(cell("out1/curves.csv", 2, "e_track_cm")));
  assert_true(isnan(cell("out1/curves.csv", 2, "survival")));
  assert_true(cell("out1/curves.csv", 1, "survival") == 0.5);
  assert_true(cell("out1/curves.csv", 6, "wall_s") == 40); // from timing.csv
}

static void long_runs_are_thinned_by_means(void **state) {
  (void)state;
  put_progress("long/run/main/seed0/progress.csv", 0, 1200, true);
  int made;
  struct err e = {0};
  draw("curves", "long", "out2", &made, &e);
  double first = cell("out2/curves.csv", 0, "reward"),
         last = cell("out2/curves.csv", 119, "reward");
  assert_true(first == 4.5 && last == 1194.5); // means over 10 rows each
}

static void tracking_counts_episodes(void **state) {
  (void)state;
  static const char header[] = "seed,fell,time_s,e_track_cm\n";
  char text[512];
  snprintf(text, sizeof text, "%s0,0,15,3\n1,0,15,5\n", header);
  put_file("tracking/lafan1/run/main/seed0/eval.csv", text);
  snprintf(text, sizeof text, "%s0,0,15,4\n1,1,3,\n", header);
  put_file("tracking/lafan1/run/main/seed0/transfer.csv", text);
  snprintf(text, sizeof text, "%s0,0,15,6\n1,1,2,11\n", header);
  put_file("tracking/lafan1/run/main/seed1/transfer.csv", text);
  put_file("tracking/shipped/run/main/seed0/eval.csv", "seed,fell,e_track_cm\n0,0,2\n");
  int made;
  struct err e = {0};
  draw("tracking", "tracking", "out3", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_int_equal(made, 4);
    assert_pictures("out3/tracking_lafan1");
    assert_pictures("out3/tracking_shipped");
  } else {
    skip();
  }
  const char *lafan1 = "out3/tracking_lafan1.csv", *shipped = "out3/tracking_shipped.csv";
  assert_true(cell(lafan1, 0, "train_cm") == 4 && cell(lafan1, 0, "train_n") == 2);
  assert_float_equal(cell(lafan1, 0, "train_std"), sqrt(2), 1e-8);
  assert_true(cell(lafan1, 0, "mujoco_cm") == 7 && cell(lafan1, 0, "mujoco_falls") == 2);
  assert_true(cell(lafan1, 0, "mujoco_n") == 4);
  // the paper's number stands beside runs on the paper's clips only
  assert_true(cell(lafan1, 0, "paper_cm") == 34.1);
  assert_true(isnan(cell(shipped, 0, "paper_cm")));
  assert_true(isnan(cell(shipped, 0, "mujoco_cm")) && cell(shipped, 0, "train_cm") == 2);
}

static void what_cannot_be_drawn_is_said(void **state) {
  (void)state;
  put_progress("only/run/main/seed0/progress.csv", 0, 4, true);
  int made;
  struct err e = {0};
  assert_int_equal(draw("strip", "only", "out4", &made, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "figure strip"));
  assert_non_null(strstr(e.text, "strip.csv"));
  struct err e2 = {0};
  assert_int_equal(draw("curvs", "only", "out4", &made, &e2), EXIT_USAGE);
  assert_non_null(strstr(e2.text, "did you mean 'curves'?"));
  assert_int_equal(made, 0);
}

static void missing_gnuplot_is_said(void **state) {
  (void)state;
  put_progress("only/run/main/seed0/progress.csv", 0, 4, true);
  char *path = arena_strdup(&arena, getenv("PATH"));
  setenv("PATH", folder, 1);
  int made;
  struct err e = {0};
  int rc = draw("curves", "only", "out5", &made, &e);
  setenv("PATH", path, 1);
  assert_int_equal(rc, EXIT_IO);
  assert_non_null(strstr(e.text, "gnuplot is not installed"));
}

static void names_with_quotes_do_no_harm(void **state) {
  (void)state;
  put_progress("quotes/it's \"so\"/$(touch x) `ls`/seed0/progress.csv", 0, 4, true);
  int made;
  struct err e = {0};
  if (!have_gnuplot) {
    skip();
  }
  if (draw("curves", "quotes", "out6", &made, &e)) {
    fail_msg("%s", e.text);
  }
  assert_pictures("out6/curves");
}

static void gradient_variance_over_seeds(void **state) {
  (void)state;
  static const char header[] =
      "iteration,env_steps,variant,variance,lo,hi,direction_spread,dlo,dhi,ratio,ratio_lo,ratio_hi"
      "\n";
  char text[1024];
  snprintf(
      text, sizeof text, "%s%s", header,
      "0,0,plain,8,7,9,0.5,0.4,0.6,1,1,1\n0,0,bundle,4,3,5,0.3,0.2,0.4,0.5,0.4,0.6\n"
      "100,2000,plain,6,5,7,0.5,0.4,0.6,1,1,1\n100,2000,bundle,2,1,3,0.1,0,0.2,0.25,0.2,0.3\n");
  put_file("gv/leap/main/seed0/gradvar.csv", text);
  snprintf(text, sizeof text, "%s%s", header,
           "0,0,plain,10,9,11,0.7,0.6,0.8,1,1,1\n0,0,bundle,1,0,2,0.1,0,0.2,0.1,0,0.2\n");
  put_file("gv/leap/main/seed1/gradvar.csv", text);
  const char *name = "gradvar";
  int made;
  struct err e = {0};
  figures_draw(&name, 1, in_folder("gv"), in_folder("gvout"), &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_pictures("gvout/gradvar_leap_main");
  }
  // two seeds: from the lowest to the highest; one seed: its resamples
  const char *csv = "gvout/gradvar_leap_main.csv";
  assert_float_equal(cell(csv, 0, "variance"), 9, 1e-12);
  assert_float_equal(cell(csv, 0, "variance_lo"), 8, 1e-12);
  assert_float_equal(cell(csv, 0, "variance_hi"), 10, 1e-12);
  assert_float_equal(cell(csv, 1, "variance_lo"), 5, 1e-12);
  assert_float_equal(cell(csv, 1, "env_steps"), 2000, 1e-12);
  assert_float_equal(cell(csv, 2, "series"), 1, 0);
  assert_float_equal(cell(csv, 2, "ratio"), 0.3, 1e-12);
  assert_float_equal(cell(csv, 3, "ratio_hi"), 0.3, 1e-12);
}

static void clouds_have_ellipses(void **state) {
  (void)state;
  put_file("cl/leap/main/seed0/gradvar.csv", "iteration\n");
  put_file("cl/leap/main/seed0/cloud.csv", "index,variant,x,y,x_name,y_name\n"
                                           "0,branch,4,2,z,vz\n1,branch,2,2,z,vz\n"
                                           "2,branch,3,5,z,vz\n3,branch,3,-1,z,vz\n");
  const char *name = "cloud";
  int made;
  struct err e = {0};
  figures_draw(&name, 1, in_folder("cl"), in_folder("clout"), &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_pictures("clout/cloud_leap_main");
  }
  // four points, then the ellipse: two deviations (sqrt(2 / 3) and sqrt(18 / 3)) about (3, 2)
  const char *csv = "clout/cloud_leap_main.csv";
  assert_float_equal(cell(csv, 3, "y"), -1, 1e-12);
  assert_float_equal(cell(csv, 4, "x"), 3 + 2 * sqrt(2.0 / 3), 1e-7);
  assert_float_equal(cell(csv, 4, "y"), 2, 1e-7);
  assert_float_equal(cell(csv, 4 + 18, "y"), 2 + 2 * sqrt(6), 1e-7); // a quarter on
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_are_named_by_their_folders),
      cmocka_unit_test(a_run_alone_keeps_its_names),
      cmocka_unit_test(curves_average_seeds),
      cmocka_unit_test(long_runs_are_thinned_by_means),
      cmocka_unit_test(tracking_counts_episodes),
      cmocka_unit_test(what_cannot_be_drawn_is_said),
      cmocka_unit_test(missing_gnuplot_is_said),
      cmocka_unit_test(names_with_quotes_do_no_harm),
      cmocka_unit_test(gradient_variance_over_seeds),
      cmocka_unit_test(clouds_have_ellipses),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
