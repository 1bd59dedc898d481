// Checkpoint files: a text header that a person can read with `head`, then named slabs of bytes.
//
//   dsim checkpoint 1
//   order little
//   robot g1                        key and value, up to the end of the line
//   slab actor 1060980 9c3b61f2     name, bytes, crc32 of them
//   end 0a1b2c3d                    crc32 of everything above this line
//   ...bytes of the slabs, in order, nothing between or behind them
//
// Reading checks all of it: a file cut short anywhere, a changed bit, another byte order or a newer
// format is refused by name. Writing is atomic (file_write_atomic).
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <stdint.h>

enum { CHECKPOINT_FORMAT = 1, CHECKPOINT_MAX_KEYS = 48, CHECKPOINT_MAX_SLABS = 64 };

struct checkpoint {
  struct arena *arena; // texts, and the slabs of a file read, live here
  const char *path;    // of a file read
  int nkey, nslab;
  struct {
    const char *name, *value;
  } key[CHECKPOINT_MAX_KEYS];
  struct {
    const char *name;
    const void *data;
    size_t size;
  } slab[CHECKPOINT_MAX_SLABS];
};

void checkpoint_init(struct checkpoint *c, struct arena *a);
// Names are single words; values are one line. Slab data is not copied: it must live until written.
void checkpoint_text(struct checkpoint *c, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void checkpoint_slab(struct checkpoint *c, const char *name, const void *data, size_t size);
int checkpoint_write(const struct checkpoint *c, const char *path, struct err *e);

// EXIT_USAGE for a file that is missing, damaged or newer; the message begins with its path.
int checkpoint_read(struct checkpoint *c, struct arena *a, const char *path, struct err *e);
const char *checkpoint_value(const struct checkpoint *c, const char *name); // NULL: no such key
int checkpoint_int(int64_t *x, const struct checkpoint *c, const char *name, struct err *e);
// Copies a slab of exactly this size; another size, or none of the name, is EXIT_USAGE.
int checkpoint_copy(void *data, size_t size, const struct checkpoint *c, const char *name,
                    struct err *e);
