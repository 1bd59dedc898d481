// What a discriminator D(x) of residuals computes, and the gradient of its loss with the gradient
// penalty in it. The learner compiles this text in float (add.c), its test in double: the includer
// defines
//   disc_real                    the scalar
//   DISC_GEMM(kind)(c, a, b, m, n, k, beta)   row-major products, kind nt, nn, tn as in gemm.h
//
// Loss over n negatives (residuals, target 0) and one positive, the residual of perfection x = 0:
//   L = 1/2 [softplus(-D(0)) + mean softplus(D(x))] + lambda/2 [|dD/dx(0)|^2 + mean |dD/dx|^2]
//       + mu |w|^2,   w the output layer's weights; softplus(D) = log(1 + e^D)
// (ADD, arXiv 2505.04961: binary cross-entropies of sigmoid(D)).
//
// Layer l: a_l = W_l h_l + b_l, h_{l+1} = relu(a_l), h_0 = x, mask m_l = a_l > 0, a constant for
// both derivatives. D is one number, so going back from it once serves twice:
//   g_l = dD/da_l:  g_last = 1,  g_l = m_l * (W_{l+1}' g_{l+1}),  dD/dx = W_0' g_0
// gives the gradient that the penalty is made of, and, times e = dL/dD, what the cross-entropy
// sends back. The penalty's own s = dL/d(dD/dx) runs forward through the linearised network:
//   t_0 = s,  t_{l+1} = m_l * (W_l t_l)
// and all of it together is
//   dL/dW_l = sum over rows of g_l (e h_l + t_l)',   dL/db_l = sum of e g_l.
#include "base/arena.h"
#include "learn/discriminator.h"
#include <sleef.h>
#include <string.h>

static void disc_shape(struct disc *d, int nin, const int *hidden, int nhidden) {
  *d = (struct disc){.nlayer = nhidden + 1};
  d->size[0] = nin;
  for (int l = 0; l < d->nlayer; l++) {
    int nout = l < nhidden ? hidden[l] : 1;
    d->size[l + 1] = nout;
    d->weight[l] = d->nparam;
    d->bias[l] = d->weight[l] + (size_t)d->size[l] * (size_t)nout;
    d->nparam = d->bias[l] + (size_t)nout;
  }
}

// What a pass over up to `rows` rows keeps: (rows, size[l]) each.
struct disc_cache {
  int rows;
  disc_real *h[DISC_MAX_LAYERS]; // h[l], input of layer l; h[0] is filled by the caller
  disc_real *g[DISC_MAX_LAYERS]; // g[l], of layer l's output
  disc_real *t[DISC_MAX_LAYERS]; // t[l], like h[l]
  disc_real *dx;                 // (rows, size[0]) dD/dx
  disc_real *out;                // (rows) D
};

static void disc_cache_new(struct disc_cache *c, struct arena *a, const struct disc *d, int rows) {
  *c = (struct disc_cache){.rows = rows};
  for (int l = 0; l < d->nlayer; l++) {
    c->h[l] = ARENA_NEW(a, disc_real, rows * d->size[l]);
    c->g[l] = ARENA_NEW(a, disc_real, rows * d->size[l + 1]);
    c->t[l] = ARENA_NEW(a, disc_real, rows * d->size[l]);
  }
  c->dx = ARENA_NEW(a, disc_real, rows * d->size[0]);
  c->out = ARENA_NEW(a, disc_real, rows);
}

// sleef rather than libm, whose last bit depends on the processor
static double disc_sigmoid(double x) {
  return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}
static double disc_softplus(double x) {
  double tail = Sleef_cinz_log1pd1_u10purec(Sleef_cinz_expd1_u10purec(x > 0 ? -x : x));
  return (x > 0 ? x : 0) + tail;
}

