// What a discriminator judges (Adversarial Differential Discriminators, arXiv 2505.04961): the
// difference between the reference at a frame and the robot, reference minus robot. Two sets.
//
// paper: the published one in world axes, 317 numbers for G1: root position 3 and rotation 6;
// rotations of all joints, 6 each; all bodies relative to the root, 3 each (the root's own zeros
// among them); root linear velocity 3, angular velocity 3; joint velocities. The published code
// cuts the gradient of the root's position; here it flows.
//
// compact: seen in the frame of the reference's root, 85 numbers for G1: root position 3, rotation
// vector 3 (twice the vector part of the quaternion from robot to reference); joint positions;
// joint velocities; root linear velocity 3; angular velocity 3, each in its own body axes; key
// bodies relative to the root, 3 each. The frame is the reference's, so its rotation is a constant
// for the adjoint.

// the reference's groups that the paper's residual is the difference of, in its order
static const enum track_feature residual_group[] = {
    FEAT_ROOT_POS, FEAT_ROOT_ROT,   FEAT_JOINT_ROT, FEAT_BODY_POS,
    FEAT_ROOT_VEL, FEAT_WORLD_RATE, FEAT_JOINT_VEL,
};

LANE_STAGE void residual_paper_fwd(const struct track *t, struct track_work *tw,
                                   struct sim_work *sw, realw *delta, const realw *q,
                                   const realw *v, const int *frame) {
  const struct track_private *p = t->priv;
  realw R[9], *out = delta;
  quat_to_rot(R, q + 3);

  // the robot first
  for (int c = 0; c < 3; c++) {
    *out++ = q[c];
  }
  columns_fwd(out, R);
  out += 6;
  joint_columns_fwd(out, p, q);
  out += 6 * p->nrot;
  LANE_NAME(sim_kernels)
      .points_fwd(t->model, sw, (double *)out, (const double *)q, p->body, p->nbody);
  out += 3 * p->nbody;
  for (int c = 0; c < 3; c++) {
    *out++ = v[c];
  }
  rot_mul(out, R, v + 3);
  out += 3;
  for (int j = 0; j < t->robot->nu; j++) {
    *out++ = v[p->dof[j]];
  }

  const realw *ref = (const realw *)tw->feat;
  out = delta;
  for (size_t k = 0; k < sizeof residual_group / sizeof *residual_group; k++) {
    int first = p->at[residual_group[k]], count = p->at[residual_group[k] + 1] - first;
    gather(tw->feat, t, frame, 0, first, count);
    for (int i = 0; i < count; i++, out++) {
      *out = ref[i] - *out;
    }
  }
}

// d (nres): cotangents of the robot's numbers, that is minus the residual's
LANE_STAGE void residual_paper_bwd(const struct track *t, struct track_work *tw,
                                   struct sim_work *sw, realw *dq, realw *dv, const realw *d,
                                   const realw *q, const realw *v) {
  const struct track_private *p = t->priv;
  realw R[9], db[3];
  quat_to_rot(R, q + 3);

  for (int c = 0; c < 3; c++) {
    dq[c] += *d++;
  }
  columns_bwd(dq + 3, R, d);
  d += 6;
  joint_columns_bwd(dq, p, d, q);
  d += 6 * p->nrot;
  // the forward call leaves the kinematics of this state in sw; its output is not needed
  const struct sim_kernels *sim = &LANE_NAME(sim_kernels);
  sim->points_fwd(t->model, sw, tw->key, (const double *)q, t->key, t->nkey);
  sim->points_bwd(t->model, sw, (double *)dq, (const double *)d, p->body, p->nbody);
  d += 3 * p->nbody;
  for (int c = 0; c < 3; c++) {
    dv[c] += *d++;
  }
  rot_tmul(db, R, d);
  cross3_add(dq + 3, v + 3, db);
  for (int c = 0; c < 3; c++) {
    dv[3 + c] += db[c];
  }
  d += 3;
  for (int j = 0; j < t->robot->nu; j++) {
    dv[p->dof[j]] += *d++;
  }
}

// The quaternion from the reference to the robot, of the two of opposite sign the one whose turn is
// at most half a circle.
LANE void short_quat_error(realw *e, const realw *ref, const realw *q) {
  quat_error(e, ref, q);
  maskw away = e[0] < splat(0);
  for (int c = 0; c < 4; c++) {
    e[c] = selectw(away, -e[c], e[c]);
  }
}

