// The softened plane-box manifold of the published code (arXiv 2506.14186, appendix on smooth
// collision): four contact points that are soft choices among a box's corners, so that they move
// smoothly where the hard choice would jump.
#pragma once

struct softplane {     // forward values that the adjoint needs
  double corner[8][3]; // body frame
  double normal[3], height, softness;
  double support[8], mask[8];
  double smax, threshold;
  struct soft_choice {
    double z[8], t[8], p[8], deviation;
  } first, a, b, c, d; // deepest; the four points
  double point[4][3];  // a b c d in the body frame
  struct soft_area {   // soft absolute values: argument, sigmoid
    double x[8], p[8];
  } area[3];
};

// normal: the plane's in the body frame; height: of the box's centre above it.
void softplane_fwd(struct softplane *s, const double half[3], const double normal[3], double height,
                   double softness);
// Cotangents of the four points -> of normal, height and half sizes (added to).
void softplane_bwd(double normal_bar[3], double *height_bar, double half_bar[3],
                   const struct softplane *s, const double point_bar[4][3]);
