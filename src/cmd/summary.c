#include "cmd/summary.h"
#include "base/file.h"
#include "out/csv.h"
#include "out/rundir.h"
#include "spec/scalar.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- metrics

enum reduce {
  REDUCE_SUM,
  REDUCE_MEAN, // of the rows that have a value
  REDUCE_LAST, // value that is there
  REDUCE_TAIL, // mean of the last tenth of the rows
};

static const struct metric {
  const char *name, *step, *file, *column;
  enum reduce reduce;
  const char *help;
} metrics[] = {
    {"falls", "transfer", "transfer.csv", "fell", REDUCE_SUM, "episodes in MuJoCo that fell"},
    {"fall_share", "transfer", "transfer.csv", "fell", REDUCE_MEAN, "their share of all"},
    {"time_s", "transfer", "transfer.csv", "time_s", REDUCE_MEAN, "seconds until fall or clip end"},
    {"e_track_cm", "transfer", "transfer.csv", "e_track_cm", REDUCE_MEAN,
     "mean distance of all bodies to the reference, in the world"},
    {"e_track_local_cm", "transfer", "transfer.csv", "e_track_local_cm", REDUCE_MEAN,
     "the same relative to the root"},
    {"penetration_mm", "transfer", "transfer.csv", "penetration_mm", REDUCE_MEAN,
     "depth of feet in MuJoCo's floor"},
    {"torque_saturation", "transfer", "transfer.csv", "torque_saturation", REDUCE_MEAN,
     "share of torques at 0.95 of their limit or above"},
    {"eval_falls", "evaluate", "eval.csv", "fell", REDUCE_SUM,
     "failures in the training simulator"},
    {"eval_time_s", "evaluate", "eval.csv", "time_s", REDUCE_MEAN, "seconds until then there"},
    {"eval_e_track_cm", "evaluate", "eval.csv", "e_track_cm", REDUCE_MEAN, "e_track_cm there"},
    {"eval_e_track_local_cm", "evaluate", "eval.csv", "e_track_local_cm", REDUCE_MEAN,
     "e_track_local_cm there"},
    {"penetration_train_mm", "evaluate", "eval.csv", "penetration_mm", REDUCE_MEAN,
     "depth of feet in the training simulator's floor"},
    {"reward", "train", "progress.csv", "reward", REDUCE_TAIL,
     "reward per step, last tenth of training"},
    {"episode_s", "train", "progress.csv", "episode_s", REDUCE_TAIL,
     "length of episodes, last tenth of training"},
    {"bundle_fraction", "train", "progress.csv", "bundle_fraction", REDUCE_MEAN,
     "share of steps in a bundle"},
    {"env_steps", "train", "progress.csv", "env_steps", REDUCE_LAST,
     "environment steps of training, branches counted"},
    {"wall_s", "train", "progress.csv", "wall_s", REDUCE_LAST, "seconds of training"},
};
enum { NMETRIC = sizeof metrics / sizeof metrics[0] };

// Where the time of training goes: sums over timing.csv, as shares of its iteration_s. Networks in
// rollouts are what forward and backward passes spend outside the simulator.
static const struct split {
  const char *name, *plus[3], *minus;
  const char *help;
} splits[] = {
    {"split_sim", {"sim_s"}, NULL, "simulator and task"},
    {"split_actor", {"forward_s", "backward_s", "actor_s"}, "sim_s", "policy, rewards and values"},
    {"split_critic", {"critic_s"}, NULL, "critic"},
    {"split_discriminator", {"discriminator_s"}, NULL, "discriminator"},
    {"split_rest", {NULL}, NULL, "all the others' remainder"},
};
enum { NSPLIT = sizeof splits / sizeof splits[0] };

// Foot penetration in training minus in MuJoCo (arXiv 2609.30951's delta d): made of two others.
static const char delta_name[] = "delta_d_mm";

static const struct metric *find_metric(const char *name) {
  for (int i = 0; i < NMETRIC; i++) {
    if (strcmp(metrics[i].name, name) == 0) {
      return &metrics[i];
    }
  }
  return NULL;
}

static int find_split(const char *name) {
  int i = 0;
  while (i < NSPLIT && strcmp(splits[i].name, name) != 0) {
    i++;
  }
  return i < NSPLIT ? i : -1;
}

