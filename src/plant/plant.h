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
  // (nlink) where MuJoCo keeps each link's coordinates and velocities; -1: locked there, at 0
  int *qadr, *dof;
  int *actuator;    // (nu) MuJoCo's actuator; -1: its joint is locked
  bool *bare_motor; // (nu)
  // disturbances, see plant_perturb and plant_vary
  mjModel *nominal; // what plant_vary starts from; NULL before the first
  double gain_scale, push;
  double *kp, *kd; // (nu) factors of bare motors' gains
  int latency, more_latency;
  double *queue; // (latency + more_latency + 1, nu) targets on their way, oldest first
  int nqueued;
  // of the episode
  struct rng rng;
  long step, saturated, counted;
};

// path: the MJCF to simulate, usually r->path. timestep must divide control_dt. Refuses a plant
// that lacks a joint or actuator of the robot or has others, or another root body (EXIT_USAGE). A
// hinge whose body is there, fixed to its parent, counts as locked at 0: a warning, as for masses
// that differ by 0.1 % and bodies that sit elsewhere.
int plant_open(struct plant *p, struct arena *a, const struct robot *r, const char *path,
               double control_dt, double timestep, struct err *e);
void plant_close(struct plant *p);

// "NAME=VALUE" before the first reset: friction (coefficient of every geom), mass, gain, armature,
// dry (factors), latency (control steps that targets arrive late), push (m/s in a random horizontal
// direction every 2 s). plant_perturb_help lists them.
int plant_perturb(struct plant *p, const char *assignment, struct err *e);
extern const char plant_perturb_help[];

// How one episode's plant differs from the nominal one, disturbances of plant_perturb included.
struct plant_vary {
  const double *mass;           // (nlink) factors of mass and inertia
  const double *com;            // (nlink, 3) shifts of the centre of mass, link frame, m
  const double *kp, *kd;        // (nu) factors
  const double *armature, *dry; // (nv) factors
  double friction;              // coefficient of every geom; < 0: its own
  int latency;                  // control steps more, up to PLANT_MORE_LATENCY
};
enum { PLANT_MAX_LATENCY = 100, PLANT_MORE_LATENCY = 4 };
// Before plant_reset, which does not undo it; the next plant_vary does.
void plant_vary(struct plant *p, const struct plant_vary *v);

// seed: of the pushes
void plant_reset(struct plant *p, const double *qpos, const double *qvel, uint64_t seed);
// One control period under constant joint targets. False when MuJoCo found the state unstable; it
// is then all NaN.
bool plant_step(struct plant *p, const double *ctrl);
// Adds to the root's velocity: linear in the world, angular in body axes. Free roots only.
void plant_kick(struct plant *p, const double push[6]);
void plant_state(const struct plant *p, double *qpos, double *qvel);
// Share of (control step, actuator) since the reset with a force at 0.95 of its limit or above.
double plant_saturation(const struct plant *p);
