// Recorded tosses: both file forms and what is refused; the fit's gradient against differences; the
// cube's side found again in tosses that MuJoCo made.
#include "base/file.h"
#include "base/log.h"
#include "cmd/experiment.h"
#include "out/csv.h"
#include "plant/cube.h"
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
static char folder[] = "/tmp/dsim_test_tosses_XXXXXX";

static const char *in_folder(const char *name) {
  char *path = arena_alloc(&arena, strlen(folder) + strlen(name) + 2);
  sprintf(path, "%s/%s", folder, name);
  return path;
}

static void put(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  fclose(f);
}

// ---- reading

// quaternion, position, angular velocity, velocity
static const double raw[2][13] = {{1, 0, 0, 0, 0.1, 0.2, 0.3, 1, 2, 3, 4, 5, 6},
                                  {0.6, 0.8, 0, 0, -0.1, 0, 0.2, -1, 0, 1, 7, 8, 9}};

static void check_frames(const struct toss *t) {
  static const double first[13] = {0.1, 0.2, 0.3, 1, 0, 0, 0, 4, 5, 6, 1, 2, 3};
  assert_int_equal(t->frames, 2);
  for (int i = 0; i < 13; i++) {
    assert_true(fabs(t->state[0][i] - first[i]) < 1e-15);
  }
  assert_true(fabs(t->state[1][4] - 0.8) < 1e-15 && t->state[1][9] == 9);
}

static void little(unsigned char **p, unsigned x, int bytes) {
  for (int i = 0; i < bytes; i++) {
    *(*p)++ = (unsigned char)(i < 4 ? x >> 8 * i : 0);
  }
}

// an uncompressed zip archive with one member; returns its size
static size_t make_archive(unsigned char *out, const char *name, const void *data, unsigned size) {
  unsigned char *p = out;
  unsigned n = (unsigned)strlen(name);
  for (int central = 0; central < 2; central++) {
    unsigned start = (unsigned)(p - out);
    little(&p, central ? 0x02014b50 : 0x04034b50, 4);
    little(&p, 0, central ? 6 : 4); // versions, flags
    little(&p, 0, 2);               // stored
    little(&p, 0, 8);               // time, crc
    little(&p, size, 4);
    little(&p, size, 4);
    little(&p, n, 2);
    little(&p, 0, central ? 2 + 2 + 2 + 2 + 4 : 2);
    if (central) {
      little(&p, 0, 4); // the local header's place
    }
    memcpy(p, name, n);
    p += n;
    if (!central) {
      memcpy(p, data, size);
      p += size;
      continue;
    }
    unsigned length = (unsigned)(p - out) - start;
    little(&p, 0x06054b50, 4);
    little(&p, 0, 4);
    little(&p, 1, 2);
    little(&p, 1, 2);
    little(&p, length, 4);
    little(&p, start, 4);
    little(&p, 0, 2);
  }
  return (size_t)(p - out);
}

static void test_tensor_files(void **state) {
  (void)state;
  unsigned char bytes[1000];
  struct tosses t;
  struct err e = {0};
  size_t size = make_archive(bytes, "archive/data/0", raw, sizeof raw);
  put(in_folder("0.pt"), bytes, size);
  assert_int_equal(tosses_read(&t, &arena, folder, &e), 0);
  assert_int_equal(t.n, 1);
  check_frames(&t.toss[0]);
  // cut short anywhere, or with another member: refused, never read beyond
  for (size_t n = 0; n < size; n += 7) {
    put(in_folder("0.pt"), bytes, n);
    e = (struct err){0};
    assert_int_equal(tosses_read(&t, &arena, folder, &e), EXIT_USAGE);
  }
  size = make_archive(bytes, "archive/data/1", raw, sizeof raw);
  put(in_folder("0.pt"), bytes, size);
  e = (struct err){0};
  assert_int_equal(tosses_read(&t, &arena, folder, &e), EXIT_USAGE);
  size = make_archive(bytes, "archive/data/0", raw, sizeof raw - 8);
  put(in_folder("0.pt"), bytes, size);
  e = (struct err){0};
  assert_int_equal(tosses_read(&t, &arena, folder, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "0.pt"));
  unlink(in_folder("0.pt"));
}

