// The small experiments of arXiv 2506.14186: free bodies that meet a floor or each other, as scenes
// (sim/freebody.h) with a loss at the end, and its gradients.
#pragma once
#include "base/arena.h"
#include "sim/freebody.h"
#include "spec/spec.h"

// ---- tossed objects: loss y(1 s), parameter u0 = the initial vertical velocity

enum toss_body { TOSS_BALL, TOSS_CUBE, TOSS_CAPSULE, TOSS_CYLINDER, TOSS_ELLIPSOID, TOSS_BODIES };
extern const char *const toss_names[TOSS_BODIES];

// soft: the cube with the softened manifold.
struct freebody_scene toss_scene(enum toss_body b, bool soft);
void toss_start(double y[13], enum toss_body b, double u0);

// ---- billiard: a ball is pushed by (4 N, u0) for 10 ms and should send another to the origin;
// loss |x_target(3 s)|^2

struct billiard {
  bool gravity; // on a table, with the stiff contact; else floating, with the soft one
  bool hold;    // the push is constant (as MuJoCo holds controls), else it falls linearly to 0
  struct cfd cfd;
};
struct billiard_result {
  double target[3]; // its position at the end
  double gap;       // smallest distance between the balls along the way, at step ends
};

// ---- what both give back

struct body_result {
  enum ode_status status;
  double loss;
  double grad, grad_event; // by u0: of the steps' arithmetic; with the terms of events
  double forward_s, adjoint_s;
  int accepted, rejected, nrhs;
};

struct body_work { // memory of one thread
  struct arena *arena;
  bool want_gradient, want_event;
  const double *shift; // (2) added to the first ball's x and y, a tossed body's y and z; or NULL
};

void toss_solve(struct body_result *r, const struct body_work *w, struct freebody_scene *s,
                enum toss_body b, const struct ode_options *o, double u0);
// The same by backsolve from states kept every 10 ms: grad only, loss of the forward pass.
void toss_backsolve(struct body_result *r, const struct body_work *w, struct freebody_scene *s,
                    enum toss_body b, const struct ode_options *o, double u0);
void billiard_solve(struct body_result *r, struct billiard_result *more, const struct body_work *w,
                    const struct billiard *b, const struct ode_options *o, double u0);

// ---- the bouncing point (one dimension, v0 = -1, 2 s)

enum bounce_model {
  BOUNCE_IDEAL,   // the velocity turns round below the floor: what flips in time stepping
  BOUNCE_PENALTY, // spring 50, damper 1, semi-implicit Euler
  BOUNCE_EXACT,   // the penalty's closed form
};
// Position after 2 s and its derivative by the start, as computed.
void bounce_solve(double *q, double *slope, enum bounce_model model, double h, double q0);

// ---- settings of a spec

struct ode_options spec_ode_options(const struct spec *s);
struct cfd spec_cfd(const struct spec *s);
