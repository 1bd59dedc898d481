// dsim ablate: every cell of a sweep. Each step of a cell (train, transfer, ...) is a process of
// this same program, so that a cell that dies takes no other with it; what is done is left alone,
// what was interrupted goes on, and a run of another spec is not touched.
#include "base/file.h"
#include "base/log.h"
#include "cmd/cell.h"
#include "cmd/cmd.h"
#include "cmd/experiment.h"
#include "cmd/summary.h"
#include "out/json.h"
#include "out/rundir.h"
#include "out/table.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 256 };

struct ablate_options {
  struct sweep_options sweep;
  int jobs, threads;
  const char *shard;
  bool dry_run, overwrite, quiet, json, metrics;
};

struct ablate {
  struct arena *arena;
  const struct ablate_options *o;
  struct sweep sweep;
  struct cell_progress *progress; // (ncell)
  bool *mine;                     // (ncell) in this shard
  int threads;                    // of one job
  char program[PATH_MAX];
  // while it runs
  int nmine, nended, nfailed;
  double start;
};

// ---- signals: what a terminal or a batch system sends goes on to the running steps, once each.
// They are process groups of their own, or Ctrl-C would reach them twice, and the second signal
// ends a training without a checkpoint.

static volatile sig_atomic_t stop_signal;
static volatile pid_t children[MAX_JOBS];

static void on_signal(int number) {
  int kept = errno;
  stop_signal = number;
  for (int i = 0; i < MAX_JOBS; i++) {
    if (children[i] > 0) {
      kill(-children[i], number);
    }
  }
  errno = kept;
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

// ---- one step of one cell as a process

struct job {
  int cell; // -1: free
  int step;
  int log; // the cell's log, locked while the cell runs
  const char *log_path;
  double step_start, cell_start;
};

// Log of a cell, outside its folder: training wants that empty. Whoever holds its lock runs the
// cell; the processes of its steps inherit it. -1 without an error: another process has it.
static int open_log(const char **path, struct arena *a, const struct sweep *s,
                    const struct sweep_cell *c, struct err *e) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "log/%s_seed%d.txt", c->variant->name, c->seed);
  *path = rundir_file(a, s->out, name);
  if (dir_make(rundir_file(a, s->out, "log"), e) != 0) {
    return -1;
  }
  int fd = open(*path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    err_set(e, EXIT_IO, "cannot write '%s': %s", *path, strerror(errno));
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// In the child: becomes the step.
static _Noreturn void become(const char *program, const char *const *words, int log, pid_t parent) {
  setpgid(0, 0);
  // if this program is killed outright, training still saves a checkpoint
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) {
    _exit(EXIT_INTERRUPTED);
  }
  int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execv(program, (char *const *)words);
  dprintf(STDERR_FILENO, "dsim: cannot run '%s': %s\n", program, strerror(errno));
  _exit(127);
}

static int start_step(struct ablate *x, struct job *job, int slot, struct err *e) {
  const struct sweep_cell *c = &x->sweep.cell[job->cell];
  const char *words[CELL_MAX_WORDS];
  struct arena_mark mark = arena_mark(x->arena);
  if (cell_command(words, x->arena, &x->sweep, c, &x->progress[job->cell], job->step, x->threads,
                   e) != 0) {
    return e->code;
  }
  dprintf(job->log, "$ %s\n", cell_command_text(x->arena, words));
  log_info("%s seed %d: %s", c->variant->name, c->seed, x->sweep.step[job->step]);
  fflush(NULL); // or the child's copy of a buffer might be written twice

  // no signal between the child's birth and its place in the table, or it would be missed
  sigset_t both, before;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  sigprocmask(SIG_BLOCK, &both, &before);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    become(x->program, words, job->log, parent);
  }
  if (child > 0) {
    setpgid(child, child); // both do it: whoever comes first
    children[slot] = child;
  }
  int number = errno;
  sigprocmask(SIG_SETMASK, &before, NULL);
  arena_reset(x->arena, mark);
  job->step_start = wall_seconds();
  return child > 0 ? 0 : err_set(e, EXIT_IO, "cannot start a process: %s", strerror(number));
}

// Last line of a cell's log: what its step said before it failed.
static const char *last_line(struct arena *a, const char *path) {
  struct err e = {0};
  char *text;
  size_t size;
  if (file_read(a, path, (size_t)1 << 28, &text, &size, &e) != 0) {
    return "";
  }
  while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) {
    text[--size] = '\0';
  }
  const char *line = strrchr(text, '\n');
  return line != NULL ? line + 1 : text;
}

