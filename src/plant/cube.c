#include "plant/cube.h"
#include "base/rng.h"
#include "sim/rotation.h"
#include <mujoco/mujoco.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUBSTEPS = 20 }; // of a frame

static mjModel *cube_model(struct err *e) {
  char xml[1500], path[] = "/tmp/dsim_cube_XXXXXX.xml", error[500] = "";
  double half = 0.5 * TOSS_CUBE_SIDE, side = TOSS_CUBE_SIDE;
  int n = snprintf(
      xml, sizeof xml,
      "<mujoco><option timestep='%.17g' integrator='RK4' tolerance='1e-12' iterations='100'>"
      "<flag refsafe='disable'/></option>"
      "<default><geom solref='-300 -36.02' solimp='.9 .95 .001 .5 2' friction='.18 .005 .0001'/>"
      "</default><worldbody><geom type='plane' size='5 5 1'/><body><joint type='free'/>"
      "<geom type='box' size='%.17g %.17g %.17g' density='%.17g'/></body></worldbody></mujoco>",
      1 / TOSS_RATE / SUBSTEPS, half, half, half, TOSS_CUBE_MASS / (side * side * side));
  // only MuJoCo's file loader exists in all of its releases
  int fd = mkstemps(path, 4);
  if (fd < 0 || write(fd, xml, (size_t)n) != n) {
    err_set(e, EXIT_IO, "cannot write '%s'", path);
  }
  if (fd >= 0) {
    close(fd);
  }
  mjModel *m = e->code ? NULL : mj_loadXML(path, NULL, error, sizeof error);
  unlink(path);
  if (!m && !e->code) {
    err_set(e, EXIT_CHECK, "MuJoCo refuses the cube: %s", error);
  }
  return m;
}

int cube_make_tosses(struct tosses *t, struct arena *a, int n, int frames, uint64_t seed,
                     struct err *e) {
  mjModel *m = cube_model(e);
  if (!m) {
    return e->code;
  }
  mjData *d = mj_makeData(m);
  *t = (struct tosses){.n = n, .toss = ARENA_NEW(a, struct toss, n)};
  for (int i = 0; i < n; i++) {
    struct rng r = rng_stream(seed, RNG_RESET, (uint32_t)i, 0, 0);
    static const double identity[4] = {1, 0, 0, 0};
    double turn[3];
    mj_resetData(m, d);
    for (int k = 0; k < 3; k++) {
      turn[k] = rng_range(&r, -2, 2);
      d->qpos[k] = k == 2 ? rng_range(&r, 0.12, 0.22) : 0;
      d->qvel[k] = k == 2 ? rng_range(&r, -0.5, 0.3) : rng_range(&r, -1, 1);
      d->qvel[3 + k] = rng_range(&r, -8, 8);
    }
    quat_shift(d->qpos + 3, identity, turn);
    t->toss[i].frames = frames;
    t->toss[i].state = arena_alloc(a, sizeof *t->toss[i].state * (size_t)frames);
    for (int k = 0; k < frames; k++) {
      memcpy(t->toss[i].state[k], d->qpos, sizeof(double[7]));
      memcpy(t->toss[i].state[k] + 7, d->qvel, sizeof(double[6]));
      for (int j = 0; j < SUBSTEPS; j++) {
        mj_step(m, d);
      }
    }
  }
  mj_deleteData(d);
  mj_deleteModel(m);
  return 0;
}
