#include "plant/plant.h"
#include "base/log.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double push_period = 2; // s

// ---- opening: the plant's joints and actuators under the robot's names

static int find_plant_joint(const mjModel *m, const struct robot_link *l) {
  if (l->type == JOINT_FREE) { // the free joint often has no name
    for (int j = 0; j < m->njnt; j++) {
      if (m->jnt_type[j] == mjJNT_FREE) {
        return j;
      }
    }
    return -1;
  }
  return mj_name2id(m, mjOBJ_JOINT, l->joint_name);
}

// A revision of the robot without this joint: the body that it moves is there, fixed to its parent.
static bool is_locked(const struct plant *p, int link) {
  const struct robot *r = p->robot;
  int b = 0;
  while (b < r->nbody && r->body[b].link != link) {
    b++;
  }
  int body = b < r->nbody ? mj_name2id(p->m, mjOBJ_BODY, r->body[b].name) : -1;
  return r->link[link].type == JOINT_HINGE && body > 0 && p->m->body_dofnum[body] == 0;
}

static int map_joints(struct plant *p, struct arena *a, const char *path, struct err *e) {
  static const int kind[] = {mjJNT_FREE, mjJNT_BALL, mjJNT_SLIDE,
                             mjJNT_HINGE}; // of enum joint_type
  const struct robot *r = p->robot;
  const mjModel *m = p->m;
  p->qadr = ARENA_NEW(a, int, r->nlink);
  p->dof = ARENA_NEW(a, int, r->nlink);
  int nlocked = 0;
  char locked[300] = "";
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    int j = find_plant_joint(m, l);
    if (j < 0 && is_locked(p, i)) {
      size_t used = strlen(locked);
      snprintf(locked + used, sizeof locked - used, "%s'%s'", used ? ", " : "", l->joint_name);
      p->qadr[i] = p->dof[i] = -1;
      nlocked++;
      continue;
    }
    if (j < 0 || m->jnt_type[j] != kind[l->type]) {
      return err_set(e, EXIT_USAGE, "%s: joint '%s' of %s is %s", path, l->joint_name, r->path,
                     j < 0 ? "missing" : "of another type");
    }
    p->qadr[i] = m->jnt_qposadr[j];
    p->dof[i] = m->jnt_dofadr[j];
  }
  if (nlocked > 0) {
    log_warn("%s: no joint %s; seen as locked at 0, and nothing moves it", path, locked);
  }
  if (m->njnt > r->nlink - nlocked) {
    return err_set(e, EXIT_USAGE, "%s: has %d joints, %s has %d", path, (int)m->njnt, r->path,
                   r->nlink);
  }
  return 0;
}

// A policy sees everything from its root: the same one, or nothing fits.
static int check_root(const struct plant *p, const char *path, struct err *e) {
  const struct robot *r = p->robot;
  if (r->link[0].type != JOINT_FREE) {
    return 0;
  }
  int b = 1;
  while (r->body[b].link != 0) {
    b++;
  }
  const char *root = p->m->names + p->m->name_bodyadr[p->m->dof_bodyid[p->dof[0]]];
  if (strcmp(root, r->body[b].name) != 0) {
    return err_set(e, EXIT_USAGE, "%s: its root body is '%s', that of %s is '%s'", path, root,
                   r->path, r->body[b].name);
  }
  return 0;
}

static int map_actuators(struct plant *p, struct arena *a, const char *path, struct err *e) {
  const struct robot *r = p->robot;
  const mjModel *m = p->m;
  p->actuator = ARENA_NEW(a, int, r->nu);
  p->bare_motor = ARENA_NEW(a, bool, r->nu);
  int nlocked = 0;
  for (int i = 0; i < r->nu; i++) {
    const struct robot_actuator *u = &r->actuator[i];
    int dof = p->dof[r->dof[u->dof].link], found = -1;
    if (dof < 0) {
      p->actuator[i] = -1;
      nlocked++;
      continue;
    }
    for (int k = 0; k < m->nu; k++) {
      int joint = m->actuator_trnid[2 * k];
      bool on_joint =
          m->actuator_trntype[k] == mjTRN_JOINT || m->actuator_trntype[k] == mjTRN_JOINTINPARENT;
      found = on_joint && m->jnt_dofadr[joint] == dof ? k : found;
    }
    if (found < 0) {
      return err_set(e, EXIT_USAGE, "%s: no actuator drives joint '%s'", path,
                     r->link[r->dof[u->dof].link].joint_name);
    }
    if (m->actuator_dyntype[found] != mjDYN_NONE || m->actuator_gaintype[found] != mjGAIN_FIXED ||
        m->actuator_gainprm[mjNGAIN * found] == 0 || m->actuator_gear[6 * found] == 0) {
      return err_set(e, EXIT_USAGE, "%s: actuator '%s' is neither a motor nor a position actuator",
                     path, m->names + m->name_actuatoradr[found]);
    }
    p->actuator[i] = found;
    p->bare_motor[i] = m->actuator_biastype[found] == mjBIAS_NONE && u->bias[1] != 0;
  }
  if (m->nu > r->nu - nlocked) {
    return err_set(e, EXIT_USAGE, "%s: has %d actuators, %s has %d", path, (int)m->nu, r->path,
                   r->nu);
  }
  return 0;
}

