#include "out/checkpoint.h"
#include "base/file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char MAGIC[] = "dsim checkpoint ";
static const size_t MAX_BYTES = (size_t)8 << 30;
enum { MAX_HEADER = 1 << 16 };

// byte order of numbers in slabs
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const char ORDER[] = "little";
#else
static const char ORDER[] = "big";
#endif

static uint32_t crc_of(const void *data, size_t size) {
  return (uint32_t)crc32_z(0, data, size);
}

void checkpoint_init(struct checkpoint *c, struct arena *a) {
  *c = (struct checkpoint){.arena = a};
}

void checkpoint_text(struct checkpoint *c, const char *name, const char *fmt, ...) {
  BUG_IF(c->nkey == CHECKPOINT_MAX_KEYS);
  char value[4096];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(value, sizeof value, fmt, args);
  va_end(args);
  BUG_IF(n < 0 || n >= (int)sizeof value || strchr(value, '\n') || strchr(name, ' '));
  c->key[c->nkey].name = arena_strdup(c->arena, name);
  c->key[c->nkey++].value = arena_strdup(c->arena, value);
}

void checkpoint_slab(struct checkpoint *c, const char *name, const void *data, size_t size) {
  BUG_IF(c->nslab == CHECKPOINT_MAX_SLABS || strchr(name, ' '));
  c->slab[c->nslab].name = arena_strdup(c->arena, name);
  c->slab[c->nslab].data = data;
  c->slab[c->nslab++].size = size;
}

int checkpoint_write(const struct checkpoint *c, const char *path, struct err *e) {
  struct arena_mark mark = arena_mark(c->arena);
  char *header = arena_alloc(c->arena, MAX_HEADER);
  size_t n = 0, total = 0;
#define PUT(...) n += (size_t)snprintf(header + n, n < MAX_HEADER ? MAX_HEADER - n : 0, __VA_ARGS__)
  PUT("%s%d\norder %s\n", MAGIC, CHECKPOINT_FORMAT, ORDER);
  for (int i = 0; i < c->nkey; i++) {
    PUT("%s %s\n", c->key[i].name, c->key[i].value);
  }
  for (int i = 0; i < c->nslab; i++) {
    PUT("slab %s %zu %08x\n", c->slab[i].name, c->slab[i].size,
        crc_of(c->slab[i].data, c->slab[i].size));
    total += c->slab[i].size;
  }
  BUG_IF(n + 32 >= MAX_HEADER);
  PUT("end %08x\n", crc_of(header, n));
#undef PUT
  char *bytes = arena_alloc(c->arena, n + total);
  memcpy(bytes, header, n);
  for (int i = 0; i < c->nslab; i++) {
    if (c->slab[i].size > 0) { // an empty slab may have no address
      memcpy(bytes + n, c->slab[i].data, c->slab[i].size);
    }
    n += c->slab[i].size;
  }
  file_write_atomic(path, bytes, n, e);
  arena_reset(c->arena, mark);
  return e->code;
}

// ---- reading

static int truncated(struct err *e, const char *path, size_t have, size_t want) {
  if (want) {
    return err_set(e, EXIT_USAGE, "%s: checkpoint is cut short: %zu bytes of %zu", path, have,
                   want);
  }
  return err_set(e, EXIT_USAGE, "%s: checkpoint is cut short in its header (%zu bytes)", path,
                 have);
}

static int damaged(struct err *e, const char *path, const char *what) {
  return err_set(e, EXIT_USAGE, "%s: checkpoint is damaged: %s", path, what);
}

// Splits "name rest" in place; NULL without a space.
static char *split(char *line) {
  char *space = strchr(line, ' ');
  if (space) {
    *space++ = 0;
  }
  return space;
}

static int read_slab_line(struct checkpoint *c, uint32_t *crc, char *rest, struct err *e) {
  char *size = split(rest), *sum = size ? split(size) : NULL, *end_size, *end_sum;
  if (!sum || c->nslab == CHECKPOINT_MAX_SLABS) {
    return damaged(e, c->path, "a slab line does not read");
  }
  unsigned long long n = strtoull(size, &end_size, 10);
  crc[c->nslab] = (uint32_t)strtoul(sum, &end_sum, 16);
  if (*end_size || *end_sum || n > MAX_BYTES) {
    return damaged(e, c->path, "a slab line does not read");
  }
  c->slab[c->nslab].name = rest;
  c->slab[c->nslab++].size = (size_t)n;
  return 0;
}

