// The choreographies. Times are frames of 20 ms; lengths in metres, angles in radians.
#include "motion/synth_plan.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// A body that walks: where it is and which foot moves next.
struct walker {
  struct synth_plan *p;
  double x, y, yaw; // middle between the feet of the next step
  int foot, frame;  // foot to move; last frame both are planted
};

// The next foot goes `length` ahead along the heading, which turns by `turn`; it is in the air for
// `swing` frames (between the last planted frame and the first), after `both` frames on two feet.
static void walker_step(struct walker *w, double length, double turn, double apart, int both,
                        int swing, double height, double pitch) {
  w->yaw += turn;
  w->x += length * cos(w->yaw);
  w->y += length * sin(w->yaw);
  const int off = w->frame + both;
  plan_swing(w->p, w->foot, off, off + swing, place_beside(w->x, w->y, w->yaw, w->foot, apart),
             height, pitch);
  w->frame = off + swing;
  w->foot = !w->foot;
}

// stand pose, held firmly, at both ends
static void quiet_ends(struct synth_plan *p, int first, int last) {
  for (int t = 0; t < p->nframe; t++) {
    if (t <= first || t >= last) {
      struct synth_frame *f = &p->frame[t];
      for (int j = 6; j < p->body.robot->nv; j++) {
        f->sigma[j] = .02;
      }
      f->pelvis_sigma[0] = f->pelvis_sigma[1] = f->pelvis_sigma[2] = .01;
      f->rot_sigma = .02;
    }
  }
}

void clip_walk(struct synth_plan *p) {
  const double apart = .2;
  struct walker w = {.p = p, .foot = 1, .frame = 25};
  const struct synth_place l = plan_place(p, 0, 0), r = plan_place(p, 1, 0);
  w.x = .5 * (l.x + r.x);
  w.y = .5 * (l.y + r.y);
  // first step: weight to the left, then away; steps of half the length grow to the full stride
  walker_step(&w, .15, 0, apart, 20, 22, .07, .1);
  walker_step(&w, .4, 0, apart, 6, 20, .08, .2);
  const double stride = .52;
  for (int i = 0; i < 20; i++) {
    // ahead, a left curve, ahead, a right curve
    const double turn = i >= 4 && i < 10 ? .11 : i >= 13 && i < 20 ? -.13 : 0;
    walker_step(&w, stride, turn, apart, 5, 20, .08, .25);
  }
  walker_step(&w, .35, 0, apart, 6, 20, .08, .15);
  const double stand = l.y - r.y;
  walker_step(&w, .12, 0, stand, 8, 22, .07, .1);
  walker_step(&w, 0, 0, stand, 14, 22, .06, 0);
  const int end = w.frame;
  plan_follow(p, 14, .2);
  plan_drop(p, 35, end, .025, 25);
  plan_arms(p, 0, p->nframe - 1, .9, .12);
  quiet_ends(p, 10, end + 45);
}
// A running body: touchdowns alternate, each foot leaves before the other lands.
struct runner {
  struct synth_plan *p;
  double x, y, yaw;
  int foot, land; // foot to land next; when the last one landed
  int leave[2];   // last frame on the floor of each foot
};

// The next foot lands `period` frames after the last did and stays for `contact` frames.
static void runner_step(struct runner *w, double length, double turn, double apart, int period,
                        int contact, double height, double pitch) {
  w->yaw += turn;
  w->x += length * cos(w->yaw);
  w->y += length * sin(w->yaw);
  w->land += period;
  plan_swing(w->p, w->foot, w->leave[w->foot], w->land,
             place_beside(w->x, w->y, w->yaw, w->foot, apart), height, pitch);
  w->leave[w->foot] = w->land + contact - 1;
  w->foot = !w->foot;
}

