// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/combine/gpu/long_sums.cuh"
#include "kernels/engine/combine/gpu/long_sums.h"

namespace ev {
namespace gpu {
size_t LongSumBytes(int64_t num_ids, int64_t dim) {
  return NumLongStretches(num_ids) * dim * sizeof(float);
}

}  // namespace gpu
}  // namespace ev
