// The exponential reward: a weighted sum of f(z) = exp(-z) + tail (1 - z) over tracking errors z,
// minus the action rate.
//
//   joint      mean_j f(8 dq_j^2)         rates       mean_j f(0.2 dv_j^2)
//   root       f(20 |dp|^2)               rotation    f(10 |2 vec(q_ref* q)|^2)
//   velocity   f(|dv|^2 + 0.1 |dw|^2)     key bodies  f(10 sum |dx|^2), relative to the root
//   action     -mean_j (a_t - a_{t-1})^2
//
// The quadratic tail keeps a pull where the exponential has died: without it, joints that start far
// from the reference are given up for good. Twice the quaternion's vector part is smooth everywhere
// and equals the rotation vector for small errors. Angular velocities are compared in body axes.
static const double k_joint = 8, k_joint_vel = 0.2, k_root = 20, k_rot = 10, k_rate = 0.1,
                    k_key = 10;

LANE realw score(realw z, double tail) {
  return expw(-z) + tail * (1 - z);
}
LANE realw score_slope(realw z, double tail) {
  return -expw(-z) - tail;
}

// e = q_ref* q, the rotation from the reference to the robot in body axes
LANE void quat_error(realw *e, const realw *r, const realw *q) {
  e[0] = r[0] * q[0] + r[1] * q[1] + r[2] * q[2] + r[3] * q[3];
  e[1] = r[0] * q[1] - r[1] * q[0] - r[2] * q[3] + r[3] * q[2];
  e[2] = r[0] * q[2] + r[1] * q[3] - r[2] * q[0] - r[3] * q[1];
  e[3] = r[0] * q[3] - r[1] * q[2] + r[2] * q[1] - r[3] * q[0];
}

// Weights of the terms. Beside a discriminator's reward only the root's position, where add.root
// keeps what a residual of mostly joints neglects, and the action rate remain.
struct reward_weights {
  double joint, joint_vel, root_pos, root_rot, root_vel, key, action_rate;
};
LANE struct reward_weights reward_weights(const struct spec *s) {
  if (s->reward == REWARD_ADD) {
    return (struct reward_weights){.root_pos = s->add_root, .action_rate = s->reward_action_rate};
  }
  return (struct reward_weights){
      .joint = s->reward_joint,
      .joint_vel = s->reward_joint_vel,
      .root_pos = s->reward_root_pos,
      .root_rot = s->reward_root_rot,
      .root_vel = s->reward_root_vel,
      .key = s->reward_key,
      .action_rate = s->reward_action_rate,
  };
}

// the reference's features of the lanes' own frames, but for rotations as numbers
LANE void gather_reference(struct track_work *tw, const struct track *t, const int *frame) {
  const struct track_private *p = t->priv;
  int key = p->at[FEAT_KEY_POS];
  gather(tw->feat, t, frame, 0, 0, p->at[FEAT_ROOT_ROT]);
  gather(tw->feat + key * W, t, frame, 0, key, p->at[FEAT_BODY_POS] - key);
}

// What both twins need: the lanes' reference frame, and errors of the root and of the key bodies.
struct reward_error {
  const realw *joint, *joint_vel; // reference, joint positions minus the default pose
  realw pos[3], quat[4], vel[3], rate[3];
  realw pos_sq, rot_sq, vel_sq, key_sq;
};
LANE_STAGE void reward_errors(struct reward_error *e, const struct track *t, struct track_work *tw,
                              struct sim_work *sw, const realw *q, const realw *v,
                              const int *frame) {
  const struct track_private *p = t->priv;
  int root = p->at[FEAT_ROOT_POS], key = p->at[FEAT_KEY_POS];
  gather_reference(tw, t, frame);
  LANE_NAME(sim_kernels).points_fwd(t->model, sw, tw->key, (const double *)q, t->key, t->nkey);

  const realw *feat = (const realw *)tw->feat, *vel = feat + p->at[FEAT_ROOT_VEL];
  const realw *rate = feat + p->at[FEAT_ROOT_RATE];
  realw *x = (realw *)tw->key;
  e->joint = feat + p->at[FEAT_JOINT_POS];
  e->joint_vel = feat + p->at[FEAT_JOINT_VEL];
  for (int c = 0; c < 3; c++) {
    e->pos[c] = q[c] - feat[root + c];
    e->vel[c] = v[c] - vel[c];
    e->rate[c] = v[3 + c] - rate[c];
  }
  quat_error(e->quat, feat + p->at[FEAT_ROOT_QUAT], q + 3);
  e->pos_sq = dot3(e->pos, e->pos);
  e->rot_sq = 4 * dot3(e->quat + 1, e->quat + 1);
  e->vel_sq = dot3(e->vel, e->vel) + k_rate * dot3(e->rate, e->rate);
  e->key_sq = splat(0);
  for (int i = 0; i < 3 * t->nkey; i++) {
    x[i] -= feat[key + i];
    e->key_sq += x[i] * x[i];
  }
}

// lanes that have a previous action
LANE maskw has_previous(const int *first) {
  maskw m;
  for (int l = 0; l < W; l++) {
    m[l] = first[l] ? 0 : -1;
  }
  return m;
}