static void report_failure(struct ablate *x, const struct job *job, int status) {
  struct arena_mark mark = arena_mark(x->arena);
  const struct sweep_cell *c = &x->sweep.cell[job->cell];
  char how[64];
  if (WIFSIGNALED(status)) {
    snprintf(how, sizeof how, "was ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(how, sizeof how, "ended with code %d", WEXITSTATUS(status));
  }
  log_warn("%s seed %d: %s %s: %.300s (all of it: %s)", c->variant->name, c->seed,
           x->sweep.step[job->step], how, last_line(x->arena, job->log_path), job->log_path);
  arena_reset(x->arena, mark);
}

static void end_cell(struct ablate *x, struct job *job, enum cell_state state) {
  const struct sweep_cell *c = &x->sweep.cell[job->cell];
  x->progress[job->cell].state = state;
  close(job->log);
  job->cell = -1;
  if (state == CELL_FINISHED || state == CELL_FAILED) {
    x->nended++;
    x->nfailed += state == CELL_FAILED;
    double now = wall_seconds();
    double left = (now - x->start) / x->nended * (x->nmine - x->nended);
    log_info("[%d/%d] %s seed %d: %s after %.0f s; about %ld:%02ld h left", x->nended, x->nmine,
             c->variant->name, c->seed, cell_state_name(state), now - job->cell_start,
             lround(left) / 3600, lround(left) / 60 % 60);
  }
}

// A step has ended: the cell's next one, or the end of the cell.
static int end_step(struct ablate *x, struct job *job, int slot, int status, struct err *e) {
  const struct sweep_cell *c = &x->sweep.cell[job->cell];
  children[slot] = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    if (cell_mark(x->arena, c, x->sweep.step[job->step], wall_seconds() - job->step_start, e)) {
      return e->code;
    }
    job->step++;
    if (job->step == x->sweep.nstep) {
      end_cell(x, job, CELL_FINISHED);
    } else if (stop_signal) {
      end_cell(x, job, CELL_STARTED);
    } else {
      return start_step(x, job, slot, e);
    }
  } else if (stop_signal) {
    end_cell(x, job, CELL_STARTED); // it saved and left, as it was told to
  } else {
    report_failure(x, job, status);
    end_cell(x, job, CELL_FAILED);
  }
  return 0;
}

// ---- all cells

// Puts the next cell that needs it into a free slot. Returns false when there is none.
static bool start_cell(struct ablate *x, struct job *job, int slot, int *next, struct err *e) {
  while (*next < x->sweep.ncell && !stop_signal && e->code == 0) {
    int i = (*next)++;
    const struct sweep_cell *c = &x->sweep.cell[i];
    struct cell_progress *p = &x->progress[i];
    if (!x->mine[i] || p->state == CELL_FINISHED) {
      continue;
    }
    job->log = open_log(&job->log_path, x->arena, &x->sweep, c, e);
    if (job->log < 0) {
      if (e->code == 0) {
        p->state = CELL_BUSY;
        x->nmine--;
        log_warn("%s seed %d: another process runs it; left alone", c->variant->name, c->seed);
      }
      continue;
    }
    // another process may have done it since the start
    enum cell_state before = p->state;
    if (before != CELL_CHANGED && cell_inspect(p, x->arena, &x->sweep, c, e) != 0) {
      close(job->log);
      continue;
    }
    if (before == CELL_CHANGED) {
      p->next = 0;
      p->overwrite = true; // only with --overwrite do we come here
    }
    job->cell = i;
    job->step = p->next;
    job->cell_start = wall_seconds();
    if (p->state == CELL_FINISHED) {
      end_cell(x, job, CELL_FINISHED);
      continue;
    }
    if (start_step(x, job, slot, e) != 0) {
      close(job->log);
      job->cell = -1;
      return false;
    }
    return true;
  }
  return false;
}

