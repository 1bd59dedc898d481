#include "motion/lint.h"
#include "motion/lint_private.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// norms: text with four digits gives 1e-4, with three 1e-3; beyond it was never a unit quaternion
static const double NORM_SILENT = 1e-4, NORM_ERROR = 1e-3;
// no joint of a legged robot or limb of a person does this; at 30 fps it is 115 degrees a frame
static const double TURN_ERROR = 60, TURN_WARNING = 30;  // rad/s
static const double SHIFT_ERROR = 15, SHIFT_WARNING = 8; // m/s; the fastest runner reaches 12
static const double SPIKE = 600;        // rad/s^2: 38 degrees off the line at 30 fps
static const double LIMIT_SLACK = 1e-5; // six decimals in the file

void lint_add(struct lint_run *t, enum lint_severity severity, const char *code, int frame,
              const char *fmt, ...) {
  struct lint *l = t->out;
  *(severity == LINT_ERROR ? &l->nerror : &l->nwarning) += 1;
  if (l->n == LINT_MAX) {
    return;
  }
  struct lint_finding *f = &l->finding[l->n++];
  f->severity = severity;
  f->code = code;
  f->frame = frame < 0 ? -1 : frame + t->raw->row_first;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(f->text, sizeof f->text, fmt, ap);
  va_end(ap);
}

bool lint_free_root(const struct robot *r) {
  return r->nlink > 0 && r->link[0].type == JOINT_FREE;
}

int lint_compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bool is_scalar(const struct robot_link *l) {
  return l->type == JOINT_HINGE || l->type == JOINT_SLIDE;
}

static const char *label(const struct robot_link *l) {
  return l->type == JOINT_FREE ? "root" : l->joint_name;
}

static bool check_finite(struct lint_run *t) {
  int count = 0, first = -1;
  for (int k = 0; k < t->raw->nframe; k++) {
    for (int i = 0; i < t->raw->nq; i++) {
      if (!isfinite(lint_row(t->raw, k)[i])) {
        count++;
        first = first < 0 ? k : first;
      }
    }
  }
  if (count > 0) {
    lint_add(t, LINT_ERROR, "nonfinite", first, "%d numbers are nan or infinite", count);
  }
  return count > 0;
}

static void check_quaternion(struct lint_run *t, const struct robot_link *l) {
  int adr = l->qadr + (l->type == JOINT_FREE ? 3 : 0), worst = 0, beyond = 0, flips = 0, flip = -1;
  double worst_norm = 1;
  for (int k = 0; k < t->raw->nframe; k++) {
    const double *q = lint_row(t->raw, k) + adr;
    double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    beyond += fabs(norm - 1) > NORM_SILENT;
    if (fabs(norm - 1) > fabs(worst_norm - 1)) {
      worst_norm = norm;
      worst = k;
    }
    const double *p = lint_row(t->raw, k > 0 ? k - 1 : 0) + adr;
    if (p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3] < 0) {
      flips++;
      flip = flip < 0 ? k : flip;
    }
  }
  if (beyond > 0) {
    bool error = fabs(worst_norm - 1) > NORM_ERROR;
    lint_add(t, error ? LINT_ERROR : LINT_WARNING, "quaternion_norm", worst,
             "%s: quaternion of norm %.4g (%d frames are off by more than %g)%s", label(l),
             worst_norm, beyond, NORM_SILENT, error ? "" : ": renormalised");
  }
  if (flips > 0) {
    lint_add(t, LINT_WARNING, "sign_flip", flip, "%s: quaternion changes sign %d time%s: repaired",
             label(l), flips, flips == 1 ? "" : "s");
  }
}

// Joint angles in degrees: many far outside the limits, nearly all inside after conversion.
static bool check_degrees(struct lint_run *t) {
  const struct robot *r = t->r;
  long all = 0, outside = 0, healed = 0;
  double largest = 0;
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    const struct robot_dof *d = &r->dof[l->dof];
    if (l->type != JOINT_HINGE) {
      continue;
    }
    double lo = d->limited ? d->range[0] : -2 * M_PI, hi = d->limited ? d->range[1] : 2 * M_PI;
    for (int k = 0; k < t->raw->nframe; k++) {
      double q = lint_row(t->raw, k)[l->qadr], rad = q * M_PI / 180;
      bool out = q < lo - 0.5 || q > hi + 0.5;
      all++;
      outside += out;
      healed += out && rad > lo - 0.1 && rad < hi + 0.1;
      largest = fmax(largest, fabs(q));
    }
  }
  if (largest < 2 * M_PI || outside * 20 < all || healed * 20 < outside * 19) {
    return false;
  }
  lint_add(t, LINT_ERROR, "units_degrees", -1,
           "joint angles look like degrees: %.0f %% lie outside their limits (up to %.4g), divided "
           "by 57.3 they would fit; radians are expected",
           100.0 * (double)outside / (double)all, largest);
  return true;
}

