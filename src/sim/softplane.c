// Twins of the softened manifold. Corners are indexed by sign bits (x: bit 0).
#include "sim/softplane.h"
#include "sim/rotation.h"
#include "sim/scalar_math.h"
#include <math.h>
#include <string.h>

static double sigmoid(double x) {
  double e = scalar_exp(-fabs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

static void sigmoid_each(double y[8], const double x[8]) {
  double e[8];
  for (int i = 0; i < 8; i++) {
    e[i] = -fabs(x[i]);
  }
  scalar_exp_each(e, e, 8);
  for (int i = 0; i < 8; i++) {
    y[i] = (x[i] >= 0 ? 1 : e[i]) / (1 + e[i]);
  }
}

// ---- soft argmax over the corners: standardised, squashed, then a softmax

static void choice_fwd(struct soft_choice *o, const double x[8], double softness) {
  double mean = 0, variance = 0, sum = 0, high = 0;
  for (int i = 0; i < 8; i++) {
    mean += x[i] / 8;
  }
  for (int i = 0; i < 8; i++) {
    variance += (x[i] - mean) * (x[i] - mean) / 8;
  }
  o->deviation = sqrt(variance + 1e-6);
  for (int i = 0; i < 8; i++) {
    o->t[i] = (x[i] - mean) / o->deviation;
  }
  sigmoid_each(o->z, o->t);
  for (int i = 0; i < 8; i++) {
    high = fmax(high, o->z[i]);
  }
  for (int i = 0; i < 8; i++) {
    o->p[i] = (o->z[i] - high) / softness;
  }
  scalar_exp_each(o->p, o->p, 8);
  for (int i = 0; i < 8; i++) {
    sum += o->p[i];
  }
  for (int i = 0; i < 8; i++) {
    o->p[i] /= sum;
  }
}

static void choice_bwd(double x_bar[8], const struct soft_choice *o, const double p_bar[8],
                       double softness) {
  double mean_p = 0, t_bar[8], mean_t = 0, mean_tt = 0;
  for (int i = 0; i < 8; i++) {
    mean_p += o->p[i] * p_bar[i];
  }
  for (int i = 0; i < 8; i++) {
    t_bar[i] = o->p[i] * (p_bar[i] - mean_p) / softness * o->z[i] * (1 - o->z[i]);
    mean_t += t_bar[i] / 8;
    mean_tt += t_bar[i] * o->t[i] / 8;
  }
  for (int i = 0; i < 8; i++) {
    x_bar[i] += (t_bar[i] - mean_t - o->t[i] * mean_tt) / o->deviation;
  }
}

static void weighted(double o[3], const struct soft_choice *w, const double corner[8][3]) {
  memset(o, 0, sizeof(double[3]));
  for (int i = 0; i < 8; i++) {
    vec3_add(o, corner[i], w->p[i]);
  }
}

static void weighted_bwd(double p_bar[8], double corner_bar[8][3], const double o_bar[3],
                         const struct soft_choice *w, const double corner[8][3]) {
  for (int i = 0; i < 8; i++) {
    p_bar[i] = vec3_dot(o_bar, corner[i]);
    vec3_add(corner_bar[i], o_bar, w->p[i]);
  }
}

// ---- soft absolute value of the area that corner v spans: x (2 sigmoid(x / softness) - 1) with
// x = (from - v) . (n x (from - to)); out += that of each corner. Keeps x and the sigmoid.

static void areas_fwd(double out[8], struct soft_area *o, const double n[3], const double from[3],
                      const double to[3], const double corner[8][3], double softness) {
  double edge[3] = {from[0] - to[0], from[1] - to[1], from[2] - to[2]}, side[3], scaled[8];
  vec3_cross(side, n, edge);
  for (int i = 0; i < 8; i++) {
    const double *v = corner[i];
    o->x[i] = (from[0] - v[0]) * side[0] + (from[1] - v[1]) * side[1] + (from[2] - v[2]) * side[2];
    scaled[i] = o->x[i] / softness;
  }
  sigmoid_each(o->p, scaled);
  for (int i = 0; i < 8; i++) {
    out[i] += o->x[i] * (2 * o->p[i] - 1);
  }
}

static void areas_bwd(double n_bar[3], double from_bar[3], double to_bar[3],
                      double corner_bar[8][3], const double bar[8], const struct soft_area *o,
                      const double n[3], const double from[3], const double to[3],
                      const double corner[8][3], double softness) {
  double edge[3] = {from[0] - to[0], from[1] - to[1], from[2] - to[2]}, side[3], cross[3];
  vec3_cross(side, n, edge);
  for (int i = 0; i < 8; i++) {
    const double *v = corner[i];
    double lever[3] = {from[0] - v[0], from[1] - v[1], from[2] - v[2]}, p = o->p[i];
    double x_bar = bar[i] * (2 * p - 1 + 2 * o->x[i] / softness * p * (1 - p));
    vec3_add(from_bar, side, x_bar);
    vec3_add(corner_bar[i], side, -x_bar);
    vec3_cross(cross, edge, lever); // lever . (n x edge) = n . (edge x lever)
    vec3_add(n_bar, cross, x_bar);
    vec3_cross(cross, lever, n); // = edge . (lever x n)
    vec3_add(from_bar, cross, x_bar);
    vec3_add(to_bar, cross, -x_bar);
  }
}

// ---- the manifold

static const double far_off = -1e6, deepest_band = 1e-3, mask_offset = 1e-10;

static double corner_sign(int i, int axis) {
  return i >> axis & 1 ? 1 : -1;
}

void softplane_fwd(struct softplane *s, const double half[3], const double normal[3], double height,
                   double softness) {
  double x[8], m[8], *a = s->point[0], *b = s->point[1], *c = s->point[2], *d = s->point[3];
  memcpy(s->normal, normal, sizeof s->normal);
  s->height = height;
  s->softness = softness;
  for (int i = 0; i < 8; i++) {
    for (int k = 0; k < 3; k++) {
      s->corner[i][k] = corner_sign(i, k) * half[k];
    }
    s->support[i] = -(height + vec3_dot(normal, s->corner[i]));
  }

  // corners near the deepest one
  choice_fwd(&s->first, s->support, softness);
  s->smax = 0;
  for (int i = 0; i < 8; i++) {
    s->smax += s->first.p[i] * s->support[i];
  }
  double y = (s->smax - deepest_band) / softness;
  s->threshold = y > 0 ? softness * (y + scalar_log1p(scalar_exp(-y)))
                       : softness * scalar_log1p(scalar_exp(y));
  for (int i = 0; i < 8; i++) {
    x[i] = (s->support[i] - s->threshold + mask_offset) / softness;
  }
  sigmoid_each(s->mask, x);
  for (int i = 0; i < 8; i++) {
    m[i] = far_off * (1 - s->mask[i]);
  }

  // four of them that span a large area
  choice_fwd(&s->a, m, softness);
  weighted(a, &s->a, s->corner);
  for (int i = 0; i < 8; i++) {
    double v[3] = {a[0] - s->corner[i][0], a[1] - s->corner[i][1], a[2] - s->corner[i][2]};
    x[i] = vec3_dot(v, v) + m[i];
  }
  choice_fwd(&s->b, x, softness);
  weighted(b, &s->b, s->corner);
  memcpy(x, m, sizeof x);
  areas_fwd(x, &s->area[0], normal, a, b, s->corner, softness);
  choice_fwd(&s->c, x, softness);
  weighted(c, &s->c, s->corner);
  for (int i = 0; i < 8; i++) {
    x[i] = 2 * m[i];
  }
  areas_fwd(x, &s->area[1], normal, b, c, s->corner, softness);
  areas_fwd(x, &s->area[2], normal, a, c, s->corner, softness);
  choice_fwd(&s->d, x, softness);
  weighted(d, &s->d, s->corner);
}

void softplane_bwd(double normal_bar[3], double *height_bar, double half_bar[3],
                   const struct softplane *s, const double point_bar[4][3]) {
  double bar[4][3], corner_bar[8][3] = {{0}}, m_bar[8] = {0}, x_bar[8], p_bar[8];
  const double *a = s->point[0], *b = s->point[1], *c = s->point[2], *n = s->normal;
  double softness = s->softness;
  memcpy(bar, point_bar, sizeof bar);

  weighted_bwd(p_bar, corner_bar, bar[3], &s->d, s->corner);
  memset(x_bar, 0, sizeof x_bar);
  choice_bwd(x_bar, &s->d, p_bar, softness);
  areas_bwd(normal_bar, bar[1], bar[2], corner_bar, x_bar, &s->area[1], n, b, c, s->corner,
            softness);
  areas_bwd(normal_bar, bar[0], bar[2], corner_bar, x_bar, &s->area[2], n, a, c, s->corner,
            softness);
  for (int i = 0; i < 8; i++) {
    m_bar[i] += 2 * x_bar[i];
  }
  weighted_bwd(p_bar, corner_bar, bar[2], &s->c, s->corner);
  memset(x_bar, 0, sizeof x_bar);
  choice_bwd(x_bar, &s->c, p_bar, softness);
  areas_bwd(normal_bar, bar[0], bar[1], corner_bar, x_bar, &s->area[0], n, a, b, s->corner,
            softness);
  for (int i = 0; i < 8; i++) {
    m_bar[i] += x_bar[i];
  }
  weighted_bwd(p_bar, corner_bar, bar[1], &s->b, s->corner);
  memset(x_bar, 0, sizeof x_bar);
  choice_bwd(x_bar, &s->b, p_bar, softness);
  for (int i = 0; i < 8; i++) {
    for (int k = 0; k < 3; k++) {
      double x = 2 * x_bar[i] * (a[k] - s->corner[i][k]);
      bar[0][k] += x;
      corner_bar[i][k] -= x;
    }
    m_bar[i] += x_bar[i];
  }
  weighted_bwd(p_bar, corner_bar, bar[0], &s->a, s->corner);
  choice_bwd(m_bar, &s->a, p_bar, softness);

  double support_bar[8], threshold_bar = 0;
  for (int i = 0; i < 8; i++) {
    double arg = -far_off * m_bar[i] * s->mask[i] * (1 - s->mask[i]) / softness;
    support_bar[i] = arg;
    threshold_bar -= arg;
  }
  double smax_bar = threshold_bar * sigmoid((s->smax - deepest_band) / softness);
  for (int i = 0; i < 8; i++) {
    p_bar[i] = smax_bar * s->support[i];
    support_bar[i] += smax_bar * s->first.p[i];
  }
  choice_bwd(support_bar, &s->first, p_bar, softness);
  for (int i = 0; i < 8; i++) {
    *height_bar -= support_bar[i];
    vec3_add(normal_bar, s->corner[i], -support_bar[i]);
    vec3_add(corner_bar[i], n, -support_bar[i]);
    for (int k = 0; k < 3; k++) {
      half_bar[k] += corner_sign(i, k) * corner_bar[i][k];
    }
  }
}
