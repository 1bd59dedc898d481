#include "motion/synth_plan.h"
#include "motion/synth_kin.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// how still a standing foot is
static const double planted = 1e-4, planted_rot = 1e-3; // m, rad

// hinge speeds (rad/s) of the motors, by effort limit: g1 has 22.5:1 and 14.3:1 gears
static double motor_speed(double torque) {
  return torque > 130 ? 20 : torque > 80 ? 32 : torque > 10 ? 37 : 22;
}

int synth_body_find(struct synth_body *b, struct arena *a, const struct robot *r, struct err *e) {
  static const char *const names[2] = {"left_ankle_roll_link", "right_ankle_roll_link"};
  memset(b, 0, sizeof *b);
  b->robot = r;
  if (!synth_kin_supports(r)) {
    return err_set(e, EXIT_USAGE, "%s: motion synth needs a robot of one free joint and hinges",
                   r->path);
  }
  for (int f = 0; f < 2; f++) {
    const int body = robot_find_body(r, names[f]);
    if (body < 0) {
      return err_set(e, EXIT_USAGE, "%s: motion synth needs a body '%s' (Unitree G1)", r->path,
                     names[f]);
    }
    b->foot[f] = r->body[body].link;
    int n = 0;
    for (int g = 0; g < r->ngeom; g++) {
      if (r->geom[g].link == b->foot[f] && r->geom[g].type == GEOM_SPHERE && n < SYNTH_SPHERES) {
        memcpy(b->sphere[f][n++], r->geom[g].pos, 3 * sizeof(double));
        b->radius = r->geom[g].size[0];
      }
    }
    if (n != SYNTH_SPHERES) {
      return err_set(e, EXIT_USAGE, "%s: motion synth needs %d contact spheres on '%s', found %d",
                     r->path, SYNTH_SPHERES, names[f], n);
    }
  }
  // forces are planned a fifth inside the sole's rim: a tracker needs that margin
  for (int f = 0; f < 2; f++) {
    for (int d = 0; d < 3; d++) {
      double mean = 0;
      for (int i = 0; i < SYNTH_SPHERES; i++) {
        mean += b->sphere[f][i][d] / SYNTH_SPHERES;
      }
      for (int i = 0; i < SYNTH_SPHERES; i++) {
        b->push[f][i][d] = mean + .8 * (b->sphere[f][i][d] - mean);
      }
    }
  }
  const int torso = robot_find_body(r, "torso_link");
  if (torso < 0) {
    return err_set(e, EXIT_USAGE, "%s: motion synth needs a body 'torso_link' (Unitree G1)",
                   r->path);
  }
  b->torso = r->body[torso].link;
  const int key = robot_find_key(r, "stand");
  if (key < 0) {
    return err_set(e, EXIT_USAGE, "%s: motion synth needs a key frame 'stand'", r->path);
  }
  b->stand = r->key[key].qpos;
  b->limit = ARENA_NEW(a, double, r->nv);
  b->speed = ARENA_NEW(a, double, r->nv);
  for (int u = 0; u < r->nu; u++) {
    const struct robot_actuator *act = &r->actuator[u];
    const double *range = act->force_limited ? act->force_range : act->ctrl_range;
    b->limit[act->dof] = fabs(act->gear) * range[1] * (act->force_limited ? 1 : act->gain);
    b->speed[act->dof] = motor_speed(b->limit[act->dof]);
  }
  for (int j = 6; j < r->nv; j++) {
    if (!(b->limit[j] > 0)) {
      char name[64];
      return err_set(e, EXIT_USAGE, "%s: motion synth needs a torque limit on joint '%s'", r->path,
                     robot_dof_name(r, j, name));
    }
  }
  return 0;
}

