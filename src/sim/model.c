// Robot and options -> the flat arrays the stages run on.
#include "sim/model.h"

#include "base/log.h"
#include <math.h>
#include <string.h>

struct sim_options sim_options_default(void) {
  return (struct sim_options){
      .integrator = SIM_MOREAU,
      .contact_model = SIM_SMOOTHED,
      .contact_step = SIM_SPLIT,
      .dt = 0.005,
      .substeps = 4,
      .sweeps = 10,
      .kappa = 300,
      .friction = -1,
      .body_contact = true,
      .limit_kappa = 300,
      .dry_speed = 0.1,
      .cfd = cfd_default(),
  };
}

// ---- tree structure
// --------------------------------------------------------------------------------

static void build_links(struct sim_model *m, struct arena *a, const struct robot *r) {
  m->link = ARENA_NEW(a, struct sim_link, r->nlink);
  m->tree = ARENA_NEW(a, struct sim_tree, r->nlink);
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    struct sim_link *o = &m->link[i];
    o->parent = l->parent < 0 ? r->nlink : l->parent;
    o->type = l->type;
    o->qadr = l->qadr;
    o->dof = l->dof;
    o->ndof = l->ndof;
    o->axis = l->axis;
    o->rot_is_identity = l->rot_is_identity;
    memcpy(o->rot, l->rot, sizeof o->rot);
    memcpy(o->pos, l->pos, sizeof o->pos);
    for (int k = 0; k < 2; k++) {
      for (int c = 0; c < 3; c++) {
        o->iaxes[k][c] = l->iaxes[3 * c + k];
      }
    }
    if (l->parent < 0) {
      m->tree[m->ntree++] =
          (struct sim_tree){.first_link = i, .first_dof = l->dof, .free = l->type == JOINT_FREE};
    }
    o->tree = l->parent < 0 ? m->ntree - 1 : m->link[l->parent].tree;
    BUG_IF(o->tree != m->ntree - 1); // depth first: a tree's links are contiguous
    m->tree[o->tree].last_link = i;
    m->tree[o->tree].last_dof = l->dof + l->ndof - 1;
  }
}

static void build_rows(struct sim_model *m, struct arena *a, const struct robot *r) {
  m->madr = ARENA_NEW(a, int, r->nv);
  m->dep = ARENA_NEW(a, int, r->nv);
  m->last = ARENA_NEW(a, int, r->nv);
  m->dof_link = ARENA_NEW(a, int, r->nv);
  for (int d = 0; d < r->nv; d++) {
    m->dep[d] = r->dof[d].parent < 0 ? 1 : m->dep[r->dof[d].parent] + 1;
    m->madr[d] = m->nM;
    m->nM += m->dep[d];
    m->last[d] = d;
    m->dof_link[d] = r->dof[d].link;
  }
  for (int d = r->nv - 1; d >= 0; d--) {
    int up = r->dof[d].parent;
    if (up >= 0 && m->last[d] > m->last[up]) {
      m->last[up] = m->last[d];
    }
  }
  m->anc = ARENA_NEW(a, int, m->nM);
  for (int d = 0; d < r->nv; d++) {
    for (int j = d, t = 0; j >= 0; j = r->dof[j].parent, t++) {
      m->anc[m->madr[d] + t] = j;
    }
  }
}

int sim_chain_max(const struct sim_model *m) {
  int most = 1;
  for (int f = 0; f < m->nclink; f++) {
    most = m->clink[f].nchain > most ? m->clink[f].nchain : most;
  }
  return most;
}

// ---- contact candidates
// ----------------------------------------------------------------------------

static bool geom_touches(const struct robot_geom *g, const struct robot_geom *floor) {
  return (g->contype & floor->conaffinity) || (floor->contype & g->conaffinity);
}

// MuJoCo's rule: the higher priority's friction, the larger of the two at equal priority
static double pair_friction(const struct robot_geom *g, const struct robot_geom *floor) {
  if (g->priority != floor->priority) {
    return g->priority > floor->priority ? g->friction[0] : floor->friction[0];
  }
  return fmax(g->friction[0], floor->friction[0]);
}

static bool link_is_leaf(const struct robot *r, int link) {
  for (int i = 0; i < r->nlink; i++) {
    if (r->link[i].parent == link) {
      return false;
    }
  }
  return true;
}

