// Shared by the motion tests: G1, a walker that slides along upright, and files in a folder of
// their own.
#pragma once
#include "base/file.h"
#include "motion/feet.h"
#include "motion/lint.h"
#include "motion/motion.h"
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

enum { SCENE_FRAMES = 30, SCENE_NQ = 36 };

struct scene {
  struct arena arena;
  struct robot robot;
  char folder[64];
  double rows[SCENE_FRAMES][SCENE_NQ]; // qpos order
};

static struct scene scene;

static inline int scene_open(void **state) {
  (void)state;
  struct err e = {0};
  arena_init(&scene.arena);
  if (robot_load(&scene.robot, &scene.arena, "robots/g1.xml", false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  strcpy(scene.folder, "/tmp/dsim_motion_XXXXXX");
  assert_non_null(mkdtemp(scene.folder));
  return 0;
}

static inline int scene_close(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", scene.folder);
  arena_release(&scene.arena);
  return system(command) == 0 ? 0 : -1;
}

// Stands in key frame "stand" with its soles on the floor, heading 100 degrees to the left, sliding
// at 1 m/s where it faces, one arm swinging. The heading keeps a wrong quaternion order from
// looking upright.
static inline int scene_reset(void **state) {
  (void)state;
  const struct robot *r = &scene.robot;
  int key = robot_find_key(r, "stand"), arm = robot_find_joint(r, "left_shoulder_pitch_joint");
  assert_true(key >= 0 && arm >= 0 && r->nq == SCENE_NQ);
  struct feet feet;
  feet_find(&feet, r);
  double heading = 100 * M_PI / 180, *q = scene.rows[0];
  double *xpos = ARENA_NEW(&scene.arena, double, 3 * r->nbody);
  double *xmat = ARENA_NEW(&scene.arena, double, 9 * r->nbody);
  memcpy(q, r->key[key].qpos, sizeof scene.rows[0]);
  robot_fk(r, q, xpos, xmat);
  q[2] -= feet_height(r, &feet, xpos, xmat);
  q[3] = cos(heading / 2);
  q[6] = sin(heading / 2);
  for (int k = 1; k < SCENE_FRAMES; k++) {
    memcpy(scene.rows[k], q, sizeof scene.rows[k]);
    scene.rows[k][0] = k / 30.0 * cos(heading);
    scene.rows[k][1] = k / 30.0 * sin(heading);
    scene.rows[k][r->link[arm].qadr] += 0.2 * sin(0.3 * k);
  }
  return 0;
}

static inline double *scene_joint(int frame, const char *name) {
  int link = robot_find_joint(&scene.robot, name);
  assert_true(link >= 0);
  return &scene.rows[frame][scene.robot.link[link].qadr];
}

static inline const char *scene_path(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scene.folder, name);
  return arena_strdup(&scene.arena, path);
}

static inline const char *scene_text(const char *name, const char *text) {
  struct err e = {0};
  const char *path = scene_path(name);
  assert_int_equal(file_write_atomic(path, text, strlen(text), &e), 0);
  return path;
}

// The frames as CSV text, 17 digits; end: line end; the caller may spoil it.
static inline char *scene_csv(enum clip_order order, const char *end) {
  char *text = ARENA_NEW(&scene.arena, char, SCENE_FRAMES *SCENE_NQ * 26), *at = text;
  for (int k = 0; k < SCENE_FRAMES; k++) {
    for (int i = 0; i < SCENE_NQ; i++) {
      int from = order == CLIP_ORDER_XYZW && i >= 3 && i < 7 ? 3 + (i - 3 + 1) % 4 : i;
      at += sprintf(at, "%.17g%s", scene.rows[k][from], i + 1 < SCENE_NQ ? "," : end);
    }
  }
  return text;
}

static inline struct clip scene_read(const char *path, const struct clip_options *opt) {
  struct clip c;
  struct err e = {0};
  if (clip_read(&c, &scene.arena, &scene.robot, path, opt, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return c;
}

static inline struct clip scene_clip(void) { // the frames as a clip in memory
  struct clip c = {
      .nframe = SCENE_FRAMES, .nq = SCENE_NQ, .fps = 30, .order = CLIP_ORDER_XYZW, .credit = ""};
  c.qpos = ARENA_NEW(&scene.arena, double, SCENE_FRAMES *SCENE_NQ);
  memcpy(c.qpos, scene.rows, sizeof scene.rows);
  return c;
}

// Reading path must fail with EXIT_USAGE and a message that holds every part (NULL at the end).
static inline void scene_refuses(const char *path, const struct clip_options *opt, ...) {
  struct clip c;
  struct err e = {0};
  assert_int_equal(clip_read(&c, &scene.arena, &scene.robot, path, opt, &e), EXIT_USAGE);
  va_list ap;
  va_start(ap, opt);
  for (const char *part; (part = va_arg(ap, const char *)) != NULL;) {
    if (strstr(e.text, part) == NULL) {
      fail_msg("'%s' is not in: %s", part, e.text);
    }
  }
  va_end(ap);
}

static inline void scene_rows_equal(const struct clip *c, double tolerance) {
  assert_int_equal(c->nframe, SCENE_FRAMES);
  for (int k = 0; k < SCENE_FRAMES; k++) {
    for (int i = 0; i < SCENE_NQ; i++) {
      double x = c->qpos[k * SCENE_NQ + i];
      if (!(fabs(x - scene.rows[k][i]) <= tolerance)) {
        fail_msg("frame %d, qpos %d: %.17g, expected %.17g", k, i, x, scene.rows[k][i]);
      }
    }
  }
}

// Folder with reference data, or NULL: $DSIM_SHARED, else ../shared beside the repository.
static inline const char *scene_shared(const char *inside) {
  const char *given = getenv("DSIM_SHARED");
  char path[4096];
  snprintf(path, sizeof path, "%s%s/%s", given ? given : dsim_home(), given ? "" : "/../shared",
           inside);
  return file_exists(path) ? arena_strdup(&scene.arena, path) : NULL;
}
