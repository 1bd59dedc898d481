// Robot -> parameters of MuJoCo's soft constraints: contacts against the floor, joint limits, dry
// friction. Rules of mixing and clamping: MuJoCo's documentation, "Computation", sections "Contact
// parameters" and "Solver parameters".
#include "sim/model.h"

#include <math.h>
#include <string.h>

static const double min_friction = 1e-5, min_impedance = 1e-4, max_impedance = 0.9999;

static double clamp_impedance(double d) {
  return fmin(fmax(d, min_impedance), max_impedance);
}

// solimp of MJCF -> d0, dw, width, midpoint; returns its power
static double clamp_solimp(double imp[SOFT_IMP], const double solimp[5]) {
  imp[0] = clamp_impedance(solimp[0]);
  imp[1] = clamp_impedance(solimp[1]);
  imp[2] = fmax(solimp[2], 0);
  imp[3] = clamp_impedance(solimp[3]);
  if (imp[2] < 1e-15) { // no ramp: MuJoCo takes the mean; K and B go by dw all the same
    imp[0] = 0.5 * (imp[0] + imp[1]);
    imp[2] = 1e30;
  }
  return fmax(1, solimp[4]);
}

// solref of MJCF; a pair of mixed signs is MuJoCo's default
static void check_reference(double ref[SOFT_REF], const double solref[2]) {
  bool mixed = (solref[0] > 0) != (solref[1] > 0);
  ref[0] = mixed ? 0.02 : solref[0];
  ref[1] = mixed ? 1 : solref[1];
}

// constants of a row whose reference no lane changes; twin of soft_stiffness in soft_law.inl
static void reference(double *K, double *B, const struct sim_model *m, const double solref[2],
                      double dw) {
  double ref[SOFT_REF];
  check_reference(ref, solref);
  if (ref[0] > 0) {
    double t = m->robot->refsafe ? fmax(ref[0], 2 * m->opt.dt) : ref[0];
    *K = 1 / (dw * dw * t * t * ref[1] * ref[1]);
    *B = 2 / (dw * t);
  } else {
    *K = -ref[0] / (dw * dw);
    *B = -ref[1] / dw;
  }
}

// ---- contacts

static void mix_pair(struct sim_soft_contact *c, double solref[2], double solimp[5],
                     const struct robot_geom *g, const struct robot_geom *floor) {
  c->margin = fmax(g->margin, floor->margin);
  c->include = c->margin - fmax(g->gap, floor->gap);
  const struct robot_geom *top = g->priority >= floor->priority ? g : floor;
  double friction[3];
  if (g->priority != floor->priority) {
    c->dim = top->condim;
    memcpy(friction, top->friction, sizeof friction);
    memcpy(solref, top->solref, 2 * sizeof *solref);
    memcpy(solimp, top->solimp, 5 * sizeof *solimp);
  } else {
    double a = floor->solmix, b = g->solmix, mix = 0.5; // share of the floor
    if (a >= 1e-15 || b >= 1e-15) {
      mix = a < 1e-15 ? 0 : b < 1e-15 ? 1 : a / (a + b);
    }
    c->dim = g->condim > floor->condim ? g->condim : floor->condim;
    bool standard = g->solref[0] > 0 && floor->solref[0] > 0;
    for (int i = 0; i < 2; i++) {
      solref[i] = standard ? mix * floor->solref[i] + (1 - mix) * g->solref[i]
                           : fmin(floor->solref[i], g->solref[i]);
    }
    for (int i = 0; i < 5; i++) {
      solimp[i] = mix * floor->solimp[i] + (1 - mix) * g->solimp[i];
    }
    for (int i = 0; i < 3; i++) {
      friction[i] = fmax(g->friction[i], floor->friction[i]);
    }
  }
  c->mu = fmax(friction[0], min_friction);
  c->spin = fmax(friction[1], min_friction);
  c->roll = fmax(friction[2], min_friction);
}

static void build_contact(struct sim_model *m, const struct robot *r, int k,
                          const struct robot_geom *floor) {
  const struct sim_candidate *cand = &m->candidate[k];
  const struct robot_geom *g = &r->geom[cand->geom];
  struct sim_soft_contact *c = &m->soft_contact[k];
  double solref[2], solimp[5];
  mix_pair(c, solref, solimp, g, floor);
  check_reference(c->ref, solref);
  c->direct = !(c->ref[0] > 0);
  c->aligned = g->type == GEOM_CAPSULE;
  c->corner = g->type == GEOM_BOX ? 7 - cand->feature : -1;
  c->weight = r->body[cand->body].invweight[0];
  memcpy(c->centre, g->pos, sizeof c->centre);
  // MuJoCo's points of a cylinder's end: the lowest, and two that complete an equilateral triangle
  static const double rim[3][2] = {{1, 0}, {-0.5, 0.8660254037844386}, {-0.5, -0.8660254037844386}};
  memcpy(c->rim, rim[g->type == GEOM_CYLINDER ? cand->feature / 2 : 0], sizeof c->rim);
  c->power = clamp_solimp(c->imp, solimp);
}

// ---- the whole

static void build_limit(struct sim_model *m, const struct robot *r, int d) {
  const struct robot_dof *f = &r->dof[d];
  for (int side = 0; side < 2; side++) {
    struct sim_soft_limit *l = &m->soft_limit[m->nsoft_limit++];
    l->dof = d;
    l->qadr = r->link[f->link].qadr;
    l->sign = side ? -1 : 1;
    l->bound = f->range[side];
    l->margin = f->margin;
    l->weight = f->invweight;
    l->power = clamp_solimp(l->imp, f->solimp_limit);
    reference(&l->K, &l->B, m, f->solref_limit, l->imp[1]);
  }
}

static void build_dry(struct sim_model *m, const struct robot *r, int d) {
  const struct robot_dof *f = &r->dof[d];
  struct sim_soft_dry *o = &m->soft_dry[m->nsoft_dry++];
  double imp[SOFT_IMP], K;
  clamp_solimp(imp, f->solimp_friction);
  o->dof = d;
  reference(&K, &o->B, m, f->solref_friction, imp[1]); // no position, hence no K
  o->D = imp[0] / ((1 - imp[0]) * f->invweight);
}

void soft_model_build(struct sim_model *m, struct arena *a, const struct robot *r) {
  const struct robot_geom *floor = NULL;
  for (int i = 0; i < r->ngeom; i++) {
    floor = r->geom[i].type == GEOM_PLANE ? &r->geom[i] : floor;
  }
  m->cfd_power = clamp_solimp(m->cfd_imp, m->opt.cfd.solimp);
  m->elliptic = r->cone == 1;
  m->impratio = r->impratio;
  m->soft_contact = ARENA_NEW(a, struct sim_soft_contact, m->ncontact + 1);
  m->soft_limit = ARENA_NEW(a, struct sim_soft_limit, 2 * r->nv);
  m->soft_dry = ARENA_NEW(a, struct sim_soft_dry, r->nv);
  for (int k = 0; k < m->ncontact; k++) {
    build_contact(m, r, k, floor);
  }
  for (int d = 0; d < r->nv; d++) {
    const struct robot_dof *f = &r->dof[d];
    m->damped = m->damped || f->damping > 0;
    if (f->limited) {
      build_limit(m, r, d);
    }
    if (f->frictionloss > 0) {
      build_dry(m, r, d);
    }
  }
}
