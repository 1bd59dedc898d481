// Stick figures: a robot and its reference seen from the side, as segments and circles for gnuplot.
//
// Every pose is seen from the right of the reference (along its own lateral axis), so a robot that
// walks in a circle still walks to the right of the picture. The origin of a pose is the
// reference's root on the floor; where the policy lags, it stands to the left of the reference.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "figure/traj.h"
#include "robot/robot.h"

// The drawing is a CSV of its own, small and complete, from which the picture can be made again.
// Columns: pose, row, layer, shape, x, z (m), dx, dz (m, of segments), r (m, of circles), note. A
// POSE tells where a pose stands, with its time (s) in dx; the first one's note is the title. An
// ERROR is a point of the error curve: time (s) in x, E_track (cm) in z; FAILURE has its time in x.
enum strip_layer { STRIP_REFERENCE, STRIP_FAR, STRIP_NEAR, STRIP_FAILED, STRIP_FLOOR };
enum strip_shape { STRIP_SEGMENT, STRIP_CIRCLE, STRIP_POSE, STRIP_ERROR, STRIP_FAILURE };

// npose poses evenly spaced in time, laid out in rows of per_row. per_row = 0: a film, every pose
// at the origin and a data set of its own, with marks on the floor every half metre that the
// reference walks, and no error curve.
int strip_write(const char *path, const char *title, const struct robot *r, const struct traj *t,
                int npose, int per_row, struct err *e);

// Pictures of a drawing: the strip (OUT.svg and OUT.png), the film (OUT.gif).
int strip_picture(const char *drawing, const char *out, struct err *e);
int strip_film(const char *drawing, const char *out, struct err *e);
