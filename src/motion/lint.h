// What is wrong with a clip, in words: an error means that tracking it makes no sense as it stands,
// a warning that someone should look. Nothing is repaired here.
//
// Errors:   nonfinite, short, quaternion_norm (off by more than 1e-3), quaternion_order,
//           units_degrees, units_length, jump (rotation above 60 rad/s, slide or root above 15 m/s;
//           a warning with allow_jumps), mirrored
// Warnings: quaternion_norm (between 1e-4 and 1e-3), not_upright, quaternion_order (upright either
//           way, but travelling backwards), sign_flip (repaired by clip_clean), speed (above
//           30 rad/s, or 8 m/s), spike (a joint's acceleration above 600 rad/s^2), limit, floating
//           (lowest tenth of the foot heights above 2.5 cm), sinking (below -1 cm, or any below
//           -5 cm), mirrored (hands, or narrow)
#pragma once
#include "motion/motion.h"

enum lint_severity { LINT_WARNING, LINT_ERROR };

enum { LINT_MAX = 64 }; // findings kept; the rest are counted

struct lint_finding {
  enum lint_severity severity;
  const char *code;
  int frame; // of the file, counted from 0; -1: the clip as a whole
  char text[240];
};

struct lint {
  int n, nerror, nwarning; // findings kept; all errors, all warnings
  struct lint_finding finding[LINT_MAX];
  // feet: lowest point of all feet over the frames (m); NAN when the robot or the clip gives none
  double foot_min, foot_p10, foot_median, foot_max;
  double joint_speed; // highest, rad/s
  int joint_speed_dof, joint_speed_frame;
  double root_speed; // highest, m/s
};

void lint_clip(struct lint *out, const struct robot *r, const struct clip *c);
// The first errors in one err, EXIT_USAGE; 0 when there are none. path prefixes the text.
int lint_refuse(const struct lint *l, const char *path, struct err *e);
