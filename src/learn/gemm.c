#include "learn/gemm.h"
#include <cblas.h>

void gemm_start(void) {
  openblas_set_num_threads(1);
}

const char *gemm_kernel(void) {
  return openblas_get_corename();
}

void gemm_nt(float *c, const float *a, const float *b, int m, int n, int k, float beta) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, beta, c, n);
}

void gemm_nn(float *c, const float *a, const float *b, int m, int n, int k, float beta) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, beta, c, n);
}

void gemm_tn(float *c, const float *a, const float *b, int m, int n, int k, float beta) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, a, m, b, n, beta, c, n);
}
