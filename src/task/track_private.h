// What the lane builds and the plain code of task/ share; nobody else includes it.
#pragma once
#include "task/track.h"

enum { TRACK_AHEAD = 3 }; // an observation shows the reference at frame+1 .. frame+TRACK_AHEAD

// Reference features of one frame, in this order. The groups that are read together are neighbours:
// a slot of the compact observation is JOINT_POS .. ROOT_ROT, one of the paper's ROOT_POS ..
// KEY_POS, the reward's reference JOINT_POS .. ROOT_POS and KEY_POS .. the end. World axes unless
// said otherwise; a rotation's six numbers are R e_x, then R e_z. A new consumer appends what it
// lacks and fills it in features.c.
enum track_feature {
  FEAT_JOINT_POS, // nu: joint positions minus the default pose, actuator order
  FEAT_ROOT_POS,  // 3
  FEAT_ROOT_ROT,  // 6
  FEAT_JOINT_ROT, // 6 nrot: rotation of every joint about its own axis (none for compact)
  FEAT_KEY_POS,   // 3 nkey: key bodies relative to the root
  FEAT_ROOT_VEL,  // 3
  FEAT_ROOT_RATE, // 3: angular velocity in body axes, as in qvel
  FEAT_JOINT_VEL, // nu
  FEAT_ROOT_QUAT, // 4
  // only where the paper's residual is wanted
  FEAT_BODY_POS,   // 3 nbody: every body relative to the root
  FEAT_WORLD_RATE, // 3: angular velocity in world axes
  FEAT_COUNT,
};

// A joint as the paper's observation and residual show it. R(angle) e_x and R(angle) e_z, stacked,
// are fixed + c cos(angle) + s sin(angle); a welded body counts as a joint that never turns (qadr
// -1).
struct track_rot {
  int qadr, dof;
  double fixed[6], c[6], s[6];
};

struct track_private {
  int at[FEAT_COUNT + 1]; // first number of each feature group; at[FEAT_COUNT] = nfeat
  int root;               // body of the free joint
  int *qadr, *dof;        // (nu) of each actuator's joint
  int nrot, nturn;        // joints shown by their rotation; those that turn
  struct track_rot *rot;  // (nrot) in the order of the bodies
  int nbody, *body;       // bodies of the paper's residual: all that move, the root among them
};

// One thread's scratch, lane arrays.
struct track_work {
  int width;
  double *feat;       // (nfeat, W) gathered features
  double *key, *dkey; // (nkey, 3, W) key bodies relative to the root, and their cotangents
  double *dres;       // (nres, W) cotangents of what the residual shows of the robot
};

// Joint rotations are wanted, by the paper's observation or its residual.
bool track_shows_rotations(const struct spec *s);

// features.c: lays out and fills t->feat (and priv->rot, priv->at); names the observation's blocks
// and fills t->nobs, t->noise. Expects pose, key, qadr and dof.
void track_layout_features(struct track *t, struct arena *a);
void track_layout_observation(struct track *t, struct arena *a);
