#include "task/tosses.h"
#include "base/file.h"
#include "base/rng.h"
#include "out/csv.h"
#include "sim/rotation.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// ---- reading

// the files' order of a frame -> qpos, qvel
static void sort_frame(double state[TOSS_STATE], const double raw[TOSS_STATE]) {
  memcpy(state, raw + 4, sizeof(double[3]));
  memcpy(state + 3, raw, sizeof(double[4]));
  memcpy(state + 7, raw + 10, sizeof(double[3]));
  memcpy(state + 10, raw + 7, sizeof(double[3]));
  double norm = sqrt(raw[0] * raw[0] + raw[1] * raw[1] + raw[2] * raw[2] + raw[3] * raw[3]);
  for (int i = 3; i < 7; i++) {
    state[i] /= norm;
  }
}

static bool frame_is_sound(const double raw[TOSS_STATE]) {
  double norm = 0;
  for (int i = 0; i < TOSS_STATE; i++) {
    if (!isfinite(raw[i]) || fabs(raw[i]) > 1e3) {
      return false;
    }
    norm += i < 4 ? raw[i] * raw[i] : 0;
  }
  return norm > 0.9 && norm < 1.1;
}

static int read_table(struct tosses *t, struct arena *a, const char *path, struct err *e) {
  static const char *const names[TOSS_STATE] = {"qw", "qx", "qy", "qz", "x",  "y", "z",
                                                "wx", "wy", "wz", "vx", "vy", "vz"};
  struct csv_table table;
  double *column[TOSS_STATE], *toss;
  if (csv_read(&table, a, path, e) || csv_reals(&toss, a, &table, "toss", e)) {
    return e->code;
  }
  for (int k = 0; k < TOSS_STATE; k++) {
    if (csv_reals(&column[k], a, &table, names[k], e)) {
      return e->code;
    }
  }
  t->toss = ARENA_NEW(a, struct toss, table.nrow + 1);
  double(*state)[TOSS_STATE] = arena_alloc(a, sizeof *state * (size_t)(table.nrow + 1));
  for (int i = 0; i < table.nrow; i++) {
    double raw[TOSS_STATE];
    for (int k = 0; k < TOSS_STATE; k++) {
      raw[k] = column[k][i];
    }
    if (!frame_is_sound(raw)) {
      return err_set(e, EXIT_USAGE, "%s:%d: expected a unit quaternion and 9 numbers below 1000",
                     path, i + 2);
    }
    if (i == 0 || toss[i] != toss[i - 1]) {
      t->toss[t->n++] = (struct toss){.state = state + i};
    }
    sort_frame(state[i], raw);
    t->toss[t->n - 1].frames++;
  }
  return 0;
}

static unsigned little(const unsigned char *p, int bytes) {
  unsigned x = 0;
  for (int i = bytes - 1; i >= 0; i--) {
    x = x << 8 | p[i];
  }
  return x;
}

// The member NAME/data/0 of an uncompressed zip archive, by its central directory.
static const char *find_tensor(const char *data, size_t size, size_t *bytes) {
  const unsigned char *p = (const unsigned char *)data;
  size_t end = size < 22 ? 0 : size - 22;
  while (end > 0 && little(p + end, 4) != 0x06054b50) {
    end--;
  }
  if (size < 22 || little(p + end, 4) != 0x06054b50) {
    return NULL;
  }
  size_t at = little(p + end + 16, 4);
  for (unsigned i = little(p + end + 10, 2); i > 0 && at + 46 <= end; i--) {
    const unsigned char *entry = p + at;
    size_t name = little(entry + 28, 2), local = little(entry + 42, 4);
    size_t next = at + 46 + name + little(entry + 30, 2) + little(entry + 32, 2);
    if (little(entry, 4) != 0x02014b50 || next > size) {
      return NULL;
    }
    static const char wanted[] = "/data/0";
    bool is_it = name >= 7 && memcmp(entry + 46 + name - 7, wanted, 7) == 0;
    if (is_it && little(entry + 10, 2) == 0 && local + 30 <= size) {
      size_t start = local + 30 + little(p + local + 26, 2) + little(p + local + 28, 2);
      *bytes = little(entry + 24, 4);
      return start <= size && *bytes <= size - start ? data + start : NULL;
    }
    at = next;
  }
  return NULL;
}

