// Ensemble of value functions on normalised observations; the smallest value counts. Networks
// predict values in `unit`s. No target network (PWM's SHAC).
#pragma once
#include "learn/adam.h"
#include "learn/mlp.h"
#include "spec/spec.h"

enum { CRITIC_CHUNK = 256 }; // rows that share a matrix product; fixed, for the same results always

struct critic {
  struct mlp net;
  int count;     // networks
  double unit;   // value = unit * output
  float *param;  // (count, net.nparam): one slab
  size_t nparam; // of the slab
  struct adam adam;
};

struct critic_work {        // one thread's scratch
  struct mlp_cache cache;   // CRITIC_CHUNK rows
  float *y, *dy, *dx, *tmp; // (count, chunk), (chunk), (chunk, nobs), ...
};

void critic_new(struct critic *c, struct arena *a, const struct spec *s, int nobs);
void critic_work_new(struct critic_work *w, struct arena *a, const struct critic *c);

// value (rows) of x (rows, nobs): any number of rows, cut into chunks.
void critic_value(double *value, const struct critic *c, struct critic_work *w, const float *x,
                  int rows);
// dx (rows, nobs) += d(scale[r] * value of row r)/dx, through the network that gave the minimum
// (the first of equals). rows <= CRITIC_CHUNK; rows with scale 0 stay as they are.
void critic_gradient(float *dx, const struct critic *c, struct critic_work *w, const float *x,
                     const double *scale, int rows);
// Mean squared error in units over a batch of `batch` samples, of which these rows are a chunk:
// returns the chunk's sum of squared errors of network k and adds its gradient of the batch's mean
// loss to dparam (net.nparam). target (rows) in units.
double critic_loss(float *dparam, const struct critic *c, int k, struct critic_work *w,
                   const float *x, const float *target, int rows, int batch);
