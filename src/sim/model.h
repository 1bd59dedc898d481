// The compiled model and one thread's work space, as the stages see them. Internal to sim/.
#pragma once
#include "sim/sim.h"

// ---- model: what all lanes share
// -----------------------------------------------------------------

struct sim_link {
  int parent; // link slot; the world's slot is nlink
  enum joint_type type;
  int qadr, dof, ndof;
  int axis; // hinge, slide
  int tree;
  bool rot_is_identity;
  double rot[9], pos[3]; // frame in the parent, at zero angle
  double iaxes[2][3];    // first two principal axes of inertia, link frame
};

// Links that hang together on one joint with the world. Spatial vectors of a tree are about its
// origin O: the root's position for a free root (numbers stay small; the root's x, y cotangents are
// exactly zero), the world's origin otherwise.
struct sim_tree {
  int first_link, last_link, first_dof, last_dof; // inclusive; contiguous, parents first
  bool free; // the root is a free joint: first_dof + 0..2 linear (world), 3..5 angular (body)
};

enum sim_candidate_kind {
  CANDIDATE_POINT,     // sphere about a point fixed to the link: sphere, capsule end, box corner
                       // (radius 0)
  CANDIDATE_RIM,       // lowest point of a disk's rim: cylinder end
  CANDIDATE_ELLIPSOID, // lowest point of an ellipsoid
};

struct sim_candidate {
  enum sim_candidate_kind kind;
  int geom, body, link;
  double rot[9]; // rim: column 2 is the disk's axis; ellipsoid: its axes (link frame)
};

// A link with contact candidates. Its Jacobian lives on the DoFs of its chain: the link's deepest
// DoF first, then towards the root.
struct sim_contact_link {
  int link, tree, first, count; // candidates first .. first + count - 1
  int nchain;
  const int *chain;
};

struct sim_limit { // of one DoF; law in actuator.inl
  int dof, qadr;
  double lo, hi, stiffness, damping;
};

struct sim_param_layout { // first number of each block in the slab
  int mass, com, inertia, armature, damping, frictionloss, gain, bias, mu, kappa, size, point,
      count;
};

struct sim_model {
  const struct robot *robot;
  struct sim_options opt;
  double h_eval;       // dynamics are evaluated at q + h_eval v: dt/2 (moreau) or 0 (euler)
  double h_old, h_new; // q+ = q + h_old v + h_new v+
  double floor;        // height of the plane
  double gravity[3];
  int nq, nv, nu, nlink, ntree, nM, ncontact, nclink, nlimit;
  struct sim_link *link;
  struct sim_tree *tree;
  struct sim_candidate *candidate;
  struct sim_contact_link *clink;
  int *common; // (nclink, nclink) DoFs that two chains share: their common tail
  struct sim_limit *limit;
  // packed rows of M, as MuJoCo's qM: row of DoF d runs d, parent, ... root, at madr[d], length
  // dep[d]
  int *madr, *dep, *last; // last: highest DoF in d's subtree (descendants are d+1 .. last)
  int *anc;               // (nM) DoF of each packed entry
  int *dof_link;
  double *stiffness, *springref; // joint springs (nv)
  int *spring_qadr;              // (nv) qpos address, -1 without spring
  struct sim_param_layout at;
};

// ---- work: one thread's intermediates of one substep
// ---------------------------------------------- One row per array: name, numbers per item, items.
// Lane units see realw (*name)[...]; plain sources only allocate. The rows behind "adjoint" are
// cotangents of their namesakes.