// "falls@noisy": the metric, and the file that a step's --out names instead of the usual one.
static const char *split_file(char name[64], const char *metric) {
  const char *at = strchr(metric, '@');
  snprintf(name, 64, "%.*s", at != NULL ? (int)(at - metric) : 63, metric);
  return at != NULL ? at + 1 : NULL;
}

// "steps_to_10_cm", "wall_s_to_2.5_cm": the column and the error asked for
static bool is_threshold(const char *name, const char **column, double *cm) {
  static const char *const starts[] = {"steps_to_", "wall_s_to_"};
  static const char *const columns[] = {"env_steps", "wall_s"};
  size_t n = strlen(name);
  for (int i = 0; i < 2; i++) {
    size_t start = strlen(starts[i]);
    if (strncmp(name, starts[i], start) == 0 && n > start + 3 && n < 64 &&
        strcmp(name + n - 3, "_cm") == 0) {
      char number[64];
      snprintf(number, sizeof number, "%.*s", (int)(n - start - 3), name + start);
      struct scalar s = {.text = number};
      struct scalar_note note;
      *column = columns[i];
      return scalar_real(&s, cm, &note) && *cm > 0;
    }
  }
  return false;
}

static bool has_step(const char *const *step, int nstep, const char *word) {
  size_t n = strlen(word);
  for (int i = 0; i < nstep; i++) {
    if (strncmp(step[i], word, n) == 0 && (step[i][n] == '\0' || step[i][n] == ' ')) {
      return true;
    }
  }
  return false;
}

// A step that is this command and, unless file is NULL, has "--out FILE.csv".
static bool writes_file(const char *step, const char *word, const char *file) {
  char out[160];
  snprintf(out, sizeof out, "--out %.100s.csv", file);
  size_t n = strlen(out);
  const char *at = strstr(step, out);
  return has_step(&step, 1, word) && at != NULL && (at[n] == '\0' || at[n] == ' ');
}

static int check_known(const char *name, struct err *e) {
  const char *column;
  double cm;
  if (find_metric(name) != NULL || find_split(name) >= 0 || strcmp(name, delta_name) == 0 ||
      is_threshold(name, &column, &cm)) {
    return 0;
  }
  const char *names[NMETRIC + NSPLIT + 3] = {delta_name, "steps_to_10_cm", "wall_s_to_10_cm"};
  for (int i = 0; i < NMETRIC; i++) {
    names[3 + i] = metrics[i].name;
  }
  for (int i = 0; i < NSPLIT; i++) {
    names[3 + NMETRIC + i] = splits[i].name;
  }
  const char *nearest = err_nearest(name, names, NMETRIC + NSPLIT + 3);
  return err_set(e, EXIT_USAGE, "unknown metric '%.64s'%s%s%s", name,
                 nearest != NULL ? " (did you mean '" : " (see dsim ablate --metrics",
                 nearest != NULL ? nearest : "", nearest != NULL ? "'?)" : ")");
}

int summary_check_metric(const char *metric, const char *const *step, int nstep, struct err *e) {
  char name[64];
  const char *file = split_file(name, metric);
  if (check_known(name, e) != 0) {
    return e->code;
  }
  const struct metric *m = find_metric(name);
  const char *need = m != NULL ? m->step : "train";
  if (file != NULL) {
    if (m == NULL || strcmp(need, "train") == 0) {
      return err_set(e, EXIT_USAGE, "metric '%s': only those of transfer and evaluate have a file",
                     metric);
    }
    for (int i = 0; i < nstep; i++) {
      if (writes_file(step[i], need, file)) {
        return 0;
      }
    }
    return err_set(e, EXIT_USAGE, "metric '%s' needs a step '%s ... --out %s.csv'", metric, need,
                   file);
  }
  if (strcmp(name, delta_name) == 0) {
    need = has_step(step, nstep, "transfer") ? "evaluate" : "transfer";
  }
  if (!has_step(step, nstep, need)) {
    return err_set(e, EXIT_USAGE, "metric '%s' needs the step '%s'", metric, need);
  }
  return 0;
}

