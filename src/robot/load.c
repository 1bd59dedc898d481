// mjModel -> struct robot. A link's frame is reached from MuJoCo's body frame by a constant offset
//
//   F_k = (anchor of joint k, rotation that lays its axis on a coordinate axis),
//
// and the joint's motion about an axis of the body frame, J_k F_k, becomes F_k times the same
// motion about the link's own coordinate axis. So with the joints of a body applied one after the
// other, link k sits in its parent link at F_{k-1}^-1 F_k, the first at (body in parent link) F_1,
// and the body itself at F_last^-1 in the last link.
#include "base/file.h"
#include "robot/loader.h"

static struct frame frame_of_quat(const double pos[3], const double quat[4]) {
  double rot[9];
  mju_quat2Mat(rot, quat);
  return frame_make(pos, rot);
}

static const char *name_of(const mjModel *m, int adr, const char *otherwise) {
  return m->names[adr] ? m->names + adr : otherwise;
}

// F of one joint, and which coordinate axis of the link it turns about or moves along: the smallest
// rotation does, which is none at all for a positive coordinate axis
static struct frame joint_offset(const mjModel *m, int joint, int *axis) {
  struct frame f = frame_identity();
  *axis = 0;
  if (m->jnt_type[joint] == mjJNT_FREE) {
    return f;
  }
  mju_copy3(f.pos, m->jnt_pos + 3 * joint);
  if (m->jnt_type[joint] == mjJNT_BALL) {
    return f;
  }
  const double *a = m->jnt_axis + 3 * joint;
  int i = a[1] > a[0] ? 1 : 0;
  i = a[2] > a[i] ? 2 : i;
  *axis = i;

  // Rodrigues' formula with v = e_i x a; 1 + a[i] > 0.4 because a[i] is the largest component
  int j = (i + 1) % 3, k = (i + 2) % 3;
  double v[3] = {0}, s = 1 / (1 + a[i]);
  v[j] = -a[k];
  v[k] = a[j];
  double vx[9] = {0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0};
  double vv = mju_dot3(v, v);
  for (int r = 0; r < 3; r++) {
    for (int c = 0; c < 3; c++) {
      f.rot[3 * r + c] += vx[3 * r + c] + s * (v[r] * v[c] - (r == c ? vv : 0));
    }
  }
  return f;
}

static void load_dofs(struct loader *l, int joint, int link) {
  const mjModel *m = l->m;
  struct robot *r = l->r;
  for (int i = 0; i < r->link[link].ndof; i++) {
    int d = m->jnt_dofadr[joint] + i;
    struct robot_dof *o = &r->dof[d];
    o->link = link;
    o->parent = m->dof_parentid[d];
    o->armature = m->dof_armature[d];
    o->damping = m->dof_damping[d];
    o->frictionloss = m->dof_frictionloss[d];
    o->invweight = m->dof_invweight0[d];
    memcpy(o->solref_friction, m->dof_solref + mjNREF * d, sizeof o->solref_friction);
    memcpy(o->solimp_friction, m->dof_solimp + mjNIMP * d, sizeof o->solimp_friction);
    if (r->link[link].ndof == 1) {
      o->stiffness = m->jnt_stiffness[joint];
      o->springref = m->qpos_spring[m->jnt_qposadr[joint]];
      o->limited = m->jnt_limited[joint];
      o->margin = m->jnt_margin[joint];
      memcpy(o->range, m->jnt_range + 2 * joint, sizeof o->range);
      memcpy(o->solref_limit, m->jnt_solref + mjNREF * joint, sizeof o->solref_limit);
      memcpy(o->solimp_limit, m->jnt_solimp + mjNIMP * joint, sizeof o->solimp_limit);
    }
  }
}

