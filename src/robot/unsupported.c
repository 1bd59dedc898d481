// What an MJCF can ask for and dsim does not simulate. Nothing is dropped in silence: each is
// named.
#include "base/log.h"
#include "robot/loader.h"
#include <stdarg.h>
#include <stdio.h>

bool loader_refuse(struct loader *l, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (l->warn_only) {
    log_warn("%s: %s; left out", l->r->path, text);
  } else {
    err_set(l->e, EXIT_USAGE, "%s: %s (robot_warn_only: true leaves it out)", l->r->path, text);
  }
  return false;
}

// a named object of each of these kinds is refused
static void check_objects(struct loader *l) {
  const mjModel *m = l->m;
  const struct {
    int n, type;
    const char *element;
  } kinds[] = {
      {m->neq, mjOBJ_EQUALITY, "equality constraint"},
      {m->ntendon, mjOBJ_TENDON, "tendon"},
      {m->npair, mjOBJ_PAIR, "contact pair"},
  };
  char buf[16];
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    for (int i = 0; i < kinds[k].n; i++) {
      loader_refuse(l, "%s '%s' is not simulated", kinds[k].element,
                    mjcf_name(m, kinds[k].type, i, buf));
    }
  }
  for (int b = 0; b < m->nbody; b++) {
    if (m->body_mocapid[b] >= 0) {
      loader_refuse(l, "mocap body '%s' is not simulated", mjcf_name(m, mjOBJ_BODY, b, buf));
    }
  }
}

static void check_options(struct loader *l) {
  static const struct {
    int bit;
    const char *flag;
  } disabled[] = {
    {mjDSBL_CONSTRAINT, "constraint"},
    {mjDSBL_FRICTIONLOSS, "frictionloss"},
    {mjDSBL_LIMIT, "limit"},
    {mjDSBL_CONTACT, "contact"},
    {mjDSBL_GRAVITY, "gravity"},
    {mjDSBL_CLAMPCTRL, "clampctrl"},
    {mjDSBL_ACTUATION, "actuation"},
#if mjVERSION_HEADER < 336 // one flag before, two since
    {mjDSBL_PASSIVE, "passive"},
#else
    {mjDSBL_SPRING, "spring"},
    {mjDSBL_DAMPER, "damper"},
#endif
  };
  const mjOption *o = &l->m->opt;
  for (size_t i = 0; i < sizeof disabled / sizeof disabled[0]; i++) {
    if (o->disableflags & disabled[i].bit) {
      loader_refuse(l, "flag %s=\"disable\" is not supported", disabled[i].flag);
    }
  }
  if (o->enableflags & mjENBL_OVERRIDE) {
    loader_refuse(l, "flag override=\"enable\" is not supported");
  }
  if (o->density != 0 || o->viscosity != 0) {
    loader_refuse(l, "option %s: a surrounding fluid is not simulated",
                  o->density != 0 ? "density" : "viscosity");
  }
#if mjVERSION_HEADER < 300 // the option went with MuJoCo 3
  if (o->collision == mjCOL_PAIR) {
    loader_refuse(l, "option collision=\"predefined\" is not supported");
  }
#endif
  if (o->noslip_iterations > 0) {
    loader_refuse(l, "option noslip_iterations is not supported");
  }
}

static void check_joints(struct loader *l) {
  const mjModel *m = l->m;
  char buf[16];
  int nunlimited = 0;
  const char *unlimited = NULL;
  for (int j = 0; j < m->njnt; j++) {
    const char *name = mjcf_name(m, mjOBJ_JOINT, j, buf);
    bool scalar = m->jnt_type[j] == mjJNT_HINGE || m->jnt_type[j] == mjJNT_SLIDE;
    if (!scalar && m->jnt_stiffness[j] != 0) {
      loader_refuse(l, "joint '%s': a spring on a %s joint is not simulated", name,
                    m->jnt_type[j] == mjJNT_BALL ? "ball" : "free");
    }
    if (!scalar && m->jnt_limited[j]) {
      loader_refuse(l, "joint '%s': a limited ball joint is not simulated", name);
    }
    if (scalar && !m->jnt_limited[j] &&
        (m->jnt_range[2 * j] != 0 || m->jnt_range[2 * j + 1] != 0)) {
      unlimited = nunlimited++ ? unlimited : arena_strdup(l->a, name);
    }
    // a DoF that moves no inertia has no acceleration; armature on it would do
    int dof = m->jnt_dofadr[j];
    if (!(m->dof_M0[dof] > 1e-12)) {
      err_set(l->e, EXIT_USAGE,
              "%s: joint '%s' moves no mass: give what hangs on it mass and "
              "inertia, or the joint armature",
              l->r->path, name);
    }
  }
  // MuJoCo before 2.3 ignores a range without limited="true"; robot files of newer versions count
  // on the opposite
  if (nunlimited > 0) {
    log_warn("%s: %d joint%s with a range but no limit, first '%s' (compiler autolimits=\"true\" "
             "would limit them)",
             l->r->path, nunlimited, nunlimited > 1 ? "s" : "", unlimited);
  }
}

