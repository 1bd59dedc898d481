// One cell of a sweep on disk: how far it has come, and the command lines that take it further.
//
// A finished step leaves a row in DIR/cell.csv: step, hash of the resolved spec, seconds. `dsim
// train --overwrite` removes it with the other results, so it never speaks of a run that is gone.
#pragma once
#include "cmd/sweep.h"

enum cell_state {
  CELL_FRESH,    // no run there
  CELL_STARTED,  // some steps done, or training interrupted
  CELL_FINISHED, // every step done with this spec
  CELL_CHANGED,  // a run of another spec is there
  CELL_FAILED,   // a step failed now
  CELL_BUSY,     // another process runs it
};
const char *cell_state_name(enum cell_state state);

struct cell_progress {
  enum cell_state state;
  int next;               // first step to do
  bool resume, overwrite; // how training begins if it is next
  char differs[512];      // CHANGED: "path: before -> now" per line
};

// Reads the cell's folder. An error is one of reading; a changed spec is none.
int cell_inspect(struct cell_progress *p, struct arena *a, const struct sweep *s,
                 const struct sweep_cell *c, struct err *e);
// Appends the row of a step that is done.
int cell_mark(struct arena *a, const struct sweep_cell *c, const char *step, double seconds,
              struct err *e);

enum { CELL_MAX_WORDS = 256 };
// Words of the command line of step number `step`, words[0] = "dsim", NULL behind the last.
// threads 0: not said.
int cell_command(const char *words[CELL_MAX_WORDS], struct arena *a, const struct sweep *s,
                 const struct sweep_cell *c, const struct cell_progress *p, int step, int threads,
                 struct err *e);
// One line as a shell reads it, in the arena.
const char *cell_command_text(struct arena *a, const char *const *words);
