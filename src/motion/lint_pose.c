// What lint sees only when the robot is posed: which way is up, feet and floor, left and right.
#include "motion/feet.h"
#include "motion/lint_private.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double up_part(const double *q) { // world z of the body's z axis
  return 1 - 2 * (q[1] * q[1] + q[2] * q[2]);
}

// how a sequence of root rotations stands and travels
struct stance {
  double upright;   // part of the frames within 60 degrees of upright
  double forward;   // mean speed along the body's x axis, m/s
  double backwards; // part of the frames whose heading is within 60 degrees of -x
};

// The file's four numbers, reordered as the other declaration would have them.
static void other_order(double o[4], const double *q, enum clip_order declared) {
  if (declared == CLIP_ORDER_WXYZ) {
    o[0] = q[3], o[1] = q[0], o[2] = q[1], o[3] = q[2];
  } else {
    o[0] = q[1], o[1] = q[2], o[2] = q[3], o[3] = q[0];
  }
}

static struct stance stance_of(const struct lint_run *t, bool other) {
  const struct clip *c = t->clean;
  struct stance s = {0};
  for (int k = 0; k < c->nframe; k++) {
    const double *row = lint_row(c, k);
    double q[4];
    memcpy(q, row + 3, sizeof q);
    if (other) {
      other_order(q, row + 3, c->order);
    }
    s.upright += up_part(q) > 0.5;
    double x = 1 - 2 * (q[2] * q[2] + q[3] * q[3]), y = 2 * (q[1] * q[2] + q[0] * q[3]);
    s.backwards += x < -0.5;
    if (k + 1 < c->nframe) {
      const double *next = lint_row(c, k + 1);
      s.forward += ((next[0] - row[0]) * x + (next[1] - row[1]) * y) * c->fps;
    }
  }
  s.upright /= c->nframe;
  s.backwards /= c->nframe;
  s.forward /= c->nframe;
  return s;
}

bool lint_quaternion_order(struct lint_run *t) {
  if (!lint_free_root(t->r)) {
    return false;
  }
  struct stance is = stance_of(t, false), other = stance_of(t, true);
  const char *name = t->raw->order == CLIP_ORDER_WXYZ ? "wxyz" : "xyzw";
  const char *other_name = t->raw->order == CLIP_ORDER_WXYZ ? "xyzw" : "wxyz";
  double lying = 100 * (1 - is.upright);
  if (is.upright < 0.5 && other.upright > 0.9) {
    lint_add(t, LINT_ERROR, "quaternion_order", -1,
             "root not upright in %.0f %% of frames with quaternions read as %s, but in %.0f %% "
             "read as %s: declare 'quaternion: %s'",
             lying, name, 100 * (1 - other.upright), other_name, other_name);
    return true;
  }
  if (is.upright < 0.5) {
    lint_add(t, LINT_WARNING, "not_upright", -1,
             "root not upright in %.0f %% of frames (in %.0f %% with quaternions read as %s)",
             lying, 100 * (1 - other.upright), other_name);
  } else if (is.forward < -0.3 && other.forward > 0.3 && other.upright > 0.9 &&
             is.backwards > 0.5) {
    // a wrong order can look like half a turn about the vertical: upright, but walking backwards
    lint_add(t, LINT_WARNING, "quaternion_order", -1,
             "moves backwards at %.2f m/s with quaternions read as %s, forwards read as %s: is the "
             "order right?",
             -is.forward, name, other_name);
  }
  return false;
}

static double quantile(const double *sorted, int n, double p) {
  return sorted[(int)(p * (n - 1) + 0.5)];
}

bool lint_length_unit(struct lint_run *t) {
  const struct robot *r = t->r;
  struct feet feet;
  feet_find(&feet, r);
  if (!lint_free_root(r) || feet.n == 0) {
    return false;
  }
  double *xpos = ARENA_NEW(t->scratch, double, 3 * r->nbody);
  double *xmat = ARENA_NEW(t->scratch, double, 9 * r->nbody);
  robot_fk(r, r->qpos0, xpos, xmat);
  double height = r->qpos0[2] - feet_height(r, &feet, xpos, xmat);
  double *z = ARENA_NEW(t->scratch, double, t->raw->nframe);
  for (int k = 0; k < t->raw->nframe; k++) {
    z[k] = lint_row(t->raw, k)[2];
  }
  qsort(z, (size_t)t->raw->nframe, sizeof *z, lint_compare_reals);
  double median = quantile(z, t->raw->nframe, 0.5);
  if (height < 0.05 || median < 10 * height) {
    return false;
  }
  const struct {
    double factor;
    const char *name;
  } units[] = {{0.01, "centimetres"}, {0.001, "millimetres"}};
  for (int i = 0; i < 2; i++) {
    double ratio = median * units[i].factor / height;
    if (ratio > 0.3 && ratio < 1.5) {
      lint_add(t, LINT_ERROR, "units_length", -1,
               "root height %.4g looks like %s (the robot stands at %.3g m); metres are expected",
               median, units[i].name, height);
      return true;
    }
  }
  return false;
}