// c->out = D of the rows in c->h[0]
static void disc_fwd(struct disc_cache *c, const struct disc *d, const disc_real *param, int rows) {
  int last = d->nlayer - 1;
  for (int l = 0; l <= last; l++) {
    const disc_real *bias = param + d->bias[l];
    disc_real *out = l < last ? c->h[l + 1] : c->out;
    int n = d->size[l + 1];
    DISC_GEMM(nt)(out, c->h[l], param + d->weight[l], rows, n, d->size[l], 0);
    for (int r = 0; r < rows; r++) {
      for (int i = 0; i < n; i++) {
        disc_real a = out[r * n + i] + bias[i];
        out[r * n + i] = l < last && !(a > 0) ? 0 : a;
      }
    }
  }
}

// x *= mask of the hidden layer whose output is h
static void disc_mask(disc_real *x, const disc_real *h, int n) {
  for (int i = 0; i < n; i++) {
    x[i] = h[i] > 0 ? x[i] : 0;
  }
}

// after disc_fwd: c->g and c->dx
static void disc_bwd(struct disc_cache *c, const struct disc *d, const disc_real *param, int rows) {
  int last = d->nlayer - 1;
  for (int r = 0; r < rows; r++) {
    c->g[last][r] = 1;
  }
  for (int l = last; l >= 0; l--) {
    int n = d->size[l];
    disc_real *below = l > 0 ? c->g[l - 1] : c->dx;
    DISC_GEMM(nn)(below, c->g[l], param + d->weight[l], rows, n, d->size[l + 1], 0);
    if (l > 0) {
      disc_mask(below, c->h[l], rows * n);
    }
  }
}

// Sets dparam to the gradient of the rows' part of the loss (all but mu |w|^2) and returns that
// part. c->h[0] holds `negative` rows that stand for `share` of the mean each, then possibly one
// positive. Overwrites c.
static double disc_loss(disc_real *dparam, struct disc_cache *c, const struct disc *d,
                        const disc_real *param, int negative, bool positive, double share,
                        double lambda) {
  int rows = negative + positive, nin = d->size[0];
  disc_fwd(c, d, param, rows);
  disc_bwd(c, d, param, rows);
  double loss = 0;
  for (int r = 0; r < rows; r++) {
    double weight = r < negative ? share : 1, sign = r < negative ? 1 : -1, square = 0;
    const disc_real *dx = c->dx + r * nin;
    disc_real s = (disc_real)(lambda * weight);
    for (int i = 0; i < nin; i++) {
      square += (double)dx[i] * (double)dx[i];
      c->t[0][r * nin + i] = s * dx[i];
    }
    double out = sign * (double)c->out[r];
    loss += 0.5 * weight * (disc_softplus(out) + lambda * square);
    c->out[r] = (disc_real)(0.5 * weight * sign * disc_sigmoid(out)); // e
  }
  for (int l = 0; l < d->nlayer; l++) {
    int n = d->size[l], m = d->size[l + 1];
    if (l + 1 < d->nlayer) {
      DISC_GEMM(nt)(c->t[l + 1], c->t[l], param + d->weight[l], rows, m, n, 0);
      disc_mask(c->t[l + 1], c->h[l + 1], rows * m);
    }
    disc_real *t = c->t[l], *bias = dparam + d->bias[l];
    memset(bias, 0, sizeof *bias * (size_t)m);
    for (int r = 0; r < rows; r++) {
      disc_real e = c->out[r];
      for (int i = 0; i < n; i++) {
        t[r * n + i] += e * c->h[l][r * n + i];
      }
      for (int i = 0; i < m; i++) {
        bias[i] += e * c->g[l][r * m + i];
      }
    }
    DISC_GEMM(tn)(dparam + d->weight[l], c->g[l], t, m, n, rows, 0);
  }
  return loss;
}

// Adds the gradient of mu |w|^2 and returns it.
static double disc_logit_loss(disc_real *dparam, const struct disc *d, const disc_real *param,
                              double mu) {
  int last = d->nlayer - 1;
  const disc_real *w = param + d->weight[last];
  disc_real *dw = dparam + d->weight[last];
  double square = 0;
  for (int i = 0; i < d->size[last]; i++) {
    square += (double)w[i] * (double)w[i];
    dw[i] += (disc_real)(2 * mu) * w[i];
  }
  return mu * square;
}
