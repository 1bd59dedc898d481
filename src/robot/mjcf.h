// MuJoCo's compiler behind dsim's manners: messages with file and line, warnings to the log, and no
// MUJOCO_LOG.TXT in the user's folder.
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include <mujoco/mujoco.h>

// Reads path (looked up with file_find). The caller frees it with mj_deleteModel. NULL on error
// (EXIT_USAGE): "robots/x.xml:12: unrecognized attribute: 'dampng' (element 'joint')".
mjModel *mjcf_load(struct arena *a, const char *path, struct err *e);

// The name of an object ("#3" in buf when it has none).
const char *mjcf_name(const mjModel *m, int type, int id, char buf[16]);
