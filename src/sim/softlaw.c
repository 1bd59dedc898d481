#include "sim/softlaw.h"
#include "sim/scalar_math.h"
#include <math.h>

static const double min_value = 1e-15, min_impedance = 1e-4, max_impedance = 0.9999;

static double clamp(double x, double lo, double hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

struct cfd cfd_default(void) {
  return (struct cfd){.solimp = {0, 0.01, 0.05, 1, 2}};
}

void soft_reference(double *K, double *B, const struct soft_law *l) {
  double dw = clamp(l->solimp[1], min_impedance, max_impedance);
  double t = l->solref[0], ratio = l->solref[1];
  if ((t > 0) != (ratio > 0)) { // neither form: MuJoCo falls back to its default
    t = 0.02;
    ratio = 1;
  }
  if (t > 0) {
    t = t < 2 * l->step ? 2 * l->step : t;
    *K = 1 / fmax(min_value, dw * dw * t * t * ratio * ratio);
    *B = 2 / fmax(min_value, dw * t);
  } else {
    *K = -t / fmax(min_value, dw * dw);
    *B = -ratio / fmax(min_value, dw);
  }
}

// d and its derivative by x * width, x = |position| / width
static double impedance(double *slope, const double solimp[5], double position) {
  double d0 = clamp(solimp[0], min_impedance, max_impedance);
  double dw = clamp(solimp[1], min_impedance, max_impedance);
  double width = fmax(0, solimp[2]), mid = clamp(solimp[3], min_impedance, max_impedance);
  double power = fmax(1, solimp[4]);
  *slope = 0;
  if (d0 == dw || width <= min_value) {
    return 0.5 * (d0 + dw);
  }
  double x = position / width;
  if (x >= 1) {
    return dw;
  }
  double y, dy;
  if (power == 1) {
    y = x;
    dy = 1;
  } else if (power == 2) { // the default, without pow
    y = x <= mid ? x * x / mid : 1 - (1 - x) * (1 - x) / (1 - mid);
    dy = x <= mid ? 2 * x / mid : 2 * (1 - x) / (1 - mid);
  } else if (x <= mid) {
    double scale = scalar_pow(mid, power - 1);
    y = scalar_pow(x, power) / scale;
    dy = power * scalar_pow(x, power - 1) / scale;
  } else {
    double scale = scalar_pow(1 - mid, power - 1);
    y = 1 - scalar_pow(1 - x, power) / scale;
    dy = power * scalar_pow(1 - x, power - 1) / scale;
  }
  *slope = (dw - d0) * dy / width;
  return d0 + y * (dw - d0);
}

struct soft_point soft_point_at(const struct soft_law *l, double r) {
  struct soft_point p = {.s = r, .s_slope = 1};
  p.d = impedance(&p.d_slope, l->solimp, fabs(r));
  p.d_slope *= r < 0 ? -1 : 1;
  return p;
}

struct soft_point cfd_point_at(const struct soft_law *l, const struct cfd *c, double r,
                               bool inside) {
  struct soft_point p = {0};
  double width = c->solimp[2];
  if (inside) {
    p = soft_point_at(l, r);
  } else if (r < width) {
    p.d = impedance(&p.d_slope, c->solimp, width - r);
    p.d_slope = -p.d_slope;
    p.s = p.s_slope = 0;
  } else {
    return p;
  }
  if (c->spring == CFD_SOFTPLUS) {
    double beta = 10 / width, x = beta * r;
    double e = scalar_exp(-fabs(x)), log1p_e = scalar_log1p(e);
    p.s = -(x > 0 ? log1p_e : log1p_e - x) / beta;
    p.s_slope = (x > 0 ? e : 1) / (1 + e);
  }
  return p;
}
