#include "cmd/cell.h"
#include "base/file.h"
#include "learn/state.h"
#include "out/csv.h"
#include "out/rundir.h"
#include <stdio.h>
#include <string.h>

const char *cell_state_name(enum cell_state state) {
  static const char *const names[] = {"fresh", "started", "finished", "changed", "failed", "busy"};
  return names[state];
}

static const char *marker(struct arena *a, const struct sweep_cell *c) {
  return rundir_file(a, c->dir, "cell.csv");
}

// How many of the sweep's steps, from the first, are done with this spec. A step done before one
// that is still to do counts for nothing: it used older results.
static int steps_done(int *done, struct arena *a, const struct sweep *s, const struct sweep_cell *c,
                      struct err *e) {
  struct csv_table t;
  *done = 0;
  const char *path = marker(a, c);
  if (!file_exists(path)) {
    return 0;
  }
  if (csv_read(&t, a, path, e) != 0) {
    return e->code;
  }
  int step = csv_find(&t, "step"), hash = csv_find(&t, "spec");
  if (step < 0 || hash < 0) {
    return err_set(e, EXIT_USAGE, "%s: columns 'step' and 'spec' expected", path);
  }
  // rows stand in the order of doing: the last training makes earlier rows old
  int first = 0;
  for (int i = 0; i < t.nrow; i++) {
    first = strcmp(csv_cell(&t, i, step), s->step[0]) == 0 ? i : first;
  }
  for (; *done < s->nstep; (*done)++) {
    bool found = false;
    for (int i = first; i < t.nrow; i++) {
      found |= strcmp(csv_cell(&t, i, step), s->step[*done]) == 0 &&
               strcmp(csv_cell(&t, i, hash), c->hash) == 0;
    }
    if (!found) {
      break;
    }
  }
  return 0;
}

int cell_inspect(struct cell_progress *p, struct arena *a, const struct sweep *s,
                 const struct sweep_cell *c, struct err *e) {
  *p = (struct cell_progress){0};
  const char *path = rundir_file(a, c->dir, "spec.yaml");
  if (!file_exists(path)) {
    return 0;
  }
  struct spec before;
  struct err unreadable = {0};
  if (spec_read(&before, a, path, &unreadable) != 0) {
    // of another version of dsim, or edited: either way not this spec
    p->state = CELL_CHANGED;
    snprintf(p->differs, sizeof p->differs, "%.400s\n", unreadable.text);
    return 0;
  }
  before.threads = c->spec.threads;
  if (spec_diff(&before, &c->spec, p->differs, sizeof p->differs) > 0) {
    p->state = CELL_CHANGED;
    return 0;
  }
  if (steps_done(&p->next, a, s, c, e) != 0) {
    return e->code;
  }
  p->state = p->next == s->nstep ? CELL_FINISHED : CELL_STARTED;
  if (p->next == 0) {
    const char **checkpoint;
    p->resume = state_list(&checkpoint, a, c->dir) > 0;
    p->overwrite = !p->resume; // stopped before the first checkpoint
  }
  return 0;
}

int cell_mark(struct arena *a, const struct sweep_cell *c, const char *step, double seconds,
              struct err *e) {
  struct csv csv;
  if (csv_open(&csv, marker(a, c), "step,spec,seconds", e) != 0) {
    return e->code;
  }
  csv_text(&csv, step);
  csv_text(&csv, c->hash);
  csv_real(&csv, seconds);
  csv_end(&csv, e);
  csv_close(&csv);
  return e->code;
}

// ---- command lines

struct words {
  const char **v;
  int n;
};

static void add(struct words *w, const char *word) {
  BUG_IF(w->n + 1 >= CELL_MAX_WORDS);
  w->v[w->n++] = word;
  w->v[w->n] = NULL;
}

static void add_set(struct words *w, struct arena *a, const char *path, const char *value) {
  size_t size = strlen(path) + strlen(value) + 2;
  char *text = arena_alloc(a, size);
  snprintf(text, size, "%s=%s", path, value);
  add(w, "--set");
  add(w, text);
}

int cell_command(const char *words[CELL_MAX_WORDS], struct arena *a, const struct sweep *s,
                 const struct sweep_cell *c, const struct cell_progress *p, int step, int threads,
                 struct err *e) {
  static const char *const take_threads[] = {"train", "evaluate", "gradvar"};
  struct words w = {.v = words};
  char number[32];
  // the words of the step: its command, and what the sweep file gives it
  char *text = arena_strdup(a, s->step[step]), *rest = NULL;
  const char *command = strtok_r(text, " ", &rest);
  bool train = strcmp(command, "train") == 0;
  add(&w, "dsim");
  add(&w, command);
  add(&w, train ? s->base : c->dir);
  if (train) {
    enum { MOST = sizeof((struct option_list *)0)->v / sizeof(char *) - 5 };
    const struct sweep_variant *v = c->variant;
    if (v->nset > MOST) {
      return err_set(e, EXIT_USAGE, "%s: a variant sets %d fields; %d are accepted", s->path,
                     v->nset, MOST);
    }
    for (int i = 0; i < v->nset; i++) {
      add(&w, "--set");
      add(&w, v->set[i]);
    }
    add_set(&w, a, "experiment", c->spec.experiment);
    add_set(&w, a, "variant", v->name);
    snprintf(number, sizeof number, "%d", c->seed);
    add(&w, "--seed");
    add(&w, arena_strdup(a, number));
    add(&w, "--out");
    add(&w, c->dir);
    if (p->resume || p->overwrite) {
      add(&w, p->resume ? "--resume" : "--overwrite");
    }
  }
  for (const char *word; (word = strtok_r(NULL, " ", &rest)) != NULL;) {
    if (w.n + 8 >= CELL_MAX_WORDS) {
      return err_set(e, EXIT_USAGE, "%s: step '%.60s...' has too many words", s->path,
                     s->step[step]);
    }
    bool out = strcmp(w.v[w.n - 1], "--out") == 0;
    add(&w, out ? rundir_file(a, c->dir, word) : word);
  }
  for (int i = 0; i < 3 && threads > 0; i++) {
    if (strcmp(command, take_threads[i]) == 0) {
      snprintf(number, sizeof number, "%d", threads);
      add(&w, "--threads");
      add(&w, arena_strdup(a, number));
    }
  }
  return 0;
}

const char *cell_command_text(struct arena *a, const char *const *words) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:,+@%";
  size_t size = 1;
  for (int i = 0; words[i] != NULL; i++) {
    size += 4 * strlen(words[i]) + 3; // every character a quote, at worst
  }
  char *text = arena_alloc(a, size), *to = text;
  for (int i = 0; words[i] != NULL; i++) {
    const char *word = words[i];
    bool quote = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    to += sprintf(to, "%s%s", i > 0 ? " " : "", quote ? "'" : "");
    for (; *word != '\0'; word++) {
      to += *word == '\'' ? sprintf(to, "'\\''") : sprintf(to, "%c", *word);
    }
    to += sprintf(to, "%s", quote ? "'" : "");
  }
  return text;
}
