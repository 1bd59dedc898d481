// Distances, contact points and frames of free bodies, forward and adjoint, with MuJoCo's choices
// (engine_collision_primitive): which points of a shape touch a plane, and where contacts stand.
//
// A plane contact is a point x of the body: r = x_z - floor, and the contact stands at the midpoint
// of x and its projection. So its adjoint is that of x, shape by shape.
#include "sim/freebody_private.h"
#include "sim/rotation.h"
#include <math.h>
#include <string.h>

static const int points_of[] = {
    [FREEBODY_SPHERE] = 1,   [FREEBODY_CAPSULE] = 2, [FREEBODY_ELLIPSOID] = 1,
    [FREEBODY_CYLINDER] = 4, [FREEBODY_BOX] = 8,     [FREEBODY_SOFT_BOX] = 4,
};

// mass and principal inertia by shape

void freebody_set_density(struct freebody *b, double density) {
  const double *s = b->size;
  double *inertia = b->inertia, r = s[0], length = 2 * s[1];
  switch (b->shape) {
  case FREEBODY_SPHERE:
    b->mass = density * 4 * M_PI * r * r * r / 3;
    inertia[0] = inertia[1] = inertia[2] = 2 * b->mass * r * r / 5;
    break;
  case FREEBODY_CAPSULE: {
    b->mass = density * M_PI * (r * r * length + 4 * r * r * r / 3);
    double ball = b->mass * 4 * r / (4 * r + 3 * length), tube = b->mass - ball;
    inertia[0] = inertia[1] = tube * (3 * r * r + length * length) / 12 + 2 * ball * r * r / 5 +
                              ball * length * (3 * r + 2 * length) / 8;
    inertia[2] = tube * r * r / 2 + 2 * ball * r * r / 5;
    break;
  }
  case FREEBODY_CYLINDER:
    b->mass = density * M_PI * r * r * length;
    inertia[0] = inertia[1] = b->mass * (3 * r * r + length * length) / 12;
    inertia[2] = b->mass * r * r / 2;
    break;
  case FREEBODY_ELLIPSOID:
  case FREEBODY_BOX:
  case FREEBODY_SOFT_BOX: {
    bool box = b->shape != FREEBODY_ELLIPSOID;
    b->mass = density * (box ? 8 : 4 * M_PI / 3) * s[0] * s[1] * s[2];
    for (int i = 0; i < 3; i++) {
      double y = s[(i + 1) % 3], z = s[(i + 2) % 3];
      inertia[i] = b->mass * (y * y + z * z) / (box ? 3 : 5);
    }
    break;
  }
  }
}

int fb_nevent(const struct freebody_scene *s) {
  int n = s->pair;
  for (int b = 0; b < s->nbody && s->plane; b++) {
    n += points_of[s->body[b].shape];
  }
  return n;
}

void fb_pose(struct fb_pose *p, const double *qpos, int body) {
  p->pos = qpos + 7 * body;
  quat_matrix(p->rot, qpos + 7 * body + 3);
}

void fb_size(double size[3], const struct freebody_scene *s, int body, const double *u) {
  memcpy(size, s->body[body].size, sizeof(double[3]));
  if (s->input == FREEBODY_SIDE && body == 0) {
    size[0] = size[1] = size[2] = 0.5 * u[0];
  }
}

// ---- points of shapes that may touch the plane

// Cylinders, MuJoCo's four points: vec is the rim's direction that points most downwards, axis the
// cap that is lower.
struct cylinder {
  double axis[3], sign;     // world; axis[2] <= 0 after the sign
  double vec[3], length;    // of -n + axis axis_z before scaling
  bool flat;                // caps level with the plane: the body's x axis instead
  double side[3], side_len; // vec x axis
};

static void cylinder_fwd(struct cylinder *c, const double R[9], double radius) {
  c->sign = R[8] > 0 ? -1 : 1;
  for (int i = 0; i < 3; i++) {
    c->axis[i] = c->sign * R[3 * i + 2];
  }
  for (int i = 0; i < 3; i++) {
    c->vec[i] = c->axis[i] * c->axis[2] - (i == 2);
  }
  c->length = sqrt(vec3_dot(c->vec, c->vec));
  c->flat = c->length < 1e-12;
  for (int i = 0; i < 3; i++) {
    c->vec[i] = radius * (c->flat ? R[3 * i] : c->vec[i] / c->length);
  }
  vec3_cross(c->side, c->vec, c->axis);
  c->side_len = sqrt(vec3_dot(c->side, c->side));
}

