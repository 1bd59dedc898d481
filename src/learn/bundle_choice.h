// How many branches a bundle needs, and how far apart, from the contact that opens it: the future
// work that the bundled-contact-gradients paper (arXiv 2609.30951) names. Switched on by
// bundle.adaptive.
//
// Smoothed contact k carries f_k = s_k P_k, s = 1 / (1 + exp(kappa c)) at height c. Shifted up by x
// with P held, a link's contacts have the normal stiffness
//
//   K(x) = sum_k P_k kappa s_k (1 - s_k) at heights c_k + x,         K(0) = sum_k f_k kappa (1 -
//   s_k)
//
// and within a control step of length h a body of mass m on them answers to a shift by
// A = h^2 K / m times the shift: the sensitivity, without unit. Far below 1 the contact's
// derivative hardly shows in a gradient; above, it is most of it, and its changes from one landing
// to the next are what bundles average.
//
//   spread    sigma = the shift over which that derivative changes: the length l at which the first
//             two terms of K's Taylor series say so, 1 / l^2 = (K' / K)^2 + |K'' / K|. For one
//             contact 0.7 to 1.7 / kappa. At most bundle.sigma_p; sigma_v goes down with it.
//             Wider branches would leave the contact or sink where the law is flat, and sample
//             zeros.
//   branches  n = (standard deviation of A over shifts N(0, sigma^2) / bundle.tolerance)^2, rounded
//             up: then the mean over branches is that sure. At most bundle.size. One is none: no
//             window opens where the law is as good as linear.
//
// With several loaded links the one that asks for most branches decides for all. The choice is made
// where a window opens, of the nominal state; gradients take it as a constant, like the
// perturbations themselves.
#pragma once
#include "spec/spec.h"

struct bundle_choice {
  int size;                // branches; 1: no window opens
  double sigma_p, sigma_v; // spread of their contact's position (m) and velocity (m/s)
};

// The fixed choice of the spec.
struct bundle_choice bundle_choice_fixed(const struct spec *s);
// For a link's n contacts with forces f (N) and heights c (m), stride apart; mass: of the robot
// (kg).
struct bundle_choice bundle_choice_adaptive(const struct spec *s, const double *f, const double *c,
                                            int n, int stride, double kappa, double mass);
