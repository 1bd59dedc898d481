// Shape of a discriminator: hidden layers of Linear and ReLU, a Linear output of one number.
// Parameters are one slab; what is done with them is discriminator.inl.
#pragma once
#include <stddef.h>

enum { DISC_MAX_LAYERS = 9 }; // spec lists have up to 8 hidden layers

struct disc {
  int nlayer;                    // Linear layers, hidden ones and the output
  int size[DISC_MAX_LAYERS + 1]; // size[0] inputs, size[l + 1] outputs of layer l
  size_t weight[DISC_MAX_LAYERS], bias[DISC_MAX_LAYERS]; // first number: (out, in), (out)
  size_t nparam;
};
