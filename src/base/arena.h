// Memory in three lifetimes: run (one arena, released at exit), iteration (mark and release within
// it), stack frame (locals). Every block is zeroed and 64-byte aligned. Running out of memory ends
// the program with exit code 4: nothing here returns NULL.
#pragma once
#include <stddef.h>

struct arena {
  struct arena_block *head; // newest block; blocks chain backwards
  size_t used, high_water;  // bytes handed out now, and at most
};

void arena_init(struct arena *a);
void arena_release(struct arena *a); // frees everything

void *arena_alloc(struct arena *a, size_t bytes);
#define ARENA_NEW(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))
char *arena_strdup(struct arena *a, const char *s);

// Everything allocated after the mark goes at once. Marks nest like brackets.
struct arena_mark {
  struct arena_block *block;
  size_t block_used, used;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark m);
