#include "spec/spec.h"
#include "spec/field.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct spec_ints parse_default_list(const char *text) {
  struct spec_ints list = {0};
  for (const char *p = text; *p != '\0';) {
    char *end;
    long v = strtol(p, &end, 10);
    BUG_IF(end == p || list.n == (int)(sizeof list.v / sizeof list.v[0]));
    list.v[list.n++] = (int)v;
    p = end + strspn(end, ", ");
  }
  return list;
}

void spec_default(struct spec *s) {
  *s = (struct spec){.path = ""};
#define INT(m, p, d, ...)     s->m = d;
#define REAL(m, p, d, ...)    s->m = d;
#define BOOL(m, p, d, ...)    s->m = d;
#define TEXT(m, p, d, ...)    s->m = d;
#define TEXTS(m, p, d, ...)   s->m = d;
#define ENUM(m, p, t, d, ...) s->m = d;
#define INTS(m, p, d, ...)    s->m = parse_default_list(d);
#include "spec/spec.def"
#undef INT
#undef REAL
#undef BOOL
#undef TEXT
#undef TEXTS
#undef ENUM
#undef INTS
}

// ---- bounds that involve several fields
// ------------------------------------------------------------

// experiment and variant become folders under results/: no way out of there
static int check_folder_name(const char *path, const char *name, struct err *e) {
  static const char allowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-=,/";
  if (name[strspn(name, allowed)] != '\0') {
    return err_set(e, EXIT_USAGE,
                   "%s: expected letters, digits and '_.+-=,/' (it names a folder), found '%.80s'",
                   path, name);
  }
  if (name[0] == '/' || strstr(name, "..") != NULL || strlen(name) > 200) {
    return err_set(e, EXIT_USAGE, "%s: '%.80s' is no folder below results/", path, name);
  }
  return 0;
}

static int check_ppo(const struct spec *s, struct err *e) {
  int64_t rows = (int64_t)s->envs * s->horizon;
  if (s->bundle_size > 1) {
    return err_set(e, EXIT_USAGE,
                   "bundle.size: expected 1 with algorithm ppo, which uses no gradients of the "
                   "simulator, found %d",
                   s->bundle_size);
  }
  if (s->ppo_batches > rows) {
    return err_set(e, EXIT_USAGE,
                   "learn.ppo.batches: expected at most learn.envs * learn.horizon (%lld), found "
                   "%d",
                   (long long)rows, s->ppo_batches);
  }
  const double rate[2] = {s->actor_lr, s->critic_lr};
  static const char *const name[2] = {"learn.actor.lr", "learn.critic.lr"};
  for (int i = 0; i < 2 && s->ppo_kl_target > 0; i++) {
    if (rate[i] < s->ppo_lr_min || rate[i] > s->ppo_lr_max) {
      return err_set(e, EXIT_USAGE,
                     "%s: expected learn.ppo.lr_min to learn.ppo.lr_max (%g to %g), found %g",
                     name[i], s->ppo_lr_min, s->ppo_lr_max, rate[i]);
    }
  }
  return 0;
}

