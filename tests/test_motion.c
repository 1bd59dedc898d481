// Reading clips, and building motions from them: against closed forms.
#include "motion_scene.h"
#include "motion/import.h"

static const struct clip_options AT_30 = {.fps = 30, .row_first = -1, .row_last = -1, .dz = NAN};

// ---- reading

static void reads_either_quaternion_order(void **state) {
  (void)state;
  struct clip c = scene_read(scene_text("xyzw.csv", scene_csv(CLIP_ORDER_XYZW, "\n")), &AT_30);
  scene_rows_equal(&c, 0);
  // the other order says so in its sidecar, or on the command line
  const char *wxyz = scene_text("wxyz.csv", scene_csv(CLIP_ORDER_WXYZ, "\n"));
  scene_text("wxyz.yaml", "fps: 30\nquaternion: wxyz\n");
  c = scene_read(wxyz, NULL);
  scene_rows_equal(&c, 0);
  struct clip_options opt = AT_30;
  opt.order = CLIP_ORDER_WXYZ;
  c = scene_read(scene_text("wxyz2.csv", scene_csv(CLIP_ORDER_WXYZ, "\n")), &opt);
  scene_rows_equal(&c, 0);
}

// Only Unitree's layout fixes an order; other robots' files must say theirs.
static void undeclared_order_is_refused(void **state) {
  (void)state;
  struct robot zoo;
  struct err e = {0};
  struct clip c;
  if (robot_load(&zoo, &scene.arena, "tests/robots/zoo.xml", false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  const char *path = scene_text("zoo.csv", "1,2,3\n");
  assert_int_equal(clip_read(&c, &scene.arena, &zoo, path, &AT_30, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "order of the quaternions unknown"));
}

static void reads_crlf_gzip_comments_and_marks(void **state) {
  (void)state;
  char *crlf = scene_csv(CLIP_ORDER_XYZW, "\r\n");
  struct clip c = scene_read(scene_text("crlf.csv", crlf), &AT_30);
  scene_rows_equal(&c, 0);
  // gzip is known by its content, not its name
  struct err e = {0};
  const char *gz = scene_path("packed.csv");
  assert_int_equal(file_write_gz(gz, crlf, strlen(crlf), &e), 0);
  c = scene_read(gz, &AT_30);
  scene_rows_equal(&c, 0);
  char *text = ARENA_NEW(&scene.arena, char, strlen(crlf) + 64);
  sprintf(text, "\xEF\xBB\xBF# from nowhere\n\n%s\n\n", crlf);
  c = scene_read(scene_text("marked.csv", text), &AT_30);
  scene_rows_equal(&c, 0);
}

// Columns in an order of their own, named by a header line or by the sidecar.
static void maps_columns_by_name(void **state) {
  (void)state;
  const struct robot *r = &scene.robot;
  char *text = ARENA_NEW(&scene.arena, char, SCENE_FRAMES *SCENE_NQ * 26 + 4096), *at = text;
  at += sprintf(at, "qw,qx,qy,qz,Root_X,y,z");
  for (int i = r->nlink - 1; i > 0; i--) {
    at += sprintf(at, ", %s", r->link[i].joint_name);
  }
  char *body = at;
  at += sprintf(at, "\n");
  char joints[2048] = "fps: 30\njoints:\n";
  for (int i = r->nlink - 1; i > 0; i--) {
    // the ending "_joint" may be left out
    int n = (int)strlen(r->link[i].joint_name) - (i % 2 ? 6 : 0);
    sprintf(joints + strlen(joints), "- %.*s\n", n, r->link[i].joint_name);
  }
  for (int k = 0; k < SCENE_FRAMES; k++) {
    const double *q = scene.rows[k];
    at += sprintf(at, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", q[3], q[4], q[5], q[6], q[0],
                  q[1], q[2]);
    for (int i = r->nlink - 1; i > 0; i--) {
      at += sprintf(at, ",%.17g", q[r->link[i].qadr]);
    }
    at += sprintf(at, "\n");
  }
  struct clip c = scene_read(scene_text("header.csv", text), &AT_30);
  scene_rows_equal(&c, 0);

  // without the header: root first, then the joints as the sidecar lists them
  char *plain = ARENA_NEW(&scene.arena, char, strlen(text)), *to = plain;
  at = body + 1;
  for (int k = 0; k < SCENE_FRAMES; k++) {
    const double *q = scene.rows[k];
    to += sprintf(to, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", q[0], q[1], q[2], q[4], q[5],
                  q[6], q[3]);
    for (int i = r->nlink - 1; i > 0; i--) {
      to += sprintf(to, ",%.17g", q[r->link[i].qadr]);
    }
    to += sprintf(to, "\n");
  }
  const char *path = scene_text("wrong_order.csv", plain);
  scene_text("wrong_order.yaml", joints);
  c = scene_read(path, NULL);
  scene_rows_equal(&c, 0);

  // a name too many and a name too few: both are listed
  char *name = strstr(joints, "right_knee_joint");
  name = name ? name : strstr(joints, "right_knee");
  memcpy(name, "right_gnee", 10);
  scene_text("wrong_order.yaml", joints);
  scene_refuses(path, NULL, "wrong_order.yaml:3", "missing: right_knee_joint", "right_gnee", NULL);
  memcpy(name, " left_knee", 10);
  scene_text("wrong_order.yaml", joints);
  scene_refuses(path, NULL, "wrong_order.yaml:3", "column 'left_knee", "named twice", NULL);
}

static void names_the_place_of_bad_text(void **state) {
  (void)state;
  char *text = scene_csv(CLIP_ORDER_XYZW, "\n"), *line = text;
  for (int k = 1; k < 7; k++) {
    line = strchr(line, '\n') + 1;
  }
  char *last = strchr(line, '\n');
  while (*last != ',') {
    last--;
  }
  // line 7 without its last column
  char *ragged = arena_strdup(&scene.arena, text);
  memmove(ragged + (last - text), strchr(line, '\n'), strlen(strchr(line, '\n')) + 1);
  scene_refuses(scene_text("ragged.csv", ragged), &AT_30, "ragged.csv:7: 35 columns, 36 expected",
                NULL);
  // and with a word in that column
  static const char *const word[] = {"nan", "-inf", "0x1", "1e999", "", "1.0.0"};
  char *spoilt = ARENA_NEW(&scene.arena, char, strlen(text) + 16), place[96];
  snprintf(place, sizeof place, "word.csv:7:%d: column 36 (right_wrist_yaw_joint)",
           (int)(last + 1 - line) + 1);
  for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
    sprintf(spoilt, "%.*s%s%s", (int)(last + 1 - text), text, word[i], strchr(last, '\n'));
    scene_refuses(scene_text("word.csv", spoilt), &AT_30, place, NULL);
  }
  scene_refuses(scene_text("empty.csv", ""), &AT_30, "empty.csv: the file holds no frames", NULL);
  scene_refuses(scene_text("comment.csv", "# nothing\r\n"), &AT_30, "holds no frames", NULL);
  scene_refuses(scene_text("few.csv", "1,2,3\n"), &AT_30, "few.csv:1: 3 columns",
                "36 (7 of the root", NULL);
  scene_refuses(scene_path("absent.csv"), &AT_30, "absent.csv", NULL);
}

static void sidecar_says_what_the_file_does_not(void **state) {
  (void)state;
  const char *path = scene_text("s.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  scene_refuses(path, NULL, "frames per second unknown", "--fps", "s.yaml", NULL);
  scene_text("s.yaml", "fps: 25\nrows: [3, 12]\ndz: 0.25\nloop: true\nallow_jumps: true\n"
                       "credit: 'it''s mine'\n");
  struct clip c = scene_read(path, NULL);
  assert_int_equal(c.nframe, 10);
  assert_int_equal(c.row_first, 3);
  assert_true(c.fps == 25 && c.loop && c.allow_jumps);
  assert_string_equal(c.credit, "it's mine");
  assert_true(c.qpos[0] == scene.rows[3][0] && c.qpos[2] == scene.rows[3][2] + 0.25);
  // what is given by hand wins, each by itself
  struct clip_options opt = clip_options_default();
  opt.fps = 50;
  opt.dz = 0;
  c = scene_read(path, &opt);
  assert_true(c.fps == 50 && c.nframe == 10 && c.qpos[2] == scene.rows[3][2]);
  opt.row_first = 4;
  opt.row_last = 29;
  c = scene_read(path, &opt);
  assert_true(c.nframe == 26 && c.qpos[0] == scene.rows[4][0]);
  opt.row_last = 30;
  scene_refuses(path, &opt, "rows 4..30", "30 frames (0..29)", NULL);
}

static void sidecar_mistakes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *part, *more;
  } wrong[] = {
      {"fsp: 30\n", "s.yaml:1:1: unknown key 'fsp'", "did you mean 'fps'?"},
      {"fps: 30\nfps: 30\n", "s.yaml:2:1:", "twice"},
      {"fps: 30 Hz\n", "s.yaml:1:6: fps: a number expected, found '30 Hz'", ""},
      {"fps: '30'\n", "s.yaml:1:6:", "quotes"},
      {"fps: -1\n", "s.yaml:1:6:", "above 0"},
      {"fps:\n", "s.yaml:1:", "no value"},
      {"quaternion: wzyx\n", "s.yaml:1:13: quaternion: xyzw or wxyz expected", ""},
      {"rows: [5, 2]\n", "s.yaml:1:7: rows: 0 <= first <= last", ""},
      {"rows: 1:5\n", "s.yaml:1:7: rows: [first, last]", ""},
      {"loop: yes\n", "s.yaml:1:7: loop: true or false", ""},
      {"joints: left_knee\n", "s.yaml:1:9: joints: a list", ""},
      {"- fps\n", "s.yaml:1:1: 'key: value' lines expected", ""},
      {"fps: &a 30\n", "s.yaml:1:6: anchors", ""},
      {"fps: [30\n", "s.yaml:", ""},
      {"fps: 30\n---\nfps: 30\n", "s.yaml:2:1: a second document", ""},
      {"clips: {run: {file: x}}\n", "lists clips", "dsim motion import"},
  };
  const char *path = scene_text("s.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    scene_text("s.yaml", wrong[i].text);
    scene_refuses(path, &AT_30, wrong[i].part, wrong[i].more, NULL);
  }
  char deep[512] = "fps: ";
  memset(deep + 5, '[', 200);
  scene_text("s.yaml", deep);
  scene_refuses(path, &AT_30, "nested too deep", NULL);
}

