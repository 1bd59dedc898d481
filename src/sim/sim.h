// The differentiable simulator, eight instances (lanes) at a time. This header is all that other
// layers see; the stages live in sim/*.inl and are compiled once per instruction set.
//
// Lane arrays are plain `double *` here: an array of n numbers per lane is (n, W) with the lane
// innermost, 64-byte aligned, W = kernels->width. No lane reads another.
//
// Positions have nq numbers (MuJoCo's qpos), their cotangents nv: tangent space, world axes for a
// free joint's translation, body axes for rotations. No quaternion has a 4-vector gradient.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "robot/robot.h"
#include "sim/softlaw.h"
#include <stdbool.h>
#include <stdint.h>

#define SIM_WIDTH 8 // lanes of every build but the width-1 reference

enum sim_integrator {
  SIM_MOREAU,
  SIM_EULER,
  SIM_RK4
}; // midpoint time stepping; MuJoCo's semi-implicit Euler; MuJoCo's RK4 (SIM_MUJOCO only)
enum sim_contact_model {
  SIM_SMOOTHED,
  SIM_MUJOCO
}; // smoothed impulses; MuJoCo's soft constraints, solved to convergence (not SIM_MOREAU)
enum sim_contact_step { SIM_SPLIT, SIM_PUBLISHED }; // step rule of the smoothed contact solve

struct sim_options {
  enum sim_integrator integrator;
  enum sim_contact_model contact_model;
  enum sim_contact_step contact_step;
  double dt;          // substep, s
  int substeps;       // per control step (S)
  int sweeps;         // of the contact solve
  double kappa;       // contact stiffness, 1/m
  double friction;    // overrides every contact's coefficient; < 0: the robot's own
  bool body_contact;  // all collision geoms touch the floor; false: only geoms on the feet (leaf
                      // links)
  double limit_kappa; // smoothing of joint limits, 1/rad (1/m for slides); 0: no limits
  double dry_speed;   // dry friction is -frictionloss * tanh(v / dry_speed); 0: none
  struct cfd cfd; // SIM_MUJOCO: contacts from distance in the backward pass; steps do not change
};
struct sim_options sim_options_default(void);

struct sim_model; // robot + options, compiled; immutable, shared by all threads
struct sim_work;  // one thread's intermediates

struct sim_model *sim_model_new(struct arena *a, const struct robot *r,
                                const struct sim_options *opt, struct err *e); // NULL on error
const struct robot *sim_robot(const struct sim_model *m);
const struct sim_options *sim_model_options(const struct sim_model *m);
struct sim_work *sim_work_new(struct arena *a, const struct sim_model *m, int width);

// Contact candidates: points, rims and ellipsoids of geoms against the floor, fixed per robot.
struct sim_contact_info {
  int geom, body, link;
};
int sim_ncontact(const struct sim_model *m);
struct sim_contact_info sim_contact(const struct sim_model *m, int k);
// centre of candidate k in its link's frame, of the nominal robot
void sim_contact_point(const struct sim_model *m, int k, double point[3]);

// Links with candidates, and the run of candidates that each has.
struct sim_clink_info {
  int link, first, count;
};
int sim_nclink(const struct sim_model *m);
struct sim_clink_info sim_clink(const struct sim_model *m, int f);
// numbers of a substep's load: sim_nclink + 2 sim_ncontact
int sim_nload(const struct sim_model *m);

// Per-lane parameters, one slab of sim_nparam(m) numbers per lane; its gradient has the same
// layout.
struct sim_param_block {
  const char *name; // mass com inertia armature damping frictionloss gain bias mu kappa size point;
                    // SIM_MUJOCO: solref solimp too, per candidate
  int first, count; // numbers of the slab
  int size;         // numbers per item (com 3, bias 3, ...)
};
int sim_nparam(const struct sim_model *m);
int sim_nparam_block(const struct sim_model *m);
struct sim_param_block sim_param_block(const struct sim_model *m, int i);
struct sim_param_block sim_param_find(const struct sim_model *m,
                                      const char *name);                     // BUG_IF unknown
void sim_param_default(const struct sim_model *m, double *param, int width); // all lanes nominal

