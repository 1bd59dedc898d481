#include "motion/synth.h"
#include "motion/synth_plan.h"
#include <math.h>
#include <string.h>

enum { NCLIP = 5, ITERATIONS = 40 };

const char *const motion_synth_names[NCLIP + 1] = {"walk", "run", "jump", "fight", "dance", NULL};
static void (*const choreography[NCLIP])(struct synth_plan *) = {clip_walk, clip_run, clip_jump,
                                                                 clip_fight, clip_dance};

// The stand pose carried along the plan's pelvis: where the solver starts.
static void first_guess(double *qpos, const struct synth_plan *p) {
  const struct robot *r = p->body.robot;
  for (int t = 0; t < p->nframe; t++) {
    const struct synth_frame *f = &p->frame[t];
    double *q = qpos + t * r->nq;
    const double half = .5 * atan2(f->rot[3], f->rot[0]);
    memcpy(q, f->pelvis, sizeof f->pelvis);
    q[3] = cos(half);
    q[6] = sin(half);
    for (int l = 1; l < r->nlink; l++) {
      q[r->link[l].qadr] = f->joint[r->link[l].dof];
    }
  }
}

// Micrometres: what a file holds, and coarse enough that the last bits of the arithmetic vanish.
static void round_clip(struct clip *c) {
  for (int i = 0; i < c->nframe * c->nq; i++) {
    c->qpos[i] = round(c->qpos[i] * 1e6) / 1e6 + 0.; // no negative zero
  }
}

int motion_synth(struct clip *c, struct arena *a, const struct robot *r, const char *name,
                 struct err *e) {
  int which = 0;
  while (motion_synth_names[which] && strcmp(name, motion_synth_names[which]) != 0) {
    which++;
  }
  if (which == NCLIP) {
    const char *near = err_nearest(name, motion_synth_names, NCLIP);
    return err_set(e, EXIT_USAGE,
                   "motion synth: unknown clip '%s'%s%s%s; there are walk, run, jump, fight, dance",
                   name, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  memset(c, 0, sizeof *c);
  c->nframe = SYNTH_NFRAME;
  c->nq = r->nq;
  c->fps = SYNTH_FPS;
  c->order = CLIP_ORDER_XYZW;
  c->credit = "made by dsim motion synth";
  c->qpos = ARENA_NEW(a, double, c->nframe * c->nq);
  const struct arena_mark mark = arena_mark(a); // the solver's memory goes again
  struct synth_plan plan;
  if (plan_init(&plan, a, r, e) == 0) {
    choreography[which](&plan);
    plan_loads(&plan);
    first_guess(c->qpos, &plan);
    plan_solve(c->qpos, &plan, a, ITERATIONS, e);
  }
  arena_reset(a, mark);
  clip_clean(c, r);
  round_clip(c);
  return e->code;
}
