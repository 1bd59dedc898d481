// From a wish list to a motion: one least-squares problem over the whole clip.
//
// Unknowns: the pose q_t of every frame (tangent space, nv numbers) and a force f at each of the
// four spheres of every planted foot. Terms, each a difference over its standard deviation,
// squared:
//   Newton        m (c_{t+1} - 2 c_t + c_{t-1}) / dt^2 = m g + sum f        in flight: a parabola
//   Euler         (L_{t+1/2} - L_{t-1/2}) / dt = sum (p - c_t) x f          in flight: L constant
//   wishes        feet, pelvis, torso, joints
//   smoothness    second differences of all coordinates
//   inequalities  (one-sided) joint ranges, speeds and torques; forces push, inside the friction
//                 cone; soles stay above the floor
// c, L: centre of mass and angular momentum about it (Orin, Goswami and Lee 2013); the formulation
// is the one of Dai, Valenzuela and Tedrake 2014 with penalties instead of constraints.
//
// Forces touch one frame only and are eliminated there (Schur complement). What remains couples
// three neighbouring frames: a band matrix of half width 3 nv - 1, solved by Cholesky.
// Levenberg-Marquardt damping with backtracking.
#include "motion/synth_solve.h"
#include "base/log.h"
#include <math.h>
#include <string.h>

static const double force_damping = 1e-6; // rad^2/N^2, of forces beside that of coordinates

static bool cholesky(double *a, int n, int stride) { // lower, in place, rows of `stride`
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) {
      double v = a[i * stride + j];
      for (int k = 0; k < j; k++) {
        v -= a[i * stride + k] * a[j * stride + k];
      }
      if (i == j) {
        if (!(v > 0)) {
          return false;
        }
        a[i * stride + i] = sqrt(v);
      } else {
        a[i * stride + j] = v / a[j * stride + j];
      }
    }
  }
  return true;
}

// x = L^-1 b, then (back) x = L^-T x; b has `cols` columns
static void forward_solve(double *b, const double *l, int n, int stride, int cols) {
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < i; k++) {
      for (int c = 0; c < cols; c++) {
        b[i * cols + c] -= l[i * stride + k] * b[k * cols + c];
      }
    }
    for (int c = 0; c < cols; c++) {
      b[i * cols + c] /= l[i * stride + i];
    }
  }
}
static void back_solve(double *b, const double *l, int n, int stride) {
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) {
      b[i] -= l[k * stride + i] * b[k];
    }
    b[i] /= l[i * stride + i];
  }
}

static void update_kin(struct synth_solver *s, const double *qpos) {
#pragma omp parallel for schedule(static)
  for (int t = 0; t < s->n; t++) {
    synth_kin_update(&s->frame[t].kin, s->r, solver_qpos(s, qpos, t));
  }
}

static double total_cost(const struct synth_solver *s, const double *qpos, bool trial_force) {
  double *cost = s->grad; // free while costs are compared
#pragma omp parallel for schedule(static)
  for (int t = 0; t < s->n; t++) {
    struct synth_local w;
    cost[t] =
        solver_terms(&w, s, t, qpos, trial_force ? s->trial_force[t] : s->frame[t].force, false);
  }
  double sum = 0;
  for (int t = 0; t < s->n; t++) {
    sum += cost[t];
  }
  return sum;
}

// eliminates the forces of frame t and adds what is left to the band matrix. Columns before the
// first and after the last frame fold back onto it: the robot rests there.
static void add_to_band(struct synth_solver *s, struct synth_local *w, int t, double damping,
                        bool *ok) {
  struct synth_state *f = &s->frame[t];
  const int nv = s->nv, wide = 3 * nv, nf = f->nforce;
  if (nf > 0) {
    static _Thread_local double half[MAX_FORCE * (MAX_WIDE + 1)];
    for (int i = 0; i < nf; i++) {
      memcpy(f->hff + i * nf, w->hff[i], (size_t)nf * sizeof(double));
      f->hff[i * nf + i] += damping * force_damping;
      memcpy(f->hfq + i * wide, w->hfq[i], (size_t)wide * sizeof(double));
      memcpy(half + i * (wide + 1), w->hfq[i], (size_t)wide * sizeof(double));
      f->gf[i] = half[i * (wide + 1) + wide] = w->gf[i];
    }
    if (!cholesky(f->hff, nf, nf)) {
#pragma omp atomic write
      *ok = false;
      return;
    }
    forward_solve(half, f->hff, nf, nf, wide + 1);
    for (int k = 0; k < nf; k++) {
      const double *row = half + k * (wide + 1);
      for (int i = 0; i < wide; i++) {
        w->g[i] -= row[i] * row[wide];
        for (int j = 0; j <= i; j++) {
          w->h[i][j] -= row[i] * row[j];
        }
      }
    }
  }
  for (int i = 0; i < wide; i++) {
    const int ti = t - 1 + i / nv, ci = ti < 0 ? 0 : ti >= s->n ? s->n - 1 : ti;
    const int gi = ci * nv + i % nv;
    s->grad[gi] += w->g[i];
    for (int j = 0; j < wide; j++) {
      const int tj = t - 1 + j / nv, cj = tj < 0 ? 0 : tj >= s->n ? s->n - 1 : tj;
      const int gj = cj * nv + j % nv;
      if (gj <= gi) {
        s->band[(size_t)gi * (size_t)(s->bw + 1) + (size_t)(gj - gi + s->bw)] +=
            j <= i ? w->h[i][j] : w->h[j][i];
      }
    }
  }
}

