// Spatial algebra on lanes. Vectors are (angular; linear) in world axes about the tree's origin O;
// a force's dual pairing is the plain dot product. The inertia of a body about O is ten numbers:
// mass m, h = m c (3), and the rotational part xx yy zz xy xz yz.

// The compiler lets a store of lanes alias anything, so that each one would make it load every
// pointer of the model and the work space again. A stage therefore runs on copies that no store can
// reach; only the members it uses are copied.
#define STAGE_LOCAL(type, x)                                                                       \
  type x##_here = *x;                                                                              \
  x = &x##_here
#define STAGE_LOCALS(m, w)                                                                         \
  STAGE_LOCAL(struct sim_model, m);                                                                \
  STAGE_LOCAL(struct sim_work, w)

LANE realw dot6(const realw *a, const realw *b) {
  return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) + (a[3] * b[3] + a[4] * b[4] + a[5] * b[5]);
}

// o += V x S (motion), o += V x* F and o -= V x* F (force); (V x)' = -(V x*)
LANE void cross_motion_add(realw *o, const realw *V, const realw *S) {
  cross3_add(o, V, S);
  cross3_add(o + 3, V, S + 3);
  cross3_add(o + 3, V + 3, S);
}
LANE void cross_force_add(realw *o, const realw *V, const realw *F) {
  cross3_add(o, V, F);
  cross3_add(o, V + 3, F + 3);
  cross3_add(o + 3, V, F + 3);
}
LANE void cross_force_sub(realw *o, const realw *V, const realw *F) {
  cross3_sub(o, V, F);
  cross3_sub(o, V + 3, F + 3);
  cross3_sub(o + 3, V, F + 3);
}

// o = I u
LANE void inertia_mul(realw *o, realw m, const realw *I, const realw *u) {
  const realw *h = I;
  o[0] = I[3] * u[0] + I[6] * u[1] + I[7] * u[2] + h[1] * u[5] - h[2] * u[4];
  o[1] = I[6] * u[0] + I[4] * u[1] + I[8] * u[2] + h[2] * u[3] - h[0] * u[5];
  o[2] = I[7] * u[0] + I[8] * u[1] + I[5] * u[2] + h[0] * u[4] - h[1] * u[3];
  o[3] = m * u[3] - h[1] * u[2] + h[2] * u[1];
  o[4] = m * u[4] - h[2] * u[0] + h[0] * u[2];
  o[5] = m * u[5] - h[0] * u[1] + h[1] * u[0];
}

// cotangent of (h, rotational part, mass) from the bilinear form x . (I y), added to d_I[10]; the
// six stored entries stand for the symmetric matrix, so off-diagonals collect both places
LANE void inertia_pair_add(realw *d_I, const realw *x, const realw *y) {
  cross3_add(d_I, y + 3, x);
  cross3_add(d_I, x + 3, y);
  d_I[3] += x[0] * y[0];
  d_I[4] += x[1] * y[1];
  d_I[5] += x[2] * y[2];
  d_I[6] += x[0] * y[1] + x[1] * y[0];
  d_I[7] += x[0] * y[2] + x[2] * y[0];
  d_I[8] += x[1] * y[2] + x[2] * y[1];
}

// the wrench (about O) by which a body's inertia feels its pose move: dI = dX x* I - I dX x
LANE void inertia_wrench_add(realw *F, realw m, const realw *I, const realw *d_I) {
  const realw *h = I;
  // E: the symmetric cotangent matrix, off-diagonals halved; moment 2 axial(I3 E)
  realw E00 = d_I[3], E11 = d_I[4], E22 = d_I[5];
  realw E01 = .5 * d_I[6], E02 = .5 * d_I[7], E12 = .5 * d_I[8];
  realw A12 = I[6] * E02 + I[4] * E12 + I[8] * E22, A21 = I[7] * E01 + I[8] * E11 + I[5] * E12;
  realw A20 = I[7] * E00 + I[8] * E01 + I[5] * E02, A02 = I[3] * E02 + I[6] * E12 + I[7] * E22;
  realw A01 = I[3] * E01 + I[6] * E11 + I[7] * E12, A10 = I[6] * E00 + I[4] * E01 + I[8] * E02;
  F[0] += 2. * (A12 - A21);
  F[1] += 2. * (A20 - A02);
  F[2] += 2. * (A01 - A10);
  cross3_add(F, h, d_I);
  // translation: dh = m v, dI3 = 2 (h.v) 1 - h v' - v h'
  realw tr = E00 + E11 + E22;
  F[3] += m * d_I[0] + 2. * (tr * h[0] - (E00 * h[0] + E01 * h[1] + E02 * h[2]));
  F[4] += m * d_I[1] + 2. * (tr * h[1] - (E01 * h[0] + E11 * h[1] + E12 * h[2]));
  F[5] += m * d_I[2] + 2. * (tr * h[2] - (E02 * h[0] + E12 * h[1] + E22 * h[2]));
}

