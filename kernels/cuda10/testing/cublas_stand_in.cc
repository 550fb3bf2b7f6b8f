// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A fake of a newer cuBLAS that multiplies nothing. It stores the arguments of
// the last call, in their order, for the test.

#include <cstdint>
#include <initializer_list>

namespace {

int64_t arguments[32];
int count = 0;

int Keep(std::initializer_list<int64_t> values) {
  count = 0;
  for (int64_t value : values) arguments[count++] = value;
  return 0;
}

int64_t Number(const void* pointer) {
  return reinterpret_cast<int64_t>(pointer);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cublasStandInArguments(int64_t* to) {
  for (int i = 0; i < count; ++i) to[i] = arguments[i];
  return count;
}

// A function with the same meaning in both versions.
EXPORTED int cublasGetVersion_v2(void* handle, int* version) {
  *version = 130000;
  return handle == nullptr ? 1 : 0;
}

EXPORTED int cublasGemmEx(void* handle, int transa, int transb, int m, int n,
                          int k, const void* alpha, const void* a, int a_type,
                          int lda, const void* b, int b_type, int ldb,
                          const void* beta, void* c, int c_type, int ldc,
                          int compute_type, int algorithm) {
  return Keep({Number(handle), transa, transb, m, n, k, Number(alpha),
               Number(a), a_type, lda, Number(b), b_type, ldb, Number(beta),
               Number(c), c_type, ldc, compute_type, algorithm});
}

EXPORTED int cublasGemmBatchedEx(void* handle, int transa, int transb, int m,
                                 int n, int k, const void* alpha,
                                 const void* const a[], int a_type, int lda,
                                 const void* const b[], int b_type, int ldb,
                                 const void* beta, void* const c[], int c_type,
                                 int ldc, int batch, int compute_type,
                                 int algorithm) {
  return Keep({Number(handle),
               transa,
               transb,
               m,
               n,
               k,
               Number(alpha),
               Number(a),
               a_type,
               lda,
               Number(b),
               b_type,
               ldb,
               Number(beta),
               Number(c),
               c_type,
               ldc,
               batch,
               compute_type,
               algorithm});
}

EXPORTED int cublasGemmStridedBatchedEx(void* handle, int transa, int transb,
                                        int m, int n, int k, const void* alpha,
                                        const void* a, int a_type, int lda,
                                        long long stride_a, const void* b,
                                        int b_type, int ldb, long long stride_b,
                                        const void* beta, void* c, int c_type,
                                        int ldc, long long stride_c, int batch,
                                        int compute_type, int algorithm) {
  return Keep({Number(handle),
               transa,
               transb,
               m,
               n,
               k,
               Number(alpha),
               Number(a),
               a_type,
               lda,
               stride_a,
               Number(b),
               b_type,
               ldb,
               stride_b,
               Number(beta),
               Number(c),
               c_type,
               ldc,
               stride_c,
               batch,
               compute_type,
               algorithm});
}