static void test_table(void **state) {
  (void)state;
  char text[1000];
  struct tosses t;
  struct err e = {0};
  const char *path = in_folder("tosses.csv");
  int n = sprintf(text, "toss,frame,qw,qx,qy,qz,x,y,z,wx,wy,wz,vx,vy,vz\n");
  for (int toss = 0; toss < 2; toss++) {
    for (int i = 0; i < 2; i++) {
      n += sprintf(text + n, "%d,%d", toss, i);
      for (int k = 0; k < 13; k++) {
        n += sprintf(text + n, ",%.17g", raw[i][k]);
      }
      n += sprintf(text + n, "\n");
    }
  }
  put(path, text, (size_t)n);
  assert_int_equal(tosses_read(&t, &arena, path, &e), 0);
  assert_int_equal(t.n, 2);
  check_frames(&t.toss[1]);
  char *one = strstr(text, "\n0,0,1,");
  one[5] = '9'; // no unit quaternion
  put(path, text, (size_t)n);
  assert_int_equal(tosses_read(&t, &arena, path, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "tosses.csv:2"));
}

// ---- the fit

static void test_gradient(void **state) {
  (void)state;
  struct tosses t;
  struct pieces p;
  struct err e = {0};
  assert_int_equal(cube_make_tosses(&t, &arena, 8, 100, 1, &e), 0);
  pieces_draw(&p, &arena, &t, 0, 8, 30, 5, 1, 3);
  struct piece_fit f = {.scene = cube_scene(), .ode = ode_options_default()};
  f.ode.max_steps = 400;
  int large = 0, kinks = 0;
  for (int k = 0; k < 2; k++) { // fixed steps; steps that end at events, with their terms
    f.ode.adaptive = k == 1;
    f.ode.method = k ? ODE_DOPRI8 : ODE_SEMI_EULER;
    f.ode.locate = k == 1;
    f.ode.rtol = f.ode.atol = 1e-12;
    f.ode.dt = 1 / TOSS_RATE;
    f.gradient = k ? ODE_EVENTS : ODE_STEPS;
    for (int i = 0; i < p.n; i++) {
      double loss, grad, side[4];
      int steps = 0;
      const double s0 = 0.1, eps = 1e-6;
      assert_int_equal(piece_loss(&loss, &grad, &steps, &arena, &f, p.state[i], 5, s0), ODE_DONE);
      for (int j = 0; j < 4; j++) {
        double s = s0 + eps * (j < 2 ? -2 + j : j - 1);
        piece_loss(&side[j], NULL, &steps, &arena, &f, p.state[i], 5, s);
      }
      double near = (side[2] - side[1]) / (2 * eps), far = (side[3] - side[0]) / (4 * eps);
      double scale = fabs(near) + 1;
      if (fabs(near - far) > 1e-5 * scale) {
        kinks++; // a contact begins, or a row of its pyramid, between the two
      } else if (!(fabs(grad - near) < 2e-5 * scale)) {
        fail_msg("piece %d: gradient %.9g, differences %.9g", i, grad, near);
      }
      large += fabs(grad) > 0.1;
    }
  }
  assert_true(large > 20 && kinks < 10);
}

static double fit(const char *name, double start) {
  struct spec s;
  struct err e = {0};
  struct run_options run = {0};
  static char train[] = "train";
  char *argv[] = {train};
  char first[40];
  const char *dir = in_folder(name);
  snprintf(first, sizeof first, "fit.start=%g", start);
  spec_read(&s, &arena, "diffmjx/identify", &e);
  spec_set(&s, &arena, first, &e);
  spec_set(&s, &arena, "identify.pieces=32", &e);
  spec_set(&s, &arena, "iterations=40", &e);
  spec_set(&s, &arena, "fit.lr=0.03", &e);
  if (e.code || experiment_train(&s, dir, &run, 1, argv, &e)) {
    fail_msg("%s", e.text);
  }
  struct csv_table t;
  double *side;
  char path[300];
  snprintf(path, sizeof path, "%s/progress.csv", dir);
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  assert_int_equal(csv_reals(&side, &arena, &t, "side_mm", &e), 0);
  return 1e-3 * side[t.nrow - 1];
}

// From 60 and from 140 mm to within five percent.
static void test_identify(void **state) {
  (void)state;
  double small = fit("small", 0.06), large = fit("large", 0.14);
  if (!(fabs(small / TOSS_CUBE_SIDE - 1) < 0.05 && fabs(large / TOSS_CUBE_SIDE - 1) < 0.05)) {
    fail_msg("sides %.5f and %.5f", small, large);
  }
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
      cmocka_unit_test(test_tensor_files),
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_gradient),
      cmocka_unit_test(test_identify),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
