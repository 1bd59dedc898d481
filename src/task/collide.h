// Balls of unit mass in a plane under linear penalty contact, as scenes to differentiate: the three
// collision tasks of arXiv 2207.05060 and the bouncing point of 2506.14186, with adaptive steps and
// the terms of touchdown and lift-off.
//
// A contact acts while its distance g < 0, with the force -damping g' - stiffness g along its
// normal. It lasts half a period, T = pi / sqrt(stiffness / m - (damping / 2m)^2) (m: reduced
// mass), and returns the share e = exp(-T damping / 2m) of the speed, so that gradients have closed
// forms. stiffness to infinity is the hard collision of the paper.
#pragma once
#include "base/arena.h"
#include "sim/ode.h"
#include "sim/softlaw.h"

enum collide_task {
  COLLIDE_DROP,   // a point from u[0] at speed -1, stiffness 50, damping 1, 2 s: (q - 1)^2
  COLLIDE_BOUNCE, // a ball at (-1, 1) with velocity (2, u[0]), 1 s: (height - 1)^2
  COLLIDE_WALL,   // from (-0.5, 1) with velocity u, by floor and wall to (-2, 1.5) in 0.6 s
  COLLIDE_PAIR,   // u: forces in COLLIDE_KNOTS intervals; ball 0 at rest hits ball 1, which should
                  // be at the origin after 1 s: |x1|^2 + 0.1 integral |u|^2
  COLLIDE_TASKS,
};
enum { COLLIDE_KNOTS = 16, COLLIDE_MAX_INPUT = 2 * COLLIDE_KNOTS };

struct collide_row { // what a task is made of
  const char *name;
  int nball, ninput;
  double radius, stiffness, restitution, end;
  double start[4]; // positions
  double wall;     // x of a wall to the right, INFINITY: none
  double step;     // published fixed step
};
const struct collide_row *collide_row(enum collide_task t);

struct collide_result {
  enum ode_status status;
  double loss, end[4];                                           // positions at the end
  double grad[COLLIDE_MAX_INPUT], grad_event[COLLIDE_MAX_INPUT]; // as in task/bodies.h
  int accepted, nrhs;
};
// shift: added to ball 0's start, or NULL. cfd: of the backward pass.
void collide_solve(struct collide_result *r, struct arena *a, enum collide_task t,
                   const struct ode_options *o, const struct cfd *cfd, const double *u,
                   const double *shift, bool want_gradient);
