// Recorded tosses of a cube, and identification of its side from short pieces of them (arXiv
// 2506.14186; data of ContactNets, Pfrommer et al., CoRL 2020).
//
// Frames are 1/148 s apart: position (m), quaternion wxyz, velocity in world axes, angular velocity
// in body axes: the state of a free joint, 13 numbers.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "sim/freebody.h"

enum { TOSS_STATE = 13 };
#define TOSS_RATE      148.0
#define TOSS_CUBE_MASS 0.37
#define TOSS_CUBE_SIDE 0.1048 // m, of the real cube
#define TOSS_GRAVITY   9.81   // m/s^2

struct tosses {
  int n;
  struct toss {
    int frames;
    double (*state)[TOSS_STATE];
  } * toss;
};

// A CSV (plain or gzipped: toss,frame,qw,...,z,wx,...,wz,vx,...,vz), or a folder of the original
// files (K.pt: a zip archive whose data/0 holds frames x 13 numbers: quaternion, position, angular
// velocity, velocity). EXIT_USAGE names file and what is wrong.
int tosses_read(struct tosses *t, struct arena *a, const char *path, struct err *e);

// MuJoCo's contact for this cube (direct stiffness 300, damping 36.02), friction as measured.
struct freebody_scene cube_scene(void);

// Pieces of `length` frames. Those in which the cube touches something are told by an acceleration
// that is not gravity's; `contact` is the share of pieces drawn among them.
struct pieces {
  int n, length;
  const double (**state)[TOSS_STATE]; // (n) first frame of each
};
void pieces_draw(struct pieces *p, struct arena *a, const struct tosses *t, int first, int last,
                 int n, int length, double contact, uint64_t seed);

struct piece_fit {
  struct freebody_scene scene;
  struct ode_options ode;
  enum ode_gradient gradient;
};
// Loss of one piece from its first frame on, sum over the others of |dpos|^2 / w^2 + angle^2 +
// 0.01 (|dv|^2 + |domega|^2), w the real side; its derivative by the side.
enum ode_status piece_loss(double *loss, double *grad, int *steps, struct arena *a,
                           const struct piece_fit *f, const double (*state)[TOSS_STATE], int length,
                           double side);

// Whole toss from its first frame: mean over frames of the position error in shares of the side,
// and of the rotation error in degrees.
enum ode_status toss_predict(double *position, double *rotation, struct arena *a,
                             const struct piece_fit *f, const struct toss *t, double side);
