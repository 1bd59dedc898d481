// MuJoCo's constraint laws on lanes: impedance, reference acceleration, regularisation, and the
// forces of contacts, limits and dry friction as functions of the acceleration. Source: MuJoCo's
// documentation, "Computation", "Constraint model" and "Solver parameters".
//
// A row with velocity J v and position r asks for the acceleration aref = -B J v - K d(r) r. With
// the residual j = J a - aref, its force is minus the slope of a convex cost: -D j where it
// pushes, D = d / ((1 - d) weight). Every law is a pair: force, and the reverse for a cotangent y
// of that force (C = -df/dw is symmetric, so the residual's cotangent is -C y).

// ---- impedance d(x) = d0 + y(x) (dw - d0), x = |r| / width

struct impedance_parts {
  realw d, y, dy; // dy/dx; zero beyond the ramp
};
LANE void soft_impedance(struct impedance_parts *o, const realw *imp, double power, realw x) {
  x = minw(x, splat(1));
  realw mid = imp[3];
  maskw low = x <= mid;
  realw z = selectw(low, x, 1. - x), q = z / selectw(low, mid, 1. - mid), qp = splat(1);
  if (power == 2) { // MuJoCo's default
    qp = q;
  } else if (power > 1) {
    qp = expw((power - 1.) * logw(q));
  }
  o->y = selectw(low, z * qp, 1. - z * qp);
  o->dy = maskedw(x < 1., power * qp);
  o->d = imp[0] + o->y * (imp[1] - imp[0]);
}

// cotangent d_d of the impedance -> of its four parameters, added
LANE void soft_impedance_bwd(realw *d_imp, const struct impedance_parts *o, const realw *imp,
                             double power, realw x, realw d_d) {
  realw span = imp[1] - imp[0], mid = imp[3];
  x = minw(x, splat(1));
  realw d_mid = -(power - 1.) * selectw(x <= mid, o->y / mid, (1. - o->y) / (1. - mid));
  d_imp[0] += (1. - o->y) * d_d;
  d_imp[1] += o->y * d_d;
  d_imp[2] -= x / imp[2] * o->dy * span * d_d;
  d_imp[3] += d_mid * span * d_d;
}

// ---- reference: K and B from solref and dw

LANE realw soft_time_constant(const struct sim_model *m, const realw *ref) {
  return m->robot->refsafe ? maxw(ref[0], splat(2 * m->opt.dt)) : ref[0];
}
LANE void soft_stiffness(realw *K, realw *B, const struct sim_model *m, bool direct,
                         const realw *ref, realw dw) {
  if (direct) {
    *K = -ref[0] / (dw * dw);
    *B = -ref[1] / dw;
  } else {
    realw t = soft_time_constant(m, ref), a = dw * t;
    *K = 1. / (a * a * ref[1] * ref[1]);
    *B = 2. / a;
  }
}
LANE void soft_stiffness_bwd(realw *d_ref, realw *d_dw, const struct sim_model *m, bool direct,
                             const realw *ref, realw dw, realw K, realw B, realw d_K, realw d_B) {
  *d_dw -= (2. * K * d_K + B * d_B) / dw;
  if (direct) {
    d_ref[0] -= d_K / (dw * dw);
    d_ref[1] -= d_B / dw;
  } else {
    realw t = soft_time_constant(m, ref);
    maskw free = m->robot->refsafe ? ref[0] > 2 * m->opt.dt : ref[0] == ref[0];
    d_ref[0] -= maskedw(free, (2. * K * d_K + B * d_B) / t);
    d_ref[1] -= 2. * K / ref[1] * d_K;
  }
}

// ---- contact: residual w (angular; linear, world axes, at the point) -> force and moment f

// C as 21 numbers: linear block xx yy zz xy xz yz, angular-linear 3 x 3, angular block. Contacts of
// condim 1 and 3 use the first six.
enum { C_LIN = 0, C_MIX = 6, C_ANG = 15 };

struct soft_coefs {    // of a contact's law, per lane
  realw D, mu, tx, ty; // tangent t1 = (tx, ty, 0), t2 = (-ty, tx, 0)
};

// A law is compiled for the kinds that are common and for the rest: kind.n friction directions
// (sliding t1 t2, spinning, rolling t1 t2), and which cone.
struct soft_kind {
  int n;
  bool elliptic;
};
#define SOFT_BY_KIND(m, s, CALL)                                                                   \
  if ((s)->dim == 3 && (m)->elliptic) {                                                            \
    CALL(((struct soft_kind){2, true}));                                                           \
  } else if ((s)->dim == 3) {                                                                      \
    CALL(((struct soft_kind){2, false}));                                                          \
  } else {                                                                                         \
    CALL(((struct soft_kind){(s)->dim - 1, (m)->elliptic}));                                       \
  }