static void rot_yaw_pitch_roll(double m[9], double yaw, double pitch, double roll) {
  const double cy = cos(yaw), sy = sin(yaw), cp = cos(pitch), sp = sin(pitch), cr = cos(roll),
               sr = sin(roll);
  const double r[9] = {cy * cp,
                       cy * sp * sr - sy * cr,
                       cy * sp * cr + sy * sr,
                       sy * cp,
                       sy * sp * sr + cy * cr,
                       sy * sp * cr - cy * sr,
                       -sp,
                       cp * sr,
                       cp * cr};
  memcpy(m, r, sizeof r);
}

static double yaw_of(const double m[9]) {
  return atan2(m[3], m[0]);
}

// 0 to 1 with two zero derivatives at both ends
static double ease(double s) {
  s = s < 0 ? 0 : s > 1 ? 1 : s;
  return s * s * s * (10 + s * (6 * s - 15));
}

// 1 in from..to, eased to 0 over ramp frames outside it
static double window(int t, int from, int to, int ramp) {
  if (t < from) {
    return ramp > 0 ? ease(1 - (double)(from - t) / ramp) : 0;
  }
  return t > to ? (ramp > 0 ? ease(1 - (double)(t - to) / ramp) : 0) : 1;
}

static int clamp_frame(const struct synth_plan *p, int t) {
  return t < 0 ? 0 : t >= p->nframe ? p->nframe - 1 : t;
}

static double sole_height(const struct synth_body *b) {
  return b->radius - b->sphere[0][0][2];
}

int plan_init(struct synth_plan *p, struct arena *a, const struct robot *r, struct err *e) {
  memset(p, 0, sizeof *p);
  if (synth_body_find(&p->body, a, r, e)) {
    return e->code;
  }
  p->nframe = SYNTH_NFRAME;
  p->dt = 1. / SYNTH_FPS;
  p->swing_xy = .04;
  p->swing_z = .012;
  p->swing_rot = .15;
  p->swing_near = .3;
  p->swing_clear = .35;
  p->frame = ARENA_NEW(a, struct synth_frame, p->nframe);
  struct synth_kin k;
  synth_kin_new(&k, a, r);
  synth_kin_update(&k, r, p->body.stand);
  // soles of the stand pose go to the floor, whatever height the key frame has
  const double lift = sole_height(&p->body) - k.pos[3 * p->body.foot[0] + 2];
  const double *lf = k.pos + 3 * p->body.foot[0], *rf = k.pos + 3 * p->body.foot[1];
  p->pelvis_ahead = k.pos[0] - .5 * (lf[0] + rf[0]);
  p->pelvis_height = k.pos[2] + lift;
  for (int t = 0; t < p->nframe; t++) {
    struct synth_frame *fr = &p->frame[t];
    for (int f = 0; f < 2; f++) {
      const double *x = k.pos + 3 * p->body.foot[f];
      fr->foot[f] = (struct synth_foot){.pos = {x[0], x[1], sole_height(&p->body)},
                                        .sigma_xy = planted,
                                        .sigma_z = planted,
                                        .sigma_rot = planted_rot,
                                        .contact = true};
      rot_yaw_pitch_roll(fr->foot[f].rot, yaw_of(k.rot + 9 * p->body.foot[f]), 0, 0);
    }
    memcpy(fr->pelvis, k.pos, sizeof fr->pelvis);
    fr->pelvis[2] = p->pelvis_height;
    memcpy(fr->rot, k.rot, sizeof fr->rot);
    fr->pelvis_sigma[0] = fr->pelvis_sigma[1] = .05;
    fr->pelvis_sigma[2] = .02;
    fr->rot_sigma = .08;
    memcpy(fr->torso, fr->rot, sizeof fr->torso);
    fr->torso_sigma = .06;
    fr->joint = ARENA_NEW(a, double, r->nv);
    fr->sigma = ARENA_NEW(a, double, r->nv);
    for (int l = 1; l < r->nlink; l++) {
      fr->joint[r->link[l].dof] = p->body.stand[r->link[l].qadr];
      fr->sigma[r->link[l].dof] = .25;
    }
  }
  for (int f = 0; f < 2; f++) { // legs follow the feet
    for (int j = r->link[p->body.foot[f]].dof; j >= 6; j = r->dof[j].parent) {
      for (int t = 0; t < p->nframe; t++) {
        p->frame[t].sigma[j] = 1;
      }
    }
  }
  return 0;
}

