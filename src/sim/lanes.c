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
#include "sim/step.inl"
#include "sim/probe.inl"
#include "sim/stage_check.inl"

#define LANE_TEXT_(x) #x
#define LANE_TEXT(x)  LANE_TEXT_(x)

static const struct sim_kernels as_compiled = {
    .isa = LANE_TEXT(LANE_ISA),
    .width = LANE_WIDTH,
    .step_fwd = step_fwd,
    .step_bwd = step_bwd,
    .substeps_fwd = substeps_fwd,
    .substeps_bwd = substeps_bwd,
    .contacts = contacts,
    .points_fwd = points_fwd,
    .points_bwd = points_bwd,
    .probe = probe,
    .stage = stage_call,
};

extern const struct sim_kernels LANE_NAME(sim_kernels);
#ifdef LANE_HALVES_OF_EIGHT
#include "sim/halves.inl"
const struct sim_kernels LANE_NAME(sim_kernels) = {
    .isa = LANE_TEXT(LANE_ISA),
    .width = SIM_WIDTH,
    .step_fwd = half_step_fwd,
    .step_bwd = half_step_bwd,
    .substeps_fwd = half_substeps_fwd,
    .substeps_bwd = half_substeps_bwd,
    .contacts = half_contacts,
    .points_fwd = half_points_fwd,
    .points_bwd = half_points_bwd,
    .probe = half_probe,
    .as_compiled = &as_compiled,
};
#else
const struct sim_kernels LANE_NAME(sim_kernels) = {
    .isa = LANE_TEXT(LANE_ISA),
    .width = LANE_WIDTH,
    .step_fwd = step_fwd,
    .step_bwd = step_bwd,
    .substeps_fwd = substeps_fwd,
    .substeps_bwd = substeps_bwd,
    .contacts = contacts,
    .points_fwd = points_fwd,
    .points_bwd = points_bwd,
    .probe = probe,
    .as_compiled = &as_compiled,
};
#endif
