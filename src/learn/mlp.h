// Multi-layer perceptron: every hidden layer is Linear, ELU, LayerNorm (with gain and shift; or
// none, spec learn.layer_norm), the output layer is Linear. Parameters of a network are one slab of
// floats; a gradient is a slab of the same layout.
//
// Rows are samples. A cache keeps what backward needs of a fixed number of rows; forward and
// backward may be called on any range of them (one control step of a rollout), weight gradients at
// the end on all at once, which is where the matrix products are large.
#pragma once
#include "base/arena.h"
#include "base/rng.h"
#include <stdbool.h>
#include <stddef.h>

enum { MLP_MAX_LAYERS = 9 };                  // spec lists have up to 8 hidden layers
#define MLP_WITHOUT_NORM " without LayerNorm" // behind the layers' sizes in checkpoints

struct mlp {
  int nlayer;                   // Linear layers, hidden ones and the output
  int size[MLP_MAX_LAYERS + 1]; // size[0] inputs, size[l + 1] outputs of layer l
  int widest;                   // largest of size[1..]
  bool layer_norm;
  // first number in the slab: weight (out, in), bias (out); with LayerNorm hidden layers also gain,
  // shift (out)
  size_t weight[MLP_MAX_LAYERS], bias[MLP_MAX_LAYERS];
  size_t gain[MLP_MAX_LAYERS], shift[MLP_MAX_LAYERS];
  size_t nparam;
};

struct mlp_cache {
  int rows;
  float *h[MLP_MAX_LAYERS];    // (rows, out) after ELU
  float *z[MLP_MAX_LAYERS];    // (rows, out) after LayerNorm (else h), input of the next layer
  float *mean[MLP_MAX_LAYERS]; // (rows) of h over a row
  float *rstd[MLP_MAX_LAYERS]; // (rows) 1 / sqrt(variance + 1e-5)
  float *d[MLP_MAX_LAYERS];    // (rows, out) loss gradient at the layer's Linear output
};

void mlp_shape(struct mlp *m, int nin, const int *hidden, int nhidden, int nout, bool layer_norm);
void mlp_cache_new(struct mlp_cache *c, struct arena *a, const struct mlp *m, int rows);
// Weights uniform in +-1.2/sqrt(in), the output layer's times out_scale; biases and shifts 0,
// gains 1. Random numbers: RNG_INIT_WEIGHTS, env = network, episode = layer.
void mlp_init(float *param, const struct mlp *m, uint64_t seed, uint32_t network, double out_scale);
// "layer 2 weight[13,7]": where number i of the slab belongs.
void mlp_locate(char *text, size_t size, const struct mlp *m, size_t i);

// y (rows, out) of x (rows, in); x and y point at the first of the rows, c row `row` belongs to it.
void mlp_fwd(float *y, struct mlp_cache *c, const struct mlp *m, const float *param, const float *x,
             int row, int rows);
// dx (rows, in), NULL if not wanted, from dy (rows, out). Fills c->d for mlp_grad. dparam, NULL if
// not wanted, gets gains and shifts added. tmp: rows * m->widest floats.
void mlp_bwd(float *dx, float *dparam, struct mlp_cache *c, const struct mlp *m, const float *param,
             const float *dy, int row, int rows, float *tmp);
// Adds the gradients of weights and biases over the rows; x points at the first of them.
void mlp_grad(float *dparam, const struct mlp_cache *c, const struct mlp *m, const float *x,
              int row, int rows);

// Forward without a cache. tmp: 2 * rows * (m->widest + 1) floats. Same bits as mlp_fwd on the same
// rows.
void mlp_eval(float *y, const struct mlp *m, const float *param, const float *x, int rows,
              float *tmp);
