// dsim motion lint|info|import|synth: clips.
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "base/file.h"
#include "base/log.h"
#include "motion/feet.h"
#include "motion/import.h"
#include "motion/lint.h"
#include "motion/motion.h"
#include "motion/sidecar.h"
#include "motion/synth.h"
#include "out/table.h"
#include "spec/scalar.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the command line can say of a clip, and the robot it is for.
struct clip_line {
  const char *robot, *rows, *dz, *order;
  double fps;
  bool warn_only, allow_jumps, quiet;
};
#define OPTION_ROBOT(c)                                                                            \
  {"robot", OPTION_TEXT, &(c).robot, "FILE", "MJCF of the robot (default: the spec's)", 0, 0}, {   \
    "robot-warn-only", OPTION_FLAG, &(c).warn_only, NULL,                                          \
        "leave out what dsim does not simulate with a warning", 0, 0                               \
  }
#define OPTION_CLIP(c)                                                                             \
  {"fps", OPTION_REAL, &(c).fps, "N", "frames per second of the file", 0.01, 10000},               \
      {"rows", OPTION_TEXT, &(c).rows, "A:B", "frames A to B, from 0, B included", 0, 0},          \
      {"dz", OPTION_TEXT, &(c).dz, "M", "raise the root by M metres", 0, 0},                       \
      {"quaternion", OPTION_TEXT, &(c).order, "ORDER", "xyzw or wxyz", 0, 0}, {                    \
    "allow-jumps", OPTION_FLAG, &(c).allow_jumps, NULL, "accept jumps from frame to frame", 0, 0   \
  }

static int parse_clip_line(struct clip_options *o, const struct clip_line *l, struct err *e) {
  *o = clip_options_default();
  o->fps = l->fps;
  o->allow_jumps = l->allow_jumps;
  if (l->rows != NULL) {
    int end = 0;
    if (sscanf(l->rows, "%d:%d%n", &o->row_first, &o->row_last, &end) != 2 ||
        l->rows[end] != '\0' || o->row_first < 0 || o->row_last < o->row_first) {
      return err_set(e, EXIT_USAGE,
                     "--rows: FIRST:LAST expected, counted from 0, both included, found '%.40s'",
                     l->rows);
    }
  }
  struct scalar dz = {.text = l->dz};
  struct scalar_note note = {0};
  if (l->dz != NULL && !scalar_real(&dz, &o->dz, &note)) {
    return err_set(e, EXIT_USAGE, "--dz: a number of metres expected, found '%.40s' %s", l->dz,
                   note.hint);
  }
  if (l->order != NULL && strcmp(l->order, "xyzw") != 0 && strcmp(l->order, "wxyz") != 0) {
    return err_set(e, EXIT_USAGE, "--quaternion: xyzw or wxyz expected, found '%.40s'", l->order);
  }
  if (l->order != NULL) {
    o->order = l->order[0] == 'x' ? CLIP_ORDER_XYZW : CLIP_ORDER_WXYZ;
  }
  return 0;
}

static int load_robot(struct robot *r, struct arena *a, const struct clip_line *l, struct err *e) {
  struct spec s;
  spec_default(&s);
  log_quiet(l->quiet);
  return robot_load(r, a, l->robot != NULL ? l->robot : s.robot, l->warn_only, e);
}

// ---- lint