// one step from frame to frame: the fastest rotation and the fastest shift
struct step_speed {
  double turn, shift;
  int turn_link, shift_link, nturn; // nturn: joints above TURN_ERROR
};

static struct step_speed step_speed(const struct lint_run *t, int k, double *dv) {
  const struct robot *r = t->r;
  struct step_speed s = {0};
  robot_difference(r, dv, lint_row(t->clean, k), lint_row(t->clean, k + 1));
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    const double *v = dv + l->dof;
    double shift = 0, turn = 0;
    switch (l->type) {
    case JOINT_FREE:
      shift = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      v += 3;
      __attribute__((fallthrough));
    case JOINT_BALL:
      turn = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      break;
    case JOINT_SLIDE:
      shift = fabs(v[0]);
      break;
    case JOINT_HINGE:
      turn = fabs(v[0]);
    }
    shift *= t->raw->fps;
    turn *= t->raw->fps;
    s.nturn += turn > TURN_ERROR;
    if (turn > s.turn) {
      s.turn = turn;
      s.turn_link = i;
    }
    if (shift > s.shift) {
      s.shift = shift;
      s.shift_link = i;
    }
  }
  return s;
}

static void check_speed(struct lint_run *t) {
  const struct robot *r = t->r;
  struct lint *out = t->out;
  double *dv = ARENA_NEW(t->scratch, double, r->nv);
  enum lint_severity severity = t->raw->allow_jumps ? LINT_WARNING : LINT_ERROR;
  int jumps = 0, fast = 0, fast_frame = 0;
  struct step_speed fastest = {0};
  for (int k = 0; k + 1 < t->raw->nframe; k++) {
    struct step_speed s = step_speed(t, k, dv);
    int row = k + t->raw->row_first;
    if (s.turn > out->joint_speed) {
      out->joint_speed = s.turn;
      out->joint_speed_dof = r->link[s.turn_link].dof;
      out->joint_speed_frame = row;
    }
    out->root_speed = fmax(out->root_speed, s.shift);
    bool turn = s.turn > TURN_ERROR, shift = s.shift > SHIFT_ERROR;
    if (!turn && !shift) {
      if (s.turn > TURN_WARNING || s.shift > SHIFT_WARNING) {
        fast++;
        if (s.turn / TURN_WARNING + s.shift / SHIFT_WARNING >
            fastest.turn / TURN_WARNING + fastest.shift / SHIFT_WARNING) {
          fastest = s;
          fast_frame = k;
        }
      }
      continue;
    }
    // a torn clip would fill pages: eight places show where to look
    if (++jumps > 8) {
      continue;
    }
    char more[40] = "", root[60] = "";
    if (turn && s.nturn > 1) {
      snprintf(more, sizeof more, " and %d more joints", s.nturn - 1);
    }
    if (shift) {
      snprintf(root, sizeof root, "%s at %.4g m/s%s", label(&r->link[s.shift_link]), s.shift,
               turn ? ", " : "");
    }
    if (turn) {
      lint_add(t, severity, "jump", k + 1, "jump from frame %d to %d: %s%s at %.4g rad/s%s", row,
               row + 1, root, label(&r->link[s.turn_link]), s.turn, more);
    } else {
      lint_add(t, severity, "jump", k + 1, "jump from frame %d to %d: %s", row, row + 1, root);
    }
  }
  if (jumps > 8) {
    lint_add(t, severity, "jump", -1, "%d more jumps", jumps - 8);
  }
  if (fast > 0) {
    lint_add(t, LINT_WARNING, "speed", fast_frame,
             "%d frame steps are faster than motors (%g rad/s) or runners (%g m/s), the worst: %s "
             "at %.4g rad/s, root at %.4g m/s",
             fast, TURN_WARNING, SHIFT_WARNING, label(&r->link[fastest.turn_link]), fastest.turn,
             fastest.shift);
  }
}

