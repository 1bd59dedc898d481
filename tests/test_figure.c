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
  put_file("tracking/lafan1/run/ppo/seed0/eval.csv", "seed,fell,e_track_cm\n0,0,2\n");
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
  assert_true(cell(lafan1, 1, "paper_cm") == 42.8); // its PPO beside ours
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

// ---- sweeps

static void stiffness_beside_the_paper(void **state) {
  (void)state;
  put_file("sw/ablate/stiffness/summary.csv",
           "variant,metric,n,mean,std,lo,hi\n"
           "kappa300_run,fall_share,3,0.2,0.1,0.1,0.3\n" // stiff before soft
           "kappa300_run,delta_d_mm,3,4,1,3,5\n"
           "kappa50_run,fall_share,3,1,0,1,1\n"
           "kappa50_run,delta_d_mm,3,12,1,11,13\n"
           "kappa50_hop,fall_share,1,0.5,,,\n"
           "other,fall_share,1,0,,,\n");
  int made;
  struct err e = {0};
  draw("stiffness", "sw", "swout", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_int_equal(made, 2);
    assert_pictures("swout/stiffness");
  }
  // run from soft to stiff, then the motion that the paper does not have
  const char *csv = "swout/stiffness.csv";
  assert_true(cell(csv, 0, "kappa") == 50 && cell(csv, 1, "kappa") == 300);
  assert_true(cell(csv, 0, "falls") == 1 && cell(csv, 0, "paper_falls") == 1);
  assert_true(cell(csv, 0, "paper_delta_d") == 10.6);
  assert_true(cell(csv, 1, "falls_lo") == 0.1 && cell(csv, 1, "falls_hi") == 0.3);
  assert_true(cell(csv, 1, "delta_d") == 4 && cell(csv, 1, "paper_delta_d") == 3.1);
  assert_true(cell(csv, 1, "paper_falls") == 0);
  assert_true(cell(csv, 2, "series") == 1 && cell(csv, 2, "falls_lo") == 0.5);
  assert_true(isnan(cell(csv, 2, "paper_falls")) && isnan(cell(csv, 2, "delta_d")));
}

static void methods_and_what_they_need(void **state) {
  (void)state;
  char text[4096] = "variant,iteration,env_steps,wall_s,seeds,reward,reward_lo,reward_hi,"
                    "e_track_cm,e_track_cm_lo,e_track_cm_hi,eval_e_track_cm,eval_e_track_cm_lo,"
                    "eval_e_track_cm_hi,eval_survival,eval_survival_lo,eval_survival_hi\n";
  static const char *const variants[] = {"shac_bcg_run", "ppo_run"};
  for (int v = 0; v < 2; v++) {
    for (int i = 1; i <= 4; i++) {
      size_t used = strlen(text);
      snprintf(text + used, sizeof text - used, "%s,%d,%d,%d,2,%g,%g,%g,,,,%s,,,\n", variants[v], i,
               (v ? 1000 : 100) * i, 10 * i, 0.1 * i, 0.1 * i - 0.05, 0.1 * i + 0.05,
               i % 2 ? ",," : "8,7,9");
    }
    strcat(text, "\n\n");
  }
  put_file("me/ablate/methods/curves.csv", text);
  put_file("me/ablate/methods/summary.csv", "variant,metric,n,mean,std,lo,hi\n"
                                            "shac_bcg_run,steps_to_5_cm,2,100,9,90,110\n"
                                            "shac_bcg_run,wall_s_to_5_cm,2,40,1,39,41\n"
                                            "shac_bcg_run,steps_to_10_cm,2,50,9,40,60\n"
                                            "shac_run,steps_to_5_cm,2,80,,,\n"
                                            "ppo_run,steps_to_5_cm,1,2000,,,\n"
                                            "ppo_run,wall_s_to_5_cm,1,100,,,\n"
                                            "ppo_run,steps_to_10_cm,0,,,,\n");
  int made;
  struct err e = {0};
  draw("methods", "me", "meout", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_int_equal(made, 2);
    assert_pictures("meout/methods");
  }
  const char *csv = "meout/methods.csv";
  assert_true(cell(csv, 3, "series") == 0 && cell(csv, 4, "series") == 1);
  assert_true(cell(csv, 5, "env_steps") == 2000 && cell(csv, 5, "wall_s") == 20);
  assert_float_equal(cell(csv, 5, "reward"), 0.2, 1e-12);
  assert_float_equal(cell(csv, 5, "reward_hi"), 0.25, 1e-12);
  assert_true(cell(csv, 5, "eval_e_track_cm_lo") == 7 && isnan(cell(csv, 4, "eval_e_track_cm")));
  // goals from the easiest on, methods in the sweep's order
  csv = "meout/methods_goals.csv";
  assert_true(cell(csv, 0, "e_track_cm") == 10 && cell(csv, 0, "env_steps") == 50);
  assert_true(isnan(cell(csv, 0, "ppo_steps_ratio")) && cell(csv, 2, "seeds") == 0);
  assert_true(cell(csv, 3, "e_track_cm") == 5 && cell(csv, 3, "ppo_steps_ratio") == 20);
  assert_true(cell(csv, 3, "ppo_wall_ratio") == 2.5 && cell(csv, 3, "env_steps_lo") == 90);
  assert_true(cell(csv, 4, "ppo_steps_ratio") == 25 && cell(csv, 5, "ppo_steps_ratio") == 1);
}

