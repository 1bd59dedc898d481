// What a person reads goes to stderr: progress, warnings, where files went. stdout is for tables
// and --json only.
#pragma once
#include <stdbool.h>

void log_quiet(bool quiet);                                                // --quiet
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // silent under --quiet
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2))); // "dsim: warning: ..."

// One line that overwrites itself on a terminal, and a plain line every few seconds elsewhere.
void log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_progress_end(void); // keeps the last progress line and starts a new one

double wall_seconds(void); // monotonic clock, for reports only; never decides a result