LANE_STAGE void residual_compact_fwd(const struct track *t, struct track_work *tw,
                                     struct sim_work *sw, realw *delta, const realw *q,
                                     const realw *v, const int *frame) {
  const struct track_private *p = t->priv;
  const realw *ref = (const realw *)tw->feat;
  int nu = t->robot->nu;
  gather_reference(tw, t, frame);
  LANE_NAME(sim_kernels).points_fwd(t->model, sw, tw->key, (const double *)q, t->key, t->nkey);

  const realw *pos = ref + p->at[FEAT_ROOT_POS], *quat = ref + p->at[FEAT_ROOT_QUAT];
  const realw *joint = ref + p->at[FEAT_JOINT_POS], *joint_vel = ref + p->at[FEAT_JOINT_VEL];
  const realw *vel = ref + p->at[FEAT_ROOT_VEL], *rate = ref + p->at[FEAT_ROOT_RATE];
  const realw *key = ref + p->at[FEAT_KEY_POS], *x = (const realw *)tw->key;
  realw R[9], e[4], d[3];
  quat_to_rot(R, quat);

  for (int c = 0; c < 3; c++) {
    d[c] = pos[c] - q[c];
  }
  rot_tmul(delta, R, d);
  short_quat_error(e, quat, q + 3);
  for (int c = 0; c < 3; c++) {
    delta[3 + c] = -2 * e[1 + c];
  }
  delta += 6;
  for (int j = 0; j < nu; j++) {
    delta[j] = joint[j] - (q[p->qadr[j]] - t->pose[j]);
    delta[nu + j] = joint_vel[j] - v[p->dof[j]];
  }
  delta += 2 * nu;
  for (int c = 0; c < 3; c++) {
    d[c] = vel[c] - v[c];
    delta[3 + c] = rate[c] - v[3 + c];
  }
  rot_tmul(delta, R, d);
  delta += 6;
  for (int k = 0; k < t->nkey; k++, delta += 3) {
    for (int c = 0; c < 3; c++) {
      d[c] = key[3 * k + c] - x[3 * k + c];
    }
    rot_tmul(delta, R, d);
  }
}

// d (nres): minus the residual's cotangents
LANE_STAGE void residual_compact_bwd(const struct track *t, struct track_work *tw,
                                     struct sim_work *sw, realw *dq, realw *dv, const realw *d,
                                     const realw *q, const int *frame) {
  const struct track_private *p = t->priv;
  int nu = t->robot->nu, quat = p->at[FEAT_ROOT_QUAT];
  realw R[9], e[4], *dx = (realw *)tw->dkey;
  const realw *ref_quat = (const realw *)tw->feat + quat;
  gather(tw->feat + quat * W, t, frame, 0, quat, 4);
  quat_to_rot(R, ref_quat);

  rotate_add(dq, R, d);
  // q turning by dth moves twice the error's vector part by w dth + vec x dth
  short_quat_error(e, ref_quat, q + 3);
  for (int c = 0; c < 3; c++) {
    dq[3 + c] += e[0] * d[3 + c];
  }
  cross3_add(dq + 3, d + 3, e + 1);
  d += 6;
  for (int j = 0; j < nu; j++) {
    dq[p->dof[j]] += d[j];
    dv[p->dof[j]] += d[nu + j];
  }
  d += 2 * nu;
  rotate_add(dv, R, d);
  for (int c = 0; c < 3; c++) {
    dv[3 + c] += d[3 + c];
  }
  d += 6;
  for (int k = 0; k < t->nkey; k++) {
    rot_mul(dx + 3 * k, R, d + 3 * k);
  }
  const struct sim_kernels *sim = &LANE_NAME(sim_kernels);
  sim->points_fwd(t->model, sw, tw->key, (const double *)q, t->key, t->nkey);
  sim->points_bwd(t->model, sw, (double *)dq, tw->dkey, t->key, t->nkey);
}

static void residual_fwd(const struct track *t, struct track_work *tw, struct sim_work *sw,
                         double *delta, const double *qpos, const double *qvel, const int *frame) {
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel;
  if (t->spec->add_residual == RESIDUAL_PAPER) {
    residual_paper_fwd(t, tw, sw, (realw *)delta, q, v, frame);
  } else {
    residual_compact_fwd(t, tw, sw, (realw *)delta, q, v, frame);
  }
}

static void residual_bwd(const struct track *t, struct track_work *tw, struct sim_work *sw,
                         double *dqpos, double *dqvel, const double *ddelta, const double *qpos,
                         const double *qvel, const int *frame) {
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel;
  realw *dq = (realw *)dqpos, *dv = (realw *)dqvel, *d = (realw *)tw->dres;
  for (int i = 0; i < t->nres; i++) {
    d[i] = -((const realw *)ddelta)[i];
  }
  if (t->spec->add_residual == RESIDUAL_PAPER) {
    residual_paper_bwd(t, tw, sw, dq, dv, d, q, v);
  } else {
    residual_compact_bwd(t, tw, sw, dq, dv, d, q, frame);
  }
}
