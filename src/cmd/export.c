// dsim export RUN: the policy as an ONNX file, with what a controller must know in its metadata.
#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/gemm.h"
#include "learn/policy.h"
#include "learn/world.h"
#include "learn/onnx.h"
#include "out/rundir.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- metadata: names of whole_body_tracking, lists joined by commas

struct properties {
  struct arena *arena;
  int n;
  struct onnx_property p[32];
};

static void add_text(struct properties *m, const char *key, const char *value) {
  BUG_IF(m->n == (int)(sizeof m->p / sizeof *m->p));
  m->p[m->n++] = (struct onnx_property){key, arena_strdup(m->arena, value)};
}

__attribute__((format(printf, 3, 4))) static void add_format(struct properties *m, const char *key,
                                                             const char *format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  add_text(m, key, text);
}

struct list { // a growing comma-joined text
  char text[16384];
  size_t used;
};

__attribute__((format(printf, 2, 3))) static void append(struct list *l, const char *format, ...) {
  if (l->used) {
    l->text[l->used++] = ',';
  }
  va_list list;
  va_start(list, format);
  int n = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, list);
  va_end(list);
  BUG_IF(n < 0 || l->used + (size_t)n + 1 >= sizeof l->text);
  l->used += (size_t)n;
}

// Joints in the order of the actions: the order of the robot's actuators, depth first for the G1.
static void describe_joints(struct properties *m, const struct world *w) {
  const struct robot *r = &w->robot;
  struct list name = {0}, stiffness = {0}, damping = {0}, effort = {0}, pose = {0}, scale = {0};
  for (int i = 0; i < r->nu; i++) {
    const struct robot_actuator *u = &r->actuator[i];
    append(&name, "%s", r->link[r->dof[u->dof].link].joint_name);
    append(&stiffness, "%.7g", -u->bias[1]);
    append(&damping, "%.7g", -u->bias[2]);
    append(&effort, "%.7g", u->force_limited ? u->force_range[1] : INFINITY);
    append(&pose, "%.7g", w->track.pose[i]);
    append(&scale, "%.7g", w->spec->control_action_scale);
  }
  add_text(m, "joint_names", name.text);
  add_text(m, "joint_stiffness", stiffness.text);
  add_text(m, "joint_damping", damping.text);
  add_text(m, "joint_effort", effort.text);
  add_text(m, "default_joint_pos", pose.text);
  add_text(m, "action_scale", scale.text);
}

static void describe_observation(struct properties *m, const struct world *w) {
  const struct track *t = &w->track;
  struct list name = {0}, dims = {0}, body = {0};
  for (int i = 0; i < t->nblock; i++) {
    if (t->block[i].count) {
      append(&name, "%s", t->block[i].name);
      append(&dims, "%d", t->block[i].count);
    }
  }
  for (int i = 0; i < t->nkey; i++) {
    append(&body, "%s", w->robot.body[t->key[i]].name);
  }
  add_text(m, "observation_names", name.text);
  add_text(m, "observation_dims", dims.text);
  add_text(m, "observation_set", w->spec->observation == OBSERVATION_PAPER ? "paper" : "compact");
  add_text(m, "command_names", "motion");
  add_text(m, "body_names", body.text);
}

static void describe(struct properties *m, const struct policy *p, const struct world *w) {
  add_text(m, "run_path", p->run);
  add_format(m, "iteration", "%lld", (long long)p->iteration);
  describe_joints(m, w);
  describe_observation(m, w);
  // the frame that root terms refer to: the body that carries the free joint
  for (int b = 1; b < w->robot.nbody; b++) {
    if (w->robot.body[b].parent == 0) {
      add_text(m, "anchor_body_name", w->robot.body[b].name);
      break;
    }
  }
  add_format(m, "control_dt", "%.9g", w->spec->control_dt);
  add_text(m, "robot", w->robot.name);
  add_text(m, "robot_sha256", w->robot.sha256);
  add_text(m, "motion", w->motion.name);
  add_text(m, "motion_sha256", w->motion.sha256);
  add_text(m, "quaternion_order", "wxyz");
  add_text(m, "target", "default_joint_pos + action_scale * actions");
}

// ---- the command

static int export_policy(const char *run, const char *out, struct arena *a, struct err *e) {
  struct policy p;
  struct world w;
  if (policy_load(&p, a, run, e) || world_open(&w, a, &p.spec, e)) {
    return e->code;
  }
  const char **name = ARENA_NEW(a, const char *, w.robot.nu);
  for (int i = 0; i < w.robot.nu; i++) {
    name[i] = w.robot.actuator[i].name;
  }
  if (policy_check(&p, w.track.nobs, w.robot.nu, name, e)) {
    return e->code;
  }
  struct properties m = {.arena = a};
  describe(&m, &p, &w);
  char *data;
  size_t size;
  onnx_policy(&data, &size, a, &p.net, p.param, &p.norm, m.p, m.n);
  const char *path = out ? out : rundir_file(a, p.run, "policy.onnx");
  if (file_write_atomic(path, data, size, e)) {
    return e->code;
  }
  log_info("wrote %s: obs (1, %d) -> actions (1, %d), %.1f MB, policy of iteration %lld", path,
           p.nobs, p.nu, (double)size / 1e6, (long long)p.iteration);
  return 0;
}

int cmd_export(int argc, char **argv) {
  const char *out = NULL;
  bool quiet = false;
  const struct option rows[] = {
      {"out", OPTION_TEXT, &out, "FILE", "file to write instead of RUN/policy.onnx", 0, 0},
      {"quiet", OPTION_FLAG, &quiet, NULL, "nothing on stderr", 0, 0},
  };
  struct command_line line = {
      .usage = "export RUN",
      .about =
          "Writes the policy as an ONNX model (opset 11): observation in, action out, with the\n"
          "observation's normalisation inside. Metadata tells joint names and order, gains,\n"
          "default pose, action scale, the parts of the observation, and the control period.\n"
          "The joint target is default_joint_pos + action_scale * actions.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  log_quiet(quiet);
  gemm_start();
  struct arena a;
  arena_init(&a);
  export_policy(line.args[0], out, &a, &e);
  arena_release(&a);
  return err_report(&e);
}