static void writing_and_reading_give_the_same_clip(void **state) {
  (void)state;
  struct err e = {0};
  struct clip c = scene_clip();
  c.allow_jumps = true;
  clip_clean(&c, &scene.robot);
  const char *path = scene_path("out.csv.gz");
  assert_int_equal(clip_write(&c, &scene.robot, path, "it's\nmine: yes", &e), 0);
  struct clip back = scene_read(path, NULL);
  scene_rows_equal(&back, 5e-9); // nine digits of numbers below 3
  assert_true(back.fps == 30 && back.allow_jumps && !back.loop);
  assert_string_equal(back.credit, "it's mine: yes");
  // the same clip gives the same bytes, whenever
  char first[65], second[65];
  assert_int_equal(file_sha256(path, first, &e), 0);
  assert_int_equal(clip_write(&back, &scene.robot, path, "", &e), 0);
  assert_int_equal(file_sha256(path, second, &e), 0);
  assert_string_equal(first, second);
}

// ---- building

static struct motion build(const struct clip *c, double dt) {
  struct motion m;
  struct err e = {0};
  if (motion_build(&m, &scene.arena, &scene.robot, c, "test", dt, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return m;
}

static struct clip still_clip(int nframe, double fps) { // every frame the first of the scene
  struct clip c = {.nframe = nframe, .nq = SCENE_NQ, .fps = fps, .credit = ""};
  c.qpos = ARENA_NEW(&scene.arena, double, nframe *SCENE_NQ);
  for (int k = 0; k < nframe; k++) {
    memcpy(c.qpos + k * SCENE_NQ, scene.rows[0], sizeof scene.rows[0]);
  }
  return c;
}

// The paper's windows: 450 frames at 30 per second are 14.9667 s, 748 steps of 20 ms.
static void counts_control_steps(void **state) {
  (void)state;
  static const struct {
    int nframe;
    double fps, dt;
    int expected;
  } cases[] = {{450, 30, 0.02, 749}, {31, 30, 0.02, 51},   {2, 30, 0.02, 2}, {101, 100, 0.01, 101},
               {7, 60, 0.02, 6},     {900, 60, 0.02, 750}, {3, 50, 0.02, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct clip c = still_clip(cases[i].nframe, cases[i].fps);
    assert_int_equal(build(&c, cases[i].dt).nframe, cases[i].expected);
  }
  struct clip one = still_clip(1, 30);
  struct motion m;
  struct err e = {0};
  assert_int_equal(motion_build(&m, &scene.arena, &scene.robot, &one, "one", 0.02, &e), EXIT_USAGE);
}

// A joint on a sine. When control steps fall on frames, central differences of a sine are
// A cos(w t) sin(w dt) / dt exactly; between frames positions are the chord's.
static void resamples_a_sine(void **state) {
  (void)state;
  int knee = scene.robot.link[robot_find_joint(&scene.robot, "left_knee_joint")].qadr,
      dof = knee - 1;
  const double A = 0.4, w = 2 * M_PI * 1.5, dt = 0.02;
  struct clip c = still_clip(201, 100);
  for (int k = 0; k < c.nframe; k++) {
    c.qpos[k * SCENE_NQ + knee] = 0.5 + A * sin(w * k / c.fps);
  }
  struct motion m = build(&c, dt);
  assert_int_equal(m.nframe, 101);
  for (int k = 0; k < m.nframe; k++) {
    double t = k * dt, v = m.qvel[k * m.nv + dof];
    assert_true(m.qpos[k * m.nq + knee] == c.qpos[2 * k * SCENE_NQ + knee]);
    double expected = A * cos(w * t) * sin(w * dt) / dt;
    if (k == 0) {
      expected = A * sin(w * dt) / dt;
    } else if (k == m.nframe - 1) {
      expected = A * (sin(w * t) - sin(w * (t - dt))) / dt;
    }
    assert_float_equal(v, expected, 1e-11);
  }
  c.fps = 30;
  c.nframe = 31;
  m = build(&c, dt);
  for (int k = 0; k < m.nframe; k++) {
    double at = k * dt * 30;
    int i = (int)fmin(floor(at + 1e-9), 29);
    double a = c.qpos[i * SCENE_NQ + knee], b = c.qpos[(i + 1) * SCENE_NQ + knee];
    assert_float_equal(m.qpos[k * m.nq + knee], a + (b - a) * (at - i), 1e-12);
  }
  // the last step falls on the last frame
  assert_true(m.qpos[50 * m.nq + knee] == c.qpos[30 * SCENE_NQ + knee]);
}

// A body that turns at a constant rate about an axis of its own keeps that rate, in body axes, at
// every step, between frames and at the ends; its translation stays in world axes.
static void turns_at_a_constant_rate(void **state) {
  (void)state;
  const double w[3] = {0.7, -1.9, 2.4}, rate = sqrt(0.7 * 0.7 + 1.9 * 1.9 + 2.4 * 2.4);
  const double v[3] = {1.0, -0.5, 0.25};
  struct clip c = still_clip(40, 30);
  double q0[4] = {0.5, -0.5, 0.5, 0.5};
  for (int k = 0; k < c.nframe; k++) {
    double t = k / c.fps, h = rate * t / 2, *row = c.qpos + k * SCENE_NQ;
    double b[4] = {cos(h), sin(h) * w[0] / rate, sin(h) * w[1] / rate, sin(h) * w[2] / rate};
    double *q = row + 3;
    q[0] = q0[0] * b[0] - q0[1] * b[1] - q0[2] * b[2] - q0[3] * b[3];
    q[1] = q0[0] * b[1] + q0[1] * b[0] + q0[2] * b[3] - q0[3] * b[2];
    q[2] = q0[0] * b[2] - q0[1] * b[3] + q0[2] * b[0] + q0[3] * b[1];
    q[3] = q0[0] * b[3] + q0[1] * b[2] - q0[2] * b[1] + q0[3] * b[0];
    // either of the two quaternions of a rotation may stand in a file
    for (int j = 0; j < 4 && k % 3 == 0; j++) {
      q[j] = -q[j];
    }
    for (int j = 0; j < 3; j++) {
      row[j] = 7 + v[j] * t;
    }
  }
  struct motion m = build(&c, 0.02);
  assert_int_equal(m.nframe, 66);
  for (int k = 0; k < m.nframe; k++) {
    const double *q = m.qpos + k * m.nq, *qd = m.qvel + k * m.nv;
    double norm = 0, dot = 0;
    for (int j = 0; j < 4; j++) {
      norm += q[3 + j] * q[3 + j];
      dot += k > 0 ? q[3 + j] * q[3 + j - m.nq] : 1;
    }
    assert_float_equal(norm, 1, 1e-14);
    assert_true(dot > 0.99);
    for (int j = 0; j < 3; j++) {
      assert_float_equal(qd[j], v[j], 1e-11);
      assert_float_equal(qd[3 + j], w[j], 1e-9);
    }
  }
  // starts at x = y = 0, keeps its height
  assert_true(m.qpos[0] == 0 && m.qpos[1] == 0 && m.qpos[2] == c.qpos[2]);
  assert_float_equal(m.qpos[65 * m.nq], 1.3, 1e-12);
}

// At 90 degrees of yaw, turning about the world's x axis at 2 rad/s is (0, -2, 0) in body axes.
static void turning_speed_is_in_body_axes(void **state) {
  (void)state;
  struct clip c = still_clip(11, 50);
  for (int k = 0; k < c.nframe; k++) {
    double h = 2.0 * k / 50 / 2, s = sqrt(0.5), *q = c.qpos + k * SCENE_NQ + 3;
    // (rotation by 2h about world x) times (90 degrees about z)
    q[0] = cos(h) * s;
    q[1] = sin(h) * s;
    q[2] = -sin(h) * s;
    q[3] = cos(h) * s;
  }
  struct motion m = build(&c, 0.02);
  for (int k = 0; k < m.nframe; k++) {
    assert_float_equal(m.qvel[k * m.nv + 3], 0, 1e-12);
    assert_float_equal(m.qvel[k * m.nv + 4], -2, 1e-12);
    assert_float_equal(m.qvel[k * m.nv + 5], 0, 1e-12);
  }
}

static void poses_all_bodies(void **state) {
  (void)state;
  struct clip c = scene_clip();
  struct motion m = build(&c, 0.02);
  const struct robot *r = &scene.robot;
  double *xpos = ARENA_NEW(&scene.arena, double, 3 * r->nbody);
  double *xmat = ARENA_NEW(&scene.arena, double, 9 * r->nbody);
  for (int k = 0; k < m.nframe; k += 7) {
    robot_fk(r, m.qpos + k * m.nq, xpos, xmat);
    assert_memory_equal(xpos, m.xpos + (size_t)k * (size_t)r->nbody * 3,
                        sizeof *xpos * 3 * (size_t)r->nbody);
    assert_memory_equal(xmat, m.xmat + (size_t)k * (size_t)r->nbody * 9,
                        sizeof *xmat * 9 * (size_t)r->nbody);
  }
  struct feet feet;
  feet_find(&feet, r);
  assert_int_equal(feet.n, 2);
  assert_float_equal(feet_height(r, &feet, m.xpos, m.xmat), 0, 1e-9);
}

// A robot without a free root: columns are its joints, nothing is shifted, and dz has no meaning.
static void robots_without_a_free_root(void **state) {
  (void)state;
  struct arena *a = &scene.arena;
  struct robot hopper;
  struct err e = {0};
  if (robot_load(&hopper, a, "robots/hopper.xml", false, &e) != 0) {
    fail_msg("%s", e.text);
  }
  char text[4096] = "";
  for (int k = 0; k < 11; k++) {
    for (int i = 0; i < hopper.nq; i++) {
      sprintf(text + strlen(text), "%g%s", i == 0 ? 0.5 + 0.01 * k : 0.1 * i,
              i + 1 < hopper.nq ? "," : "\n");
    }
  }
  const char *path = scene_text("hopper.csv", text);
  struct clip c;
  struct clip_options opt = AT_30;
  opt.fps = 50;
  if (clip_read(&c, a, &hopper, path, &opt, &e) != 0) {
    fail_msg("%s", e.text);
  }
  struct lint l;
  lint_clip(&l, &hopper, &c);
  assert_int_equal(l.nerror, 0);
  struct motion m;
  assert_int_equal(motion_build(&m, a, &hopper, &c, "hop", 0.02, &e), 0);
  assert_int_equal(m.nframe, 11);
  for (int k = 0; k < 11; k++) {
    assert_float_equal(m.qpos[k * m.nq], 0.5 + 0.01 * k, 1e-12);
    assert_float_equal(m.qvel[k * m.nv], 0.5, 1e-12);
    assert_float_equal(m.qvel[k * m.nv + 3], 0, 1e-12);
  }
  opt.dz = 0.1;
  assert_int_equal(clip_read(&c, a, &hopper, path, &opt, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no free root"));
}

// ---- finding

static void loads_clips_sidecars_and_nothing_else(void **state) {
  (void)state;
  struct err e = {0};
  struct motion m;
  struct arena *a = &scene.arena;
  const struct robot *r = &scene.robot;
  const char *clip = scene_text("stroll.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  const char *sidecar = scene_text("stroll.yaml", "fps: 30\n");
  assert_int_equal(motion_load(&m, a, r, clip, 0.02, &e), 0);
  assert_string_equal(m.name, "stroll");
  char hex[65];
  assert_int_equal(file_sha256(clip, hex, &e), 0);
  assert_string_equal(m.sha256, hex);
  assert_int_equal(m.nframe, 49);
  assert_int_equal(motion_load(&m, a, r, sidecar, 0.02, &e), 0);
  assert_int_equal(m.nframe, 49);
  // a window of the same file, under a name of its own
  const char *window = scene_text("part.yaml", "file: stroll.csv\nfps: 30\nrows: [0, 15]\n");
  assert_int_equal(motion_load(&m, a, r, window, 0.02, &e), 0);
  assert_string_equal(m.name, "part");
  assert_int_equal(m.nframe, 26);
  // nothing stands in for a motion that is not there
  assert_int_equal(motion_load(&m, a, r, "wolk", 0.02, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no motion 'wolk'"));
  e = (struct err){0};
  const char *gone = scene_text("gone.yaml", "fps: 30\n");
  assert_int_equal(motion_load(&m, a, r, gone, 0.02, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no clip beside it"));
  e = (struct err){0};
  const char *away = scene_text("away.yaml", "fps: 30\nfile: absent.csv\n");
  assert_int_equal(motion_load(&m, a, r, away, 0.02, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "absent.csv"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(reads_either_quaternion_order, scene_reset),
      cmocka_unit_test_setup(undeclared_order_is_refused, scene_reset),
      cmocka_unit_test_setup(reads_crlf_gzip_comments_and_marks, scene_reset),
      cmocka_unit_test_setup(maps_columns_by_name, scene_reset),
      cmocka_unit_test_setup(names_the_place_of_bad_text, scene_reset),
      cmocka_unit_test_setup(sidecar_says_what_the_file_does_not, scene_reset),
      cmocka_unit_test_setup(sidecar_mistakes_are_named, scene_reset),
      cmocka_unit_test_setup(writing_and_reading_give_the_same_clip, scene_reset),
      cmocka_unit_test_setup(counts_control_steps, scene_reset),
      cmocka_unit_test_setup(resamples_a_sine, scene_reset),
      cmocka_unit_test_setup(turns_at_a_constant_rate, scene_reset),
      cmocka_unit_test_setup(turning_speed_is_in_body_axes, scene_reset),
      cmocka_unit_test_setup(poses_all_bodies, scene_reset),
      cmocka_unit_test_setup(robots_without_a_free_root, scene_reset),
      cmocka_unit_test_setup(loads_clips_sidecars_and_nothing_else, scene_reset),
  };
  return cmocka_run_group_tests(tests, scene_open, scene_close);
}