// Components of w along the friction directions; the other way: a vector in them to world axes.
LANE void soft_to_frame(realw *o, const int n, const struct soft_coefs *c, const realw *w) {
  o[0] = c->tx * w[3] + c->ty * w[4];
  o[1] = c->tx * w[4] - c->ty * w[3];
  o[2] = n > 2 ? w[2] : splat(0);
  o[3] = n > 3 ? c->tx * w[0] + c->ty * w[1] : splat(0);
  o[4] = n > 3 ? c->tx * w[1] - c->ty * w[0] : splat(0);
}
LANE void soft_from_frame(realw *w, const int n, const struct soft_coefs *c, const realw *g) {
  w[3] = c->tx * g[0] - c->ty * g[1];
  w[4] = c->ty * g[0] + c->tx * g[1];
  w[0] = w[1] = w[2] = splat(0);
  if (n > 2) {
    w[2] = g[2];
  }
  if (n > 3) {
    w[0] = c->tx * g[3] - c->ty * g[4];
    w[1] = c->ty * g[3] + c->tx * g[4];
  }
}

// friction coefficient of direction k
LANE realw soft_friction(const struct sim_soft_contact *s, const struct soft_coefs *c, int k) {
  return k < 2 ? c->mu : splat(k == 2 ? s->spin : s->roll);
}

// zones of the elliptic cone at residual w: T = |U|, U_k = friction_k w_k, N = ms w_n
struct cone_parts {
  realw U[5], N, T, ms, Dm;
  maskw top, bottom;
};
LANE void soft_cone(struct cone_parts *o, const int n, const struct sim_model *m,
                    const struct sim_soft_contact *s, const struct soft_coefs *c, const realw *w) {
  realw T2 = splat(0);
  soft_to_frame(o->U, n, c, w);
  for (int k = 0; k < 5 && k < n; k++) { // the 5 is for gcc, which fears for U
    o->U[k] *= soft_friction(s, c, k);
    T2 += o->U[k] * o->U[k];
  }
  o->ms = c->mu / __builtin_sqrt(m->impratio);
  o->N = o->ms * w[5];
  o->T = sqrtw(T2);
  maskw none = o->T < 1e-15;
  o->top = (o->N >= o->ms * o->T) | (none & (o->N >= 0.));
  o->bottom = ~o->top & ((o->ms * o->N + o->T <= 0.) | none);
  o->Dm = c->D / (o->ms * o->ms * (1. + o->ms * o->ms));
}

// f in the frame (friction directions; normal), w's components there -> f. Any condim.
LANE void soft_contact_force(const struct soft_kind kind, realw *f, const struct sim_model *m,
                             const struct sim_soft_contact *s, const struct soft_coefs *c,
                             const realw *w) {
  const int n = kind.n;
  if (n == 0) {
    f[0] = f[1] = f[2] = f[3] = f[4] = splat(0);
    f[5] = maskedw(w[5] < 0., -c->D * w[5]);
    return;
  }
  realw g[5] = {splat(0)}, normal = splat(0);
  if (kind.elliptic) {
    struct cone_parts e;
    soft_cone(&e, n, m, s, c, w);
    maskw middle = ~(e.top | e.bottom);
    realw f0 = -e.ms * e.Dm * (e.N - e.ms * e.T), inv = 1. / maxw(e.T, splat(1e-15));
    realw low = m->impratio * c->D / (c->mu * c->mu);
    normal = selectw(middle, f0, maskedw(e.bottom, -c->D * w[5]));
    for (int k = 0; k < n; k++) {
      realw scale = selectw(middle, -f0 * inv, maskedw(e.bottom, -low));
      g[k] = soft_friction(s, c, k) * scale * e.U[k];
    }
  } else {
    realw u[5];
    soft_to_frame(u, n, c, w);
    for (int k = 0; k < n; k++) {
      realw mu = soft_friction(s, c, k), jp = w[5] + mu * u[k], jm = w[5] - mu * u[k];
      realw fp = maskedw(jp < 0., -c->D * jp), fm = maskedw(jm < 0., -c->D * jm);
      normal += fp + fm;
      g[k] = mu * (fp - fm);
    }
  }
  soft_from_frame(f, n, c, g);
  f[5] = normal;
}

