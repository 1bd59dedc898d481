// The project's own clips: walk, run, jump, fight, dance, each 15 s for Unitree G1, made from
// nothing but the robot's model (no captured data). A choreography of footsteps and wishes
// (synth_clips.c) becomes a motion by a least-squares problem with the equations of motion in it
// (synth_solve.c). The result depends on nothing but the code and the robot: no random numbers, no
// clock.
#pragma once
#include "base/arena.h"
#include "motion/motion.h"
#include "robot/robot.h"

extern const char *const motion_synth_names[]; // NULL at the end

// Makes clip `name`. Errors: EXIT_USAGE for an unknown name or a robot without G1's feet, joints
// and key frame "stand"; EXIT_NUMERIC when the solver fails.
int motion_synth(struct clip *c, struct arena *a, const struct robot *r, const char *name,
                 struct err *e);

// What a clip asks of the robot, measured from its frames alone. A foot stands when its four
// spheres are within 5 mm of the floor; the robot flies when no sphere is.
struct synth_report {
  double range_margin; // rad, the least distance to a joint limit (negative: outside)
  double speed_share;  // joint speed over the motor's limit, the largest
  double torque_share; // joint torque over its limit, the largest
  char speed_joint[64], torque_joint[64];
  double residual_force;  // N, largest: what contact that only pushes (friction .6) cannot give
  double residual_moment; // N m, about the centre of mass
  double residual_force_rms, residual_moment_rms;
  double slip;                // m/s, fastest standing sphere
  double sole_low, sole_high; // m, sphere bottoms under the floor, and over it on standing feet
  double flight_error;        // m/s^2, |acceleration of the centre of mass - g| in flight
  double flight_share;        // of all frames
  int flights, high_flights;  // with any frame; with both soles 15 cm up
  double jump_rise;   // m, of the centre of mass in one flight, since the last standing frame
  double sole_rise;   // m, highest both soles get at once
  double kick_height; // m, highest sole while the other foot stands
  double top_speed;   // m/s, centre of mass, horizontal, mean over half a second
  double distance;    // m along the path
  double turn;        // rad, most yaw away from the start, either way
  double first_speed; // rad/s, largest joint speed of the first two frames
  int speed_frame, torque_frame, residual_frame, slip_frame; // where
};
int motion_synth_check(struct synth_report *s, struct arena *a, const struct robot *r,
                       const struct clip *c, struct err *e);