struct synth_place plan_place(const struct synth_plan *p, int foot, int frame) {
  const struct synth_foot *f = &p->frame[clamp_frame(p, frame)].foot[foot];
  return (struct synth_place){f->pos[0], f->pos[1], yaw_of(f->rot)};
}

struct synth_place place_beside(double x, double y, double yaw, int foot, double apart) {
  const double side = foot ? -.5 * apart : .5 * apart;
  return (struct synth_place){x - side * sin(yaw), y + side * cos(yaw), yaw};
}

// loose in the middle of a swing, firm while the sole is near the floor
static double swing_sigma(const struct synth_plan *p, double s, double firm, double loose) {
  const double near = ease((s < .5 ? s : 1 - s) / p->swing_near);
  return firm * pow(loose / firm, near);
}

static void plant_from(struct synth_plan *p, int foot, int on, struct synth_place to) {
  for (int t = clamp_frame(p, on); t < p->nframe; t++) {
    struct synth_foot *f = &p->frame[t].foot[foot];
    *f = (struct synth_foot){.pos = {to.x, to.y, sole_height(&p->body)},
                             .sigma_xy = planted,
                             .sigma_z = planted,
                             .sigma_rot = planted_rot,
                             .contact = true};
    rot_yaw_pitch_roll(f->rot, to.yaw, 0, 0);
  }
}

void plan_swing(struct synth_plan *p, int foot, int off, int on, struct synth_place to,
                double height, double pitch) {
  const struct synth_place from = plan_place(p, foot, off);
  plant_from(p, foot, on, to);
  for (int t = off + 1; t < on && t < p->nframe; t++) {
    struct synth_foot *f = &p->frame[t].foot[foot];
    const double s = (double)(t - off) / (on - off);
    // the sole is up before it goes forward, and forward before it comes down
    const double x = ease((s - .08) / .84), bump = 16 * s * s * (1 - s) * (1 - s);
    f->contact = false;
    f->clear = p->swing_clear * height * bump;
    f->pos[0] = from.x + (to.x - from.x) * x;
    f->pos[1] = from.y + (to.y - from.y) * x;
    f->pos[2] = sole_height(&p->body) + height * bump;
    rot_yaw_pitch_roll(f->rot, from.yaw + (to.yaw - from.yaw) * x, pitch * bump * cos(M_PI * s), 0);
    f->sigma_xy = swing_sigma(p, s, 2e-4, p->swing_xy);
    f->sigma_z = swing_sigma(p, s, 2e-4, p->swing_z);
    f->sigma_rot = swing_sigma(p, s, 2e-3, p->swing_rot);
  }
}

void plan_swing_via(struct synth_plan *p, int foot, int off, int on, struct synth_place to,
                    const struct synth_via *via, int n) {
  const struct synth_place from = plan_place(p, foot, off);
  plan_swing(p, foot, off, on, to, .08, 0);
  // between knots: eased; the solver's smoothness rounds the corners
  struct synth_via a = {
      .frame = off, .pos = {from.x, from.y, sole_height(&p->body)}, .yaw = from.yaw};
  for (int i = 0; i <= n; i++) {
    const struct synth_via end = {
        .frame = on, .pos = {to.x, to.y, sole_height(&p->body)}, .yaw = to.yaw};
    const struct synth_via b = i < n ? via[i] : end;
    for (int t = a.frame + 1; t <= b.frame && t < on && t < p->nframe; t++) {
      struct synth_foot *f = &p->frame[t].foot[foot];
      const double s = (double)(t - a.frame) / (b.frame - a.frame), w = ease(s);
      // up before away from the floor, over the place before down to it
      const double over = i == 0 ? ease((s - .3) / .7) : i == n ? ease(s / .7) : w;
      for (int d = 0; d < 3; d++) {
        f->pos[d] = a.pos[d] + (b.pos[d] - a.pos[d]) * (d < 2 ? over : w);
      }
      rot_yaw_pitch_roll(f->rot, a.yaw + (b.yaw - a.yaw) * over,
                         a.pitch + (b.pitch - a.pitch) * over, a.roll + (b.roll - a.roll) * over);
      const double all = (double)(t - off) / (on - off);
      const double firm = swing_sigma(p, all, 2e-4, p->swing_xy);
      const double mark = b.sigma > 0 ? b.sigma : p->swing_xy,
                   prior = a.sigma > 0 ? a.sigma : p->swing_xy;
      const double loose = s > .7 ? mark : s < .3 ? prior : p->swing_xy;
      f->sigma_xy = fmin(firm, loose);
      f->sigma_z = fmin(firm, loose);
      f->sigma_rot = fmin(swing_sigma(p, all, 2e-3, p->swing_rot), 5 * loose);
    }
    a = b;
  }
}

