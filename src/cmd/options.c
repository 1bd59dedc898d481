#include "cmd/options.h"
#include "spec/scalar.h"
#include <stdio.h>
#include <string.h>

// Does word, up to length n, name this option? '-' and '_' are the same.
static bool same_name(const char *name, const char *word, size_t n) {
  if (strlen(name) != n) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    if (name[i] != (word[i] == '_' ? '-' : word[i])) {
      return false;
    }
  }
  return true;
}

static int refuse_unknown(const struct command_line *line, const char *word, size_t n,
                          struct err *e) {
  enum { MAX = 64 };
  const char *names[MAX];
  char given[128];
  int count = 0;
  for (; count < line->noption && count < MAX; count++) {
    names[count] = line->option[count].name;
  }
  snprintf(given, sizeof given, "%.*s", n < 100 ? (int)n : 100, word);
  const char *nearest = err_nearest(given, names, count);
  const char *command = line->usage;
  int length = (int)strcspn(command, " ");
  if (nearest != NULL) {
    return err_set(e, EXIT_USAGE, "%.*s: unknown option '--%s' (did you mean '--%s'?)", length,
                   command, given, nearest);
  }
  return err_set(e, EXIT_USAGE, "%.*s: unknown option '--%s' (see dsim help %.*s)", length, command,
                 given, length, command);
}

static bool out_of_bounds(const struct option *o, double v) {
  return (o->lo != 0 || o->hi != 0) && (v < o->lo || v > o->hi);
}

static int refuse_value(const struct option *o, const char *what, const char *value,
                        const struct scalar_note *note, struct err *e) {
  char bounds[96] = "", lo[32], hi[32];
  if (o->lo != 0 || o->hi != 0) {
    snprintf(bounds, sizeof bounds, " from %s to %s", scalar_print(o->lo, lo),
             scalar_print(o->hi, hi));
  }
  bool hint = note != NULL && note->hint[0] != '\0';
  return err_set(e, EXIT_USAGE, "--%s: expected %s%s, found '%.80s'%s%s%s", o->name, what, bounds,
                 value, hint ? " (" : "", hint ? note->hint : "", hint ? ")" : "");
}

static int list_add(const struct option *o, const char *value, struct err *e) {
  struct option_list *list = o->target;
  if (list->n == OPTION_COUNT(list->v)) {
    return err_set(e, EXIT_USAGE, "--%s: more than %d times", o->name, list->n);
  }
  list->v[list->n++] = value;
  return 0;
}

// "A..B" or "A"
static int read_interval(const struct option *o, const char *value, struct err *e) {
  static const char what[] = "a range A..B of whole numbers";
  static const struct scalar_note example = {.hint = "write 0..4 for five of them, 3 for one"};
  struct option_interval *v = o->target;
  char first[32];
  const char *dots = strstr(value, "..");
  size_t n = dots != NULL ? (size_t)(dots - value) : strlen(value);
  if (n >= sizeof first) {
    return refuse_value(o, what, value, &example, e);
  }
  snprintf(first, sizeof first, "%.*s", (int)n, value);
  struct scalar a = {.text = first}, b = {.text = dots != NULL ? dots + 2 : first};
  struct scalar_note note;
  if (!scalar_int(&a, &v->first, &note) || !scalar_int(&b, &v->last, &note) ||
      out_of_bounds(o, v->first) || out_of_bounds(o, v->last) || v->first > v->last) {
    return refuse_value(o, what, value, &example, e);
  }
  v->given = true;
  return 0;
}

static int take_value(const struct option *o, const char *value, struct err *e) {
  struct scalar s = {.text = value};
  struct scalar_note note;
  switch (o->kind) {
  case OPTION_FLAG:
    *(bool *)o->target = true;
    return 0;
  case OPTION_INT: {
    int v;
    if (!scalar_int(&s, &v, &note) || out_of_bounds(o, v)) {
      return refuse_value(o, "a whole number", value, &note, e);
    }
    *(int *)o->target = v;
    return 0;
  }
  case OPTION_REAL: {
    double v;
    if (!scalar_real(&s, &v, &note) || out_of_bounds(o, v)) {
      return refuse_value(o, "a number", value, &note, e);
    }
    *(double *)o->target = v;
    return 0;
  }
  case OPTION_TEXT:
    if (value[0] == '\0') {
      return refuse_value(o, o->arg, value, NULL, e);
    }
    *(const char **)o->target = value;
    return 0;
  case OPTION_LIST:
    return list_add(o, value, e);
  case OPTION_SPEC: {
    struct option_list *list = o->target;
    BUG_IF(list->nmade == OPTION_COUNT(list->made)); // more rows than room: a mistake in a table
    char *made = list->made[list->nmade++];
    if (snprintf(made, sizeof list->made[0], "%s=%s", o->name, value) >=
        (int)sizeof list->made[0]) {
      return refuse_value(o, o->arg, value, NULL, e);
    }
    return list_add(o, made, e);
  }
  case OPTION_INTERVAL:
    return read_interval(o, value, e);
  }
  return 0;
}