// Another file for the same robot: is it the same robot? Masses, and where bodies of one name are
// when every joint is a little off zero.
static void compare_robots(struct plant *p, struct arena *a, const char *path) {
  const struct robot *r = p->robot;
  struct arena_mark mark = arena_mark(a);
  double mass = p->m->body_subtreemass[0];
  if (fabs(mass - r->total_mass) > 1e-3 * r->total_mass) {
    log_warn("%s weighs %.4g kg, %s %.4g kg", path, mass, r->path, r->total_mass);
  }
  double *q = ARENA_NEW(a, double, r->nq), *v = ARENA_NEW(a, double, r->nv);
  double *x = ARENA_NEW(a, double, 3 * r->nbody), worst = 0;
  const char *where = "";
  for (int i = 0; i < r->nv; i++) {
    v[i] = 0.3;
  }
  for (int i = 0; i < r->nlink; i++) {
    for (int k = 0; k < r->link[i].ndof && p->dof[i] < 0; k++) {
      v[r->link[i].dof + k] = 0;
    }
  }
  mju_copy(q, r->qpos0, r->nq);
  robot_integrate(r, q, v);
  robot_fk(r, q, x, NULL);
  plant_reset(p, q, v, 0);
  mj_kinematics(p->m, p->d);
  for (int b = 1; b < r->nbody; b++) {
    int other = mj_name2id(p->m, mjOBJ_BODY, r->body[b].name);
    double d = other < 0 ? 0 : mju_dist3(x + 3 * b, p->d->xpos + 3 * other);
    where = d > worst ? r->body[b].name : where;
    worst = d > worst ? d : worst;
  }
  if (worst > 1e-3) {
    log_warn("%s is built differently: body '%s' is %.1f mm from where %s has it (all joints "
             "0.3 off zero)",
             path, where, 1e3 * worst, r->path);
  }
  arena_reset(a, mark);
}

int plant_open(struct plant *p, struct arena *a, const struct robot *r, const char *path,
               double control_dt, double timestep, struct err *e) {
  *p = (struct plant){.robot = r, .control_dt = control_dt, .gain_scale = 1};
  p->substeps = (int)(control_dt / timestep + 0.5);
  if (p->substeps < 1 || fabs(p->substeps * timestep - control_dt) > 1e-9) {
    return err_set(e, EXIT_USAGE, "timestep: %g s does not divide the control period of %g s",
                   timestep, control_dt);
  }
  p->m = mjcf_load(a, path, e);
  if (!p->m) {
    return e->code;
  }
  if (map_joints(p, a, path, e) || check_root(p, path, e) || map_actuators(p, a, path, e)) {
    return e->code;
  }
  p->m->opt.timestep = timestep;
  p->d = mj_makeData(p->m);
  p->queue = ARENA_NEW(a, double, (PLANT_MAX_LATENCY + PLANT_MORE_LATENCY + 1) * r->nu);
  p->kp = ARENA_NEW(a, double, r->nu);
  p->kd = ARENA_NEW(a, double, r->nu);
  for (int i = 0; i < r->nu; i++) {
    p->kp[i] = p->kd[i] = 1;
  }
  compare_robots(p, a, path);
  return 0;
}

void plant_close(struct plant *p) {
  mj_deleteData(p->d);
  mj_deleteModel(p->m);
  mj_deleteModel(p->nominal);
  p->d = NULL;
  p->m = p->nominal = NULL;
}

// ---- disturbances

const char plant_perturb_help[] =
    "friction, mass, gain, armature, dry, latency, push; all, noise, random";

