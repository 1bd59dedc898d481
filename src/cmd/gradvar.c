// dsim gradvar: how much do environments disagree about the policy's gradient, with and without
// bundles, along training; and clouds of state gradients at contacts (arXiv 2609.30951, Fig. 3, 4).
#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "learn/gemm.h"
#include "learn/gradcloud.h"
#include "learn/gradstat.h"
#include "learn/state.h"
#include "out/csv.h"
#include "out/json.h"
#include "out/rundir.h"
#include "out/table.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { RESAMPLES = 100, MAX_VARIANTS = 10, MAX_LENGTHS = 16 };

static const char gradvar_header[] =
    "iteration,env_steps,variant,variance,lo,hi,direction_spread,dlo,dhi,norm_median,mean_norm,"
    "variance_median,ratio,ratio_lo,ratio_hi,bundle_fraction,windows,envs,seed,samples_per_step";
static const char cloud_header[] =
    "index,variant,x,y,norm,frame,branch,x_name,y_name,length,iteration,seed";
static const char spread_header[] =
    "length,variant,norm_median,spread,direction_spread,points,iteration,seed";

struct gradvar_options {
  struct run_options run;
  struct option_list variant;
  int windows, warmup, points, steps;
  const char *checkpoints, *components;
  int x, y; // numbers of a state's tangent, from components
};

// One setting under which the same window is rolled again.
struct variant {
  const char *name;
  struct spec spec;
  struct world world;
  struct shac shac;
  double *gram; // (windows, E, E)
  double open;  // environments' control steps with an open bundle
  double extra; // substeps of branches for each of an environment
};

struct row { // of one variant at one checkpoint
  const char *variant;
  int seed;
  int64_t iteration, env_steps;
  struct gradstat stat;
  struct gradstat_band ratio; // variance over that of the first variant, resample by resample
  double bundle_fraction;
  double samples; // for each control step of an environment: 1, and what its branches took
};

struct gradvar {
  const struct gradvar_options *o;
  const char *out; // folder
  struct csv rows, cloud, spread;
  struct row *row; // of all seeds and checkpoints
  int nrow, capacity;
};

// ---- variants

// "NAME:PATH=VALUE,PATH=VALUE" over the settings of the bundle variant
static int parse_variant(struct variant *v, struct arena *a, const char *text, struct err *e) {
  const char *colon = strchr(text, ':');
  if (!colon || colon == text) {
    return err_set(e, EXIT_USAGE, "--variant: expected NAME:PATH=VALUE,..., found '%.80s'", text);
  }
  char *name = arena_strdup(a, text);
  name[colon - text] = 0;
  v->name = name;
  for (char *field = strtok(name + (colon - text) + 1, ","); field; field = strtok(NULL, ",")) {
    if (spec_set(&v->spec, a, field, e)) {
      return err_prefix(e, "--variant %s: ", v->name);
    }
  }
  return 0;
}

static int check_algorithm(const struct spec *s, struct err *e) {
  if (s->algorithm == ALGORITHM_SHAC) {
    return 0;
  }
  return err_set(e, EXIT_USAGE,
                 "gradvar: expected a run of algorithm shac, found ppo, which has no gradients "
                 "through the simulator");
}

static int open_variants(struct variant *v, int *n, struct arena *a, const struct spec *s,
                         const struct gradvar_options *o, struct err *e) {
  if (check_algorithm(s, e)) {
    return e->code;
  }
  *n = 2 + o->variant.n;
  if (*n > MAX_VARIANTS) {
    return err_set(e, EXIT_USAGE, "--variant: at most %d times", MAX_VARIANTS - 2);
  }
  for (int i = 0; i < *n; i++) {
    v[i] = (struct variant){.name = i == 0 ? "plain" : "bundle", .spec = *s};
    if (i == 0) {
      v[i].spec.bundle_size = 1;
    } else if (s->bundle_size == 1) {
      v[i].spec.bundle_size = 10; // the paper's
    }
    if ((i > 1 && parse_variant(&v[i], a, o->variant.v[i - 2], e)) || spec_check(&v[i].spec, e) ||
        world_open_beside(&v[i].world, a, &v[i].spec, i ? &v[0].world : NULL, e)) {
      return e->code;
    }
    shac_new(&v[i].shac, a, &v[i].world);
    const struct rollout *r = &v[i].shac.rollout, *first = &v[0].shac.rollout;
    if (r->E != first->E || r->N != first->N || r->S != first->S || r->nstate != first->nstate ||
        v[i].shac.nactor != v[0].shac.nactor) {
      return err_set(e, EXIT_USAGE,
                     "--variant %s: robot, observation, networks, learn.envs, learn.horizon and "
                     "learn.shard must be those of the others",
                     v[i].name);
    }
    size_t E = (size_t)r->E;
    v[i].gram = ARENA_NEW(a, double, (size_t)o->windows *E *E);
  }
  return 0;
}