static int run_cells(struct ablate *x, struct err *e) {
  struct job job[MAX_JOBS];
  int running = 0, next = 0;
  x->start = wall_seconds();
  for (int j = 0; j < x->o->jobs; j++) {
    job[j].cell = -1;
    running += start_cell(x, &job[j], j, &next, e);
  }
  while (running > 0) {
    int status;
    pid_t child = waitpid(-1, &status, 0);
    if (child < 0) {
      if (errno == EINTR) {
        continue;
      }
      return err_set(e, EXIT_IO, "cannot wait for processes: %s", strerror(errno));
    }
    for (int j = 0; j < x->o->jobs; j++) {
      if (children[j] != child) {
        continue;
      }
      // after an error of this process the others are let finish, and no more is started
      struct err own = {0};
      end_step(x, &job[j], j, status, &own);
      if (own.code != 0) {
        err_set(e, own.code, "%s", own.text);
        if (job[j].cell >= 0) {
          end_cell(x, &job[j], CELL_STARTED);
        }
      }
      running -= job[j].cell < 0 && !start_cell(x, &job[j], j, &next, e);
    }
  }
  return e->code;
}

// "2/3": cells 1, 4, 7, ... from 0 of this shard's turn
static int choose_shard(struct ablate *x, struct err *e) {
  int i = 1, n = 1;
  char behind;
  const char *text = x->o->shard;
  if (text != NULL && (sscanf(text, "%d/%d%c", &i, &n, &behind) != 2 || i < 1 || n < 1 || i > n)) {
    return err_set(e, EXIT_USAGE,
                   "--shard: expected I/N with 1 <= I <= N, as in 1/4, found '%.40s'", text);
  }
  for (int k = 0; k < x->sweep.ncell; k++) {
    x->mine[k] = k % n == i - 1;
  }
  return 0;
}

// Where every cell stands. A cell that holds a run of another spec stops all of it, unless it may
// be overwritten.
static int inspect_cells(struct ablate *x, struct err *e) {
  int changed = 0;
  for (int i = 0; i < x->sweep.ncell; i++) {
    const struct sweep_cell *c = &x->sweep.cell[i];
    if (cell_inspect(&x->progress[i], x->arena, &x->sweep, c, e) != 0) {
      return e->code;
    }
    x->nmine += x->mine[i] && x->progress[i].state != CELL_FINISHED;
    changed += x->mine[i] && x->progress[i].state == CELL_CHANGED;
  }
  for (int i = 0; i < x->sweep.ncell && changed > 0 && !x->o->overwrite && !x->o->dry_run; i++) {
    if (x->mine[i] && x->progress[i].state == CELL_CHANGED) {
      return err_set(e, EXIT_USAGE,
                     "%d cell%s of %s hold%s a run of another spec; --overwrite runs %s again, "
                     "--out DIR writes elsewhere. '%.200s' (run -> now):\n%s",
                     changed, changed > 1 ? "s" : "", x->sweep.name, changed > 1 ? "" : "s",
                     changed > 1 ? "them" : "it", x->sweep.cell[i].dir, x->progress[i].differs);
    }
  }
  return 0;
}

// ---- reports

static bool is_finished(const struct ablate *x, int cell) {
  return x->progress[cell].state == CELL_FINISHED;
}

static int print_plan(struct ablate *x, struct err *e) {
  for (int i = 0; i < x->sweep.ncell && e->code == 0; i++) {
    const struct sweep_cell *c = &x->sweep.cell[i];
    struct cell_progress p = x->progress[i];
    if (!x->mine[i]) {
      continue;
    }
    printf("# %s seed %d: %s\n", c->variant->name, c->seed, cell_state_name(p.state));
    if (p.state == CELL_CHANGED) {
      for (const char *line = p.differs; *line != '\0';) {
        int n = (int)strcspn(line, "\n");
        printf("#   %.*s\n", n, line);
        line += n + (line[n] == '\n');
      }
      p.overwrite = true;
    }
    for (int k = p.next; k < x->sweep.nstep; k++) {
      const char *words[CELL_MAX_WORDS];
      if (cell_command(words, x->arena, &x->sweep, c, &p, k, x->threads, e) != 0) {
        return e->code;
      }
      printf("%s%s\n", p.state == CELL_CHANGED && !x->o->overwrite ? "# " : "",
             cell_command_text(x->arena, words));
    }
  }
  return e->code;
}

