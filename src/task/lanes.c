// The lane code of motion tracking, compiled once per instruction set (-DLANE_ISA=v2 ...). The
// twins live in the .inl files; here are what they share and the table of functions.
#include "task/track_private.h"
#include "sim/lane.h"

// the simulator's build for the same instruction set, for body positions and their adjoint
extern const struct sim_kernels LANE_NAME(sim_kernels);
extern const struct track_kernels LANE_NAME(track_kernels);

// out (count, W): numbers first .. first+count of each lane's own reference frame, or of the
// ahead-th after it. Past the end of the
// frame's clip the last frame stands.
LANE_STAGE void gather(double *out, const struct track *t, const int *frame, int ahead, int first,
                       int count) {
  const double *row[W];
  for (int l = 0; l < W; l++) {
    int f = frame[l] + ahead, last = motion_last(t->motion, frame[l]);
    row[l] = t->feat + (size_t)(f < last ? f : last) * t->nfeat + first;
  }
  for (int i = 0; i < count; i++) {
    for (int l = 0; l < W; l++) {
      out[i * W + l] = row[l][i];
    }
  }
}

// Adjoint of ub = R' u for a fixed u, R turning by dth (body axes): dth += dub x ub. What u itself
// gets is R dub.
LANE void unrotate_bwd(realw *dth, const realw *ub, const realw *dub) {
  cross3_add(dth, dub, ub);
}

// du += R dub
LANE void rotate_add(realw *du, const realw *R, const realw *dub) {
  for (int r = 0; r < 3; r++) {
    du[r] += R[3 * r] * dub[0] + R[3 * r + 1] * dub[1] + R[3 * r + 2] * dub[2];
  }
}

#include "task/observe_compact.inl"
#include "task/observe_paper.inl"
#include "task/reward.inl"
#include "task/residual.inl"

static void obs_fwd(const struct track *t, struct track_work *tw, struct sim_work *sw, double *obs,
                    const double *qpos, const double *qvel, const int *frame) {
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel;
  if (t->spec->observation == OBSERVATION_PAPER) {
    observe_paper_fwd(t, sw, (realw *)obs, q, v, frame);
  } else {
    observe_compact_fwd(t, tw, (realw *)obs, q, v, frame);
  }
}
static void obs_bwd(const struct track *t, struct track_work *tw, struct sim_work *sw, double *dq,
                    double *dv, const double *dobs, const double *qpos, const double *qvel,
                    const int *frame) {
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel, *dobsw = (const realw *)dobs;
  if (t->spec->observation == OBSERVATION_PAPER) {
    observe_paper_bwd(t, tw, sw, (realw *)dq, (realw *)dv, dobsw, q, v);
  } else {
    observe_compact_bwd(t, tw, (realw *)dq, (realw *)dv, dobsw, q, v, frame);
  }
}

#define LANE_TEXT_(isa) #isa
#define LANE_TEXT(isa)  LANE_TEXT_(isa)
const struct track_kernels LANE_NAME(track_kernels) = {
    .isa = LANE_TEXT(LANE_ISA),
    .width = W,
    .obs_fwd = obs_fwd,
    .obs_bwd = obs_bwd,
    .residual_fwd = residual_fwd,
    .residual_bwd = residual_bwd,
    .reward_fwd = reward_fwd,
    .reward_bwd = reward_bwd,
};
