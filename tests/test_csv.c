// CSV files: written, appended to, refused, resumed, read; whatever the locale.
#include "base/file.h"
#include "out/csv.h"
#include <locale.h>
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
static char folder[] = "/tmp/dsim_test_csv_XXXXXX";
static char path[128];

static int set_up(void **state) {
  (void)state;
  arena_init(&arena);
  return mkdtemp(folder) == NULL;
}

static int tear_down(void **state) {
  (void)state;
  arena_release(&arena);
  char command[256];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0;
}

// every test has a file name of its own, and nothing there yet
static int fresh(void **state) {
  (void)state;
  static int count;
  snprintf(path, sizeof path, "%s/%d/a.csv", folder, count++);
  return 0;
}

static void put_file(const char *text) {
  struct err e = {0};
  char dir[128];
  snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
  assert_int_equal(dir_make(dir, &e), 0);
  assert_int_equal(file_write_atomic(path, text, strlen(text), &e), 0);
}

static const char *get_file(void) {
  char *text;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&arena, path, 1 << 20, &text, &size, &e), 0);
  return text;
}

static void assert_says(const struct err *e, int code, const char *part) {
  assert_int_equal(e->code, code);
  if (!strstr(e->text, part)) {
    fail_msg("'%s' does not say '%s'", e->text, part);
  }
}

static void append_row(int iteration, double reward) {
  struct csv c;
  struct err e = {0};
  assert_int_equal(csv_open(&c, path, "iteration,reward", &e), 0);
  csv_int(&c, iteration);
  csv_real(&c, reward);
  assert_int_equal(csv_end(&c, &e), 0);
  csv_close(&c);
}

// ---- writing

static void rows_are_text_with_a_point(void **state) {
  (void)state;
  struct csv c;
  struct err e = {0};
  assert_int_equal(csv_open(&c, path, "a,b,c,d,e,f", &e), 0);
  csv_real(&c, 0.1);
  csv_real(&c, -1234567.891);
  csv_real(&c, NAN);
  csv_missing(&c);
  csv_int(&c, -7);
  csv_text(&c, "say \"x, y\"");
  assert_int_equal(csv_end(&c, &e), 0);
  csv_real(&c, -NAN);
  csv_real(&c, INFINITY);
  csv_exact(&c, 0.1);
  csv_real(&c, 1e-300);
  csv_real(&c, 0);
  csv_text(&c, "plain");
  assert_int_equal(csv_end(&c, &e), 0);
  csv_close(&c);
  assert_string_equal(get_file(), "a,b,c,d,e,f\n"
                                  "0.1,-1234567.89,nan,,-7,\"say \"\"x, y\"\"\"\n"
                                  "nan,inf,0.10000000000000001,1e-300,0,plain\n");
}

static void a_comma_locale_changes_nothing(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
  bool set = false;
  for (int i = 0; i < 4 && !set; i++) {
    set = setlocale(LC_ALL, names[i]) != NULL;
  }
  if (!set) {
    skip(); // no such locale on this machine
  }
  append_row(1, 0.5);
  struct csv_table t;
  double *x = NULL;
  struct err e = {0};
  int rc = csv_read(&t, &arena, path, &e) || csv_reals(&x, &arena, &t, "reward", &e);
  setlocale(LC_ALL, "C");
  assert_int_equal(rc, 0);
  assert_true(x[0] == 0.5);
  assert_string_equal(get_file(), "iteration,reward\n1,0.5\n");
}

static void every_row_reaches_the_file_at_once(void **state) {
  (void)state;
  struct csv c;
  struct err e = {0};
  assert_int_equal(csv_open(&c, path, "iteration,reward", &e), 0);
  csv_int(&c, 1);
  assert_string_equal(get_file(), "iteration,reward\n");
  csv_real(&c, 2);
  assert_int_equal(csv_end(&c, &e), 0);
  assert_string_equal(get_file(), "iteration,reward\n1,2\n");
  csv_close(&c);
}

static void numbers_read_back_exactly(void **state) {
  (void)state;
  const double x[4] = {1.0 / 3, 6.02214076e23, -0.0, 4.9406564584124654e-324};
  struct csv c;
  struct err e = {0};
  assert_int_equal(csv_open(&c, path, "x", &e), 0);
  for (int i = 0; i < 4; i++) {
    csv_exact(&c, x[i]);
    assert_int_equal(csv_end(&c, &e), 0);
  }
  csv_close(&c);
  struct csv_table t;
  double *y;
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(csv_reals(&y, &arena, &t, "x", &e), 0);
  assert_int_equal(t.nrow, 4);
  assert_memory_equal(y, x, sizeof x);
}

// ---- appending

static void appending_goes_on_behind_the_last_row(void **state) {
  (void)state;
  append_row(0, 0.25);
  append_row(1, 0.5);
  assert_string_equal(get_file(), "iteration,reward\n0,0.25\n1,0.5\n");
}

static void other_columns_are_refused_by_name(void **state) {
  (void)state;
  put_file("iteration,rewrad,lr\n0,1,2\n");
  struct csv c;
  struct err e = {0};
  csv_open(&c, path, "iteration,reward,lr", &e);
  assert_says(&e, EXIT_USAGE, "file lacks 'reward'; file has unknown 'rewrad'");
  assert_says(&e, EXIT_USAGE, path);
  csv_close(&c);
  assert_string_equal(get_file(), "iteration,rewrad,lr\n0,1,2\n");

  struct err e2 = {0};
  csv_open(&c, path, "iteration,lr,rewrad", &e2);
  assert_says(&e2, EXIT_USAGE, "another order");
  csv_close(&c);
}

