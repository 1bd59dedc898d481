// Reference features of every frame, and the observation's blocks.
#include "task/track_private.h"
#include <sleef.h>
#include <stdio.h>
#include <string.h>

// R e_x, then R e_z
static void rot_columns(double out[6], const double *R) {
  for (int r = 0; r < 3; r++) {
    out[r] = R[3 * r];
    out[3 + r] = R[3 * r + 2];
  }
}

static void rot_transpose(double out[9], const double *R) {
  for (int i = 0; i < 9; i++) {
    out[i] = R[3 * (i % 3) + i / 3];
  }
}

static void rot_product(double out[9], const double *A, const double *B) {
  for (int r = 0; r < 3; r++) {
    for (int c = 0; c < 3; c++) {
      out[3 * r + c] = A[3 * r] * B[c] + A[3 * r + 1] * B[3 + c] + A[3 * r + 2] * B[6 + c];
    }
  }
}

// Coefficients of R(angle) = u u' + cos (I - u u') + sin [u], columns x and z, for a turn about u.
static void rot_of_axis(struct track_rot *rot, const double *u) {
  static const int column[2] = {0, 2};
  for (int k = 0; k < 2; k++) {
    int c = column[k];
    double e[3] = {c == 0, c == 1, c == 2};
    double cross[3] = {u[1] * e[2] - u[2] * e[1], u[2] * e[0] - u[0] * e[2],
                       u[0] * e[1] - u[1] * e[0]};
    for (int r = 0; r < 3; r++) {
      rot->fixed[3 * k + r] = u[r] * u[c];
      rot->c[3 * k + r] = e[r] - u[r] * u[c];
      rot->s[3 * k + r] = cross[r];
    }
  }
}

// The joints of the paper's observation and residual: one for every body but the root, in the order
// of the bodies; a body with several hinges has one for each, a welded body one that never turns.
static void list_rotations(struct track *t, struct arena *a) {
  const struct robot *r = t->robot;
  struct track_private *p = t->priv;
  p->rot = ARENA_NEW(a, struct track_rot, r->nbody + r->nlink);
  for (int b = 1; b < r->nbody; b++) {
    const struct robot_body *body = &r->body[b];
    int above = r->body[body->parent].link;
    if (b == p->root || body->link < 0) {
      continue;
    }
    if (body->link == above) {
      struct track_rot *rot = &p->rot[p->nrot++];
      rot->qadr = rot->dof = -1;
      rot_of_axis(rot, (const double[3]){1, 0, 0});
      continue;
    }
    int chain = 0;
    for (int l = body->link; l != above; l = r->link[l].parent) {
      chain++;
    }
    // up the chain, innermost link first in the list; M turns a link's axes into the body's, which
    // is where the MJCF gives the hinge's axis
    double M[9];
    rot_transpose(M, body->rot);
    for (int l = body->link, i = chain - 1; i >= 0; l = r->link[l].parent, i--) {
      const struct robot_link *link = &r->link[l];
      struct track_rot *rot = &p->rot[p->nrot + i];
      double up[9], next[9];
      rot->qadr = link->qadr;
      rot->dof = link->dof;
      rot_of_axis(rot, (const double[3]){M[link->axis], M[3 + link->axis], M[6 + link->axis]});
      rot_transpose(up, link->rot);
      rot_product(next, M, up);
      memcpy(M, next, sizeof M);
    }
    p->nrot += chain;
    p->nturn += chain;
  }
}

bool track_shows_rotations(const struct spec *s) {
  return s->observation == OBSERVATION_PAPER ||
         (s->reward == REWARD_ADD && s->add_residual == RESIDUAL_PAPER);
}

