#include "learn/bundle_choice.h"
#include <math.h>
#include <sleef.h>

struct bundle_choice bundle_choice_fixed(const struct spec *s) {
  return (struct bundle_choice){s->bundle_size, s->bundle_sigma_p, s->bundle_sigma_v};
}

// s = 1 / (1 + exp(z)). sleef rather than libm, whose last bit depends on the processor.
static double smooth(double z) {
  return 1 / (1 + Sleef_cinz_expd1_u10purec(fmin(fmax(z, -100), 50)));
}

struct contacts {
  const double *force, *height;
  int n, stride;
  double kappa;
};

// K(x), and K', K'' where asked for
static double stiffness(const struct contacts *c, double x, double *first, double *second) {
  double K = 0, K1 = 0, K2 = 0;
  for (int i = 0; i < c->n; i++) {
    double f = c->force[i * c->stride], height = c->height[i * c->stride];
    if (!(f > 0)) {
      continue;
    }
    double s = smooth(c->kappa * (height + x)), slope = c->kappa * s * (1 - s);
    double P = f / smooth(c->kappa * height), bend = 1 - 2 * s;
    // s falls with height: each derivative brings -kappa (1 - 2 s), the next one its own slope too
    K += P * slope;
    K1 -= P * slope * c->kappa * bend;
    K2 += P * slope * c->kappa * c->kappa * (bend * bend - 2 * s * (1 - s));
  }
  if (first) {
    *first = K1;
    *second = K2;
  }
  return K;
}

// Standard deviation of K(sigma z), z standard normal. Even steps: for a function as smooth as this
// one their error falls exponentially, and is nothing at half a deviation.
static double stiffness_spread(const struct contacts *c, double sigma) {
  double sum = 0, square = 0, weight = 0;
  for (int i = -8; i <= 8; i++) {
    double z = 0.5 * i, w = Sleef_cinz_expd1_u10purec(-0.5 * z * z);
    double K = stiffness(c, sigma * z, NULL, NULL);
    weight += w;
    sum += w * K;
    square += w * K * K;
  }
  double mean = sum / weight;
  return sqrt(fmax(square / weight - mean * mean, 0));
}

struct bundle_choice bundle_choice_adaptive(const struct spec *s, const double *f, const double *c,
                                            int n, int stride, double kappa, double mass) {
  const struct contacts contacts = {f, c, n, stride, kappa};
  struct bundle_choice choice = {1, s->bundle_sigma_p, s->bundle_sigma_v};
  double K1, K2, K = stiffness(&contacts, 0, &K1, &K2);
  if (!(K > 0) || !isfinite(K)) {
    return choice; // nothing carries anything
  }
  double l = 1 / sqrt((K1 / K) * (K1 / K) + fabs(K2 / K));
  double shrink = fmin(l / s->bundle_sigma_p, 1);
  choice.sigma_p *= shrink;
  choice.sigma_v *= shrink;
  double h = s->control_dt;
  double error = h * h * stiffness_spread(&contacts, choice.sigma_p) / mass / s->bundle_tolerance;
  double branches = ceil(error * error);
  choice.size = branches < s->bundle_size ? (int)fmax(branches, 1) : s->bundle_size;
  return choice;
}
