// Kinematics and inverse dynamics of one robot along a trajectory, for the clip generator: plain
// scalar code on struct robot, exact Jacobians, finite differences in time.
//
// Only robots made of one free joint and hinges (synth_kin_supports). DoF order and tangent space
// are the robot's: free joint = world translation, body-axis rotation.
#pragma once
#include "base/arena.h"
#include "robot/robot.h"

struct synth_kin {   // one frame
  double *pos, *rot; // (nlink,3), (nlink,9) link frames in the world
  double *com;       // (nlink,3) centres of mass
  double *inertia;   // (nlink,9) about the centre of mass, world axes
  double *anchor;    // (nv,3) a point on the axis of each rotational DoF
  double *axis;      // (nv,3) its direction; direction of motion for the first three (translations)
  double *com_jac;   // (nlink,3,nv) d com / d tangent
  double mean[3];    // centre of mass of the robot
  double *mean_jac;  // (3,nv)
};

bool synth_kin_supports(const struct robot *r);
void synth_kin_new(struct synth_kin *k, struct arena *a, const struct robot *r);
void synth_kin_update(struct synth_kin *k, const struct robot *r, const double *qpos);
// World position of a point fixed to a link.
void synth_kin_point(double x[3], const struct synth_kin *k, int link, const double local[3]);
// Jacobians (3,nv) of a world point carried by a link, and of the link's rotation (world axes).
void synth_kin_point_jac(double *jac, const struct synth_kin *k, const struct robot *r, int link,
                         const double x[3]);
void synth_kin_rot_jac(double *jac, const struct synth_kin *k, const struct robot *r, int link);

// Angular momentum about the centre of mass, half way between two frames dt apart.
void synth_kin_momentum(double l[3], const struct synth_kin *k0, const struct synth_kin *k1,
                        const struct robot *r, double dt);
// Force and moment about the origin of the world that the outside must apply to the robot at frame
// k (neighbours kp, kn; the contact forces of a motion that obeys Newton), and the torques (nv; 0
// on the free joint) the joints need when nothing touches the robot. qacc (nv) for the armature.
// A contact force f at x then changes torque j by -axis_j . ((x - anchor_j) x f) for links below j.
void synth_kin_inverse(double force[3], double moment[3], double *torque,
                       const struct synth_kin *kp, const struct synth_kin *k,
                       const struct synth_kin *kn, const struct robot *r, const double *qacc,
                       double dt);

// small vector helpers shared by the generator's files
static inline void cross3(double c[3], const double a[3], const double b[3]) {
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}
static inline double dot3(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static inline void mul33(double c[9], const double a[9], const double b[9]) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
    }
  }
}
static inline void mul33_vec(double y[3], const double a[9], const double x[3]) {
  for (int i = 0; i < 3; i++) {
    y[i] = dot3(a + 3 * i, x);
  }
}
void rot_from_quat(double m[9], const double q[4]); // wxyz, unit
void rot_log(double v[3], const double a[9],
             const double b[9]); // log(a b'): from b to a, world axes