// ---- variance over environments

static void copy_episodes(struct shac *to, const struct shac *from) {
  memcpy(to->rollout.state, from->rollout.state, sizeof(double) * from->rollout.nstate);
  memcpy(to->rollout.counter, from->rollout.counter, sizeof(int32_t) * from->rollout.ncounter);
}

// Windows follow one another along the plain variant; the others roll each from the same states
// with the same noise.
static void measure_windows(struct variant *v, int n, struct gradcloud *cloud,
                            const struct gradvar_options *o, struct arena *a, bool untrained) {
  struct shac *plain = &v[0].shac;
  const struct rollout *r = &plain->rollout;
  for (int i = 0; i < o->warmup; i++) {
    shac_rollout(plain);
    if (untrained) { // no statistics of returns yet; trained policies bring theirs
      return_stats_merge(&plain->returns, plain->loss, r->E);
    }
  }
  for (int k = 0; k < o->windows; k++) {
    for (int i = 1; i < n; i++) {
      copy_episodes(&v[i].shac, plain);
    }
    double scale = return_stats_scale(&plain->returns, plain->spec->return_norm, r->E, r->N);
    for (int i = n - 1; i >= 0; i--) {
      struct shac *s = &v[i].shac;
      shac_rollout(s);
      shac_gradient(s, scale);
      gradstat_gram(v[i].gram + (size_t)k * (size_t)(r->E * r->E), a, s);
      for (int j = 0; j < r->nshard && bundle_on(&s->rollout.bundle); j++) {
        const struct bundle *b = &s->rollout.bundle;
        double steps = (double)r->E * r->N * o->windows;
        v[i].open += (double)b->open_steps[j] / steps;
        v[i].extra += (double)b->branch_substeps[j] / b->substeps / steps;
      }
      if (cloud && i == 1) {
        gradcloud_collect(cloud, s, (o->points + o->windows - 1) / o->windows);
      }
    }
    log_progress("window %d of %d", k + 1, o->windows);
  }
}

static void add_row(struct gradvar *g, struct arena *a, const struct row *row) {
  if (g->nrow == g->capacity) {
    int capacity = g->capacity ? 2 * g->capacity : 64;
    struct row *grown = ARENA_NEW(a, struct row, capacity);
    if (g->nrow) {
      memcpy(grown, g->row, sizeof *grown * (size_t)g->nrow);
    }
    g->row = grown;
    g->capacity = capacity;
  }
  g->row[g->nrow++] = *row;
}

static int write_row(struct csv *c, const struct row *r, const struct gradvar_options *o, int E,
                     struct err *e) {
  const struct gradstat *s = &r->stat;
  csv_int(c, r->iteration);
  csv_int(c, r->env_steps);
  csv_text(c, r->variant);
  const double value[] = {s->variance.mean,   s->variance.lo,  s->variance.hi, s->direction.mean,
                          s->direction.lo,    s->direction.hi, s->norm_median, s->mean_norm,
                          s->variance_median, r->ratio.mean,   r->ratio.lo,    r->ratio.hi,
                          r->bundle_fraction};
  for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
    csv_real(c, value[i]);
  }
  csv_int(c, o->windows);
  csv_int(c, E);
  csv_int(c, r->seed);
  csv_real(c, r->samples);
  return csv_end(c, e);
}