// Inside one substep at (qpos, qvel), for tests and gradcheck: any pointer may be NULL. (n, W)
// each.
struct sim_probe {
  double *mass;   // packed mass matrix with armature and the implicit diagonal (sim_mass_entries)
  double *bias;   // nv: Coriolis, centrifugal, gravity (MuJoCo's qfrc_bias)
  double *tau;    // nv: actuation and passive forces
  double *qacc;   // nv: unconstrained acceleration, with damping etc. implicit
  double *xpos;   // (nlink, 3) about the tree's origin
  double *xmat;   // (nlink, 9)
  double *height; // ncontact
  // SIM_MUJOCO only: MuJoCo's qacc and qfrc_constraint (nv), contact forces (ncontact, 3) in world
  // axes
  double *qacc_constrained, *qfrc_constraint, *contact_force;
  uint64_t *kinks; // (W): hash of every branch that the whole substep takes
};
// (row, column) of the packed entries of mass, in order; returns their number. Arrays may be NULL.
int sim_mass_entries(const struct sim_model *m, int *row, int *col);

struct sim_stage_call;

struct sim_kernels {
  const char *isa; // "v2" (SSE4), "v3" (AVX2), "v4" (AVX-512), "w1" (width-1 reference), "arm"
  int width;

  // One control step: opt.substeps substeps under constant ctrl (nu). trail, if not NULL, receives
  // the state (nq+nv) at the start of each substep: (substeps, nq+nv, W).
  void (*step_fwd)(const struct sim_model *m, struct sim_work *w, double *qpos, double *qvel,
                   double *trail, const double *ctrl, const double *param);
  // Its adjoint: replays each substep from the trail. dq, dv (nv) hold the cotangent after the step
  // on entry, before it on return; dctrl (nu) and dparam (nparam, may be NULL) are added to.
  void (*step_bwd)(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                   double *dctrl, double *dparam, const double *trail, const double *ctrl,
                   const double *param);

  // The same for substeps first .. end - 1 of a control step; trail is the whole step's. load, if
  // not NULL, (substeps, sim_nload, W): normal force (N) per contact link, then per candidate, then
  // the candidates' heights above the floor (m), all as the substep's contact solve saw them.
  void (*substeps_fwd)(const struct sim_model *m, struct sim_work *w, double *qpos, double *qvel,
                       double *trail, double *load, const double *ctrl, const double *param,
                       int first, int end);
  void (*substeps_bwd)(const struct sim_model *m, struct sim_work *w, double *dq, double *dv,
                       double *dctrl, double *dparam, const double *trail, const double *ctrl,
                       const double *param, int first, int end);

  // After step_fwd, of its last substep: per contact candidate the normal force (N) and the
  // signed height above the floor (m, negative inside). (ncontact, W) each; either may be NULL.
  void (*contacts)(const struct sim_model *m, const struct sim_work *w, double *force,
                   double *height);

  // Origins of n bodies (indices into robot.body) relative to the tree's origin (the root's
  // position for a free root, the world's origin otherwise), world axes: x (n, 3, W). The adjoint
  // uses the kinematics that the last points_fwd left in w and adds to dq.
  void (*points_fwd)(const struct sim_model *m, struct sim_work *w, double *x, const double *qpos,
                     const int *body, int n);
  void (*points_bwd)(const struct sim_model *m, struct sim_work *w, double *dq, const double *dx,
                     const int *body, int n);

  void (*probe)(const struct sim_model *m, struct sim_work *w, struct sim_probe *out,
                const double *qpos, const double *qvel, const double *ctrl, const double *param);

  // The stages as they were compiled: these kernels themselves, or four lanes wide where two halves
  // make the eight. Only there: one stage alone and its adjoint, for gradient checks
  // (sim/stage_check.h).
  const struct sim_kernels *as_compiled;
  void (*stage)(const struct sim_model *m, struct sim_work *w, struct sim_stage_call *c);
};

// The best build this processor runs; DSIM_ISA=v2|v3|v4|w1 overrides. An unknown or unsupported
// name: EXIT_USAGE.
const struct sim_kernels *sim_kernels(struct err *e);
const struct sim_kernels *sim_kernels_named(const char *isa); // NULL if this processor cannot
