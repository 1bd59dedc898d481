// One or two free bodies over a plane under MuJoCo's soft contact (pyramidal cones, condim 3): the
// right-hand side qacc = f(t, qpos, qvel) of the tossed objects and the billiard of arXiv
// 2506.14186, exactly solved, and its adjoint by the implicit function theorem at the converged
// active set. Plain doubles, one instance; the articulated, lane-wide form of the same law belongs
// to the simulator.
//
// Every body is a free joint: qpos x y z qw qx qy qz, qvel linear in world axes, angular in body
// axes. Plane: z = floor, normal up.
#pragma once
#include "sim/ode.h"
#include "sim/softlaw.h"

enum freebody_shape {
  FREEBODY_SPHERE,    // size: radius
  FREEBODY_CAPSULE,   // radius, half length of the axis (body z)
  FREEBODY_ELLIPSOID, // three semi-axes
  FREEBODY_CYLINDER,  // radius, half length
  FREEBODY_BOX,       // three half sizes
  FREEBODY_SOFT_BOX,  // the same with the softened manifold (sim/softplane.h)
};

struct freebody {
  enum freebody_shape shape;
  double size[3];
  double mass, inertia[3]; // principal, body axes
  double damping;          // of the free joint, N s/m and N m s
};
// Mass and inertia of a homogeneous body as MuJoCo's compiler has them.
void freebody_set_density(struct freebody *b, double density);

enum freebody_input { // what the parameters u are
  FREEBODY_NO_INPUT,
  FREEBODY_RAMP, // u = (Fx, Fy) on body 0 at t = 0, falling linearly to 0 at `knot`
  FREEBODY_HOLD, // the same force up to `knot`, then none
  FREEBODY_SIDE, // u = (side) of a cube, body 0; its mass stays, its inertia follows
};

enum { FREEBODY_MAX = 2, FREEBODY_MAX_CONTACTS = 20 };

struct freebody_scene {
  int nbody;
  struct freebody body[FREEBODY_MAX];
  bool plane, pair; // contact of every body with the plane; of body 0 with body 1 (spheres)
  double floor;     // height of the plane
  double friction_plane, friction_pair;
  struct soft_law law;
  double gravity[3], impratio, softness;
  enum freebody_input input;
  double knot;
  struct cfd cfd; // on: the adjoint is that of the soft pass at the hard state (straight-through);
                  // the forward pass does not look at it
  bool cfd_forward; // the forward pass uses it too: what straight-through avoids
  struct ode_quat quat[FREEBODY_MAX];
};

// Gravity -9.81, MuJoCo's default contact, no bodies.
struct freebody_scene freebody_scene_default(void);
// The scene as a system to integrate; the scene must outlive it.
struct ode_system freebody_system(struct freebody_scene *s);
// Height of a body's lowest point over the plane.
double freebody_clearance(const struct freebody_scene *s, int body, const double *qpos);
