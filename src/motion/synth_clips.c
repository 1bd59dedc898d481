// The choreographies. Times are frames of 20 ms; lengths in metres, angles in radians.
#include "motion/synth_plan.h"
#include <math.h>

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
  for (int i = 0; i < 22; i++) {
    // ahead, a left curve, ahead, a right curve
    const double turn = i >= 4 && i < 10 ? .11 : i >= 13 && i < 20 ? -.13 : 0;
    walker_step(&w, stride, turn, apart, 5, 20, .08, .25);
  }
  walker_step(&w, .35, 0, apart, 6, 20, .08, .15);
  const double stand = l.y - r.y;
  walker_step(&w, .12, 0, stand, 8, 22, .07, .1);
  walker_step(&w, 0, 0, stand, 14, 22, .06, 0);
  const int end = w.frame;
  plan_follow(p, 10, p->nframe - 1, 14, .025, .2);
  plan_arms(p, 0, p->nframe - 1, .9, .12);
  quiet_ends(p, 10, end + 45);
}
void clip_run(struct synth_plan *p) {
  (void)p;
}
void clip_jump(struct synth_plan *p) {
  (void)p;
}
void clip_fight(struct synth_plan *p) {
  (void)p;
}
void clip_dance(struct synth_plan *p) {
  (void)p;
}
