// Film strips of rendered runs, from the drawings that dsim render left (strip.csv).
#include "base/log.h"
#include "figure/figure.h"
#include "figure/strip.h"
#include <stdio.h>

int figure_strip(struct figure_context *c, char why[200], struct err *e) {
  int n = 0;
  for (int i = 0; i < c->nrun && !e->code; i++) {
    const struct run *r = &c->run[i];
    const char *drawing = run_file(r, c->arena, "strip.csv");
    if (!drawing) {
      continue;
    }
    n++;
    // one seed shows what a policy does; more would only fill the folder
    const struct run *last = i ? &c->run[i - 1] : NULL;
    if (last && run_same_series(last, r) && run_file(last, c->arena, "strip.csv")) {
      continue;
    }
    char base[512];
    snprintf(base, sizeof base, "strip_%.150s%s%.150s_%.150s", r->collection,
             *r->collection ? "_" : "", r->experiment, r->variant);
    const char *out = figure_path(c, base, "");
    if (strip_picture(drawing, out, e) == 0) {
      log_info("made %s.svg", out);
      log_info("made %s.png", out);
      c->made += 2;
    }
  }
  if (n == 0) {
    snprintf(why, 200, "no run with a strip.csv (dsim render)");
  }
  return e->code;
}
