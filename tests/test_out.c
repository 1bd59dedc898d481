// Trajectories, stick figures and the exported policy. The ONNX file is decoded and evaluated here,
// node by node, and must give what the network gives.
#include "base/file.h"
#include "learn/onnx.h"
#include "figure/strip.h"
#include "figure/traj.h"
#include <math.h>
#include <mujoco/mujoco.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;
static char folder[] = "/tmp/dsim_test_out_XXXXXX";

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

static const char *in_folder(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return arena_strdup(&arena, path);
}

static void load(struct robot *r, const char *path) {
  struct err e = {0};
  if (robot_load(r, &arena, path, true, &e)) {
    fail_msg("%s", e.text);
  }
}

// ---- trajectories and strips

enum { NFRAME = 9, FAILS_AT = 6 };

// The reference stands turned by 90 degrees about z; the policy stands `ahead` metres before it,
// and has failed from frame FAILS_AT on.
static void put_traj(const char *path, const struct robot *r, double ahead) {
  struct csv c;
  struct err e = {0};
  double *qpos = ARENA_NEW(&arena, double, r->nq), *ref = ARENA_NEW(&arena, double, r->nq);
  double *tmp = ARENA_NEW(&arena, double, 3 * r->nbody);
  assert_int_equal(traj_open(&c, path, r, &e), 0);
  for (int i = 0; i < NFRAME; i++) {
    memcpy(ref, r->qpos0, sizeof *ref * (size_t)r->nq);
    ref[0] = 3;
    ref[1] = 0.05 * i;
    ref[3] = ref[6] = sqrt(0.5);
    memcpy(qpos, ref, sizeof *ref * (size_t)r->nq);
    qpos[1] += ahead;
    qpos[7] = 0.1 * i;
    assert_int_equal(traj_row(&c, r, 0.02 * i, i, i >= FAILS_AT, i, qpos, ref, tmp, &e), 0);
  }
  csv_close(&c);
}

static void trajectories_read_back(void **state) {
  (void)state;
  struct robot r, other;
  struct traj t;
  struct err e = {0};
  load(&r, "robots/g1.xml");
  load(&other, "robots/go2.xml");
  const char *path = in_folder("traj.csv");
  put_traj(path, &r, 0.1);
  assert_int_equal(traj_read(&t, &arena, path, &r, &e), 0);
  assert_int_equal(t.nframe, NFRAME);
  const double *q = t.qpos + 4 * r.nq, *ref = t.ref + 4 * r.nq;
  assert_float_equal(q[1], 0.3, 1e-9);
  assert_float_equal(ref[1], 0.2, 1e-9);
  assert_float_equal(q[6], sqrt(0.5), 1e-9);
  assert_float_equal(q[7], 0.4, 1e-9);
  assert_float_equal(t.time[4], 0.08, 1e-12);
  assert_true(t.failed[FAILS_AT - 1] == 0 && t.failed[FAILS_AT] == 1);

  // body positions in the file are MuJoCo's
  struct csv_table table;
  double *z;
  assert_int_equal(csv_read(&table, &arena, path, &e), 0);
  assert_int_equal(csv_reals(&z, &arena, &table, "left_knee_link_z", &e), 0);
  char why[500] = "";
  mjModel *m = mj_loadXML("robots/g1.xml", NULL, why, sizeof why);
  assert_non_null(m);
  mjData *d = mj_makeData(m);
  mju_copy(d->qpos, q, m->nq);
  mj_kinematics(m, d);
  assert_float_equal(z[4], d->xpos[3 * mj_name2id(m, mjOBJ_BODY, "left_knee_link") + 2], 1e-8);
  mj_deleteData(d);
  mj_deleteModel(m);

  // the trajectory of another robot
  assert_int_equal(traj_read(&t, &arena, path, &other, &e), EXIT_USAGE);
  assert_non_null(strstr(e.text, "no column"));
}

struct drawing {
  int n;
  double *layer, *shape, *row, *x, *z, *dx, *dz, *r;
};

