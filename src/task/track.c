// Motion tracking without lanes: what a robot must have, key bodies, resets, ends, errors.
#include "task/track_private.h"
#include "base/rng.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BODY_MAX = 256 };             // for body positions on the stack
static const double speed_max = 200; // rad/s or m/s: above, the simulation has come apart

static const char *joint_word(enum joint_type type) {
  static const char *const word[] = {"free", "ball", "slide", "hinge"};
  return word[type];
}

// The policy sends joint angles, and observes hinges and slides by one number each.
static int check_robot(const struct robot *r, const struct spec *s, struct err *e) {
  if (r->nlink == 0 || r->link[0].type != JOINT_FREE) {
    return err_set(e, EXIT_USAGE,
                   "%s: motion tracking needs a root with a free joint; the first joint%s%s is %s",
                   r->path, r->nlink ? " " : "", r->nlink ? r->link[0].joint_name : "",
                   r->nlink ? joint_word(r->link[0].type) : "missing");
  }
  if (r->nbody > BODY_MAX) {
    return err_set(e, EXIT_USAGE, "%s: %d bodies; motion tracking takes at most %d", r->path,
                   r->nbody, BODY_MAX);
  }
  if (r->nu == 0) {
    return err_set(e, EXIT_USAGE, "%s: motion tracking needs actuators; the robot has none",
                   r->path);
  }
  for (int j = 0; j < r->nu; j++) {
    const struct robot_actuator *act = &r->actuator[j];
    enum joint_type type = r->link[r->dof[act->dof].link].type;
    if (type != JOINT_HINGE && type != JOINT_SLIDE) {
      return err_set(e, EXIT_USAGE,
                     "%s: actuator %s drives a %s joint; motion tracking needs hinges or slides",
                     r->path, act->name, joint_word(type));
    }
    if (act->bias[1] == 0 || act->gain != -act->bias[1] || act->gear != 1) {
      return err_set(e, EXIT_USAGE,
                     "%s: actuator %s does not follow a joint position (gain %g, position bias %g, "
                     "gear %g); motion tracking needs position actuators with gear 1",
                     r->path, act->name, act->gain, act->bias[1], act->gear);
    }
  }
  for (int l = 1; l < r->nlink && track_shows_rotations(s); l++) {
    if (r->link[l].type != JOINT_HINGE) {
      return err_set(e, EXIT_USAGE,
                     "%s: paper shows hinges only, and joint %s of %s is %s; use compact",
                     s->observation == OBSERVATION_PAPER ? "observation" : "add.residual",
                     r->link[l].joint_name, r->path, joint_word(r->link[l].type));
    }
  }
  return 0;
}

static int default_pose(struct track *t, struct arena *a, struct err *e) {
  const struct robot *r = t->robot;
  const char *want = t->spec->control_pose;
  int k = robot_find_key(r, want);
  if (k < 0) {
    char list[400] = "";
    const char *name[64], *near;
    int n = 0, used = 0;
    for (int i = 0; i < r->nkey && n < 64 && used < (int)sizeof list; i++) {
      name[n++] = r->key[i].name;
      used += snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", r->key[i].name);
    }
    near = err_nearest(want, name, n);
    return err_set(e, EXIT_USAGE, "control.pose: %s has no key frame '%s'%s%s%s; %s%s", r->path,
                   want, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
                   n ? "it has " : "it has none", list);
  }
  t->pose = ARENA_NEW(a, double, r->nu);
  for (int j = 0; j < r->nu; j++) {
    t->pose[j] = r->key[k].qpos[r->actuator[j].qadr];
  }
  return 0;
}

static bool body_is(const char *name, const char *stem) {
  size_t n = strlen(stem);
  return !strncmp(name, stem, n) && (!name[n] || !strcmp(name + n, "_link"));
}

