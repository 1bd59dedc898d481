// Vectors, unit quaternions (wxyz) and the exponential chart of rotations in plain doubles, with
// the adjoints that integrators need. Tangent vectors of rotations are in body axes:
// dR = R [delta]x, so q (+) delta = q * exp(delta).
#pragma once

static inline double vec3_dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static inline void vec3_cross(double o[3], const double a[3], const double b[3]) {
  double x = a[1] * b[2] - a[2] * b[1];
  double y = a[2] * b[0] - a[0] * b[2];
  double z = a[0] * b[1] - a[1] * b[0];
  o[0] = x;
  o[1] = y;
  o[2] = z;
}
static inline void vec3_add(double o[3], const double a[3], double scale) {
  o[0] += scale * a[0];
  o[1] += scale * a[1];
  o[2] += scale * a[2];
}
static inline void mat3_mul(double o[3], const double R[9], const double x[3]) { // o = R x
  for (int i = 0; i < 3; i++) {
    o[i] = R[3 * i] * x[0] + R[3 * i + 1] * x[1] + R[3 * i + 2] * x[2];
  }
}
static inline void mat3_tmul(double o[3], const double R[9], const double x[3]) { // o = R' x
  for (int i = 0; i < 3; i++) {
    o[i] = R[i] * x[0] + R[3 + i] * x[1] + R[6 + i] * x[2];
  }
}
void quat_matrix(double R[9], const double q[4]); // world <- body

// out = normalised q * exp(delta); out may be q
void quat_shift(double out[4], const double q[4], const double delta[3]);
// Cotangent of out -> of q (added) and of delta (added): Exp(delta) bar, J_r(delta)' bar.
void quat_shift_bwd(double q_bar[3], double delta_bar[3], const double out_bar[3],
                    const double delta[3]);
// delta with b = a * exp(delta), |delta| <= pi
void quat_difference(double delta[3], const double a[4], const double b[4]);

// Rate of the chart coordinate theta under the body rate omega: theta' = J_r(theta)^-1 omega, the
// inverse of the right-trivialised tangent of exp (Munthe-Kaas, BIT 38, 1998). Its adjoint adds.
void chart_rate(double rate[3], const double theta[3], const double omega[3]);
void chart_rate_bwd(double theta_bar[3], double omega_bar[3], const double rate_bar[3],
                    const double theta[3], const double omega[3]);