// Magic and version come first: a newer format may look different in everything else.
static int read_magic(const char *path, const char *data, size_t size, struct err *e) {
  size_t n = strlen(MAGIC), common = size < n ? size : n;
  if (memcmp(data, MAGIC, common) != 0) {
    return err_set(e, EXIT_USAGE, "%s: not a dsim checkpoint", path);
  }
  const char *newline = size > n ? memchr(data + n, '\n', size - n) : NULL;
  if (!newline) {
    return truncated(e, path, size, 0);
  }
  char *end;
  long version = strtol(data + n, &end, 10);
  if (end != newline || version < 1) {
    return damaged(e, path, "its format number does not read");
  }
  if (version != CHECKPOINT_FORMAT) {
    return err_set(e, EXIT_USAGE,
                   "%s: checkpoint of format %ld, this dsim reads format %d; a newer dsim wrote it",
                   path, version, CHECKPOINT_FORMAT);
  }
  return 0;
}

int checkpoint_read(struct checkpoint *c, struct arena *a, const char *path, struct err *e) {
  checkpoint_init(c, a);
  c->path = arena_strdup(a, path);
  char *data;
  size_t size;
  if (file_read(a, path, MAX_BYTES, &data, &size, e) || read_magic(path, data, size, e)) {
    return e->code;
  }
  uint32_t crc[CHECKPOINT_MAX_SLABS];
  char *line = memchr(data, '\n', size) + 1;
  for (bool header = true; header;) {
    size_t at = (size_t)(line - data);
    char *newline = memchr(line, '\n', size - at);
    if (!newline) {
      return truncated(e, path, size, 0);
    }
    if (strncmp(line, "end ", 4) == 0) {
      // checked before anything above it is believed, and before the line is cut up
      char want[16];
      snprintf(want, sizeof want, "end %08x", crc_of(data, at));
      if ((size_t)(newline - line) != strlen(want) || memcmp(line, want, strlen(want)) != 0) {
        return damaged(e, path, "its header has changed");
      }
      header = false;
    }
    line = newline + 1;
  }
  char *body = line;
  line = memchr(data, '\n', size) + 1;
  while (strncmp(line, "end ", 4) != 0) {
    char *newline = memchr(line, '\n', size - (size_t)(line - data));
    *newline = 0;
    char *value = split(line);
    if (!value) {
      return damaged(e, path, "a header line does not read");
    }
    if (strcmp(line, "slab") == 0) {
      if (read_slab_line(c, crc, value, e)) {
        return e->code;
      }
    } else if (strcmp(line, "order") == 0 && strcmp(value, ORDER) != 0) {
      return err_set(e, EXIT_USAGE, "%s: checkpoint of a machine with %s-endian numbers", path,
                     value);
    } else if (c->nkey < CHECKPOINT_MAX_KEYS) {
      c->key[c->nkey].name = line;
      c->key[c->nkey++].value = value;
    }
    line = newline + 1;
  }

  size_t want = (size_t)(body - data);
  for (int i = 0; i < c->nslab; i++) {
    want += c->slab[i].size;
  }
  if (size < want) {
    return truncated(e, path, size, want);
  }
  if (size > want) {
    return damaged(e, path, "there are bytes behind its end");
  }
  for (int i = 0; i < c->nslab; i++) {
    c->slab[i].data = body;
    body += c->slab[i].size;
    if (crc_of(c->slab[i].data, c->slab[i].size) != crc[i]) {
      char what[128];
      snprintf(what, sizeof what, "slab '%s' has changed", c->slab[i].name);
      return damaged(e, path, what);
    }
  }
  return 0;
}

const char *checkpoint_value(const struct checkpoint *c, const char *name) {
  for (int i = 0; i < c->nkey; i++) {
    if (strcmp(c->key[i].name, name) == 0) {
      return c->key[i].value;
    }
  }
  return NULL;
}

int checkpoint_int(int64_t *x, const struct checkpoint *c, const char *name, struct err *e) {
  const char *value = checkpoint_value(c, name);
  char *end = NULL;
  errno = 0;
  *x = value ? strtoll(value, &end, 10) : 0;
  if (!value || end == value || *end || errno) {
    return err_set(e, EXIT_USAGE, "%s: checkpoint says no number for '%s'", c->path, name);
  }
  return 0;
}

int checkpoint_copy(void *data, size_t size, const struct checkpoint *c, const char *name,
                    struct err *e) {
  for (int i = 0; i < c->nslab; i++) {
    if (strcmp(c->slab[i].name, name) != 0) {
      continue;
    }
    if (c->slab[i].size != size) {
      return err_set(e, EXIT_USAGE, "%s: slab '%s' has %zu bytes, %zu expected", c->path, name,
                     c->slab[i].size, size);
    }
    memcpy(data, c->slab[i].data, size);
    return 0;
  }
  return err_set(e, EXIT_USAGE, "%s: checkpoint has no slab '%s'", c->path, name);
}