int plant_perturb(struct plant *p, const char *assignment, struct err *e) {
  // the last two are the caller's (transfer_perturb); known here for the nearest name
  static const char *const names[] = {"friction", "mass", "gain",  "armature", "dry",
                                      "latency",  "push", "noise", "random"};
  enum { FRICTION, MASS, GAIN, ARMATURE, DRY, LATENCY, PUSH, N };
  mjModel *m = p->m;
  const char *eq = strchr(assignment, '=');
  char name[32], *end = NULL;
  snprintf(name, sizeof name, "%.*s", eq ? (int)(eq - assignment) : 31, assignment);
  double x = eq ? strtod(eq + 1, &end) : 0;
  int which = 0;
  while (which < N && strcmp(names[which], name) != 0) {
    which++;
  }
  if (which == N) {
    const char *near = err_nearest(name, names, N + 2);
    return err_set(e, EXIT_USAGE, "perturb: no disturbance '%s'%s%s%s; there are %s", name,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
                   plant_perturb_help);
  }
  if (!eq || end == eq + 1 || *end || !(x >= 0) || x > 1e3) {
    return err_set(e, EXIT_USAGE, "perturb: %s needs a number from 0 to 1000: %s=1", name, name);
  }
  switch (which) {
  case FRICTION:
    for (int g = 0; g < m->ngeom; g++) {
      m->geom_friction[3 * g] = mju_max(x, mjMINMU);
    }
    break;
  case MASS:
    if (x == 0) {
      return err_set(e, EXIT_USAGE, "perturb: mass needs a factor above 0");
    }
    mju_scl(m->body_mass, m->body_mass, x, m->nbody);
    mju_scl(m->body_inertia, m->body_inertia, x, 3 * m->nbody);
    break;
  case GAIN:
    p->gain_scale *= x;
    for (int i = 0; i < p->robot->nu; i++) {
      int k = p->actuator[i];
      if (k >= 0 && !p->bare_motor[i]) {
        mju_scl(m->actuator_gainprm + mjNGAIN * k, m->actuator_gainprm + mjNGAIN * k, x, 1);
        mju_scl(m->actuator_biasprm + mjNBIAS * k, m->actuator_biasprm + mjNBIAS * k, x, 3);
      }
    }
    break;
  case ARMATURE:
    mju_scl(m->dof_armature, m->dof_armature, x, m->nv);
    break;
  case DRY:
    mju_scl(m->dof_frictionloss, m->dof_frictionloss, x, m->nv);
    break;
  case LATENCY:
    if (x != floor(x) || x > PLANT_MAX_LATENCY) {
      return err_set(e, EXIT_USAGE, "perturb: latency counts control steps, 0 to %d",
                     PLANT_MAX_LATENCY);
    }
    p->latency = (int)x;
    break;
  case PUSH:
    p->push = x;
  }
  mj_setConst(m, p->d); // what MuJoCo derives from masses
  return 0;
}

void plant_vary(struct plant *p, const struct plant_vary *v) {
  const struct robot *r = p->robot;
  if (!p->nominal) {
    p->nominal = mj_copyModel(NULL, p->m);
  }
  mjModel *m = mj_copyModel(p->m, p->nominal);
  for (int g = 0; g < m->ngeom && v->friction >= 0; g++) {
    m->geom_friction[3 * g] = mju_max(v->friction, mjMINMU);
  }

  // a link is every body that is welded together; shifts turn from the link's axes to the body's
  mju_copy(p->d->qpos, m->qpos0, m->nq);
  mj_kinematics(m, p->d);
  for (int i = 0; i < r->nlink; i++) {
    int root = p->dof[i] < 0 ? -1 : m->dof_bodyid[p->dof[i]];
    for (int b = 1; b < m->nbody && root >= 0; b++) {
      if (m->body_weldid[b] != root) {
        continue;
      }
      double world[3], shift[3];
      mju_rotVecMat(world, v->com + 3 * i, p->d->xmat + 9 * root);
      mju_rotVecMatT(shift, world, p->d->xmat + 9 * b);
      mju_addTo3(m->body_ipos + 3 * b, shift);
      m->body_mass[b] *= v->mass[i];
      mju_scl3(m->body_inertia + 3 * b, m->body_inertia + 3 * b, v->mass[i]);
    }
    for (int k = 0; k < r->link[i].ndof && root >= 0; k++) {
      m->dof_armature[p->dof[i] + k] *= v->armature[r->link[i].dof + k];
      m->dof_frictionloss[p->dof[i] + k] *= v->dry[r->link[i].dof + k];
    }
  }
  for (int i = 0; i < r->nu; i++) {
    int k = p->actuator[i];
    p->kp[i] = v->kp[i];
    p->kd[i] = v->kd[i];
    if (k >= 0 && !p->bare_motor[i]) {
      m->actuator_gainprm[mjNGAIN * k] *= v->kp[i];
      m->actuator_biasprm[mjNBIAS * k + 1] *= v->kp[i];
      m->actuator_biasprm[mjNBIAS * k + 2] *= v->kd[i];
    }
  }
  BUG_IF(v->latency < 0 || v->latency > PLANT_MORE_LATENCY);
  p->more_latency = v->latency;
  mj_setConst(m, p->d);
}

// ---- running

void plant_reset(struct plant *p, const double *qpos, const double *qvel, uint64_t seed) {
  const struct robot *r = p->robot;
  mj_resetData(p->m, p->d);
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    if (p->dof[i] >= 0) {
      mju_copy(p->d->qpos + p->qadr[i], qpos + l->qadr, l->nq);
      mju_copy(p->d->qvel + p->dof[i], qvel + l->dof, l->ndof);
    }
  }
  p->rng = rng_stream(seed, RNG_PUSH, 0, 0, 0);
  p->nqueued = 0;
  p->step = p->saturated = p->counted = 0;
}