void summary_help(FILE *out) {
  fprintf(out, "Metrics of a sweep, one number a cell:\n");
  for (int i = 0; i < NMETRIC; i++) {
    fprintf(out, "  %-22s %s (%s)\n", metrics[i].name, metrics[i].help, metrics[i].file);
  }
  for (int i = 0; i < NSPLIT; i++) {
    fprintf(out, "  %-22s share of training's time: %s (timing.csv)\n", splits[i].name,
            splits[i].help);
  }
  fprintf(out,
          "  %-22s penetration_train_mm - penetration_mm\n"
          "  %-22s environment steps until an evaluation during training tracks all\n"
          "  %-22s   its episodes to the clip's end within 10 cm (any number)\n"
          "  %-22s the same in seconds of training\n"
          "  %-22s falls, of noisy.csv: for a step 'transfer ... --out noisy.csv'\n",
          delta_name, "steps_to_10_cm", "", "wall_s_to_10_cm", "falls@noisy");
}

static double reduce(const double *x, int n, enum reduce how) {
  double sum = 0, last = NAN;
  int count = 0;
  int first = how == REDUCE_TAIL ? n - (n + 9) / 10 : 0;
  for (int i = first; i < n; i++) {
    if (!isnan(x[i])) {
      sum += x[i];
      last = x[i];
      count++;
    }
  }
  return count == 0 ? NAN : how == REDUCE_LAST ? last : how == REDUCE_SUM ? sum : sum / count;
}

// A column of a file of the run. Runs that must repeat byte for byte keep their clock out of
// progress.csv (log.wall false): it is then in timing.csv, row for row.
static int read_column(double **x, int *n, struct arena *a, const char *dir, const char *file,
                       const char *column, struct err *e) {
  struct csv_table t;
  if (csv_read(&t, a, rundir_file(a, dir, file), e) != 0 || csv_reals(x, a, &t, column, e) != 0) {
    return e->code;
  }
  *n = t.nrow;
  const char *timing = rundir_file(a, dir, "timing.csv");
  if (strcmp(column, "wall_s") == 0 && *n > 0 && !((*x)[*n - 1] > 0) && file_exists(timing)) {
    double *clock;
    if (csv_read(&t, a, timing, e) != 0 || csv_reals(&clock, a, &t, column, e) != 0) {
      return e->code;
    }
    *x = t.nrow >= *n ? clock : *x;
  }
  return 0;
}

static int share_of(double *x, struct arena *a, const struct split *s, const char *dir,
                    struct err *e) {
  double *v, sum = 0, all;
  int n;
  if (read_column(&v, &n, a, dir, "timing.csv", "iteration_s", e) != 0) {
    return e->code;
  }
  all = reduce(v, n, REDUCE_SUM);
  for (int i = 0; i < 3 && s->plus[i] != NULL; i++) {
    if (read_column(&v, &n, a, dir, "timing.csv", s->plus[i], e) != 0) {
      return e->code;
    }
    sum += reduce(v, n, REDUCE_SUM);
  }
  if (s->minus != NULL) {
    if (read_column(&v, &n, a, dir, "timing.csv", s->minus, e) != 0) {
      return e->code;
    }
    sum -= reduce(v, n, REDUCE_SUM);
  }
  *x = sum / all;
  return 0;
}

// First evaluation that came through everywhere with cm or less; NaN: there is none.
static int time_to(double *x, struct arena *a, const char *dir, const char *column, double cm,
                   struct err *e) {
  double *at, *survival, *error;
  int n;
  *x = NAN;
  if (read_column(&at, &n, a, dir, "progress.csv", column, e) != 0 ||
      read_column(&survival, &n, a, dir, "progress.csv", "eval_survival", e) != 0 ||
      read_column(&error, &n, a, dir, "progress.csv", "eval_e_track_cm", e) != 0) {
    return e->code;
  }
  for (int i = 0; i < n && isnan(*x); i++) {
    *x = survival[i] > 1 - 1e-6 && error[i] <= cm ? at[i] : NAN;
  }
  return 0;
}

int summary_decimals(const char *metric) {
  static const struct {
    const char *end;
    int decimals;
  } ends[] = {{"steps", 0}, {"falls", 1}, {"wall_s", 0}, {"_mm", 2}, {"_s", 1}};
  char name[64];
  split_file(name, metric);
  metric = name;
  if (strstr(metric, "_to_") != NULL) {
    return 0;
  }
  size_t n = strlen(metric);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    size_t m = strlen(ends[i].end);
    if (n >= m && strcmp(metric + n - m, ends[i].end) == 0) {
      return ends[i].decimals;
    }
  }
  return strstr(metric, "_cm") != NULL ? 1 : 3;
}

