// What lint finds in clips that went wrong in the ways people report, what it leaves alone, and the
// import of lists. Facts about LAFAN1 are checked where the data lies beside the repository.
#include "motion_scene.h"
#include "base/log.h"
#include "motion/import.h"

static struct lint lint_of(const struct clip *c) {
  struct lint l;
  lint_clip(&l, &scene.robot, c);
  return l;
}

static const struct lint_finding *find(const struct lint *l, const char *code) {
  for (int i = 0; i < l->n; i++) {
    if (strcmp(l->finding[i].code, code) == 0) {
      return &l->finding[i];
    }
  }
  return NULL;
}

// The finding must be there, of this severity and frame, and say every part of the text.
static void assert_finds(const struct lint *l, enum lint_severity severity, const char *code,
                         int frame, const char *part, const char *more) {
  const struct lint_finding *f = find(l, code);
  if (f == NULL) {
    fail_msg("no finding '%s' among %d", code, l->n);
  } else {
    if (strstr(f->text, part) == NULL || strstr(f->text, more) == NULL) {
      fail_msg("'%s' or '%s' is not in: %s", part, more, f->text);
    }
    assert_int_equal(f->severity, severity);
    assert_int_equal(f->frame, frame);
  }
}

static void assert_clean(const struct lint *l) {
  if (l->n > 0) {
    fail_msg("%s: %s", l->finding[0].code, l->finding[0].text);
  }
}

static void sound_clip_has_no_findings(void **state) {
  (void)state;
  struct clip c = scene_clip();
  struct lint l = lint_of(&c);
  assert_clean(&l);
  assert_float_equal(l.foot_min, 0, 1e-9);
  assert_float_equal(l.foot_max, 0, 1e-9);
  assert_float_equal(l.root_speed, 1, 1e-9);
  // the arm: of the steps of 0.2 sin(0.3 k), the one around 0.3 k = pi is the fastest
  assert_float_equal(l.joint_speed, 0.2 * (sin(3.0) - sin(3.3)) * 30, 1e-9);
  assert_int_equal(l.joint_speed_frame, 10);
}

static void wrong_quaternion_order(void **state) {
  (void)state;
  // written w x y z, read as x y z w, and the other way round
  for (int i = 0; i < 2; i++) {
    enum clip_order written = i ? CLIP_ORDER_XYZW : CLIP_ORDER_WXYZ;
    struct clip_options opt = clip_options_default();
    opt.fps = 30;
    opt.order = i ? CLIP_ORDER_WXYZ : CLIP_ORDER_XYZW;
    struct clip c = scene_read(scene_text("order.csv", scene_csv(written, "\n")), &opt);
    struct lint l = lint_of(&c);
    assert_finds(&l, LINT_ERROR, "quaternion_order", -1, "root not upright in 100 % of frames",
                 i ? "'quaternion: xyzw'" : "'quaternion: wxyz'");
    assert_int_equal(l.n, 1); // and no crowd of consequences
  }
  // facing along x, a wrong order is half a turn: upright, but walking backwards
  for (int k = 0; k < SCENE_FRAMES; k++) {
    double *q = scene.rows[k];
    q[0] = k / 30.0;
    q[1] = q[4] = q[5] = q[6] = 0;
    q[3] = 1;
  }
  struct clip c = scene_clip();
  struct lint l = lint_of(&c);
  assert_clean(&l);
  struct clip_options opt = clip_options_default();
  opt.fps = 30;
  opt.order = CLIP_ORDER_WXYZ;
  c = scene_read(scene_text("ahead.csv", scene_csv(CLIP_ORDER_XYZW, "\n")), &opt);
  l = lint_of(&c);
  assert_finds(&l, LINT_WARNING, "quaternion_order", -1, "moves backwards at 0.97 m/s",
               "forwards read as xyzw");
}

static void quaternions_off_the_unit_sphere(void **state) {
  (void)state;
  static const struct {
    double norm;
    int severity; // -1: silence
  } cases[] = {{0, LINT_ERROR},        {0.98, LINT_ERROR},     {1.0011, LINT_ERROR},
               {1.0009, LINT_WARNING}, {0.9998, LINT_WARNING}, {1.00009, -1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct clip c = scene_clip();
    for (int j = 3; j < 7; j++) {
      c.qpos[4 * SCENE_NQ + j] *= cases[i].norm;
    }
    struct lint l = lint_of(&c);
    if (cases[i].severity < 0) {
      assert_clean(&l);
    } else {
      assert_finds(&l, (enum lint_severity)cases[i].severity, "quaternion_norm", 4,
                   "root: ", "norm");
    }
    // whatever the norm, cleaning gives unit quaternions
    clip_clean(&c, &scene.robot);
    const double *q = c.qpos + 4 * SCENE_NQ + 3;
    assert_float_equal(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3], 1, 1e-14);
  }
}

