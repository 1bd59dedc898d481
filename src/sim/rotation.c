#include "sim/rotation.h"
#include "sim/scalar_math.h"
#include <math.h>

void quat_matrix(double R[9], const double q[4]) {
  double a = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = 1 - 2 * (y * y + z * z);
  R[1] = 2 * (x * y - a * z);
  R[2] = 2 * (x * z + a * y);
  R[3] = 2 * (x * y + a * z);
  R[4] = 1 - 2 * (x * x + z * z);
  R[5] = 2 * (y * z - a * x);
  R[6] = 2 * (x * z - a * y);
  R[7] = 2 * (y * z + a * x);
  R[8] = 1 - 2 * (x * x + y * y);
}

// cos(angle / 2) and sin(angle / 2) / angle
static void half_angle(double *c, double *s, const double delta[3]) {
  double square = vec3_dot(delta, delta);
  if (square < 1e-6) { // Taylor, exact to the last digit here
    *c = 1 - square * (1.0 / 8 - square / 384);
    *s = 0.5 - square * (1.0 / 48 - square / 3840);
  } else {
    double angle = sqrt(square);
    scalar_sincos(0.5 * angle, s, c);
    *s /= angle;
  }
}

void quat_shift(double out[4], const double q[4], const double delta[3]) {
  double c, s;
  half_angle(&c, &s, delta);
  double x = s * delta[0], y = s * delta[1], z = s * delta[2];
  double p[4] = {
      q[0] * c - q[1] * x - q[2] * y - q[3] * z,
      q[0] * x + q[1] * c + q[2] * z - q[3] * y,
      q[0] * y - q[1] * z + q[2] * c + q[3] * x,
      q[0] * z + q[1] * y - q[2] * x + q[3] * c,
  };
  double scale = 1 / sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
  for (int i = 0; i < 4; i++) {
    out[i] = scale * p[i];
  }
}

// (1 - cos a) / a^2 and (a - sin a) / a^3 of the right Jacobian
static void right_jacobian(double *c1, double *c2, double square) {
  if (square < 0.01) {
    *c1 = 1.0 / 2 - square * (1.0 / 24 - square * (1.0 / 720 - square / 40320));
    *c2 = 1.0 / 6 - square * (1.0 / 120 - square * (1.0 / 5040 - square / 362880));
  } else {
    double angle = sqrt(square), s, c;
    scalar_sincos(angle, &s, &c);
    *c1 = (1 - c) / square;
    *c2 = (angle - s) / (square * angle);
  }
}

void quat_shift_bwd(double q_bar[3], double delta_bar[3], const double out_bar[3],
                    const double delta[3]) {
  double square = vec3_dot(delta, delta), c1, c2, once[3], twice[3];
  right_jacobian(&c1, &c2, square);
  vec3_cross(once, delta, out_bar);
  vec3_cross(twice, delta, once);
  // Exp(d) = 1 + (sin a / a) [d] + c1 [d]^2, with sin a / a = 1 - a^2 c2
  // J_r(d)' = 1 + c1 [d] + c2 [d]^2
  for (int i = 0; i < 3; i++) {
    q_bar[i] += out_bar[i] + (1 - square * c2) * once[i] + c1 * twice[i];
    delta_bar[i] += out_bar[i] + c1 * once[i] + c2 * twice[i];
  }
}

void quat_difference(double delta[3], const double a[4], const double b[4]) {
  double w = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  double v[3] = {
      a[0] * b[1] - a[1] * b[0] - a[2] * b[3] + a[3] * b[2],
      a[0] * b[2] + a[1] * b[3] - a[2] * b[0] - a[3] * b[1],
      a[0] * b[3] - a[1] * b[2] + a[2] * b[1] - a[3] * b[0],
  };
  double sign = w < 0 ? -1 : 1, s = sqrt(vec3_dot(v, v));
  double scale = sign * (s < 1e-10 ? 2 : 2 * atan2(s, sign * w) / s);
  for (int i = 0; i < 3; i++) {
    delta[i] = scale * v[i];
  }
}

// c(s) of J_r(theta)^-1 = 1 + 1/2 [theta] + c(theta^2) [theta]^2, and dc/ds: Bernoulli numbers
static void chart_coefficient(double *c, double *slope, double s) {
  if (s < 0.0625) {
    static const double k[6] = {1.0 / 12,      1.0 / 720,      1.0 / 30240,
                                1.0 / 1209600, 1.0 / 47900160, 691.0 / 1307674368000.0};
    *c = 0;
    *slope = 0;
    for (int i = 5; i >= 0; i--) {
      *slope = *slope * s + *c;
      *c = *c * s + k[i];
    }
  } else {
    double angle = sqrt(s), sine, cosine;
    scalar_sincos(0.5 * angle, &sine, &cosine);
    double alpha = 0.5 * angle * cosine / sine;
    *c = (1 - alpha) / s;
    // d alpha / ds = (cot(a/2) / 2 - a / (4 sin^2(a/2))) / (2 a)
    double dalpha = (0.5 * cosine / sine - 0.25 * angle / (sine * sine)) / (2 * angle);
    *slope = -(dalpha + *c) / s;
  }
}

void chart_rate(double rate[3], const double theta[3], const double omega[3]) {
  double c, slope, once[3], twice[3];
  chart_coefficient(&c, &slope, vec3_dot(theta, theta));
  vec3_cross(once, theta, omega);
  vec3_cross(twice, theta, once);
  for (int i = 0; i < 3; i++) {
    rate[i] = omega[i] + 0.5 * once[i] + c * twice[i];
  }
}

void chart_rate_bwd(double theta_bar[3], double omega_bar[3], const double rate_bar[3],
                    const double theta[3], const double omega[3]) {
  double square = vec3_dot(theta, theta), c, slope, once[3], twice[3], side[3];
  chart_coefficient(&c, &slope, square);
  vec3_cross(once, theta, rate_bar);
  vec3_cross(twice, theta, once);
  vec3_cross(side, omega, rate_bar);
  double to = vec3_dot(theta, omega), tr = vec3_dot(theta, rate_bar),
         ro = vec3_dot(rate_bar, omega);
  double more = 2 * slope * (tr * to - square * ro);
  for (int i = 0; i < 3; i++) {
    omega_bar[i] += rate_bar[i] - 0.5 * once[i] + c * twice[i];
    theta_bar[i] += 0.5 * side[i] + c * (rate_bar[i] * to + omega[i] * tr - 2 * theta[i] * ro) +
                    more * theta[i];
  }
}
