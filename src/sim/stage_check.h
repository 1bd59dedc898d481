// One stage of a substep alone, for gradient checks: its outputs at inputs that may be shifted, and
// its adjoint. A stage's inputs are the state, controls and parameters where it reads those itself,
// and intermediates of the substep ("extras") where it stands in the middle.
//
// All arrays are lane arrays as in sim.h, 64-byte aligned.
#pragma once
#include "sim/sim.h"

enum sim_stage {
  SIM_STAGE_POSITIONS,      // positions_move: qpos, qvel -> qpos moved by SIM_STAGE_MOVE qvel
  SIM_STAGE_KINEMATICS,     // qpos -> origins of all bodies
  SIM_STAGE_BIAS,           // qpos, qvel, mass, com, inertia -> bias force
  SIM_STAGE_MASS,           // qpos, mass, com, inertia -> packed mass matrix
  SIM_STAGE_FACTOR,         // M -> L, 1/D
  SIM_STAGE_HALF_SOLVE,     // L, 1/D, f, x -> r = L^-T f, dv = L^-1 D^-1 (r + x)
  SIM_STAGE_ACTUATOR,       // qpos, qvel, ctrl, actuator parameters -> tau, diagonal of M
  SIM_STAGE_CONTACT_POINTS, // qpos, kappa, size, point -> contact points, smoothing factors
  SIM_STAGE_CONTACT_SPACE,  // qpos, V, L, 1/D, r -> Delassus blocks, free velocity, e
  SIM_STAGE_CONTACT_SOLVE,  // Delassus blocks, free velocity, points, s, mu -> wrenches
  SIM_STAGE_SOFT_LAW,       // MuJoCo's contacts: residual, D -> force
  SIM_STAGE_SOFT_RESIDUAL,  // qpos, qvel, parameters, a -> M a + bias - J' f
  SIM_STAGE_SOFT_ACC,       // qpos, qvel, ctrl, parameters -> constrained acceleration
  SIM_STAGE_SOFT_WIDE,      // the same with contacts from distance
  SIM_STAGE_STEP,           // one control step: qpos, qvel, ctrl, parameters -> qpos, qvel
  SIM_NSTAGE
};
#define SIM_STAGE_MOVE 0.25 // long enough for turns of a radian

// What a stage reads itself, beside its extras. An input that is not read may change the extras.
enum {
  SIM_STAGE_READS_QPOS = 1,
  SIM_STAGE_READS_QVEL = 2,
  SIM_STAGE_READS_CTRL = 4,
  SIM_STAGE_READS_PARAM = 8,
  SIM_STAGE_READS_MU = 16, // the parameter block "mu" alone
  SIM_STAGE_MAX_BLOCK = 8
};

struct sim_stage_block { // a run of extras, or of outputs
  const char *name;
  int first, count;
};

enum sim_stage_mode {
  SIM_STAGE_SIZES,   // fills in sizes and blocks only
  SIM_STAGE_FORWARD, // fills in out, extra
  SIM_STAGE_ADJOINT  // out (and d_qpos_out) hold cotangents; fills in d_* and extra
};

struct sim_stage_call {
  enum sim_stage stage;
  enum sim_stage_mode mode;
  const double *qpos, *qvel, *ctrl, *param; // where the substep is evaluated
  // FORWARD: added to the extras before the stage runs (NULL: nothing); the extras before that go
  // to `extra`. ADJOINT: extra receives their cotangents.
  const double *shift;
  double *extra;
  double *out;              // FORWARD: values; ADJOINT: their cotangents, read
  double *qpos_out;         // FORWARD, stages that move positions: (nq)
  const double *d_qpos_out; // ADJOINT, the same stages: (nv)
  double *trail;            // STEP: (substeps, nq + nv), written FORWARD, read ADJOINT
  double *d_qpos, *d_qvel, *d_ctrl, *d_param; // ADJOINT: overwritten
  uint64_t *kinks;                            // (W), FORWARD: hash of the branches the stage took
  // filled in by every call, valid for this state
  int reads; // SIM_STAGE_READS_*
  int nextra, nout, nextra_block, nout_block;
  struct sim_stage_block extra_block[SIM_STAGE_MAX_BLOCK], out_block[SIM_STAGE_MAX_BLOCK];
};