// One "--name", "--name=value" or "--name value" at argv[*i]; moves *i past what it took.
static int parse_option(const struct command_line *line, int *i, int argc, char **argv,
                        unsigned char *seen, struct err *e) {
  const char *word = argv[*i] + 2;
  size_t n = strcspn(word, "=");
  int k = 0;
  while (k < line->noption && !same_name(line->option[k].name, word, n)) {
    k++;
  }
  if (k == line->noption) {
    return refuse_unknown(line, word, n, e);
  }
  const struct option *o = &line->option[k];
  if (seen[k]++ > 0 && o->kind != OPTION_LIST) {
    return err_set(e, EXIT_USAGE, "--%s is given twice", o->name);
  }
  if (o->kind == OPTION_FLAG) {
    return word[n] == '=' ? err_set(e, EXIT_USAGE, "--%s takes no value", o->name)
                          : take_value(o, NULL, e);
  }
  if (word[n] == '=') {
    return take_value(o, word + n + 1, e);
  }
  // "--out --resume" is a forgotten value, "--threads -1" is a value out of bounds
  if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0) {
    return err_set(e, EXIT_USAGE, "--%s: a value is missing: --%s %s", o->name, o->name, o->arg);
  }
  return take_value(o, argv[++*i], e);
}

int options_parse(struct command_line *line, int argc, char **argv, struct err *e) {
  enum { MAX_OPTIONS = 64 };
  unsigned char seen[MAX_OPTIONS] = {0};
  BUG_IF(line->noption > MAX_OPTIONS || line->max_args >= OPTION_COUNT(line->args));
  line->nargs = 0;
  bool options_over = false;
  for (int i = 1; i < argc; i++) {
    const char *word = argv[i];
    if (!options_over && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
      options_help(line);
      line->help = true;
      return 0;
    }
    if (!options_over && strcmp(word, "--") == 0) {
      options_over = true;
    } else if (!options_over && strncmp(word, "--", 2) == 0) {
      if (parse_option(line, &i, argc, argv, seen, e) != 0) {
        return e->code;
      }
    } else if (!options_over && word[0] == '-' && word[1] != '\0') {
      return err_set(e, EXIT_USAGE, "unknown option '%.80s' (options have two dashes)", word);
    } else if (line->nargs == line->max_args) {
      return err_set(e, EXIT_USAGE, "unexpected argument '%.80s'; usage: dsim %s", word,
                     line->usage);
    } else {
      line->args[line->nargs++] = word;
    }
  }
  line->args[line->nargs] = NULL;
  if (line->nargs < line->min_args) {
    return err_set(e, EXIT_USAGE, "an argument is missing; usage: dsim %s", line->usage);
  }
  return 0;
}

void options_help(const struct command_line *line) {
  printf("usage: dsim %s%s\n", line->usage, line->noption > 0 ? " [options]" : "");
  if (line->about != NULL) {
    printf("\n%s\n", line->about);
  }
  if (line->noption > 0) {
    printf("\n");
  }
  for (int i = 0; i < line->noption; i++) {
    const struct option *o = &line->option[i];
    char left[64];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg != NULL ? " " : "",
             o->arg != NULL ? o->arg : "");
    printf("  %-24s %s\n", left, o->help);
  }
}

int run_options_spec(struct spec *s, struct arena *a, const char *name,
                     const struct run_options *run, struct err *e) {
  if (run->resume && run->overwrite) {
    return err_set(e, EXIT_USAGE, "--resume and --overwrite exclude each other");
  }
  if (name != NULL) {
    if (spec_read(s, a, name, e) != 0) {
      return e->code;
    }
  } else {
    spec_default(s);
  }
  for (int i = 0; i < run->set.n; i++) {
    const char *assignment = run->set.v[i];
    size_t n = strcspn(assignment, "=");
    for (int k = 0; k < i; k++) {
      if (n == strcspn(run->set.v[k], "=") && strncmp(assignment, run->set.v[k], n) == 0) {
        return err_set(e, EXIT_USAGE, "--set %.100s: '%.*s' is set twice (first '%.100s')",
                       assignment, (int)n, assignment, run->set.v[k]);
      }
    }
    if (run->seeds.given && n == 4 && strncmp(assignment, "seed", n) == 0) {
      return err_set(e, EXIT_USAGE, "--seed and --seeds exclude each other");
    }
    if (spec_set(s, a, assignment, e) != 0) {
      return e->code;
    }
  }
  return spec_check(s, e);
}