// One frame that does not belong: too slow for a jump, but far off the line of its neighbours.
static void check_spikes(struct lint_run *t) {
  const struct robot *r = t->r;
  double fps = t->raw->fps, worst = SPIKE;
  int count = 0, frame = 0, link = 0;
  for (int k = 1; k + 1 < t->raw->nframe; k++) {
    const double *p = lint_row(t->raw, k - 1), *q = lint_row(t->raw, k),
                 *n = lint_row(t->raw, k + 1);
    bool spike = false;
    for (int i = 0; i < r->nlink; i++) {
      int adr = r->link[i].qadr;
      double before = (q[adr] - p[adr]) * fps, after = (n[adr] - q[adr]) * fps;
      double acc = fabs(after - before) * fps;
      bool jump = fabs(before) > TURN_ERROR || fabs(after) > TURN_ERROR; // said already
      if (r->link[i].type != JOINT_HINGE || acc < SPIKE || jump) {
        continue;
      }
      spike = true;
      if (acc > worst) {
        worst = acc;
        frame = k;
        link = i;
      }
    }
    count += spike;
  }
  if (count > 0) {
    lint_add(t, LINT_WARNING, "spike", frame,
             "%d frame%s with a joint's acceleration above %g rad/s^2, the worst: %s at %.4g",
             count, count == 1 ? "" : "s", SPIKE, label(&r->link[link]), worst);
  }
}

static void check_limits(struct lint_run *t) {
  const struct robot *r = t->r;
  for (int i = 0; i < r->nlink; i++) {
    const struct robot_link *l = &r->link[i];
    const struct robot_dof *d = &r->dof[l->dof];
    if (!is_scalar(l) || !d->limited) {
      continue;
    }
    int count = 0, frame = 0;
    double worst = LIMIT_SLACK, at = 0;
    for (int k = 0; k < t->raw->nframe; k++) {
      double q = lint_row(t->raw, k)[l->qadr];
      double excess = fmax(d->range[0] - q, q - d->range[1]);
      count += excess > LIMIT_SLACK;
      if (excess > worst) {
        worst = excess;
        at = q;
        frame = k;
      }
    }
    if (count > 0) {
      lint_add(t, LINT_WARNING, "limit", frame,
               "%s: outside its range %.4g..%.4g in %d of %d frames, at worst %.4g, %.4g %s beyond",
               l->joint_name, d->range[0], d->range[1], count, t->raw->nframe, at, worst,
               l->type == JOINT_HINGE ? "rad" : "m");
    }
  }
}

void lint_clip(struct lint *out, const struct robot *r, const struct clip *c) {
  *out = (struct lint){
      .foot_min = NAN, .foot_p10 = NAN, .foot_median = NAN, .foot_max = NAN, .joint_speed_dof = -1};
  struct arena scratch;
  arena_init(&scratch);
  struct clip clean = *c;
  size_t bytes = sizeof(double) * (size_t)c->nframe * (size_t)c->nq;
  clean.qpos = memcpy(arena_alloc(&scratch, bytes), c->qpos, bytes);
  clip_clean(&clean, r);
  struct lint_run t = {out, r, c, &clean, &scratch};

  bool sound = !check_finite(&t);
  if (c->nframe < 2) {
    lint_add(&t, LINT_ERROR, "short", -1, "%d frame%s: velocities need at least two", c->nframe,
             c->nframe == 1 ? "" : "s");
  }
  for (int i = 0; i < r->nlink && sound; i++) {
    if (r->link[i].type == JOINT_FREE || r->link[i].type == JOINT_BALL) {
      check_quaternion(&t, &r->link[i]);
    }
  }
  // what is read in a wrong unit or order would only raise a crowd of follow-up findings
  if (sound && c->nframe > 0) {
    bool order = lint_quaternion_order(&t), unit = lint_length_unit(&t),
         degrees = check_degrees(&t);
    if (!order && !unit && !degrees) {
      check_speed(&t);
      check_spikes(&t);
      check_limits(&t);
      lint_feet(&t);
      lint_sides(&t);
    }
  }
  arena_release(&scratch);
}

int lint_refuse(const struct lint *l, const char *path, struct err *e) {
  if (l->nerror == 0) {
    return 0;
  }
  char text[900] = "";
  int shown = 0;
  for (int i = 0; i < l->n && shown < 3; i++) {
    if (l->finding[i].severity == LINT_ERROR) {
      size_t used = strlen(text);
      snprintf(text + used, sizeof text - used, "%s%s", shown++ ? "; " : "", l->finding[i].text);
    }
  }
  if (l->nerror > shown) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "; and %d more errors", l->nerror - shown);
  }
  return err_set(e, EXIT_USAGE, "%s: %s", path, text);
}
