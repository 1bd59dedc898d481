#include "learn/policy.h"
#include "base/file.h"
#include "learn/gemm.h"
#include "learn/state.h"
#include "sim/sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void policy_scratch(struct policy *p, struct arena *a) {
  gemm_start();
  p->x = ARENA_NEW(a, float, SIM_WIDTH * p->nobs);
  p->y = ARENA_NEW(a, float, SIM_WIDTH * p->nu);
  p->tmp = ARENA_NEW(a, float, 2 * SIM_WIDTH * (p->net.widest + 1));
}

// "182 512 256 128 29" -> the network's shape; "... without LayerNorm" when it has none
static int read_layers(struct mlp *m, const struct checkpoint *c, struct err *e) {
  int size[MLP_MAX_LAYERS + 1], n = 0;
  const char *text = checkpoint_value(c, "actor");
  const char *plain = text ? strstr(text, MLP_WITHOUT_NORM) : NULL;
  for (char *end; text && text != plain && *text && n <= MLP_MAX_LAYERS; text = end) {
    long x = strtol(text, &end, 10);
    if (end == text || x < 1 || x > 1000000) {
      break;
    }
    size[n++] = (int)x;
  }
  if (!text || (text != plain && *text) || n < 2) {
    return err_set(e, EXIT_USAGE, "%s: checkpoint says no layers for 'actor'", c->path);
  }
  mlp_shape(m, size[0], size + 1, n - 2, size[n - 1], !plain);
  return 0;
}

// words of a line, as an array in the arena
static int split_words(const char ***word, struct arena *a, const char *line) {
  int n = 0;
  char *text = arena_strdup(a, line);
  *word = ARENA_NEW(a, const char *, strlen(line) / 2 + 1);
  for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
    (*word)[n++] = w;
  }
  return n;
}

static int read_policy(struct policy *p, struct arena *a, const struct checkpoint *c,
                       struct err *e) {
  int64_t nobs, nu;
  const char *names = checkpoint_value(c, "actuators");
  if (checkpoint_int(&p->iteration, c, "iteration", e) ||
      checkpoint_int(&p->env_steps, c, "env_steps", e) || checkpoint_int(&nobs, c, "obs", e) ||
      checkpoint_int(&nu, c, "actions", e) || read_layers(&p->net, c, e)) {
    return e->code;
  }
  p->file = c->path;
  p->nobs = (int)nobs;
  p->nu = (int)nu;
  if (p->net.size[0] != nobs || p->net.size[p->net.nlayer] != nu || !names ||
      split_words(&p->actuator, a, names) != nu) {
    return err_set(e, EXIT_USAGE, "%s: checkpoint contradicts itself about its sizes", c->path);
  }
  size_t nparam = p->net.nparam + (size_t)nu; // log sigma stands behind the network
  float *param = ARENA_NEW(a, float, nparam);
  p->param = param;
  normalizer_new(&p->norm, a, p->nobs);
  size_t bytes = sizeof(double) * (size_t)p->nobs;
  if (checkpoint_copy(param, sizeof(float) * nparam, c, "actor", e) ||
      checkpoint_copy(p->norm.mean, bytes, c, "norm.mean", e) ||
      checkpoint_copy(p->norm.var, bytes, c, "norm.var", e) ||
      checkpoint_copy(&p->norm.count, sizeof p->norm.count, c, "norm.count", e)) {
    return e->code;
  }
  normalizer_refresh(&p->norm);
  policy_scratch(p, a);
  return 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int policy_load(struct policy *p, struct arena *a, const char *run, struct err *e) {
  *p = (struct policy){0};
  struct checkpoint c;
  char path[4096];
  if (is_folder(run)) {
    p->run = arena_strdup(a, run);
    snprintf(path, sizeof path, "%s/policy.dsim", run);
    if (file_exists(path)) {
      checkpoint_read(&c, a, path, e);
    } else if (!state_newest(&c, a, run)) {
      err_set(e, EXIT_USAGE, "%s: no trained policy here (neither policy.dsim nor a checkpoint)",
              run);
    }
  } else {
    const char *slash = strrchr(run, '/');
    snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - run) : 1, slash ? run : ".");
    p->run = arena_strdup(a, path);
    checkpoint_read(&c, a, run, e);
  }
  if (e->code || read_policy(p, a, &c, e)) {
    return e->code;
  }
  snprintf(path, sizeof path, "%s/spec.yaml", p->run);
  return spec_read(&p->spec, a, path, e);
}

int policy_check(const struct policy *p, int nobs, int nu, const char *const *actuator,
                 struct err *e) {
  if (nobs != p->nobs) {
    return err_set(e, EXIT_USAGE, "%s: obs: spec has %d, checkpoint has %d", p->file, nobs,
                   p->nobs);
  }
  if (nu != p->nu) {
    return err_set(e, EXIT_USAGE, "%s: actions: robot has %d, checkpoint has %d", p->file, nu,
                   p->nu);
  }
  for (int j = 0; j < nu; j++) {
    if (strcmp(actuator[j], p->actuator[j]) != 0) {
      return err_set(e, EXIT_USAGE,
                     "%s: actuator %d: robot has '%s', checkpoint has '%s'; their order must be "
                     "the same",
                     p->file, j, actuator[j], p->actuator[j]);
    }
  }
  return 0;
}

void policy_act(struct policy *p, double *action, const double *obs, int width) {
  BUG_IF(width > SIM_WIDTH);
  normalizer_fwd(p->x, &p->norm, obs, width);
  mlp_eval(p->y, &p->net, p->param, p->x, width, p->tmp);
  for (int l = 0; l < width; l++) {
    for (int j = 0; j < p->nu; j++) {
      action[j * width + l] = (double)p->y[l * p->nu + j];
    }
  }
}