// a line per variant, a column per metric
static void print_table(struct ablate *x, const struct summary_row *row, int nrow) {
  const struct sweep *s = &x->sweep;
  struct table t;
  table_init(&t, x->arena);
  table_column(&t, "variant", "", 0);
  table_column(&t, "seeds", "", 0);
  int shown = s->nmetric < TABLE_MAX_COLUMNS - 2 ? s->nmetric : TABLE_MAX_COLUMNS - 2;
  for (int m = 0; m < shown; m++) {
    table_column(&t, s->metric[m], "", summary_decimals(s->metric[m]));
  }
  for (int v = 0; v < s->nvariant; v++) {
    int seeds = 0;
    for (int i = 0; i < s->ncell; i++) {
      seeds += s->cell[i].variant == &s->variant[v] && is_finished(x, i);
    }
    if (seeds == 0) {
      continue;
    }
    table_text(&t, s->variant[v].name);
    table_int(&t, seeds);
    for (int m = 0; m < shown; m++) {
      for (int i = 0; i < nrow; i++) {
        if (row[i].variant == s->variant[v].name && row[i].metric == s->metric[m]) {
          table_mean_std(&t, row[i].stats.mean, row[i].stats.std);
        }
      }
    }
  }
  table_print(&t, stdout);
}

static int print_json(struct ablate *x, const struct summary_row *row, int nrow, struct err *e) {
  const struct sweep *s = &x->sweep;
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "name", s->name);
  cJSON_AddStringToObject(root, "out", s->out);
  cJSON *cells = cJSON_AddArrayToObject(root, "cells");
  int finished = 0;
  for (int i = 0; i < s->ncell; i++) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "variant", s->cell[i].variant->name);
    cJSON_AddNumberToObject(o, "seed", s->cell[i].seed);
    cJSON_AddStringToObject(o, "state", cell_state_name(x->progress[i].state));
    cJSON_AddStringToObject(o, "dir", s->cell[i].dir);
    cJSON_AddItemToArray(cells, o);
    finished += is_finished(x, i);
  }
  cJSON_AddNumberToObject(root, "finished", finished);
  cJSON_AddNumberToObject(root, "failed", x->nfailed);
  cJSON *rows = cJSON_AddArrayToObject(root, "summary");
  for (int i = 0; i < nrow; i++) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "variant", row[i].variant);
    cJSON_AddStringToObject(o, "metric", row[i].metric);
    cJSON_AddNumberToObject(o, "n", row[i].stats.n);
    json_add_real(o, "mean", row[i].stats.mean);
    json_add_real(o, "std", row[i].stats.std);
    json_add_real(o, "lo", row[i].stats.lo);
    json_add_real(o, "hi", row[i].stats.hi);
    cJSON_AddItemToArray(rows, o);
  }
  json_print(root, e);
  cJSON_Delete(root);
  return e->code;
}

// summary.csv and curves.csv of all that is finished, also by other shards and earlier calls
static int report(struct ablate *x, struct err *e) {
  const struct sweep *s = &x->sweep;
  bool *finished = ARENA_NEW(x->arena, bool, s->ncell);
  int count = 0;
  for (int i = 0; i < s->ncell; i++) {
    struct cell_progress now;
    if (!x->mine[i] && cell_inspect(&now, x->arena, s, &s->cell[i], e) == 0) {
      x->progress[i] = now;
    }
    finished[i] = is_finished(x, i);
    count += finished[i];
  }
  struct summary_row *row;
  int nrow;
  const char *summary = rundir_file(x->arena, s->out, "summary.csv");
  const char *curves = rundir_file(x->arena, s->out, "curves.csv");
  if (summary_make(&row, &nrow, x->arena, s, finished, e) != 0) {
    return e->code;
  }
  if (count > 0 && (summary_write(row, nrow, summary, e) != 0 ||
                    summary_write_curves(x->arena, s, finished, curves, e) != 0)) {
    return e->code;
  }
  if (x->o->json) {
    return print_json(x, row, nrow, e);
  }
  if (count > 0) {
    print_table(x, row, nrow);
    log_info("%d of %d cells finished; wrote %s and curves.csv", count, s->ncell, summary);
  }
  return e->code;
}

