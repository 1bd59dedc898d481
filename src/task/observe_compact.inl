// The compact observation: everything in the robot's own body frame, so that a policy need not
// learn the same motion once per heading. In order: root height; direction of gravity; root linear
// and angular velocity; joint positions minus the default pose; joint velocities; then for each of
// the frames t+1 .. t+3 the reference root's position and rotation (columns x and z) relative to
// the robot's root, and the reference joint positions minus the default pose.

// obs (nobs)
LANE_STAGE void observe_compact_fwd(const struct track *t, struct track_work *tw, realw *obs,
                                    const realw *q, const realw *v, const int *frame) {
  const struct track_private *p = t->priv;
  int nu = t->robot->nu;
  realw R[9];
  quat_to_rot(R, q + 3);

  *obs++ = q[2];
  for (int c = 0; c < 3; c++) {
    *obs++ = -R[6 + c];
  }
  rot_tmul(obs, R, v);
  obs += 3;
  for (int c = 0; c < 3; c++) {
    *obs++ = v[3 + c];
  }
  for (int j = 0; j < nu; j++) {
    *obs++ = q[p->qadr[j]] - t->pose[j];
  }
  for (int j = 0; j < nu; j++) {
    *obs++ = v[p->dof[j]];
  }

  // the slots: root position and rotation seen from the robot, joints as they are
  const realw *feat = (const realw *)tw->feat;
  const realw *ref_joint = feat + p->at[FEAT_JOINT_POS], *ref_pos = feat + p->at[FEAT_ROOT_POS];
  const realw *ref_rot = feat + p->at[FEAT_ROOT_ROT];
  for (int k = 1; k <= TRACK_AHEAD; k++) {
    gather(tw->feat, t, frame, k, p->at[FEAT_JOINT_POS], p->at[FEAT_ROOT_ROT] + 6);
    realw d[3] = {ref_pos[0] - q[0], ref_pos[1] - q[1], ref_pos[2] - q[2]};
    rot_tmul(obs, R, d);
    rot_tmul(obs + 3, R, ref_rot);
    rot_tmul(obs + 6, R, ref_rot + 3);
    obs += 9;
    for (int j = 0; j < nu; j++) {
      *obs++ = ref_joint[j];
    }
  }
}

// dq, dv += J' dobs
LANE_STAGE void observe_compact_bwd(const struct track *t, struct track_work *tw, realw *dq,
                                    realw *dv, const realw *dobs, const realw *q, const realw *v,
                                    const int *frame) {
  const struct track_private *p = t->priv;
  int nu = t->robot->nu;
  realw R[9], ub[3];
  quat_to_rot(R, q + 3);

  dq[2] += *dobs++;
  for (int c = 0; c < 3; c++) {
    ub[c] = -R[6 + c];
  }
  unrotate_bwd(dq + 3, ub, dobs);
  dobs += 3;
  rot_tmul(ub, R, v);
  unrotate_bwd(dq + 3, ub, dobs);
  rotate_add(dv, R, dobs);
  dobs += 3;
  for (int c = 0; c < 3; c++) {
    dv[3 + c] += *dobs++;
  }
  for (int j = 0; j < nu; j++) {
    dq[p->dof[j]] += *dobs++;
  }
  for (int j = 0; j < nu; j++) {
    dv[p->dof[j]] += *dobs++;
  }

  // the reference is constant: a slot's cotangents reach the robot's root only
  const realw *feat = (const realw *)tw->feat;
  const realw *ref_pos = feat + p->at[FEAT_ROOT_POS], *ref_rot = feat + p->at[FEAT_ROOT_ROT];
  for (int k = 1; k <= TRACK_AHEAD; k++) {
    int first = p->at[FEAT_ROOT_POS];
    gather(tw->feat + first * W, t, frame, k, first, 9);
    realw d[3] = {ref_pos[0] - q[0], ref_pos[1] - q[1], ref_pos[2] - q[2]}, dd[3];
    rot_tmul(ub, R, d);
    unrotate_bwd(dq + 3, ub, dobs);
    rot_mul(dd, R, dobs);
    for (int c = 0; c < 3; c++) {
      dq[c] -= dd[c];
    }
    rot_tmul(ub, R, ref_rot);
    unrotate_bwd(dq + 3, ub, dobs + 3);
    rot_tmul(ub, R, ref_rot + 3);
    unrotate_bwd(dq + 3, ub, dobs + 6);
    dobs += 9 + nu;
  }
}
