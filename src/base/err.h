// Errors of the outside world (files, specs, command lines, numerics) travel as values: a function
// that can fail takes a `struct err *` last and returns its code, 0 when all is well. Programmer
// errors are not values: BUG_IF aborts with file and line, in every build.
#pragma once

// exit codes of the program; also the codes an err can carry
enum exit_code {
  EXIT_DONE = 0,
  EXIT_CHECK = 1,         // ran, and a check failed
  EXIT_USAGE = 2,         // command line, spec or input file
  EXIT_NUMERIC = 3,       // numerical abort
  EXIT_IO = 4,            // input or output
  EXIT_INTERRUPTED = 130, // stopped by a signal, checkpoint written
};

struct err {
  int code;        // an exit_code, 0 while nothing went wrong
  char text[1024]; // one line (or a few), without "dsim:" and without a final newline
};

// Records code and message; the first error wins, later ones are dropped. Returns the code held.
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// Puts a prefix in front of the recorded text (no-op without an error). Returns the code held.
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Prints "dsim: TEXT" on stderr if there is an error. Returns the code held.
int err_report(const struct err *e);

// The entry of names[0..n) nearest to word (edit distance, at most 3 and under half the length), or
// NULL. Used for "did you mean".
const char *err_nearest(const char *word, const char *const *names, int n);

_Noreturn void bug_abort(const char *file, int line, const char *what);
#define BUG_IF(cond)                                                                               \
  do {                                                                                             \
    if (cond) {                                                                                    \
      bug_abort(__FILE__, __LINE__, #cond);                                                        \
    }                                                                                              \
  } while (0)