void plan_follow(struct synth_plan *p, int width, double sigma_xy) {
  for (int t = 0; t < p->nframe; t++) {
    double x = 0, y = 0, yaw = 0, weight = 0;
    for (int k = -width; k <= width; k++) {
      const double w = 1 + cos(M_PI * k / (width + 1));
      for (int f = 0; f < 2; f++) {
        const struct synth_place at = plan_place(p, f, t + k);
        const double ref = plan_place(p, 0, t).yaw; // yaws within half a turn of one another
        x += w * at.x;
        y += w * at.y;
        yaw += w * (ref + remainder(at.yaw - ref, 2 * M_PI));
        weight += w;
      }
    }
    yaw /= weight;
    struct synth_frame *fr = &p->frame[t];
    fr->pelvis[0] = x / weight + p->pelvis_ahead * cos(yaw);
    fr->pelvis[1] = y / weight + p->pelvis_ahead * sin(yaw);
    fr->pelvis_sigma[0] = fr->pelvis_sigma[1] = sigma_xy;
    rot_yaw_pitch_roll(fr->rot, yaw, 0, 0);
    memcpy(fr->torso, fr->rot, sizeof fr->torso);
  }
}

void plan_drop(struct synth_plan *p, int from, int to, double drop, int ramp) {
  for (int t = 0; t < p->nframe; t++) {
    p->frame[t].pelvis[2] -= drop * window(t, from, to, ramp);
  }
}

void plan_free(struct synth_plan *p, int from, int to) {
  for (int t = from; t <= to && t < p->nframe; t++) {
    p->frame[t].pelvis_sigma[0] = p->frame[t].pelvis_sigma[1] = p->frame[t].pelvis_sigma[2] = 1;
  }
}

void plan_lean(struct synth_plan *p, int from, int to, double yaw, double pitch, double roll,
               int ramp) {
  for (int t = 0; t < p->nframe; t++) {
    const double w = window(t, from, to, ramp);
    if (w > 0) {
      double turn[9], old[9];
      rot_yaw_pitch_roll(turn, w * yaw, w * pitch, w * roll);
      memcpy(old, p->frame[t].rot, sizeof old);
      mul33(p->frame[t].rot, old, turn);
      memcpy(old, p->frame[t].torso, sizeof old);
      mul33(p->frame[t].torso, old, turn);
    }
  }
}

void plan_shift(struct synth_plan *p, int from, int to, double x, double y, double sigma,
                int ramp) {
  for (int t = 0; t < p->nframe; t++) {
    const double w = window(t, from, to, ramp);
    struct synth_frame *fr = &p->frame[t];
    fr->pelvis[0] += w * (x - fr->pelvis[0]);
    fr->pelvis[1] += w * (y - fr->pelvis[1]);
    if (w > .5) {
      fr->pelvis_sigma[0] = fr->pelvis_sigma[1] = sigma;
    }
  }
}

static int find_dof(const struct synth_plan *p, const char *joint) {
  const int link = robot_find_joint(p->body.robot, joint);
  BUG_IF(link < 1);
  return p->body.robot->link[link].dof;
}