// A cylinder's end has one candidate, the lowest point of its rim; with MuJoCo's contacts two more,
// a third of the rim to either side.
static int candidates_of(const struct robot_geom *g, enum sim_contact_model contact) {
  switch (g->type) {
  case GEOM_SPHERE:
  case GEOM_ELLIPSOID:
    return 1;
  case GEOM_CAPSULE:
    return 2;
  case GEOM_CYLINDER:
    return contact == SIM_MUJOCO ? 6 : 2;
  case GEOM_BOX:
    return 8;
  default:
    return 0;
  }
}

// centre of candidate k of geom g in link axes; sizes into size[3]
static void candidate_place(double point[3], double size[3], const struct robot_geom *g, int k) {
  double local[3] = {0, 0, 0};
  size[0] = size[1] = size[2] = 0;
  switch (g->type) {
  case GEOM_SPHERE:
    size[0] = g->size[0];
    break;
  case GEOM_ELLIPSOID:
    memcpy(size, g->size, 3 * sizeof(double));
    break;
  case GEOM_CAPSULE:
  case GEOM_CYLINDER:
    size[0] = g->size[0];
    local[2] = k % 2 ? -g->size[1] : g->size[1];
    break;
  case GEOM_BOX:
    for (int c = 0; c < 3; c++) {
      local[c] = (k >> c & 1) ? -g->size[c] : g->size[c];
    }
    break;
  default:
    break;
  }
  for (int i = 0; i < 3; i++) {
    point[i] = g->pos[i];
    for (int c = 0; c < 3; c++) {
      point[i] += g->rot[3 * i + c] * local[c];
    }
  }
}

static int build_contacts(struct sim_model *m, struct arena *a, const struct robot *r,
                          struct err *e) {
  const struct robot_geom *floor = NULL;
  for (int i = 0; i < r->ngeom; i++) {
    if (r->geom[i].type == GEOM_PLANE) {
      if (floor) {
        return err_set(e, EXIT_USAGE, "%s: planes '%s' and '%s': one floor is simulated", r->path,
                       floor->name, r->geom[i].name);
      }
      floor = &r->geom[i];
    }
  }
  if (!floor) {
    return 0;
  }
  m->floor = floor->pos[2];
  int most = 0;
  for (int i = 0; i < r->ngeom; i++) {
    most += candidates_of(&r->geom[i], m->opt.contact_model);
  }
  m->candidate = ARENA_NEW(a, struct sim_candidate, most + 1);
  m->clink = ARENA_NEW(a, struct sim_contact_link, r->nlink);
  // in link order, so that each contact link's candidates are one run
  for (int l = 0; l < r->nlink; l++) {
    int first = m->ncontact;
    for (int i = 0; i < r->ngeom; i++) {
      const struct robot_geom *g = &r->geom[i];
      if (g->link != l || !geom_touches(g, floor) ||
          (!m->opt.body_contact && !link_is_leaf(r, l))) {
        continue;
      }
      for (int k = 0; k < candidates_of(g, m->opt.contact_model); k++) {
        struct sim_candidate *c = &m->candidate[m->ncontact++];
        c->kind = g->type == GEOM_CYLINDER    ? CANDIDATE_RIM
                  : g->type == GEOM_ELLIPSOID ? CANDIDATE_ELLIPSOID
                                              : CANDIDATE_POINT;
        c->geom = i;
        c->body = g->body;
        c->link = l;
        // MuJoCo takes a box's corners in the opposite order
        c->feature = m->opt.contact_model == SIM_MUJOCO && g->type == GEOM_BOX ? 7 - k : k;
        memcpy(c->rot, g->rot, sizeof c->rot);
      }
    }
    if (m->ncontact > first) {
      int tail = r->link[l].dof + r->link[l].ndof - 1;
      m->clink[m->nclink++] = (struct sim_contact_link){.link = l,
                                                        .tree = m->link[l].tree,
                                                        .first = first,
                                                        .count = m->ncontact - first,
                                                        .nchain = m->dep[tail],
                                                        .chain = m->anc + m->madr[tail]};
    }
  }
  m->common = ARENA_NEW(a, int, m->nclink * m->nclink + 1);
  for (int f = 0; f < m->nclink; f++) {
    for (int g = 0; g < m->nclink; g++) {
      const struct sim_contact_link *x = &m->clink[f], *y = &m->clink[g];
      int n = 0;
      while (n < x->nchain && n < y->nchain &&
             x->chain[x->nchain - 1 - n] == y->chain[y->nchain - 1 - n]) {
        n++;
      }
      m->common[f * m->nclink + g] = n;
    }
  }
  return 0;
}

