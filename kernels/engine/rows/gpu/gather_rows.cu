// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One launch for all tables, a row of blocks for each part. A thread copies one
// element of a row, or four that lie together.

#include <algorithm>
#include <cstdint>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/rows/gpu/gather_rows.h"
#include "kernels/engine/rows/gpu/row_at.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMaxParts = 65535;
// Blocks of a part at most: beyond these a block takes several turns.
constexpr int64_t kMaxBlocksOfPart = 4096;

// dim counts T's.
template <typename T>
__device__ __forceinline__ void CopyPart(const GatherPart& part, int64_t dim) {
  const int64_t n = part.num_rows * dim;
  for (int64_t e = FirstIndex(); e < n; e += IndexStep()) {
    const int64_t i = e / dim;
    const RowHandle name =
        part.names[part.inverse == nullptr ? i : part.inverse[i]];
    const float* row =
        name < kFirstReservedHandle
            ? RowAt(part.rows, name)
            : part.defaults +
                  static_cast<int64_t>(name - kFirstReservedHandle) * part.dim;
    reinterpret_cast<T*>(part.out)[e] =
        reinterpret_cast<const T*>(row)[e - i * dim];
  }
}

__global__ void __launch_bounds__(kThreads)
    GatherKernel(const GatherPart* parts) {
  const GatherPart part = parts[blockIdx.y];
  if (part.dim % 4 == 0 && part.rows.stride % 4 == 0 &&
      reinterpret_cast<uintptr_t>(part.out) % sizeof(float4) == 0) {
    CopyPart<float4>(part, part.dim / 4);
  } else {
    CopyPart<float>(part, part.dim);
  }
}

}  // namespace

Status LaunchGatherRows(const GatherPart* parts, int64_t num_parts,
                        int64_t most_floats, StreamView stream) {
  if (most_floats == 0) return Status::OK();
  // By fours where that can be; odd dims take more turns.
  const int64_t blocks = std::min<int64_t>(
      kMaxBlocksOfPart, (most_floats / 4 + kThreads) / kThreads);
  for (int64_t begin = 0; begin < num_parts; begin += kMaxParts) {
    const dim3 grid(
        static_cast<unsigned>(blocks),
        static_cast<unsigned>(std::min(kMaxParts, num_parts - begin)));
    GatherKernel<<<grid, kThreads, 0, stream.get()>>>(parts + begin);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("GatherKernel");
  }
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