static int read_tensor(struct toss *t, struct arena *a, const char *path, struct err *e) {
  char *data;
  size_t size, bytes = 0;
  if (file_read(a, path, 1 << 24, &data, &size, e)) {
    return e->code;
  }
  const char *tensor = find_tensor(data, size, &bytes);
  size_t frame = sizeof(double[TOSS_STATE]);
  if (!tensor || bytes % frame != 0 || bytes == 0) {
    return err_set(e, EXIT_USAGE,
                   "%s: expected a tensor file (zip) whose data/0 holds frames of 13 doubles",
                   path);
  }
  t->frames = (int)(bytes / frame);
  t->state = arena_alloc(a, bytes);
  for (int i = 0; i < t->frames; i++) {
    double raw[TOSS_STATE];
    memcpy(raw, tensor + (size_t)i * frame, frame);
    if (!frame_is_sound(raw)) {
      return err_set(e, EXIT_USAGE, "%s: frame %d is no quaternion and 9 numbers", path, i);
    }
    sort_frame(t->state[i], raw);
  }
  return 0;
}

static int is_tensor(const struct dirent *d) {
  size_t n = strlen(d->d_name);
  return n > 3 && strcmp(d->d_name + n - 3, ".pt") == 0;
}

static int read_folder(struct tosses *t, struct arena *a, const char *path, struct err *e) {
  struct dirent **entry;
  int n = scandir(path, &entry, is_tensor, versionsort);
  t->toss = ARENA_NEW(a, struct toss, n > 0 ? n : 1);
  for (int i = 0; i < n; i++) {
    size_t size = strlen(path) + strlen(entry[i]->d_name) + 2;
    char *file = arena_alloc(a, size);
    snprintf(file, size, "%s/%s", path, entry[i]->d_name);
    if (!e->code && read_tensor(&t->toss[t->n], a, file, e) == 0) {
      t->n++;
    }
    free(entry[i]);
  }
  if (n >= 0) {
    free(entry);
  }
  return e->code;
}

int tosses_read(struct tosses *t, struct arena *a, const char *path, struct err *e) {
  struct stat st;
  const char *found = file_find(a, path);
  *t = (struct tosses){0};
  if (!found) {
    return err_set(e, EXIT_USAGE, "there are no tosses '%.300s'", path);
  }
  found = arena_strdup(a, found);
  if (stat(found, &st) == 0 && S_ISDIR(st.st_mode)) {
    read_folder(t, a, found, e);
  } else {
    read_table(t, a, found, e);
  }
  if (!e->code && t->n == 0) {
    err_set(e, EXIT_USAGE, "%s: no toss in it", found);
  }
  return e->code;
}

// ---- pieces

struct freebody_scene cube_scene(void) {
  struct freebody_scene s = freebody_scene_default();
  s.nbody = 1;
  s.body[0] = (struct freebody){.shape = FREEBODY_BOX, .mass = TOSS_CUBE_MASS};
  for (int i = 0; i < 3; i++) {
    s.body[0].size[i] = 0.5 * TOSS_CUBE_SIDE;
    s.body[0].inertia[i] = TOSS_CUBE_MASS * TOSS_CUBE_SIDE * TOSS_CUBE_SIDE / 6;
  }
  s.law = (struct soft_law){.solref = {-300, -36.02}, .solimp = {0.9, 0.95, 0.001, 0.5, 2}};
  s.friction_plane = 0.18;
  s.input = FREEBODY_SIDE;
  return s;
}

// something other than gravity acts between the frames of a piece
static bool touches(const double (*state)[TOSS_STATE], int length) {
  for (int i = 1; i < length; i++) {
    if ((state[i][9] - state[i - 1][9]) * TOSS_RATE + TOSS_GRAVITY > 3) {
      return true;
    }
  }
  return false;
}

