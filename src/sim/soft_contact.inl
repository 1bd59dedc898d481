// Stage: geometry and regularisation of MuJoCo's contacts with the floor. Per candidate: the lowest
// point of the shape, its distance r to the floor, the contact point half way between the two, the
// first tangent, impedance, D, and reference. A contact is felt while r < include.
//
// Points as in MuJoCo's narrow phase: a box gives its first four corners that are near and not
// above its centre, a cylinder's end that faces the floor three points of its rim, the other end
// one.

struct soft_rim { // heading h of the axis a, N = |a horizontal|
  realw a[3], h[2], N;
  realw x[3]; // the geom's first axis, used where the disk lies flat
  maskw upright;
};
LANE void soft_rim_parts(struct soft_rim *o, const realw *R, const double *rot) {
  for (int r = 0; r < 3; r++) {
    o->a[r] = R[3 * r] * rot[2] + R[3 * r + 1] * rot[5] + R[3 * r + 2] * rot[8];
    o->x[r] = R[3 * r] * rot[0] + R[3 * r + 1] * rot[3] + R[3 * r + 2] * rot[6];
  }
  realw n2 = o->a[0] * o->a[0] + o->a[1] * o->a[1];
  o->upright = n2 < 1e-30;
  o->N = selectw(o->upright, splat(1), sqrtw(n2));
  o->h[0] = o->a[0] / o->N;
  o->h[1] = o->a[1] / o->N;
}
// d: the rim's lowest direction, e: sideways; unit vectors
LANE void soft_rim_directions(realw *d, realw *e, const struct soft_rim *o) {
  realw across[3];
  cross3(across, o->x, o->a);
  realw dd[3] = {o->h[0] * o->a[2], o->h[1] * o->a[2], -o->N};
  realw ee[3] = {o->h[1], -o->h[0], splat(0)};
  for (int k = 0; k < 3; k++) {
    d[k] = selectw(o->upright, o->x[k], dd[k]);
    e[k] = selectw(o->upright, across[k], ee[k]);
  }
}
// cotangents of d and e -> moment on the link
LANE void soft_rim_bwd(realw *moment, const struct soft_rim *o, const realw *d_d,
                       const realw *d_e) {
  realw d_h[2] = {o->a[2] * d_d[0] - d_e[1], o->a[2] * d_d[1] + d_e[0]};
  realw along = o->h[0] * d_h[0] + o->h[1] * d_h[1];
  realw d_a[3];
  for (int k = 0; k < 2; k++) {
    d_a[k] = (d_h[k] - along * o->h[k]) / o->N - o->h[k] * d_d[2];
  }
  d_a[2] = o->h[0] * d_d[0] + o->h[1] * d_d[1];
  realw across[3], turn[3] = {splat(0), splat(0), splat(0)}, lean[3] = {turn[0], turn[0], turn[0]};
  cross3(across, o->x, o->a);
  cross3_add(turn, o->x, d_d);
  cross3_add(turn, across, d_e);
  cross3_add(lean, o->a, d_a);
  for (int k = 0; k < 3; k++) {
    moment[k] += selectw(o->upright, turn[k], lean[k]);
  }
}

// first tangent of a contact whose shape has an axis: that axis laid on the floor
LANE void soft_aligned(realw *t, const realw *a) {
  realw n2 = a[0] * a[0] + a[1] * a[1];
  maskw upright = n2 < 1e-30;
  realw inv = 1. / sqrtw(selectw(upright, splat(1), n2));
  t[0] = selectw(upright, splat(1), a[0] * inv);
  t[1] = selectw(upright, splat(0), a[1] * inv);
}

LANE void geom_axis(realw *a, const realw *R, const double *rot) {
  for (int r = 0; r < 3; r++) {
    a[r] = R[3 * r] * rot[2] + R[3 * r + 1] * rot[5] + R[3 * r + 2] * rot[8];
  }
}

// lowest point of candidate i about O -> cp; x: its feature's centre
LANE void soft_lowest(realw *x, realw *cp, const struct sim_model *m, const realw *R,
                      const realw *p, const realw *param, int i) {
  const struct sim_candidate *c = &m->candidate[i];
  const realw *point = param + m->at.point + 3 * i, *size = param + m->at.size + 3 * i;
  for (int r = 0; r < 3; r++) {
    x[r] = cp[r] = p[r] + R[3 * r] * point[0] + R[3 * r + 1] * point[1] + R[3 * r + 2] * point[2];
  }
  if (c->kind == CANDIDATE_POINT) {
    cp[2] -= size[0];
  } else if (c->kind == CANDIDATE_RIM) {
    const double *rim = m->soft_contact[i].rim;
    struct soft_rim parts;
    realw d[3], e[3];
    soft_rim_parts(&parts, R, c->rot);
    soft_rim_directions(d, e, &parts);
    for (int r = 0; r < 3; r++) {
      cp[r] += size[0] * (rim[0] * d[r] + rim[1] * e[r]);
    }
  } else {
    struct ellipsoid_parts el;
    ellipsoid_lowest(&el, R, c->rot, size);
    for (int r = 0; r < 3; r++) {
      cp[r] += el.off[r];
    }
  }
}

