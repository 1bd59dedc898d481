#include "learn/report.h"
#include <math.h>
#include <stdio.h>

void report_rollout(struct learn_report *p, const struct rollout *r) {
  int rows = r->E * r->N;
  struct rollout_sums sum = {0};
  for (int k = 0; k < r->nshard; k++) {
    const struct rollout_sums *x = &r->sum[k];
    for (int i = 0; i < TRACK_NTERM; i++) {
      sum.term[i] += x->term[i];
    }
    sum.e_track += x->e_track;
    sum.e_track_n += x->e_track_n;
    sum.episodes += x->episodes;
    sum.episode_steps += x->episode_steps;
    sum.failed += x->failed;
    sum.truncated += x->truncated;
    if (x->nonfinite > 0 && sum.nonfinite == 0) {
      sum.nonfinite_step = x->nonfinite_step;
      sum.nonfinite_env = x->nonfinite_env;
    }
    if (x->bad_cotangent > 0 && sum.bad_cotangent == 0) {
      sum.bad_step = x->bad_step;
      sum.bad_env = x->bad_env;
    }
    sum.nonfinite += x->nonfinite;
    sum.bad_cotangent += x->bad_cotangent;
  }
  p->episodes = sum.episodes;
  p->failed = sum.failed;
  p->truncated = sum.truncated;
  p->nonfinite = sum.nonfinite;
  p->nonfinite_step = sum.nonfinite_step;
  p->nonfinite_env = sum.nonfinite_env;
  p->bad_cotangent = sum.bad_cotangent;
  p->bad_step = sum.bad_step;
  p->bad_env = sum.bad_env;
  p->episode_s =
      sum.episodes ? (double)sum.episode_steps / (double)sum.episodes * r->spec->control_dt : NAN;
  p->e_track_cm = sum.e_track_n > 0 ? 100 * sum.e_track / sum.e_track_n : NAN;
  p->root_cm = 100 * sum.term[TRACK_ROOT_SQ] / rows;
  p->joint_rad = sum.term[TRACK_JOINT_SQ] / rows;
  p->failures_per_1000 = 1000.0 * (double)sum.failed / rows;
  p->reward = 0;
  for (int i = 0; i < rows; i++) {
    p->reward += r->reward[i] / rows;
  }
}

void report_bad_gradient(struct learn_report *p, const struct mlp *actor,
                         const struct critic *critic, int64_t actor_at, int64_t critic_at) {
  char place[64], *text = p->bad_gradient;
  size_t size = sizeof p->bad_gradient;
  if (actor_at >= 0 && (size_t)actor_at >= actor->nparam) {
    snprintf(text, size, "actor log sigma[%d]", (int)((size_t)actor_at - actor->nparam));
  } else if (actor_at >= 0) {
    mlp_locate(place, sizeof place, actor, (size_t)actor_at);
    snprintf(text, size, "actor %s", place);
  } else if (critic_at >= 0) {
    mlp_locate(place, sizeof place, &critic->net, (size_t)critic_at % critic->net.nparam);
    snprintf(text, size, "critic %d %s", (int)((size_t)critic_at / critic->net.nparam), place);
  }
}
