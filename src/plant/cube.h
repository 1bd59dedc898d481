// Tosses of a cube made by MuJoCo, for machines without the recorded ones: the contact that
// task/tosses.h assumes, so that identification has an exact answer.
#pragma once
#include "task/tosses.h"

// n tosses of `frames` frames, thrown at random heights, speeds and spins.
int cube_make_tosses(struct tosses *t, struct arena *a, int n, int frames, uint64_t seed,
                     struct err *e);
