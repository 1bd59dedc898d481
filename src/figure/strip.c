#include "figure/strip.h"
#include "figure/gnuplot.h"
#include <math.h>
#include <stdio.h>

// spheres of this radius and more are drawn as circles, smaller ones are contact points of a foot
static const double CIRCLE_RADIUS = 0.045;
// limbs farther than this to the left are on the far side of the picture
static const double FAR_SIDE = 0.03;
// a robot this many slots from its reference is out of the picture
static const double OUT_OF_SLOT = 0.75;
// half of the film's width, m
static const double FILM_REACH = 1.2;

struct painter {
  struct csv out;
  const struct robot *robot;
  double *xpos, *xmat; // of the pose being drawn
  bool *far;           // per body
  int pose, row;
  double origin[3], u[2]; // the reference's root on the floor; its heading
  double shift;           // of the pose in the picture
};

// ---- one pose

// a point of body b (in its link's frame when geom) to the picture's plane
static void to_picture(const struct painter *p, double out[2], const double x[3]) {
  out[0] = (x[0] - p->origin[0]) * p->u[0] + (x[1] - p->origin[1]) * p->u[1] + p->shift;
  out[1] = x[2];
}

// a tenth of a millimetre is enough for a picture, and short in the file
static double rounded(double x) {
  return round(x * 1e4) / 1e4 + 0.0; // no -0
}

static int put_noted(struct painter *p, enum strip_layer layer, enum strip_shape shape,
                     const double at[2], double dx, double dz, double r, const char *note,
                     struct err *e) {
  csv_int(&p->out, p->pose);
  csv_int(&p->out, p->row);
  csv_int(&p->out, layer);
  csv_int(&p->out, shape);
  csv_real(&p->out, rounded(at[0]));
  csv_real(&p->out, rounded(at[1]));
  csv_real(&p->out, rounded(dx));
  csv_real(&p->out, rounded(dz));
  csv_real(&p->out, rounded(r));
  csv_text(&p->out, note);
  return csv_end(&p->out, e);
}

static int put(struct painter *p, enum strip_layer layer, enum strip_shape shape,
               const double at[2], double dx, double dz, double r, struct err *e) {
  return put_noted(p, layer, shape, at, dx, dz, r, "", e);
}

static int put_segment(struct painter *p, enum strip_layer layer, const double a[3],
                       const double b[3], struct err *e) {
  double pa[2], pb[2];
  to_picture(p, pa, a);
  to_picture(p, pb, b);
  return put(p, layer, STRIP_SEGMENT, pa, pb[0] - pa[0], pb[1] - pa[1], 0, e);
}

static int put_circle(struct painter *p, enum strip_layer layer, const double x[3], double r,
                      struct err *e) {
  double at[2];
  to_picture(p, at, x);
  return put(p, layer, STRIP_CIRCLE, at, 0, 0, r, e);
}

// a geom's point, given in the geom's own frame, in the world: geom and body both sit in the link
static void geom_point(const struct painter *p, double out[3], const struct robot_geom *g,
                       const double local[3]) {
  const struct robot_body *body = &p->robot->body[g->body];
  const double *R = p->xmat + 9 * g->body;
  double link[3], rel[3], in_body[3];
  for (int i = 0; i < 3; i++) {
    link[i] = g->pos[i];
    for (int k = 0; k < 3; k++) {
      link[i] += g->rot[3 * i + k] * local[k];
    }
  }
  for (int i = 0; i < 3; i++) {
    rel[i] = link[i] - body->pos[i];
  }
  for (int i = 0; i < 3; i++) {
    in_body[i] = body->rot[i] * rel[0] + body->rot[3 + i] * rel[1] + body->rot[6 + i] * rel[2];
  }
  for (int i = 0; i < 3; i++) {
    out[i] = p->xpos[3 * g->body + i] + R[3 * i] * in_body[0] + R[3 * i + 1] * in_body[1] +
             R[3 * i + 2] * in_body[2];
  }
}

