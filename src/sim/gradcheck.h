// Every adjoint of the simulator against central differences of the function as computed, on random
// states of a robot in contact: each stage alone, whole substeps by blocks, a control step, and a
// rollout of 32 control steps. `dsim gradcheck` prints it, tests assert it.
//
// The numerics. A stage's outputs are tested through one random functional, each kind of output
// scaled to one, so that no kind hides another. Differences are taken in the tangent space with
// four points (fourth order), at the best of several steps: a wrong adjoint cannot match at one of
// them by luck, while rounding and curvature ask for different ones. An error is relative to the
// largest entry of its block (qpos, qvel, ctrl, mass, ...) at that state. Differences resolve
// nothing below 1e-6 of the block's largest entry over all states, nor below 1e-5 of the outputs
// (1e-4 with MuJoCo's contacts, which amplify rounding) per unit of input (of the input's own size,
// for parameters): there that floor counts instead. A direction that crosses a kink (cone edge,
// lift-off, clamp: the hash of branches changed) at every step is skipped and counted.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "sim/sim.h"
#include <stdbool.h>

#define GRADCHECK_TOLERANCE         1e-6
#define GRADCHECK_TOLERANCE_ROLLOUT 1e-5
enum { GRADCHECK_MAX_ROW = 64, GRADCHECK_ROLLOUT = 32 };

struct gradcheck_row {
  char name[48]; // "bias", "moreau.split.qpos", "param.mass", "rollout"
  double max_rel_error, tolerance;
  long checked, kinks_skipped; // directions
  char worst[64];              // block and entry of the largest error
};

struct gradcheck {
  int nrow;
  struct gradcheck_row row[GRADCHECK_MAX_ROW];
  double max_rel_error;       // over all rows but the rollout, whose tolerance differs
  int nstate, ncontact_state; // states, and those in which a contact bears load
  bool has_contacts;          // the robot can touch the floor
};

// opt: time step, substeps, stiffness ...; of the smoothed model both integrators and both contact
// steps are checked, of MuJoCo's both cones. The rollout and the control step use opt's own.
int gradcheck_run(struct gradcheck *g, struct arena *a, const struct robot *r,
                  const struct sim_options *opt, const struct sim_kernels *k, struct err *e);
// Within tolerance, finite, and something was checked.
bool gradcheck_row_passes(const struct gradcheck_row *row);
// All rows, and contacts bore load if the robot can touch the floor.
bool gradcheck_passes(const struct gradcheck *g);
