#include "learn/critic.h"
#include <string.h>

void critic_new(struct critic *c, struct arena *a, const struct spec *s, int nobs) {
  *c = (struct critic){.count = s->critic_count, .unit = s->value_unit};
  mlp_shape(&c->net, nobs, s->critic_layers.v, s->critic_layers.n, 1, s->layer_norm);
  c->nparam = c->net.nparam * (size_t)c->count;
  c->param = ARENA_NEW(a, float, c->nparam);
  for (int k = 0; k < c->count; k++) {
    // near 0 at first: the minimum of random values would be far below the truth
    mlp_init(c->param + (size_t)k * c->net.nparam, &c->net, (uint64_t)s->seed, (uint32_t)(k + 1),
             0.01);
  }
  adam_new(&c->adam, a, c->nparam, s->adam_beta1, s->adam_beta2);
}

void critic_work_new(struct critic_work *w, struct arena *a, const struct critic *c) {
  mlp_cache_new(&w->cache, a, &c->net, CRITIC_CHUNK);
  w->y = ARENA_NEW(a, float, c->count *CRITIC_CHUNK);
  w->dy = ARENA_NEW(a, float, CRITIC_CHUNK);
  w->dx = ARENA_NEW(a, float, CRITIC_CHUNK * c->net.size[0]);
  w->tmp = ARENA_NEW(a, float, 2 * CRITIC_CHUNK * (c->net.widest + 1));
}

static const float *param_of(const struct critic *c, int k) {
  return c->param + (size_t)k * c->net.nparam;
}

void critic_value(double *value, const struct critic *c, struct critic_work *w, const float *x,
                  int rows) {
  for (int r0 = 0; r0 < rows; r0 += CRITIC_CHUNK) {
    int n = rows - r0 < CRITIC_CHUNK ? rows - r0 : CRITIC_CHUNK;
    const float *chunk = x + (size_t)r0 * (size_t)c->net.size[0];
    for (int k = 0; k < c->count; k++) {
      mlp_eval(w->y, &c->net, param_of(c, k), chunk, n, w->tmp);
      for (int r = 0; r < n; r++) {
        double v = c->unit * (double)w->y[r];
        value[r0 + r] = k == 0 || v < value[r0 + r] ? v : value[r0 + r];
      }
    }
  }
}

void critic_gradient(float *dx, const struct critic *c, struct critic_work *w, const float *x,
                     const double *scale, int rows) {
  int least[CRITIC_CHUNK] = {0};
  for (int k = 0; k < c->count; k++) {
    float *y = w->y + k * CRITIC_CHUNK;
    mlp_eval(y, &c->net, param_of(c, k), x, rows, w->tmp);
    for (int r = 0; r < rows; r++) {
      least[r] = y[r] < w->y[least[r] * CRITIC_CHUNK + r] ? k : least[r];
    }
  }
  size_t n = (size_t)rows * (size_t)c->net.size[0];
  for (int k = 0; k < c->count; k++) {
    bool any = false;
    for (int r = 0; r < rows; r++) {
      w->dy[r] = least[r] == k ? (float)(scale[r] * c->unit) : 0;
      any |= w->dy[r] != 0;
    }
    if (!any) {
      continue;
    }
    mlp_fwd(w->y, &w->cache, &c->net, param_of(c, k), x, 0, rows);
    mlp_bwd(w->dx, NULL, &w->cache, &c->net, param_of(c, k), w->dy, 0, rows, w->tmp);
    for (size_t i = 0; i < n; i++) {
      dx[i] += w->dx[i];
    }
  }
}

double critic_loss(float *dparam, const struct critic *c, int k, struct critic_work *w,
                   const float *x, const float *target, int rows, int batch) {
  const float *param = param_of(c, k);
  mlp_fwd(w->y, &w->cache, &c->net, param, x, 0, rows);
  double loss = 0;
  for (int r = 0; r < rows; r++) {
    float error = w->y[r] - target[r];
    loss += (double)error * (double)error;
    w->dy[r] = 2 * error / (float)batch;
  }
  mlp_bwd(NULL, dparam, &w->cache, &c->net, param, w->dy, 0, rows, w->tmp);
  mlp_grad(dparam, &w->cache, &c->net, x, 0, rows);
  return loss;
}