static int motion_lint(int argc, char **argv) {
  struct clip_line c = {0};
  const struct option rows[] = {
      OPTION_ROBOT(c),
      OPTION_CLIP(c),
  };
  struct command_line line = {
      .usage = "motion lint CLIP",
      .about = "Says what is wrong with a clip: units, quaternion order and norm, jumps, joint\n"
               "limits, feet and floor, left and right. Exit code 1 when there are errors.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  struct arena a;
  arena_init(&a);
  struct robot r;
  struct clip_options opt;
  struct clip clip;
  const char *file;
  int code = EXIT_DONE;
  if (parse_clip_line(&opt, &c, &e) == 0 && load_robot(&r, &a, &c, &e) == 0 &&
      motion_open(&clip, &file, &a, &r, line.args[0], &opt, &e) == 0) {
    struct lint *lint = ARENA_NEW(&a, struct lint, 1);
    lint_clip(lint, &r, &clip);
    for (int i = 0; i < lint->n; i++) {
      const struct lint_finding *f = &lint->finding[i];
      printf("%-8s %-17s", f->severity == LINT_ERROR ? "error" : "warning", f->code);
      f->frame < 0 ? printf("%-8s", "") : printf("%-8d", f->frame);
      printf("%s\n", f->text);
    }
    printf("%s: %d frames, %d errors, %d warnings\n", file, clip.nframe, lint->nerror,
           lint->nwarning);
    code = lint->nerror > 0 ? EXIT_CHECK : EXIT_DONE;
  }
  arena_release(&a);
  return e.code != 0 ? err_report(&e) : code;
}

// ---- info

struct motion_numbers {
  double path, top_speed, root_low, root_high;
  double both_up; // part of the frames with every foot more than 2 cm above its stance height
};

static struct motion_numbers measure(const struct robot *r, const struct motion *m,
                                     const struct lint *lint) {
  struct motion_numbers n = {.root_low = INFINITY, .root_high = -INFINITY};
  struct feet feet;
  feet_find(&feet, r);
  for (int k = 0; k < m->nframe; k++) {
    const double *q = m->qpos + (size_t)k * (size_t)m->nq;
    n.root_low = fmin(n.root_low, q[2]);
    n.root_high = fmax(n.root_high, q[2]);
    if (k > 0) {
      double step = hypot(q[0] - q[-m->nq], q[1] - q[1 - m->nq]);
      n.path += step;
      n.top_speed = fmax(n.top_speed, step / m->dt);
    }
    double z = feet_height(r, &feet, m->xpos + (size_t)k * (size_t)r->nbody * 3,
                           m->xmat + (size_t)k * (size_t)r->nbody * 9);
    n.both_up += (z > lint->foot_p10 + 0.02) / (double)m->nframe;
  }
  return n;
}

static void print_info(const struct robot *r, const struct clip *c, const struct motion *m,
                       const struct lint *lint, const char *file) {
  printf("motion       %s\n", m->name);
  printf("file         %s\n", file);
  printf("sha256       %s\n", m->sha256);
  printf("robot        %s\n", r->name);
  printf("frames       %d at %g per second, rows %d..%d: %.4f s\n", c->nframe, c->fps, c->row_first,
         c->row_first + c->nframe - 1, (c->nframe - 1) / c->fps);
  printf("control      %d frames, %d steps of %g s\n", m->nframe, m->nframe - 1, m->dt);
  if (r->link[0].type == JOINT_FREE) {
    struct motion_numbers n = measure(r, m, lint);
    printf("path         %.2f m, mean %.2f m/s, at most %.2f m/s\n", n.path,
           n.path / ((m->nframe - 1) * m->dt), n.top_speed);
    printf("root height  %.3f..%.3f m\n", n.root_low, n.root_high);
    if (isfinite(lint->foot_min)) {
      printf("lowest foot  min %.1f, lowest tenth %.1f, median %.1f, max %.1f mm\n",
             1e3 * lint->foot_min, 1e3 * lint->foot_p10, 1e3 * lint->foot_median,
             1e3 * lint->foot_max);
      printf("in the air   %.1f %% of frames have every foot 2 cm above the lowest tenth\n",
             100 * n.both_up);
    }
  }
  if (lint->joint_speed_dof >= 0) {
    char name[64];
    printf("joint speed  at most %.1f rad/s: %s at frame %d\n", lint->joint_speed,
           robot_dof_name(r, lint->joint_speed_dof, name), lint->joint_speed_frame);
  }
  printf("lint         %d errors, %d warnings\n", lint->nerror, lint->nwarning);
  printf("credit       %s\n", c->credit[0] ? c->credit : "-");
}

static int motion_info(int argc, char **argv) {
  struct clip_line c = {0};
  struct spec s;
  spec_default(&s);
  double dt = s.control_dt;
  const struct option rows[] = {
      OPTION_ROBOT(c),
      OPTION_CLIP(c),
      {"dt", OPTION_REAL, &dt, "S", "control period (default: the spec's)", 1e-3, 0.2},
  };
  struct command_line line = {
      .usage = "motion info CLIP",
      .about = "Length, speeds, heights and origin of a clip. CLIP is a file, a sidecar, or the\n"
               "name of a shipped clip.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  struct arena a;
  arena_init(&a);
  struct robot r;
  struct clip_options opt;
  struct clip clip;
  struct motion m;
  const char *file;
  if (parse_clip_line(&opt, &c, &e) == 0 && load_robot(&r, &a, &c, &e) == 0 &&
      motion_open(&clip, &file, &a, &r, line.args[0], &opt, &e) == 0 &&
      motion_build(&m, &a, &r, &clip, clip_name(&a, file), dt, &e) == 0 &&
      file_sha256(file, m.sha256, &e) == 0) {
    struct lint *lint = ARENA_NEW(&a, struct lint, 1);
    lint_clip(lint, &r, &clip);
    print_info(&r, &clip, &m, lint, file);
  }
  arena_release(&a);
  return err_report(&e);
}

// ---- import

static bool is_yaml(const char *path) {
  size_t n = strlen(path);
  return n > 5 && strcmp(path + n - 5, ".yaml") == 0;
}

static int motion_import(int argc, char **argv) {
  struct clip_line c = {0};
  const char *out = NULL, *from = NULL;
  struct option_list only = {0};
  bool force = false;
  const struct option rows[] = {
      OPTION_ROBOT(c),
      OPTION_CLIP(c),
      {"out", OPTION_TEXT, &out, "PATH", "clip to write (.csv.gz), or folder for a list", 0, 0},
      {"from", OPTION_TEXT, &from, "DIR", "folder with the files that a list names", 0, 0},
      {"only", OPTION_LIST, &only, "NAME", "only this clip of the list (repeatable)", 0, 0},
      {"force", OPTION_FLAG, &force, NULL,
       "take clips that lint or a sha256 refuses, replace an existing file", 0, 0},
      {"quiet", OPTION_FLAG, &c.quiet, NULL, "no messages but warnings", 0, 0},
  };
  struct command_line line = {
      .usage = "motion import CLIP --out FILE | LIST.yaml --from DIR",
      .about = "Makes clips for `motion=`: one from a file (Unitree CSV), or all that a list such\n"
               "as motions/lafan1.yaml cuts from files you downloaded. A list's clips go to\n"
               "results/motions/LIST unless --out says otherwise.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  const char *file = line.args[0];
  bool list = from != NULL;
  if (list && (c.fps > 0 || c.rows != NULL || c.dz != NULL || c.order != NULL || c.allow_jumps)) {
    err_set(&e, EXIT_USAGE, "motion import: with --from, the list says rows, fps and the like");
  } else if (!list && only.n > 0) {
    err_set(&e, EXIT_USAGE, "motion import: --only goes with --from DIR");
  } else if (!list && out == NULL) {
    err_set(&e, EXIT_USAGE, "motion import: --out FILE.csv.gz is missing%s",
            is_yaml(file) ? ", or --from DIR for a list of clips" : "");
  } else if (!list && is_yaml(out)) {
    err_set(&e, EXIT_USAGE, "motion import: --out names the clip (FILE.csv.gz), not its sidecar");
  }
  struct arena a;
  arena_init(&a);
  struct robot r;
  struct clip_options opt;
  if (e.code == 0 && parse_clip_line(&opt, &c, &e) == 0 && load_robot(&r, &a, &c, &e) == 0) {
    if (list) {
      import_list(&a, &r, file, from, out, only.v, only.n, force, &e);
    } else {
      import_clip(&a, &r, file, out, &opt, force, &e);
    }
  }
  arena_release(&a);
  return err_report(&e);
}

// ---- synth

static int motion_synth_command(int argc, char **argv) {
  struct clip_line c = {0};
  const char *out = "motions";
  const struct option rows[] = {
      OPTION_ROBOT(c),
      {"out", OPTION_TEXT, &out, "DIR", "folder to write to (default: motions)", 0, 0},
      {"quiet", OPTION_FLAG, &c.quiet, NULL, "no messages but warnings", 0, 0},
  };
  struct command_line line = {
      .usage = "motion synth [NAME...]",
      .about =
          "Makes the project's own clips for Unitree G1 from nothing but its model: walk, run,\n"
          "jump, fight, dance, 15 s each; all of them unless named. Prints what they ask of\n"
          "the robot.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .max_args = 8,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  const char *const *name = motion_synth_names;
  int n = 0;
  while (name[n] != NULL) {
    n++;
  }
  if (line.nargs > 0) {
    name = line.args;
    n = line.nargs;
  }
  struct arena a;
  arena_init(&a);
  struct robot r;
  struct table t;
  table_init(&t, &a);
  table_column(&t, "clip", "", 0);
  table_column(&t, "distance", "m", 1);
  table_column(&t, "speed", "m/s", 2);
  table_column(&t, "in flight", "%", 0);
  table_column(&t, "jump", "cm", 1);
  table_column(&t, "joint speed", "% of limit", 0);
  table_column(&t, "torque", "% of limit", 0);
  table_column(&t, "slip", "cm/s", 2);
  table_column(&t, "sole min", "mm", 1);
  table_column(&t, "sole max", "mm", 1);
  if (load_robot(&r, &a, &c, &e) == 0) {
    dir_make(out, &e);
  }
  for (int i = 0; i < n && e.code == 0; i++) {
    struct clip clip;
    struct synth_report s;
    char path[4096], credit[256];
    if (motion_synth(&clip, &a, &r, name[i], &e) != 0) {
      break;
    }
    if (motion_synth_check(&s, &a, &r, &clip, &e) != 0) {
      break;
    }
    snprintf(path, sizeof path, "%s/%s.csv.gz", out, name[i]);
    snprintf(credit, sizeof credit, "made by 'dsim motion synth %s'; no captured data in it",
             name[i]);
    if (clip_write(&clip, &r, path, credit, &e) != 0) {
      break;
    }
    log_info("%s: %d frames at %g per second", path, clip.nframe, clip.fps);
    table_text(&t, name[i]);
    table_real(&t, s.distance);
    table_real(&t, s.top_speed);
    table_real(&t, 100 * s.flight_share);
    table_real(&t, 100 * s.jump_rise);
    table_real(&t, 100 * s.speed_share);
    table_real(&t, 100 * s.torque_share);
    table_real(&t, 100 * s.slip);
    table_real(&t, 1e3 * s.sole_low);
    table_real(&t, 1e3 * s.sole_high);
  }
  if (e.code == 0) {
    table_print(&t, stdout);
  }
  arena_release(&a);
  return err_report(&e);
}

int cmd_motion(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
  } verbs[] = {
      {"lint", motion_lint, "what is wrong with a clip"},
      {"info", motion_info, "length, speeds, heights and origin of a clip"},
      {"import", motion_import, "make clips from public motion data"},
      {"synth", motion_synth_command, "make the project's own clips"},
  };
  enum { NVERB = sizeof verbs / sizeof *verbs };
  const char *names[NVERB];
  for (int i = 0; i < NVERB; i++) {
    names[i] = verbs[i].name;
    if (argc > 1 && strcmp(argv[1], names[i]) == 0) {
      return verbs[i].run(argc - 1, argv + 1);
    }
  }
  bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
  struct err e = {0};
  if (argc > 1 && !help) {
    const char *near = err_nearest(argv[1], names, NVERB);
    err_set(&e, EXIT_USAGE, "motion: unknown command '%.80s'%s%s%s", argv[1],
            near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return err_report(&e);
  }
  FILE *to = help ? stdout : stderr;
  fprintf(to, "usage: dsim motion COMMAND ... (--help after a command explains it)\n");
  for (int i = 0; i < NVERB; i++) {
    fprintf(to, "  %-7s %s\n", verbs[i].name, verbs[i].help);
  }
  return help ? EXIT_DONE : EXIT_USAGE;
}
