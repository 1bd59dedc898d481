#include "learn/randomise.h"
#include "base/rng.h"
#include <math.h>

bool randomise_on(const struct spec *s) {
  return s->random_friction_hi >= 0 || s->random_base_mass > 0 || s->random_link_mass > 0 ||
         s->random_com > 0 || s->random_gain > 0 || s->random_armature > 0 || s->random_dry > 0 ||
         s->random_pose > 0 || s->random_latency > 0;
}

// factor U(1 - half, 1 + half)
static double factor(struct rng *r, double half) {
  return half > 0 ? rng_range(r, 1 - half, 1 + half) : 1;
}

struct randomise_episode randomise_draw(const struct world *w, double *param, double *offset, int l,
                                        uint32_t env, uint32_t episode) {
  const struct spec *s = w->spec;
  const struct robot *r = &w->robot;
  const struct sim_model *m = w->model;
  const int W = w->sim->width;
  struct rng draw = rng_stream((uint64_t)s->seed, RNG_RANDOMISE, env, episode, 0);
  struct sim_param_block mass = sim_param_find(m, "mass"), com = sim_param_find(m, "com"),
                         inertia = sim_param_find(m, "inertia"), gain = sim_param_find(m, "gain"),
                         bias = sim_param_find(m, "bias"), arm = sim_param_find(m, "armature"),
                         dry = sim_param_find(m, "frictionloss"), mu = sim_param_find(m, "mu");

  // one coefficient for all contacts, as one floor would have
  if (s->random_friction_hi >= 0) {
    double x = rng_range(&draw, s->random_friction_lo, s->random_friction_hi);
    for (int k = 0; k < mu.count; k++) {
      param[(mu.first + k) * W + l] = x;
    }
  }
  // inertia scales with mass; the centre of mass moves in the link's frame
  for (int i = 0; i < r->nlink; i++) {
    double m0 = r->link[i].mass, x = m0 * factor(&draw, s->random_link_mass);
    if (i == 0 && s->random_base_mass > 0) {
      x += rng_range(&draw, -s->random_base_mass, s->random_base_mass);
      x = fmax(x, 0.1 * m0);
    }
    param[(mass.first + i) * W + l] = x;
    for (int c = 0; c < 3; c++) {
      double shift = s->random_com > 0 ? rng_range(&draw, -s->random_com, s->random_com) : 0;
      param[(inertia.first + 3 * i + c) * W + l] = r->link[i].inertia[c] * (m0 > 0 ? x / m0 : 1);
      param[(com.first + 3 * i + c) * W + l] = r->link[i].com[c] + (m0 > 0 ? shift : 0);
    }
  }
  // stiffness of a position servo stands in gain and in bias[1]: one factor for both
  for (int i = 0; i < r->nu; i++) {
    double kp = factor(&draw, s->random_gain), kd = factor(&draw, s->random_gain);
    param[(gain.first + i) * W + l] = kp * r->actuator[i].gain;
    param[(bias.first + 3 * i + 1) * W + l] = kp * r->actuator[i].bias[1];
    param[(bias.first + 3 * i + 2) * W + l] = kd * r->actuator[i].bias[2];
    offset[i * W + l] = s->random_pose > 0 ? rng_range(&draw, -s->random_pose, s->random_pose) : 0;
  }
  for (int d = 0; d < r->nv; d++) {
    param[(arm.first + d) * W + l] = r->dof[d].armature * factor(&draw, s->random_armature);
    param[(dry.first + d) * W + l] = r->dof[d].frictionloss * factor(&draw, s->random_dry);
  }
  bool late = s->random_latency > 0 && rng_uniform(&draw) < s->random_latency;
  return (struct randomise_episode){.latency = late};
}

bool randomise_push(const struct world *w, double push[6], uint32_t env, uint32_t episode,
                    int length) {
  const struct spec *s = w->spec;
  if (s->random_push <= 0 || length == 0) {
    return false;
  }
  // the k-th push of an episode follows the one before by 1 to 3 s
  double dt = s->control_dt;
  int at = 0;
  for (uint32_t k = 0; at <= length; k++) {
    struct rng draw = rng_stream((uint64_t)s->seed, RNG_PUSH, env, episode, k);
    at += (int)(rng_range(&draw, 1, 3) / dt);
    if (at == length) {
      static const double half[6] = {0.5, 0.5, 0.2, 0.52, 0.52, 0.78};
      for (int i = 0; i < 6; i++) {
        push[i] = s->random_push * rng_range(&draw, -half[i], half[i]);
      }
      return true;
    }
  }
  return false;
}