static void read_drawing(struct drawing *d, const char *path) {
  struct csv_table t;
  struct err e = {0};
  static const char *const name[] = {"layer", "shape", "row", "x", "z", "dx", "dz", "r"};
  double **const column[] = {&d->layer, &d->shape, &d->row, &d->x, &d->z, &d->dx, &d->dz, &d->r};
  assert_int_equal(csv_read(&t, &arena, path, &e), 0);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(csv_reals(column[i], &arena, &t, name[i], &e), 0);
  }
  d->n = t.nrow;
}

static void strips_show_the_policy_where_it_is(void **state) {
  (void)state;
  struct robot r;
  struct traj t;
  struct drawing d;
  struct err e = {0};
  load(&r, "robots/g1.xml");
  const char *traj = in_folder("traj.csv"), *path = in_folder("strip.csv");
  put_traj(traj, &r, 0.1);
  assert_int_equal(traj_read(&t, &arena, traj, &r, &e), 0);
  assert_int_equal(strip_write(path, "title", &r, &t, 5, 3, &e), 0); // frames 0, 2, 4, 6, 8
  read_drawing(&d, path);

  // where the head is, by MuJoCo
  char why[500] = "";
  mjModel *m = mj_loadXML("robots/g1.xml", NULL, why, sizeof why);
  mjData *data = mj_makeData(m);
  mj_kinematics(m, data);
  const double *at = data->geom_xpos + 3 * mj_name2id(m, mjOBJ_GEOM, "head");
  double head[2] = {at[0], at[2]};
  mj_deleteData(data);
  mj_deleteModel(m);

  int poses = 0, circles[STRIP_FLOOR] = {0}, errors = 0, failures = 0;
  double pose_x[5], floor = 1;
  for (int i = 0; i < d.n; i++) {
    int layer = (int)d.layer[i];
    if (d.shape[i] == STRIP_POSE) {
      assert_true(d.row[i] == (poses >= 3)); // three in the first row
      assert_float_equal(d.dx[i], 0.04 * poses, 1e-9);
      pose_x[poses++] = d.x[i];
    } else if (d.shape[i] == STRIP_CIRCLE && d.r[i] > 0.05) {
      // heading is +y here: what is ahead stands to the right, in metres
      double ahead = head[0] + (layer == STRIP_REFERENCE ? 0 : 0.1);
      assert_float_equal(d.x[i] - pose_x[poses - 1], ahead, 1.1e-4);
      assert_float_equal(d.z[i], head[1], 1e-4);
      circles[layer]++;
    } else if (d.shape[i] == STRIP_SEGMENT) {
      floor = fmin(floor, fmin(d.z[i], d.z[i] + d.dz[i]));
    } else if (d.shape[i] == STRIP_ERROR) {
      assert_float_equal(d.z[i], errors, 1e-9);
      errors++;
    } else if (d.shape[i] == STRIP_FAILURE) {
      assert_float_equal(d.x[i], 0.02 * FAILS_AT, 1e-9);
      failures++;
    }
  }
  assert_int_equal(poses, 5);
  assert_int_equal(circles[STRIP_REFERENCE], 5);
  assert_int_equal(circles[STRIP_NEAR], 3);
  assert_int_equal(circles[STRIP_FAILED], 2);
  assert_int_equal(errors, FAILS_AT); // the curve ends where the episode failed
  assert_int_equal(failures, 1);
  assert_true(floor > -0.05 && floor < 0.05); // feet are drawn, down to the floor
}

static void a_policy_far_away_leaves_the_picture(void **state) {
  (void)state;
  struct robot r;
  struct traj t;
  struct drawing d;
  struct err e = {0};
  load(&r, "robots/g1.xml");
  const char *traj = in_folder("far.csv"), *path = in_folder("far_strip.csv");
  put_traj(traj, &r, 5);
  assert_int_equal(traj_read(&t, &arena, traj, &r, &e), 0);
  assert_int_equal(strip_write(path, "title", &r, &t, 5, 5, &e), 0);
  read_drawing(&d, path);
  for (int i = 0; i < d.n; i++) {
    assert_true(d.layer[i] == STRIP_REFERENCE || d.shape[i] >= STRIP_ERROR);
  }
}