static void load_link(struct loader *l, int joint, int parent, struct frame rest, int axis) {
  static const struct {
    enum joint_type type;
    int nq, ndof;
  } kinds[] = {[mjJNT_FREE] = {JOINT_FREE, 7, 6},
               [mjJNT_BALL] = {JOINT_BALL, 4, 3},
               [mjJNT_SLIDE] = {JOINT_SLIDE, 1, 1},
               [mjJNT_HINGE] = {JOINT_HINGE, 1, 1}};
  const mjModel *m = l->m;
  struct robot *r = l->r;
  int type = m->jnt_type[joint], index = r->nlink++;
  struct robot_link *o = &r->link[index];
  o->joint_name = arena_strdup(
      l->a, name_of(m, m->name_jntadr[joint], m->names + m->name_bodyadr[m->jnt_bodyid[joint]]));
  o->parent = parent;
  o->type = kinds[type].type;
  o->nq = kinds[type].nq;
  o->ndof = kinds[type].ndof;
  o->qadr = m->jnt_qposadr[joint];
  o->dof = m->jnt_dofadr[joint];
  o->axis = axis;

  // MuJoCo's body tree is drawn at q = ref; ours at q = 0
  double ref = o->ndof == 1 ? m->qpos0[o->qadr] : 0;
  if (ref != 0) {
    rest = frame_mul(rest, type == mjJNT_HINGE ? frame_turn(axis, -ref) : frame_shift(axis, -ref));
  }
  struct frame id = frame_identity();
  memcpy(o->pos, rest.pos, sizeof o->pos);
  memcpy(o->rot, rest.rot, sizeof o->rot);
  o->rot_is_identity = true;
  for (int i = 0; i < 9; i++) {
    o->rot_is_identity &= rest.rot[i] == id.rot[i];
  }
  load_dofs(l, joint, index);
}

// links of all joints, and where each body sits on its link
static void load_tree(struct loader *l) {
  const mjModel *m = l->m;
  struct robot *r = l->r;
  r->link = ARENA_NEW(l->a, struct robot_link, m->njnt);
  r->dof = ARENA_NEW(l->a, struct robot_dof, m->nv);
  r->body = ARENA_NEW(l->a, struct robot_body, m->nbody);
  for (int b = 0; b < m->nbody; b++) {
    int parent = m->body_parentid[b], link = b ? l->link[parent] : -1;
    struct frame at = frame_of_quat(m->body_pos + 3 * b, m->body_quat + 4 * b);
    at = b ? frame_mul(l->body[parent], at) : frame_identity();
    for (int k = 0; k < m->body_jntnum[b]; k++) {
      int joint = m->body_jntadr[b] + k, axis;
      struct frame offset = joint_offset(m, joint, &axis);
      if (m->jnt_type[joint] == mjJNT_FREE) {
        at = frame_identity(); // the pose is all in qpos
      }
      load_link(l, joint, link, frame_mul(at, offset), axis);
      link = r->nlink - 1;
      at = frame_inverse(offset);
    }
    l->body[b] = at;
    l->link[b] = link;

    struct robot_body *o = &r->body[r->nbody++];
    o->name = arena_strdup(l->a, name_of(m, m->name_bodyadr[b], ""));
    o->link = link;
    o->parent = parent;
    memcpy(o->pos, at.pos, sizeof o->pos);
    memcpy(o->rot, at.rot, sizeof o->rot);
    o->mass = m->body_mass[b];
    o->invweight[0] = m->body_invweight0[2 * b];
    o->invweight[1] = m->body_invweight0[2 * b + 1];
  }
}

// the inertial frame of a body, on its link
static struct frame inertial_frame(const struct loader *l, int b) {
  return frame_mul(l->body[b], frame_of_quat(l->m->body_ipos + 3 * b, l->m->body_iquat + 4 * b));
}

// Eigenvalues and right-handed eigenvectors (columns) of a symmetric matrix by Jacobi's rotations.
// (mju_eig3 stops at 1e-9 or so, which would show in the mass matrix.)
static void principal_axes(double value[3], double axes[9], double t[9]) {
  struct frame turned = frame_identity();
  for (int round = 0; round < 10; round++) {
    for (int k = 0; k < 3; k++) {
      // the smaller of the two turns about axis k that make t[i][j] vanish
      int i = (k + 1) % 3, j = (k + 2) % 3;
      double b = t[3 * i + j], d = t[3 * i + i] - t[3 * j + j], half[9];
      struct frame turn = frame_turn(k, atan2(d < 0 ? -2 * b : 2 * b, fabs(d)) / 2);
      mju_mulMatMat(half, t, turn.rot, 3, 3, 3);
      mju_mulMatTMat(t, turn.rot, half, 3, 3, 3);
      turned = frame_mul(turned, turn);
    }
  }
  for (int i = 0; i < 3; i++) {
    value[i] = t[3 * i + i];
  }
  memcpy(axes, turned.rot, sizeof turned.rot);
}

