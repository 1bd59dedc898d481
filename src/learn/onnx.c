#include "learn/onnx.h"
#include "base/err.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// ---- protobuf: a message is a row of fields, each a tag (number, wire type) and a value

struct message {
  struct arena *arena;
  unsigned char *data;
  size_t used, capacity;
};

enum wire { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FLOAT = 5 };

static struct message message_new(struct arena *a) {
  return (struct message){.arena = a};
}

static void put_raw(struct message *m, const void *data, size_t n) {
  if (m->used + n > m->capacity) {
    size_t capacity = m->capacity ? 2 * m->capacity : 256;
    capacity = capacity < m->used + n ? m->used + n : capacity;
    unsigned char *grown = arena_alloc(m->arena, capacity);
    if (m->used) {
      memcpy(grown, m->data, m->used);
    }
    m->data = grown;
    m->capacity = capacity;
  }
  memcpy(m->data + m->used, data, n);
  m->used += n;
}

static void put_varint(struct message *m, uint64_t x) {
  unsigned char byte[10];
  size_t n = 0;
  for (; x >= 0x80; x >>= 7) {
    byte[n++] = (unsigned char)(x | 0x80);
  }
  byte[n++] = (unsigned char)x;
  put_raw(m, byte, n);
}

static void put_tag(struct message *m, int field, enum wire wire) {
  put_varint(m, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_int(struct message *m, int field, int64_t x) {
  put_tag(m, field, WIRE_VARINT);
  put_varint(m, (uint64_t)x); // negative numbers take ten bytes, as protobuf wants
}

static void put_float(struct message *m, int field, float x) {
  put_tag(m, field, WIRE_FLOAT);
  put_raw(m, &x, sizeof x);
}

static void put_bytes(struct message *m, int field, const void *data, size_t n) {
  put_tag(m, field, WIRE_BYTES);
  put_varint(m, n);
  put_raw(m, data, n);
}

static void put_text(struct message *m, int field, const char *s) {
  put_bytes(m, field, s, strlen(s));
}

static void put_message(struct message *m, int field, const struct message *inner) {
  put_bytes(m, field, inner->data, inner->used);
}

// ---- ONNX: numbers of fields and types as in onnx.proto

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_METADATA = 14 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2, METADATA_KEY = 1, METADATA_VALUE = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8 };
enum { ATTRIBUTE_TYPE = 20, TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, ELEMENT_FLOAT = 1 };

struct graph {
  struct message message;
  struct arena *arena;
};

// A constant of shape (rows, cols), (cols) when rows is 0, or a scalar when both are.
static const char *add_constant(struct graph *g, const char *name, const float *x, int rows,
                                int cols) {
  struct message t = message_new(g->arena);
  if (rows) {
    put_int(&t, TENSOR_DIMS, rows);
  }
  if (cols) {
    put_int(&t, TENSOR_DIMS, cols);
  }
  put_int(&t, TENSOR_TYPE, ELEMENT_FLOAT);
  put_text(&t, TENSOR_NAME, name);
  put_bytes(&t, TENSOR_RAW, x, sizeof *x * (size_t)(rows ? rows : 1) * (size_t)(cols ? cols : 1));
  put_message(&g->message, GRAPH_INITIALIZER, &t);
  return name;
}

// One operation on up to three inputs. Its output bears its name.
static const char *add_node(struct graph *g, const char *op, const char *name, const char *a,
                            const char *b, const char *c) {
  struct message n = message_new(g->arena);
  const char *const input[3] = {a, b, c};
  for (int i = 0; i < 3 && input[i]; i++) {
    put_text(&n, NODE_INPUT, input[i]);
  }
  put_text(&n, NODE_OUTPUT, name);
  put_text(&n, NODE_NAME, name);
  put_text(&n, NODE_OP, op);
  struct message attribute = message_new(g->arena);
  if (strcmp(op, "Gemm") == 0) { // weights are (out, in)
    put_text(&attribute, ATTRIBUTE_NAME, "transB");
    put_int(&attribute, ATTRIBUTE_INT, 1);
    put_int(&attribute, ATTRIBUTE_TYPE, TYPE_INT);
  } else if (strcmp(op, "Elu") == 0) {
    put_text(&attribute, ATTRIBUTE_NAME, "alpha");
    put_float(&attribute, ATTRIBUTE_FLOAT, 1);
    put_int(&attribute, ATTRIBUTE_TYPE, TYPE_FLOAT);
  } else if (strcmp(op, "ReduceMean") == 0) {
    put_text(&attribute, ATTRIBUTE_NAME, "axes");
    put_int(&attribute, ATTRIBUTE_INTS, 1);
    put_int(&attribute, ATTRIBUTE_TYPE, TYPE_INTS);
  }
  if (attribute.used) {
    put_message(&n, NODE_ATTRIBUTE, &attribute);
  }
  put_message(&g->message, GRAPH_NODE, &n);
  return name;
}

// input or output of the graph: (1, n) floats
static void add_value(struct graph *g, int field, const char *name, int n) {
  struct arena *a = g->arena;
  struct message shape = message_new(a), tensor = message_new(a), type = message_new(a),
                 value = message_new(a);
  const int size[2] = {1, n};
  for (int i = 0; i < 2; i++) {
    struct message dim = message_new(a);
    put_int(&dim, DIM_VALUE, size[i]);
    put_message(&shape, SHAPE_DIM, &dim);
  }
  put_int(&tensor, TENSOR_ELEMENT, ELEMENT_FLOAT);
  put_message(&tensor, TENSOR_SHAPE, &shape);
  put_message(&type, TYPE_TENSOR, &tensor);
  put_text(&value, VALUE_NAME, name);
  put_message(&value, VALUE_TYPE, &type);
  put_message(&g->message, field, &value);
}

// ---- the policy

static const char *layer_name(struct graph *g, int layer, const char *part) {
  char name[64];
  snprintf(name, sizeof name, "layer%d.%s", layer, part);
  return arena_strdup(g->arena, name);
}

static const char *add_normalizer(struct graph *g, const struct normalizer *norm, const char *x) {
  float *mean = ARENA_NEW(g->arena, float, norm->n), *std = ARENA_NEW(g->arena, float, norm->n);
  for (int i = 0; i < norm->n; i++) {
    mean[i] = (float)norm->mean[i];
    std[i] = (float)(1 / norm->inv_std[i]);
  }
  const float lo = -NORMALIZER_CLAMP, hi = NORMALIZER_CLAMP;
  x = add_node(g, "Sub", "norm.centred", x, add_constant(g, "norm.mean", mean, 0, norm->n), NULL);
  x = add_node(g, "Div", "norm.scaled", x, add_constant(g, "norm.std", std, 0, norm->n), NULL);
  return add_node(g, "Clip", "norm.clipped", x, add_constant(g, "norm.lo", &lo, 0, 0),
                  add_constant(g, "norm.hi", &hi, 0, 0));
}

static const char *add_linear(struct graph *g, const struct mlp *net, const float *param, int l,
                              const char *name, const char *x) {
  int nin = net->size[l], nout = net->size[l + 1];
  const char *w = layer_name(g, l, "weight"), *b = layer_name(g, l, "bias");
  add_constant(g, w, param + net->weight[l], nout, nin);
  add_constant(g, b, param + net->bias[l], 0, nout);
  return add_node(g, "Gemm", name, x, w, b);
}

// gain * (x - mean) / sqrt(mean((x - mean)^2) + 1e-5) + shift, over a row
static const char *add_layer_norm(struct graph *g, const struct mlp *net, const float *param, int l,
                                  const char *x) {
  int n = net->size[l + 1];
  const float epsilon = 1e-5f;
  const char *gain = layer_name(g, l, "gain"), *shift = layer_name(g, l, "shift"),
             *eps = layer_name(g, l, "epsilon");
  add_constant(g, gain, param + net->gain[l], 0, n);
  add_constant(g, shift, param + net->shift[l], 0, n);
  add_constant(g, eps, &epsilon, 0, 0);
  const char *mean = add_node(g, "ReduceMean", layer_name(g, l, "mean"), x, NULL, NULL);
  const char *d = add_node(g, "Sub", layer_name(g, l, "centred"), x, mean, NULL);
  const char *sq = add_node(g, "Mul", layer_name(g, l, "square"), d, d, NULL);
  const char *var = add_node(g, "ReduceMean", layer_name(g, l, "variance"), sq, NULL, NULL);
  const char *sum = add_node(g, "Add", layer_name(g, l, "variance_eps"), var, eps, NULL);
  const char *std = add_node(g, "Sqrt", layer_name(g, l, "std"), sum, NULL, NULL);
  const char *y = add_node(g, "Div", layer_name(g, l, "normed"), d, std, NULL);
  y = add_node(g, "Mul", layer_name(g, l, "gained"), y, gain, NULL);
  return add_node(g, "Add", layer_name(g, l, "out"), y, shift, NULL);
}

void onnx_policy(char **data, size_t *size, struct arena *a, const struct mlp *net,
                 const float *param, const struct normalizer *norm,
                 const struct onnx_property *property, int nproperty) {
  BUG_IF(norm->n != net->size[0]);
  struct graph g = {message_new(a), a};
  put_text(&g.message, GRAPH_NAME, "policy");
  const char *x = add_normalizer(&g, norm, "obs");
  int last = net->nlayer - 1;
  for (int l = 0; l < last; l++) {
    x = add_linear(&g, net, param, l, layer_name(&g, l, "linear"), x);
    x = add_node(&g, "Elu", layer_name(&g, l, "elu"), x, NULL, NULL);
    x = net->layer_norm ? add_layer_norm(&g, net, param, l, x) : x;
  }
  add_linear(&g, net, param, last, "actions", x);
  add_value(&g, GRAPH_INPUT, "obs", net->size[0]);
  add_value(&g, GRAPH_OUTPUT, "actions", net->size[net->nlayer]);

  struct message model = message_new(a), opset = message_new(a);
  put_int(&model, MODEL_IR, 6);
  put_text(&model, MODEL_PRODUCER, "dsim");
  put_message(&model, MODEL_GRAPH, &g.message);
  put_text(&opset, OPSET_DOMAIN, "");
  put_int(&opset, OPSET_VERSION, 11);
  put_message(&model, MODEL_OPSET, &opset);
  for (int i = 0; i < nproperty; i++) {
    struct message entry = message_new(a);
    put_text(&entry, METADATA_KEY, property[i].key);
    put_text(&entry, METADATA_VALUE, property[i].value);
    put_message(&model, MODEL_METADATA, &entry);
  }
  *data = (char *)model.data;
  *size = model.used;
}
