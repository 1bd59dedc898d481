// A policy as an ONNX model (opset 11, IR 6), written by hand: protobuf is tags, lengths and bytes.
//
//   obs (1, nobs) -> Sub mean -> Div std -> Clip +-5
//     -> per hidden layer: Gemm, Elu, layer normalisation spelled out in ReduceMean, Sub, Mul, Add,
//        Sqrt, Div (its own operator came with opset 17)
//     -> Gemm -> actions (1, nu)
//
// The observation's statistics are inside, so the model takes what the robot measures. What the
// numbers mean stands in the model's metadata.
#pragma once
#include "base/arena.h"
#include "learn/mlp.h"
#include "learn/normalizer.h"

struct onnx_property {
  const char *key, *value;
};

// The file's bytes in the arena.
void onnx_policy(char **data, size_t *size, struct arena *a, const struct mlp *net,
                 const float *param, const struct normalizer *norm,
                 const struct onnx_property *property, int nproperty);
