#include "figure/figure.h"
#include "base/file.h"
#include "base/log.h"
#include "figure/gnuplot.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct figure figures[] = {
    {"curves", "learning curves of every run: reward, survival, error, failures", figure_curves},
    {"tracking", "tracking error per motion, training simulator and MuJoCo, beside the paper's",
     figure_tracking},
    {"checkpoints", "falls and tracking error in MuJoCo, along training", figure_checkpoints},
    {"stiffness", "falls and depth of feet over the stiffness of contacts, beside the paper's",
     figure_stiffness},
    {"methods", "SHAC+BCG, SHAC and PPO against samples and wall-clock time", figure_methods},
    {"bundle", "settings of a bundle, one at a time", figure_bundle},
    {"gradvar", "variance of the policy's gradient along training, plain and with bundles",
     figure_gradvar},
    {"cloud", "state gradients at contacts, branches against bundles", figure_cloud},
    {"bounce", "a point on a floor: gradients of fixed steps against the closed form",
     figure_bounce},
    {"toss", "tossed objects: final position and its derivative along a sweep", figure_toss},
    {"time_toss", "error against cost of a tossed cube, beside the paper's", figure_time_toss},
    {"billiard", "a shot that may miss: loss, gradients, training", figure_billiard},
    {"identify", "the side of a cube along its identification", figure_identify},
    {"gradients", "gradient estimators: bias, spread, final loss", figure_gradients},
    {"strip", "film strip of a rendered run: stick figures over the reference", figure_strip},
};
const int nfigure = sizeof figures / sizeof *figures;

const struct figure *figure_find(const char *name, struct err *e) {
  const char *names[sizeof figures / sizeof *figures];
  for (int i = 0; i < nfigure; i++) {
    names[i] = figures[i].name;
    if (strcmp(name, names[i]) == 0) {
      return &figures[i];
    }
  }
  const char *near = err_nearest(name, names, nfigure);
  char all[200] = "";
  for (int i = 0; i < nfigure; i++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
  }
  err_set(e, EXIT_USAGE, "no figure '%s'%s%s%s; there are: %s", name,
          near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", all);
  return NULL;
}

char *figure_path(struct figure_context *c, const char *base, const char *suffix) {
  size_t size = strlen(c->out) + strlen(base) + strlen(suffix) + 2;
  char *path = arena_alloc(c->arena, size);
  snprintf(path, size, "%s/%s%s", c->out, base, suffix);
  // collections have slashes, file names cannot
  for (char *p = path + strlen(c->out) + 1; *p; p++) {
    if (*p == '/') {
      *p = '_';
    }
  }
  return path;
}

int figure_picture(struct figure_context *c, const char *script, const char *base, const char *data,
                   struct err *e, ...) {
  struct gnuplot_var vars[16] = {{"data", data}};
  int n = 1;
  va_list list;
  va_start(list, e);
  for (const char *name; (name = va_arg(list, const char *)) != NULL; n++) {
    BUG_IF(n == 16);
    vars[n] = (struct gnuplot_var){name, va_arg(list, const char *)};
  }
  va_end(list);

  static const char *const suffix[2] = {".svg", ".png"};
  for (int i = 0; i < 2; i++) {
    const char *path = figure_path(c, base, suffix[i]);
    if (gnuplot_run(script, path, vars, n, e)) {
      return e->code;
    }
    log_info("made %s", path);
    c->made++;
  }
  return 0;
}

int figures_draw(const char *const *name, int n, const char *from, const char *out, int *made,
                 struct err *e) {
  struct arena a;
  arena_init(&a);
  struct figure_context c = {.arena = &a, .from = from, .out = out};
  const struct figure *wanted[sizeof figures / sizeof *figures];
  int nwanted = 0;
  for (int i = 0; i < (n ? n : nfigure) && !e->code; i++) {
    const struct figure *f = n ? figure_find(name[i], e) : &figures[i];
    bool again = false;
    for (int j = 0; j < nwanted; j++) {
      again |= wanted[j] == f;
    }
    if (f && !again) {
      wanted[nwanted++] = f;
    }
  }

  // what we committed is a collection of its own: a user's figures are of the user's runs
  struct run *run = NULL;
  if (!e->code && !runs_find(&run, &c.nrun, &a, from, "reference", e) && !dir_make(out, e)) {
    c.run = run;
    for (int i = 0; i < nwanted && !e->code; i++) {
      char why[200] = "";
      if (wanted[i]->draw(&c, why, e)) {
        err_prefix(e, "figure %s: ", wanted[i]->name);
      } else if (why[0] && n) {
        err_set(e, EXIT_USAGE, "figure %s: nothing to draw below %s: %s", wanted[i]->name, from,
                why);
      } else if (why[0]) {
        log_info("skipped %s: %s", wanted[i]->name, why);
      }
    }
  }
  *made = c.made;
  arena_release(&a);
  return e->code;
}
