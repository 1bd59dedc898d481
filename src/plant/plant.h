// MuJoCo as the other simulator: the robot's own MJCF, armature, dry friction and joint limits,
// soft contacts, small steps. A policy trained in dsim acts here through the same observation code,
// so what changes is the physics alone.
//
// qpos, qvel and ctrl are the training robot's, in its order, whatever the plant's MJCF: joints and
// actuators are matched by name. Where the plant's actuator is a bare motor, the plant closes the
// position loop itself, every step, with the training robot's gains and force limits.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "robot/mjcf.h"
#include "robot/robot.h"
#include <stdbool.h>

struct plant {
  mjModel *m;
  mjData *d;
  const struct robot *robot;
  double control_dt;
  int substeps;
  int *qadr, *dof;  // (nlink) where MuJoCo keeps each link's coordinates and velocities
  int *actuator;    // (nu) MuJoCo's actuator
  bool *bare_motor; // (nu)
  // disturbances, see plant_perturb
  double gain_scale, push;
  int latency;
  double *queue; // (latency + 1, nu) targets on their way, oldest first
  int nqueued;
  // of the episode
  struct rng rng;
  long step, saturated, counted;
};

// path: the MJCF to simulate, usually r->path. timestep must divide control_dt. Refuses a plant
// that lacks a joint or actuator of the robot or has others, or another root body (EXIT_USAGE);
// warns when masses differ by 0.1 % or bodies sit elsewhere.
int plant_open(struct plant *p, struct arena *a, const struct robot *r, const char *path,
               double control_dt, double timestep, struct err *e);
void plant_close(struct plant *p);

// "NAME=VALUE" before the first reset: friction (coefficient of every geom), mass, gain, armature,
// dry (factors), latency (control steps that targets arrive late), push (m/s in a random horizontal
// direction every 2 s). plant_perturb_help lists them.
int plant_perturb(struct plant *p, struct arena *a, const char *assignment, struct err *e);
extern const char plant_perturb_help[];

// seed: of the pushes
void plant_reset(struct plant *p, const double *qpos, const double *qvel, uint64_t seed);
// One control period under constant joint targets. False when MuJoCo found the state unstable; it
// is then all NaN.
bool plant_step(struct plant *p, const double *ctrl);
void plant_state(const struct plant *p, double *qpos, double *qvel);
// Share of (control step, actuator) since the reset with a force at 0.95 of its limit or above.
double plant_saturation(const struct plant *p);