// rows of all variants at one checkpoint; keep: names live there
static int write_rows(struct gradvar *g, const struct variant *v, int n, struct arena *keep,
                      struct arena *a, struct err *e) {
  struct gradstat first = {0};
  for (int i = 0; i < n && !e->code; i++) {
    const struct shac *s = &v[i].shac;
    int E = s->rollout.E;
    struct row row = {.variant = arena_strdup(keep, v[i].name),
                      .seed = s->spec->seed,
                      .iteration = s->iteration,
                      .env_steps = s->env_steps,
                      .bundle_fraction = v[i].open,
                      .samples = 1 + v[i].extra};
    gradstat_measure(&row.stat, a, v[i].gram, g->o->windows, E, RESAMPLES, (uint64_t)s->spec->seed);
    first = i == 0 ? row.stat : first;
    double ratio[RESAMPLES];
    for (int k = 0; k < RESAMPLES; k++) {
      ratio[k] = row.stat.resampled[k] / first.resampled[k];
    }
    row.ratio.mean = row.stat.variance.mean / first.variance.mean;
    gradstat_interval(&row.ratio.lo, &row.ratio.hi, ratio, RESAMPLES, 0.95);
    row.stat.resampled = NULL; // goes with its arena
    add_row(g, keep, &row);
    write_row(&g->rows, &row, g->o, E, e);
  }
  return e->code;
}

// ---- clouds

static const char *const component_names[] = {"x",  "y",  "z",  "rx", "ry", "rz",
                                              "vx", "vy", "vz", "wx", "wy", "wz"};
enum { NCOMPONENT = sizeof component_names / sizeof *component_names };

// position i of the root's six, or velocity i of its six, among 2 nv numbers
static int component_at(int i, int nv) {
  return i < 6 ? i : nv + i - 6;
}

static int parse_components(struct gradvar_options *o, struct err *e) {
  char text[64], *second;
  snprintf(text, sizeof text, "%s", o->components);
  second = strchr(text, ',');
  if (second) {
    *second++ = 0;
  }
  const char *word[2] = {text, second};
  int *to[2] = {&o->x, &o->y};
  for (int k = 0; k < 2; k++) {
    *to[k] = -1;
    for (int i = 0; word[k] && i < NCOMPONENT; i++) {
      *to[k] = strcmp(word[k], component_names[i]) == 0 ? i : *to[k];
    }
    if (*to[k] < 0) {
      return err_set(e, EXIT_USAGE,
                     "--components: expected two of x,y,z,rx,ry,rz,vx,vy,vz,wx,wy,wz with a comma "
                     "between them, found '%.60s'",
                     o->components);
    }
  }
  return 0;
}

struct points { // of one variant at one length
  double *x;    // (n, size)
  int *contact, *branch;
  int n, size;
};

static int write_cloud(struct gradvar *g, const struct gradcloud *c, const struct shac *s,
                       const struct points *p, const char *variant, int length, struct err *e) {
  int x = component_at(g->o->x, c->world->robot.nv), y = component_at(g->o->y, c->world->robot.nv);
  for (int i = 0; i < p->n && !e->code; i++) {
    const double *point = p->x + (size_t)i * (size_t)p->size;
    double norm = 0;
    for (int d = 0; d < p->size; d++) {
      norm += point[d] * point[d];
    }
    csv_int(&g->cloud, p->contact[i]);
    csv_text(&g->cloud, variant);
    csv_real(&g->cloud, point[x]);
    csv_real(&g->cloud, point[y]);
    csv_real(&g->cloud, sqrt(norm));
    csv_int(&g->cloud, c->contact[p->contact[i]].frame);
    if (p->branch[i] < 0) {
      csv_missing(&g->cloud);
    } else {
      csv_int(&g->cloud, p->branch[i]);
    }
    csv_text(&g->cloud, component_names[g->o->x]);
    csv_text(&g->cloud, component_names[g->o->y]);
    csv_int(&g->cloud, length);
    csv_int(&g->cloud, s->iteration);
    csv_int(&g->cloud, s->spec->seed);
    csv_end(&g->cloud, e);
  }
  return e->code;
}

