#include "learn/state.h"
#include "base/file.h"
#include "base/log.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- what a state is: one table for both directions

struct piece {
  const char *name;
  void *data;
  size_t size;
  bool weights; // taken over by --init-from
};
enum { MAX_PIECES = 40 };

static int state_pieces(struct piece *p, struct learner *s, struct best_policy *best) {
  int n = 0;
  struct rollout *r = s->rollout;
  size_t actor = sizeof(float) * s->nactor, critic = sizeof(float) * s->critic->nparam;
  size_t obs = sizeof(double) * (size_t)s->norm->n;
#define PIECE(...)      p[n++] = (struct piece){__VA_ARGS__}
#define SCALAR(name, x) PIECE(name, &(x), sizeof(x), false)
  PIECE("actor", s->param, actor, true);
  PIECE("norm.mean", s->norm->mean, obs, true);
  PIECE("norm.var", s->norm->var, obs, true);
  PIECE("norm.count", &s->norm->count, sizeof s->norm->count, true);
  PIECE("critic", s->critic->param, critic, true);
  PIECE("actor.m", s->adam->m, actor, false);
  PIECE("actor.v", s->adam->v, actor, false);
  SCALAR("actor.power1", s->adam->power1);
  SCALAR("actor.power2", s->adam->power2);
  SCALAR("actor.steps", s->adam->steps);
  PIECE("critic.m", s->critic->adam.m, critic, false);
  PIECE("critic.v", s->critic->adam.v, critic, false);
  SCALAR("critic.power1", s->critic->adam.power1);
  SCALAR("critic.power2", s->critic->adam.power2);
  SCALAR("critic.steps", s->critic->adam.steps);
  if (s->shac) {
    SCALAR("return.mean", s->shac->returns.mean);
    SCALAR("return.var", s->shac->returns.var);
    SCALAR("return.count", s->shac->returns.count);
  } else {
    SCALAR("ppo.lr_actor", s->ppo->lr_actor);
    SCALAR("ppo.lr_critic", s->ppo->lr_critic);
  }
  PIECE("env.state", r->state, sizeof(double) * r->nstate, false);
  PIECE("env.counter", r->counter, sizeof(int32_t) * r->ncounter, false);
  if (s->add) {
    struct add *d = s->add;
    size_t slab = sizeof(float) * d->net.nparam, replay = (size_t)s->spec->add_replay;
    PIECE("add.param", d->param, slab, true);
    PIECE("add.mean", d->mean, sizeof(double) * (size_t)d->nres, true);
    PIECE("add.count", &d->count, sizeof d->count, true);
    PIECE("add.velocity", d->velocity, slab, false);
    PIECE("add.replay", d->replay, sizeof(float) * replay * (size_t)d->nres, false);
    SCALAR("add.replay_head", d->replay_head);
    SCALAR("add.replay_count", d->replay_count);
  }
  SCALAR("bad_updates", *s->bad_updates);
  SCALAR("iteration", *s->iteration);
  SCALAR("env_steps", *s->env_steps);
  SCALAR("best.score", best->score);
  SCALAR("best.iteration", best->iteration);
#undef SCALAR
#undef PIECE
  BUG_IF(n > MAX_PIECES);
  return n;
}

// what is kept in step with the statistics read
static void refresh_normalisers(struct learner *s) {
  normalizer_refresh(s->norm);
  if (s->add) {
    add_refresh(s->add);
  }
}

static const char *layers_text(char *text, size_t size, const struct mlp *m) {
  size_t n = 0;
  for (int l = 0; l <= m->nlayer; l++) {
    n += (size_t)snprintf(text + n, size - n, "%s%d", l ? " " : "", m->size[l]);
  }
  // nothing otherwise: as in files from before there was a choice
  snprintf(text + n, size - n, "%s", m->layer_norm ? "" : MLP_WITHOUT_NORM);
  return text;
}

// "add 85 256 128 1": with a discriminator, the layers of its network; else "exponential"
static const char *reward_text(char *text, size_t size, const struct learner *s) {
  if (!s->add) {
    return "exponential";
  }
  size_t n = (size_t)snprintf(text, size, "add");
  for (int l = 0; l <= s->add->net.nlayer; l++) {
    n += (size_t)snprintf(text + n, size - n, " %d", s->add->net.size[l]);
  }
  return text;
}

static const char *names_text(char *text, size_t size, const char *const *name, int count) {
  size_t n = 0;
  text[0] = 0;
  for (int i = 0; i < count && n < size; i++) {
    n += (size_t)snprintf(text + n, size - n, "%s%s", i ? " " : "", name[i]);
  }
  return text;
}

static const char *observation_name(const struct spec *s) {
  static const char *const names[] = {"compact", "paper"};
  return names[s->observation];
}

