// MuJoCo's soft constraint law for one contact (its documentation, "Computation: constraint
// model"), and Contacts From Distance (arXiv 2506.14186): the same law reaching out to a width, in
// the backward pass only.
//
//   r       signed distance: < 0 inside
//   d(r)    impedance, rises from solimp[0] at r = 0 to solimp[1] at |r| = solimp[2]
//   aref    -B u - K d r   with u the contact's velocity
//   regulariser R = (1 - d)/d * (diagonal of the inverse inertia), D = 1/R
#pragma once
#include <stdbool.h>

struct soft_law {
  double solref[2]; // time constant (s), damping ratio; both <= 0: -stiffness, -damping
  double solimp[5]; // dmin dmax width mid power
  double step;      // refsafe: the time constant is at least 2 steps of this size; 0: as given
};

enum cfd_spring {
  CFD_RELU,     // the released code's: no spring outside, min(r, 0)
  CFD_SOFTPLUS, // the paper text's: -softplus(-beta r) / beta, beta = 10 / width
};
struct cfd {
  bool on;
  enum cfd_spring spring;
  double solimp[5]; // d at the width, d at r = 0+, width w_c (m), mid, power
};
struct cfd cfd_default(void); // off; (0, 0.01, 0.05, 1, 2)

struct soft_point {
  double d, d_slope; // impedance, its derivative by r
  double s, s_slope; // spring's deflection: K d s in aref; derivative by r
};

// Stiffness K and damping B of the reference acceleration.
void soft_reference(double *K, double *B, const struct soft_law *l);
// The hard law at r, where the contact acts. d is even in r, so it goes on smoothly through r = 0.
struct soft_point soft_point_at(const struct soft_law *l, double r);
// The soft pass. inside: whether the hard law holds here; false and r >= width: d = 0.
struct soft_point cfd_point_at(const struct soft_law *l, const struct cfd *c, double r,
                               bool inside);