int spec_check(const struct spec *s, struct err *e) {
  if (check_folder_name("experiment", s->experiment, e) != 0 ||
      check_folder_name("variant", s->variant, e) != 0) {
    return e->code;
  }
  if (s->variant[0] == '\0' || s->robot[0] == '\0' || s->motion[0] == '\0') {
    return err_set(e, EXIT_USAGE, "%s: expected a name, found ''",
                   s->variant[0] == '\0' ? "variant"
                   : s->robot[0] == '\0' ? "robot"
                                         : "motion");
  }
  if (s->envs % 8 != 0) {
    return err_set(e, EXIT_USAGE, "learn.envs: expected a multiple of 8 (lanes), found %d",
                   s->envs);
  }
  if (s->shard % 8 != 0) {
    return err_set(e, EXIT_USAGE, "learn.shard: expected a multiple of 8 (lanes), found %d",
                   s->shard);
  }
  if (s->envs % s->shard != 0) {
    return err_set(e, EXIT_USAGE,
                   "learn.envs: expected a multiple of learn.shard (%d), found %d; set "
                   "learn.shard to 8, 16 or 32",
                   s->shard, s->envs);
  }
  if (s->algorithm == ALGORITHM_PPO && check_ppo(s, e) != 0) {
    return e->code;
  }
  if (s->task == TASK_TRACK && s->integrator > INTEGRATOR_RK4) {
    return err_set(
        e, EXIT_USAGE,
        "integrator: expected moreau, euler or rk4 with task track; the others integrate "
        "the small experiments");
  }
  if (s->task == TASK_TRACK && s->integrator == INTEGRATOR_RK4 &&
      s->contact_model != CONTACT_MUJOCO) {
    return err_set(e, EXIT_USAGE,
                   "integrator: rk4 needs contact.model mujoco; smoothed impulses have moreau and "
                   "euler");
  }
  if (s->task != TASK_TRACK && s->integrator == INTEGRATOR_MOREAU) {
    return err_set(e, EXIT_USAGE,
                   "integrator: moreau belongs to the smoothed contact; set euler or one of those "
                   "after it for the small experiments");
  }
  if (s->task == TASK_GRADIENTS || s->task == TASK_COLLIDE) { // tables with rows for all of these
    if (s->integrator != INTEGRATOR_TSIT5) {
      return err_set(e, EXIT_USAGE,
                     "integrator: tasks gradients and collide compare euler with tsit5; expected "
                     "tsit5");
    }
    if (s->cfd_law == CFD_LAW_OFF) {
      return err_set(e, EXIT_USAGE,
                     "cfd.law: tasks gradients and collide have rows with and without; expected "
                     "relu or softplus");
    }
  }
  // a control step is a whole number of substeps; a ratio that is one but for rounding counts
  double substeps = s->control_dt / s->sim_dt;
  if (substeps < 0.5 || fabs(substeps - round(substeps)) > 1e-9 * substeps) {
    return err_set(e, EXIT_USAGE,
                   "control.dt: expected a multiple of sim.dt (%g s), found %g s (%.6g times)",
                   s->sim_dt, s->control_dt, substeps);
  }
  if (s->contact_model == CONTACT_MUJOCO && s->integrator == INTEGRATOR_MOREAU) {
    return err_set(e, EXIT_USAGE,
                   "integrator: expected euler or rk4 with contact.model mujoco, which has no "
                   "midpoint form, found moreau; set integrator: euler");
  }
  if (s->bundle_adaptive && s->bundle_size > 1) {
    if (s->contact_model != CONTACT_SMOOTHED) {
      return err_set(
          e, EXIT_USAGE,
          "bundle.adaptive: expected false with contact.model mujoco: sensitivity is that "
          "of smoothed contacts");
    }
    if (s->bundle_sigma_p == 0) {
      return err_set(e, EXIT_USAGE,
                     "bundle.sigma_p: expected the largest spread with bundle.adaptive, found 0");
    }
  }
  if (s->task == TASK_TRACK && s->contact_model != CONTACT_MUJOCO && s->cfd_law != CFD_LAW_OFF) {
    return err_set(e, EXIT_USAGE,
                   "cfd.law: expected off with contact.model smoothed, whose contacts reach out by "
                   "themselves; set contact.model: mujoco");
  }
  if (s->contact_friction < 0 && s->contact_friction != -1) {
    return err_set(e, EXIT_USAGE,
                   "contact.friction: expected 0 or more, or -1 for the robot's own, found %g",
                   s->contact_friction);
  }
  return 0;
}

// ---- echo, help, differences
// -----------------------------------------------------------------------

static size_t group_length(const char *path) {
  const char *dot = strchr(path, '.');
  return dot != NULL ? (size_t)(dot - path) : 0;
}

static bool same_group(const struct field *a, const struct field *b) {
  size_t n = group_length(a->path);
  return n == group_length(b->path) && memcmp(a->path, b->path, n) == 0;
}

void spec_print(const struct spec *s, FILE *out) {
  fprintf(out, "# every setting of this run; `dsim train` of this file repeats it\n");
  for (int i = 0; i < nspec_field; i++) {
    const struct field *f = &spec_fields[i];
    if (i > 0 && !same_group(f, f - 1)) {
      fprintf(out, "\n");
    }
    char value[8192];
    field_print(f, s, value, sizeof value);
    int used = fprintf(out, "%s: %s", f->path, value);
    fprintf(out, "%*s # %s%s%s%s\n", used < 44 ? 44 - used : 0, "", f->help,
            f->unit[0] != '\0' ? " (" : "", f->unit, f->unit[0] != '\0' ? ")" : "");
  }
}

void spec_help(FILE *out) {
  struct spec defaults;
  spec_default(&defaults);
  fprintf(out,
          "Fields of a spec. In a file as 'learn.envs: 64' or nested; on the command line as\n"
          "--set learn.envs=64. Default in brackets. A file may start with 'base: other.yaml'.\n");
  for (int i = 0; i < nspec_field; i++) {
    const struct field *f = &spec_fields[i];
    if (i == 0 || !same_group(f, f - 1)) {
      size_t n = group_length(f->path);
      fprintf(out, "\n%.*s\n", n > 0 ? (int)n : 3, n > 0 ? f->path : "run");
    }
    char value[8192], expects[256];
    fprintf(out, "  %-26s %s\n  %-26s   %s [%s]\n", f->path, f->help, "",
            field_expects(f, expects, sizeof expects),
            field_print(f, &defaults, value, sizeof value));
  }
}

int spec_diff(const struct spec *a, const struct spec *b, char *text, size_t size) {
  int count = 0;
  size_t used = 0;
  if (size > 0) {
    text[0] = '\0';
  }
  for (int i = 0; i < nspec_field; i++) {
    char va[8192], vb[8192];
    field_print(&spec_fields[i], a, va, sizeof va);
    field_print(&spec_fields[i], b, vb, sizeof vb);
    if (strcmp(va, vb) == 0) {
      continue;
    }
    count++;
    if (used < size) {
      int n = snprintf(text + used, size - used, "%s: %s -> %s\n", spec_fields[i].path, va, vb);
      used += n > 0 ? (size_t)n : 0;
    }
  }
  return count;
}