// ---- exponential map on rotations, by series in t = |th|^2: no singularity at zero
// ------------------

// sum_k c_k t^k with c_k = (-1)^k scale / (offset + 2k)! / div^k, evaluated by Horner from k = n-1
#define EXP_TERMS 11
static const double exp_cos_half[EXP_TERMS] = { // cos(|th| / 2)
    1.0,
    -1.0 / 8,
    1.0 / 384,
    -1.0 / 46080,
    1.0 / 10321920,
    -1.0 / 3715891200,
    1.0 / 1961990553600.,
    -1.0 / 1428329123020800.,
    1.0 / 1371195958099968000.,
    -1.0 / 1678343852714360832000.,
    1.0 / 2551082656125828464640000.};
static const double exp_sin_half[EXP_TERMS] = { // sin(|th| / 2) / |th|
    1.0 / 2,
    -1.0 / 48,
    1.0 / 3840,
    -1.0 / 645120,
    1.0 / 185794560,
    -1.0 / 81749606400.,
    1.0 / 51011754393600.,
    -1.0 / 42849873690624000.,
    1.0 / 46620662575398912000.,
    -1.0 / 63777066403145711616000.,
    1.0 / 107145471557284795514880000.};
static const double exp_A[EXP_TERMS] = { // sin / |th|
    1.0,
    -1.0 / 6,
    1.0 / 120,
    -1.0 / 5040,
    1.0 / 362880,
    -1.0 / 39916800,
    1.0 / 6227020800.,
    -1.0 / 1307674368000.,
    1.0 / 355687428096000.,
    -1.0 / 121645100408832000.,
    1.0 / 51090942171709440000.};
static const double exp_B[EXP_TERMS] = { // (1 - cos) / |th|^2
    1.0 / 2,
    -1.0 / 24,
    1.0 / 720,
    -1.0 / 40320,
    1.0 / 3628800,
    -1.0 / 479001600,
    1.0 / 87178291200.,
    -1.0 / 20922789888000.,
    1.0 / 6402373705728000.,
    -1.0 / 2432902008176640000.,
    1.0 / 1124000727777607680000.};
static const double exp_C[EXP_TERMS] = { // (|th| - sin) / |th|^3
    1.0 / 6,
    -1.0 / 120,
    1.0 / 5040,
    -1.0 / 362880,
    1.0 / 39916800,
    -1.0 / 6227020800.,
    1.0 / 1307674368000.,
    -1.0 / 355687428096000.,
    1.0 / 121645100408832000.,
    -1.0 / 51090942171709440000.,
    1.0 / 25852016738884976640000.};

LANE realw exp_series(realw t, const double *c) {
  realw p = splat(c[EXP_TERMS - 1]);
  for (int i = EXP_TERMS - 2; i >= 0; i--) {
    p = p * t + c[i];
  }
  return p;
}

// o = q Exp(th); o may be q
LANE void quat_exp_mul(realw *o, const realw *q, const realw *th) {
  realw t = dot3(th, th), a = exp_series(t, exp_cos_half), b = exp_series(t, exp_sin_half);
  realw x = b * th[0], y = b * th[1], z = b * th[2];
  realw w0 = q[0] * a - q[1] * x - q[2] * y - q[3] * z;
  realw x0 = q[0] * x + q[1] * a + q[2] * z - q[3] * y;
  realw y0 = q[0] * y - q[1] * z + q[2] * a + q[3] * x;
  realw z0 = q[0] * z + q[1] * y - q[2] * x + q[3] * a;
  o[0] = w0;
  o[1] = x0;
  o[2] = y0;
  o[3] = z0;
}

// R+ = R Exp(th) with cotangent y of R+: d_R = Exp(th) y, d_th = Jr(th)' y
LANE void quat_exp_mul_adj(realw *d_R, realw *d_th, const realw *th, const realw *y) {
  realw t = dot3(th, th), A = exp_series(t, exp_A), B = exp_series(t, exp_B),
        C = exp_series(t, exp_C), c1[3], c2[3];
  cross3(c1, th, y);
  cross3(c2, th, c1);
  for (int k = 0; k < 3; k++) {
    d_R[k] = y[k] + A * c1[k] + B * c2[k];
    d_th[k] = y[k] + B * c1[k] + C * c2[k];
  }
}