static void pictures_come_from_the_drawing_alone(void **state) {
  (void)state;
  if (system("gnuplot --version > /dev/null 2>&1") != 0) {
    skip();
  }
  struct robot r;
  struct traj t;
  struct err e = {0};
  load(&r, "robots/g1.xml");
  const char *traj = in_folder("traj.csv"), *path = in_folder("it's.csv");
  put_traj(traj, &r, 0.1);
  assert_int_equal(traj_read(&t, &arena, traj, &r, &e), 0);
  assert_int_equal(strip_write(path, "G1's walk", &r, &t, 5, 3, &e), 0);
  if (strip_picture(path, in_folder("strip"), &e)) {
    fail_msg("%s", e.text);
  }
  char *text;
  size_t size;
  assert_int_equal(file_read(&arena, in_folder("strip.svg"), 10 << 20, &text, &size, &e), 0);
  assert_non_null(strstr(text, "G1's walk"));
  assert_non_null(strstr(text, "policy, after the fall"));
  assert_non_null(strstr(text, "failed at 0.1 s"));
  assert_int_equal(strip_write(path, "film", &r, &t, 3, 0, &e), 0);
  if (strip_film(path, in_folder("film"), &e)) {
    fail_msg("%s", e.text);
  }
  assert_int_equal(file_read(&arena, in_folder("film.gif"), 10 << 20, &text, &size, &e), 0);
  assert_memory_equal(text, "GIF89a", 6);
}

// ---- ONNX: a decoder of protobuf and an evaluator of the operations used

struct field { // of a message
  int number, wire;
  uint64_t value; // varint
  const unsigned char *data;
  size_t size;
};

static uint64_t get_varint(const unsigned char **p, const unsigned char *end) {
  uint64_t x = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    assert_true(*p < end);
    unsigned char byte = *(*p)++;
    x |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      return x;
    }
  }
  fail_msg("varint is too long");
  return 0;
}

// next field of a message, false at its end
static bool get_field(struct field *f, const unsigned char **p, const unsigned char *end) {
  if (*p == end) {
    return false;
  }
  uint64_t tag = get_varint(p, end);
  *f = (struct field){.number = (int)(tag >> 3), .wire = (int)(tag & 7)};
  if (f->wire == 0) {
    f->value = get_varint(p, end);
  } else {
    assert_true(f->wire == 2 || f->wire == 5);
    f->size = f->wire == 2 ? get_varint(p, end) : 4;
    assert_true(f->size <= (size_t)(end - *p));
    f->data = *p;
    *p += f->size;
  }
  return true;
}

static const char *text_of(const struct field *f) {
  char *s = arena_alloc(&arena, f->size + 1);
  memcpy(s, f->data, f->size);
  return s;
}

struct tensor {
  const char *name;
  int ndim, dim[2];
  const float *x;
};

struct onnx_graph {
  struct tensor tensor[256];
  int ntensor;
  int inputs, outputs, nodes, opset, ir, nmeta;
  const char *key[32], *value[32];
};

static const struct tensor *find_tensor(const struct onnx_graph *g, const char *name) {
  for (int i = 0; i < g->ntensor; i++) {
    if (strcmp(g->tensor[i].name, name) == 0) {
      return &g->tensor[i];
    }
  }
  fail_msg("no tensor '%s' when it is needed", name);
  return NULL;
}

static int count_of(const struct tensor *t) {
  return (t->ndim > 0 ? t->dim[0] : 1) * (t->ndim > 1 ? t->dim[1] : 1);
}

static void read_initializer(struct onnx_graph *g, const struct field *message) {
  struct tensor t = {0};
  struct field f;
  const unsigned char *p = message->data;
  size_t bytes = 0;
  while (get_field(&f, &p, message->data + message->size)) {
    if (f.number == 1) {
      assert_in_range(t.ndim, 0, 1);
      t.dim[t.ndim++] = (int)f.value;
    } else if (f.number == 2) {
      assert_int_equal(f.value, 1); // float
    } else if (f.number == 8) {
      t.name = text_of(&f);
    } else if (f.number == 9) {
      float *x = arena_alloc(&arena, f.size);
      memcpy(x, f.data, f.size); // raw data need not be aligned
      t.x = x;
      bytes = f.size;
    }
  }
  assert_int_equal(bytes, sizeof(float) * (size_t)count_of(&t));
  g->tensor[g->ntensor++] = t;
}