// The part of the header that a policy and a whole state share.
static void put_header(struct checkpoint *c, const char *kind, const struct policy *p) {
  char text[4000];
  checkpoint_text(c, "kind", "%s", kind);
  checkpoint_text(c, "iteration", "%lld", (long long)p->iteration);
  checkpoint_text(c, "env_steps", "%lld", (long long)p->env_steps);
  checkpoint_text(c, "seed", "%d", p->spec.seed);
  checkpoint_text(c, "robot", "%s", p->spec.robot);
  checkpoint_text(c, "motion", "%s", p->spec.motion);
  checkpoint_text(c, "observation", "%s", observation_name(&p->spec));
  checkpoint_text(c, "obs", "%d", p->nobs);
  checkpoint_text(c, "actions", "%d", p->nu);
  checkpoint_text(c, "actuators", "%s", names_text(text, sizeof text, p->actuator, p->nu));
  checkpoint_text(c, "actor", "%s", layers_text(text, sizeof text, &p->net));
}

// What must agree between a file and the learner that reads it.
static void put_learner(struct checkpoint *c, const struct learner *s) {
  char text[4000];
  checkpoint_text(c, "algorithm", "%s", s->algorithm);
  checkpoint_text(c, "critic", "%s", layers_text(text, sizeof text, &s->critic->net));
  checkpoint_text(c, "critics", "%d", s->critic->count);
  checkpoint_text(c, "envs", "%d", s->rollout->E);
  checkpoint_text(c, "lanes", "%d", s->rollout->W);
  checkpoint_text(c, "reward", "%s", reward_text(text, sizeof text, s));
}

static int require_same(const struct checkpoint *file, const struct checkpoint *own,
                        const char *const *names, int n, struct err *e) {
  for (int i = 0; i < n; i++) {
    const char *a = checkpoint_value(own, names[i]), *b = checkpoint_value(file, names[i]);
    if (!b && strcmp(names[i], "algorithm") == 0) {
      b = "shac"; // files from before there were two
    }
    if (!b || strcmp(a, b) != 0) {
      return err_set(e, EXIT_USAGE, "%s: %s: spec has %s, checkpoint has %s", file->path, names[i],
                     a, b ? b : "none");
    }
  }
  return 0;
}

// ---- files of a run

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)b, *(const char *const *)a);
}

// names of the checkpoints in a run's folder, newest first; returns how many
static int list_checkpoints(const char ***names, struct arena *a, const char *run) {
  int n = 0, room = 0;
  *names = NULL;
  DIR *dir = opendir(run);
  for (struct dirent *d; dir && (d = readdir(dir));) {
    char tail[8] = "";
    int number;
    if (sscanf(d->d_name, "ckpt_%8d%7s", &number, tail) != 2 || strcmp(tail, ".dsim") != 0) {
      continue;
    }
    if (n == room) {
      room = room ? 2 * room : 16;
      const char **grown = ARENA_NEW(a, const char *, room);
      if (n > 0) {
        memcpy(grown, *names, sizeof **names * (size_t)n);
      }
      *names = grown;
    }
    (*names)[n++] = arena_strdup(a, d->d_name);
  }
  if (dir) {
    closedir(dir);
  }
  if (n > 1) {
    qsort(*names, (size_t)n, sizeof **names, compare_names);
  }
  return n;
}

static const char *join(struct arena *a, const char *folder, const char *name) {
  size_t size = strlen(folder) + strlen(name) + 2;
  char *path = arena_alloc(a, size);
  snprintf(path, size, "%s/%s", folder, name);
  return path;
}

const char *state_newest(struct checkpoint *c, struct arena *a, const char *run) {
  const char **names;
  int n = list_checkpoints(&names, a, run);
  for (int i = 0; i < n; i++) {
    struct err e = {0};
    const char *path = join(a, run, names[i]);
    if (checkpoint_read(c, a, path, &e) == 0) {
      return path;
    }
    log_warn("%s; looking for an older one", e.text);
  }
  return NULL;
}

int state_save(struct learner *s, const struct best_policy *best, const char *run, struct err *e) {
  struct arena a;
  arena_init(&a);
  struct policy p;
  struct checkpoint c;
  struct piece piece[MAX_PIECES];
  struct best_policy copy = *best;
  char name[32];
  learner_policy(&p, &a, s);
  checkpoint_init(&c, &a);
  put_header(&c, "state", &p);
  put_learner(&c, s);
  int n = state_pieces(piece, s, &copy);
  for (int i = 0; i < n; i++) {
    checkpoint_slab(&c, piece[i].name, piece[i].data, piece[i].size);
  }
  snprintf(name, sizeof name, "ckpt_%08lld.dsim", (long long)*s->iteration);
  if (checkpoint_write(&c, join(&a, run, name), e) == 0) {
    const char **names;
    int found = list_checkpoints(&names, &a, run);
    for (int i = s->spec->checkpoint_keep; i < found; i++) {
      unlink(join(&a, run, names[i]));
    }
  }
  arena_release(&a);
  return e->code;
}

