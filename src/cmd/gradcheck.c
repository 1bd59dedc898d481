// dsim gradcheck: adjoints against central differences, per stage and for a whole rollout.
#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/world.h"
#include "out/json.h"
#include "out/table.h"
#include "sim/gradcheck.h"
#include <stdio.h>
#include <string.h>

static int print_json(const struct gradcheck *g, const char *robot, struct err *e) {
  cJSON *root = cJSON_CreateObject(), *stages = cJSON_AddArrayToObject(root, "stages");
  cJSON_AddStringToObject(root, "robot", robot);
  json_add_real(root, "max_rel_error", g->max_rel_error);
  cJSON_AddBoolToObject(root, "passed", gradcheck_passes(g));
  cJSON_AddNumberToObject(root, "states", g->nstate);
  cJSON_AddNumberToObject(root, "states_in_contact", g->ncontact_state);
  for (int i = 0; i < g->nrow; i++) {
    const struct gradcheck_row *row = &g->row[i];
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", row->name);
    json_add_real(o, "max_rel_error", row->max_rel_error);
    json_add_real(o, "tolerance", row->tolerance);
    cJSON_AddNumberToObject(o, "checked", (double)row->checked);
    cJSON_AddNumberToObject(o, "kinks_skipped", (double)row->kinks_skipped);
    cJSON_AddStringToObject(o, "worst", row->worst);
    cJSON_AddItemToArray(stages, o);
  }
  json_print(root, e);
  cJSON_Delete(root);
  return e->code;
}

static void print_table(const struct gradcheck *g, struct arena *a, const char *robot) {
  struct table t;
  table_init(&t, a);
  table_column(&t, "stage", "", 0);
  table_column(&t, "max_rel_error", "", 0);
  table_column(&t, "tolerance", "", 0);
  table_column(&t, "checked", "", 0);
  table_column(&t, "kinks_skipped", "", 0);
  table_column(&t, "worst", "", 0);
  table_column(&t, "", "", 0);
  for (int i = 0; i < g->nrow; i++) {
    const struct gradcheck_row *row = &g->row[i];
    char text[32];
    table_text(&t, row->name);
    snprintf(text, sizeof text, "%.1e", row->max_rel_error);
    table_text(&t, text);
    snprintf(text, sizeof text, "%.0e", row->tolerance);
    table_text(&t, text);
    table_int(&t, row->checked);
    table_int(&t, row->kinks_skipped);
    table_text(&t, row->worst);
    table_text(&t, gradcheck_row_passes(row) ? "ok" : "FAILED");
  }
  printf("%s: adjoint against central differences, %d random states, %d of them bearing load\n\n",
         robot, g->nstate, g->ncontact_state);
  table_print(&t, stdout);
}

// SPEC, or an MJCF: a path to one, or the name of one under robots/
static int read_subject(struct spec *s, struct arena *a, const char *name, struct run_options *run,
                        struct err *e) {
  const char *robot = NULL;
  char path[512];
  if (name) {
    size_t n = strlen(name);
    bool xml = n > 4 && !strcmp(name + n - 4, ".xml");
    snprintf(path, sizeof path, "%s%s%s", xml ? "" : "robots/", name, xml ? "" : ".xml");
    robot = xml || (!strchr(name, '/') && file_find(a, path)) ? path : NULL;
  }
  if (run_options_spec(s, a, robot ? NULL : name, run, e) == 0 && robot) {
    s->robot = arena_strdup(a, robot);
  }
  return e->code;
}

static int gradcheck(struct arena *a, const char *name, struct run_options *run, struct err *e) {
  struct spec s;
  struct robot r;
  struct gradcheck g;
  const struct sim_kernels *k = sim_kernels(e);
  if (!k || read_subject(&s, a, name, run, e) || robot_load(&r, a, s.robot, s.robot_warn_only, e)) {
    return e->code;
  }
  struct sim_options o = world_sim_options(&s);
  if (gradcheck_run(&g, a, &r, &o, k, e)) {
    return e->code;
  }
  if (run->json ? print_json(&g, r.name, e) : (print_table(&g, a, r.name), 0)) {
    return e->code;
  }
  if (!gradcheck_passes(&g)) {
    return err_set(e, EXIT_CHECK, "%s: an adjoint and its differences disagree, or nothing moved",
                   r.name);
  }
  return 0;
}

int cmd_gradcheck(int argc, char **argv) {
  struct run_options run = {0};
  const struct option rows[] = {
      OPTION_SET(run),
      OPTION_JSON(run),
  };
  struct command_line line = {
      .usage = "gradcheck [SPEC|ROBOT]",
      .about = "Checks the simulator's gradients on a robot: every stage's adjoint alone, whole\n"
               "substeps by blocks and parameters, a control step, and a rollout of 32 control\n"
               "steps, against central differences in the tangent space on random states in\n"
               "contact. Errors are relative to the largest entry of a block. Directions that\n"
               "cross a kink (cone edge, lift-off, clamp) are skipped and counted. Fails above\n"
               "1e-6 (rollout: 1e-5). ROBOT is an MJCF or a name under robots/; default: g1.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  struct arena a;
  arena_init(&a);
  gradcheck(&a, line.args[0], &run, &e);
  arena_release(&a);
  return err_report(&e);
}
