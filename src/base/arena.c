#include "base/arena.h"
#include "base/err.h"
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Address sanitizer cannot see into an arena by itself: what is not handed out is poisoned, so that
// a use after arena_reset, or past the end of a block, is reported like one of malloc's.
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 64 };
#else
enum { RED_ZONE = 0 };
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 64, BLOCK_BYTES = 1 << 20 };

struct arena_block {
  alignas(ALIGN) struct arena_block *previous;
  size_t size, used; // of data
  alignas(ALIGN) unsigned char data[];
};

static _Noreturn void out_of_memory(size_t bytes) {
  fprintf(stderr, "dsim: out of memory (%zu bytes asked for)\n", bytes);
  exit(EXIT_IO);
}

static size_t round_up(size_t bytes) {
  return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void arena_init(struct arena *a) {
  *a = (struct arena){0};
}

static void free_newest(struct arena *a) {
  struct arena_block *b = a->head;
  a->head = b->previous;
  ASAN_UNPOISON_MEMORY_REGION(b->data, b->size);
  free(b);
}

void arena_release(struct arena *a) {
  while (a->head != NULL) {
    free_newest(a);
  }
  a->used = 0;
}

void *arena_alloc(struct arena *a, size_t bytes) {
  // a count that became negative on its way to size_t ends here too
  if (bytes > SIZE_MAX / 4) {
    out_of_memory(bytes);
  }
  size_t size = round_up(bytes > 0 ? bytes : 1) + RED_ZONE;
  struct arena_block *b = a->head;
  if (b == NULL || b->size - b->used < size) {
    size_t block_size = size > BLOCK_BYTES ? size : BLOCK_BYTES;
    b = aligned_alloc(ALIGN, sizeof *b + block_size);
    if (b == NULL) {
      out_of_memory(bytes);
    }
    b->previous = a->head;
    b->size = block_size;
    b->used = 0;
    ASAN_POISON_MEMORY_REGION(b->data, b->size);
    a->head = b;
  }
  void *p = b->data + b->used;
  b->used += size;
  a->used += size;
  if (a->used > a->high_water) {
    a->high_water = a->used;
  }
  ASAN_UNPOISON_MEMORY_REGION(p, bytes);
  memset(p, 0, bytes);
  return p;
}

char *arena_strdup(struct arena *a, const char *s) {
  size_t n = strlen(s) + 1;
  return memcpy(arena_alloc(a, n), s, n);
}

struct arena_mark arena_mark(const struct arena *a) {
  return (struct arena_mark){
      .block = a->head, .block_used = a->head ? a->head->used : 0, .used = a->used};
}

void arena_reset(struct arena *a, struct arena_mark m) {
  while (a->head != m.block) {
    BUG_IF(a->head == NULL); // the mark is of another arena, or of memory already given back
    free_newest(a);
  }
  if (a->head != NULL) {
    BUG_IF(a->head->used < m.block_used);
    a->head->used = m.block_used;
    ASAN_POISON_MEMORY_REGION(a->head->data + m.block_used, a->head->size - m.block_used);
  }
  a->used = m.used;
}