static void quaternion_signs(void **state) {
  (void)state;
  struct clip c = scene_clip();
  for (int k = 5; k < 9; k++) {
    for (int j = 3; j < 7; j++) {
      c.qpos[k * SCENE_NQ + j] *= -1;
    }
  }
  struct lint l = lint_of(&c);
  assert_int_equal(l.n, 1); // in particular no jump
  assert_finds(&l, LINT_WARNING, "sign_flip", 5, "changes sign 2 times", "repaired");
  clip_clean(&c, &scene.robot);
  scene_rows_equal(&c, 1e-15);
}

static void too_short_or_not_finite(void **state) {
  (void)state;
  struct clip c = scene_clip();
  c.nframe = 1;
  struct lint l = lint_of(&c);
  assert_finds(&l, LINT_ERROR, "short", -1, "1 frame:", "");
  c = scene_clip();
  c.qpos[6 * SCENE_NQ + 20] = NAN;
  c.qpos[9 * SCENE_NQ + 3] = -INFINITY;
  l = lint_of(&c);
  assert_finds(&l, LINT_ERROR, "nonfinite", 6, "2 numbers", "");
  struct err e = {0};
  assert_int_equal(lint_refuse(&l, "a.csv", &e), EXIT_USAGE);
  assert_string_equal(e.text, "a.csv: 2 numbers are nan or infinite");
}

static void wrong_units(void **state) {
  (void)state;
  struct clip c = scene_clip();
  for (int k = 0; k < SCENE_FRAMES; k++) {
    for (int j = 7; j < SCENE_NQ; j++) {
      c.qpos[k * SCENE_NQ + j] *= 180 / M_PI;
    }
  }
  struct lint l = lint_of(&c);
  assert_int_equal(l.n, 1);
  assert_finds(&l, LINT_ERROR, "units_degrees", -1, "look like degrees", "radians are expected");
  static const struct {
    double factor;
    const char *name;
  } unit[] = {{100, "centimetres"}, {1000, "millimetres"}};
  for (int i = 0; i < 2; i++) {
    c = scene_clip();
    for (int k = 0; k < SCENE_FRAMES; k++) {
      for (int j = 0; j < 3; j++) {
        c.qpos[k * SCENE_NQ + j] *= unit[i].factor;
      }
    }
    l = lint_of(&c);
    assert_int_equal(l.n, 1);
    assert_finds(&l, LINT_ERROR, "units_length", -1, unit[i].name, "metres are expected");
  }
}

static void jumps(void **state) {
  (void)state;
  // a knee turns 2.4 rad in a frame and stays there: 72 rad/s
  for (int k = 11; k < SCENE_FRAMES; k++) {
    *scene_joint(k, "left_knee_joint") += 2.4;
  }
  struct clip c = scene_clip();
  struct lint l = lint_of(&c);
  assert_finds(&l, LINT_ERROR, "jump", 11, "from frame 10 to 11", "left_knee_joint at 72 rad/s");
  assert_int_equal(l.nerror, 1);
  // frames are counted as in the file
  c.row_first = 600;
  l = lint_of(&c);
  assert_finds(&l, LINT_ERROR, "jump", 611, "from frame 610 to 611", "");
  c.allow_jumps = true;
  l = lint_of(&c);
  assert_finds(&l, LINT_WARNING, "jump", 611, "", "");
  assert_int_equal(l.nerror, 0);

  // the root is somewhere else for a frame: there at 30 m/s, and back
  scene_reset(NULL);
  c = scene_clip();
  c.qpos[20 * SCENE_NQ + 2] += 1;
  l = lint_of(&c);
  assert_int_equal(l.nerror, 2);
  assert_finds(&l, LINT_ERROR, "jump", 20, "root at 30.", "m/s");
  // a first frame of rubbish
  c = scene_clip();
  for (int j = 7; j < SCENE_NQ; j++) {
    c.qpos[j] = -2.6;
  }
  l = lint_of(&c);
  assert_finds(&l, LINT_ERROR, "jump", 1, "from frame 0 to 1", "more joints");

  // 50 degrees in a frame is within what fights show, but lies far off the line
  c = scene_clip();
  c.qpos[15 * SCENE_NQ + 7 + 3] += 50 * M_PI / 180;
  l = lint_of(&c);
  assert_int_equal(l.nerror, 0);
  assert_finds(&l, LINT_WARNING, "spike", 15, "left_knee_joint", "3 frames"); // 14 to 16
}