int summary_value(double *x, struct arena *a, const char *metric, const char *dir, struct err *e) {
  const char *column;
  double cm, *v;
  char name[64], path[80];
  int n;
  struct arena_mark mark = arena_mark(a);
  const char *file = split_file(name, metric);
  const struct metric *m = find_metric(name);
  int split = find_split(name);
  *x = NAN;
  if (strcmp(name, delta_name) == 0) {
    double train, mujoco;
    if (summary_value(&train, a, "penetration_train_mm", dir, e) == 0 &&
        summary_value(&mujoco, a, "penetration_mm", dir, e) == 0) {
      *x = train - mujoco;
    }
  } else if (m != NULL) {
    snprintf(path, sizeof path, "%s%s", file != NULL ? file : m->file, file != NULL ? ".csv" : "");
    if (read_column(&v, &n, a, dir, path, m->column, e) == 0) {
      *x = reduce(v, n, m->reduce);
    }
  } else if (split == NSPLIT - 1) {
    *x = 1;
    for (int i = 0; i < split && e->code == 0; i++) {
      double part;
      *x -= share_of(&part, a, &splits[i], dir, e) == 0 ? part : 0;
    }
  } else if (split >= 0) {
    share_of(x, a, &splits[split], dir, e);
  } else if (is_threshold(name, &column, &cm)) {
    time_to(x, a, dir, column, cm, e);
  }
  arena_reset(a, mark);
  return e->code;
}

// ---- summary.csv

enum { IQM_FROM = 4 }; // seeds; below, the interquartile mean is the mean

int summary_make(struct summary_row **row, int *n, struct arena *a, const struct sweep *s,
                 const bool *finished, struct err *e) {
  *row = ARENA_NEW(a, struct summary_row, 2 * s->nvariant * s->nmetric + 1);
  *n = 0;
  double *x = ARENA_NEW(a, double, s->ncell);
  for (int v = 0; v < s->nvariant; v++) {
    for (int m = 0; m < s->nmetric; m++) {
      int count = 0;
      for (int i = 0; i < s->ncell; i++) {
        if (finished[i] && s->cell[i].variant == &s->variant[v] &&
            summary_value(&x[count++], a, s->metric[m], s->cell[i].dir, e) != 0) {
          return e->code;
        }
      }
      if (count > 0) {
        const char *name = s->variant[v].name;
        struct stats mean = stats_of(x, count);
        (*row)[(*n)++] = (struct summary_row){name, s->metric[m], mean};
        if (mean.n >= IQM_FROM) {
          char metric[128];
          snprintf(metric, sizeof metric, "%s_iqm", s->metric[m]);
          (*row)[(*n)++] =
              (struct summary_row){name, arena_strdup(a, metric), stats_iqm_of(x, count)};
        }
      }
    }
  }
  return 0;
}

// A reader sees the old table or the whole new one: written beside it, then moved over it.
static int replace(const char *fresh, const char *path, struct err *e) {
  if (e->code == 0 && rename(fresh, path) != 0) {
    err_set(e, EXIT_IO, "cannot write '%s'", path);
  }
  return e->code;
}

static const char *fresh_file(char *buf, size_t size, const char *path) {
  snprintf(buf, size, "%s.new", path);
  remove(buf); // of a run that was killed
  return buf;
}

int summary_write(const struct summary_row *row, int n, const char *path, struct err *e) {
  char fresh[4200];
  struct csv c;
  if (csv_open(&c, fresh_file(fresh, sizeof fresh, path), "variant,metric,n,mean,std,lo,hi", e)) {
    return e->code;
  }
  for (int i = 0; i < n && e->code == 0; i++) {
    csv_text(&c, row[i].variant);
    csv_text(&c, row[i].metric);
    csv_int(&c, row[i].stats.n);
    csv_real_or_missing(&c, row[i].stats.mean);
    csv_real_or_missing(&c, row[i].stats.std);
    csv_real_or_missing(&c, row[i].stats.lo);
    csv_real_or_missing(&c, row[i].stats.hi);
    csv_end(&c, e);
  }
  csv_close(&c);
  return replace(fresh, path, e);
}

// ---- curves.csv