int state_load(struct learner *s, struct best_policy *best, struct arena *a, const char *run,
               struct err *e) {
  static const char *const same[] = {"algorithm", "robot",     "observation", "obs",
                                     "actions",   "actuators", "actor",       "critic",
                                     "critics",   "envs",      "lanes",       "reward"};
  struct checkpoint file, own;
  if (!state_newest(&file, a, run)) {
    return err_set(e, EXIT_USAGE, "%s: no checkpoint to resume from", run);
  }
  struct policy p;
  learner_policy(&p, a, s);
  checkpoint_init(&own, a);
  put_header(&own, "state", &p);
  put_learner(&own, s);
  if (require_same(&file, &own, same, (int)(sizeof same / sizeof *same), e)) {
    return e->code;
  }
  struct piece piece[MAX_PIECES];
  int n = state_pieces(piece, s, best);
  for (int i = 0; i < n && !e->code; i++) {
    checkpoint_copy(piece[i].data, piece[i].size, &file, piece[i].name, e);
  }
  refresh_normalisers(s);
  return e->code;
}

// what a policy's gradient depends on, beside its weights
static bool is_measure(const char *name) {
  return strncmp(name, "return.", 7) == 0 || strncmp(name, "ppo.", 4) == 0 ||
         strcmp(name, "iteration") == 0 || strcmp(name, "env_steps") == 0;
}

static int take_weights(struct learner *s, struct arena *a, const struct checkpoint *file,
                        bool measures, struct err *e) {
  static const char *const same[] = {"observation", "obs",    "actions", "actuators",
                                     "actor",       "critic", "critics"};
  struct checkpoint own;
  struct policy p;
  struct best_policy unused = {0};
  learner_policy(&p, a, s);
  checkpoint_init(&own, a);
  put_header(&own, "state", &p);
  put_learner(&own, s);
  if (require_same(file, &own, same, (int)(sizeof same / sizeof *same), e)) {
    return e->code;
  }
  // a run with another reward has no discriminator to go on with; a fresh one begins
  static const char *const reward[] = {"reward"};
  struct err other = {0};
  bool judge = !require_same(file, &own, reward, 1, &other);
  struct piece piece[MAX_PIECES];
  int n = state_pieces(piece, s, &unused);
  for (int i = 0; i < n && !e->code; i++) {
    bool weights = piece[i].weights && (judge || strncmp(piece[i].name, "add.", 4) != 0);
    if (weights || (measures && is_measure(piece[i].name))) {
      checkpoint_copy(piece[i].data, piece[i].size, file, piece[i].name, e);
    }
  }
  refresh_normalisers(s);
  return e->code;
}

int state_init_from(struct learner *s, struct arena *a, const char *run, struct err *e) {
  struct checkpoint file;
  if (!state_newest(&file, a, run)) {
    return err_set(e, EXIT_USAGE, "%s: no checkpoint to start from", run);
  }
  return take_weights(s, a, &file, false, e);
}

int state_list(const char ***path, struct arena *a, const char *run) {
  const char **names;
  int n = list_checkpoints(&names, a, run);
  *path = ARENA_NEW(a, const char *, n + 1);
  for (int i = 0; i < n; i++) {
    (*path)[i] = join(a, run, names[n - 1 - i]);
  }
  return n;
}

int state_load_learned(struct learner *s, struct arena *a, const char *path, struct err *e) {
  struct checkpoint file;
  return checkpoint_read(&file, a, path, e) ? e->code : take_weights(s, a, &file, true, e);
}

// ---- the policy alone

int policy_save(const struct policy *p, const char *path, struct err *e) {
  struct arena a;
  arena_init(&a);
  struct checkpoint c;
  checkpoint_init(&c, &a);
  put_header(&c, "policy", p);
  // as in a whole state: the network's slab with log sigma behind it
  checkpoint_slab(&c, "actor", p->param, sizeof(float) * (p->net.nparam + (size_t)p->nu));
  checkpoint_slab(&c, "norm.mean", p->norm.mean, sizeof(double) * (size_t)p->nobs);
  checkpoint_slab(&c, "norm.var", p->norm.var, sizeof(double) * (size_t)p->nobs);
  checkpoint_slab(&c, "norm.count", &p->norm.count, sizeof p->norm.count);
  checkpoint_write(&c, path, e);
  arena_release(&a);
  return e->code;
}