static int ablate(struct ablate *x, const char *name, struct err *e) {
  struct sweep *s = &x->sweep;
  if (sweep_read(s, x->arena, name, &x->o->sweep, e) != 0) {
    return e->code;
  }
  x->progress = ARENA_NEW(x->arena, struct cell_progress, s->ncell);
  x->mine = ARENA_NEW(x->arena, bool, s->ncell);
  // jobs share the processors; a result does not depend on how
  long processors = x->o->threads > 0 ? x->o->threads : sysconf(_SC_NPROCESSORS_ONLN);
  x->threads = processors / x->o->jobs > 1 ? (int)(processors / x->o->jobs) : 1;
  if (choose_shard(x, e) != 0 || inspect_cells(x, e) != 0) {
    return e->code;
  }
  if (x->o->dry_run) {
    return print_plan(x, e);
  }
  ssize_t n = readlink("/proc/self/exe", x->program, sizeof x->program - 1);
  if (n <= 0) {
    return err_set(e, EXIT_IO, "cannot find this program's own file: %s", strerror(errno));
  }
  log_info("%s: %d cells, %d to run here, %d at a time with %d thread%s each", s->name, s->ncell,
           x->nmine, x->o->jobs, x->threads, x->threads > 1 ? "s" : "");
  catch_signals();
  run_cells(x, e);
  // what is finished is worth a summary, whatever became of the rest
  struct err later = {0};
  if (report(x, &later) != 0 && e->code == 0) {
    *e = later;
  }
  if (e->code == 0 && stop_signal) {
    log_info("stopped; the same command goes on from here");
    return EXIT_INTERRUPTED;
  }
  if (e->code == 0 && x->nfailed > 0) {
    err_set(e, EXIT_CHECK, "%d of %d cells failed; the same command tries them again", x->nfailed,
            x->nmine);
  }
  return e->code;
}

int cmd_ablate(int argc, char **argv) {
  struct ablate_options o = {.jobs = 1};
  const struct option rows[] = {
      {"jobs", OPTION_INT, &o.jobs, "N", "cells at a time, sharing the threads (default 1)", 1,
       MAX_JOBS},
      {"threads", OPTION_INT, &o.threads, "N", "threads of all jobs together (default: processors)",
       1, 256},
      {"dry-run", OPTION_FLAG, &o.dry_run, NULL, "print cells and commands, run nothing", 0, 0},
      {"shard", OPTION_TEXT, &o.shard, "I/N", "every Nth cell from the Ith, to share with others",
       0, 0},
      {"seeds", OPTION_INTERVAL, &o.sweep.seeds, "A..B", "instead of the file's", 0, 2147483647},
      OPTION_SET(o.sweep),
      {"sweep", OPTION_LIST, &o.sweep.axis, "PATH=V1,V2",
       "sweep this field, or with these values (repeatable)", 0, 0},
      {"out", OPTION_TEXT, &o.sweep.out, "DIR", "write here instead of results/ablate/NAME", 0, 0},
      {"overwrite", OPTION_FLAG, &o.overwrite, NULL, "run cells again whose spec has changed", 0,
       0},
      {"metrics", OPTION_FLAG, &o.metrics, NULL, "list what 'metrics:' can name", 0, 0},
      OPTION_QUIET(o),
      OPTION_JSON(o),
  };
  struct command_line line = {
      .usage = "ablate NAME|SPEC",
      .about =
          "Runs every cell of a sweep: each variant at each seed is a run of its own that trains,\n"
          "goes into MuJoCo and is evaluated, in results/ablate/NAME/VARIANT/seedK/. NAME stands\n"
          "for experiments/ablate/NAME.yaml; a SPEC takes its axes from --sweep. Finished cells "
          "are\n"
          "skipped, interrupted ones resumed, and a run of another spec is left alone without\n"
          "--overwrite. summary.csv has mean, deviation and a bootstrap 95 % interval over seeds,\n"
          "curves.csv the way there against iterations, samples and wall-clock time.",
      .option = rows,
      .noption = OPTION_COUNT(rows),
      .max_args = 1,
  };
  struct err e = {0};
  if (options_parse(&line, argc, argv, &e) != 0 || line.help) {
    return err_report(&e);
  }
  if (o.metrics) {
    summary_help(stdout);
    return EXIT_DONE;
  }
  if (line.nargs == 0) {
    err_set(&e, EXIT_USAGE, "an argument is missing; usage: dsim %s", line.usage);
    return err_report(&e);
  }
  log_quiet(o.quiet);
  if (o.sweep.axis.n == 0) { // the table of a small experiment?
    struct run_options small = {.set = o.sweep.set, .out = o.sweep.out, .overwrite = o.overwrite};
    const char *refused = o.dry_run             ? "--dry-run"
                          : o.json              ? "--json"
                          : o.shard             ? "--shard"
                          : o.sweep.seeds.given ? "--seeds"
                                                : NULL;
    bool handled;
    if (experiment_table(&handled, line.args[0], &small, o.threads, refused, argc, argv, &e) ||
        handled) {
      return err_report(&e);
    }
  }
  struct arena a;
  arena_init(&a);
  struct ablate x = {.arena = &a, .o = &o};
  int code = ablate(&x, line.args[0], &e);
  arena_release(&a);
  return e.code != 0 ? err_report(&e) : code;
}