// y = op of rows; a smaller operand is repeated, as numpy does
static float operand(const struct tensor *t, int i, int n) {
  int count = count_of(t);
  return t->x[count == n ? i : count == 1 ? 0 : i % count];
}

static void run_node(struct onnx_graph *g, const struct field *message) {
  const char *op = "", *input[3] = {0}, *output = NULL;
  int ninput = 0;
  int64_t trans_b = 0, axis = 0;
  struct field f, a;
  const unsigned char *p = message->data;
  while (get_field(&f, &p, message->data + message->size)) {
    if (f.number == 1) {
      input[ninput++] = text_of(&f);
    } else if (f.number == 2) {
      output = text_of(&f);
    } else if (f.number == 4) {
      op = text_of(&f);
    } else if (f.number == 5) {
      const char *name = "";
      const unsigned char *q = f.data;
      while (get_field(&a, &q, f.data + f.size)) {
        name = a.number == 1 ? text_of(&a) : name;
        trans_b = a.number == 3 && strcmp(name, "transB") == 0 ? (int64_t)a.value : trans_b;
        axis = a.number == 8 && strcmp(name, "axes") == 0 ? (int64_t)a.value : axis;
      }
    }
  }
  const struct tensor *x = find_tensor(g, input[0]);
  const struct tensor *b = ninput > 1 ? find_tensor(g, input[1]) : NULL;
  const struct tensor *c = ninput > 2 ? find_tensor(g, input[2]) : NULL;
  int n = count_of(x);
  struct tensor y = {.name = output, .ndim = 2, .dim = {1, n}};
  if (strcmp(op, "Gemm") == 0) {
    assert_int_equal(trans_b, 1);
    assert_int_equal(b->dim[1], n);
    assert_int_equal(count_of(c), b->dim[0]);
    y.dim[1] = b->dim[0];
  } else if (strcmp(op, "ReduceMean") == 0) {
    assert_int_equal(axis, 1);
    y.dim[1] = 1;
  }
  float *out = ARENA_NEW(&arena, float, y.dim[1]);
  for (int i = 0; i < y.dim[1]; i++) {
    float v = x->x[i % n], w = b ? operand(b, i, n) : 0; // of operations number by number
    if (strcmp(op, "Gemm") == 0) {
      double sum = c->x[i];
      for (int k = 0; k < n; k++) {
        sum += (double)x->x[k] * b->x[i * n + k];
      }
      out[i] = (float)sum;
    } else if (strcmp(op, "ReduceMean") == 0) {
      double sum = 0;
      for (int k = 0; k < n; k++) {
        sum += x->x[k];
      }
      out[i] = (float)(sum / n);
    } else if (strcmp(op, "Sub") == 0) {
      out[i] = v - w;
    } else if (strcmp(op, "Add") == 0) {
      out[i] = v + w;
    } else if (strcmp(op, "Mul") == 0) {
      out[i] = v * w;
    } else if (strcmp(op, "Div") == 0) {
      out[i] = v / w;
    } else if (strcmp(op, "Sqrt") == 0) {
      out[i] = sqrtf(v);
    } else if (strcmp(op, "Elu") == 0) {
      out[i] = v > 0 ? v : expm1f(v);
    } else if (strcmp(op, "Clip") == 0) {
      out[i] = fminf(fmaxf(v, w), operand(c, i, n));
    } else {
      fail_msg("unexpected operation '%s'", op);
    }
  }
  y.x = out;
  assert_in_range(g->ntensor, 0, 255);
  g->tensor[g->ntensor++] = y;
}