static int write_spread(struct gradvar *g, const struct shac *s, const struct points *p,
                        const char *variant, int length, struct arena *a, struct err *e) {
  struct gradcloud_spread spread;
  gradcloud_spread(&spread, a, p->x, p->n, p->size);
  csv_int(&g->spread, length);
  csv_text(&g->spread, variant);
  csv_real(&g->spread, spread.norm_median);
  csv_real(&g->spread, spread.deviation);
  csv_real(&g->spread, spread.direction_spread);
  csv_int(&g->spread, p->n);
  csv_int(&g->spread, s->iteration);
  csv_int(&g->spread, s->spec->seed);
  return csv_end(&g->spread, e);
}

// control steps over which spread is looked at, with that of the cloud among them
static int list_lengths(int length[MAX_LENGTHS], int longest, int cloud) {
  static const int usual[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
  int n = 0;
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    int last = n > 0 ? length[n - 1] : 0;
    if (cloud > last && cloud < usual[i]) {
      length[n++] = cloud;
    }
    if (usual[i] <= longest) {
      length[n++] = usual[i];
    }
  }
  return n;
}

static int write_clouds(struct gradvar *g, const struct gradcloud *c, const struct shac *s,
                        int steps, struct arena *a, struct err *e) {
  int length[MAX_LENGTHS], nlength = list_lengths(length, c->longest, steps);
  int size = 2 * s->rollout.nv, most = c->n * c->B;
  size_t per_length = (size_t)(c->n * (1 + c->B)) * (size_t)size;
  double *grad = ARENA_NEW(a, double, (size_t)nlength *per_length);
  gradcloud_gradients(grad, a, c, s, length, nlength);
  struct points p = {.x = ARENA_NEW(a, double, (size_t)most *(size_t)size),
                     .contact = ARENA_NEW(a, int, most),
                     .branch = ARENA_NEW(a, int, most),
                     .size = size};
  for (int j = 0; j < nlength; j++) {
    for (enum gradcloud_variant k = 0; k < GRADCLOUD_NVARIANT && !e->code; k++) {
      p.n = gradcloud_points(p.x, p.contact, p.branch, c, grad + (size_t)j * per_length, k);
      if (p.n > 0) {
        write_spread(g, s, &p, gradcloud_variants[k], length[j], a, e);
      }
      if (length[j] == steps) {
        write_cloud(g, c, s, &p, gradcloud_variants[k], length[j], e);
      }
    }
  }
  return e->code;
}

// ---- checkpoints and runs

// path NULL: the networks as they are before training
static int measure_checkpoint(struct gradvar *g, const struct spec *spec, const char *path,
                              bool with_cloud, struct arena *keep, struct err *e) {
  struct arena arena, *a = &arena;
  arena_init(a);
  struct variant *v = ARENA_NEW(a, struct variant, MAX_VARIANTS);
  int n = 0; // open_variants may fail before it counts
  open_variants(v, &n, a, spec, g->o, e);
  for (int i = 0; i < n && path && !e->code; i++) {
    struct learner learner = learner_of_shac(&v[i].shac);
    state_load_learned(&learner, a, path, e);
  }
  if (e->code == 0) {
    int steps = g->o->steps ? g->o->steps : v[1].spec.bundle_horizon;
    struct gradcloud cloud = {0};
    if (with_cloud) {
      gradcloud_new(&cloud, a, &v[1].shac, g->o->points, 32);
    }
    measure_windows(v, n, with_cloud ? &cloud : NULL, g->o, a, path == NULL);
    if (write_rows(g, v, n, keep, a, e) == 0 && with_cloud && cloud.n > 0) {
      write_clouds(g, &cloud, &v[1].shac, steps, a, e);
    } else if (with_cloud && !e->code) {
      log_warn("no contact passed bundle.force (%g N) early enough in the clip: no clouds",
               v[1].spec.bundle_force);
    }
    log_info("seed %d, iteration %lld: variance %.4g plain, %.4g bundle (ratio %.3f)", spec->seed,
             (long long)v[0].shac.iteration, g->row[g->nrow - n].stat.variance.mean,
             g->row[g->nrow - n + 1].stat.variance.mean, g->row[g->nrow - n + 1].ratio.mean);
  }
  arena_release(a);
  return e->code;
}