static void bundle_settings_in_rows(void **state) {
  (void)state;
  put_file("bu/ablate/bundle/summary.csv", "variant,metric,n,mean,std,lo,hi\n"
                                           "published,e_track_cm,3,4,1,3,5\n"
                                           "published,falls,3,0,0,0,0\n"
                                           "size1,e_track_cm,1,6,,,\n"
                                           "size1,env_steps,1,9,,,\n");
  int made;
  struct err e = {0};
  draw("bundle", "bu", "buout", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_pictures("buout/bundle");
  }
  const char *csv = "buout/bundle.csv";
  assert_true(cell(csv, 0, "e_track_cm_hi") == 5 && cell(csv, 0, "falls") == 0);
  assert_true(cell(csv, 1, "e_track_cm_lo") == 6 && isnan(cell(csv, 1, "falls")));
}

static void checkpoints_along_training(void **state) {
  (void)state;
  put_file("ck/leap/main/seed1/transfer_checkpoints.csv",
           "iteration,env_steps,episodes,falls,time_s,e_track_cm,e_track_cm_std,checkpoint\n"
           "10,1000,5,5,0.02,,,ckpt_00000010.dsim\n20,2000,5,2,9,30,4,ckpt_00000020.dsim\n"
           "20,2000,5,2,9,30,4,policy.dsim\n");
  int made;
  struct err e = {0};
  draw("checkpoints", "ck", "ckout", &made, &e);
  if (have_gnuplot) {
    assert_int_equal(e.code, 0);
    assert_pictures("ckout/checkpoints");
  }
  const char *csv = "ckout/checkpoints.csv";
  assert_true(cell(csv, 0, "fell_percent") == 100 && isnan(cell(csv, 0, "e_track_cm")));
  assert_true(cell(csv, 1, "fell_percent") == 40 && cell(csv, 1, "e_track_cm_lo") == 26);
  struct csv_table t;
  assert_int_equal(csv_read(&t, &arena, in_folder(csv), &e), 0);
  assert_int_equal(t.nrow, 2); // the best policy is no checkpoint of its own
}

// What is not there is passed over, and said; what is damaged is an error that names the file.
static void missing_sweeps_are_said(void **state) {
  (void)state;
  put_progress("none/run/main/seed0/progress.csv", 0, 4, true);
  static const char *const names[] = {"stiffness", "methods", "bundle", "checkpoints"};
  for (int i = 0; i < 4; i++) {
    int made;
    struct err e = {0};
    assert_int_equal(draw(names[i], "none", "noneout", &made, &e), EXIT_USAGE);
    assert_non_null(strstr(e.text, names[i]));
    assert_non_null(strstr(e.text, "(dsim "));
  }
  int made;
  struct err all = {0};
  figures_draw(NULL, 0, in_folder("none"), in_folder("noneout"), &made, &all);
  if (have_gnuplot) {
    assert_int_equal(all.code, 0);
    assert_int_equal(made, 2); // the learning curves alone
  }
  put_file("torn/ablate/bundle/summary.csv", "variant,metric,n,mean\nsize1,falls,1,2\n");
  struct err e = {0};
  assert_int_equal(draw("bundle", "torn", "tornout", &made, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "torn/ablate/bundle/summary.csv"));
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
      cmocka_unit_test(stiffness_beside_the_paper),
      cmocka_unit_test(methods_and_what_they_need),
      cmocka_unit_test(bundle_settings_in_rows),
      cmocka_unit_test(checkpoints_along_training),
      cmocka_unit_test(missing_sweeps_are_said),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
