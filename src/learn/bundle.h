// Bundled contact gradients (arXiv 2609.30951). An environment one of whose contact links (with
// bundle.trigger sphere: one of whose contacts) carries more than `bundle.force` is replaced, from
// the substep where that happens, by B branches with contact-local perturbations. The branches run
// under the environment's own control; at every control boundary their mean is the environment's
// state: what the reward, the observation and the next action see. After `bundle.horizon` control
// steps they are merged for good; until then they go on, branch 0 from the mean (so that what the
// boundary's cotangents say reaches the branches). Backward, the mean's cotangent is dealt out to
// the branches; perturbations are constants.
//
//   nominal   o--o--o          load passes tau in the third substep
//   branches        \==o==o=||=o==o==o==o=||     two control steps (H = 2), boundaries ||
//   nominal                               o--o-  goes on from the mean
//
// All branches equal (sigma = 0): the mean is the first branch, which takes the whole cotangent;
// then every bit is the same as without bundles, forward and backward.
//
// Branches are lanes like environments, packed W by W over a shard, whatever environment they
// belong to. Fixed order everywhere: nothing depends on threads.
#pragma once
#include "learn/bundle_choice.h"
#include "learn/world.h"

// What a shard's environment shows to its bundle at one control step. Lane arrays of its group.
struct bundle_view {
  int lane;
  int32_t episode, length; // for the random stream
  double *qpos, *qvel;     // after the nominal step; overwritten by the mean
  const double *trail;     // (substeps, nq + nv, W) nominal
  const double *load;      // (substeps, nload, W) nominal
  const double *ctrl;      // (nu, W)
  const double *param;     // (nparam, W)
  double *dq, *dv, *dctrl; // backward
};

struct bundle_record {         // of one environment at one control step
  int first;                   // substep where its branches start; `substeps` when it has none
  bool opened;                 // at this step (else they came from the step before)
  bool same;                   // all branches ended with the same bits
  int instance;                // its first branch in the step's lanes
  struct bundle_choice choice; // its branches: as many from opening to merging
};

struct branch_lanes { // W branches over one control step
  int first;
  double *trail, *after, *ctrl; // (substeps, nq + nv, W), (nq + nv, W), (nu, W)
  double *param;                // (nparam, W), with randomised environments only
};

struct bundle_step {          // of one shard at one control step
  int nlanes;                 // groups in use
  struct branch_lanes *lanes; // (capacity)
};

struct bundle {
  const struct world *world;
  const struct spec *spec;
  int B; // the most branches that a window may have
  int W, S, N, E, nstate, substeps, nclink, ncontact, nload, nparam, kappa, capacity;
  double mass;                  // of the robot
  struct bundle_record *record; // (N, E)
  struct bundle_step *step;     // (N, nshard)
  int *left;                    // (E) control steps that an open window still has
  struct bundle_choice *open;   // (E) choice of an open window
  double *branch;               // (E, B, nq + nv) states of open windows at the last boundary
  double *carry;                // (E, B, 2 nv) their cotangents there, backward
  double *start;                // (E, 2 nv + nu) cotangents where the branches of a step began
  double *nominal;              // (nparam, W) parameters of every branch, else
  // tests only: perturbations by the Jacobian there, not at the state; windows as in held (N, E)
  const double *jacobian_at;
  const struct bundle_record *held;
  int64_t *branch_substeps; // (nshard) of the window, for sample accounting
  int64_t *open_steps;      // (nshard) control steps with branches
};

struct bundle_work; // one thread's

static inline bool bundle_on(const struct bundle *b) {
  return b->B > 1;
}
void bundle_new(struct bundle *b, struct arena *a, const struct world *w);
struct bundle_work *bundle_work_new(struct arena *a, const struct bundle *b);

void bundle_begin(struct bundle *b, int shard); // before a window of control steps: nothing is open
// After the nominal control step t of a shard: opens, runs and merges. view: (S) environments.
void bundle_fwd(struct bundle *b, struct bundle_work *bw, struct sim_work *sim,
                const struct bundle_view *view, int t, int shard);
void bundle_close(struct bundle *b, int env); // the episode ended

// Back over control step t: takes the cotangents of environments with branches out of view's dq, dv
// (zeroed there) through the branches. What reaches the substep where they began waits for
// bundle_inject, which puts it into the environment's lane once the nominal adjoint is there.
void bundle_bwd(struct bundle *b, struct bundle_work *bw, struct sim_work *sim,
                const struct bundle_view *view, int t, int shard);
static inline int bundle_first(const struct bundle *b, int t, int env) {
  return b->record[t * b->E + env].first;
}
void bundle_inject(const struct bundle *b, double *dq, double *dv, double *dctrl, int lane,
                   int env);
