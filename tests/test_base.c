// Errors, arenas, random numbers, hashes and files.
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/rng.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

// ---- err
// -------------------------------------------------------------------------------------------

static void first_error_wins(void **state) {
  (void)state;
  struct err e = {0};
  assert_int_equal(err_prefix(&e, "nothing yet: "), 0);
  assert_string_equal(e.text, "");
  assert_int_equal(err_set(&e, EXIT_IO, "disk %d", 7), EXIT_IO);
  assert_int_equal(err_set(&e, EXIT_USAGE, "later"), EXIT_IO);
  assert_int_equal(err_prefix(&e, "%s: ", "run.yaml"), EXIT_IO);
  assert_string_equal(e.text, "run.yaml: disk 7");
}

static void long_messages_are_cut(void **state) {
  (void)state;
  struct err e = {0};
  char text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  err_set(&e, EXIT_USAGE, "%s", text);
  assert_int_equal(strlen(e.text), sizeof e.text - 1);
  err_prefix(&e, "place: ");
  assert_int_equal(strlen(e.text), sizeof e.text - 1);
  assert_memory_equal(e.text, "place: xxx", 10);
}

static void nearest_name(void **state) {
  (void)state;
  static const char *const names[] = {"train", "transfer", "evaluate", "bundle.size", "seed"};
  const int n = 5;
  assert_string_equal(err_nearest("tarin", names, n), "train"); // neighbours swapped: one edit
  assert_string_equal(err_nearest("bundel.size", names, n), "bundle.size");
  assert_string_equal(err_nearest("sed", names, n), "seed");
  assert_string_equal(err_nearest("evalaute", names, n), "evaluate");
  assert_null(err_nearest("xyz", names, n));
  assert_null(err_nearest("se", names, n)); // half the word would be wrong
  assert_null(err_nearest("", names, n));
  char huge[1000];
  memset(huge, 'a', sizeof huge - 1);
  huge[sizeof huge - 1] = '\0';
  assert_null(err_nearest(huge, names, n));
}

// ---- arena
// -----------------------------------------------------------------------------------------

static void blocks_are_zero_and_aligned(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  for (size_t n = 0; n < 300; n += 7) {
    unsigned char *p = arena_alloc(&a, n);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(p[i], 0);
      p[i] = 0xff; // must not reach any other block, nor the next user of this memory
    }
  }
  double *big = ARENA_NEW(&a, double, 3 << 20); // larger than a block of the arena
  assert_true(big[0] == 0 && big[(3 << 20) - 1] == 0);
  assert_string_equal(arena_strdup(&a, "dsim"), "dsim");
  arena_release(&a);
  assert_int_equal(a.used, 0);
  assert_true(a.high_water >= sizeof(double) * (3 << 20));
}

static void marks_nest(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct arena_mark empty = arena_mark(&a);
  int *kept = ARENA_NEW(&a, int, 4);
  kept[3] = 42;
  struct arena_mark outer = arena_mark(&a);
  size_t used = a.used;
  char *first = arena_alloc(&a, 1000);
  memset(first, 1, 1000);
  struct arena_mark inner = arena_mark(&a);
  arena_alloc(&a, 5 << 20);
  arena_reset(&a, inner);
  arena_reset(&a, outer);
  assert_int_equal(a.used, used);
  assert_int_equal(kept[3], 42);
  char *again = arena_alloc(&a, 1000);
  assert_ptr_equal(again, first); // the same memory, zero again
  assert_int_equal(again[999], 0);
  arena_reset(&a, empty);
  assert_int_equal(a.used, 0);
  assert_null(a.head);
  arena_release(&a);
}

// ---- rng
// -------------------------------------------------------------------------------------------

static void philox_known_answers(void **state) {
  (void)state;
  // Random123's kat_vectors: philox4x32, 10 rounds. The seed undoes the folding of the purpose.
  struct rng zero = rng_stream(0x9E3779B900000000u, RNG_INIT_WEIGHTS, 0, 0, 0);
  static const uint32_t answer[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(rng_u32(&zero), answer[i]);
  }
  assert_int_equal(zero.ctr[3], 1);
  assert_true(rng_u32(&zero) != answer[0]); // the next block follows by itself
}

