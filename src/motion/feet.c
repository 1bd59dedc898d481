#include "motion/feet.h"
#include "base/arena.h"
#include "robot/frame.h"
#include <math.h>

// world frame of a link, from the pose of any body on it
static struct frame link_frame(const struct robot *r, int link, const double *xpos,
                               const double *xmat) {
  for (int i = 0; i < r->nbody; i++) {
    const struct robot_body *b = &r->body[i];
    if (b->link == link) {
      return frame_mul(frame_make(xpos + 3 * i, xmat + 9 * i),
                       frame_inverse(frame_make(b->pos, b->rot)));
    }
  }
  return frame_identity();
}

// height of the lowest point of a geom in the world frame g
static double lowest(const struct robot_geom *geom, const struct frame *g) {
  const double *up = g->rot + 6, *s = geom->size, z = g->pos[2]; // up: world z in the geom's axes
  switch (geom->type) {
  case GEOM_SPHERE:
    return z - s[0];
  case GEOM_CAPSULE:
    return z - fabs(up[2]) * s[1] - s[0];
  case GEOM_CYLINDER:
    return z - fabs(up[2]) * s[1] - sqrt(up[0] * up[0] + up[1] * up[1]) * s[0];
  case GEOM_BOX:
    return z - fabs(up[0]) * s[0] - fabs(up[1]) * s[1] - fabs(up[2]) * s[2];
  case GEOM_ELLIPSOID:
    return z - sqrt(pow(up[0] * s[0], 2) + pow(up[1] * s[1], 2) + pow(up[2] * s[2], 2));
  case GEOM_PLANE:
    break;
  }
  return INFINITY;
}

double link_height(const struct robot *r, int link, const double *xpos, const double *xmat) {
  struct frame l = link_frame(r, link, xpos, xmat);
  double z = INFINITY;
  for (int i = 0; i < r->ngeom; i++) {
    const struct robot_geom *g = &r->geom[i];
    if (g->link == link && (g->contype != 0 || g->conaffinity != 0)) {
      struct frame world = frame_mul(l, frame_make(g->pos, g->rot));
      z = fmin(z, lowest(g, &world));
    }
  }
  return z;
}

double feet_height(const struct robot *r, const struct feet *f, const double *xpos,
                   const double *xmat) {
  double z = INFINITY;
  for (int i = 0; i < f->n; i++) {
    z = fmin(z, link_height(r, f->link[i], xpos, xmat));
  }
  return z;
}

void link_position(double x[3], const struct robot *r, int link, const double *xpos,
                   const double *xmat) {
  struct frame l = link_frame(r, link, xpos, xmat);
  memcpy(x, l.pos, sizeof l.pos);
}

bool link_is_leaf(const struct robot *r, int link) {
  for (int i = link + 1; i < r->nlink; i++) {
    if (r->link[i].parent == link) {
      return false;
    }
  }
  return true;
}

void feet_find(struct feet *f, const struct robot *r) {
  f->n = 0;
  struct arena a;
  arena_init(&a);
  double *xpos = ARENA_NEW(&a, double, 3 * r->nbody), *xmat = ARENA_NEW(&a, double, 9 * r->nbody);
  double *z = ARENA_NEW(&a, double, r->nlink), floor_z = INFINITY;
  robot_fk(r, r->qpos0, xpos, xmat);
  for (int i = 0; i < r->nlink; i++) {
    z[i] = link_is_leaf(r, i) ? link_height(r, i, xpos, xmat) : INFINITY;
    floor_z = fmin(floor_z, z[i]);
  }
  for (int i = 0; i < r->nlink && f->n < FEET_MAX; i++) {
    if (isfinite(z[i]) && z[i] < floor_z + 0.1) {
      f->link[f->n++] = i;
    }
  }
  arena_release(&a);
}
