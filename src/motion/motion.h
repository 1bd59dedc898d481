// Motion clips: read, checked, resampled to the control rate, with velocities.
//
// A clip file is CSV (plain or gzip), one frame a line. Without a header line it is Unitree's
// layout: root x y z (m), root quaternion x y z w, then one column per hinge or slide in the
// robot's order (rad, m). A robot without a free root has its qpos as columns. A header line, or
// the sidecar's `joints`, names the columns; then they are mapped by name, in any order. '#' begins
// a comment line.
//
// What the file does not say of itself stands in a sidecar beside it, FILE.yaml for FILE.csv or
// FILE.csv.gz:
//   fps: 30             frames per second (or --fps)
//   quaternion: xyzw    order of the quaternion's columns: xyzw or wxyz
//   rows: [0, 449]      first and last frame taken, counted from 0, both included
//   dz: 0.02            added to the root's height, m
//   joints: [a, b]      names of the columns after the root's seven
//   allow_jumps: true   accept jumps that lint refuses
//   loop: true          the last frame leads on to the first (noted, not used yet)
//   credit: text        where the motion comes from, and its licence
//   file: walk.csv.gz   the clip, when its name is not the sidecar's own
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "robot/robot.h"

enum clip_order { CLIP_ORDER_UNSAID, CLIP_ORDER_XYZW, CLIP_ORDER_WXYZ };

struct clip { // as read: one row per frame, qpos order (quaternion wxyz), not yet cleaned
  int nframe, nq;
  double fps;
  double *qpos;          // (nframe, nq)
  int row_first;         // frame 0 is this frame of the file
  enum clip_order order; // of the file
  bool allow_jumps, loop;
  const char *credit; // "" when the sidecar says nothing
};

// What a clip file does not say of itself. Filled from the sidecar if there is one, then from the
// command line: what is given here wins. Start from clip_options_default().
struct clip_options {
  double fps;              // 0: not given
  int row_first, row_last; // 0-based, inclusive; row_first < 0: not given; row_last < 0: to the end
  double dz;               // added to the root height; NAN: not given
  enum clip_order order;   // of the file's quaternion columns
  bool allow_jumps;        // accept frame-to-frame jumps that lint calls impossible
  bool loop;
};
struct clip_options clip_options_default(void); // nothing given

struct motion_clip { // one clip of a motion
  const char *name;
  char sha256[65];   // of the file read; "" when built from a clip in memory
  int first, nframe; // its frames in the motion; the last is at (nframe-1)*dt of the clip's time
};

// One clip or several at the control rate, ready to be tracked: clips lie one after the other, and
// a frame's number says which clip it is of.
struct motion {
  const char *name;
  char sha256[65]; // of the file read, of several a digest of theirs; "" when built from memory
  int nclip;
  struct motion_clip *clip; // (nclip)
  int nframe;               // frames of all clips
  int *last;                // (nframe) last frame of the clip that each frame is of
  double dt;                // control period
  int nq, nv;
  double *qpos; // (nframe, nq); quaternions unit and sign-continuous; a clip starts at x = y = 0
  double *qvel; // (nframe, nv); central differences, one-sided at a clip's ends
  double *xpos; // (nframe, nbody, 3) body positions by kinematics
  double *xmat; // (nframe, nbody, 9)
};
// Last frame of the clip that frame is of; frames past the end count to the last clip.
static inline int motion_last(const struct motion *m, int frame) {
  return m->last[frame < m->nframe ? frame : m->nframe - 1];
}
int motion_clip_of(const struct motion *m, int frame); // index of that clip

// Reads a clip and its sidecar (opt may be NULL). Values are taken as they stand: units, jumps and
// quaternion norms are lint's business. Errors name file:line:column; EXIT_USAGE.
int clip_read(struct clip *c, struct arena *a, const struct robot *r, const char *path,
              const struct clip_options *opt, struct err *e);
// Makes quaternions unit and sign-continuous from frame to frame, in place. A quaternion without
// length becomes the identity; lint reports it.
void clip_clean(struct clip *c, const struct robot *r);
// Writes a clip in Unitree's layout (9 significant digits; gzip without time stamp when path ends
// in .gz; the same clip gives the same bytes) and its sidecar. The clip must be clean.
int clip_write(const struct clip *c, const struct robot *r, const char *path, const char *credit,
               struct err *e);

// Resamples to period dt (positions and joints linear, rotations slerp), differentiates, runs FK.
// Frame k is at t = k dt, up to and including the clip's last frame when t falls on it. qvel is
// MuJoCo's: robot_difference(qpos[k-1], qpos[k+1]) / 2dt, so a rotation's rate is
// log(q[k-1]^-1 q[k+1]) / 2dt in body axes.
int motion_build(struct motion *m, struct arena *a, const struct robot *r, const struct clip *c,
                 const char *name, double dt, struct err *e);
// The same of n clips, each resampled for itself.
int motion_build_clips(struct motion *m, struct arena *a, const struct robot *r,
                       const struct clip *c, const char *const *name, int n, double dt,
                       struct err *e);
// clip_read + lint (errors refuse, warnings are logged) + motion_build_clips. path is a clip, a
// sidecar, the name of a shipped clip ("walk" -> motions/walk.csv.gz), a folder (all clips in it,
// by name), or several of these with commas between them; a comma makes a list, so that no path can
// have one. Clips must differ in name, and all be of this robot. Nothing found is an error: no
// other motion ever stands in. Errors name the file.
int motion_load(struct motion *m, struct arena *a, const struct robot *r, const char *path,
                double dt, struct err *e);
// The parts of a list "a, b": one for a text without commas.
int motion_split(const char ***path, struct arena *a, const char *text);
// motion_load of one clip without lint and build: finds path and reads the clip; *file is the file
// it came from.
int motion_open(struct clip *c, const char **file, struct arena *a, const struct robot *r,
                const char *path, const struct clip_options *opt, struct err *e);