static void fill_frame(double *f, const struct track *t, int frame) {
  const struct robot *r = t->robot;
  const struct motion *mo = t->motion;
  const struct track_private *p = t->priv;
  const double *q = mo->qpos + (size_t)frame * mo->nq, *v = mo->qvel + (size_t)frame * mo->nv;
  const double *x = mo->xpos + (size_t)frame * r->nbody * 3;
  const double *root_mat = mo->xmat + ((size_t)frame * r->nbody + p->root) * 9;
  for (int j = 0; j < r->nu; j++) {
    f[p->at[FEAT_JOINT_POS] + j] = q[p->qadr[j]] - t->pose[j];
    f[p->at[FEAT_JOINT_VEL] + j] = v[p->dof[j]];
  }
  memcpy(f + p->at[FEAT_ROOT_POS], q, 3 * sizeof *f);
  memcpy(f + p->at[FEAT_ROOT_QUAT], q + 3, 4 * sizeof *f);
  memcpy(f + p->at[FEAT_ROOT_VEL], v, 3 * sizeof *f);
  memcpy(f + p->at[FEAT_ROOT_RATE], v + 3, 3 * sizeof *f);
  rot_columns(f + p->at[FEAT_ROOT_ROT], root_mat);
  for (int i = 0; i < p->nrot; i++) {
    // sleef rather than libm, whose last bit depends on the processor
    const struct track_rot *rot = &p->rot[i];
    double angle = rot->qadr >= 0 ? q[rot->qadr] : 0;
    double s = Sleef_cinz_sind1_u10purec(angle), c = Sleef_cinz_cosd1_u10purec(angle);
    for (int n = 0; n < 6; n++) {
      f[p->at[FEAT_JOINT_ROT] + 6 * i + n] = rot->fixed[n] + c * rot->c[n] + s * rot->s[n];
    }
  }
  for (int c = 0; c < 3; c++) {
    for (int k = 0; k < t->nkey; k++) {
      f[p->at[FEAT_KEY_POS] + 3 * k + c] = x[3 * t->key[k] + c] - q[c];
    }
    for (int b = 0; b < p->nbody; b++) {
      f[p->at[FEAT_BODY_POS] + 3 * b + c] = x[3 * p->body[b] + c] - q[c];
    }
    if (p->at[FEAT_WORLD_RATE] < t->nfeat) {
      const double *row = root_mat + 3 * c;
      f[p->at[FEAT_WORLD_RATE] + c] = row[0] * v[3] + row[1] * v[4] + row[2] * v[5];
    }
  }
}

// Numbers of the residual between reference and robot: what residual.inl writes.
static void count_residual(struct track *t, struct arena *a) {
  const struct robot *r = t->robot;
  struct track_private *p = t->priv;
  if (t->spec->reward != REWARD_ADD) {
    return;
  }
  if (t->spec->add_residual == RESIDUAL_COMPACT) {
    t->nres = 12 + 2 * r->nu + 3 * t->nkey;
    return;
  }
  p->body = ARENA_NEW(a, int, r->nbody);
  for (int b = 1; b < r->nbody; b++) {
    if (r->body[b].link >= 0) {
      p->body[p->nbody++] = b;
    }
  }
  t->nres = 15 + 6 * p->nrot + 3 * p->nbody + r->nu;
}

void track_layout_features(struct track *t, struct arena *a) {
  struct track_private *p = t->priv;
  int nu = t->robot->nu;
  if (track_shows_rotations(t->spec)) {
    list_rotations(t, a);
  }
  count_residual(t, a);
  const int size[FEAT_COUNT] = {
      [FEAT_JOINT_POS] = nu,
      [FEAT_ROOT_POS] = 3,
      [FEAT_ROOT_ROT] = 6,
      [FEAT_JOINT_ROT] = 6 * p->nrot,
      [FEAT_KEY_POS] = 3 * t->nkey,
      [FEAT_ROOT_VEL] = 3,
      [FEAT_ROOT_RATE] = 3,
      [FEAT_JOINT_VEL] = nu,
      [FEAT_ROOT_QUAT] = 4,
      [FEAT_BODY_POS] = 3 * p->nbody,
      [FEAT_WORLD_RATE] = p->nbody ? 3 : 0,
  };
  for (int i = 0; i < FEAT_COUNT; i++) {
    p->at[i + 1] = p->at[i] + size[i];
  }
  t->nfeat = p->at[FEAT_COUNT];
  t->feat = ARENA_NEW(a, double, (size_t)t->motion->nframe * t->nfeat);
  for (int i = 0; i < t->motion->nframe; i++) {
    fill_frame(t->feat + (size_t)i * t->nfeat, t, i);
  }
}