static double dot(const double *a, const double *b, int n) {
  double s[8] = {0};
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; k++) {
      s[k] += a[i + k] * b[i + k];
    }
  }
  for (; i < n; i++) {
    s[0] += a[i] * b[i];
  }
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

// band Cholesky in place, then grad <- H^-1 grad
static bool band_solve(struct synth_solver *s) {
  const int n = s->n * s->nv, bw = s->bw;
  const size_t stride = (size_t)bw + 1;
  for (int i = 0; i < n; i++) {
    double *ri = s->band + (size_t)i * stride; // column j at ri[j - i + bw]
    const int first = i > bw ? i - bw : 0;
    for (int j = first; j <= i; j++) {
      const double *rj = s->band + (size_t)j * stride;
      const int from = j > bw ? (j - bw > first ? j - bw : first) : first;
      const double v = ri[j - i + bw] - dot(ri + (from - i + bw), rj + (from - j + bw), j - from);
      if (j < i) {
        ri[j - i + bw] = v / rj[bw];
      } else if (v > 0) {
        ri[bw] = sqrt(v);
      } else {
        return false;
      }
    }
    s->grad[i] = (s->grad[i] - dot(ri + (first - i + bw), s->grad + first, i - first)) / ri[bw];
  }
  for (int i = n - 1; i >= 0; i--) {
    const double *ri = s->band + (size_t)i * stride;
    s->grad[i] /= ri[bw];
    for (int j = i > bw ? i - bw : 0; j < i; j++) {
      s->grad[j] -= ri[j - i + bw] * s->grad[i];
    }
  }
  return true;
}

// one damped Gauss-Newton direction into step and the frames' step_f
static bool propose(struct synth_solver *s, double damping) {
  const int nv = s->nv, wide = 3 * nv;
  memset(s->band, 0, (size_t)(s->n * nv) * (size_t)(s->bw + 1) * sizeof(double));
  memset(s->grad, 0, (size_t)(s->n * nv) * sizeof(double));
  bool ok = true;
  // three colours of frames, so that threads never add to the same entry; the order of additions to
  // one entry is the same for any number of threads
  for (int colour = 0; colour < 3; colour++) {
#pragma omp parallel for schedule(static)
    for (int t = colour; t < s->n; t += 3) {
      struct synth_local w;
      solver_terms(&w, s, t, s->qpos, s->frame[t].force, true);
      add_to_band(s, &w, t, damping, &ok);
    }
  }
  for (int i = 0; i < s->n * nv; i++) {
    s->band[(size_t)i * (size_t)(s->bw + 1) + (size_t)s->bw] += damping;
  }
  if (!ok || !band_solve(s)) {
    return false;
  }
  for (int t = 0; t < s->n; t++) {
    struct synth_state *f = &s->frame[t];
    // df = -Hff^-1 (gf + Hfq dq)
    for (int i = 0; i < f->nforce; i++) {
      double v = f->gf[i];
      for (int c = 0; c < wide; c++) {
        const int tc = t - 1 + c / nv, cc = tc < 0 ? 0 : tc >= s->n ? s->n - 1 : tc;
        v -= f->hfq[i * wide + c] * s->grad[cc * nv + c % nv];
      }
      f->step_f[i] = -v;
    }
    if (f->nforce > 0) {
      forward_solve(f->step_f, f->hff, f->nforce, f->nforce, 1);
      back_solve(f->step_f, f->hff, f->nforce, f->nforce);
    }
  }
  memcpy(s->step, s->grad, (size_t)(s->n * nv) * sizeof(double));
  return true;
}