// C in the frame is a matrix A over the friction directions, a vector b to the normal, and a
// number; the elliptic one is A = diag(a) + rank one, the pyramidal one diagonal.
LANE void soft_contact_curvature(const struct soft_kind kind, realw *C, const struct sim_model *m,
                                 const struct sim_soft_contact *s, const struct soft_coefs *c,
                                 const realw *w) {
  const int n = kind.n;
  realw a[5], b[5], v[5], rank = splat(0), nn;
  for (int k = 0; k < 5; k++) {
    a[k] = b[k] = v[k] = splat(0);
  }
  if (n == 0) {
    nn = maskedw(w[5] < 0., c->D);
  } else if (kind.elliptic) {
    struct cone_parts e;
    soft_cone(&e, n, m, s, c, w);
    maskw middle = ~(e.top | e.bottom);
    realw inv = 1. / maxw(e.T, splat(1e-15)), q = e.ms * e.N * inv, m2 = e.ms * e.ms;
    realw low = m->impratio * c->D / (c->mu * c->mu);
    rank = maskedw(middle, e.Dm * q);
    nn = selectw(middle, e.Dm * m2, maskedw(e.bottom, c->D));
    for (int k = 0; k < n; k++) {
      realw mu = soft_friction(s, c, k);
      v[k] = mu * inv * e.U[k];
      a[k] = mu * mu * selectw(middle, e.Dm * (m2 - q), maskedw(e.bottom, low));
      b[k] = maskedw(middle, -e.Dm * m2 * v[k]);
    }
  } else {
    realw u[5];
    soft_to_frame(u, n, c, w);
    nn = splat(0);
    for (int k = 0; k < n; k++) {
      realw mu = soft_friction(s, c, k);
      realw dp = maskedw(w[5] + mu * u[k] < 0., c->D), dm = maskedw(w[5] - mu * u[k] < 0., c->D);
      nn += dp + dm;
      a[k] = mu * mu * (dp + dm);
      b[k] = mu * (dp - dm);
    }
  }
  // to world axes
  realw tx = c->tx, ty = c->ty, V[6];
  soft_from_frame(V, n > 2 ? n : 2, c, v);
  realw *L = C + C_LIN;
  L[0] = tx * tx * a[0] + ty * ty * a[1] + rank * V[3] * V[3];
  L[1] = ty * ty * a[0] + tx * tx * a[1] + rank * V[4] * V[4];
  L[2] = nn;
  L[3] = tx * ty * (a[0] - a[1]) + rank * V[3] * V[4];
  L[4] = tx * b[0] - ty * b[1];
  L[5] = ty * b[0] + tx * b[1];
  if (n > 2) {
    realw *P = C + C_MIX, *G = C + C_ANG;
    for (int r = 0; r < 3; r++) {
      for (int k = 0; k < 2; k++) {
        P[3 * r + k] = rank * V[r] * V[3 + k];
      }
    }
    P[2] = tx * b[3] - ty * b[4];
    P[5] = ty * b[3] + tx * b[4];
    P[8] = b[2];
    G[0] = tx * tx * a[3] + ty * ty * a[4] + rank * V[0] * V[0];
    G[1] = ty * ty * a[3] + tx * tx * a[4] + rank * V[1] * V[1];
    G[2] = a[2] + rank * V[2] * V[2];
    G[3] = tx * ty * (a[3] - a[4]) + rank * V[0] * V[1];
    G[4] = rank * V[0] * V[2];
    G[5] = rank * V[1] * V[2];
  }
}

// o = C x
LANE void soft_curvature_mul(realw *o, const int n, const realw *C, const realw *x) {
  const realw *L = C + C_LIN;
  o[3] = L[0] * x[3] + L[3] * x[4] + L[4] * x[5];
  o[4] = L[3] * x[3] + L[1] * x[4] + L[5] * x[5];
  o[5] = L[4] * x[3] + L[5] * x[4] + L[2] * x[5];
  o[0] = o[1] = o[2] = splat(0);
  if (n > 2) {
    const realw *P = C + C_MIX, *G = C + C_ANG;
    o[0] = G[0] * x[0] + G[3] * x[1] + G[4] * x[2] + dot3(P, x + 3);
    o[1] = G[3] * x[0] + G[1] * x[1] + G[5] * x[2] + dot3(P + 3, x + 3);
    o[2] = G[4] * x[0] + G[5] * x[1] + G[2] * x[2] + dot3(P + 6, x + 3);
    for (int k = 0; k < 3; k++) {
      o[3 + k] += P[k] * x[0] + P[3 + k] * x[1] + P[6 + k] * x[2];
    }
  }
}