// ---- the observation's blocks, in the order in which observe_*.inl write them

static void add_block(struct track *t, struct arena *a, int slot, const char *name, int count,
                      double noise) {
  char full[64];
  if (slot) {
    snprintf(full, sizeof full, "t+%d.%s", slot, name);
  } else {
    snprintf(full, sizeof full, "%s", name);
  }
  t->block[t->nblock++] = (struct track_block){arena_strdup(a, full), t->nobs, count, noise};
  t->nobs += count;
}

// Noise half-widths are the paper's: what it gives to an angle goes to a rotation's numbers, and
// what it gives to the reference root's position to where the robot sees it. In the body frame the
// robot's own attitude error also shows in the reference's relative rotation.
static void name_compact(struct track *t, struct arena *a) {
  int nu = t->robot->nu;
  add_block(t, a, 0, "root_height", 1, 0);
  add_block(t, a, 0, "gravity", 3, 0.05);
  add_block(t, a, 0, "root_vel", 3, 0.5);
  add_block(t, a, 0, "root_rate", 3, 0.2);
  add_block(t, a, 0, "joint_pos", nu, 0.01);
  add_block(t, a, 0, "joint_vel", nu, 0.5);
  for (int k = 1; k <= TRACK_AHEAD; k++) {
    add_block(t, a, k, "root_pos", 3, 0.25);
    add_block(t, a, k, "root_rot", 6, 0.05);
    add_block(t, a, k, "joint_pos", nu, 0);
  }
}
static void name_paper(struct track *t, struct arena *a) {
  const struct track_private *p = t->priv;
  add_block(t, a, 0, "root_height", 1, 0);
  add_block(t, a, 0, "root_rot", 6, 0.05);
  add_block(t, a, 0, "root_vel", 3, 0.5);
  add_block(t, a, 0, "root_rate", 3, 0.2);
  add_block(t, a, 0, "joint_rot", 6 * p->nrot, 0.01); // none where nothing turns, see below
  add_block(t, a, 0, "joint_vel", p->nturn, 0.5);
  add_block(t, a, 0, "key_pos", 3 * t->nkey, 0.01);
  for (int k = 1; k <= TRACK_AHEAD; k++) {
    add_block(t, a, k, "root_pos", 3, 0.25);
    add_block(t, a, k, "root_rot", 6, 0);
    add_block(t, a, k, "joint_rot", 6 * p->nrot, 0);
    add_block(t, a, k, "key_pos", 3 * t->nkey, 0);
  }
}

void track_layout_observation(struct track *t, struct arena *a) {
  t->block = ARENA_NEW(a, struct track_block, 7 + 4 * TRACK_AHEAD);
  if (t->spec->observation == OBSERVATION_PAPER) {
    name_paper(t, a);
  } else {
    name_compact(t, a);
  }
  t->noise = ARENA_NEW(a, double, t->nobs);
  for (int i = 0; i < t->nblock; i++) {
    for (int k = 0; k < t->block[i].count; k++) {
      t->noise[t->block[i].first + k] = t->block[i].noise * t->spec->observation_noise;
    }
  }
  // a welded joint's numbers are constants: noise there would be all that a normaliser sees
  const struct track_private *p = t->priv;
  int joint_rot = t->block[4].first;
  for (int i = 0; i < p->nrot && t->spec->observation == OBSERVATION_PAPER; i++) {
    if (p->rot[i].qadr < 0) {
      memset(t->noise + joint_rot + 6 * i, 0, 6 * sizeof *t->noise);
    }
  }
}