// The paper's five bodies of G1 when the robot has them all, else every body without children.
static void choose_key_bodies(struct track *t, struct arena *a) {
  static const char *const paper[] = {"left_ankle_roll", "right_ankle_roll", "head",
                                      "left_wrist_yaw", "right_wrist_yaw"};
  enum { NPAPER = sizeof paper / sizeof *paper };
  const struct robot *r = t->robot;
  t->key = ARENA_NEW(a, int, r->nbody + NPAPER);
  for (int i = 0; i < NPAPER; i++) {
    for (int b = 1; b < r->nbody; b++) {
      if (body_is(r->body[b].name, paper[i])) {
        t->key[t->nkey++] = b;
        break;
      }
    }
  }
  if (t->nkey == NPAPER) {
    return;
  }
  t->nkey = 0;
  for (int b = 1; b < r->nbody; b++) {
    bool leaf = r->body[b].link >= 0;
    for (int c = b + 1; c < r->nbody; c++) {
      leaf = leaf && r->body[c].parent != b;
    }
    if (leaf) {
      t->key[t->nkey++] = b;
    }
  }
}

int track_new(struct track *t, struct arena *a, const struct sim_model *m, const struct motion *mo,
              const struct spec *s, struct err *e) {
  const struct robot *r = sim_robot(m);
  BUG_IF(mo->nq != r->nq || mo->nv != r->nv);
  *t = (struct track){.model = m, .robot = r, .motion = mo, .spec = s};
  if (check_robot(r, s, e) || default_pose(t, a, e)) {
    return e->code;
  }
  // a reset leaves at least one step before the end
  for (int i = 0; i < mo->nclip; i++) {
    if (mo->clip[i].nframe < 4) {
      return err_set(e, EXIT_USAGE,
                     "motion %s: %d frames of %g s are too short to track; at least 4",
                     mo->clip[i].name, mo->clip[i].nframe, mo->dt);
    }
  }
  struct track_private *p = t->priv = ARENA_NEW(a, struct track_private, 1);
  p->qadr = ARENA_NEW(a, int, r->nu);
  p->dof = ARENA_NEW(a, int, r->nu);
  for (int j = 0; j < r->nu; j++) {
    p->qadr[j] = r->actuator[j].qadr;
    p->dof[j] = r->actuator[j].dof;
  }
  while (r->body[p->root].link != 0) {
    p->root++;
  }
  choose_key_bodies(t, a);
  track_layout_features(t, a);
  track_layout_observation(t, a);
  return 0;
}

struct track_work *track_work_new(struct arena *a, const struct track *t, int width) {
  struct track_work *tw = ARENA_NEW(a, struct track_work, 1);
  tw->width = width;
  tw->feat = ARENA_NEW(a, double, t->nfeat *width);
  tw->key = ARENA_NEW(a, double, 3 * t->nkey * width);
  tw->dkey = ARENA_NEW(a, double, 3 * t->nkey * width);
  tw->dres = ARENA_NEW(a, double, t->nres *width);
  return tw;
}

// ---- control, episodes

void track_ctrl(const struct track *t, double *ctrl, const double *action, const int *frame,
                int width) {
  (void)frame;
  for (int j = 0; j < t->robot->nu; j++) {
    for (int l = 0; l < width; l++) {
      int i = j * width + l;
      ctrl[i] = t->pose[j] + t->spec->control_action_scale * action[i];
    }
  }
}

static int clamp_frame(const struct track *t, int frame) {
  return frame < t->motion->nframe ? frame : t->motion->nframe - 1;
}

enum track_end track_end(const struct track *t, const double *qpos1, const double *qvel1,
                         int frame) {
  const struct motion *mo = t->motion;
  const struct spec *s = t->spec;
  bool sane = true;
  for (int i = 0; i < mo->nq; i++) {
    sane = sane && isfinite(qpos1[i]);
  }
  for (int i = 0; i < mo->nv; i++) {
    sane = sane && fabs(qvel1[i]) <= speed_max; // false for a NaN
  }
  if (!sane) {
    return TRACK_NONFINITE;
  }
  const double *ref = mo->qpos + (size_t)clamp_frame(t, frame) * mo->nq;
  double dx = qpos1[0] - ref[0], dy = qpos1[1] - ref[1], dz = qpos1[2] - ref[2];
  if (dx * dx + dy * dy + dz * dz > s->terminate_root * s->terminate_root ||
      qpos1[2] < s->terminate_height) {
    return TRACK_FAILED;
  }
  return frame >= motion_last(mo, frame) ? TRACK_TRUNCATED : TRACK_RUNS;
}

// The reset noise of the paper (bundled contact gradients, domain randomisation): half-widths of
// the root's position x, y, z (m) and rotation about its own axes, and of the joints (rad).
static const double reset_root[6] = {0.05, 0.05, 0.01, 0.1, 0.1, 0.2};
static const double reset_joint = 0.1;

