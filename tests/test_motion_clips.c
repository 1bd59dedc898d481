// Motions of several clips: lists and folders, frames side by side, and a task that never looks
// past the clip it is in.
#include "motion_scene.h"
#include "base/rng.h"
#include "learn/world.h"
#include "task/episode.h"
#include <math.h>
#include <sys/stat.h>

enum { SHORT = 16, LONG = SCENE_FRAMES }; // rows of the two clips at 30 per second

static struct motion load(const char *path) {
  struct motion m;
  struct err e = {0};
  if (motion_load(&m, &scene.arena, &scene.robot, path, 0.02, &e) != 0) {
    fail_msg("%s", e.text);
  }
  return m;
}

static void refuses(const char *path, const char *one, const char *two) {
  struct motion m;
  struct err e = {0};
  assert_int_equal(motion_load(&m, &scene.arena, &scene.robot, path, 0.02, &e), EXIT_USAGE);
  if (strstr(e.text, one) == NULL || strstr(e.text, two) == NULL) {
    fail_msg("'%s' or '%s' is not in: %s", one, two, e.text);
  }
}

// "long" (all rows) and "short" (some, turned about and elsewhere) in a folder of their own
static const char *two_clips(void) {
  const char *folder = scene_path("two");
  mkdir(folder, 0777);
  scene_text("two/long.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  scene_text("two/long.yaml", "fps: 30\n");
  for (int k = 0; k < SCENE_FRAMES; k++) {
    double x = scene.rows[k][0], *q = scene.rows[k];
    q[0] = 7 - scene.rows[k][1];
    q[1] = x;
    double w = q[3], z = q[6];
    q[3] = (w - z) * sqrt(0.5); // a quarter turn about the vertical
    q[6] = (z + w) * sqrt(0.5);
  }
  scene_text("two/short.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  char sidecar[64];
  snprintf(sidecar, sizeof sidecar, "fps: 30\nrows: [4, %d]\n", 4 + SHORT - 1);
  scene_text("two/short.yaml", sidecar);
  return folder;
}

static const char *join(const char *a, const char *b) {
  char *text = ARENA_NEW(&scene.arena, char, strlen(a) + strlen(b) + 1);
  return strcat(strcpy(text, a), b);
}

static void frames_lie_side_by_side(void **state) {
  (void)state;
  const char *folder = two_clips();
  struct motion one = load(scene_path("two/long.csv")), two = load(scene_path("two/short.csv"));
  struct motion m = load(folder);
  assert_int_equal(m.nclip, 2);
  assert_string_equal(m.name, "two");
  assert_string_equal(m.clip[0].name, "long");
  assert_string_equal(m.clip[1].name, "short");
  assert_int_equal(m.clip[1].first, one.nframe);
  assert_int_equal(m.nframe, one.nframe + two.nframe);
  assert_int_equal(two.nframe, 26); // (16 - 1) / 30 s at 50 Hz, and the first
  size_t q = sizeof(double) * (size_t)m.nq, v = sizeof(double) * (size_t)m.nv;
  size_t x = sizeof(double) * 3 * (size_t)scene.robot.nbody;
  const struct motion *part[2] = {&one, &two};
  for (int k = 0; k < 2; k++) {
    size_t first = (size_t)m.clip[k].first, n = (size_t)part[k]->nframe;
    assert_memory_equal(m.qpos + first * (size_t)m.nq, part[k]->qpos, n * q);
    assert_memory_equal(m.qvel + first * (size_t)m.nv, part[k]->qvel, n * v);
    assert_memory_equal(m.xpos + first * 3 * (size_t)scene.robot.nbody, part[k]->xpos, n * x);
    assert_string_equal(m.clip[k].sha256, part[k]->sha256);
    for (size_t i = first; i < first + n; i++) {
      assert_int_equal(motion_last(&m, (int)i), first + n - 1);
      assert_int_equal(motion_clip_of(&m, (int)i), k);
    }
  }
  assert_int_equal(motion_last(&m, m.nframe + 5), m.nframe - 1);
  // a list has the order it is written in, spaces or not, and folders and names among its parts
  m = load(join(join(scene_path("two/short.csv"), " , "), scene_path("two/long.csv")));
  assert_string_equal(m.name, "short,long");
  assert_string_equal(m.clip[0].sha256, two.sha256);
  m = load(join(folder, "/,walk"));
  assert_int_equal(m.nclip, 3);
  assert_string_equal(m.clip[2].name, "walk");
  // a folder with one clip is that clip
  mkdir(scene_path("single"), 0777);
  scene_text("single/alone.csv", scene_csv(CLIP_ORDER_XYZW, "\n"));
  scene_text("single/alone.yaml", "fps: 30\n");
  m = load(scene_path("single"));
  assert_int_equal(m.nclip, 1);
  assert_string_equal(m.name, "alone");
  assert_string_equal(m.sha256, m.clip[0].sha256);
}

static void mistakes_name_the_file(void **state) {
  (void)state;
  const char *folder = two_clips();
  mkdir(scene_path("empty"), 0777);
  scene_text("empty/notes.txt", "x");
  refuses(scene_path("empty"), "no clips in the folder", "/empty'");
  refuses(join(folder, ",,walk"), "nothing between two commas", folder);
  refuses(join(folder, ",wolk"), "no motion 'wolk'", "did you mean 'walk'");
  refuses(join(join(folder, ","), scene_path("two/long.csv")), "two clips have the name 'long'",
          "two/long.csv' and");
  // a member for another robot, one that is no text, one that cannot be tracked
  scene_text("two/other.csv", "0,0,1,0,0,0,1,0.1\n0,0,1,0,0,0,1,0.1\n");
  scene_text("two/other.yaml", "fps: 30\n");
  refuses(folder, "two/other.csv:1: 8 columns", "36 (7 of the root");
  scene_text("two/other.csv", "hello world\n");
  refuses(folder, "two/other.csv:1", "");
  remove(scene_path("two/other.csv"));
  mkdir(scene_path("two/other.csv"), 0777);
  refuses(folder, "other.csv", "");
  rmdir(scene_path("two/other.csv"));
  scene_text("two/short.yaml", "fps: 30\nrows: [4, 4]\n");
  refuses(folder, "two/short.csv", "");
}

// ---- the task

static void open_world(struct world *w, struct spec *s, const char *motion) {
  struct err e = {0};
  s->motion = motion;
  s->threads = 1;
  if (world_open(w, &scene.arena, s, &e) != 0) {
    fail_msg("%s", e.text);
  }
}

// Observation, residual and reward of states at both ends of a clip.
static void look(double *obs, double *residual, double *reward, const struct world *w,
                 const struct motion_clip *clip) {
  const struct track *t = &w->track;
  int W = w->sim->width, frame[SIM_WIDTH], begins[SIM_WIDTH] = {0}, first = clip->first,
      n = clip->nframe;
  struct track_work *tw = track_work_new(&scene.arena, t, W);
  struct sim_work *sw = sim_work_new(&scene.arena, w->model, W);
  double *q = ARENA_NEW(&scene.arena, double, w->robot.nq *W);
  double *v = ARENA_NEW(&scene.arena, double, w->robot.nv *W);
  double *action = ARENA_NEW(&scene.arena, double, w->robot.nu *W);
  for (int l = 0; l < W; l++) {
    frame[l] = first + (l < 4 ? l : n - 1 - (l - 4));
    double one[64];
    memcpy(one, w->motion.qpos + frame[l] * w->robot.nq, sizeof(double) * (size_t)w->robot.nq);
    one[2] += 0.01;
    for (int i = 0; i < w->robot.nq; i++) {
      q[i * W + l] = one[i];
    }
  }
  w->task->obs_fwd(t, tw, sw, obs, q, v, frame);
  w->task->residual_fwd(t, tw, sw, residual, q, v, frame);
  w->task->reward_fwd(t, tw, sw, reward, NULL, q, v, action, action, frame, begins);
}

// the same numbers as with each clip alone, also at the ends, where an observation looks ahead
static void task_stays_inside_a_clip(void **state) {
  (void)state;
  const char *folder = two_clips();
  for (int k = 0; k < 2; k++) {
    struct spec both, alone;
    struct world wb, wa;
    spec_default(&both);
    both.observation = k ? OBSERVATION_PAPER : OBSERVATION_COMPACT;
    both.reward = REWARD_ADD;
    alone = both;
    // first the long clip: its end has the short one behind it
    open_world(&wb, &both, folder);
    open_world(&wa, &alone, scene_path(k ? "two/short.csv" : "two/long.csv"));
    int W = wb.sim->width, nobs = wb.track.nobs * W, nres = wb.track.nres * W;
    double *x = ARENA_NEW(&scene.arena, double, 2 * (nobs + nres + W));
    double *y = x + nobs + nres + W;
    look(x, x + nobs, x + nobs + nres, &wb, &wb.motion.clip[k]);
    look(y, y + nobs, y + nobs + nres, &wa, wa.motion.clip);
    assert_memory_equal(x, y, sizeof(double) * (size_t)(nobs + nres + W));
  }
}

static void resets_draw_clips_by_duration(void **state) {
  (void)state;
  struct spec s;
  struct world w;
  spec_default(&s);
  s.reset_first = 0.25;
  open_world(&w, &s, two_clips());
  const struct motion *m = &w.motion;
  int n = 8000, count[2] = {0}, at_first[2] = {0};
  for (int i = 0; i < n; i++) {
    double q[64], v[64];
    int f = -1, again = -1;
    track_reset(&w.track, q, v, &f, (uint32_t)(i % 64), (uint32_t)(i / 64));
    track_reset(&w.track, q, v, &again, (uint32_t)(i % 64), (uint32_t)(i / 64));
    assert_int_equal(f, again);
    assert_memory_equal(q, m->qpos + f * m->nq, sizeof(double) * (size_t)m->nq);
    assert_in_range(f, 0, motion_last(m, f) - 2);
    int k = motion_clip_of(m, f);
    count[k]++;
    at_first[k] += f == m->clip[k].first;
    assert_int_equal(track_end(&w.track, q, v, f), TRACK_RUNS);
  }
  int a = m->clip[0].nframe - 2, b = m->clip[1].nframe - 2;
  for (int k = 0; k < 2; k++) { // 5 sigma
    double share = (k ? b : a) / (double)(a + b), start = 0.25 + 0.75 / (k ? b : a);
    assert_float_equal(count[k], n * share, 5 * sqrt(n * share * (1 - share)));
    assert_float_equal(at_first[k], count[k] * start, 5 * sqrt(count[k] * start * (1 - start)));
  }
}

static void episodes_end_with_their_clip(void **state) {
  (void)state;
  struct spec s;
  struct world w;
  struct episode ep;
  spec_default(&s);
  open_world(&w, &s, two_clips());
  const struct motion *m = &w.motion;
  struct feet feet;
  feet_find(&feet, &w.robot);
  for (int k = 0; k < 2; k++) {
    int first = m->clip[k].first, last = first + m->clip[k].nframe - 1, f = first + 3;
    double q[64], v[64];
    episode_begin(&ep, 0, f);
    episode_start(&ep, q, v, &w.track, 0);
    bool on;
    do {
      memcpy(q, m->qpos + ++f * m->nq, sizeof(double) * (size_t)m->nq);
      memcpy(v, m->qvel + f * m->nv, sizeof(double) * (size_t)m->nv);
      assert_int_equal(track_end(&w.track, q, v, f), f == last ? TRACK_TRUNCATED : TRACK_RUNS);
      on = episode_step(&ep, &w.track, &feet, q, v, f);
    } while (on);
    assert_int_equal(f, last);
    assert_int_equal(ep.nsteps, m->clip[k].nframe - 1 - 3);
    assert_false(ep.fell);
    assert_float_equal(ep.e_track_cm, 0, 1e-9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(frames_lie_side_by_side, scene_reset),
      cmocka_unit_test_setup(mistakes_name_the_file, scene_reset),
      cmocka_unit_test_setup(task_stays_inside_a_clip, scene_reset),
      cmocka_unit_test_setup(resets_draw_clips_by_duration, scene_reset),
      cmocka_unit_test_setup(episodes_end_with_their_clip, scene_reset),
  };
  return cmocka_run_group_tests(tests, scene_open, scene_close);
}