static void streams_are_functions_of_their_names(void **state) {
  (void)state;
  struct rng a = rng_stream(7, RNG_RESET, 3, 5, 11);
  struct rng b = rng_stream(7, RNG_RESET, 3, 5, 11);
  struct rng others[] = {rng_stream(8, RNG_RESET, 3, 5, 11), rng_stream(7, RNG_ACTION, 3, 5, 11),
                         rng_stream(7, RNG_RESET, 4, 5, 11), rng_stream(7, RNG_RESET, 3, 6, 11),
                         rng_stream(7, RNG_RESET, 3, 5, 12)};
  uint32_t first = rng_u32(&a);
  assert_int_equal(first, rng_u32(&b));
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    assert_true(rng_u32(&others[i]) != first);
  }
}

static void distributions_have_their_moments(void **state) {
  (void)state;
  enum { N = 200000 };
  struct rng r = rng_stream(1, RNG_TEST, 0, 0, 0);
  double m1 = 0, m2 = 0, m4 = 0, u1 = 0, u2 = 0, lo = 1, hi = 0;
  for (int i = 0; i < N; i++) {
    double x = rng_normal(&r), u = rng_uniform(&r);
    m1 += x, m2 += x * x, m4 += x * x * x * x;
    u1 += u, u2 += u * u;
    lo = fmin(lo, u), hi = fmax(hi, u);
  }
  // five standard errors of each moment
  double s = 5 / sqrt((double)N);
  assert_true(fabs(m1 / N) < s);
  assert_true(fabs(m2 / N - 1) < s * sqrt(2));
  assert_true(fabs(m4 / N - 3) < s * sqrt(96));
  assert_true(fabs(u1 / N - 0.5) < s * sqrt(1. / 12));
  assert_true(fabs(u2 / N - 1. / 3) < s * sqrt(4. / 45));
  assert_true(lo > 0 && hi < 1);
}

static void below_is_even(void **state) {
  (void)state;
  enum { N = 70000, SIDES = 7 };
  struct rng r = rng_stream(2, RNG_TEST, 0, 0, 0);
  int count[SIDES] = {0};
  for (int i = 0; i < N; i++) {
    uint32_t v = rng_below(&r, SIDES);
    assert_in_range(v, 0, SIDES - 1);
    count[v]++;
  }
  double chi2 = 0;
  for (int i = 0; i < SIDES; i++) {
    double d = count[i] - N / (double)SIDES;
    chi2 += d * d / (N / (double)SIDES);
  }
  assert_true(chi2 < 22.5); // 99.9 % of six degrees of freedom
  assert_int_equal(rng_below(&r, 1), 0);
}

// ---- sha256 and files
// ------------------------------------------------------------------------------

static void sha256_known_answers(void **state) {
  (void)state;
  static const struct {
    const char *text, *hex;
  } cases[] = {
      // FIPS 180-4's own examples, and a length that just needs a second padding block
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  char hex[65];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sha256_hex(cases[i].text, strlen(cases[i].text), hex);
    assert_string_equal(hex, cases[i].hex);
  }
  static char million[1000000];
  memset(million, 'a', sizeof million);
  sha256_hex(million, sizeof million, hex);
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static char folder[] = "/tmp/dsim_test_base_XXXXXX";
static char path[256];

static const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"plain", "packed", "cut", "a/b/c", "a/b", "a"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    remove(in_folder(names[i]));
  }
  return rmdir(folder); // fails if a temporary file was left behind
}

