// Shared by lint.c (numbers) and lint_pose.c (kinematics).
#pragma once
#include "motion/lint.h"

struct lint_run {
  struct lint *out;
  const struct robot *r;
  const struct clip *raw;   // as read
  const struct clip *clean; // the same with unit, continuous quaternions
  struct arena *scratch;
};

// frame counts within the clip; -1: the clip as a whole
void lint_add(struct lint_run *t, enum lint_severity severity, const char *code, int frame,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static inline const double *lint_row(const struct clip *c, int k) {
  return c->qpos + (size_t)k * (size_t)c->nq;
}
bool lint_free_root(const struct robot *r);
int lint_compare_reals(const void *a, const void *b); // for qsort

// Each returns true when it found an error that makes the checks behind it meaningless.
bool lint_quaternion_order(struct lint_run *t);
bool lint_length_unit(struct lint_run *t);
void lint_feet(struct lint_run *t);
void lint_sides(struct lint_run *t);