static const char *const curve_columns[] = {
    "iteration", "env_steps", "wall_s", "reward", "e_track_cm", "eval_e_track_cm", "eval_survival"};
enum { NCURVE = sizeof curve_columns / sizeof curve_columns[0], NAXIS = 3 };
static const char curves_header[] =
    "variant,iteration,env_steps,wall_s,seeds,reward,reward_lo,reward_hi,"
    "e_track_cm,e_track_cm_lo,e_track_cm_hi,eval_e_track_cm,eval_e_track_cm_lo,eval_e_track_cm_hi,"
    "eval_survival,eval_survival_lo,eval_survival_hi";

struct curve { // of one seed
  int nrow;
  double *column[NCURVE];
};

static int read_curve(struct curve *c, struct arena *a, const char *dir, struct err *e) {
  for (int i = 0; i < NCURVE && e->code == 0; i++) {
    read_column(&c->column[i], &c->nrow, a, dir, "progress.csv", curve_columns[i], e);
  }
  return e->code;
}

// One row of a variant: rows first .. last - 1 of every seed. Empty stretches have no row.
static int write_bin(struct csv *c, const char *variant, const struct curve *seed, int nseed,
                     double *x, int first, int last, struct err *e) {
  double value[NCURVE];
  struct stats band[NCURVE];
  int there = 0;
  for (int k = 0; k < NCURVE; k++) {
    int n = 0;
    for (int i = 0; i < nseed; i++) {
      int end = last < seed[i].nrow ? last : seed[i].nrow;
      x[n] = first < end ? reduce(seed[i].column[k] + first, end - first, REDUCE_MEAN) : NAN;
      n += !isnan(x[n]);
    }
    value[k] = stats_mean(x, n);
    if (k < NAXIS) { // where the point lies needs no interval
      there = n;
    } else {
      band[k] = stats_of(x, n);
    }
  }
  if (there == 0) {
    return 0;
  }
  csv_text(c, variant);
  for (int k = 0; k < NAXIS; k++) {
    csv_real(c, value[k]);
  }
  csv_int(c, there);
  for (int k = NAXIS; k < NCURVE; k++) {
    csv_real_or_missing(c, value[k]);
    csv_real_or_missing(c, band[k].lo);
    csv_real_or_missing(c, band[k].hi);
  }
  return csv_end(c, e);
}

static int write_variant(struct csv *c, struct arena *a, const struct sweep *s,
                         const bool *finished, const struct sweep_variant *v, bool follows,
                         struct err *e) {
  struct curve *seed = ARENA_NEW(a, struct curve, s->ncell);
  double *x = ARENA_NEW(a, double, s->ncell);
  int nseed = 0, longest = 0;
  for (int i = 0; i < s->ncell; i++) {
    if (finished[i] && s->cell[i].variant == v) {
      if (read_curve(&seed[nseed], a, s->cell[i].dir, e) != 0) {
        return e->code;
      }
      longest = seed[nseed].nrow > longest ? seed[nseed].nrow : longest;
      nseed++;
    }
  }
  int nbin = longest < SUMMARY_BINS ? longest : SUMMARY_BINS;
  if (nbin > 0 && follows && csv_break(c, e) != 0) {
    return e->code;
  }
  for (int b = 0; b < nbin && e->code == 0; b++) {
    int first = (int)((long long)b * longest / nbin);
    int last = (int)((long long)(b + 1) * longest / nbin);
    write_bin(c, v->name, seed, nseed, x, first, last, e);
  }
  return e->code;
}

int summary_write_curves(struct arena *a, const struct sweep *s, const bool *finished,
                         const char *path, struct err *e) {
  char fresh[4200];
  struct csv c;
  if (csv_open(&c, fresh_file(fresh, sizeof fresh, path), curves_header, e)) {
    return e->code;
  }
  bool follows = false;
  for (int v = 0; v < s->nvariant && e->code == 0; v++) {
    struct arena_mark mark = arena_mark(a);
    bool any = false;
    for (int i = 0; i < s->ncell; i++) {
      any |= finished[i] && s->cell[i].variant == &s->variant[v];
    }
    if (any) {
      write_variant(&c, a, s, finished, &s->variant[v], follows, e);
      follows = true;
    }
    arena_reset(a, mark);
  }
  csv_close(&c);
  return replace(fresh, path, e);
}
