#include "learn/world.h"
#include "task/bodies.h"
#include <omp.h>
#include <string.h>

struct sim_options world_sim_options(const struct spec *s) {
  struct sim_options o = sim_options_default();
  o.integrator = s->integrator == INTEGRATOR_MOREAU ? SIM_MOREAU
                 : s->integrator == INTEGRATOR_RK4  ? SIM_RK4
                                                    : SIM_EULER;
  o.contact_model = s->contact_model == CONTACT_MUJOCO ? SIM_MUJOCO : SIM_SMOOTHED;
  o.contact_step = s->contact_step == CONTACT_STEP_SPLIT ? SIM_SPLIT : SIM_PUBLISHED;
  o.dt = s->sim_dt;
  o.substeps = (int)(s->control_dt / s->sim_dt + 0.5);
  o.sweeps = s->contact_sweeps;
  o.kappa = s->contact_kappa;
  o.friction = s->contact_friction;
  o.body_contact = s->contact_body;
  o.limit_kappa = s->limit_kappa;
  o.dry_speed = s->dry_speed;
  o.cfd = spec_cfd(s);
  return o;
}

static bool same_motion(const struct spec *s, const struct spec *t) {
  return strcmp(s->robot, t->robot) == 0 && s->robot_warn_only == t->robot_warn_only &&
         strcmp(s->motion, t->motion) == 0 && s->control_dt == t->control_dt;
}

int world_open(struct world *w, struct arena *a, const struct spec *s, struct err *e) {
  return world_open_beside(w, a, s, NULL, e);
}

int world_open_beside(struct world *w, struct arena *a, const struct spec *s,
                      const struct world *like, struct err *e) {
  *w = (struct world){.spec = s};
  if (s->task != TASK_TRACK) {
    return err_set(e, EXIT_USAGE,
                   "task: expected track, found a small experiment: it has no policy");
  }
  w->threads = s->threads > 0 ? s->threads : omp_get_max_threads();
  w->sim = sim_kernels(e);
  if (e->code) {
    return e->code;
  }
  if (like && same_motion(s, like->spec)) {
    w->robot = like->robot;
    w->motion = like->motion;
  } else if (robot_load(&w->robot, a, s->robot, s->robot_warn_only, e) ||
             motion_load(&w->motion, a, &w->robot, s->motion, s->control_dt, e)) {
    return e->code;
  }
  w->task = track_kernels(w->sim->isa);
  BUG_IF(w->task == NULL);
  struct sim_options options = world_sim_options(s);
  w->model = sim_model_new(a, &w->robot, &options, e);
  if (e->code) {
    return e->code;
  }
  return track_new(&w->track, a, w->model, &w->motion, s, e);
}
