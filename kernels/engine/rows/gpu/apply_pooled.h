// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kernel that applies an optimizer's rule to rows whose gradients are sums
// over samples, for GpuRowCompute::StartPooledUpdate.

#ifndef KERNELS_ENGINE_ROWS_GPU_APPLY_POOLED_H_
#define KERNELS_ENGINE_ROWS_GPU_APPLY_POOLED_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/gpu/long_sums.h"
#include "kernels/engine/rows/gpu/row_kernels.h"

namespace ev {
namespace gpu {

// Sums each row's gradients in the order of its occurrences and applies the
// rule. slot_offsets: in floats, one per slot of the rule. long_sums: the
// result of LaunchLongSums, read only for keys that it sums. Enqueues one
// kernel.
Status LaunchApplyPooled(const std::string& rule, Span<const float> hyper,
                         const RowBatch& batch,
                         Span<const int64_t> slot_offsets,
                         const PooledGradients& gradients,
                         const float* long_sums, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_APPLY_POOLED_H_