// file: one checkpoint; NULL: those of the folder
static int measure_run(struct gradvar *g, const struct spec *spec, const char *dir,
                       const char *file, struct arena *keep, struct err *e) {
  const char **path = &file;
  bool all = strcmp(g->o->checkpoints, "all") == 0 && !file;
  int n = file ? 1 : state_list(&path, keep, dir);
  if (n == 0) {
    return err_set(e, EXIT_USAGE, "%s: no checkpoint here (checkpoint.every, checkpoint.keep)",
                   dir);
  }
  if (all && measure_checkpoint(g, spec, NULL, false, keep, e)) {
    return e->code;
  }
  for (int i = all ? 0 : n - 1; i < n && !e->code; i++) {
    measure_checkpoint(g, spec, path[i], i == n - 1 && g->o->points > 0, keep, e);
  }
  return e->code;
}

// trains what the spec describes by the command that does it
static int train_first(const char *name, const struct gradvar_options *o, int seed, struct err *e) {
  char seed_text[32], *argv[140];
  char train[] = "train", set[] = "--set", quiet[] = "--quiet", seeded[] = "--seed", path[1024];
  int n = 0;
  snprintf(path, sizeof path, "%s", name);
  snprintf(seed_text, sizeof seed_text, "%d", seed);
  argv[n++] = train;
  argv[n++] = path;
  for (int i = 0; i < o->run.set.n; i++) {
    argv[n++] = set;
    argv[n++] = (char *)(uintptr_t)o->run.set.v[i]; // cmd_train only reads it
  }
  if (o->run.seeds.given) {
    argv[n++] = seeded;
    argv[n++] = seed_text;
  }
  if (o->run.quiet) {
    argv[n++] = quiet;
  }
  argv[n] = NULL;
  int code = cmd_train(n, argv);
  return code ? err_set(e, code, "training came to no end, so there is nothing to measure") : 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_checkpoint(const char *path) {
  size_t n = strlen(path);
  return n > 5 && strcmp(path + n - 5, ".dsim") == 0;
}

// What name stands for: the folder of a run, made by training if need be. The spec is that of the
// run, with --set over it.
static const char *find_run(struct spec *spec, struct arena *a, const char *name, int seed,
                            const struct gradvar_options *o, struct err *e) {
  const char *dir = NULL;
  struct err not_a_spec = {0};
  if (is_folder(name) || is_checkpoint(name) ||
      run_options_spec(spec, a, name, &o->run, &not_a_spec)) {
    dir = rundir_locate(a, name, e);
    if (!dir && not_a_spec.code) {
      *e = not_a_spec;
    }
  } else {
    spec->seed = o->run.seeds.given ? seed : spec->seed;
    dir = rundir_path(a, spec, NULL);
    if (check_algorithm(spec, e)) { // before hours of training
      return NULL;
    }
    if (!file_exists(rundir_file(a, dir, "spec.yaml")) && train_first(name, o, spec->seed, e)) {
      return NULL;
    }
  }
  if (e->code || run_options_spec(spec, a, rundir_file(a, dir, "spec.yaml"), &o->run, e)) {
    return NULL;
  }
  spec->seed = o->run.seeds.given ? seed : spec->seed;
  return dir;
}

static int open_csv(struct csv *c, struct arena *a, const char *dir, const char *name,
                    const char *header, struct err *e) {
  const char *path = rundir_file(a, dir, name);
  remove(path); // measured anew
  return csv_open(c, path, header, e);
}

static int open_files(struct gradvar *g, struct arena *a, const char *dir, struct err *e) {
  g->out = g->o->run.out ? g->o->run.out : dir;
  bool clouds = g->o->points > 0;
  if (open_csv(&g->rows, a, g->out, "gradvar.csv", gradvar_header, e) ||
      (clouds && open_csv(&g->cloud, a, g->out, "cloud.csv", cloud_header, e)) ||
      (clouds && open_csv(&g->spread, a, g->out, "spread.csv", spread_header, e))) {
    return e->code;
  }
  return 0;
}

// ---- reports

// A variant's mean over rows; the bands are means of the rows' bands.
static struct row mean_row(const struct gradvar *g, const char *variant) {
  struct row mean = {.variant = variant};
  int n = 0;
  for (int i = 0; i < g->nrow; i++) {
    const struct row *r = &g->row[i];
    if (strcmp(r->variant, variant) != 0) {
      continue;
    }
    n++;
    const struct gradstat_band *from[] = {&r->stat.variance, &r->stat.direction, &r->ratio};
    struct gradstat_band *to[] = {&mean.stat.variance, &mean.stat.direction, &mean.ratio};
    for (int k = 0; k < 3; k++) { // running means
      to[k]->mean += (from[k]->mean - to[k]->mean) / n;
      to[k]->lo += (from[k]->lo - to[k]->lo) / n;
      to[k]->hi += (from[k]->hi - to[k]->hi) / n;
    }
    mean.stat.norm_median += (r->stat.norm_median - mean.stat.norm_median) / n;
    mean.stat.mean_norm += (r->stat.mean_norm - mean.stat.mean_norm) / n;
    mean.bundle_fraction += (r->bundle_fraction - mean.bundle_fraction) / n;
    mean.samples += (r->samples - mean.samples) / n;
  }
  return mean;
}

// rows come variant by variant: the first checkpoint names them all
static int count_variants(const struct gradvar *g) {
  int n = 1;
  while (n < g->nrow && strcmp(g->row[n].variant, g->row[0].variant) != 0) {
    n++;
  }
  return n;
}

static void row_to_json(cJSON *list, const struct row *r, bool place) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddItemToArray(list, o);
  cJSON_AddStringToObject(o, place ? "variant" : "name", r->variant);
  if (place) {
    cJSON_AddNumberToObject(o, "seed", r->seed);
    cJSON_AddNumberToObject(o, "iteration", (double)r->iteration);
    cJSON_AddNumberToObject(o, "env_steps", (double)r->env_steps);
  }
  json_add_real(o, "variance", r->stat.variance.mean);
  json_add_real(o, "lo", r->stat.variance.lo);
  json_add_real(o, "hi", r->stat.variance.hi);
  json_add_real(o, "direction_spread", r->stat.direction.mean);
  json_add_real(o, "dlo", r->stat.direction.lo);
  json_add_real(o, "dhi", r->stat.direction.hi);
  json_add_real(o, "norm_median", r->stat.norm_median);
  json_add_real(o, "mean_norm", r->stat.mean_norm);
  json_add_real(o, "ratio", r->ratio.mean);
  json_add_real(o, "ratio_lo", r->ratio.lo);
  json_add_real(o, "ratio_hi", r->ratio.hi);
  json_add_real(o, "bundle_fraction", r->bundle_fraction);
  json_add_real(o, "samples_per_step", r->samples);
}