void pieces_draw(struct pieces *p, struct arena *a, const struct tosses *t, int first, int last,
                 int n, int length, double contact, uint64_t seed) {
  struct rng r = rng_stream(seed, RNG_SHUFFLE, 0, 0, 0);
  *p = (struct pieces){.n = n, .length = length};
  p->state = arena_alloc(a, sizeof *p->state * (size_t)n);
  for (int i = 0; i < n; i++) {
    bool wanted = rng_uniform(&r) < contact;
    for (int tries = 0; tries < 1000; tries++) {
      const struct toss *toss = &t->toss[first + (int)rng_below(&r, (uint32_t)(last - first))];
      if (toss->frames < length) {
        continue;
      }
      uint32_t room = (uint32_t)(toss->frames - length + 1);
      p->state[i] = (const double(*)[TOSS_STATE])(toss->state + rng_below(&r, room));
      if (!wanted || touches(p->state[i], length)) {
        break;
      }
    }
    BUG_IF(p->state[i] == NULL);
  }
}

// error of a state against a frame, and its cotangent (12, added to)
static double frame_loss(double *bar, const double *y, const double *frame) {
  double turn[3], loss = 0;
  quat_difference(turn, frame + 3, y + 3);
  for (int i = 0; i < 3; i++) {
    double x = (y[i] - frame[i]) / TOSS_CUBE_SIDE;
    loss += x * x + turn[i] * turn[i];
    bar[i] += 2 * x / TOSS_CUBE_SIDE;
    bar[3 + i] += 2 * turn[i]; // the angle's gradient is along the axis
  }
  for (int i = 0; i < 6; i++) {
    double x = y[7 + i] - frame[7 + i];
    loss += 0.01 * x * x;
    bar[6 + i] += 0.02 * x;
  }
  return loss;
}

enum { MAX_LENGTH = 64 };

enum ode_status piece_loss(double *loss, double *grad, int *steps, struct arena *a,
                           const struct piece_fit *f, const double (*state)[TOSS_STATE], int length,
                           double side) {
  BUG_IF(length > MAX_LENGTH);
  struct arena_mark mark = arena_mark(a);
  struct freebody_scene scene = f->scene;
  struct ode_system system = freebody_system(&scene);
  struct ode_work *work = ode_work_new(a, &system);
  struct ode_trail *trail[MAX_LENGTH];
  double y[TOSS_STATE], bar[MAX_LENGTH][12] = {{0}}, u[1] = {side}, u_bar[1] = {0};
  enum ode_status status = ODE_DONE;
  *loss = 0;
  memcpy(y, state[0], sizeof y);
  for (int i = 1; i < length && status == ODE_DONE; i++) {
    trail[i] = ode_trail_new(a, &system, &f->ode);
    status = ode_solve(y, trail[i], work, &system, &f->ode, (i - 1) / TOSS_RATE, i / TOSS_RATE, u);
    *steps += trail[i]->nstep + trail[i]->nrejected;
    *loss += frame_loss(bar[i], y, state[i]);
  }
  double sum[12] = {0};
  for (int i = length - 1; i > 0 && status == ODE_DONE && grad; i--) {
    for (int k = 0; k < 12; k++) {
      sum[k] += bar[i][k];
    }
    ode_adjoint(sum, u_bar, work, &system, &f->ode, trail[i], u, f->gradient);
  }
  if (grad) {
    *grad = u_bar[0];
  }
  arena_reset(a, mark);
  return status;
}

enum ode_status toss_predict(double *position, double *rotation, struct arena *a,
                             const struct piece_fit *f, const struct toss *t, double side) {
  struct arena_mark mark = arena_mark(a);
  struct freebody_scene scene = f->scene;
  struct ode_system system = freebody_system(&scene);
  struct ode_work *work = ode_work_new(a, &system);
  double y[TOSS_STATE], u[1] = {side};
  enum ode_status status = ODE_DONE;
  *position = *rotation = 0;
  memcpy(y, t->state[0], sizeof y);
  for (int i = 1; i < t->frames && status == ODE_DONE; i++) {
    double d[3], turn[3];
    status = ode_solve(y, NULL, work, &system, &f->ode, (i - 1) / TOSS_RATE, i / TOSS_RATE, u);
    for (int k = 0; k < 3; k++) {
      d[k] = y[k] - t->state[i][k];
    }
    quat_difference(turn, t->state[i] + 3, y + 3);
    *position += sqrt(vec3_dot(d, d)) / TOSS_CUBE_SIDE / (t->frames - 1);
    *rotation += sqrt(vec3_dot(turn, turn)) * 180 / M_PI / (t->frames - 1);
  }
  arena_reset(a, mark);
  return status;
}