void lint_feet(struct lint_run *t) {
  const struct robot *r = t->r;
  int n = t->raw->nframe;
  struct feet feet;
  feet_find(&feet, r);
  if (feet.n == 0 || !lint_free_root(r)) {
    return;
  }
  double *xpos = ARENA_NEW(t->scratch, double, 3 * r->nbody);
  double *xmat = ARENA_NEW(t->scratch, double, 9 * r->nbody);
  double *z = ARENA_NEW(t->scratch, double, n);
  int lowest = 0;
  for (int k = 0; k < n; k++) {
    robot_fk(r, lint_row(t->clean, k), xpos, xmat);
    z[k] = feet_height(r, &feet, xpos, xmat);
    lowest = z[k] < z[lowest] ? k : lowest;
  }
  qsort(z, (size_t)n, sizeof *z, lint_compare_reals);
  struct lint *out = t->out;
  out->foot_min = z[0];
  out->foot_p10 = quantile(z, n, 0.1);
  out->foot_median = quantile(z, n, 0.5);
  out->foot_max = z[n - 1];
  // the tenth percentile: stance frames even in a clip that jumps a lot, but not one deep frame
  const char *code = out->foot_p10 > 0.025                            ? "floating"
                     : out->foot_p10 < -0.01 || out->foot_min < -0.05 ? "sinking"
                                                                      : NULL;
  if (code != NULL) {
    lint_add(t, LINT_WARNING, code, lowest,
             "%s: the lowest foot point is at %.1f mm at least, %.1f mm in the lowest tenth, %.1f "
             "mm in the middle; dz %+.4f would put the lowest tenth on the floor",
             code, 1e3 * out->foot_min, 1e3 * out->foot_p10, 1e3 * out->foot_median,
             -out->foot_p10);
  }
}

// The link whose name is this one's with left and right exchanged, or -1.
static int partner(const struct robot *r, int link) {
  const char *name = r->link[link].joint_name, *at = name ? strstr(name, "left") : NULL;
  if (at == NULL) {
    return -1;
  }
  for (int i = 0; i < r->nlink; i++) {
    const char *other = r->link[i].joint_name;
    size_t head = (size_t)(at - name);
    if (other != NULL && strncmp(other, name, head) == 0 &&
        strncmp(other + head, "right", 5) == 0 && strcmp(other + head + 5, at + 4) == 0) {
      return i;
    }
  }
  return -1;
}

// How far left lies to the left of right in the root's axes, for each pair.
static void widths(double *w, const struct robot *r, const int (*pair)[2], int npair,
                   const double *qpos, double *xpos, double *xmat) {
  const double *q = qpos + 3;
  double y[3] = {2 * (q[1] * q[2] - q[0] * q[3]), 1 - 2 * (q[1] * q[1] + q[3] * q[3]),
                 2 * (q[2] * q[3] + q[0] * q[1])}; // the root's y axis in the world
  robot_fk(r, qpos, xpos, xmat);
  for (int i = 0; i < npair; i++) {
    double left[3], right[3];
    link_position(left, r, pair[i][0], xpos, xmat);
    link_position(right, r, pair[i][1], xpos, xmat);
    w[i] = 0;
    for (int j = 0; j < 3; j++) {
      w[i] += (left[j] - right[j]) * y[j];
    }
  }
}

// Left and right exchanged, by a mirror or by swapped columns: limbs cross, or would lie further
// apart with the sides exchanged back.
void lint_sides(struct lint_run *t) {
  const struct robot *r = t->r;
  enum { MAX_PAIR = 8 };
  int pair[MAX_PAIR][2], npair = 0;
  for (int i = 0; i < r->nlink && npair < MAX_PAIR; i++) {
    int other = link_is_leaf(r, i) ? partner(r, i) : -1;
    if (other >= 0) {
      pair[npair][0] = i;
      pair[npair++][1] = other;
    }
  }
  if (npair == 0 || !lint_free_root(r)) {
    return;
  }
  double *xpos = ARENA_NEW(t->scratch, double, 3 * r->nbody);
  double *xmat = ARENA_NEW(t->scratch, double, 9 * r->nbody);
  double *swapped = ARENA_NEW(t->scratch, double, r->nq);
  int crossed[MAX_PAIR] = {0}, narrow = 0;
  for (int k = 0; k < t->clean->nframe; k++) {
    const double *q = lint_row(t->clean, k);
    memcpy(swapped, q, sizeof *q * (size_t)r->nq);
    for (int i = 0; i < r->nlink; i++) {
      int other = partner(r, i);
      if (other >= 0 && r->link[i].nq == 1 && r->link[other].nq == 1) {
        swapped[r->link[i].qadr] = q[r->link[other].qadr];
        swapped[r->link[other].qadr] = q[r->link[i].qadr];
      }
    }
    double is[MAX_PAIR], was[MAX_PAIR];
    widths(is, r, pair, npair, q, xpos, xmat);
    widths(was, r, pair, npair, swapped, xpos, xmat);
    bool all = true;
    for (int i = 0; i < npair; i++) {
      crossed[i] += is[i] < -0.02;
      all &= is[i] < was[i] - 0.01;
    }
    narrow += all;
  }
  int n = t->clean->nframe;
  struct feet feet;
  feet_find(&feet, r);
  for (int i = 0; i < npair; i++) {
    bool foot = false;
    for (int j = 0; j < feet.n; j++) {
      foot |= feet.link[j] == pair[i][0];
    }
    if (2 * crossed[i] > n) {
      lint_add(t, foot ? LINT_ERROR : LINT_WARNING, "mirrored", -1,
               "%s lies to the right of %s in %.0f %% of frames: left and right are exchanged, or "
               "the motion is mirrored",
               r->link[pair[i][0]].joint_name, r->link[pair[i][1]].joint_name,
               100.0 * crossed[i] / n);
      narrow = 0; // said once
    }
  }
  if (10 * narrow > 9 * n) {
    lint_add(t, LINT_WARNING, "mirrored", -1,
             "hands and feet would lie further apart with left and right exchanged in %.0f %% of "
             "frames: is the motion mirrored, the left foot named on the right side?",
             100.0 * narrow / n);
  }
}