void clip_run(struct synth_plan *p) {
  const double apart = .12;
  p->swing_xy = .2;
  p->swing_z = .03;
  p->swing_rot = .4;
  const struct synth_place l = plan_place(p, 0, 0), r = plan_place(p, 1, 0);
  struct runner w = {.p = p,
                     .x = .5 * (l.x + r.x),
                     .y = .5 * (l.y + r.y),
                     .foot = 1,
                     .land = 34,
                     .leave = {51, 32}};
  // from the first step, on two feet, to strides with a third of the time in the air
  runner_step(&w, .2, 0, .18, 15, 17, .08, .2);
  static const double up[] = {.35, .42, .48, .54, .6, .66, .71};
  static const int up_contact[] = {13, 11, 10, 10, 9, 9, 9};
  for (int i = 0; i < 7; i++) {
    runner_step(&w, up[i], 0, i < 2 ? .16 : apart, 14, up_contact[i], .09 + .02 * i, .2 + .1 * i);
  }
  const double stride = .75;
  for (int i = 0; i < 27; i++) {
    runner_step(&w, stride, i >= 6 && i < 20 ? .045 : 0, apart, 14, 9, .22, .9);
  }
  static const double down[] = {.7, .63, .55, .46, .36, .26};
  static const int down_contact[] = {9, 9, 10, 11, 13, 16};
  for (int i = 0; i < 6; i++) {
    runner_step(&w, down[i], 0, i < 4 ? apart : .16, 14, down_contact[i], .2 - .025 * i,
                .7 - .12 * i);
  }
  const double stand = l.y - r.y;
  runner_step(&w, .14, 0, stand, 15, 40, .07, .1);
  runner_step(&w, 0, 0, stand, 20, 1000, .06, 0);
  const int end = w.land;
  plan_follow(p, 14, .3);
  plan_drop(p, 35, end, .05, 25);
  plan_lean(p, 75, end - 100, 0, .1, 0, 40);
  plan_pair(p, "elbow", 60, end - 20, -.75, .25, 40);
  plan_arms(p, 0, p->nframe - 1, .8, .2);
  quiet_ends(p, 10, end + 45);
}

// ---- jump

// Crouch from frame `start`, leap to the place of w moved by (ahead, left) and turned, with `air`
// frames in flight. Returns the frame of landing.
static int leap(struct walker *w, int start, double ahead, double left, double turn, int air,
                double tuck, double apart) {
  struct synth_plan *p = w->p;
  const int off = start + 40, on = off + air + 1;
  w->x += ahead * cos(w->yaw) - left * sin(w->yaw);
  w->y += ahead * sin(w->yaw) + left * cos(w->yaw);
  w->yaw += turn;
  for (int foot = 0; foot < 2; foot++) {
    plan_swing(p, foot, off, on, place_beside(w->x, w->y, w->yaw, foot, apart), tuck, 0);
  }
  w->frame = on;
  return on;
}

// what the rest of the body does for a leap that lands at `on`
static void leap_body(struct synth_plan *p, int on, int air, double depth) {
  const int off = on - air - 1;
  plan_drop(p, off - 16, off - 12, depth, 22);
  plan_drop(p, on + 5, on + 9, .6 * depth, 14);
  plan_free(p, off - 8, on + 3);
  plan_lean(p, off - 16, off - 12, 0, .25, 0, 16);
  plan_lean(p, on + 4, on + 8, 0, .15, 0, 14);
  // arms back in the crouch, up in the leap
  plan_pair(p, "shoulder_pitch", off - 20, off - 14, .6, .15, 16);
  plan_pair(p, "shoulder_pitch", off - 1, off + 6, -1.6, .2, 12);
  plan_pair(p, "elbow", off - 1, off + 6, -.3, .3, 12);
}

void clip_jump(struct synth_plan *p) {
  static const struct {
    double ahead, left, turn, tuck;
    int air;
  } leaps[] = {
      {0, 0, 0, .26, 19},    {.3, 0, 0, .27, 19}, {0, 0, 1.2, .27, 19}, {.35, 0, 0, .28, 20},
      {0, 0, -1.2, .27, 19}, {0, .2, 0, .26, 19}, {0, 0, 0, .3, 21},
  };
  enum { N = sizeof leaps / sizeof leaps[0] };
  p->swing_xy = .06;
  p->swing_z = .04;
  p->swing_near = .15;
  p->swing_clear = .65;
  const struct synth_place l = plan_place(p, 0, 0), r = plan_place(p, 1, 0);
  struct walker w = {.p = p, .x = .5 * (l.x + r.x), .y = .5 * (l.y + r.y)};
  int start = 20, on[N];
  for (int i = 0; i < N; i++) {
    on[i] = leap(&w, start, leaps[i].ahead, leaps[i].left, leaps[i].turn, leaps[i].air,
                 leaps[i].tuck, l.y - r.y);
    start = on[i] + 32;
  }
  plan_follow(p, 10, .1);
  for (int i = 0; i < N; i++) {
    leap_body(p, on[i], leaps[i].air, .17);
  }
  quiet_ends(p, 8, on[N - 1] + 50);
}

// ---- fight

// A place seen from the body: ahead, left and up of a spot on the floor, foot turned by yaw.
static struct synth_via via(int frame, struct synth_place from, double ahead, double left,
                            double up, double yaw, double pitch, double roll, double sigma) {
  const double c = cos(from.yaw), s = sin(from.yaw);
  return (struct synth_via){
      .frame = frame,
      .pos = {from.x + c * ahead - s * left, from.y + s * ahead + c * left, up},
      .yaw = from.yaw + yaw,
      .pitch = pitch,
      .roll = roll,
      .sigma = sigma};
}

static const char *const side_name[2] = {"left", "right"};

