// Domain randomisation (ranges of arXiv 2609.30951): what a robot's episode differs in from the
// nominal robot. Drawn by counter from (seed, environment, episode), so a replay needs no record of
// it. The simulator takes the physical part as per-lane parameters.
#pragma once
#include "learn/world.h"

// True when the spec asks for anything that changes between episodes.
bool randomise_on(const struct spec *s);

// What an episode has besides the simulator's parameters.
struct randomise_episode {
  int latency; // control steps by which actions arrive late: 0 or 1
};
// Writes lane l of param (nparam, W) and of the targets' offset (nu, W).
struct randomise_episode randomise_draw(const struct world *w, double *param, double *offset, int l,
                                        uint32_t env, uint32_t episode);

// Pushes come every U(1, 3) s of an episode. True when one falls on the control step `length` of
// the episode; push then holds its change of the root's velocity: linear (world), angular (body).
bool randomise_push(const struct world *w, double push[6], uint32_t env, uint32_t episode,
                    int length);