// mass, centre and inertia of several bodies welded into one link
static void compose_inertia(const struct loader *l, struct robot_link *o, int link) {
  const mjModel *m = l->m;
  double tensor[9] = {0};
  for (int b = 0; b < m->nbody; b++) {
    if (l->link[b] == link) {
      struct frame f = inertial_frame(l, b);
      o->mass += m->body_mass[b];
      mju_addToScl3(o->com, f.pos, m->body_mass[b]);
    }
  }
  mju_scl3(o->com, o->com, 1 / o->mass);

  // R diag R' + m (d.d 1 - d d'), d from the common centre
  for (int b = 0; b < m->nbody; b++) {
    if (l->link[b] != link) {
      continue;
    }
    struct frame f = inertial_frame(l, b);
    double d[3];
    mju_sub3(d, f.pos, o->com);
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        double shift = (i == j ? mju_dot3(d, d) : 0) - d[i] * d[j];
        tensor[3 * i + j] += m->body_mass[b] * shift;
        for (int k = 0; k < 3; k++) {
          tensor[3 * i + j] += f.rot[3 * i + k] * m->body_inertia[3 * b + k] * f.rot[3 * j + k];
        }
      }
    }
  }

  principal_axes(o->inertia, o->iaxes, tensor);
}

static void load_inertia(struct loader *l) {
  const mjModel *m = l->m;
  for (int k = 0; k < l->r->nlink; k++) {
    struct robot_link *o = &l->r->link[k];
    int count = 0, only = -1;
    for (int b = 0; b < m->nbody; b++) {
      if (l->link[b] == k && m->body_mass[b] > 0) {
        only = b;
        count++;
      }
    }
    if (count > 1) {
      compose_inertia(l, o, k);
      continue;
    }
    struct frame f = count ? inertial_frame(l, only) : frame_identity();
    memcpy(o->com, f.pos, sizeof o->com);
    memcpy(o->iaxes, f.rot, sizeof o->iaxes);
    if (count) {
      o->mass = m->body_mass[only];
      mju_copy3(o->inertia, m->body_inertia + 3 * only);
    }
  }
  l->r->total_mass = m->nbody > 1 ? m->body_subtreemass[0] - m->body_mass[0] : 0;
}

static void load_geoms(struct loader *l) {
  static const enum geom_type kind[mjNGEOMTYPES] = {
      [mjGEOM_PLANE] = GEOM_PLANE,       [mjGEOM_SPHERE] = GEOM_SPHERE,
      [mjGEOM_CAPSULE] = GEOM_CAPSULE,   [mjGEOM_ELLIPSOID] = GEOM_ELLIPSOID,
      [mjGEOM_CYLINDER] = GEOM_CYLINDER, [mjGEOM_BOX] = GEOM_BOX};
  const mjModel *m = l->m;
  struct robot *r = l->r;
  r->geom = ARENA_NEW(l->a, struct robot_geom, m->ngeom);
  for (int g = 0; g < m->ngeom; g++) {
    if (!loader_keeps_geom(l, g)) {
      continue;
    }
    struct robot_geom *o = &r->geom[r->ngeom++];
    int b = m->geom_bodyid[g];
    struct frame f =
        frame_mul(l->body[b], frame_of_quat(m->geom_pos + 3 * g, m->geom_quat + 4 * g));
    o->name = arena_strdup(l->a, name_of(m, m->name_geomadr[g], ""));
    o->type = kind[m->geom_type[g]];
    o->body = b;
    o->link = l->link[b];
    memcpy(o->pos, f.pos, sizeof o->pos);
    memcpy(o->rot, f.rot, sizeof o->rot);
    mju_copy3(o->size, m->geom_size + 3 * g);
    mju_copy3(o->friction, m->geom_friction + 3 * g);
    memcpy(o->solref, m->geom_solref + mjNREF * g, sizeof o->solref);
    memcpy(o->solimp, m->geom_solimp + mjNIMP * g, sizeof o->solimp);
    o->margin = m->geom_margin[g];
    o->gap = m->geom_gap[g];
    o->solmix = m->geom_solmix[g];
    o->condim = m->geom_condim[g];
    o->contype = m->geom_contype[g];
    o->conaffinity = m->geom_conaffinity[g];
    o->priority = m->geom_priority[g];
  }
}

// MuJoCo's dynamic collision rules: masks match, bodies are neither the same, nor parent and child,
// nor excluded; welded bodies count as one
static bool collides_with_itself(const struct loader *l) {
  const mjModel *m = l->m;
  const struct robot *r = l->r;
  for (int i = 0; i < r->ngeom; i++) {
    for (int j = i + 1; j < r->ngeom; j++) {
      const struct robot_geom *a = &r->geom[i], *b = &r->geom[j];
      int wa = m->body_weldid[a->body], wb = m->body_weldid[b->body];
      if (a->link < 0 || b->link < 0 || wa == wb || !robot_geoms_collide(a, b) ||
          m->body_weldid[m->body_parentid[wa]] == wb ||
          m->body_weldid[m->body_parentid[wb]] == wa) {
        continue;
      }
      int lo = a->body < b->body ? a->body : b->body, hi = a->body + b->body - lo;
      bool excluded = false;
      for (int k = 0; k < m->nexclude; k++) {
        excluded |= m->exclude_signature[k] == ((lo + 1) << 16) + hi + 1;
      }
      if (!excluded) {
        return true;
      }
    }
  }
  return false;
}