// cotangent d_x of the lowest point -> wrench on the link, d_param (may be NULL)
LANE void soft_lowest_bwd(realw *F, realw *d_param, const struct sim_model *m, const realw *R,
                          const realw *x, const realw *param, int i, const realw *d_x) {
  const struct sim_candidate *c = &m->candidate[i];
  const realw *size = param + m->at.size + 3 * i;
  realw d_size[3] = {splat(0), splat(0), splat(0)};
  if (c->kind == CANDIDATE_POINT) {
    d_size[0] = -d_x[2];
  } else if (c->kind == CANDIDATE_RIM) {
    const double *rim = m->soft_contact[i].rim;
    struct soft_rim parts;
    realw d[3], e[3], d_d[3], d_e[3];
    soft_rim_parts(&parts, R, c->rot);
    soft_rim_directions(d, e, &parts);
    for (int r = 0; r < 3; r++) {
      d_size[0] += (rim[0] * d[r] + rim[1] * e[r]) * d_x[r];
      d_d[r] = rim[0] * size[0] * d_x[r];
      d_e[r] = rim[1] * size[0] * d_x[r];
    }
    soft_rim_bwd(F, &parts, d_d, d_e);
  } else {
    struct ellipsoid_parts el;
    ellipsoid_lowest(&el, R, c->rot, size);
    realw inv = 1. / el.D, d_D = -dot3(d_x, el.off) * inv;
    for (int k = 0; k < 3; k++) {
      realw d_y = -dot3(d_x, el.g[k]) * inv, s2 = size[k] * size[k], d_g[3];
      for (int r = 0; r < 3; r++) {
        d_g[r] = -el.y[k] * inv * d_x[r];
      }
      d_g[2] += s2 * (d_y + d_D * inv * el.g[k][2]);
      d_size[k] = size[k] * el.g[k][2] * (2. * d_y + d_D * inv * el.g[k][2]);
      cross3_add(F, el.g[k], d_g);
    }
  }
  // wrench at the feature's centre
  cross3_add(F, x, d_x);
  for (int k = 0; k < 3; k++) {
    F[3 + k] += d_x[k];
  }
  if (d_param) {
    realw d_point[3];
    rot_tmul(d_point, R, d_x);
    for (int k = 0; k < 3; k++) {
      d_param[m->at.point + 3 * i + k] += d_point[k];
      d_param[m->at.size + 3 * i + k] += d_size[k];
    }
  }
}

// lanes in which candidate i is a contact: near enough, and one of those that its shape gives
LANE maskw soft_felt(const struct sim_model *m, const realw *R, const realw *p, const realw *x,
                     realw r, double reach, realw *corners, int i) {
  const struct sim_candidate *c = &m->candidate[i];
  const struct sim_soft_contact *s = &m->soft_contact[i];
  maskw felt = r < s->include + reach;
  if (s->corner >= 0) {
    // the first four corners near the floor that are not above the box's centre
    realw above = x[2] - p[2] - (R[6] * s->centre[0] + R[7] * s->centre[1] + R[8] * s->centre[2]);
    realw before = s->corner ? *corners : splat(0);
    maskw found = (r <= s->margin + reach) & (above <= 0.) & (before < 4.);
    *corners = before + maskedw(found, splat(1));
    felt &= found;
  } else if (c->kind == CANDIDATE_RIM && s->rim[0] < 0) {
    // the sides of the end that faces the floor; of a lying cylinder, the first end's
    realw a[3];
    geom_axis(a, R, c->rot);
    felt &= c->feature % 2 ? a[2] > 0. : a[2] <= 0.;
  }
  return felt;
}

// The law at distance r from where a contact is felt; reach > 0: contacts from distance, whose
// impedance falls off outside and whose spring acts inside alone, or softly.
LANE void soft_distance_law(const struct sim_model *m, struct sim_work *w, int slot, realw r,
                            double reach, const realw *imp, double power) {
  struct impedance_parts d;
  realw inside = minw(r, splat(0));
  soft_impedance(&d, imp, power, -inside / imp[2]);
  realw slope = -d.dy * (imp[1] - imp[0]) / imp[2];
  w->soft_r[slot] = w->soft_s[slot] = inside;
  w->soft_ds[slot] = splat(1);
  if (reach > 0) {
    struct impedance_parts far;
    realw out[SOFT_IMP];
    for (int k = 0; k < SOFT_IMP; k++) {
      out[k] = splat(m->cfd_imp[k]);
    }
    soft_impedance(&far, out, m->cfd_power, clampw(1. - r / reach, splat(0), splat(1)));
    maskw outside = r >= 0.;
    d.d = selectw(outside, far.d, d.d);
    slope = selectw(outside, -far.dy * (m->cfd_imp[1] - m->cfd_imp[0]) / reach, slope);
    w->soft_r[slot] = r;
    w->soft_ds[slot] = maskedw(~outside, splat(1));
    if (m->opt.cfd.spring == CFD_SOFTPLUS) {
      double beta = 10 / reach;
      realw sigmoid;
      w->soft_s[slot] = softplus_parts(-beta * r, &sigmoid) / -beta;
      w->soft_ds[slot] = sigmoid;
    }
  }
  w->soft_d[slot] = d.d;
  w->soft_dr[slot] = slope;
}