// trial = now + length * step
static void take_step(struct synth_solver *s, double length) {
  for (int t = 0; t < s->n; t++) {
    double dv[MAX_NV], *q = s->trial + (size_t)t * (size_t)s->r->nq;
    for (int j = 0; j < s->nv; j++) {
      dv[j] = -length * s->step[t * s->nv + j];
    }
    memcpy(q, solver_qpos(s, s->qpos, t), (size_t)s->r->nq * sizeof(double));
    robot_integrate(s->r, q, dv);
    for (int i = 0; i < s->frame[t].nforce; i++) {
      s->trial_force[t][i] = s->frame[t].force[i] + length * s->frame[t].step_f[i];
    }
  }
}

// Levenberg-Marquardt with backtracking, until a full step gains less than a part in 3000
static void descend(struct synth_solver *s, int iterations) {
  double damping = 1;
  for (int it = 0; it < iterations; it++) {
    const double cost = total_cost(s, s->qpos, false);
    double now = cost, length = 1;
    for (int attempt = 0; attempt < 5 && !(now < cost); attempt++) {
      if (propose(s, damping)) {
        for (length = 1; length > .1; length *= .5) {
          take_step(s, length);
          update_kin(s, s->trial);
          now = total_cost(s, s->trial, true);
          if (now < cost) {
            break;
          }
        }
      }
      damping *= now < cost ? (length == 1 ? .1 : 2) : 20;
    }
    log_progress("synth: sigma x %g, step %d, cost %.6g", s->soft, it, now);
    if (!(now < cost)) {
      update_kin(s, s->qpos);
      return;
    }
    memcpy(s->qpos, s->trial, (size_t)(s->n * s->r->nq) * sizeof(double));
    for (int t = 0; t < s->n; t++) {
      memcpy(s->frame[t].force, s->trial_force[t], sizeof s->trial_force[t]);
    }
    if (length == 1 && cost - now < cost / 3000) {
      return;
    }
  }
}

int plan_solve(double *qpos, const struct synth_plan *p, struct arena *a, int iterations,
               struct err *e) {
  const struct robot *r = p->body.robot;
  BUG_IF(r->nv > MAX_NV);
  struct synth_solver s = {.plan = p,
                           .r = r,
                           .n = p->nframe,
                           .nv = r->nv,
                           .bw = 3 * r->nv - 1,
                           .dt = p->dt,
                           .qpos = qpos};
  const size_t unknowns = (size_t)(s.n * s.nv);
  s.frame = ARENA_NEW(a, struct synth_state, s.n);
  s.trial = ARENA_NEW(a, double, s.n * r->nq);
  s.trial_force = arena_alloc(a, (size_t)s.n * sizeof *s.trial_force);
  s.band = ARENA_NEW(a, double, unknowns *(size_t)(s.bw + 1));
  s.grad = ARENA_NEW(a, double, unknowns);
  s.step = ARENA_NEW(a, double, unknowns);
  for (int t = 0; t < s.n; t++) {
    struct synth_state *f = &s.frame[t];
    synth_kin_new(&f->kin, a, r);
    for (int foot = 0; foot < 2; foot++) {
      const struct synth_foot *want = &p->frame[t].foot[foot];
      for (int i = 0; i < SYNTH_SPHERES && want->contact; i++) {
        f->force[f->nforce + 2] = want->load / SYNTH_SPHERES;
        f->nforce += 3;
      }
    }
    f->hff = ARENA_NEW(a, double, f->nforce * f->nforce + 1);
    f->hfq = ARENA_NEW(a, double, f->nforce * 3 * r->nv + 1);
  }
  update_kin(&s, s.qpos);
  // stiff equations bend the way down; they stiffen as the motion gets close
  static const double soft[] = {100, 20, 4, 1};
  for (size_t stage = 0; stage < sizeof soft / sizeof soft[0]; stage++) {
    solver_soften(&s, soft[stage]);
    descend(&s, stage + 1 < sizeof soft / sizeof soft[0] ? iterations / 4 : iterations);
  }
  log_progress_end();
  for (size_t i = 0; i < (size_t)(s.n * r->nq); i++) {
    if (!isfinite(s.qpos[i])) {
      return err_set(e, EXIT_NUMERIC, "motion synth: the solver diverged");
    }
  }
  return 0;
}