// kept[i]: MuJoCo's index of actuator i
static void load_actuators(struct loader *l, int *kept) {
  const mjModel *m = l->m;
  struct robot *r = l->r;
  r->actuator = ARENA_NEW(l->a, struct robot_actuator, m->nu);
  for (int i = 0; i < m->nu; i++) {
    if (!loader_keeps_actuator(l, i)) {
      continue;
    }
    kept[r->nu] = i;
    struct robot_actuator *o = &r->actuator[r->nu++];
    int joint = m->actuator_trnid[2 * i];
    o->dof = m->jnt_dofadr[joint];
    o->qadr = m->jnt_qposadr[joint];
    o->name = arena_strdup(
        l->a, name_of(m, m->name_actuatoradr[i], l->r->link[r->dof[o->dof].link].joint_name));
    o->gear = m->actuator_gear[6 * i];
    o->gain = m->actuator_gainprm[mjNGAIN * i];
    if (m->actuator_biastype[i] == mjBIAS_AFFINE) {
      mju_copy3(o->bias, m->actuator_biasprm + mjNBIAS * i);
    }
    o->ctrl_limited = m->actuator_ctrllimited[i];
    o->force_limited = m->actuator_forcelimited[i];
    memcpy(o->ctrl_range, m->actuator_ctrlrange + 2 * i, sizeof o->ctrl_range);
    memcpy(o->force_range, m->actuator_forcerange + 2 * i, sizeof o->force_range);
  }
}

static double *copy_numbers(struct arena *a, const double *x, int n) {
  double *o = ARENA_NEW(a, double, n);
  mju_copy(o, x, n);
  return o;
}

static void load_keys(struct loader *l, const int *kept) {
  const mjModel *m = l->m;
  struct robot *r = l->r;
  r->nkey = m->nkey;
  r->key = ARENA_NEW(l->a, struct robot_key, m->nkey);
  for (int k = 0; k < m->nkey; k++) {
    double *ctrl = ARENA_NEW(l->a, double, r->nu);
    for (int i = 0; i < r->nu; i++) {
      ctrl[i] = m->key_ctrl[k * m->nu + kept[i]];
    }
    r->key[k] = (struct robot_key){
        .name = arena_strdup(l->a, name_of(m, m->name_keyadr[k], "")),
        .qpos = copy_numbers(l->a, m->key_qpos + k * m->nq, m->nq),
        .qvel = copy_numbers(l->a, m->key_qvel + k * m->nv, m->nv),
        .ctrl = ctrl,
    };
  }
}

static void load_model(struct loader *l) {
  const mjModel *m = l->m;
  struct robot *r = l->r;
  l->body = ARENA_NEW(l->a, struct frame, m->nbody);
  l->link = ARENA_NEW(l->a, int, m->nbody);
  int *kept = ARENA_NEW(l->a, int, m->nu);
  r->name = arena_strdup(l->a, m->names);
  r->nq = m->nq;
  r->nv = m->nv;
  r->qpos0 = copy_numbers(l->a, m->qpos0, m->nq);
  mju_copy3(r->gravity, m->opt.gravity);
  r->timestep = m->opt.timestep;
  r->impratio = m->opt.impratio;
  r->cone = m->opt.cone == mjCONE_ELLIPTIC;
  r->refsafe = !(m->opt.disableflags & mjDSBL_REFSAFE);
  load_tree(l);
  load_inertia(l);
  load_geoms(l);
  r->self_collision = collides_with_itself(l);
  load_actuators(l, kept);
  load_keys(l, kept);
}

int robot_load(struct robot *r, struct arena *a, const char *path, bool warn_only, struct err *e) {
  *r = (struct robot){.path = arena_strdup(a, path)};
  mjModel *m = mjcf_load(a, path, e);
  if (!m) {
    return e->code;
  }
  struct loader l = {.r = r, .a = a, .m = m, .warn_only = warn_only, .e = e};
  loader_check_model(&l);
  if (!e->code) {
    load_model(&l);
    file_sha256(file_find(a, path), r->sha256, e);
  }
  mj_deleteModel(m);
  return e->code;
}
