// Inside of the clip generator's solver: the terms of the problem (synth_terms.c) and the descent
// (synth_solve.c).
#pragma once
#include "motion/synth_kin.h"
#include "motion/synth_plan.h"

enum { MAX_NV = 40, MAX_FORCE = 3 * 2 * SYNTH_SPHERES, MAX_WIDE = 3 * MAX_NV };

// what the solver knows of one frame
struct synth_state {
  struct synth_kin kin;
  int nforce; // 3 per sphere on the floor
  double force[MAX_FORCE];
  double *hff; // Cholesky factor of the force block (nforce, nforce)
  double *hfq; // (nforce, 3 nv): force block against q_{t-1}, q_t, q_{t+1}
  double gf[MAX_FORCE], step_f[MAX_FORCE];
};

struct synth_solver {
  const struct synth_plan *plan;
  const struct robot *r;
  int n, nv, bw; // frames, DoF, half band width
  double dt;
  double soft;          // sigmas of equations and feet are this much larger: falls to 1
  double newton, euler; // N, N m, with soft
  struct synth_state *frame;
  double *qpos, *trial; // (n, nq)
  double (*trial_force)[MAX_FORCE];
  double *band, *grad, *step; // (n nv, bw + 1) rows ending on the diagonal; (n nv) each
};

// one frame's share of the problem while it is being put together
struct synth_local {
  double h[MAX_WIDE][MAX_WIDE], g[MAX_WIDE];
  double hff[MAX_FORCE][MAX_FORCE], hfq[MAX_FORCE][MAX_WIDE], gf[MAX_FORCE];
  double cost;
  bool derive; // false: the cost alone
  int wide, nforce;
};

// Frames outside the clip are its ends: the robot rests before and after.
static inline const struct synth_kin *solver_kin(const struct synth_solver *s, int t) {
  return &s->frame[t < 0 ? 0 : t >= s->n ? s->n - 1 : t].kin; // at rest before and after
}
static inline const double *solver_qpos(const struct synth_solver *s, const double *qpos, int t) {
  return qpos + (size_t)s->r->nq * (size_t)(t < 0 ? 0 : t >= s->n ? s->n - 1 : t);
}

// Cost of frame t at poses qpos (whose kinematics are in s->frame) and forces; with derive also its
// gradient and Gauss-Newton matrix (lower triangle) over q_{t-1}, q_t, q_{t+1} and the forces.
double solver_terms(struct synth_local *w, const struct synth_solver *s, int t, const double *qpos,
                    const double *force, bool derive);
// How far apart the first guess may be: sets the standard deviations of equations and feet.
void solver_soften(struct synth_solver *s, double soft);