static void files_round_trip(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  struct err e = {0};
  enum { N = 300000 };
  unsigned char *data = arena_alloc(&a, N);
  struct rng r = rng_stream(3, RNG_TEST, 0, 0, 0);
  for (int i = 0; i < N; i++) {
    data[i] = (unsigned char)rng_below(&r, 4); // compresses, and holds zeros
  }
  char *back;
  size_t size;
  assert_int_equal(file_write_atomic(in_folder("plain"), data, N, &e), 0);
  assert_int_equal(file_read(&a, path, N, &back, &size, &e), 0);
  assert_int_equal(size, N);
  assert_memory_equal(back, data, N);
  assert_int_equal(back[N], 0);

  assert_int_equal(file_write_gz(in_folder("packed"), data, N, &e), 0);
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  assert_true(st.st_size < N / 2);
  assert_int_equal(file_read(&a, path, N, &back, &size, &e), 0);
  assert_int_equal(size, N);
  assert_memory_equal(back, data, N);

  // one byte less than it holds is too little, compressed or not
  assert_int_equal(file_read(&a, path, N - 1, &back, &size, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "larger than"));
  assert_null(back);
  e = (struct err){0};
  assert_int_equal(file_read(&a, in_folder("plain"), N - 1, &back, &size, &e), EXIT_USAGE);

  // a file cut short while being copied
  e = (struct err){0};
  char *packed = arena_alloc(&a, (size_t)st.st_size);
  FILE *f = fopen(in_folder("packed"), "rb");
  assert_int_equal(fread(packed, 1, (size_t)st.st_size, f), st.st_size);
  fclose(f);
  assert_int_equal(packed[4] | packed[5] | packed[6] | packed[7], 0); // no time stamp
  file_write_atomic(in_folder("cut"), packed, (size_t)st.st_size / 2, &e);
  assert_int_equal(e.code, 0);
  assert_int_not_equal(file_read(&a, path, N, &back, &size, &e), 0);
  arena_release(&a);
}

static void file_errors_say_what(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  char *back, hex[65];
  size_t size;
  struct err e = {0};
  assert_int_equal(file_read(&a, in_folder("missing"), 100, &back, &size, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "missing': No such file"));
  e = (struct err){0};
  assert_int_equal(file_read(&a, folder, 100, &back, &size, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "is a folder"));
  e = (struct err){0};
  assert_int_equal(file_write_atomic(in_folder("no/such/folder"), "x", 1, &e), EXIT_IO);
  e = (struct err){0};
  assert_int_equal(file_sha256(in_folder("missing"), hex, &e), EXIT_USAGE);
  arena_release(&a);
}

static void folders_with_parents(void **state) {
  (void)state;
  struct err e = {0};
  assert_int_equal(dir_make(in_folder("a/b"), &e), 0);
  assert_int_equal(dir_make(in_folder("a/b"), &e), 0); // existing is fine
  assert_int_equal(file_write_atomic(in_folder("a/b/c"), "x", 1, &e), 0);
  assert_true(file_exists(path));
  assert_int_equal(dir_make(in_folder("a/b/c"), &e), EXIT_IO); // a file of that name
  e = (struct err){0};
  assert_int_equal(dir_make(in_folder("a/b/c/d"), &e), EXIT_IO);
  e = (struct err){0};
  char hex[65];
  assert_int_equal(file_sha256(in_folder("a/b/c"), hex, &e), 0);
  assert_string_equal(hex, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
}

static void home_is_where_it_is_told(void **state) {
  (void)state;
  struct arena a;
  arena_init(&a);
  char *before = getenv("DSIM_HOME") ? arena_strdup(&a, getenv("DSIM_HOME")) : NULL;
  setenv("DSIM_HOME", in_folder("a/"), 1);
  snprintf(path, sizeof path, "%s/a", folder);
  assert_string_equal(dsim_home(), path);
  const char *found = file_find(&a, "b/c");
  snprintf(path, sizeof path, "%s/a/b/c", folder);
  assert_string_equal(found, path);
  assert_null(file_find(&a, "b/nothing"));
  assert_null(file_find(&a, ""));
  unsetenv("DSIM_HOME");
  assert_true(dsim_home()[0] == '/');
  if (before != NULL) {
    setenv("DSIM_HOME", before, 1);
  }
  arena_release(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_error_wins),
      cmocka_unit_test(long_messages_are_cut),
      cmocka_unit_test(nearest_name),
      cmocka_unit_test(blocks_are_zero_and_aligned),
      cmocka_unit_test(marks_nest),
      cmocka_unit_test(philox_known_answers),
      cmocka_unit_test(streams_are_functions_of_their_names),
      cmocka_unit_test(distributions_have_their_moments),
      cmocka_unit_test(below_is_even),
      cmocka_unit_test(sha256_known_answers),
      cmocka_unit_test(files_round_trip),
      cmocka_unit_test(file_errors_say_what),
      cmocka_unit_test(folders_with_parents),
      cmocka_unit_test(home_is_where_it_is_told),
  };
  return cmocka_run_group_tests_name("base", tests, make_folder, remove_folder);
}