// Point k of a cylinder relative to its centre, world axes: coefficients of axis, vec, unit side.
static const double cylinder_point[4][3] = {{1, 1, 0}, {-1, 1, 0}, {1, -0.5, 1}, {1, -0.5, -1}};
static const double sqrt3_half = 0.86602540378443864676;

// Point k of a shape, body axes. Only for soft boxes does softplane have to be there.
static void shape_point(double local[3], enum freebody_shape shape, const double size[3], int k,
                        const double R[9], const struct softplane *softplane) {
  switch (shape) {
  case FREEBODY_SPHERE:
  case FREEBODY_CAPSULE:
    for (int i = 0; i < 3; i++) {
      local[i] = -size[0] * R[6 + i];
    }
    if (shape == FREEBODY_CAPSULE) {
      local[2] += (k == 0 ? 1 : -1) * size[1];
    }
    break;
  case FREEBODY_ELLIPSOID: {
    double v[3] = {R[6] * size[0], R[7] * size[1], R[8] * size[2]};
    double length = sqrt(vec3_dot(v, v));
    for (int i = 0; i < 3; i++) {
      local[i] = -size[i] * v[i] / length;
    }
    break;
  }
  case FREEBODY_CYLINDER: {
    struct cylinder c;
    double x[3];
    cylinder_fwd(&c, R, size[0]);
    const double *w = cylinder_point[k];
    for (int i = 0; i < 3; i++) {
      x[i] = w[0] * size[1] * c.axis[i] + w[1] * c.vec[i] +
             w[2] * sqrt3_half * size[0] * c.side[i] / c.side_len;
    }
    mat3_tmul(local, R, x);
    break;
  }
  case FREEBODY_BOX:
    for (int i = 0; i < 3; i++) {
      local[i] = (k >> i & 1 ? 1 : -1) * size[i];
    }
    break;
  case FREEBODY_SOFT_BOX:
    memcpy(local, softplane->point[k], sizeof(double[3]));
    break;
  }
}

// Cotangent of a point's world position relative to the centre, which is R local(R, size) -> of the
// rotation (tangent, body axes) and the size. Soft boxes have their own.
static void shape_point_bwd(double turn_bar[3], double size_bar[3], enum freebody_shape shape,
                            const double size[3], int k, const double R[9], const double local[3],
                            const double x_bar[3]) {
  double local_bar[3], turn[3], up_bar[3] = {0}; // up_bar: of R's third row, the plane's normal
  const double *up = R + 6;
  mat3_tmul(local_bar, R, x_bar);
  vec3_cross(turn, local, local_bar);
  vec3_add(turn_bar, turn, 1);
  switch (shape) {
  case FREEBODY_SPHERE:
  case FREEBODY_CAPSULE:
    vec3_add(up_bar, local_bar, -size[0]);
    size_bar[0] -= vec3_dot(local_bar, up);
    if (shape == FREEBODY_CAPSULE) {
      size_bar[1] += (k == 0 ? 1 : -1) * local_bar[2];
    }
    break;
  case FREEBODY_ELLIPSOID: {
    double v[3] = {up[0] * size[0], up[1] * size[1], up[2] * size[2]};
    double length = sqrt(vec3_dot(v, v)), dot = 0, unit_bar[3];
    for (int i = 0; i < 3; i++) {
      unit_bar[i] = -size[i] * local_bar[i];
      size_bar[i] -= local_bar[i] * v[i] / length;
      dot += unit_bar[i] * v[i] / length;
    }
    for (int i = 0; i < 3; i++) {
      double v_bar = (unit_bar[i] - dot * v[i] / length) / length;
      up_bar[i] += v_bar * size[i];
      size_bar[i] += v_bar * up[i];
    }
    break;
  }
  case FREEBODY_CYLINDER: {
    // in body axes: axis = (0, 0, sign), vec the horizontal part of -up
    double sign = up[2] > 0 ? -1 : 1, length = sqrt(up[0] * up[0] + up[1] * up[1]);
    const double *w = cylinder_point[k];
    double e[2] = {-up[0] / length, -up[1] / length}; // vec / radius
    // the side, vec x axis, is sign (e_y, -e_x) radius long
    double half = sqrt3_half * w[2] * sign;
    double e_bar[2] = {size[0] * (w[1] * local_bar[0] - half * local_bar[1]),
                       size[0] * (w[1] * local_bar[1] + half * local_bar[0])};
    size_bar[1] += w[0] * sign * local_bar[2];
    size_bar[0] += w[1] * (local_bar[0] * e[0] + local_bar[1] * e[1]) +
                   half * (local_bar[0] * e[1] - local_bar[1] * e[0]);
    double dot = e_bar[0] * e[0] + e_bar[1] * e[1];
    for (int i = 0; i < 2 && length >= 1e-12; i++) {
      up_bar[i] -= (e_bar[i] - dot * e[i]) / length;
    }
    break;
  }
  case FREEBODY_BOX:
    for (int i = 0; i < 3; i++) {
      size_bar[i] += (k >> i & 1 ? 1 : -1) * local_bar[i];
    }
    break;
  case FREEBODY_SOFT_BOX:
    break;
  }
  // up = R' e_z, so its change is -delta x up
  vec3_cross(turn, up_bar, up);
  vec3_add(turn_bar, turn, 1);
}