static void reward_fwd(const struct track *t, struct track_work *tw, struct sim_work *sw,
                       double *reward, double *term, const double *qpos, const double *qvel,
                       const double *action, const double *prev_action, const int *frame,
                       const int *first) {
  const struct track_private *p = t->priv;
  struct reward_weights w = reward_weights(t->spec);
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel;
  const realw *a = (const realw *)action, *b = (const realw *)prev_action;
  int nu = t->robot->nu;
  double tail = t->spec->reward_tail;
  struct reward_error e;
  reward_errors(&e, t, tw, sw, q, v, frame);

  realw joint = splat(0), joint_vel = splat(0), joint_sq = splat(0), joint_vel_sq = splat(0);
  realw rate_sq = splat(0);
  for (int j = 0; j < nu; j++) {
    realw d = q[p->qadr[j]] - t->pose[j] - e.joint[j], dv = v[p->dof[j]] - e.joint_vel[j];
    realw da = a[j] - b[j];
    joint += score(k_joint * (d * d), tail);
    joint_vel += score(k_joint_vel * (dv * dv), tail);
    joint_sq += d * d;
    joint_vel_sq += dv * dv;
    rate_sq += da * da;
  }
  double mean = 1.0 / nu;
  rate_sq = maskedw(has_previous(first), rate_sq * mean);

  realw r = w.joint * mean * joint + w.joint_vel * mean * joint_vel;
  r += w.root_pos * score(k_root * e.pos_sq, tail);
  r += w.root_rot * score(k_rot * e.rot_sq, tail);
  r += w.root_vel * score(e.vel_sq, tail);
  r += w.key * score(k_key * e.key_sq, tail);
  r -= w.action_rate * rate_sq;
  *(realw *)reward = r;

  if (term) {
    realw *out = (realw *)term;
    out[TRACK_JOINT_SQ] = joint_sq * mean;
    out[TRACK_JOINTVEL_SQ] = joint_vel_sq * mean;
    out[TRACK_ROOT_SQ] = e.pos_sq;
    out[TRACK_ROT_SQ] = e.rot_sq;
    out[TRACK_KEY_SQ] = e.key_sq;
    out[TRACK_RATE] = rate_sq;
  }
}

static void reward_bwd(const struct track *t, struct track_work *tw, struct sim_work *sw,
                       double *dqpos, double *dqvel, double *daction, double *dprev,
                       const double *dreward, const double *qpos, const double *qvel,
                       const double *action, const double *prev_action, const int *frame,
                       const int *first) {
  const struct track_private *p = t->priv;
  struct reward_weights w = reward_weights(t->spec);
  const realw *q = (const realw *)qpos, *v = (const realw *)qvel;
  const realw *a = (const realw *)action, *b = (const realw *)prev_action;
  realw *dq = (realw *)dqpos, *dv = (realw *)dqvel, *da = (realw *)daction, *db = (realw *)dprev;
  realw dr = *(const realw *)dreward;
  int nu = t->robot->nu;
  double tail = t->spec->reward_tail, mean = 1.0 / nu;
  struct reward_error e;
  reward_errors(&e, t, tw, sw, q, v, frame);

  realw joint = 2 * k_joint * w.joint * mean * dr;
  realw joint_vel = 2 * k_joint_vel * w.joint_vel * mean * dr;
  realw rate = maskedw(has_previous(first), -2 * w.action_rate * mean * dr);
  for (int j = 0; j < nu; j++) {
    realw d = q[p->qadr[j]] - t->pose[j] - e.joint[j], ddof = v[p->dof[j]] - e.joint_vel[j];
    dq[p->dof[j]] += joint * score_slope(k_joint * (d * d), tail) * d;
    dv[p->dof[j]] += joint_vel * score_slope(k_joint_vel * (ddof * ddof), tail) * ddof;
    // a lane without a previous action may hold anything there
    realw step = maskedw(has_previous(first), rate * (a[j] - b[j]));
    da[j] += step;
    db[j] -= step;
  }

  // q turning by dth moves the error's vector part by (w dth + vec x dth) / 2
  realw pos = 2 * k_root * w.root_pos * dr * score_slope(k_root * e.pos_sq, tail);
  realw rot = 4 * k_rot * w.root_rot * dr * score_slope(k_rot * e.rot_sq, tail) * e.quat[0];
  realw vel = 2 * w.root_vel * dr * score_slope(e.vel_sq, tail);
  for (int c = 0; c < 3; c++) {
    dq[c] += pos * e.pos[c];
    dq[3 + c] += rot * e.quat[1 + c];
    dv[c] += vel * e.vel[c];
    dv[3 + c] += k_rate * vel * e.rate[c];
  }

  realw key = 2 * k_key * w.key * dr * score_slope(k_key * e.key_sq, tail);
  const realw *x = (const realw *)tw->key;
  realw *dx = (realw *)tw->dkey;
  for (int i = 0; i < 3 * t->nkey; i++) {
    dx[i] = key * x[i];
  }
  LANE_NAME(sim_kernels).points_bwd(t->model, sw, dqpos, tw->dkey, t->key, t->nkey);
}