// Cotangent y of f at residual w -> d_w (overwritten) and what the coefficients feel.
struct soft_coefs_cot {
  realw log_D, mu, turn; // f is proportional to D; turn: of the frame about the normal
};
LANE void soft_contact_force_bwd(const struct soft_kind kind, realw *d_w,
                                 struct soft_coefs_cot *d_c, const struct sim_model *m,
                                 const struct sim_soft_contact *s, const struct soft_coefs *c,
                                 const realw *C, const realw *f, const realw *w, const realw *y) {
  const int n = kind.n;
  soft_curvature_mul(d_w, n, C, y);
  for (int k = 0; k < 6; k++) {
    d_w[k] = -d_w[k];
  }
  realw yf = dot3(y + 3, f + 3);
  if (n > 2) {
    yf += dot3(y, f);
  }
  d_c->log_D = yf;
  d_c->mu = d_c->turn = splat(0);
  if (n == 0) {
    return;
  }
  // the frame turns f and w alike: df = e_z x f + C (e_z x w)
  d_c->turn = y[4] * f[3] - y[3] * f[4] - (d_w[4] * w[3] - d_w[3] * w[4]);
  if (n > 2) {
    d_c->turn += y[1] * f[0] - y[0] * f[1] - (d_w[1] * w[0] - d_w[0] * w[1]);
  }
  // the sliding coefficient: in the tangent directions, and in ms and D's share of it
  realw u[5], yk[5], mu = c->mu;
  soft_to_frame(u, n, c, w);
  soft_to_frame(yk, n, c, y);
  if (kind.elliptic) {
    struct cone_parts e;
    soft_cone(&e, n, m, s, c, w);
    maskw middle = ~(e.top | e.bottom);
    realw r = e.ms / mu, inv = 1. / maxw(e.T, splat(1e-15)); // ms = r mu
    realw gap = e.N - e.ms * e.T, yt = splat(0), ut = splat(0), wt = splat(0);
    for (int k = 0; k < 5 && k < n; k++) {
      yt += yk[k] * soft_friction(s, c, k) * e.U[k];
      if (k < 2) {
        ut += yk[k] * e.U[k]; // from the friction in front
        wt += e.U[k] * u[k];  // dT/dmu = wt / T
      }
    }
    // middle: f_n = -P gap, f_k = P gap friction_k U_k / T with P = ms Dm = D / (ms (1 + ms^2))
    realw P = e.ms * e.Dm, dT = wt * inv;
    realw dP = -P * r * (1. + 3. * e.ms * e.ms) / (e.ms * (1. + e.ms * e.ms));
    realw dgap = r * w[5] - r * e.T - e.ms * dT;
    realw d_Pgap = -y[5] + yt * inv, mid = d_Pgap * (dP * gap + P * dgap);
    realw along = ut; // friction_k U_k = friction_k^2 u_k: twice for the sliding directions
    mid += P * gap * inv * (2. * along - yt * inv * dT);
    d_c->mu = maskedw(middle, mid);
    // bottom: f_k = -low friction_k^2 u_k with low ~ 1 / mu^2: sliding does not depend on mu
    realw low = m->impratio * c->D / (mu * mu), rest = splat(0);
    for (int k = 2; k < n; k++) {
      realw q = soft_friction(s, c, k);
      rest += yk[k] * q * q * u[k];
    }
    d_c->mu += maskedw(e.bottom, 2. * low / mu * rest);
  } else {
    realw sum = splat(0);
    for (int k = 0; k < 2; k++) {
      maskw ap = w[5] + mu * u[k] < 0., am = w[5] - mu * u[k] < 0.;
      realw dp = maskedw(ap, c->D), dm = maskedw(am, c->D);
      realw fp = -dp * (w[5] + mu * u[k]), fm = -dm * (w[5] - mu * u[k]);
      realw d_fp = y[5] + mu * yk[k], d_fm = y[5] - mu * yk[k];
      sum += yk[k] * (fp - fm) - d_fp * dp * u[k] + d_fm * dm * u[k];
    }
    d_c->mu = sum;
  }
}

// Regularisation: D = d / ((1 - d) weight share), share 2 ms^2 (1 + mu^2) for a pyramid's edges.
LANE realw soft_share(const struct sim_model *m, const struct sim_soft_contact *s, realw mu) {
  if (m->elliptic || s->dim == 1) {
    return splat(1);
  }
  return 2. / m->impratio * mu * mu * (1. + mu * mu);
}
// d log share / d mu
LANE realw soft_share_slope(const struct sim_model *m, const struct sim_soft_contact *s, realw mu) {
  if (m->elliptic || s->dim == 1) {
    return splat(0);
  }
  return 2. / mu + 2. * mu / (1. + mu * mu);
}

// ---- dry friction: |f| <= loss

LANE realw soft_dry_force(realw *H, double D, realw loss, realw j) {
  realw f = -D * j;
  maskw hi = f > loss, lo = f < -loss;
  *H = maskedw(~(hi | lo), splat(D));
  return selectw(hi, loss, selectw(lo, -loss, f));
}