static int print_json(const struct gradvar *g, struct err *e) {
  cJSON *root = cJSON_CreateObject();
  cJSON *variants = cJSON_AddArrayToObject(root, "variants");
  for (int i = 0; i < count_variants(g); i++) {
    struct row mean = mean_row(g, g->row[i].variant);
    row_to_json(variants, &mean, false);
  }
  cJSON *rows = cJSON_AddArrayToObject(root, "rows");
  for (int i = 0; i < g->nrow; i++) {
    row_to_json(rows, &g->row[i], true);
  }
  int code = json_print(root, e);
  cJSON_Delete(root);
  return code;
}

static void print_table(const struct gradvar *g, struct arena *a) {
  struct table t;
  table_init(&t, a);
  table_column(&t, "seed", "", 0);
  table_column(&t, "iteration", "", 0);
  table_column(&t, "variant", "", 0);
  table_column(&t, "variance", "", 4);
  table_column(&t, "95 %", "low", 4);
  table_column(&t, "95 %", "high", 4);
  table_column(&t, "direction", "spread", 3);
  table_column(&t, "|g|", "median", 3);
  table_column(&t, "variance", "/ plain", 3);
  table_column(&t, "95 %", "low", 3);
  table_column(&t, "95 %", "high", 3);
  table_column(&t, "bundled", "%", 1);
  table_column(&t, "samples", "/ step", 2);
  for (int i = 0; i < g->nrow; i++) {
    const struct row *r = &g->row[i];
    table_int(&t, r->seed);
    table_int(&t, r->iteration);
    table_text(&t, r->variant);
    table_real(&t, r->stat.variance.mean);
    table_real(&t, r->stat.variance.lo);
    table_real(&t, r->stat.variance.hi);
    table_real(&t, r->stat.direction.mean);
    table_real(&t, r->stat.norm_median);
    table_real(&t, r->ratio.mean);
    table_real(&t, r->ratio.lo);
    table_real(&t, r->ratio.hi);
    table_real(&t, 100 * r->bundle_fraction);
    table_real(&t, r->samples);
  }
  table_print(&t, stdout);
}

