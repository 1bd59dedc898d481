// Which settings of a bundle matter: a row per variant, a panel per metric, means and intervals of
// the summary.csv of sweeps named bundle...
#include "figure/figure.h"
#include "figure/sweeps.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// panels, as far as the sweep has them
static const char *const metric[] = {"e_track_cm", "fall_share",      "falls", "eval_e_track_cm",
                                     "reward",     "bundle_fraction", "wall_s"};
enum { NMETRIC = sizeof metric / sizeof *metric, MAX_PANELS = 4 };

static int draw_sweep(struct figure_context *c, const struct sweep_dir *d, int *drawn,
                      struct err *e) {
  struct sweep_table s;
  char labels[SWEEP_SHOWN * 48] = "", shown[256] = "", header[512] = "row,variant,seeds", count[16];
  const char *panel[MAX_PANELS];
  int npanel = 0;
  if (sweep_table_read(&s, c->arena, d->dir, e)) {
    return e->code;
  }
  for (int m = 0; m < NMETRIC && npanel < MAX_PANELS; m++) {
    bool same = strcmp(metric[m], "falls") == 0 && sweep_has(&s, "fall_share");
    if (!same && sweep_has(&s, metric[m])) {
      panel[npanel++] = metric[m];
      size_t used = strlen(shown), at = strlen(header);
      snprintf(shown + used, sizeof shown - used, "%s%s", used ? " " : "", metric[m]);
      snprintf(header + at, sizeof header - at, ",%s,%s_lo,%s_hi", metric[m], metric[m], metric[m]);
    }
  }
  if (npanel == 0) {
    return 0;
  }
  char *base = strrchr(figure_path(c, d->name, ""), '/') + 1;
  const char *data = figure_path(c, base, ".csv");
  struct csv out;
  remove(data);
  if (csv_open(&out, data, header, e)) {
    return e->code;
  }
  for (int v = 0; v < s.nvariant && !e->code; v++) {
    size_t used = strlen(labels);
    snprintf(labels + used, sizeof labels - used, "%s\"%.40s\"", v ? " " : "", s.variant[v]);
    csv_int(&out, v);
    csv_text(&out, s.variant[v]);
    csv_int(&out, (long long)sweep_number(&s, s.variant[v], panel[0]).n);
    for (int k = 0; k < npanel; k++) {
      struct sweep_number x = sweep_number(&s, s.variant[v], panel[k]);
      csv_real_or_missing(&out, x.mean);
      csv_real_or_missing(&out, x.lo);
      csv_real_or_missing(&out, x.hi);
    }
    csv_end(&out, e);
  }
  csv_close(&out);
  if (e->code) {
    return e->code;
  }
  snprintf(count, sizeof count, "%d", s.nvariant);
  (*drawn)++;
  const char *subtitle = strcmp(d->name, "bundle") == 0 ? "" : d->name;
  return figure_picture(c, "bundle", base, data, e, "labels", labels, "nrow", count, "shown", shown,
                        "subtitle", subtitle, NULL);
}

int figure_bundle(struct figure_context *c, char why[200], struct err *e) {
  struct sweep_dir *d;
  int n, drawn = 0;
  if (sweeps_find(&d, &n, c->arena, c->from, "reference", "bundle", e)) {
    return e->code;
  }
  for (int i = 0; i < n && !e->code; i++) {
    draw_sweep(c, &d[i], &drawn, e);
  }
  if (!drawn && !e->code) {
    snprintf(why, 200, "no sweep named bundle with a summary.csv (dsim ablate bundle)");
  }
  return e->code;
}
