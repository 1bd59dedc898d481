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
  CANDIDATE_RIM,       // point of a disk's rim: cylinder end
  CANDIDATE_ELLIPSOID, // lowest point of an ellipsoid
};

struct sim_candidate {
  enum sim_candidate_kind kind;
  int geom, body, link;
  int feature;   // which of its geom's points it is
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

// ---- MuJoCo's soft constraints (contact model SIM_MUJOCO; laws in soft_law.inl)

enum { SOFT_IMP = 4, SOFT_REF = 2 }; // impedance d0, dw, width, midpoint; reference, two numbers

struct sim_soft_contact { // of one candidate against the floor, the pair's parameters mixed
  int dim;                // condim: 1 normal; 3 and sliding; 4 and spinning; 6 and rolling
  bool direct;            // solref is (-stiffness, -damping), not (time constant, damping ratio)
  bool aligned;           // the first tangent follows the geom's axis (capsule)
  int corner;             // of a box, 0 .. 7; else -1
  double power;           // of the impedance
  double margin, include; // detected below margin, felt below include = margin - gap
  double weight;          // inverse weight of the body's translation
  double mu, spin, roll;  // friction coefficients
  double ref[SOFT_REF], imp[SOFT_IMP];
  double rim[2];    // rim: along its lowest direction, and sideways, in radii
  double centre[3]; // of the geom, link frame
};

struct sim_soft_limit { // one side of a joint's range: r = sign (q - bound)
  int dof, qadr;
  double power, sign, bound, margin, weight, K, B, imp[SOFT_IMP];
};

struct sim_soft_dry { // dry friction of a DoF
  int dof;
  double B, D;
};

struct sim_param_layout { // first number of each block in the slab
  int mass, com, inertia, armature, damping, frictionloss, gain, bias, mu, kappa, size, point,
      solref, solimp, count;
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
  double *stiffness, *springref;         // joint springs (nv)
  int *spring_qadr;                      // (nv) qpos address, -1 without spring
  struct sim_soft_contact *soft_contact; // (ncontact)
  struct sim_soft_limit *soft_limit;     // (nsoft_limit)
  struct sim_soft_dry *soft_dry;         // (nsoft_dry)
  int nsoft_limit, nsoft_dry;
  bool elliptic;
  double impratio;
  double cfd_imp[SOFT_IMP], cfd_power; // contacts from distance: impedance outside
  bool damped; // some joint has damping: MuJoCo's Euler then solves once more
  struct sim_param_layout at;
};

// fills in the soft_* members, elliptic, impratio, damped; candidates are there
void soft_model_build(struct sim_model *m, struct arena *a, const struct robot *r);

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
  /* contact geometry: feature centre x, contact point, height, smoothing factor, ds/dz */         \
  X(x, [3], m -> ncontact)                                                                         \
  X(cp, [3], m -> ncontact)                                                                        \
  X(height, , m->ncontact)                                                                         \
  X(s, , m->ncontact)                                                                              \
  X(s_slope, , m->ncontact)                                                                        \
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
  X(d_dW, [6], m -> nclink * m -> opt.sweeps)                                                      \
  SIM_SOFT_ARRAYS(X)

// MuJoCo's soft constraints. What belongs to a contact is indexed by slot, a limit by its place in
// m->soft_limit, dry friction by DoF.
#define SIM_SOFT(m, n)     ((m)->opt.contact_model == SIM_MUJOCO ? (n) : 0)
#define SIM_RK4_ONLY(m, n) ((m)->opt.integrator == SIM_RK4 ? (n) : 0)
#define SIM_SOFT_ARRAYS(X)                                                                         \
  /* contact: its point about O, direction of the first tangent, reference K and B, penetration r, \
   * impedance d and dd/dr, D = 1/R, K d r */                                                      \
  X(soft_p, [3], SIM_SOFT(m, m->ncontact))                                                         \
  X(soft_t, [2], SIM_SOFT(m, m->ncontact))                                                         \
  X(soft_K, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_B, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_r, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_s, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_ds, , SIM_SOFT(m, m->ncontact))                                                           \
  X(soft_d, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_dr, , SIM_SOFT(m, m->ncontact))                                                           \
  X(soft_D, , SIM_SOFT(m, m->ncontact))                                                            \
  X(soft_Kds, , SIM_SOFT(m, m->ncontact))                                                          \
  /* its residual (angular; linear), the search direction's, its force, minus the force's          \
   * derivative */                                                                                 \
  X(soft_w, [6], SIM_SOFT(m, m->ncontact))                                                         \
  X(soft_dw, [6], SIM_SOFT(m, m->ncontact))                                                        \
  X(soft_f, [6], SIM_SOFT(m, m->ncontact))                                                         \
  X(soft_C, [21], SIM_SOFT(m, m->ncontact))                                                        \
  /* limits: penetration, impedance and its slope, D, residual but for s a, force, curvature */    \
  X(limit_r, , m->nsoft_limit)                                                                     \
  X(limit_d, , m->nsoft_limit)                                                                     \
  X(limit_dr, , m->nsoft_limit)                                                                    \
  X(limit_D, , m->nsoft_limit)                                                                     \
  X(limit_c, , m->nsoft_limit)                                                                     \
  X(limit_f, , m->nsoft_limit)                                                                     \
  X(limit_H, , m->nsoft_limit)                                                                     \
  /* dry friction: force, curvature */                                                             \
  X(dry_f, , SIM_SOFT(m, m->nv))                                                                   \
  X(dry_H, , SIM_SOFT(m, m->nv))                                                                   \
  /* links above contacts: a motion's twist, constraint wrenches and curvature of the subtree */   \
  X(soft_U, [6], SIM_SOFT(m, m->nlink + 1))                                                        \
  X(soft_W, [6], SIM_SOFT(m, m->nlink + 1))                                                        \
  X(soft_Kc, [21], SIM_SOFT(m, m->nlink + 1))                                                      \
  /* Newton: acceleration, M a - smooth force, gradient, direction and M times it; the factored    \
   * Hessian; the factored M + dt damping of Euler's step and its acceleration */                  \
  X(qacc, , SIM_SOFT(m, m->nv))                                                                    \
  X(soft_gs, , SIM_SOFT(m, m->nv))                                                                 \
  X(soft_g, , SIM_SOFT(m, m->nv))                                                                  \
  X(soft_x, , SIM_SOFT(m, m->nv))                                                                  \
  X(soft_Mx, , SIM_SOFT(m, m->nv))                                                                 \
  X(soft_H, , SIM_SOFT(m, m->nM))                                                                  \
  X(soft_HD, , SIM_SOFT(m, m->nv))                                                                 \
  X(soft_HDi, , SIM_SOFT(m, m->nv))                                                                \
  X(euler_M, , SIM_SOFT(m, m->nM))                                                                 \
  X(euler_D, , SIM_SOFT(m, m->nv))                                                                 \
  X(euler_Di, , SIM_SOFT(m, m->nv))                                                                \
  X(euler_qacc, , SIM_SOFT(m, m->nv))                                                              \
  /* adjoint */                                                                                    \
  /* RK4: the step's start, the state at hand, velocities and accelerations of the four states */  \
  X(rk_q0, , SIM_RK4_ONLY(m, m->nq))                                                               \
  X(rk_q, , SIM_RK4_ONLY(m, m->nq))                                                                \
  X(rk_v, , SIM_RK4_ONLY(m, 4 * m->nv))                                                            \
  X(rk_a, , SIM_RK4_ONLY(m, 4 * m->nv))                                                            \
  X(rk_move, , SIM_RK4_ONLY(m, m->nv))                                                             \
  X(d_rk_v, , SIM_RK4_ONLY(m, 4 * m->nv))                                                          \
  X(d_rk_a, , SIM_RK4_ONLY(m, 4 * m->nv))                                                          \
  X(d_qacc, , SIM_SOFT(m, m->nv))                                                                  \
  X(d_soft_U, [6], SIM_SOFT(m, m->nlink + 1))

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
  int *act;       // (nclink) contact link of active link a
  int *act_first; // (nclink + 1) its slots are act_first[a] .. act_first[a + 1] - 1
  int *slot_cand; // (ncontact) candidate of a slot
  int *slot_act;  // (ncontact) active link of a slot
  int *pending;   // (nlink + 1) scratch of the composite sweep
  // of the soft constraints: links with an active contact at or below them, root first; limits that
  // some lane feels
  int npath, nlimit_on;
  bool hessian_fits; // the factor in soft_H is that of the converged curvatures, in every lane
  int *path, *limit_on;
  uint64_t *kinks; // (W) hash of every branch taken, per lane, when not NULL: differences across a
                   // kink show
};
