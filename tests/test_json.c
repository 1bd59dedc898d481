// JSON files and printed tables.
#include "base/file.h"
#include "out/json.h"
#include "out/table.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char path[] = "/tmp/dsim_test_json_XXXXXX";

static int set_up(void **state) {
  (void)state;
  int fd = mkstemp(path);
  return fd < 0 || close(fd) != 0;
}

static int tear_down(void **state) {
  (void)state;
  return unlink(path);
}

static void a_tree_survives_the_file(void **state) {
  (void)state;
  struct err e = {0};
  cJSON *root = cJSON_CreateObject(), *inner = cJSON_AddObjectToObject(root, "train");
  const double list[3] = {1, 0.1, -2e-7};
  json_add_real(inner, "iteration_s", 0.08512345678901234);
  json_add_real(root, "nothing", NAN);
  json_add_reals(root, "list", list, 3);
  cJSON_AddStringToObject(root, "isa", "v3");
  assert_int_equal(json_write(path, root, &e), 0);
  cJSON_Delete(root);

  root = json_read(path, &e);
  assert_non_null(root);
  double x;
  const char *s;
  assert_int_equal(json_get_real(&x, root, "train.iteration_s", path, &e), 0);
  assert_true(x == 0.0851234568); // nine digits
  assert_int_equal(json_get_text(&s, root, "isa", path, &e), 0);
  assert_string_equal(s, "v3");
  assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "nothing")));
  assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "list"), 2)->valuedouble == -2e-7);
  assert_int_equal(json_get_real(&x, root, "train.sim_s", path, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "'train.sim_s' is missing"));
  struct err e2 = {0};
  json_get_real(&x, root, "isa", path, &e2);
  assert_non_null(strstr(e2.text, "'isa' is no number"));
  cJSON_Delete(root);
}

static void broken_json_is_placed(void **state) {
  (void)state;
  static const char text[] = "{\n  \"a\": 1,\n  \"b\": oops\n}\n";
  struct err e = {0};
  assert_int_equal(file_write_atomic(path, text, sizeof text - 1, &e), 0);
  assert_null(json_read(path, &e));
  assert_int_equal(e.code, EXIT_USAGE);
  assert_non_null(strstr(e.text, ":3:8: not valid JSON"));
}

static void tables_are_aligned(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct table t;
  table_init(&t, &a);
  table_column(&t, "motion", "", 0);
  table_column(&t, "E_track", "cm", 1);
  table_column(&t, "falls", "", 0);
  table_column(&t, "κ", "1/m", 0);
  table_text(&t, "walk");
  table_mean_std(&t, 3.64, 0.25);
  table_int(&t, 0);
  table_real(&t, 300);
  table_text(&t, "fight");
  table_mean_std(&t, 113.5, NAN);
  table_int(&t, 5);
  table_real(&t, NAN);
  table_rule(&t);
  table_text(&t, "mean");
  table_real(&t, 58.57);
  table_text(&t, "");
  table_text(&t, "");

  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  table_print(&t, out);
  fclose(out);
  // "±" and "κ" are two bytes and one column wide
  assert_string_equal(text, "motion    E_track  falls    κ\n"
                            "               cm         1/m\n"
                            "-----------------------------\n"
                            "walk    3.6 ± 0.2      0  300\n"
                            "fight       113.5      5    -\n"
                            "-----------------------------\n"
                            "mean         58.6         \n");
  free(text);
  arena_release(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tree_survives_the_file),
      cmocka_unit_test(broken_json_is_placed),
      cmocka_unit_test(tables_are_aligned),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