#define SIM_WORK_ARRAYS(X)                                                                         \
  /* state as evaluated: midpoint positions, start velocities */                                   \
  X(q, , m->nq)                                                                                    \
  X(v, , m->nv)                                                                                    \
  X(v_new, , m->nv)                                                                                \
  /* kinematics: link rotation, origin about O, motion subspaces (angular; linear) */              \
  X(R, [9], m -> nlink + 1)                                                                        \
  X(p, [3], m -> nlink + 1)                                                                        \
  X(S, [6], m -> nv)                                                                               \
  X(z_root, , m->ntree)                                                                            \
  /* inertia about O: h = m c (3), then xx yy zz xy xz yz; composites over subtrees */             \
  X(I, [9], m -> nlink)                                                                            \
  X(Ic, [9], m -> nlink + 1)                                                                       \
  X(mass_c, , m->nlink + 1)                                                                        \
  /* recursive Newton-Euler */                                                                     \
  X(V, [6], m -> nlink + 1)                                                                        \
  X(A, [6], m -> nlink + 1)                                                                        \
  X(H, [6], m -> nlink + 1)                                                                        \
  X(F, [6], m -> nlink + 1)                                                                        \
  X(bias, , m->nv)                                                                                 \
  X(tau, , m->nv)                                                                                  \
  X(diag, , m->nv)                                                                                 \
  X(dry, , m->nv)                                                                                  \
  X(act_on, , m->nu)                                                                               \
  /* mass matrix, packed; after factoring the unit L, D and 1/D */                                 \
  X(Fc, [6], m -> nv)                                                                              \
  X(M, , m->nM)                                                                                    \
  X(D, , m->nv)                                                                                    \
  X(Di, , m->nv)                                                                                   \
  X(r, , m->nv)                                                                                    \
  X(rD, , m->nv)                                                                                   \
  X(e, , m->nv)                                                                                    \
  X(dv, , m->nv)                                                                                   \
  /* contact geometry: feature centre x, contact point, height, smoothing factor */                \
  X(x, [3], m -> ncontact)                                                                         \
  X(cp, [3], m -> ncontact)                                                                        \
  X(height, , m->ncontact)                                                                         \
  X(s, , m->ncontact)                                                                              \
  X(Q, [3], m -> ncontact)                                                                         \
  /* contact links: half-solved chain Jacobians, Delassus blocks A = Y' D^-1 Y, velocity, impulse  \
   */                                                                                              \
  X(Y, [6], m -> nclink *SIM_CHAIN(m))                                                             \
  X(A6, [36], m -> nclink * m -> nclink)                                                           \
  X(U0, [6], m -> nclink)                                                                          \
  X(U, [6], m -> nclink)                                                                           \
  X(Wr, [6], m -> nclink)                                                                          \
  /* split solve: K = A X', coefficients, history of visits */                                     \
  X(K, [18], m -> ncontact)                                                                        \
  X(G, [6], m -> ncontact)                                                                         \
  X(rn, , m->ncontact)                                                                             \
  X(rt, , m->ncontact)                                                                             \
  X(coef, [10], m -> ncontact)                                                                     \
  X(visit, [12], m -> ncontact * m -> opt.sweeps)                                                  \
  X(dW, [6], m -> nclink * m -> opt.sweeps)                                                        \
  /* published solve: Delassus matrix by 3 x 3 blocks, step sizes, history of residuals */         \
  X(Gp, [9], SIM_PUBLISHED_PAIRS(m))                                                               \
  X(dGp, [9], SIM_PUBLISHED_PAIRS(m))                                                              \
  X(rp, , m->ncontact)                                                                             \
  X(cfree, [3], m -> ncontact)                                                                     \
  X(P0, [3], m -> ncontact)                                                                        \
  /* adjoint */                                                                                    \
  X(g, , m->nv)                                                                                    \
  X(d_e, , m->nv)                                                                                  \
  X(d_r, , m->nv)                                                                                  \
  X(d_Di, , m->nv)                                                                                 \
  X(d_M, , m->nM)                                                                                  \
  X(d_S, [6], m -> nv)                                                                             \
  X(d_I, [10], m -> nlink + 1)                                                                     \
  X(Z, [6], m -> nlink + 1)                                                                        \
  X(z, , m->nv)                                                                                    \
  X(d_V, [6], m -> nlink + 1)                                                                      \
  X(d_A, [6], m -> nlink + 1)                                                                      \
  X(Fw, [6], m -> nlink + 1)                                                                       \
  X(d_q, , m->nv)                                                                                  \
  X(d_v, , m->nv)                                                                                  \
  X(d_Y, [6], m -> nclink *SIM_CHAIN(m))                                                           \
  X(d_A6, [36], m -> nclink * m -> nclink)                                                         \
  X(d_U, [6], m -> nclink)                                                                         \
  X(d_W, [6], m -> nclink)                                                                         \
  X(d_cp, [3], m -> ncontact)                                                                      \
  X(d_s, , m->ncontact)                                                                            \
  X(d_mu, , m->ncontact)                                                                           \
  X(d_Q, [3], m -> ncontact)                                                                       \
  X(d_K, [18], m -> ncontact)                                                                      \
  X(d_visit, [9], m -> ncontact * m -> opt.sweeps)                                                 \
  X(d_dW, [6], m -> nclink * m -> opt.sweeps)

int sim_chain_max(const struct sim_model *m);
#define SIM_CHAIN(m) sim_chain_max(m)
#define SIM_PUBLISHED_PAIRS(m)                                                                     \
  ((m)->opt.contact_step == SIM_PUBLISHED ? (m)->ncontact * (m)->ncontact : 1)

struct sim_half { // four of eight lanes: a work space, and room for what callers hand over
  struct sim_work *work;
  double *q, *v, *trail, *load, *ctrl, *param, *dq, *dv, *dctrl, *dparam, *rows;
};

struct sim_work {
  struct sim_half *half; // (2), for widths of eight
#ifdef LANE_ISA
#define X(name, inner, count) realw(*name) inner;
#else
#define X(name, inner, count) void *name;
#endif
  SIM_WORK_ARRAYS(X)
#undef X
  // Contact links and candidates that some lane is near enough to feel, in slot order; decided by
  // the forward pass of a substep and used by its adjoint. What belongs to them is indexed by place
  // in these lists (a, slot), so that it stays close together in memory.
  int nact, nslot;
  int *act;        // (nclink) contact link of active link a
  int *act_first;  // (nclink + 1) its slots are act_first[a] .. act_first[a + 1] - 1
  int *slot_cand;  // (ncontact) candidate of a slot
  int *slot_act;   // (ncontact) active link of a slot
  int *pending;    // (nlink + 1) scratch of the composite sweep
  uint64_t *kinks; // (W) hash of every branch taken, per lane, when not NULL: differences across a
                   // kink show
};
