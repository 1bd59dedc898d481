// The observation of Bundled Contact Gradients (arXiv 2609.30951): 849 numbers for G1, in
// world axes. In order: root height 1, rotation 6, linear velocity 3, angular velocity 3; rotations
// of all joints, 6 each; joint velocities; key bodies relative to the root, 3 each; then for each
// of the frames t+1 .. t+3 the reference root's position (x, y relative to the robot's root, z
// absolute), root rotation, joint rotations, and key bodies relative to the reference root.
//
// qvel's angular velocity is in body axes; the paper's is in world axes.

// out (6): columns x and z of R
LANE void columns_fwd(realw *out, const realw *R) {
  for (int r = 0; r < 3; r++) {
    out[r] = R[3 * r];
    out[3 + r] = R[3 * r + 2];
  }
}
// a column of R is a body axis seen from the world: dth += e x (R' dcol)
LANE void columns_bwd(realw *dth, const realw *R, const realw *dout) {
  realw db[3];
  rot_tmul(db, R, dout);
  dth[1] -= db[2];
  dth[2] += db[1];
  rot_tmul(db, R, dout + 3);
  dth[0] -= db[1];
  dth[1] += db[0];
}

// out (nrot, 6): the same of every joint's own rotation
LANE_STAGE void joint_columns_fwd(realw *out, const struct track_private *p, const realw *q) {
  for (int i = 0; i < p->nrot; i++) {
    const struct track_rot *rot = &p->rot[i];
    realw s = splat(0), c = splat(1);
    if (rot->qadr >= 0) {
      sincosw(q[rot->qadr], &s, &c);
    }
    for (int n = 0; n < 6; n++) {
      *out++ = rot->fixed[n] + c * rot->c[n] + s * rot->s[n];
    }
  }
}
LANE_STAGE void joint_columns_bwd(realw *dq, const struct track_private *p, const realw *dout,
                                  const realw *q) {
  for (int i = 0; i < p->nrot; i++, dout += 6) {
    const struct track_rot *rot = &p->rot[i];
    if (rot->qadr < 0) {
      continue;
    }
    realw s, c, sum = splat(0);
    sincosw(q[rot->qadr], &s, &c);
    for (int n = 0; n < 6; n++) {
      sum += dout[n] * (c * rot->s[n] - s * rot->c[n]);
    }
    dq[rot->dof] += sum;
  }
}

// obs (nobs)
LANE_STAGE void observe_paper_fwd(const struct track *t, struct sim_work *sw, realw *obs,
                                  const realw *q, const realw *v, const int *frame) {
  const struct track_private *p = t->priv;
  realw R[9];
  quat_to_rot(R, q + 3);

  *obs++ = q[2];
  columns_fwd(obs, R);
  obs += 6;
  for (int c = 0; c < 3; c++) {
    *obs++ = v[c];
  }
  rot_mul(obs, R, v + 3);
  obs += 3;

  joint_columns_fwd(obs, p, q);
  obs += 6 * p->nrot;
  for (int i = 0; i < p->nrot; i++) {
    if (p->rot[i].qadr >= 0) {
      *obs++ = v[p->rot[i].dof];
    }
  }
  LANE_NAME(sim_kernels)
      .points_fwd(t->model, sw, (double *)obs, (const double *)q, t->key, t->nkey);
  obs += 3 * t->nkey;

  // a slot is stored as it is shown, but for the root's x and y
  int first = p->at[FEAT_ROOT_POS], count = p->at[FEAT_KEY_POS] + 3 * t->nkey - first;
  for (int k = 1; k <= TRACK_AHEAD; k++) {
    gather((double *)obs, t, frame, k, first, count);
    obs[0] -= q[0];
    obs[1] -= q[1];
    obs += count;
  }
}

// dq, dv += J' dobs
LANE_STAGE void observe_paper_bwd(const struct track *t, struct track_work *tw, struct sim_work *sw,
                                  realw *dq, realw *dv, const realw *dobs, const realw *q,
                                  const realw *v) {
  const struct track_private *p = t->priv;
  realw R[9], db[3];
  quat_to_rot(R, q + 3);

  dq[2] += *dobs++;
  columns_bwd(dq + 3, R, dobs);
  dobs += 6;
  for (int c = 0; c < 3; c++) {
    dv[c] += *dobs++;
  }
  rot_tmul(db, R, dobs);
  cross3_add(dq + 3, v + 3, db);
  for (int c = 0; c < 3; c++) {
    dv[3 + c] += db[c];
  }
  dobs += 3;

  joint_columns_bwd(dq, p, dobs, q);
  dobs += 6 * p->nrot;
  for (int i = 0; i < p->nrot; i++) {
    if (p->rot[i].qadr >= 0) {
      dv[p->rot[i].dof] += *dobs++;
    }
  }

  // the forward call only leaves the kinematics of this state in sw, for its adjoint
  const struct sim_kernels *sim = &LANE_NAME(sim_kernels);
  sim->points_fwd(t->model, sw, tw->key, (const double *)q, t->key, t->nkey);
  sim->points_bwd(t->model, sw, (double *)dq, (const double *)dobs, t->key, t->nkey);
  dobs += 3 * t->nkey;

  int count = p->at[FEAT_KEY_POS] + 3 * t->nkey - p->at[FEAT_ROOT_POS];
  for (int k = 1; k <= TRACK_AHEAD; k++, dobs += count) {
    dq[0] -= dobs[0];
    dq[1] -= dobs[1];
  }
}
