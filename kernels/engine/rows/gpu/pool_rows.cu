// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread sums one element of a sample, or four adjacent ones, in the order of
// the sample's ids: bit for bit the result of PoolSamples (combine/pooling.h).
// The kernel is kept simple, because copying the result to the host is some
// thirty times slower than reading the rows.

#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu/pool_rows.h"
#include "kernels/engine/rows/gpu/row_at.cuh"

namespace ev {
namespace gpu {
namespace {

__device__ __forceinline__ void Add(float* sum, float x) { *sum += x; }
__device__ __forceinline__ void Add(float4* sum, float4 x) {
  sum->x += x.x;
  sum->y += x.y;
  sum->z += x.z;
  sum->w += x.w;
}
__device__ __forceinline__ void Divide(float* sum, float by) { *sum /= by; }
__device__ __forceinline__ void Divide(float4* sum, float by) {
  sum->x /= by;
  sum->y /= by;
  sum->z /= by;
  sum->w /= by;
}

template <typename T>
__device__ __forceinline__ const T* ValueOf(const PoolRowsBatch& batch,
                                            int32_t id) {
  const RowHandle name = batch.names[batch.inverse[id]];
  const float* row =
      name < kFirstReservedHandle
          ? RowAt(batch.rows, name)
          : batch.defaults +
                static_cast<int64_t>(name - kFirstReservedHandle) * batch.dim;
  return reinterpret_cast<const T*>(row);
}

// dim: in units of T.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    PoolRowsKernel(PoolRowsBatch batch, int64_t dim, T* out) {
  const int64_t n = batch.num_samples * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t s = e / dim;
    const int64_t c = e - s * dim;
    const int32_t begin = batch.offsets[s], end = batch.offsets[s + 1];
    if (begin == end) {
      out[e] = T{};
      continue;
    }
    T sum = ValueOf<T>(batch, begin)[c];
    for (int32_t i = begin + 1; i < end; ++i) {
      Add(&sum, ValueOf<T>(batch, i)[c]);
    }
    if (Divides(batch.combiner)) {
      const float divisor =
          DivisorOf(batch.combiner, static_cast<float>(end - begin));
      if (divisor != 1.0f) Divide(&sum, divisor);
    }
    out[e] = sum;
  }
}

}  // namespace

Status LaunchPoolRows(const PoolRowsBatch& batch, float* out,
                      StreamView stream) {
  const int64_t n = batch.num_samples * batch.dim;
  if (n == 0) return Status::OK();
  if (batch.dim % 4 == 0 && batch.rows.stride % 4 == 0 &&
      reinterpret_cast<uintptr_t>(out) % sizeof(float4) == 0) {
    PoolRowsKernel<float4><<<BlocksFor(n / 4), kThreads, 0, stream.get()>>>(
        batch, batch.dim / 4, reinterpret_cast<float4*>(out));
  } else {
    PoolRowsKernel<float>
        <<<BlocksFor(n), kThreads, 0, stream.get()>>>(batch, batch.dim, out);
  }
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PoolRowsKernel");
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
