#include "learn/returns.h"

void returns_targets(double *target, const double *reward, const double *value,
                     const unsigned char *cut, int N, int E, double gamma, double lambda, int first,
                     int count) {
  for (int e = first; e < first + count; e++) {
    double g = 0;
    for (int t = N - 1; t >= 0; t--) {
      int i = t * E + e;
      double next = cut[i] || t == N - 1 ? value[i] : (1 - lambda) * value[i] + lambda * g;
      g = reward[i] + gamma * next;
      target[i] = g;
    }
  }
}

void returns_losses(double *loss, double *discount, const double *reward, const double *value,
                    const unsigned char *cut, int N, int E, double gamma, int first, int count) {
  for (int e = first; e < first + count; e++) {
    double sum = 0, d = 1;
    for (int t = 0; t < N; t++) {
      int i = t * E + e;
      discount[i] = d;
      sum += d * reward[i];
      d *= gamma;
      if (cut[i] || t == N - 1) {
        sum += d * value[i];
        d = 1;
      }
    }
    loss[e] = -sum;
  }
}

void returns_advantages(double *advantage, double *target, const double *reward,
                        const double *before, const double *next, const unsigned char *cut, int N,
                        int E, double gamma, double lambda, int first, int count) {
  for (int e = first; e < first + count; e++) {
    double a = 0;
    for (int t = N - 1; t >= 0; t--) {
      int i = t * E + e;
      double d = reward[i] + gamma * next[i] - before[i];
      a = cut[i] ? d : d + gamma * lambda * a;
      advantage[i] = a;
      target[i] = a + before[i];
    }
  }
}

// how many losses the statistics remember: returns change as the policy learns
static const double MEMORY = 6400;

void return_stats_init(struct return_stats *s) {
  *s = (struct return_stats){.var = 1, .count = 1e-4};
}

void return_stats_merge(struct return_stats *s, const double *loss, int E) {
  double mean = 0, square = 0;
  for (int e = 0; e < E; e++) {
    mean += loss[e] / E;
  }
  for (int e = 0; e < E; e++) {
    square += (loss[e] - mean) * (loss[e] - mean);
  }
  double total = s->count + E, shift = mean - s->mean;
  s->var = (s->var * s->count + square + shift * shift * s->count * E / total) / total;
  s->mean += shift * E / total;
  s->count = total < MEMORY ? total : MEMORY;
}

double return_stats_scale(const struct return_stats *s, bool normalise, int E, int N) {
  return normalise ? 1 / (E * __builtin_sqrt(s->var + 1e-5)) : 1.0 / E / N;
}