// Decodes the model and runs it on x.
static void run_model(struct onnx_graph *g, const char *data, size_t size, const float *x, int nx) {
  struct field f, in;
  memset(g, 0, sizeof *g);
  g->tensor[g->ntensor++] = (struct tensor){"obs", 2, {1, nx}, x};
  const unsigned char *p = (const unsigned char *)data, *end = p + size, *q;
  while (get_field(&f, &p, end)) {
    if (f.number == 1) {
      g->ir = (int)f.value;
    } else if (f.number == 8) {
      q = f.data;
      while (get_field(&in, &q, f.data + f.size)) {
        g->opset = in.number == 2 ? (int)in.value : g->opset;
      }
    } else if (f.number == 14) {
      q = f.data;
      while (get_field(&in, &q, f.data + f.size)) {
        *(in.number == 1 ? &g->key[g->nmeta] : &g->value[g->nmeta]) = text_of(&in);
      }
      g->nmeta++;
    } else if (f.number == 7) {
      // constants first, wherever they stand; nodes stand in the order of evaluation
      q = f.data;
      while (get_field(&in, &q, f.data + f.size)) {
        if (in.number == 5) {
          read_initializer(g, &in);
        }
        g->inputs += in.number == 11;
        g->outputs += in.number == 12;
        g->nodes += in.number == 1;
      }
      q = f.data;
      while (get_field(&in, &q, f.data + f.size)) {
        if (in.number == 1) {
          run_node(g, &in);
        }
      }
    }
  }
}

static void check_export(bool layer_norm) {
  enum { NOBS = 37, NU = 5 };
  const int hidden[2] = {64, 32};
  struct mlp net;
  mlp_shape(&net, NOBS, hidden, 2, NU, layer_norm);
  float *param = ARENA_NEW(&arena, float, net.nparam);
  struct rng rng = rng_stream(3, RNG_TEST, 0, 0, 0);
  for (size_t i = 0; i < net.nparam; i++) { // biases, gains and shifts too
    param[i] = (float)(0.3 * rng_normal(&rng));
  }
  struct normalizer norm;
  normalizer_new(&norm, &arena, NOBS);
  for (int i = 0; i < NOBS; i++) {
    norm.mean[i] = rng_normal(&rng);
    norm.var[i] = exp(2 * rng_normal(&rng));
  }
  normalizer_refresh(&norm);
  const struct onnx_property property[2] = {{"joint_names", "a,b"}, {"control_dt", "0.02"}};
  char *data;
  size_t size;
  onnx_policy(&data, &size, &arena, &net, param, &norm, property, 2);

  bool clamped = false;
  struct onnx_graph g;
  for (int trial = 0; trial < 20; trial++) {
    double obs[NOBS];
    float obs_f[NOBS], x[NOBS], y[NU], tmp[2 * (64 + 1)];
    for (int i = 0; i < NOBS; i++) {
      obs_f[i] = (float)(norm.mean[i] + 3 * rng_normal(&rng) * sqrt(norm.var[i]));
      obs[i] = obs_f[i];
    }
    normalizer_fwd(x, &norm, obs, 1);
    mlp_eval(y, &net, param, x, 1, tmp);
    run_model(&g, data, size, obs_f, NOBS);
    const struct tensor *out = find_tensor(&g, "actions");
    assert_int_equal(count_of(out), NU);
    for (int i = 0; i < NU; i++) {
      assert_true(fabsf(out->x[i] - y[i]) < 1e-5f);
    }
    for (int i = 0; i < NOBS; i++) {
      clamped |= fabsf(x[i]) == NORMALIZER_CLAMP;
    }
  }
  assert_true(clamped); // or the clip was not tested
  assert_int_equal(g.ir, 6);
  assert_int_equal(g.opset, 11);
  assert_int_equal(g.inputs, 1);
  assert_int_equal(g.outputs, 1);
  assert_int_equal(g.nodes, 3 + 2 * (layer_norm ? 11 : 2) + 1);
  assert_int_equal(g.nmeta, 2);
  assert_string_equal(g.key[1], "control_dt");
  assert_string_equal(g.value[1], "0.02");
}

static void the_exported_policy_acts_alike(void **state) {
  (void)state;
  check_export(true);
  check_export(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trajectories_read_back),
      cmocka_unit_test(strips_show_the_policy_where_it_is),
      cmocka_unit_test(a_policy_far_away_leaves_the_picture),
      cmocka_unit_test(pictures_come_from_the_drawing_alone),
      cmocka_unit_test(the_exported_policy_acts_alike),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
