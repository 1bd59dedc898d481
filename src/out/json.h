// JSON files and output by cJSON: reading with place of error, atomic writing, one object on
// stdout. Objects are built with cJSON's own functions. Not-a-number and infinities become null.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <cjson/cJSON.h>

// Parsed tree, to be freed with cJSON_Delete; NULL on error (EXIT_USAGE with file:line:column).
cJSON *json_read(const char *path, struct err *e);
int json_write(const char *path, const cJSON *root,
               struct err *e);                    // atomic, indented, final newline
int json_print(const cJSON *root, struct err *e); // the --json output: stdout, flushed

// Members that must be there and of that kind; "a.b" walks into objects. path is for the message.
int json_get_real(double *x, const cJSON *root, const char *member, const char *path,
                  struct err *e);
int json_get_text(const char **s, const cJSON *root, const char *member, const char *path,
                  struct err *e); // lives as long as root

// Numbers rounded to 9 significant digits, so that output is stable and short.
void json_add_real(cJSON *object, const char *name, double x);
void json_add_reals(cJSON *object, const char *name, const double *x, int n);
