// Clouds of state gradients: where a foot lands hard, how does the robot's vertical speed some
// control steps later depend on its state now, and how much do slightly different landings differ
// in that (arXiv 2609.30951, Fig. 4)?
//
// A contact is a state at which a bundle opened (the substep's start), with its B perturbed
// branches. From there on all instances run under the same controls: what the policy asks for along
// the unperturbed one, without exploration. The gradient of each instance's final vertical speed of
// the root, with respect to its own state at the start, is a point (2 nv numbers: tangent of qpos,
// then qvel). The bundle's point is the mean of its branches' (bundles average states, so that
// speeds and their gradients are averaged too); the plain one is that of the unperturbed state.
// Robots have nominal parameters.
#pragma once
#include "learn/shac.h"

struct gradcloud_contact {
  int frame, first; // of the control step; its substep where the branches begin
  int size;         // branches; at most B
  double *state;    // (1 + B, nq + nv): unperturbed, then the branches
  double *ctrl;     // (nu) of the control step
};

struct gradcloud {
  const struct world *world;
  int B,
      longest; // most branches of a contact; control steps that a contact is followed for at most
  int n, capacity;
  struct gradcloud_contact *contact; // (n)
};

// Room for `capacity` contacts of a learner with bundles.
void gradcloud_new(struct gradcloud *c, struct arena *a, const struct shac *s, int capacity,
                   int longest);
// Adds up to `most` of the contacts of the window that s just rolled, evenly spread over them;
// those too near to the clip's end are passed over.
void gradcloud_collect(struct gradcloud *c, const struct shac *s, int most);
// grad (nlength, n, 1 + B, 2 nv): gradients after length[i] control steps, the one of the contact
// included; lengths rise and are at most c->longest. NaN where a state left the finite numbers, and
// for branches that an adaptive bundle has not.
// Uses s's policy and threads; the numbers do not depend on how many there are.
void gradcloud_gradients(double *grad, struct arena *a, const struct gradcloud *c,
                         const struct shac *s, const int *length, int nlength);

enum gradcloud_variant { GRADCLOUD_PLAIN, GRADCLOUD_BRANCH, GRADCLOUD_BUNDLE, GRADCLOUD_NVARIANT };
extern const char *const gradcloud_variants[GRADCLOUD_NVARIANT];
// The points of a variant at one length (grad of that length): point (at most n * B, 2 nv), contact
// of each, branch of each (-1: none); points that are not finite are left out. Returns the number.
int gradcloud_points(double *point, int *contact, int *branch, const struct gradcloud *c,
                     const double *grad, enum gradcloud_variant variant);

struct gradcloud_spread {
  double norm_median;      // |g|
  double deviation;        // sqrt of the trace of the points' covariance
  double direction_spread; // 1 - |mean of g / |g||^2
};
void gradcloud_spread(struct gradcloud_spread *s, struct arena *a, const double *point, int n,
                      int size);
