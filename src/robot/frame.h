// Rigid frames in plain doubles: a position and a row-major rotation (columns are the frame's
// axes), for code that runs once (loading) or now and then (reports). The simulator has its own
// lanes.
//
// Products with exact identities give exact numbers back, so a model whose frames are plain offsets
// keeps the digits of its file.
#pragma once
#include <math.h>
#include <string.h>

struct frame {
  double pos[3], rot[9];
};

static inline struct frame frame_identity(void) {
  return (struct frame){{0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
}

static inline struct frame frame_make(const double pos[3], const double rot[9]) {
  struct frame f;
  memcpy(f.pos, pos, sizeof f.pos);
  memcpy(f.rot, rot, sizeof f.rot);
  return f;
}

// rotation by an angle about coordinate axis 0, 1 or 2
static inline struct frame frame_turn(int axis, double angle) {
  struct frame f = frame_identity();
  int i = (axis + 1) % 3, j = (axis + 2) % 3;
  double c = cos(angle), s = sin(angle);
  f.rot[3 * i + i] = f.rot[3 * j + j] = c;
  f.rot[3 * i + j] = -s;
  f.rot[3 * j + i] = s;
  return f;
}

static inline struct frame frame_shift(int axis, double distance) {
  struct frame f = frame_identity();
  f.pos[axis] = distance;
  return f;
}

// a then b: b's coordinates into those a is given in
static inline struct frame frame_mul(struct frame a, struct frame b) {
  struct frame o;
  for (int i = 0; i < 3; i++) {
    const double *r = a.rot + 3 * i;
    o.pos[i] = a.pos[i] + (r[0] * b.pos[0] + r[1] * b.pos[1] + r[2] * b.pos[2]);
    for (int j = 0; j < 3; j++) {
      o.rot[3 * i + j] = r[0] * b.rot[j] + r[1] * b.rot[3 + j] + r[2] * b.rot[6 + j];
    }
  }
  return o;
}

static inline struct frame frame_inverse(struct frame a) {
  struct frame o;
  for (int i = 0; i < 3; i++) {
    o.pos[i] = -(a.rot[i] * a.pos[0] + a.rot[3 + i] * a.pos[1] + a.rot[6 + i] * a.pos[2]);
    for (int j = 0; j < 3; j++) {
      o.rot[3 * i + j] = a.rot[3 * j + i];
    }
  }
  return o;
}