void track_reset_noise(const struct track *t, double *qpos1, double *move, double scale,
                       struct rng *g) {
  const struct robot *r = t->robot;
  const struct track_private *p = t->priv;
  memset(move, 0, r->nv * sizeof *move);
  for (int i = 0; i < 6; i++) {
    move[i] = scale * rng_range(g, -reset_root[i], reset_root[i]);
  }
  for (int j = 0; j < r->nu; j++) {
    // it does not push a joint past a limit, unless the reference itself is there
    const struct robot_dof *dof = &r->dof[p->dof[j]];
    double ref = qpos1[p->qadr[j]];
    double d = scale * rng_range(g, -reset_joint, reset_joint);
    if (dof->limited) {
      d = fmin(fmax(d, fmin(dof->range[0] - ref, 0)), fmax(dof->range[1] - ref, 0));
    }
    move[p->dof[j]] = d;
  }
  robot_integrate(r, qpos1, move);
}

// One of all frames that leave a step before their clip's end, so that a clip comes up by how long
// it is. u: uniform in (0, 1).
static int draw_start(const struct motion *mo, int *clip, double u) {
  int nth = (int)(u * (mo->nframe - 2 * mo->nclip));
  *clip = 0;
  while (*clip + 1 < mo->nclip && nth >= mo->clip[*clip].nframe - 2) {
    nth -= mo->clip[*clip].nframe - 2;
    ++*clip;
  }
  return mo->clip[*clip].first + nth;
}

void track_reset(const struct track *t, double *qpos1, double *qvel1, int *frame, uint32_t env,
                 uint32_t episode) {
  const struct motion *mo = t->motion;
  double scale = t->spec->reset_noise;
  struct rng g = rng_stream((uint64_t)t->spec->seed, RNG_RESET, env, episode, 0);

  // both drawn always, so that the noise does not depend on which one counts
  int clip, uniform = draw_start(mo, &clip, rng_uniform(&g));
  bool at_start = rng_uniform(&g) < t->spec->reset_first;
  *frame = at_start ? mo->clip[clip].first : uniform;
  memcpy(qpos1, mo->qpos + (size_t)*frame * mo->nq, mo->nq * sizeof *qpos1);
  const double *ref_vel = mo->qvel + (size_t)*frame * mo->nv;

  if (scale > 0) {
    track_reset_noise(t, qpos1, qvel1, scale, &g); // where the velocity goes afterwards
  }
  memcpy(qvel1, ref_vel, mo->nv * sizeof *qvel1);
}

void track_error(const struct track *t, const double *qpos1, int frame, double *e_world,
                 double *e_local) {
  const struct robot *r = t->robot;
  double x[3 * BODY_MAX];
  const double *ref = t->motion->xpos + (size_t)clamp_frame(t, frame) * r->nbody * 3;
  int root = 3 * t->priv->root;
  robot_fk(r, qpos1, x, NULL);
  double world = 0, local = 0;
  for (int b = 1; b < r->nbody; b++) {
    double w2 = 0, l2 = 0;
    for (int c = 0; c < 3; c++) {
      double d = x[3 * b + c] - ref[3 * b + c], d0 = x[root + c] - ref[root + c];
      w2 += d * d;
      l2 += (d - d0) * (d - d0);
    }
    world += sqrt(w2);
    local += sqrt(l2);
  }
  *e_world = world / (r->nbody - 1);
  *e_local = local / (r->nbody - 1);
}

// ---- dispatch

extern const struct track_kernels track_kernels_w1;
#ifdef __x86_64__
extern const struct track_kernels track_kernels_v2, track_kernels_v3, track_kernels_v4;
#else
extern const struct track_kernels track_kernels_arm;
#endif

const struct track_kernels *track_kernels(const char *isa) {
  static const struct track_kernels *const build[] = {
      &track_kernels_w1,
#ifdef __x86_64__
      &track_kernels_v2,
      &track_kernels_v3,
      &track_kernels_v4,
#else
      &track_kernels_arm,
#endif
  };
  for (size_t i = 0; i < sizeof build / sizeof *build; i++) {
    if (!strcmp(build[i]->isa, isa)) {
      return build[i];
    }
  }
  return NULL;
}