// ---- limits
// ----------------------------------------------------------------------------------------

// Stiffness and damping of a limit's spring such that a steady load rests at the same violation as
// in MuJoCo's constraint: aref = -B v - K d r with K, B from solref, felt through the joint's
// inertia d / (1 - d) / invweight; d is the impedance beyond its ramp.
static void build_limits(struct sim_model *m, struct arena *a, const struct robot *r) {
  m->limit = ARENA_NEW(a, struct sim_limit, r->nv);
  if (m->opt.limit_kappa <= 0) {
    return;
  }
  for (int d = 0; d < r->nv; d++) {
    const struct robot_dof *f = &r->dof[d];
    if (!f->limited) {
      continue;
    }
    double imp = fmin(fmax(f->solimp_limit[1], 1e-4), 0.9999);
    double stiff, damp;
    if (f->solref_limit[0] > 0) {
      double tc = fmax(f->solref_limit[0], 2 * m->opt.dt);
      stiff = 1 / (imp * tc * tc * f->solref_limit[1] * f->solref_limit[1]);
      damp = 2 / (imp * tc);
    } else {
      stiff = -f->solref_limit[0] / imp;
      damp = -f->solref_limit[1] / imp;
    }
    double inertia = imp / (1 - imp) / f->invweight;
    m->limit[m->nlimit++] = (struct sim_limit){.dof = d,
                                               .qadr = r->link[f->link].qadr,
                                               .lo = f->range[0],
                                               .hi = f->range[1],
                                               .stiffness = inertia * stiff,
                                               .damping = inertia * damp};
  }
}

// ---- the whole
// -------------------------------------------------------------------------------------

static void build_params(struct sim_model *m) {
  struct sim_param_layout *at = &m->at;
  int n = 0;
  at->mass = n, n += m->nlink;
  at->com = n, n += 3 * m->nlink;
  at->inertia = n, n += 3 * m->nlink;
  at->armature = n, n += m->nv;
  at->damping = n, n += m->nv;
  at->frictionloss = n, n += m->nv;
  at->gain = n, n += m->nu;
  at->bias = n, n += 3 * m->nu;
  at->mu = n, n += m->ncontact;
  at->kappa = n, n += 1;
  at->size = n, n += 3 * m->ncontact;
  at->point = n, n += 3 * m->ncontact;
  at->solref = n, n += SIM_SOFT(m, SOFT_REF * m->ncontact);
  at->solimp = n, n += SIM_SOFT(m, SOFT_IMP * m->ncontact);
  at->count = n;
}

struct sim_model *sim_model_new(struct arena *a, const struct robot *r,
                                const struct sim_options *opt, struct err *e) {
  struct sim_model *m = ARENA_NEW(a, struct sim_model, 1);
  m->robot = r;
  m->opt = *opt;
  if (!(opt->dt > 0) || opt->substeps < 1 || opt->sweeps < 1 || !(opt->kappa > 0)) {
    err_set(e, EXIT_USAGE, "simulator: dt, substeps, sweeps and kappa must be positive");
    return NULL;
  }
  if (opt->contact_model == SIM_MUJOCO && opt->integrator == SIM_MOREAU) {
    err_set(e, EXIT_USAGE, "simulator: MuJoCo's contact model needs the integrator euler or rk4");
    return NULL;
  }
  if (opt->contact_model != SIM_MUJOCO && opt->integrator == SIM_RK4) {
    err_set(e, EXIT_USAGE, "simulator: rk4 needs MuJoCo's contact model");
    return NULL;
  }
  bool moreau = opt->integrator == SIM_MOREAU;
  m->h_eval = moreau ? 0.5 * opt->dt : 0;
  m->h_old = moreau ? 0.5 * opt->dt : 0;
  m->h_new = moreau ? 0.5 * opt->dt : opt->dt;
  m->nq = r->nq;
  m->nv = r->nv;
  m->nu = r->nu;
  m->nlink = r->nlink;
  memcpy(m->gravity, r->gravity, sizeof m->gravity);
  build_links(m, a, r);
  build_rows(m, a, r);
  if (build_contacts(m, a, r, e)) {
    return NULL;
  }
  if (opt->contact_model == SIM_MUJOCO) {
    m->opt.dry_speed = 0; // dry friction and limits are constraints
    soft_model_build(m, a, r);
  } else {
    build_limits(m, a, r);
  }
  m->stiffness = ARENA_NEW(a, double, r->nv);
  m->springref = ARENA_NEW(a, double, r->nv);
  m->spring_qadr = ARENA_NEW(a, int, r->nv);
  for (int d = 0; d < r->nv; d++) {
    m->stiffness[d] = r->dof[d].stiffness;
    m->springref[d] = r->dof[d].springref;
    m->spring_qadr[d] = r->dof[d].stiffness != 0 ? r->link[r->dof[d].link].qadr : -1;
  }
  build_params(m);
  return m;
}

