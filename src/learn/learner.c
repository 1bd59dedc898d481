#include "learn/learner.h"

struct learner learner_of_shac(struct shac *s) {
  return (struct learner){.algorithm = "shac",
                          .shac = s,
                          .spec = s->spec,
                          .world = s->world,
                          .rollout = &s->rollout,
                          .iteration = &s->iteration,
                          .env_steps = &s->env_steps,
                          .actor = &s->actor,
                          .param = s->param,
                          .nactor = s->nactor,
                          .adam = &s->adam,
                          .norm = &s->norm,
                          .critic = &s->critic,
                          .add = s->add,
                          .bad_updates = &s->bad_updates};
}

struct learner learner_of_ppo(struct ppo *p) {
  return (struct learner){.algorithm = "ppo",
                          .ppo = p,
                          .spec = p->spec,
                          .world = p->world,
                          .rollout = &p->rollout,
                          .iteration = &p->iteration,
                          .env_steps = &p->env_steps,
                          .actor = &p->actor,
                          .param = p->param,
                          .nactor = p->nactor,
                          .adam = &p->adam,
                          .norm = &p->norm,
                          .critic = &p->critic,
                          .add = p->add,
                          .bad_updates = &p->bad_updates};
}

void learner_new(struct learner *l, struct arena *a, const struct world *w) {
  if (w->spec->algorithm == ALGORITHM_PPO) {
    struct ppo *p = ARENA_NEW(a, struct ppo, 1);
    ppo_new(p, a, w);
    *l = learner_of_ppo(p);
  } else {
    struct shac *s = ARENA_NEW(a, struct shac, 1);
    shac_new(s, a, w);
    *l = learner_of_shac(s);
  }
}

int learner_iterate(struct learner *l, struct learn_report *report, struct err *e) {
  return l->ppo ? ppo_iterate(l->ppo, report, e) : shac_iterate(l->shac, report, e);
}

void learner_policy(struct policy *p, struct arena *a, const struct learner *l) {
  const struct robot *robot = &l->world->robot;
  *p = (struct policy){.spec = *l->spec,
                       .file = "",
                       .run = "",
                       .nobs = l->rollout->nobs,
                       .nu = l->rollout->nu,
                       .iteration = *l->iteration,
                       .env_steps = *l->env_steps,
                       .net = *l->actor,
                       .param = l->param,
                       .norm = *l->norm};
  p->actuator = ARENA_NEW(a, const char *, p->nu);
  for (int j = 0; j < p->nu; j++) {
    p->actuator[j] = robot->actuator[j].name;
  }
  policy_scratch(p, a);
}