// MuJoCo lets "nan" through with a warning
static void check_finite(struct loader *l) {
  const mjModel *m = l->m;
  const struct {
    const double *x;
    int n, per, type;
    const char *what;
  } arrays[] = {
      {m->body_pos, m->nbody, 3, mjOBJ_BODY, "body pos"},
      {m->body_quat, m->nbody, 4, mjOBJ_BODY, "body orientation"},
      {m->body_ipos, m->nbody, 3, mjOBJ_BODY, "inertial pos"},
      {m->body_mass, m->nbody, 1, mjOBJ_BODY, "mass"},
      {m->body_inertia, m->nbody, 3, mjOBJ_BODY, "inertia"},
      {m->jnt_pos, m->njnt, 3, mjOBJ_JOINT, "joint pos"},
      {m->jnt_axis, m->njnt, 3, mjOBJ_JOINT, "joint axis"},
      {m->jnt_range, m->njnt, 2, mjOBJ_JOINT, "joint range"},
      {m->jnt_stiffness, m->njnt, 1, mjOBJ_JOINT, "joint stiffness"},
      {m->geom_pos, m->ngeom, 3, mjOBJ_GEOM, "geom pos"},
      {m->geom_quat, m->ngeom, 4, mjOBJ_GEOM, "geom orientation"},
      {m->geom_size, m->ngeom, 3, mjOBJ_GEOM, "geom size"},
      {m->geom_friction, m->ngeom, 3, mjOBJ_GEOM, "geom friction"},
      {m->actuator_gear, m->nu, 6, mjOBJ_ACTUATOR, "actuator gear"},
      {m->actuator_gainprm, m->nu, mjNGAIN, mjOBJ_ACTUATOR, "actuator gain"},
      {m->actuator_biasprm, m->nu, mjNBIAS, mjOBJ_ACTUATOR, "actuator bias"},
      {m->key_qpos, m->nkey, m->nq, mjOBJ_KEY, "key qpos"},
      {m->key_qvel, m->nkey, m->nv, mjOBJ_KEY, "key qvel"},
      {m->key_ctrl, m->nkey, m->nu, mjOBJ_KEY, "key ctrl"},
      {m->dof_armature, m->nv, 1, mjOBJ_UNKNOWN, "joint armature"},
      {m->dof_damping, m->nv, 1, mjOBJ_UNKNOWN, "joint damping"},
      {m->dof_frictionloss, m->nv, 1, mjOBJ_UNKNOWN, "joint frictionloss"},
  };
  char buf[16];
  for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++) {
    for (int i = 0; i < arrays[k].n * arrays[k].per; i++) {
      if (!isfinite(arrays[k].x[i])) {
        int id = i / arrays[k].per, type = arrays[k].type;
        if (type == mjOBJ_UNKNOWN) { // per DoF
          type = mjOBJ_JOINT;
          id = m->dof_jntid[id];
        }
        err_set(l->e, EXIT_USAGE, "%s: '%s': %s is not a finite number", l->r->path,
                mjcf_name(m, type, id, buf), arrays[k].what);
      }
    }
  }
}

void loader_check_model(struct loader *l) {
  const mjModel *m = l->m;
  if (m->nv == 0) {
    err_set(l->e, EXIT_USAGE, "%s: no joint, so nothing can move", l->r->path);
    return;
  }
  if (m->njnt > ROBOT_MAX_LINK) {
    err_set(l->e, EXIT_USAGE, "%s: %d joints, at most %d are supported", l->r->path, (int)m->njnt,
            ROBOT_MAX_LINK);
    return;
  }
  check_finite(l);
  check_options(l);
  check_objects(l);
  check_joints(l);
}

