// Matrix products: the only door to BLAS. Row-major, float. One call runs on one thread; callers
// cut work over threads themselves, so that results do not depend on how many there are.
#pragma once

// Sets OpenBLAS to one thread. Call once at start-up, before any thread is made.
void gemm_start(void);
// Name of the kernel family OpenBLAS chose for this processor ("SkylakeX", ...): results of a run
// depend on it. OPENBLAS_CORETYPE overrides.
const char *gemm_kernel(void);

// c (m,n) = a (m,k) b (n,k)' + beta c
void gemm_nt(float *c, const float *a, const float *b, int m, int n, int k, float beta);
// c (m,n) = a (m,k) b (k,n) + beta c
void gemm_nn(float *c, const float *a, const float *b, int m, int n, int k, float beta);
// c (m,n) = a (k,m)' b (k,n) + beta c
void gemm_tn(float *c, const float *a, const float *b, int m, int n, int k, float beta);