// w->R, w->p, w->q -> lists of felt links and candidates, w->height, w->soft_p .. w->soft_Kds by
// slot; w->Q = 0. reach: how far outside contacts are felt, 0 but in the backward pass.
LANE_STAGE void soft_contact_fwd(const struct sim_model *m, struct sim_work *w, const realw *param,
                                 double reach) {
  realw corners = splat(0);
  w->nact = w->nslot = 0;
  for (int f = 0; f < m->nclink; f++) {
    const struct sim_contact_link *cl = &m->clink[f];
    const realw *R = w->R[cl->link], *p = w->p[cl->link];
    int before = w->nslot;
    for (int i = cl->first; i < cl->first + cl->count; i++) {
      const struct sim_soft_contact *s = &m->soft_contact[i];
      realw x[3], cp[3];
      soft_lowest(x, cp, m, R, p, param, i);
      realw dist = cp[2] + (w->z_root[cl->tree] - m->floor);
      maskw felt = soft_felt(m, R, p, x, dist, reach, &corners, i);
      w->height[i] = dist;
      for (int k = 0; k < 3; k++) {
        w->x[i][k] = x[k];
        w->Q[i][k] = splat(0);
      }
      kink_note(w, felt);
      if (!anyw(felt)) {
        continue;
      }
      int slot = w->nslot++;
      w->slot_act[slot] = w->nact;
      w->slot_cand[slot] = i;
      cp[2] -= .5 * dist;
      for (int k = 0; k < 3; k++) {
        w->soft_p[slot][k] = cp[k];
      }
      w->soft_t[slot][0] = splat(0);
      w->soft_t[slot][1] = splat(1);
      if (s->aligned) {
        realw a[3];
        geom_axis(a, R, m->candidate[i].rot);
        soft_aligned(w->soft_t[slot], a);
      }
      const realw *imp = param + m->at.solimp + SOFT_IMP * i;
      const realw *ref = param + m->at.solref + SOFT_REF * i;
      realw mu = maxw(param[m->at.mu + i], splat(1e-5)); // MuJoCo's least friction
      soft_distance_law(m, w, slot, dist - s->include, reach, imp, s->power);
      soft_stiffness(&w->soft_K[slot], &w->soft_B[slot], m, s->direct, ref, imp[1]);
      realw d = w->soft_d[slot];
      w->soft_D[slot] = maskedw(felt, d / ((1. - d) * (s->weight * soft_share(m, s, mu))));
      w->soft_Kds[slot] = w->soft_K[slot] * d * w->soft_s[slot];
    }
    if (w->nslot > before) {
      w->act_first[w->nact] = before;
      w->act[w->nact++] = f;
      w->act_first[w->nact] = w->nslot;
    }
  }
}

// Cotangents of one slot's geometry, gathered by soft_rows_bwd: d_p of the contact point, d_r of
// the distance, turn of the tangents -> link wrench F, height of a free root, d_param
LANE void soft_geometry_bwd(const struct sim_model *m, struct sim_work *w, realw *F, realw *d_param,
                            const realw *param, int slot, const realw *d_p, realw d_r, realw turn) {
  int i = w->slot_cand[slot];
  const struct sim_contact_link *cl = &m->clink[w->act[w->slot_act[slot]]];
  const struct sim_tree *tree = &m->tree[cl->tree];
  const realw *R = w->R[cl->link];
  // p = lowest - e_z dist / 2, dist = height of the lowest
  realw d_height = d_r - .5 * d_p[2], d_x[3] = {d_p[0], d_p[1], d_p[2] + d_height};
  if (tree->free) {
    w->d_q[tree->first_dof + 2] += d_height;
  }
  soft_lowest_bwd(F, d_param, m, R, w->x[i], param, i, d_x);
  if (m->soft_contact[i].aligned) {
    realw a[3], d_a[3];
    geom_axis(a, R, m->candidate[i].rot);
    realw n2 = a[0] * a[0] + a[1] * a[1], s = maskedw(n2 >= 1e-30, turn / n2);
    d_a[0] = -a[1] * s;
    d_a[1] = a[0] * s;
    d_a[2] = splat(0);
    cross3_add(F, a, d_a);
  }
}
