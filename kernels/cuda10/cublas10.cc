// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// libcublas.so.10.0 on top of a newer cuBLAS.
//
// Three functions take the type in which products are summed: a cudaDataType in
// CUDA 10.0, but in newer libraries a cublasComputeType_t, which begins at 64.
// A newer library would reject the old values, so these three functions
// translate them. All other functions are unchanged. The dynamic linker finds
// them in the library that this one is linked to under the name
// libcublas_behind.so.

#include <dlfcn.h>

#include <cstdint>

namespace {

constexpr int kNotInitialized = 1;  // CUBLAS_STATUS_NOT_INITIALIZED
constexpr int kNotSupported = 15;   // CUBLAS_STATUS_NOT_SUPPORTED

// Returns the cublasComputeType_t of a cudaDataType, or -1.
int ComputeType(int data_type) {
  switch (data_type) {
    case 0:  // CUDA_R_32F
    case 4:  // CUDA_C_32F
      return 68;
    case 1:  // CUDA_R_64F
    case 5:  // CUDA_C_64F
      return 70;
    case 2:  // CUDA_R_16F
      return 64;
    case 10:  // CUDA_R_32I
      return 72;
    default:
      return -1;
  }
}

template <typename Function>
Function Behind(const char* name) {
  static void* library = dlopen("libcublas_behind.so", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int cublasGemmEx(void* handle, int transa, int transb, int m, int n,
                          int k, const void* alpha, const void* a, int a_type,
                          int lda, const void* b, int b_type, int ldb,
                          const void* beta, void* c, int c_type, int ldc,
                          int sum_type, int algorithm) {
  using Function = int (*)(void*, int, int, int, int, int, const void*,
                           const void*, int, int, const void*, int, int,
                           const void*, void*, int, int, int, int);
  static const Function function = Behind<Function>("cublasGemmEx");
  if (function == nullptr) return kNotInitialized;
  int type = ComputeType(sum_type);
  if (type < 0) return kNotSupported;
  return function(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b,
                  b_type, ldb, beta, c, c_type, ldc, type, algorithm);
}

EXPORTED int cublasGemmBatchedEx(void* handle, int transa, int transb, int m,
                                 int n, int k, const void* alpha,
                                 const void* const a[], int a_type, int lda,
                                 const void* const b[], int b_type, int ldb,
                                 const void* beta, void* const c[], int c_type,
                                 int ldc, int batch, int sum_type,
                                 int algorithm) {
  using Function =
      int (*)(void*, int, int, int, int, int, const void*, const void* const*,
              int, int, const void* const*, int, int, const void*, void* const*,
              int, int, int, int, int);
  static const Function function = Behind<Function>("cublasGemmBatchedEx");
  if (function == nullptr) return kNotInitialized;
  int type = ComputeType(sum_type);
  if (type < 0) return kNotSupported;
  return function(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b,
                  b_type, ldb, beta, c, c_type, ldc, batch, type, algorithm);
}

EXPORTED int cublasGemmStridedBatchedEx(void* handle, int transa, int transb,
                                        int m, int n, int k, const void* alpha,
                                        const void* a, int a_type, int lda,
                                        long long stride_a, const void* b,
                                        int b_type, int ldb, long long stride_b,
                                        const void* beta, void* c, int c_type,
                                        int ldc, long long stride_c, int batch,
                                        int sum_type, int algorithm) {
  using Function =
      int (*)(void*, int, int, int, int, int, const void*, const void*, int,
              int, long long, const void*, int, int, long long, const void*,
              void*, int, int, long long, int, int, int);
  static const Function function =
      Behind<Function>("cublasGemmStridedBatchedEx");
  if (function == nullptr) return kNotInitialized;
  int type = ComputeType(sum_type);
  if (type < 0) return kNotSupported;
  return function(handle, transa, transb, m, n, k, alpha, a, a_type, lda,
                  stride_a, b, b_type, ldb, stride_b, beta, c, c_type, ldc,
                  stride_c, batch, type, algorithm);
}
