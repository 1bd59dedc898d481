#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
  bool quiet;
  char line[512];      // the newest progress line
  bool on_screen;      // the terminal's cursor stands behind it
  bool unprinted;      // elsewhere: not yet written out
  double next_print_s; // elsewhere: when the next plain line is due
} log_state;

enum { PLAIN_LINE_SECONDS = 5 };

double wall_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void log_quiet(bool quiet) {
  log_state.quiet = quiet;
}

// other output must not continue a progress line
static void leave_progress_line(void) {
  if (log_state.on_screen) {
    fputc('\n', stderr);
    log_state.on_screen = false;
  }
}

void log_info(const char *fmt, ...) {
  if (log_state.quiet) {
    return;
  }
  leave_progress_line();
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

void log_warn(const char *fmt, ...) {
  leave_progress_line();
  fputs("dsim: warning: ", stderr);
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

void log_progress(const char *fmt, ...) {
  if (log_state.quiet) {
    return;
  }
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(log_state.line, sizeof log_state.line, fmt, ap);
  va_end(ap);
  if (isatty(STDERR_FILENO)) {
    fprintf(stderr, "\r%s\033[K", log_state.line);
    fflush(stderr);
    log_state.on_screen = true;
    return;
  }
  // a file gets no carriage returns, and not every line
  log_state.unprinted = true;
  double now = wall_seconds();
  if (now >= log_state.next_print_s) {
    fprintf(stderr, "%s\n", log_state.line);
    log_state.unprinted = false;
    log_state.next_print_s = now + PLAIN_LINE_SECONDS;
  }
}

void log_progress_end(void) {
  leave_progress_line();
  if (log_state.unprinted) {
    fprintf(stderr, "%s\n", log_state.line);
    log_state.unprinted = false;
  }
  log_state.next_print_s = 0;
}