static int put_box(struct painter *p, enum strip_layer layer, const struct robot_geom *g,
                   struct err *e) {
  for (int corner = 0; corner < 8; corner++) {
    for (int axis = 0; axis < 3; axis++) {
      if (corner & (1 << axis)) {
        continue; // each edge once, from its lower corner
      }
      double a[3], b[3], la[3], lb[3];
      for (int k = 0; k < 3; k++) {
        la[k] = corner & (1 << k) ? g->size[k] : -g->size[k];
        lb[k] = k == axis ? g->size[k] : la[k];
      }
      geom_point(p, a, g, la);
      geom_point(p, b, g, lb);
      if (put_segment(p, layer, a, b, e)) {
        return e->code;
      }
    }
  }
  return 0;
}

static double distance(const double a[3], const double b[3]) {
  return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

static bool is_leaf(const struct robot *r, int body) {
  for (int b = 1; b < r->nbody; b++) {
    if (r->body[b].parent == body) {
      return false;
    }
  }
  return true;
}

static int put_geom(struct painter *p, enum strip_layer layer, int index, struct err *e) {
  static const double zero[3];
  const struct robot *r = p->robot;
  const struct robot_geom *g = &r->geom[index];
  const double *joint = p->xpos + 3 * g->body;
  double a[3], b[3];
  geom_point(p, a, g, zero);
  switch (g->type) {
  case GEOM_SPHERE:
  case GEOM_ELLIPSOID:
    if (g->size[0] < CIRCLE_RADIUS) {
      // a foot: the joint to each contact point, and the points among themselves
      for (int k = index + 1; k < r->ngeom; k++) {
        if (r->geom[k].body == g->body && r->geom[k].type == GEOM_SPHERE) {
          geom_point(p, b, &r->geom[k], zero);
          if (put_segment(p, layer, a, b, e)) {
            return e->code;
          }
        }
      }
      return put_segment(p, layer, joint, a, e);
    }
    if (distance(joint, a) > 2 * g->size[0]) { // a head needs a neck
      put_segment(p, layer, joint, a, e);
    } else if (!is_leaf(r, g->body)) { // a hip is where the limbs meet
      return 0;
    }
    return e->code ? e->code : put_circle(p, layer, a, g->size[0], e);
  case GEOM_CAPSULE:
  case GEOM_CYLINDER:
    // inner limbs are drawn by the line from joint to joint
    if (!is_leaf(r, g->body) && r->body[g->body].parent != 0) {
      return 0;
    }
    geom_point(p, a, g, (const double[3]){0, 0, -g->size[1]});
    geom_point(p, b, g, (const double[3]){0, 0, g->size[1]});
    if (r->body[g->body].parent != 0) { // a hand reaches from its joint to the capsule's far end
      return put_segment(p, layer, joint, distance(joint, a) > distance(joint, b) ? a : b, e);
    }
    return put_segment(p, layer, a, b, e);
  case GEOM_BOX:
    return put_box(p, layer, g, e);
  case GEOM_PLANE:
    break;
  }
  return 0;
}

// limbs of one side of the robot
static int put_robot(struct painter *p, enum strip_layer layer, const double *qpos, bool far,
                     struct err *e) {
  const struct robot *r = p->robot;
  robot_fk(r, qpos, p->xpos, p->xmat);
  for (int b = 1; b < r->nbody; b++) {
    int parent = r->body[b].parent;
    if (parent > 0 && p->far[b] == far &&
        put_segment(p, layer, p->xpos + 3 * parent, p->xpos + 3 * b, e)) {
      return e->code;
    }
  }
  for (int g = 0; g < r->ngeom; g++) {
    if (r->geom[g].body > 0 && p->far[r->geom[g].body] == far && put_geom(p, layer, g, e)) {
      return e->code;
    }
  }
  return 0;
}

// ---- all poses

// direction the root faces on the floor; a root that lies keeps the last one
static void find_heading(double u[2], const double *R) {
  double n = hypot(R[0], R[3]);
  if (n > 0.3) {
    u[0] = R[0] / n;
    u[1] = R[3] / n;
  }
}

// marks on the floor for the film: the camera goes with the reference, the floor passes by
static int put_floor(struct painter *p, double walked, struct err *e) {
  for (double x = ceil((walked - FILM_REACH) / 0.5) * 0.5; x < walked + FILM_REACH; x += 0.5) {
    if (put(p, STRIP_FLOOR, STRIP_SEGMENT, (const double[2]){x - walked, 0}, 0, -0.05, 0, e)) {
      return e->code;
    }
  }
  return 0;
}

static int put_pose(struct painter *p, const struct traj *t, int frame, double slot,
                    const char *note, struct err *e) {
  const struct robot *r = p->robot;
  const double *qpos = t->qpos + (size_t)frame * (size_t)r->nq;
  const double *ref = t->ref + (size_t)frame * (size_t)r->nq;
  double at[2] = {p->shift, 0};
  robot_fk(r, ref, p->xpos, p->xmat);
  p->origin[0] = p->xpos[3];
  p->origin[1] = p->xpos[4];
  find_heading(p->u, p->xmat + 9);
  if (put_noted(p, STRIP_REFERENCE, STRIP_POSE, at, t->time[frame], 0, 0, note, e) ||
      put_robot(p, STRIP_REFERENCE, ref, true, e) || put_robot(p, STRIP_REFERENCE, ref, false, e)) {
    return e->code;
  }
  // a robot that fell stays behind: it leaves its slot, and the picture
  robot_fk(r, qpos, p->xpos, NULL);
  to_picture(p, at, p->xpos + 3);
  if (slot > 0 && fabs(at[0] - p->shift) > OUT_OF_SLOT * slot) {
    return 0;
  }
  bool failed = t->failed[frame] > 0;
  if (put_robot(p, failed ? STRIP_FAILED : STRIP_FAR, qpos, true, e)) {
    return e->code;
  }
  return put_robot(p, failed ? STRIP_FAILED : STRIP_NEAR, qpos, false, e);
}

static int put_error_curve(struct painter *p, const struct traj *t, struct err *e) {
  for (int i = 0; i < t->nframe; i++) {
    if (t->failed[i] > 0) {
      double at[2] = {t->time[i], 0};
      return put(p, STRIP_NEAR, STRIP_FAILURE, at, 0, 0, 0, e);
    }
    if (put(p, STRIP_NEAR, STRIP_ERROR, (double[2]){t->time[i], t->e_track_cm[i]}, 0, 0, 0, e)) {
      return e->code;
    }
  }
  return 0;
}

// height that the reference's joints reach: about the width that a pose needs
static double reach(struct painter *p, const struct traj *t) {
  double top = 0.3;
  for (int i = 0; i < t->nframe; i++) {
    robot_fk(p->robot, t->ref + (size_t)i * (size_t)p->robot->nq, p->xpos, NULL);
    for (int b = 1; b < p->robot->nbody; b++) {
      top = fmax(top, p->xpos[3 * b + 2]);
    }
  }
  return top;
}

static int put_poses(struct painter *p, const char *title, const struct traj *t, int npose,
                     int per_row, struct err *e) {
  const struct robot *r = p->robot;
  double slot = per_row ? reach(p, t) : 0, walked = 0, last[2] = {0, 0};
  for (int i = 0, frame = 0; i < npose; i++) {
    int target = npose > 1 ? (int)((long long)i * (t->nframe - 1) / (npose - 1)) : 0;
    // metres walked by the reference, frame by frame
    for (; frame <= target; frame++) {
      robot_fk(r, t->ref + (size_t)frame * (size_t)r->nq, p->xpos, p->xmat);
      find_heading(p->u, p->xmat + 9);
      walked += frame ? (p->xpos[3] - last[0]) * p->u[0] + (p->xpos[4] - last[1]) * p->u[1] : 0;
      last[0] = p->xpos[3];
      last[1] = p->xpos[4];
    }
    p->pose = i;
    p->row = per_row ? i / per_row : 0;
    p->shift = per_row ? (i % per_row) * slot : 0;
    bool film = per_row == 0;
    if ((film && i > 0 && csv_break(&p->out, e)) || (film && put_floor(p, walked, e)) ||
        put_pose(p, t, target, slot, i == 0 ? title : "", e)) {
      return e->code;
    }
  }
  return per_row ? put_error_curve(p, t, e) : 0;
}

int strip_write(const char *path, const char *title, const struct robot *r, const struct traj *t,
                int npose, int per_row, struct err *e) {
  struct arena a;
  arena_init(&a);
  struct painter p = {.robot = r, .u = {1, 0}};
  p.xpos = ARENA_NEW(&a, double, 3 * r->nbody);
  p.xmat = ARENA_NEW(&a, double, 9 * r->nbody);
  p.far = ARENA_NEW(&a, bool, r->nbody);
  robot_fk(r, r->qpos0, p.xpos, NULL);
  for (int b = 1; b < r->nbody; b++) {
    p.far[b] = p.xpos[3 * b + 1] - p.xpos[4] > FAR_SIDE;
  }
  remove(path); // drawing again replaces the file
  if (csv_open(&p.out, path, "pose,row,layer,shape,x,z,dx,dz,r,note", e) == 0) {
    put_poses(&p, title, t, npose < t->nframe ? npose : t->nframe, per_row, e);
  }
  csv_close(&p.out);
  arena_release(&a);
  return e->code;
}

// ---- pictures

struct extent { // what gnuplot must know before it draws
  int npose, rows, per_row;
  double slot, top, fail_time, e_max, duration;
  const char *title;
};

static int measure(struct extent *x, struct arena *a, const char *drawing, struct err *e) {
  static const char *const name[] = {"pose", "row", "shape", "x", "z", "dx", "dz", "r"};
  double *col[8];
  struct csv_table t;
  if (csv_read(&t, a, drawing, e)) {
    return e->code;
  }
  for (int i = 0; i < 8; i++) {
    if (csv_reals(&col[i], a, &t, name[i], e)) {
      return e->code;
    }
  }
  *x = (struct extent){.fail_time = -1, .title = ""};
  int note = csv_find(&t, "note");
  for (int i = 0; i < t.nrow; i++) {
    double at = col[3][i], z = col[4][i], dx = col[5][i], dz = col[6][i], r = col[7][i];
    switch ((int)col[2][i]) {
    case STRIP_POSE:
      x->npose++;
      x->rows = (int)col[1][i] + 1;
      x->per_row += x->rows == 1;
      x->slot = x->rows == 1 ? at / fmax(x->per_row - 1, 1) : x->slot;
      x->duration = dx;
      if (note >= 0 && csv_cell(&t, i, note)[0]) {
        x->title = csv_cell(&t, i, note);
      }
      break;
    case STRIP_ERROR:
      x->e_max = fmax(x->e_max, z);
      break;
    case STRIP_FAILURE:
      x->fail_time = at;
      break;
    default:
      x->top = fmax(x->top, z + fmax(dz, 0) + r);
    }
  }
  return x->npose ? 0 : err_set(e, EXIT_USAGE, "%s: no pose in it", drawing);
}

static int draw(const char *script, const char *drawing, const char *out, const char *const *suffix,
                int n, struct err *e) {
  struct arena a;
  arena_init(&a);
  struct extent x;
  if (measure(&x, &a, drawing, e) == 0) {
    char number[9][32], path[4096];
    const double value[9] = {
        x.npose,   x.rows,      x.per_row, x.slot,
        x.top,     x.fail_time, x.e_max,   100 * x.duration / fmax(x.npose - 1, 1),
        x.duration};
    static const char *const name[9] = {"npose",     "rows",  "per_row", "slot",    "top",
                                        "fail_time", "e_max", "delay",   "duration"};
    struct gnuplot_var vars[11] = {{"data", drawing}, {"title", x.title}};
    for (int i = 0; i < 9; i++) {
      snprintf(number[i], sizeof number[i], "%.6g", value[i]);
      vars[2 + i] = (struct gnuplot_var){name[i], number[i]};
    }
    for (int i = 0; i < n && !e->code; i++) {
      snprintf(path, sizeof path, "%s%s", out, suffix[i]);
      gnuplot_run(script, path, vars, 11, e);
    }
  }
  arena_release(&a);
  return e->code;
}

int strip_picture(const char *drawing, const char *out, struct err *e) {
  return draw("strip", drawing, out, (const char *const[2]){".svg", ".png"}, 2, e);
}

int strip_film(const char *drawing, const char *out, struct err *e) {
  return draw("film", drawing, out, (const char *const[1]){".gif"}, 1, e);
}