static void half_a_row_is_dropped(void **state) {
  (void)state;
  put_file("iteration,reward\n0,1\n1,0.");
  append_row(1, 0.75);
  assert_string_equal(get_file(), "iteration,reward\n0,1\n1,0.75\n");
}

static void an_empty_file_gets_its_header(void **state) {
  (void)state;
  put_file("");
  append_row(3, 1);
  assert_string_equal(get_file(), "iteration,reward\n3,1\n");
}

static void a_folder_cannot_be_appended_to(void **state) {
  (void)state;
  struct csv c;
  struct err e = {0};
  assert_int_not_equal(csv_open(&c, folder, "a", &e), 0);
  assert_says(&e, e.code, folder);
  csv_close(&c);
}

// ---- resuming

static void resuming_cuts_rows_off(void **state) {
  (void)state;
  put_file("iteration,reward\n0,1\n10,2\n20,3\n");
  struct err e = {0};
  assert_int_equal(csv_keep_rows(path, 2, &e), 0);
  assert_string_equal(get_file(), "iteration,reward\n0,1\n10,2\n");
  assert_int_equal(csv_keep_below(path, "iteration", 10, &e), 0);
  assert_string_equal(get_file(), "iteration,reward\n0,1\n");
  csv_keep_rows(path, 5, &e);
  assert_says(&e, EXIT_IO, "fewer than the 5 rows");
}

static void resuming_without_a_file(void **state) {
  (void)state;
  struct err e = {0};
  assert_int_equal(csv_keep_rows(path, 0, &e), 0);
  assert_int_equal(csv_keep_below(path, "iteration", 10, &e), 0);
  csv_keep_rows(path, 3, &e);
  assert_says(&e, EXIT_IO, "missing");
}

// ---- reading

static void cells_are_found_by_column_name(void **state) {
  (void)state;
  put_file("name,x,\"y, m\"\r\n\"a \"\"b\"\"\",1.5,\r\n\nplain,,-2e-3\nunfinished,1");
  struct csv_table t;
  struct err e = {0};
  double *x, *y;
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(t.ncol, 3);
  assert_int_equal(t.nrow, 2);
  assert_int_equal(csv_find(&t, "y, m"), 2);
  assert_int_equal(csv_find(&t, "z"), -1);
  assert_string_equal(csv_cell(&t, 0, 0), "a \"b\"");
  assert_int_equal(csv_reals(&x, &arena, &t, "x", &e), 0);
  assert_int_equal(csv_reals(&y, &arena, &t, "y, m", &e), 0);
  assert_true(x[0] == 1.5 && isnan(x[1]));
  assert_true(isnan(y[0]) && y[1] == -2e-3);
}

static void mistakes_are_named_with_their_place(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"", ":1: no header"},
      {"a,b\n1,2\n1\n", ":3: 1 cells, but the header has 2 columns"},
      {"a,b\n1,2,3\n", ":2: 3 cells, but the header has 2 columns"},
      {"a,b,a\n1,2,3\n", ":1: column 'a' appears twice"},
      {"a,b\n1,\"2\n", ":2: a quote is not closed"},
      {"reward,b\n1,2\n", "no column 'rewrad' (nearest: 'reward')"},
      {"rewrad,b\n1,2\n2,x\n1.5x,3\n", "row 3, column 'rewrad': expected a number, got '1.5x'"},
      {"rewrad\n0,5\n", ":2: 2 cells"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    put_file(bad[i].text);
    struct csv_table t;
    double *x;
    struct err e = {0};
    assert_true(csv_read(&t, &arena, path, &e) || csv_reals(&x, &arena, &t, "rewrad", &e));
    assert_says(&e, EXIT_USAGE, bad[i].says);
    assert_says(&e, EXIT_USAGE, path);
  }
}

static void bytes_of_any_kind_end_in_an_error(void **state) {
  (void)state;
  struct err e = {0};
  put_file("x");
  static const char zero[] = "a,b\n1,\0002\n3,4\n";
  assert_int_equal(file_write_atomic(path, zero, sizeof zero - 1, &e), 0);
  struct csv_table t;
  csv_read(&t, &arena, path, &e);
  assert_int_equal(e.code, EXIT_USAGE);
}

static void gzip_is_read_too(void **state) {
  (void)state;
  static const char text[] = "t,x\n0,1\n1,2\n";
  struct err e = {0};
  put_file("x");
  assert_int_equal(file_write_gz(path, text, sizeof text - 1, &e), 0);
  struct csv_table t;
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(t.nrow, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(rows_are_text_with_a_point, fresh),
      cmocka_unit_test_setup(a_comma_locale_changes_nothing, fresh),
      cmocka_unit_test_setup(every_row_reaches_the_file_at_once, fresh),
      cmocka_unit_test_setup(numbers_read_back_exactly, fresh),
      cmocka_unit_test_setup(appending_goes_on_behind_the_last_row, fresh),
      cmocka_unit_test_setup(other_columns_are_refused_by_name, fresh),
      cmocka_unit_test_setup(half_a_row_is_dropped, fresh),
      cmocka_unit_test_setup(an_empty_file_gets_its_header, fresh),
      cmocka_unit_test_setup(a_folder_cannot_be_appended_to, fresh),
      cmocka_unit_test_setup(resuming_cuts_rows_off, fresh),
      cmocka_unit_test_setup(resuming_without_a_file, fresh),
      cmocka_unit_test_setup(cells_are_found_by_column_name, fresh),
      cmocka_unit_test_setup(mistakes_are_named_with_their_place, fresh),
      cmocka_unit_test_setup(bytes_of_any_kind_end_in_an_error, fresh),
      cmocka_unit_test_setup(gzip_is_read_too, fresh),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