// lowest corner of a box relative to its centre
static double box_depth(const double size[3], const double R[9]) {
  return -(fabs(R[6]) * size[0] + fabs(R[7]) * size[1] + fabs(R[8]) * size[2]);
}

// ---- frames

// Tangents of MuJoCo: the y axis (z for a normal along y) made orthogonal to the normal, and n x y;
// on capsules the axis takes the place of y.
static void make_frame(double frame[9], const double hint[3]) {
  double *n = frame, *y = frame + 3, *z = frame + 6;
  double along = vec3_dot(n, hint);
  for (int i = 0; i < 3; i++) {
    y[i] = hint[i] - along * n[i];
  }
  double length = sqrt(vec3_dot(y, y));
  for (int i = 0; i < 3; i++) {
    y[i] /= length;
  }
  vec3_cross(z, n, y);
}

static void frame_bwd(double n_bar[3], double hint_bar[3], const double frame[9],
                      const double frame_bar[9], const double hint[3]) {
  const double *n = frame, *y = frame + 3;
  double along = vec3_dot(n, hint), raw[3], y_bar[3], cross[3];
  for (int i = 0; i < 3; i++) {
    raw[i] = hint[i] - along * n[i];
    y_bar[i] = frame_bar[3 + i];
    n_bar[i] += frame_bar[i];
  }
  double length = sqrt(vec3_dot(raw, raw));
  vec3_cross(cross, y, frame_bar + 6); // z_bar . (n x y) = n . (y x z_bar)
  vec3_add(n_bar, cross, 1);
  vec3_cross(cross, frame_bar + 6, n); // = y . (z_bar x n)
  vec3_add(y_bar, cross, 1);
  double dot = vec3_dot(y_bar, y), raw_bar[3];
  for (int i = 0; i < 3; i++) {
    raw_bar[i] = (y_bar[i] - dot * y[i]) / length;
  }
  double along_bar = -vec3_dot(raw_bar, n);
  vec3_add(n_bar, raw_bar, -along);
  vec3_add(n_bar, hint, along_bar);
  vec3_add(hint_bar, raw_bar, 1);
  vec3_add(hint_bar, n, along_bar);
}

static const double y_axis[3] = {0, 1, 0}, z_axis[3] = {0, 0, 1};

// the capsule's axis where it is not upright
static bool axis_hint(double hint[3], const struct freebody *b, const double R[9]) {
  if (b->shape != FREEBODY_CAPSULE || R[2] * R[2] + R[5] * R[5] < 1e-30) {
    memcpy(hint, y_axis, sizeof(double[3]));
    return false;
  }
  for (int i = 0; i < 3; i++) {
    hint[i] = R[3 * i + 2];
  }
  return true;
}

// ---- contacts

static struct fb_contact *add(struct fb_geometry *g) {
  BUG_IF(g->n == FREEBODY_MAX_CONTACTS);
  return &g->contact[g->n++];
}

static void make_softplane(struct softplane *o, const struct freebody_scene *s,
                           const struct fb_pose *p, const double size[3]) {
  softplane_fwd(o, size, p->rot + 6, p->pos[2] - s->floor, s->softness);
}

