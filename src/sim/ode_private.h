// One step of an integrator and its adjoint, between ode_step.c and ode.c.
#pragma once
#include "sim/ode.h"

struct ode_work {
  int nstate, ntangent;
  // of the step made last: states of its stages (stages, nstate), charts (stages + 1, nv; the last
  // is the end's), rates (stages + 1, ntangent): chart rate, qacc, act_dot
  double *stage, *chart, *rate;
  double *increment;                                // (ntangent) of the end in the chart
  double *error;                                    // (ntangent)
  double *y, *y1, *y_root;                          // (nstate)
  double *stage_bar, *rate_bar, *chart_bar, *y_bar; // adjoints: (ntangent) each but rate_bar
  double *segment;                                  // (stride, nstate) states made again
  int nsegment;
  double *g0, *g1, *g_root; // (nevent)
  double *jump[2];          // (nv) qacc on either side of an event
  double *no_act;           // (na)
  bool first;               // rate of stage 0 is that of the next step's start
  struct arena *arena;      // grows segment
};

// y1 = one step of size h from (t, y0). *nrhs counts evaluations. Keeps its intermediates in w.
void ode_step_fwd(double *y1, struct ode_work *w, const struct ode_system *s, enum ode_method m,
                  double t, double h, const double *y0, const double *u, const uint64_t *active,
                  int *nrhs);
// y_bar of the end -> of the start. The step must be the last that ode_step_fwd made in w.
void ode_step_bwd(double *y_bar, double *u_bar, struct ode_work *w, const struct ode_system *s,
                  enum ode_method m, double t, double h, const double *y0, const double *u,
                  const uint64_t *active);
// rate of the chart (nv) at velocity v, with the tangent correction or without
void ode_chart_rate(double *rate, const struct ode_system *s, bool dexp, const double *chart,
                    const double *v);
// y = y0 moved along a tangent vector (chart, velocity, act); y may not be y0.
void ode_shift(double *y, const struct ode_system *s, const double *y0, const double *delta);
