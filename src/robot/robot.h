// A robot as dsim simulates it: a tree of links, one joint each, read from MJCF through MuJoCo's
// own compiler. MuJoCo's bodies survive as named frames on links (welded bodies share a link; a
// body with several joints becomes a chain of links, the last of which carries it).
//
// A link's frame sits at its joint's anchor. A hinge turns about, and a slide moves along, one
// coordinate axis of the link's frame: frames are turned at load time so that this holds.
//
// State layout is MuJoCo's: qpos (free: xyz, quaternion wxyz; ball: quaternion; hinge, slide: one
// number), qvel (free: linear in world axes, angular in body axes). Names, order of joints and
// order of actuators are the MJCF's.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>

enum { ROBOT_MAX_LINK = 256 };
enum joint_type { JOINT_FREE, JOINT_BALL, JOINT_SLIDE, JOINT_HINGE };
enum geom_type { GEOM_PLANE, GEOM_SPHERE, GEOM_CAPSULE, GEOM_ELLIPSOID, GEOM_CYLINDER, GEOM_BOX };

struct robot_link {
  const char *joint_name;
  int parent; // link index, -1 when it hangs on the world; parents come first
  enum joint_type type;
  int qadr, dof; // first qpos and first DoF
  int nq, ndof;  // 7/6, 4/3, 1/1, 1/1
  int axis;      // hinge, slide: 0, 1, 2 = x, y, z of the link frame
  double pos[3]; // frame origin in the parent link's frame (qpos = 0 for a slide)
  double rot[9]; // link axes in the parent link's frame, row-major, at zero joint angle
  bool rot_is_identity;
  double mass;       // of all bodies on the link; 0 for the inner links of a multi-joint body
  double com[3];     // link frame
  double inertia[3]; // principal moments about the centre of mass
  double iaxes[9];   // principal axes in the link frame, row-major (columns are axes)
};

struct robot_dof {
  int link, parent; // parent: previous DoF towards the root, -1 at the root
  double armature, damping, frictionloss;
  double stiffness, springref; // joint spring; hinge and slide
  double invweight;            // MuJoCo's dof_invweight0
  bool limited;                // hinge and slide
  double range[2], solref_limit[2], solimp_limit[5], margin;
  double solref_friction[2], solimp_friction[5]; // of the dry friction
};

// A frame fixed to a link (or to the world: link -1): one per MuJoCo body, world first.
struct robot_body {
  const char *name;
  int link, parent;      // parent body index; 0 is the world
  double pos[3], rot[9]; // in the link frame
  double mass;
  double invweight[2]; // MuJoCo's body_invweight0 (translation, rotation)
};

struct robot_geom {
  const char *name; // "" when the MJCF gives none
  enum geom_type type;
  int body, link;
  double pos[3], rot[9]; // in the link frame (world frame for link -1)
  double size[3];        // as in MJCF: radius; radius, half length; semi-axes or half sizes
  double friction[3], solref[2], solimp[5], margin, gap, solmix;
  int condim, contype, conaffinity, priority;
};

// force = clamp(gain * ctrl + bias[0] + bias[1] * length + bias[2] * velocity), times gear on the
// DoF; length = gear * qpos, velocity = gear * qvel.
struct robot_actuator {
  const char *name;
  int dof, qadr;
  double gear, gain, bias[3];
  bool ctrl_limited, force_limited;
  double ctrl_range[2], force_range[2];
};

struct robot_key {
  const char *name;
  const double *qpos, *qvel, *ctrl;
};

struct robot {
  const char *name, *path;
  char sha256[65]; // of the MJCF file
  int nq, nv, nu, nlink, nbody, ngeom, nkey;
  struct robot_link *link;
  struct robot_dof *dof;
  struct robot_body *body;
  struct robot_geom *geom;
  struct robot_actuator *actuator;
  struct robot_key *key;
  double *qpos0;
  double gravity[3], timestep, impratio;
  int cone;            // 0 pyramidal, 1 elliptic
  bool refsafe;        // MuJoCo keeps solref's time constant above two time steps
  bool self_collision; // the MJCF lets parts of the robot touch each other; dsim does not simulate
                       // it
  double total_mass;
};

// Reads path (looked up with file_find). What the model asks for and dsim does not simulate
// (tendons, equality constraints, meshes, height fields, muscles, fluid, site actuators, tilted
// planes, ...) is refused by element and name; with warn_only each becomes a warning and is left
// out. Not refused, because most robots have them: contacts between parts of the robot itself
// (self_collision tells), and MuJoCo's own numerics (integrator, solver, iterations). Geoms that
// collide with nothing (contype = conaffinity = 0) are dropped, and so are sites, sensors, cameras
// and everything else that is only looked at. A joint's ref is folded into the link's rest frame.
// At most one plane, the floor: horizontal, on the world. Errors: EXIT_USAGE.
int robot_load(struct robot *r, struct arena *a, const char *path, bool warn_only, struct err *e);

int robot_find_body(const struct robot *r, const char *name);     // index, or -1
int robot_find_joint(const struct robot *r, const char *name);    // link index, or -1
int robot_find_actuator(const struct robot *r, const char *name); // index, or -1
int robot_find_key(const struct robot *r, const char *name);      // index, or -1
bool robot_geoms_collide(const struct robot_geom *a, const struct robot_geom *b); // by their masks
const char *robot_dof_name(const struct robot *r, int dof, char buf[64]); // "knee", "root.wx", ...

// Poses of all bodies by plain scalar kinematics: xpos (nbody,3), xmat (nbody,9) row-major; either
// may be NULL. For reports, motions and tests; the simulator has its own lanes.
void robot_fk(const struct robot *r, const double *qpos, double *xpos, double *xmat);
// World Jacobian (3, nv) of a point fixed to a link (local: in the link's frame), qvel's
// conventions.
void robot_jacobian(const struct robot *r, double *jac, const double *qpos, int link,
                    const double local[3]);
// q (nq) moved by the tangent vector dv (nv), MuJoCo's mj_integratePos with dt = 1.
void robot_integrate(const struct robot *r, double *qpos, const double *dv);
// dv with qb = qa moved by dv (body-frame rotation), MuJoCo's mj_differentiatePos with dt = 1.
void robot_difference(const struct robot *r, double *dv, const double *qa, const double *qb);