void plant_state(const struct plant *p, double *qpos, double *qvel) {
  const struct robot *r = p->robot;
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    if (p->dof[i] >= 0) {
      mju_copy(qpos + l->qadr, p->d->qpos + p->qadr[i], l->nq);
      mju_copy(qvel + l->dof, p->d->qvel + p->dof[i], l->ndof);
    } else { // a hinge
      qpos[l->qadr] = qvel[l->dof] = 0;
    }
  }
}

// the targets that arrive now: those of `latency` control steps ago, or the oldest there are
static const double *arriving(struct plant *p, const double *ctrl) {
  int nu = p->robot->nu, latency = p->latency + p->more_latency;
  if (p->nqueued > latency) {
    memmove(p->queue, p->queue + nu, sizeof(double) * (size_t)(latency * nu));
    p->nqueued--;
  }
  mju_copy(p->queue + p->nqueued++ * nu, ctrl, nu);
  return p->queue;
}

static double limit_of(const double range[2]) {
  return fmax(fabs(range[0]), fabs(range[1]));
}

// What the training robot's actuator would do, asked of a bare motor.
static double motor_ctrl(const struct plant *p, int i, double target) {
  const struct robot_actuator *u = &p->robot->actuator[i];
  int link = p->robot->dof[u->dof].link, k = p->actuator[i];
  double length = u->gear * p->d->qpos[p->qadr[link]];
  if (u->ctrl_limited) {
    target = mju_clip(target, u->ctrl_range[0], u->ctrl_range[1]);
  }
  double velocity = u->gear * p->d->qvel[p->dof[link]];
  double force = p->kp[i] * (u->gain * target + u->bias[1] * length) + u->bias[0];
  force = p->gain_scale * (force + p->kd[i] * u->bias[2] * velocity);
  if (u->force_limited) {
    force = mju_clip(force, u->force_range[0], u->force_range[1]);
  }
  return force * u->gear / (p->m->actuator_gainprm[mjNGAIN * k] * p->m->actuator_gear[6 * k]);
}

static void count_saturation(struct plant *p) {
  for (int i = 0; i < p->robot->nu; i++) {
    int k = p->actuator[i];
    if (k < 0) {
      continue;
    }
    const struct robot_actuator *u = &p->robot->actuator[i];
    // a servo has its own limit; a bare motor gets the training robot's, before either gear
    double force = p->d->actuator_force[k], limit = INFINITY;
    if (p->bare_motor[i] && u->force_limited) {
      force *= p->m->actuator_gear[6 * k] / u->gear;
      limit = limit_of(u->force_range);
    } else if (p->m->actuator_forcelimited[k]) {
      limit = limit_of(p->m->actuator_forcerange + 2 * k);
    }
    p->counted++;
    p->saturated += fabs(force) >= 0.95 * limit;
  }
}

void plant_kick(struct plant *p, const double push[6]) {
  if (p->robot->link[0].type == JOINT_FREE) {
    mju_addTo(p->d->qvel + p->dof[0], push, 6);
  }
}

bool plant_step(struct plant *p, const double *ctrl) {
  const double *target = arriving(p, ctrl);
  long period = (long)(push_period / p->control_dt + 0.5);
  if (p->push > 0 && p->step > 0 && p->step % period == 0) {
    double angle = rng_range(&p->rng, 0, 2 * mjPI);
    plant_kick(p, (const double[6]){p->push * cos(angle), p->push * sin(angle)});
  }
  for (int s = 0; s < p->substeps; s++) {
    for (int i = 0; i < p->robot->nu; i++) {
      if (p->actuator[i] >= 0) {
        double u = p->bare_motor[i] ? motor_ctrl(p, i, target[i]) : target[i];
        p->d->ctrl[p->actuator[i]] = u;
      }
    }
    mj_step(p->m, p->d);
  }
  p->step++;
  count_saturation(p);

  // MuJoCo starts again from qpos0 when a state blows up, and counts it
  const mjWarningStat *w = p->d->warning;
  if (w[mjWARN_BADQPOS].number + w[mjWARN_BADQVEL].number + w[mjWARN_BADQACC].number > 0) {
    for (int i = 0; i < p->m->nq; i++) {
      p->d->qpos[i] = NAN;
    }
    for (int i = 0; i < p->m->nv; i++) {
      p->d->qvel[i] = NAN;
    }
    return false;
  }
  return true;
}

double plant_saturation(const struct plant *p) {
  return p->counted ? (double)p->saturated / (double)p->counted : 0;
}