static void arm(struct synth_plan *p, int side, const char *joint, int from, int to, double value,
                double sigma, int ramp) {
  char name[64];
  const bool mirror = strstr(joint, "roll") || strstr(joint, "yaw");
  snprintf(name, sizeof name, "%s_%s_joint", side_name[side], joint);
  plan_joint(p, name, from, to, side && mirror ? -value : value, sigma, ramp);
}

// Fists before the chin.
static void guard(struct synth_plan *p, int from, int to, int ramp) {
  plan_pair(p, "shoulder_pitch", from, to, -.75, .1, ramp);
  plan_pair(p, "shoulder_roll", from, to, .02, .1, ramp);
  plan_pair(p, "shoulder_yaw", from, to, -.15, .1, ramp);
  plan_pair(p, "elbow", from, to, -1.35, .1, ramp);
}

// Straight punch of one arm that is out at frame `at`, the body turning into it.
static void punch(struct synth_plan *p, int side, int at, double turn) {
  arm(p, side, "shoulder_pitch", at - 1, at + 1, -1.75, .06, 11);
  arm(p, side, "shoulder_roll", at - 1, at + 1, -.1, .1, 11);
  arm(p, side, "shoulder_yaw", at - 1, at + 1, 0, .1, 11);
  arm(p, side, "elbow", at - 1, at + 1, .45, .06, 11);
  plan_joint(p, "waist_yaw_joint", at - 1, at + 1, side ? turn : -turn, .1, 12);
}

// Both feet end at the fighting stance around (x, y): left foot ahead and straight, right foot
// behind and turned out.
static struct synth_place stance(const struct walker *w, int foot) {
  struct synth_place at = place_beside(w->x, w->y, w->yaw, foot, .24);
  const double ahead = foot ? -.13 : .13;
  at.x += ahead * cos(w->yaw);
  at.y += ahead * sin(w->yaw);
  at.yaw += foot ? -.5 : .05;
  return at;
}

static void shuffle(struct walker *w, int start, double ahead, double left, double turn) {
  w->x += ahead * cos(w->yaw) - left * sin(w->yaw);
  w->y += ahead * sin(w->yaw) + left * cos(w->yaw);
  w->yaw += turn;
  const int first = ahead < 0 || left < 0 ? 1 : 0; // never cross the feet
  plan_swing(w->p, first, start, start + 18, stance(w, first), .06, 0);
  plan_swing(w->p, !first, start + 26, start + 44, stance(w, !first), .06, 0);
}

void clip_fight(struct synth_plan *p) {
  p->swing_xy = .04;
  const struct synth_place l = plan_place(p, 0, 0), r = plan_place(p, 1, 0);
  struct walker w = {.p = p, .x = .5 * (l.x + r.x) + .05, .y = .5 * (l.y + r.y)};
  // into the stance
  plan_swing(p, 0, 40, 62, stance(&w, 0), .06, 0);
  plan_swing(p, 1, 76, 96, stance(&w, 1), .06, 0);
  shuffle(&w, 170, .14, 0, 0);
  shuffle(&w, 272, .1, 0, .25);
  // front kick of the rear foot, from 350
  const struct synth_place here = {w.x, w.y, w.yaw};
  const struct synth_via front[] = {
      via(372, here, .1, -.08, .3, 0, .5, 0, .05),
      via(386, here, .72, -.06, .56, 0, -.5, 0, .03),
      via(400, here, .1, -.08, .3, 0, .5, 0, .05),
  };
  plan_swing_via(p, 1, 350, 424, stance(&w, 1), front, 3);
  shuffle(&w, 480, -.12, 0, -.25);
  // side kick of the front foot, from 556: the foot's edge goes to the left
  const struct synth_place spot = {w.x, w.y, w.yaw};
  const struct synth_via side[] = {
      via(580, spot, .06, .16, .3, 0, .2, 0, .05),
      via(596, spot, .04, .5, .36, 0, 0, .35, .04),
      via(612, spot, .06, .16, .3, 0, .2, 0, .05),
  };
  plan_swing_via(p, 0, 558, 636, stance(&w, 0), side, 3);
  // back to standing
  plan_swing(p, 1, 662, 682, place_beside(w.x, w.y, w.yaw, 1, l.y - r.y), .06, 0);
  plan_swing(p, 0, 692, 712, place_beside(w.x, w.y, w.yaw, 0, l.y - r.y), .06, 0);

  plan_follow(p, 10, .1);
  plan_drop(p, 35, 690, .04, 25);
  guard(p, 60, 660, 30);
  static const struct {
    int side, at;
    double turn;
  } punches[] = {{0, 118, .25}, {0, 146, .25}, {1, 168, .5},  {0, 230, .25}, {1, 252, .5},
                 {0, 328, .25}, {1, 448, .5},  {0, 470, .25}, {1, 540, .5}};
  for (size_t i = 0; i < sizeof punches / sizeof punches[0]; i++) {
    punch(p, punches[i].side, punches[i].at, punches[i].turn);
  }
  plan_lean(p, 380, 392, 0, -.22, 0, 20); // back against the front kick
  plan_lean(p, 588, 604, 0, 0, .25, 22);  // away from the side kick
  quiet_ends(p, 10, 738);
}