int sim_mass_entries(const struct sim_model *m, int *row, int *col) {
  for (int d = 0; d < m->nv; d++) {
    for (int t = 0; t < m->dep[d]; t++) {
      if (row) {
        row[m->madr[d] + t] = d;
      }
      if (col) {
        col[m->madr[d] + t] = m->anc[m->madr[d] + t];
      }
    }
  }
  return m->nM;
}

const struct robot *sim_robot(const struct sim_model *m) {
  return m->robot;
}
const struct sim_options *sim_model_options(const struct sim_model *m) {
  return &m->opt;
}
int sim_ncontact(const struct sim_model *m) {
  return m->ncontact;
}
struct sim_contact_info sim_contact(const struct sim_model *m, int k) {
  const struct sim_candidate *c = &m->candidate[k];
  return (struct sim_contact_info){.geom = c->geom, .body = c->body, .link = c->link};
}

void sim_contact_point(const struct sim_model *m, int k, double point[3]) {
  double size[3];
  candidate_place(point, size, &m->robot->geom[m->candidate[k].geom], m->candidate[k].feature);
}
int sim_nclink(const struct sim_model *m) {
  return m->nclink;
}
int sim_nload(const struct sim_model *m) {
  return m->nclink + 2 * m->ncontact;
}
struct sim_clink_info sim_clink(const struct sim_model *m, int f) {
  const struct sim_contact_link *c = &m->clink[f];
  return (struct sim_clink_info){.link = c->link, .first = c->first, .count = c->count};
}

// rows: whatever one call hands over at most (points of all bodies, a probe)
static void half_new(struct sim_half *half, struct arena *a, const struct sim_model *m) {
  const size_t W = SIM_WIDTH / 2;
  size_t nq = (size_t)m->nq * W, nv = (size_t)m->nv * W, np = (size_t)m->at.count * W;
  size_t nu = (size_t)(m->nu + 1) * W, S = (size_t)m->opt.substeps;
  half->work = sim_work_new(a, m, SIM_WIDTH / 2);
  half->q = ARENA_NEW(a, double, nq);
  half->v = ARENA_NEW(a, double, nv);
  half->trail = ARENA_NEW(a, double, S *(nq + nv));
  half->load = ARENA_NEW(a, double, S *(size_t)(sim_nload(m) + 1) * W);
  half->ctrl = ARENA_NEW(a, double, nu);
  half->param = ARENA_NEW(a, double, np);
  half->dq = ARENA_NEW(a, double, nv);
  half->dv = ARENA_NEW(a, double, nv);
  half->dctrl = ARENA_NEW(a, double, nu);
  half->dparam = ARENA_NEW(a, double, np);
  size_t probe = (size_t)(m->nM + 5 * m->nv + 12 * m->nlink + 4 * m->ncontact);
  half->rows = ARENA_NEW(a, double, (probe + 3 * (size_t)m->robot->nbody) * W);
}

struct sim_work *sim_work_new(struct arena *a, const struct sim_model *m, int width) {
  struct sim_work *w = ARENA_NEW(a, struct sim_work, 1);
#define X(name, inner, count)                                                                      \
  w->name = arena_alloc(a, sizeof(double inner) * (size_t)width * (size_t)((count) + 1));
  SIM_WORK_ARRAYS(X)
#undef X
  w->act = ARENA_NEW(a, int, m->nclink + 1);
  w->act_first = ARENA_NEW(a, int, m->nclink + 2);
  w->slot_cand = ARENA_NEW(a, int, m->ncontact + 1);
  w->slot_act = ARENA_NEW(a, int, m->ncontact + 1);
  w->pending = ARENA_NEW(a, int, m->nlink + 1);
  w->path = ARENA_NEW(a, int, m->nlink + 1);
  w->limit_on = ARENA_NEW(a, int, m->nsoft_limit + 1);
  if (width == SIM_WIDTH) {
    w->half = ARENA_NEW(a, struct sim_half, 2);
    for (int h = 0; h < 2; h++) {
      half_new(&w->half[h], a, m);
    }
  }
  return w;
}

