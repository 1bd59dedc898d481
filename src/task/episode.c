#include "task/episode.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

enum { BODY_MAX = 256 }; // as in track.c, which refuses larger robots

void episode_begin(struct episode *ep, int seed, int start) {
  *ep = (struct episode){.seed = seed, .start = start};
  ep->e_track_cm = ep->e_track_local_cm = ep->penetration_mm = NAN;
}

void episode_start(const struct episode *ep, double *qpos, double *qvel, const struct track *t,
                   double noise) {
  const struct motion *mo = t->motion;
  memcpy(qpos, mo->qpos + (size_t)ep->start * mo->nq, mo->nq * sizeof *qpos);
  if (noise > 0) {
    struct rng g = rng_stream((uint64_t)ep->seed, RNG_EVAL, (uint32_t)ep->start, 0, 0);
    track_reset_noise(t, qpos, qvel, noise, &g); // qvel is scratch until its own turn
  }
  memcpy(qvel, mo->qvel + (size_t)ep->start * mo->nv, mo->nv * sizeof *qvel);
}

// mean of n numbers, given that of the n - 1 before
static void add_to_mean(double *mean, double x, int n) {
  *mean = n == 1 ? x : *mean + (x - *mean) / n;
}

static double floor_height(const struct robot *r) {
  for (int i = 0; i < r->ngeom; i++) {
    if (r->geom[i].type == GEOM_PLANE) {
      return r->geom[i].pos[2];
    }
  }
  return 0;
}

static void measure_feet(struct episode *ep, const struct robot *r, const struct feet *f,
                         const double *qpos) {
  double xpos[3 * BODY_MAX], xmat[9 * BODY_MAX], floor = floor_height(r);
  robot_fk(r, qpos, xpos, xmat);
  for (int i = 0; i < f->n; i++) {
    double depth = floor - link_height(r, f->link[i], xpos, xmat);
    if (depth > 0) {
      add_to_mean(&ep->penetration_mm, 1e3 * depth, ++ep->npenetration);
    }
  }
}

bool episode_step(struct episode *ep, const struct track *t, const struct feet *f,
                  const double *qpos, const double *qvel, int frame) {
  ep->nsteps++;
  ep->time_s = ep->nsteps * t->motion->dt;
  if (track_end(t, qpos, qvel, frame) == TRACK_NONFINITE) {
    ep->fell = true;
    return false;
  }
  double world, local;
  track_error(t, qpos, frame, &world, &local);
  add_to_mean(&ep->e_track_cm, 1e2 * world, ep->nsteps);
  add_to_mean(&ep->e_track_local_cm, 1e2 * local, ep->nsteps);
  measure_feet(ep, t->robot, f, qpos);
  ep->fell = qpos[2] < t->spec->terminate_height;
  return !ep->fell && frame < motion_last(t->motion, ep->start);
}