// ---- dance

// Both arms held out to the sides, raised by `lift` above hanging, elbows bent by `bend`.
static void arms_out(struct synth_plan *p, int from, int to, double lift, double bend, int ramp) {
  plan_pair(p, "shoulder_roll", from, to, lift, .12, ramp);
  plan_pair(p, "shoulder_pitch", from, to, -.3, .15, ramp);
  plan_pair(p, "elbow", from, to, bend, .15, ramp);
}

// One arm up, the other out and low.
static void arm_wave(struct synth_plan *p, int high, int at, int hold) {
  arm(p, high, "shoulder_pitch", at, at + hold, -2.2, .15, 14);
  arm(p, high, "shoulder_roll", at, at + hold, .35, .15, 14);
  arm(p, high, "elbow", at, at + hold, .2, .15, 14);
  arm(p, !high, "shoulder_roll", at, at + hold, .7, .15, 14);
  arm(p, !high, "elbow", at, at + hold, -.4, .15, 14);
}

void clip_dance(struct synth_plan *p) {
  enum { BEAT = 25, SWAYS = 6, TURNS = 8 };
  const struct synth_place l = plan_place(p, 0, 0), r = plan_place(p, 1, 0);
  const double apart = l.y - r.y, mx = .5 * (l.x + r.x), my = .5 * (l.y + r.y);
  struct walker w = {.p = p, .x = mx, .y = my};
  const int sway = 30, steps = sway + SWAYS * BEAT;
  int t = steps;
  // side steps: out and together, to the right, twice to the left, to the right
  static const int lead_of[] = {1, 0, 0, 1};
  for (int i = 0; i < 4; i++) {
    const int lead = lead_of[i];
    const double out = lead ? -.2 : .2;
    w.y += out;
    plan_swing(p, lead, t, t + 18, place_beside(w.x, w.y, 0, lead, apart + .04), .07, 0);
    plan_swing(p, !lead, t + BEAT, t + BEAT + 18, place_beside(w.x, w.y, 0, !lead, apart), .07, 0);
    t += 2 * BEAT;
  }
  // once round to the left in eight steps, the left foot first
  const int spin = t;
  for (int i = 0; i < TURNS; i++) {
    w.yaw += 2 * M_PI / TURNS;
    plan_swing(p, i % 2, t, t + 17, place_beside(w.x, w.y, w.yaw, i % 2, .2), .06, 0);
    t += BEAT - 3;
  }
  plan_swing(p, 0, t, t + 17, place_beside(w.x, w.y, w.yaw, 0, apart), .05, 0);
  const int twist = t + BEAT;
  plan_follow(p, 12, .15);
  plan_drop(p, 35, twist + 4 * BEAT, .03, 25);

  // to and fro on both feet, one arm up, a beat each way
  for (int i = 0; i < SWAYS; i++) {
    const int at = sway + i * BEAT + 12;
    const double side = i % 2 ? 1 : -1;
    plan_shift(p, at, at + 2, mx + p->pelvis_ahead, my + side * .055, .01, 11);
    plan_lean(p, at, at + 2, 0, 0, -.1 * side, 11);
    if (i % 2) {
      arm_wave(p, i / 2 % 2, at - 3, BEAT - 2);
    }
  }
  // arms open on the way out, close on the way back
  for (int i = 0; i < 4; i++) {
    arms_out(p, steps + 2 * i * BEAT + 14, steps + 2 * i * BEAT + 18, 1.1, .2, 14);
    plan_pair(p, "elbow", steps + (2 * i + 1) * BEAT + 16, steps + (2 * i + 1) * BEAT + 18, -1.2,
              .15, 12);
  }
  arms_out(p, spin + 8, twist - 12, 1.25, .3, 20);
  // twist at the waist over bending knees, fists before the chest
  const int beats = 4;
  guard(p, twist + 6, twist + beats * BEAT, 20);
  for (int i = 0; i < beats; i++) {
    const int at = twist + i * BEAT + 12;
    plan_joint(p, "waist_yaw_joint", at, at + 1, i % 2 ? -.5 : .5, .06, 11);
    plan_drop(p, at, at + 1, .06, 11);
  }
  quiet_ends(p, 10, twist + beats * BEAT + 40);
}