static void joint_limits(void **state) {
  (void)state;
  for (int k = 8; k < 12; k++) {
    *scene_joint(k, "left_elbow_joint") = 2.0944 + 0.1 * (k == 10 ? 2 : 1);
  }
  struct clip c = scene_clip();
  struct lint l = lint_of(&c);
  assert_int_equal(l.nerror, 0);
  assert_finds(&l, LINT_WARNING, "limit", 10, "left_elbow_joint: outside its range -1.047..2.094",
               "in 4 of 30 frames, at worst 2.294, 0.2 rad beyond");
}

static void feet_off_the_floor(void **state) {
  (void)state;
  static const struct {
    double dz;
    const char *code, *fix; // code NULL: fine
  } cases[] = {{0.05, "floating", "dz -0.0500"},
               {-0.02, "sinking", "dz +0.0200"},
               {0.02, NULL, NULL},
               {-0.009, NULL, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct clip c = scene_clip();
    for (int k = 0; k < SCENE_FRAMES; k++) {
      c.qpos[k * SCENE_NQ + 2] += cases[i].dz;
    }
    struct lint l = lint_of(&c);
    assert_float_equal(l.foot_median, cases[i].dz, 1e-9);
    if (cases[i].code == NULL) {
      assert_clean(&l);
      continue;
    }
    assert_int_equal(l.nerror, 0);
    assert_finds(&l, LINT_WARNING, cases[i].code, 0, cases[i].code, cases[i].fix);
  }
}

// The legs' and arms' columns exchanged: harmless on a stance that is its own mirror image, not on
// one with the legs apart.
static void left_and_right_exchanged(void **state) {
  (void)state;
  for (int wide = 0; wide < 2; wide++) {
    double spread = wide ? 0.35 : 0.05; // the feet cross, or stand too close
    for (int k = 0; k < SCENE_FRAMES; k++) {
      *scene_joint(k, "left_hip_roll_joint") = spread;
      *scene_joint(k, "right_hip_roll_joint") = -spread;
      *scene_joint(k, "left_ankle_roll_joint") = -0.05;
      *scene_joint(k, "right_ankle_roll_joint") = 0.05;
    }
    struct clip c = scene_clip();
    struct lint l = lint_of(&c);
    assert_null(find(&l, "mirrored"));
    for (int k = 0; k < SCENE_FRAMES; k++) {
      double *q = c.qpos + k * SCENE_NQ, left[6], arm[7];
      memcpy(left, q + 7, sizeof left);
      memcpy(q + 7, q + 13, sizeof left);
      memcpy(q + 13, left, sizeof left);
      memcpy(arm, q + 22, sizeof arm);
      memcpy(q + 22, q + 29, sizeof arm);
      memcpy(q + 29, arm, sizeof arm);
    }
    l = lint_of(&c);
    if (wide) {
      assert_finds(&l, LINT_ERROR, "mirrored", -1,
                   "left_ankle_roll_joint lies to the right of right", "100 % of frames");
    } else {
      assert_finds(&l, LINT_WARNING, "mirrored", -1, "left foot named on the right side",
                   "100 % of frames");
    }
  }
}

// A clip that lint refuses is not loaded, and the reason is passed on.
static void errors_refuse_loading(void **state) {
  (void)state;
  for (int k = 11; k < SCENE_FRAMES; k++) {
    *scene_joint(k, "left_knee_joint") += 2.4;
  }
  const char *path = scene_text("jump.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  scene_text("jump.yaml", "fps: 30\n");
  struct motion m;
  struct err e = {0};
  assert_int_equal(motion_load(&m, &scene.arena, &scene.robot, path, 0.02, &e), EXIT_USAGE);
  assert_non_null(
      strstr(e.text, "jump.csv: jump from frame 10 to 11: left_knee_joint at 72 rad/s"));
  scene_text("jump.yaml", "fps: 30\nallow_jumps: true\n");
  e = (struct err){0};
  assert_int_equal(motion_load(&m, &scene.arena, &scene.robot, path, 0.02, &e), 0);
}

// ---- import

static void imports_lists(void **state) {
  (void)state;
  struct arena *a = &scene.arena;
  const struct robot *r = &scene.robot;
  char *text = scene_csv(CLIP_ORDER_XYZW, "\n"), hex[65], list[2048];
  sha256_hex(text, strlen(text), hex);
  // the sum is of the text with LF, whatever the copy has
  scene_text("source.csv", scene_csv(CLIP_ORDER_XYZW, "\r\n"));
  sprintf(list,
          "credit: me\nfps: 30\nquaternion: xyzw\nclips:\n"
          "  all: {file: source, sha256: %s}\n"
          "  part: {file: source, sha256: %s, rows: [4, 13], dz: 0.001}\n",
          hex, hex);
  const char *path = scene_text("list.yaml", list), *out = scene_path("made");
  struct err e = {0};
  if (import_list(a, r, path, scene.folder, out, NULL, 0, false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  struct clip c = scene_read(scene_path("made/all.csv.gz"), NULL);
  scene_rows_equal(&c, 5e-9);
  c = scene_read(scene_path("made/part.csv.gz"), NULL);
  assert_int_equal(c.nframe, 10);
  assert_float_equal(c.qpos[2], scene.rows[4][2] + 0.001, 5e-9);
  assert_string_equal(c.credit, "me; frames 4..13 of source.csv, root raised by 0.001 m");

  // another file under that name: refused, taken by force
  scene.rows[0][0] += 1e-3;
  scene_text("source.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  assert_int_equal(import_list(a, r, path, scene.folder, out, NULL, 0, false, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "2 of 2 clips not made: clip 'all'"));
  assert_non_null(strstr(e.text, hex));
  e = (struct err){0};
  assert_int_equal(import_list(a, r, path, scene.folder, out, NULL, 0, true, &e), 0);
  // a file that is not there, a clip that is not in the list
  static const char *const only[] = {"prt"};
  assert_int_equal(import_list(a, r, path, scene.folder, out, only, 1, false, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no clip 'prt' (did you mean 'part'?)"));
  e = (struct err){0};
  assert_int_equal(import_list(a, r, path, out, out, NULL, 0, false, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no source.csv or source.csv.gz"));
}

static void imports_one_file(void **state) {
  (void)state;
  struct arena *a = &scene.arena;
  const char *in = scene_text("one.csv", scene_csv(CLIP_ORDER_WXYZ, "\n"));
  const char *out = scene_path("new/folder/one.csv.gz");
  struct clip_options opt = clip_options_default();
  opt.fps = 30;
  opt.order = CLIP_ORDER_WXYZ;
  struct err e = {0};
  if (import_clip(a, &scene.robot, in, out, &opt, false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  struct clip c = scene_read(out, NULL);
  scene_rows_equal(&c, 5e-9);
  assert_int_equal(import_clip(a, &scene.robot, in, out, &opt, false, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "exists"));
  // what lint refuses is not written
  e = (struct err){0};
  opt.order = CLIP_ORDER_XYZW;
  const char *bad = scene_path("bad.csv");
  assert_int_equal(import_clip(a, &scene.robot, in, bad, &opt, false, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "declare 'quaternion: wxyz'"));
  assert_false(file_exists(bad));
}

// ---- real clips

// Frames, path, root heights, sole heights and joint speed as computed with MuJoCo's kinematics.
static void lafan1_reads_as_measured(void **state) {
  (void)state;
  static const struct {
    const char *file;
    int nframe;
    double z_low, z_high, path, foot_min, foot_median, foot_max, speed_low, speed_high;
  } facts[] = {
      {"run1_subject2", 7135, .540, .848, 287, -.0265, .005, .155, 10, 15},
      {"jumps1_subject1", 7334, .556, .912, 179, -.012, .005, .187, 21.65, 21.75},
      {"fight1_subject2", 7347, .420, .927, 212, -.028, .003, .377, 35.5, 36.5},
      {"dance1_subject1", 3945, .288, .842, 79, -.021, .005, 1.05, 31.5, 32.5},
      {"walk1_subject1", 7840, .632, .815, 132, -.010, .005, .016, 10, 15},
  };
  const char *folder = scene_shared("data/lafan1_g1");
  if (folder == NULL) {
    skip();
  }
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.csv.gz", folder, facts[i].file);
    struct clip_options opt = clip_options_default();
    opt.fps = 30;
    struct clip c = scene_read(path, &opt);
    struct lint l = lint_of(&c);
    assert_int_equal(l.nerror, 0);
    assert_null(find(&l, "limit"));
    assert_null(find(&l, "mirrored"));
    assert_int_equal(c.nframe, facts[i].nframe);
    double low = INFINITY, high = -INFINITY, way = 0;
    for (int k = 0; k < c.nframe; k++) {
      const double *q = c.qpos + (size_t)k * SCENE_NQ;
      low = fmin(low, q[2]);
      high = fmax(high, q[2]);
      way += k > 0 ? hypot(q[0] - q[-SCENE_NQ], q[1] - q[1 - SCENE_NQ]) : 0;
    }
    assert_float_equal(low, facts[i].z_low, 5.1e-4); // as many digits as were written down
    assert_float_equal(high, facts[i].z_high, 5.1e-4);
    assert_float_equal(way, facts[i].path, 0.51);
    assert_float_equal(l.foot_min, facts[i].foot_min, 5.1e-4);
    assert_float_equal(l.foot_median, facts[i].foot_median, 5.1e-4);
    assert_float_equal(l.foot_max, facts[i].foot_max, facts[i].foot_max > 1 ? 5.1e-3 : 5.1e-4);
    assert_in_range((int)(1000 * l.joint_speed), (int)(1000 * facts[i].speed_low),
                    (int)(1000 * facts[i].speed_high));
  }
}

static void lafan1_windows_import(void **state) {
  (void)state;
  static const struct {
    const char *name;
    double foot_min, foot_median; // after the paper's shift: medians 15..26 mm, minima -10..13 mm
    double speed;                 // mean, m/s
  } windows[] = {{"run", 0.0073, 0.0256, 1.76},
                 {"jump", NAN, NAN, 0.75},
                 {"fight", NAN, NAN, 0.91},
                 {"dance", 0.0129, 0.0255, 0.60},
                 {"walk", NAN, NAN, 1.2}};
  const char *folder = scene_shared("data/lafan1_g1");
  if (folder == NULL) {
    skip();
  }
  struct err e = {0};
  const char *out = scene_path("lafan1");
  if (import_list(&scene.arena, &scene.robot, "motions/lafan1.yaml", folder, out, NULL, 0, false,
                  &e) != 0) {
    fail_msg("%s", e.text);
  }
  for (int i = 0; i < 5; i++) {
    char name[64];
    snprintf(name, sizeof name, "lafan1/%s.csv.gz", windows[i].name);
    struct motion m;
    if (motion_load(&m, &scene.arena, &scene.robot, scene_path(name), 0.02, &e) != 0) {
      fail_msg("%s", e.text);
    }
    assert_int_equal(m.nframe, 749);
    double way = 0;
    for (int k = 1; k < m.nframe; k++) {
      const double *q = m.qpos + k * m.nq;
      way += hypot(q[0] - q[-m.nq], q[1] - q[1 - m.nq]);
    }
    assert_float_equal(way / 14.96, windows[i].speed, 0.05);
    struct clip c = scene_read(scene_path(name), NULL);
    struct lint l = lint_of(&c);
    assert_true(l.foot_median > 0.0145 || i == 4);
    assert_true(l.foot_median < 0.0265 && l.foot_min > -0.0105 && l.foot_min < 0.0135);
    if (!isnan(windows[i].foot_min)) {
      assert_float_equal(l.foot_min, windows[i].foot_min, 1e-4);
      assert_float_equal(l.foot_median, windows[i].foot_median, 1e-4);
    }
  }
}

int main(void) {
  log_quiet(true);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(sound_clip_has_no_findings, scene_reset),
      cmocka_unit_test_setup(wrong_quaternion_order, scene_reset),
      cmocka_unit_test_setup(quaternions_off_the_unit_sphere, scene_reset),
      cmocka_unit_test_setup(quaternion_signs, scene_reset),
      cmocka_unit_test_setup(too_short_or_not_finite, scene_reset),
      cmocka_unit_test_setup(wrong_units, scene_reset),
      cmocka_unit_test_setup(jumps, scene_reset),
      cmocka_unit_test_setup(joint_limits, scene_reset),
      cmocka_unit_test_setup(feet_off_the_floor, scene_reset),
      cmocka_unit_test_setup(left_and_right_exchanged, scene_reset),
      cmocka_unit_test_setup(errors_refuse_loading, scene_reset),
      cmocka_unit_test_setup(imports_lists, scene_reset),
      cmocka_unit_test_setup(imports_one_file, scene_reset),
      cmocka_unit_test_setup(lafan1_reads_as_measured, scene_reset),
      cmocka_unit_test_setup(lafan1_windows_import, scene_reset),
  };
  return cmocka_run_group_tests(tests, scene_open, scene_close);
}
