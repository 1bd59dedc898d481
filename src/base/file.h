// Checked file access. Reading understands .gz by content. Writing is atomic: a temporary file in
// the same folder, fsync, rename; a reader sees the old file or the whole new one.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

// Whole file into the arena (decompressed if gzip), with a NUL after its size bytes. Files above
// max_bytes are refused. A missing file is EXIT_USAGE, another failure EXIT_IO.
int file_read(struct arena *a, const char *path, size_t max_bytes, char **data, size_t *size,
              struct err *e);
int file_write_atomic(const char *path, const void *data, size_t size, struct err *e);
int file_write_gz(const char *path, const void *data, size_t size,
                  struct err *e);              // no time stamp inside
int dir_make(const char *path, struct err *e); // with parents; existing is fine
bool file_exists(const char *path);
int file_sha256(const char *path, char hex[65], struct err *e); // of the bytes on disk
void sha256_hex(const void *data, size_t size, char hex[65]);
// Folder that holds robots/, experiments/, ... : $DSIM_HOME, else the executable's own folder (or a
// parent of it that has experiments/). Never ends in '/'.
const char *dsim_home(void);
// Looks a relative path up: as given from the current folder, then under dsim_home(). Returns the
// path to open in the arena, or NULL.
const char *file_find(struct arena *a, const char *path);
