// The simulator's lane unit: compiled once per instruction set (-DLANE_ISA=...), all stages inlined
// into one translation unit. Order of inclusion is order of use.

// Without 512-bit vectors the stages run four lanes wide, twice (sim/halves.inl).
#if !defined LANE_WIDTH && !defined __AVX512F__
#define LANE_WIDTH 4
#define LANE_HALVES_OF_EIGHT
#endif
#include "sim/lane.h"
#include "sim/model.h"

#include <string.h>

#include "sim/spatial.inl"
#include "sim/kinematics.inl"
#include "sim/dynamics.inl"
#include "sim/factor.inl"
#include "sim/actuator.inl"
#include "sim/contact.inl"
#include "sim/solve_split.inl"
#include "sim/solve_published.inl"
#include "sim/soft_law.inl"
#include "sim/soft_contact.inl"
#include "sim/soft_newton.inl"
#include "sim/soft_acc.inl"
#include "sim/soft_rk4.inl"
#include "sim/step.inl"
#include "sim/probe.inl"
#include "sim/stage_check.inl"

#define LANE_TEXT_(x) #x
#define LANE_TEXT(x)  LANE_TEXT_(x)

#define KERNELS(prefix)                                                                            \
  .isa = LANE_TEXT(LANE_ISA), .step_fwd = prefix##step_fwd, .step_bwd = prefix##step_bwd,          \
  .substeps_fwd = prefix##substeps_fwd, .substeps_bwd = prefix##substeps_bwd,                      \
  .contacts = prefix##contacts, .points_fwd = prefix##points_fwd,                                  \
  .points_bwd = prefix##points_bwd, .probe = prefix##probe

static const struct sim_kernels as_compiled = {KERNELS(), .width = LANE_WIDTH, .stage = stage_call};

extern const struct sim_kernels LANE_NAME(sim_kernels);
#ifdef LANE_HALVES_OF_EIGHT
#include "sim/halves.inl"
const struct sim_kernels LANE_NAME(sim_kernels) = {KERNELS(half_), .width = SIM_WIDTH,
                                                   .as_compiled = &as_compiled};
#else
const struct sim_kernels LANE_NAME(sim_kernels) = {KERNELS(), .width = LANE_WIDTH,
                                                   .as_compiled = &as_compiled};
#endif
