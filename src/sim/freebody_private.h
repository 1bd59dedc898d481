// Contacts of free bodies, between freebody_shape.c (geometry) and freebody.c (dynamics).
#pragma once
#include "sim/freebody.h"
#include "sim/softplane.h"

enum { FREEBODY_NV = 6 * FREEBODY_MAX };

struct fb_pose {
  const double *pos;
  double rot[9];
};

struct fb_contact {
  int event;       // bit of the contact
  int body[2];     // the force acts on body[1], its reaction on body[0]; -1: the plane
  double r;        // signed distance
  double pos[3];   // midpoint, world
  double frame[9]; // rows: normal from body[0] to body[1], two tangents
  double local[3]; // plane contacts: the body's own point, body axes
};

struct fb_geometry {
  int n;
  struct fb_contact contact[FREEBODY_MAX_CONTACTS];
  struct softplane softplane[FREEBODY_MAX]; // of soft boxes near the plane
  bool near[FREEBODY_MAX];
};

int fb_nevent(const struct freebody_scene *s);
void fb_pose(struct fb_pose *p, const double *qpos, int body);
// half sizes etc. with the parameters u in place of the scene's
void fb_size(double size[3], const struct freebody_scene *s, int body, const double *u);

// Contacts nearer than reach (>= 0), and those with a bit in *active (NULL: none are forced).
void fb_contacts(struct fb_geometry *g, const struct freebody_scene *s, const struct fb_pose *pose,
                 const double *u, double reach, const uint64_t *active);
// Cotangents of one contact's geometry. fb_contacts_bwd turns them into those of qpos (6 nbody,
// tangent; added to) and of the size of body 0 (3; added to).
struct fb_contact_bar {
  double r, pos[3], frame[9];
};
void fb_contacts_bwd(double *q_bar, double size_bar[3], const struct fb_geometry *g,
                     const struct freebody_scene *s, const struct fb_pose *pose, const double *u,
                     const struct fb_contact_bar *bar);
// All signed distances in the order of the bits.
void fb_distances(double *r, const struct freebody_scene *s, const struct fb_pose *pose,
                  const double *u);