static int gradvar(const char *name, struct gradvar_options *o, struct arena *a, struct err *e) {
  struct gradvar g = {.o = o, .rows.fd = -1, .cloud.fd = -1, .spread.fd = -1};
  if (strcmp(o->checkpoints, "all") != 0 && strcmp(o->checkpoints, "last") != 0) {
    return err_set(e, EXIT_USAGE, "--checkpoints: expected all or last, found '%.80s'",
                   o->checkpoints);
  }
  if (parse_components(o, e)) {
    return e->code;
  }
  for (int seed = o->run.seeds.first; seed <= o->run.seeds.last && !e->code; seed++) {
    struct spec spec;
    const char *dir = find_run(&spec, a, name, seed, o, e);
    if (!dir || (g.rows.fd < 0 && open_files(&g, a, dir, e))) {
      break;
    }
    measure_run(&g, &spec, dir, is_checkpoint(name) ? name : NULL, a, e);
  }
  csv_close(&g.rows);
  csv_close(&g.cloud);
  csv_close(&g.spread);
  if (e->code) {
    return e->code;
  }
  log_progress_end();
  log_info("wrote %s/gradvar.csv%s", g.out, o->points > 0 ? ", cloud.csv and spread.csv" : "");
  if (o->run.json) {
    return print_json(&g, e);
  }
  print_table(&g, a);
  return 0;
}

int cmd_gradvar(int argc, char **argv) {
  struct gradvar_options o = {
      .windows = 10, .warmup = 2, .points = 64, .checkpoints = "all", .components = "z,vz"};
  const struct option rows[] = {
      OPTION_SET(o.run),
      OPTION_SEEDS(o.run),
      {"windows", OPTION_INT, &o.windows, "N", "rollouts per checkpoint (default 10)", 1, 100000},
      {"warmup", OPTION_INT, &o.warmup, "N", "rollouts before the first (default 2)", 1, 100000},
      {"checkpoints", OPTION_TEXT, &o.checkpoints, "all|last",
       "all: the networks before training too (default)", 0, 0},
      {"variant", OPTION_LIST, &o.variant, "NAME:PATH=VALUE,...",
       "another setting to compare, over that of the bundle variant (repeatable)", 0, 0},
      {"points", OPTION_INT, &o.points, "N", "contacts in the clouds; 0: no clouds (default 64)", 0,
       100000},
      {"cloud-steps", OPTION_INT, &o.steps, "N",
       "control steps from contact to the vertical speed (default: bundle.horizon)", 1, 32},
      {"components", OPTION_TEXT, &o.components, "X,Y",
       "the root's coordinates shown in cloud.csv (default z,vz)", 0, 0},
      {"out", OPTION_TEXT, &o.run.out, "DIR", "folder for the CSV files (default: the run's)", 0,
       0},
      OPTION_THREADS(o.run),
      OPTION_QUIET(o.run),
      OPTION_JSON(o.run),
  };
  struct command_line line = {
      .usage = "gradvar SPEC|RUN",
      .about =
          "Variance over environments of the policy's gradient, plain and with bundles, from the\n"
          "same states with the same noise, at the checkpoints of a run. A spec that has no run\n"
          "yet is trained first (keep many checkpoints: checkpoint.keep). Writes gradvar.csv, and\n"
          "for the last checkpoint cloud.csv and spread.csv: gradients of the root's vertical\n"
          "speed after a contact with respect to the state at the contact, of perturbed branches\n"
          "and of the bundle that averages them. --set learn.envs=N measures with other numbers\n"
          "of environments than training had. --seeds: of the runs of a SPEC, or of the noise for\n"
          "a RUN.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .min_args = 1,
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  log_quiet(o.run.quiet);
  gemm_start();
  struct arena a;
  arena_init(&a);
  gradvar(line.args[0], &o, &a, &e);
  arena_release(&a);
  return err_report(&e);
}