// ---- parameters
// ------------------------------------------------------------------------------------

int sim_nparam(const struct sim_model *m) {
  return m->at.count;
}
enum { NBLOCK = 14, NBLOCK_SMOOTHED = 12 };
int sim_nparam_block(const struct sim_model *m) {
  return m->opt.contact_model == SIM_MUJOCO ? NBLOCK : NBLOCK_SMOOTHED;
}
struct sim_param_block sim_param_block(const struct sim_model *m, int i) {
  const struct sim_param_layout *at = &m->at;
  const struct sim_param_block block[NBLOCK] = {
      {"mass", at->mass, m->nlink, 1},
      {"com", at->com, 3 * m->nlink, 3},
      {"inertia", at->inertia, 3 * m->nlink, 3},
      {"armature", at->armature, m->nv, 1},
      {"damping", at->damping, m->nv, 1},
      {"frictionloss", at->frictionloss, m->nv, 1},
      {"gain", at->gain, m->nu, 1},
      {"bias", at->bias, 3 * m->nu, 3},
      {"mu", at->mu, m->ncontact, 1},
      {"kappa", at->kappa, 1, 1},
      {"size", at->size, 3 * m->ncontact, 3},
      {"point", at->point, 3 * m->ncontact, 3},
      {"solref", at->solref, SOFT_REF * m->ncontact, SOFT_REF},
      {"solimp", at->solimp, SOFT_IMP * m->ncontact, SOFT_IMP},
  };
  BUG_IF(i < 0 || i >= sim_nparam_block(m));
  return block[i];
}
struct sim_param_block sim_param_find(const struct sim_model *m, const char *name) {
  for (int i = 0; i < sim_nparam_block(m); i++) {
    struct sim_param_block b = sim_param_block(m, i);
    if (!strcmp(b.name, name)) {
      return b;
    }
  }
  bug_abort(__FILE__, __LINE__, "unknown parameter block");
}

static void put(double *param, int width, int i, double x) {
  for (int l = 0; l < width; l++) {
    param[i * width + l] = x;
  }
}

void sim_param_default(const struct sim_model *m, double *param, int width) {
  const struct robot *r = m->robot;
  const struct sim_param_layout *at = &m->at;
  for (int i = 0; i < m->nlink; i++) {
    put(param, width, at->mass + i, r->link[i].mass);
    for (int c = 0; c < 3; c++) {
      put(param, width, at->com + 3 * i + c, r->link[i].com[c]);
      put(param, width, at->inertia + 3 * i + c, r->link[i].inertia[c]);
    }
  }
  for (int d = 0; d < m->nv; d++) {
    put(param, width, at->armature + d, r->dof[d].armature);
    put(param, width, at->damping + d, r->dof[d].damping);
    put(param, width, at->frictionloss + d, r->dof[d].frictionloss);
  }
  for (int i = 0; i < m->nu; i++) {
    put(param, width, at->gain + i, r->actuator[i].gain);
    for (int c = 0; c < 3; c++) {
      put(param, width, at->bias + 3 * i + c, r->actuator[i].bias[c]);
    }
  }
  const struct robot_geom *floor = NULL;
  for (int i = 0; i < r->ngeom; i++) {
    floor = r->geom[i].type == GEOM_PLANE ? &r->geom[i] : floor;
  }
  put(param, width, at->kappa, m->opt.kappa);
  for (int k = 0; k < m->ncontact; k++) {
    const struct robot_geom *g = &r->geom[m->candidate[k].geom];
    double point[3], size[3];
    candidate_place(point, size, g, m->candidate[k].feature);
    put(param, width, at->mu + k, m->opt.friction >= 0 ? m->opt.friction : pair_friction(g, floor));
    for (int i = 0; i < 3; i++) {
      put(param, width, at->size + 3 * k + i, size[i]);
      put(param, width, at->point + 3 * k + i, point[i]);
    }
    if (m->opt.contact_model == SIM_MUJOCO) {
      const struct sim_soft_contact *c = &m->soft_contact[k];
      for (int i = 0; i < SOFT_REF; i++) {
        put(param, width, at->solref + SOFT_REF * k + i, c->ref[i]);
      }
      for (int i = 0; i < SOFT_IMP; i++) {
        put(param, width, at->solimp + SOFT_IMP * k + i, c->imp[i]);
      }
    }
  }
}