static void plane_contacts(struct fb_geometry *g, const struct freebody_scene *s,
                           const struct fb_pose *p, const double *u, double reach, uint64_t active,
                           int body, int first) {
  const struct freebody *b = &s->body[body];
  int n = points_of[b->shape];
  double size[3], deepest = 0;
  uint64_t own = (active >> first) & (((uint64_t)1 << n) - 1);
  fb_size(size, s, body, u);
  g->near[body] = true;
  if (b->shape == FREEBODY_BOX || b->shape == FREEBODY_SOFT_BOX) {
    // no point, soft or hard, is lower than the lowest corner
    deepest = p->pos[2] - s->floor + box_depth(size, p->rot);
    if (deepest >= reach && !own) {
      g->near[body] = false;
      return;
    }
  }
  if (b->shape == FREEBODY_SOFT_BOX) {
    make_softplane(&g->softplane[body], s, p, size);
  }
  for (int k = 0; k < n; k++) {
    double local[3], x[3];
    shape_point(local, b->shape, size, k, p->rot, &g->softplane[body]);
    mat3_mul(x, p->rot, local);
    double r = p->pos[2] + x[2] - s->floor;
    bool forced = own >> k & 1;
    // of a box only the lower half of the corners count, as in MuJoCo
    if (!forced && (r >= reach || (b->shape == FREEBODY_BOX && x[2] > 0))) {
      continue;
    }
    struct fb_contact *c = add(g);
    *c = (struct fb_contact){.event = first + k, .body = {-1, body}, .r = r};
    memcpy(c->local, local, sizeof local);
    for (int i = 0; i < 3; i++) {
      c->pos[i] = p->pos[i] + x[i];
    }
    c->pos[2] -= 0.5 * r;
    double hint[3];
    axis_hint(hint, b, p->rot);
    memcpy(c->frame, z_axis, sizeof z_axis);
    make_frame(c->frame, hint);
  }
}

static double pair_distance(const struct freebody_scene *s, const struct fb_pose *pose,
                            double between[3]) {
  for (int i = 0; i < 3; i++) {
    between[i] = pose[1].pos[i] - pose[0].pos[i];
  }
  return sqrt(vec3_dot(between, between)) - s->body[0].size[0] - s->body[1].size[0];
}

static const double *pair_hint(const double n[3]) {
  return fabs(n[1]) < 0.5 ? y_axis : z_axis;
}

void fb_contacts(struct fb_geometry *g, const struct freebody_scene *s, const struct fb_pose *pose,
                 const double *u, double reach, const uint64_t *active) {
  uint64_t bits = active ? *active : 0;
  int first = 0;
  g->n = 0;
  for (int b = 0; b < s->nbody && s->plane; b++) {
    plane_contacts(g, s, &pose[b], u, reach, bits, b, first);
    first += points_of[s->body[b].shape];
  }
  if (s->pair) {
    double between[3], r = pair_distance(s, pose, between);
    if (r < reach || bits >> first & 1) {
      struct fb_contact *c = add(g);
      *c = (struct fb_contact){.event = first, .body = {0, 1}, .r = r};
      double length = r + s->body[0].size[0] + s->body[1].size[0];
      for (int i = 0; i < 3; i++) {
        c->frame[i] = between[i] / length;
        c->pos[i] = pose[0].pos[i] + c->frame[i] * (s->body[0].size[0] + 0.5 * r);
      }
      make_frame(c->frame, pair_hint(c->frame));
    }
  }
}

