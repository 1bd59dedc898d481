// Returns of a rollout window. SHAC as in PWM: the actor's loss per environment, TD(lambda) targets
// of the critic, and the running deviation that scales the loss. PPO: advantages.
//
// Arrays are (N, E), step by step. value[t] is the value of the state after step t, before any
// reset: 0 where the episode failed. cut[t] != 0: the episode ended with step t.
#pragma once
#include <stdbool.h>

// target = r + gamma * ((1 - lambda) V + lambda * target of the next step), V alone where cut or at
// the window's end. For environments first..first+count-1.
void returns_targets(double *target, const double *reward, const double *value,
                     const unsigned char *cut, int N, int E, double gamma, double lambda, int first,
                     int count);

// loss[e] = -sum over segments (sum gamma^k r + gamma^len V); discount (N, E) gets gamma^k of each
// step's reward, which backward needs.
void returns_losses(double *loss, double *discount, const double *reward, const double *value,
                    const unsigned char *cut, int N, int E, double gamma, int first, int count);

// GAE(lambda) (Schulman et al., arXiv 1506.02438): with d = r + gamma next - before, the values of
// the state before and after a step, advantage = d + gamma lambda * that of the next step, d alone
// where cut or at the window's end; target = advantage + before.
void returns_advantages(double *advantage, double *target, const double *reward,
                        const double *before, const double *next, const unsigned char *cut, int N,
                        int E, double gamma, double lambda, int first, int count);

struct return_stats { // of losses per environment, over recent iterations
  double mean, var, count;
};
void return_stats_init(struct return_stats *s);
void return_stats_merge(struct return_stats *s, const double *loss, int E);
// What one environment's loss is multiplied by: 1 / (E sqrt(var + 1e-5)), or 1 / (E N) if not
// normalised.
double return_stats_scale(const struct return_stats *s, bool normalise, int E, int N);