bool loader_keeps_geom(struct loader *l, int g) {
  static const char *const shape[mjNGEOMTYPES] = {[mjGEOM_HFIELD] = "height field",
                                                  [mjGEOM_SPHERE] = "sphere",
                                                  [mjGEOM_CAPSULE] = "capsule",
                                                  [mjGEOM_ELLIPSOID] = "ellipsoid",
                                                  [mjGEOM_CYLINDER] = "cylinder",
                                                  [mjGEOM_BOX] = "box",
                                                  [mjGEOM_MESH] = "mesh"};
  const mjModel *m = l->m;
  int type = m->geom_type[g], body = m->geom_bodyid[g];
  char buf[16];
  const char *name = mjcf_name(m, mjOBJ_GEOM, g, buf);
  if (m->geom_contype[g] == 0 && m->geom_conaffinity[g] == 0) {
    return false;
  }
  if (type == mjGEOM_MESH || type == mjGEOM_HFIELD) {
    return loader_refuse(l, "geom '%s' of body '%s': collision with a %s is not simulated", name,
                         m->names + m->name_bodyadr[body], shape[type]);
  }
  if (type != mjGEOM_PLANE) {
    return l->link[body] >= 0 ||
           loader_refuse(l,
                         "geom '%s': a %s fixed to the world is not simulated, only a floor plane",
                         name, shape[type]);
  }
  // a plane: MuJoCo itself refuses one on a moving body
  double quat[9];
  mju_quat2Mat(quat, m->geom_quat + 4 * g);
  const double *rot = l->body[body].rot;
  double up = rot[6] * quat[2] + rot[7] * quat[5] + rot[8] * quat[8];
  if (up < 1 - 1e-12) {
    return loader_refuse(l, "plane '%s' is not horizontal", name);
  }
  for (int i = 0; i < l->r->ngeom; i++) {
    if (l->r->geom[i].type == GEOM_PLANE) {
      return loader_refuse(l, "plane '%s' is a second floor", name);
    }
  }
  return true;
}

bool loader_keeps_actuator(struct loader *l, int i) {
  // by enumerator: newer releases of MuJoCo have more of them, in other places
  enum { NAMES = 16 };
  static const char *const dyn[NAMES] = {[mjDYN_NONE] = "none",
                                         [mjDYN_INTEGRATOR] = "integrator",
                                         [mjDYN_FILTER] = "filter",
                                         [mjDYN_MUSCLE] = "muscle",
                                         [mjDYN_USER] = "user"};
  static const char *const gain[NAMES] = {[mjGAIN_FIXED] = "fixed",
                                          [mjGAIN_AFFINE] = "affine",
                                          [mjGAIN_MUSCLE] = "muscle",
                                          [mjGAIN_USER] = "user"};
  static const char *const bias[NAMES] = {[mjBIAS_NONE] = "none",
                                          [mjBIAS_AFFINE] = "affine",
                                          [mjBIAS_MUSCLE] = "muscle",
                                          [mjBIAS_USER] = "user"};
  static const char *const trn[NAMES] = {[mjTRN_JOINT] = "joint",
                                         [mjTRN_JOINTINPARENT] = "jointinparent",
                                         [mjTRN_SLIDERCRANK] = "slidercrank",
                                         [mjTRN_TENDON] = "tendon",
                                         [mjTRN_SITE] = "site",
                                         [mjTRN_BODY] = "body"};
#define NAME_OF(table, i) ((i) >= 0 && (i) < NAMES && (table)[i] ? (table)[i] : "of a newer kind")
  const mjModel *m = l->m;
  char buf[16];
  const char *name = mjcf_name(m, mjOBJ_ACTUATOR, i, buf);
  int t = m->actuator_trntype[i], joint = m->actuator_trnid[2 * i];
  if (t != mjTRN_JOINT && t != mjTRN_JOINTINPARENT) {
    return loader_refuse(l, "actuator '%s': transmission through a %s is not simulated", name,
                         NAME_OF(trn, t));
  }
  if (m->jnt_type[joint] != mjJNT_HINGE && m->jnt_type[joint] != mjJNT_SLIDE) {
    return loader_refuse(l, "actuator '%s': joint '%s' is neither hinge nor slide", name,
                         m->names + m->name_jntadr[joint]);
  }
  if (m->actuator_dyntype[i] != mjDYN_NONE) {
    return loader_refuse(l, "actuator '%s': dyntype=\"%s\" is not simulated, only \"none\"", name,
                         NAME_OF(dyn, m->actuator_dyntype[i]));
  }
  if (m->actuator_gaintype[i] != mjGAIN_FIXED) {
    return loader_refuse(l, "actuator '%s': gaintype=\"%s\" is not simulated, only \"fixed\"", name,
                         NAME_OF(gain, m->actuator_gaintype[i]));
  }
  if (m->actuator_biastype[i] != mjBIAS_NONE && m->actuator_biastype[i] != mjBIAS_AFFINE) {
    return loader_refuse(l, "actuator '%s': biastype=\"%s\" is not simulated, only \"affine\"",
                         name, NAME_OF(bias, m->actuator_biastype[i]));
  }
  return true;
#undef NAME_OF
}