void plan_joint(struct synth_plan *p, const char *joint, int from, int to, double value,
                double sigma, int ramp) {
  const int j = find_dof(p, joint);
  const double goal = p->body.stand[p->body.robot->link[p->body.robot->dof[j].link].qadr] + value;
  for (int t = 0; t < p->nframe; t++) {
    const double w = window(t, from, to, ramp);
    p->frame[t].joint[j] += w * (goal - p->frame[t].joint[j]);
    p->frame[t].sigma[j] *= pow(sigma / p->frame[t].sigma[j], w);
  }
}

void plan_pair(struct synth_plan *p, const char *name, int from, int to, double value, double sigma,
               int ramp) {
  char joint[64];
  const bool mirror = strstr(name, "roll") || strstr(name, "yaw");
  snprintf(joint, sizeof joint, "left_%s_joint", name);
  plan_joint(p, joint, from, to, value, sigma, ramp);
  snprintf(joint, sizeof joint, "right_%s_joint", name);
  plan_joint(p, joint, from, to, mirror ? -value : value, sigma, ramp);
}

void plan_arms(struct synth_plan *p, int from, int to, double gain, double sigma) {
  const int left = find_dof(p, "left_shoulder_pitch_joint"),
            right = find_dof(p, "right_shoulder_pitch_joint");
  for (int t = from; t <= to && t < p->nframe; t++) {
    struct synth_frame *fr = &p->frame[t];
    const double dx = fr->foot[0].pos[0] - fr->foot[1].pos[0],
                 dy = fr->foot[0].pos[1] - fr->foot[1].pos[1];
    // left foot ahead: left arm back (positive pitch)
    const double ahead = dx * fr->rot[0] + dy * fr->rot[3];
    fr->joint[left] += gain * ahead;
    fr->joint[right] -= gain * ahead;
    fr->sigma[left] = fr->sigma[right] = sigma;
  }
}

void plan_sway(struct synth_plan *p, const char *joint, int from, int to, double amplitude,
               double period, double phase, int ramp) {
  const int j = find_dof(p, joint);
  for (int t = 0; t < p->nframe; t++) {
    p->frame[t].joint[j] += amplitude * window(t, from, to, ramp) *
                            sin(2 * M_PI * ((t - from) * p->dt / period + phase));
  }
}

static bool supported(const struct synth_plan *p, int t) {
  return p->frame[t].foot[0].contact || p->frame[t].foot[1].contact;
}
static bool planted_at(const struct synth_plan *p, int foot, int t) {
  return foot < 0 ? supported(p, t) : p->frame[t].foot[foot].contact;
}

// 0 to 1 to 0 over the contact of a foot (-1: of any foot) around t; 1 at the ends of the clip
static double bell(const struct synth_plan *p, int foot, int t) {
  const int ramp = 7;
  int in = 0, out = 0;
  while (in < ramp && (t - in < 0 || planted_at(p, foot, t - in))) {
    in++;
  }
  while (out < ramp && (t + out >= p->nframe || planted_at(p, foot, t + out))) {
    out++;
  }
  return ease((double)(in < out ? in : out) / ramp);
}

void plan_loads(struct synth_plan *p) {
  const double weight = -p->body.robot->total_mass * p->body.robot->gravity[2];
  const int half = 14; // a running step
  for (int t = 0; t < p->nframe; t++) {
    // on average the floor carries the weight: more in contact, the more there is flight
    double mean = 0;
    for (int k = -half; k < half; k++) {
      mean += bell(p, -1, clamp_frame(p, t + k)) / (2 * half);
    }
    // each foot takes over and hands on gently
    double share[2] = {0, 0};
    for (int f = 0; f < 2; f++) {
      share[f] = planted_at(p, f, t) ? bell(p, f, t) : 0;
    }
    const double sum = share[0] + share[1];
    for (int f = 0; f < 2; f++) {
      p->frame[t].foot[f].load = sum > 0 ? weight * bell(p, -1, t) / mean * share[f] / sum : 0;
    }
  }
}
