// Import of public motion data: one file cut to a clip, or a list of clips (motions/lafan1.yaml)
// made from a folder that the user downloaded.
//
// A list is YAML:
//   credit: text           goes into every clip's sidecar
//   fps: 30                of all files
//   quaternion: xyzw
//   clips:
//     run:                 name of the clip to write
//       file: run1_subject2 source: FILE.csv or FILE.csv.gz
//       sha256: ...        of the uncompressed text with LF line ends
//       rows: [3342, 3791] first and last frame, from 0, both included
//       dz: 0.02039        added to the root's height, m
#pragma once
#include "motion/motion.h"

// Reads FILE with opt, lints it and writes out (.csv or .csv.gz) with its sidecar. Errors of lint
// refuse, unless force; findings are logged. An existing out is kept, unless force. EXIT_USAGE.
int import_clip(struct arena *a, const struct robot *r, const char *file, const char *out,
                const struct clip_options *opt, bool force, struct err *e);

// Makes every clip of the list (or only those in only[0..nonly)) from the files in folder `from`,
// writing to folder `out`, by default results/motions/NAME_OF_LIST. A text that differs from its
// sha256 is an error, with force a warning. All clips are tried; the error counts those not made.
int import_list(struct arena *a, const struct robot *r, const char *list, const char *from,
                const char *out, const char *const *only, int nonly, bool force, struct err *e);
