// What a synthetic clip is asked to look like, frame by frame, and the solver that turns the
// request into a motion that obeys Newton (synth_solve.c). A plan is written by choreography
// (synth_clips.c) with the verbs below; later verbs overrule earlier ones.
//
// Feet: 0 = left, 1 = right. Frames count from 0 at SYNTH_FPS. Wishes have standard deviations: the
// solver pays (difference / sigma)^2.
#pragma once
#include "base/arena.h"
#include "motion/motion.h"
#include "robot/robot.h"

enum { SYNTH_FPS = 50, SYNTH_NFRAME = 751, SYNTH_SPHERES = 4 };

struct synth_foot {
  double pos[3], rot[9];               // wanted pose of the foot link
  double sigma_xy, sigma_z, sigma_rot; // m, m, rad
  bool contact;                        // planted: may push on the floor, and must not move
  double load;                         // expected vertical force, N
  double clear;                        // least height of a swinging sole, m
};

struct synth_frame {
  struct synth_foot foot[2];
  double pelvis[3], pelvis_sigma[3];
  double rot[9], rot_sigma;     // wanted pelvis rotation
  double torso[9], torso_sigma; // and torso rotation
  double *joint, *sigma;        // (nv) wanted hinge angles by DoF (first six unused), rad
};

// The parts of the robot the generator speaks of, found by name.
struct synth_body {
  const struct robot *robot;
  int foot[2], torso;                         // links
  double sphere[2][SYNTH_SPHERES][3], radius; // contact spheres, link frame
  double push[2][SYNTH_SPHERES][3];           // where the floor is planned to push, link frame
  const double *stand;                        // qpos of key frame "stand"
  double *limit, *speed;                      // (nv) torque and speed limits of the hinges
};
int synth_body_find(struct synth_body *b, struct arena *a, const struct robot *r, struct err *e);

struct synth_plan {
  struct synth_body body;
  int nframe;
  double dt;
  struct synth_frame *frame;
  double pelvis_ahead,
      pelvis_height; // of the stand pose: pelvis before the middle of the feet, above the floor
  double swing_xy, swing_z, swing_rot; // how closely feet in the air follow: m, m, rad
  double swing_near;  // share of a swing, at both ends, in which they follow closely
  double swing_clear; // share of the height that soles keep at least
};

// Everything set to standing still in pose "stand".
int plan_init(struct synth_plan *p, struct arena *a, const struct robot *r, struct err *e);

struct synth_place {
  double x, y, yaw;
}; // of a foot on the floor
struct synth_place plan_place(const struct synth_plan *p, int foot, int frame);
// Place of a foot for a body at (x, y, yaw) whose feet stand `apart` from one another.
struct synth_place place_beside(double x, double y, double yaw, int foot, double apart);

// The foot leaves the floor after frame `off`, is planted again at frame `on` at the place given
// and stays there. height: of the swing; pitch: toes down (positive) half-way up.
void plan_swing(struct synth_plan *p, int foot, int off, int on, struct synth_place to,
                double height, double pitch);
// Wish for a foot in the air: passes (x, y, z) with toes turned up by -pitch, to within sigma.
struct synth_via {
  int frame;
  double pos[3], yaw, pitch, roll, sigma;
};
// As plan_swing, through `n` via points in time order.
void plan_swing_via(struct synth_plan *p, int foot, int off, int on, struct synth_place to,
                    const struct synth_via *via, int n);
// Pelvis over the moving average of the feet (width frames either way), facing their mean heading.
// Overrules earlier wishes for the pelvis's place and the rotations.
void plan_follow(struct synth_plan *p, int width, double sigma_xy);
// Pelvis lower by `drop` in from..to, eased over ramp frames. plan_free: pelvis anywhere (flight).
void plan_drop(struct synth_plan *p, int from, int to, double drop, int ramp);
void plan_free(struct synth_plan *p, int from, int to);
void plan_lean(struct synth_plan *p, int from, int to, double yaw, double pitch, double roll,
               int ramp); // on top of the heading
void plan_shift(struct synth_plan *p, int from, int to, double x, double y, double sigma,
                int ramp); // pelvis xy, towards a place
// Joint angle `value` (relative to stand) held from..to, blended in and out over ramp frames.
void plan_joint(struct synth_plan *p, const char *joint, int from, int to, double value,
                double sigma, int ramp);
// The same on left and right joints ("%s_NAME_joint"); roll and yaw angles change sign on the
// right.
void plan_pair(struct synth_plan *p, const char *name, int from, int to, double value, double sigma,
               int ramp);
// Arms swing against the feet: rad per metre of foot separation along the heading.
void plan_arms(struct synth_plan *p, int from, int to, double gain, double sigma);
void plan_sway(struct synth_plan *p, const char *joint, int from, int to, double amplitude,
               double period, double phase, int ramp); // adds a sine to the wish
// Expected vertical forces from the contacts; call last.
void plan_loads(struct synth_plan *p);

// Space-time Gauss-Newton (see synth_solve.c). qpos (nframe, nq) starts as the first guess.
int plan_solve(double *qpos, const struct synth_plan *p, struct arena *a, int iterations,
               struct err *e);

// choreographies (synth_clips.c)
void clip_walk(struct synth_plan *p);
void clip_run(struct synth_plan *p);
void clip_jump(struct synth_plan *p);
void clip_fight(struct synth_plan *p);
void clip_dance(struct synth_plan *p);