void fb_contacts_bwd(double *q_bar, double size_bar[3], const struct fb_geometry *g,
                     const struct freebody_scene *s, const struct fb_pose *pose, const double *u,
                     const struct fb_contact_bar *bar) {
  double point_bar[FREEBODY_MAX][4][3] = {{{0}}};
  for (int i = 0; i < g->n; i++) {
    const struct fb_contact *c = &g->contact[i];
    const struct fb_contact_bar *o = &bar[i];
    if (c->body[0] >= 0) { // two spheres: everything hangs on the line between the centres
      const double *n = c->frame;
      double length = c->r + s->body[0].size[0] + s->body[1].size[0];
      double lever = s->body[0].size[0] + 0.5 * c->r;
      double n_bar[3] = {0}, no_hint[3] = {0};
      frame_bwd(n_bar, no_hint, c->frame, o->frame, pair_hint(n));
      vec3_add(n_bar, o->pos, lever);
      double r_bar = o->r + 0.5 * vec3_dot(n, o->pos), dot = vec3_dot(n, n_bar);
      for (int k = 0; k < 3; k++) {
        double between = (n_bar[k] - dot * n[k]) / length + r_bar * n[k];
        q_bar[k] += o->pos[k] - between;
        q_bar[6 + k] += between;
      }
      continue;
    }
    int b = c->body[1];
    const struct fb_pose *p = &pose[b];
    double x_bar[3] = {o->pos[0], o->pos[1], 0.5 * o->pos[2] + o->r}, size[3], hint[3];
    double *turn_bar = q_bar + 6 * b + 3, *own_size = b == 0 ? size_bar : (double[3]){0};
    vec3_add(q_bar + 6 * b, x_bar, 1);
    fb_size(size, s, b, u);
    int k = c->event - (b == 0 ? 0 : points_of[s->body[0].shape]);
    shape_point_bwd(turn_bar, own_size, s->body[b].shape, size, k, p->rot, c->local, x_bar);
    if (s->body[b].shape == FREEBODY_SOFT_BOX) {
      mat3_tmul(point_bar[b][k], p->rot, x_bar);
    }
    if (axis_hint(hint, &s->body[b], p->rot)) {
      double n_bar[3] = {0}, axis_bar[3] = {0}, local_bar[3], turn[3];
      frame_bwd(n_bar, axis_bar, c->frame, o->frame, hint);
      mat3_tmul(local_bar, p->rot, axis_bar);
      vec3_cross(turn, z_axis, local_bar);
      vec3_add(turn_bar, turn, 1);
    }
  }
  for (int b = 0; b < s->nbody && s->plane; b++) {
    if (s->body[b].shape == FREEBODY_SOFT_BOX && g->near[b]) {
      double up_bar[3] = {0}, height_bar = 0, half_bar[3] = {0}, turn[3];
      softplane_bwd(up_bar, &height_bar, half_bar, &g->softplane[b], point_bar[b]);
      q_bar[6 * b + 2] += height_bar;
      vec3_cross(turn, up_bar, pose[b].rot + 6);
      vec3_add(q_bar + 6 * b + 3, turn, 1);
      if (b == 0) {
        vec3_add(size_bar, half_bar, 1);
      }
    }
  }
}

void fb_distances(double *r, const struct freebody_scene *s, const struct fb_pose *pose,
                  const double *u) {
  for (int b = 0; b < s->nbody && s->plane; b++) {
    const struct freebody *body = &s->body[b];
    int n = points_of[body->shape];
    double size[3], local[3], x[3];
    struct softplane softplane;
    fb_size(size, s, b, u);
    double height = pose[b].pos[2] - s->floor, lowest = height;
    if (body->shape == FREEBODY_SOFT_BOX) {
      lowest += box_depth(size, pose[b].rot);
      if (lowest < 0) {
        make_softplane(&softplane, s, &pose[b], size);
      }
    }
    for (int k = 0; k < n; k++) {
      if (body->shape == FREEBODY_SOFT_BOX && lowest >= 0) {
        *r++ = lowest; // only the sign counts
        continue;
      }
      shape_point(local, body->shape, size, k, pose[b].rot, &softplane);
      mat3_mul(x, pose[b].rot, local);
      *r++ = height + x[2];
    }
  }
  if (s->pair) {
    double between[3];
    *r = pair_distance(s, pose, between);
  }
}

double freebody_clearance(const struct freebody_scene *s, int body, const double *qpos) {
  struct fb_pose p;
  double lowest = INFINITY;
  fb_pose(&p, qpos, body);
  const struct freebody *b = &s->body[body];
  enum freebody_shape shape = b->shape == FREEBODY_SOFT_BOX ? FREEBODY_BOX : b->shape;
  for (int k = 0; k < points_of[shape]; k++) {
    double local[3], x[3];
    shape_point(local, shape, b->size, k, p.rot, NULL);
    mat3_mul(x, p.rot, local);
    lowest = fmin(lowest, p.pos[2] + x[2] - s->floor);
  }
  return lowest;
}
