// Checkpoint files: what is written comes back; every shortened or changed file is refused.
#include "base/file.h"
#include "out/checkpoint.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/dsim_ckpt_XXXXXX";
static char path[64], broken[64];

static const float weights[5] = {1, -2, 3.5f, 0, 1e-30f};
static const int64_t counters[3] = {7, -8, INT64_MAX};

static int set_up(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/good.dsim", folder);
  snprintf(broken, sizeof broken, "%s/broken.dsim", folder);
  struct arena a;
  arena_init(&a);
  struct checkpoint c;
  struct err e = {0};
  checkpoint_init(&c, &a);
  checkpoint_text(&c, "iteration", "%d", 400);
  checkpoint_text(&c, "actuators", "left_hip right_hip");
  checkpoint_slab(&c, "weights", weights, sizeof weights);
  checkpoint_slab(&c, "empty", NULL, 0);
  checkpoint_slab(&c, "counters", counters, sizeof counters);
  assert_int_equal(checkpoint_write(&c, path, &e), 0);
  arena_release(&a);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  unlink(broken);
  return rmdir(folder);
}

static void test_round_trip(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct checkpoint c;
  struct err e = {0};
  assert_int_equal(checkpoint_read(&c, &a, path, &e), 0);
  float w[5];
  int64_t k[3], iteration;
  assert_int_equal(checkpoint_copy(w, sizeof w, &c, "weights", &e), 0);
  assert_int_equal(checkpoint_copy(k, sizeof k, &c, "counters", &e), 0);
  assert_memory_equal(w, weights, sizeof w);
  assert_memory_equal(k, counters, sizeof k);
  assert_int_equal(checkpoint_int(&iteration, &c, "iteration", &e), 0);
  assert_int_equal(iteration, 400);
  assert_string_equal(checkpoint_value(&c, "actuators"), "left_hip right_hip");
  assert_null(checkpoint_value(&c, "nothing"));

  assert_int_equal(checkpoint_copy(w, 4, &c, "weights", &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "slab 'weights' has 20 bytes, 4 expected"));
  e = (struct err){0};
  assert_int_equal(checkpoint_copy(w, 4, &c, "other", &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no slab 'other'"));
  e = (struct err){0};
  assert_int_equal(checkpoint_int(&iteration, &c, "actuators", &e), EXIT_USAGE);
  arena_release(&a);
}

// Reads data as a file; the message of the refusal, which must begin with the path.
static const char *refusal(struct arena *a, const char *data, size_t size) {
  static struct err e;
  e = (struct err){0};
  FILE *f = fopen(broken, "wb");
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
  struct checkpoint c;
  assert_int_equal(checkpoint_read(&c, a, broken, &e), EXIT_USAGE);
  assert_true(strncmp(e.text, broken, strlen(broken)) == 0);
  return e.text;
}

static void test_every_prefix_is_refused(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  char *data;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&a, path, 1 << 20, &data, &size, &e), 0);
  for (size_t n = 0; n < size; n++) {
    struct arena_mark mark = arena_mark(&a);
    assert_non_null(strstr(refusal(&a, data, n), "cut short"));
    arena_reset(&a, mark);
  }
  arena_release(&a);
}

static void test_every_flipped_bit_is_refused(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  char *data;
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&a, path, 1 << 20, &data, &size, &e), 0);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    struct arena_mark mark = arena_mark(&a);
    data[bit / 8] ^= (char)(1 << bit % 8);
    refusal(&a, data, size);
    data[bit / 8] ^= (char)(1 << bit % 8);
    arena_reset(&a, mark);
  }
  // a byte too many, too
  char *longer = arena_alloc(&a, size + 1);
  memcpy(longer, data, size);
  assert_non_null(strstr(refusal(&a, longer, size + 1), "bytes behind its end"));
  arena_release(&a);
}

static void test_other_files(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  static const char newer[] = "dsim checkpoint 2\nsomething else entirely";
  static const char other[] = "iteration,env_steps\n";
  assert_non_null(strstr(refusal(&a, newer, sizeof newer), "format 2, this dsim reads format 1"));
  assert_non_null(strstr(refusal(&a, other, sizeof other), "not a dsim checkpoint"));
  struct checkpoint c;
  struct err e = {0};
  assert_int_equal(checkpoint_read(&c, &a, "/nowhere/ckpt.dsim", &e), EXIT_USAGE);
  arena_release(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_every_prefix_is_refused),
      cmocka_unit_test(test_every_flipped_bit_is_refused),
      cmocka_unit_test(test_other_files),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
