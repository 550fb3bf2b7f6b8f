// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An optimizer's rule on rows whose gradients are sums over samples, for
// DeviceRows::StartPooledUpdate.

#ifndef KERNELS_ENGINE_EMBEDDING_GPU_APPLY_POOLED_H_
#define KERNELS_ENGINE_EMBEDDING_GPU_APPLY_POOLED_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/gpu/row_kernels.h"

namespace ev {
namespace gpu {

// Occurrences of combine/pooling_gradient.h in device memory, and the
// gradients of the samples that they name.
struct PooledGradients {
  const int32_t* ends = nullptr;
  const int32_t* samples = nullptr;
  // At most one of them.
  const float* weights = nullptr;  // of each occurrence
  const float* factors = nullptr;  // of each sample
  const float* grads = nullptr;    // [B, dim]
};

// Bytes that are worked in, for that many occurrences.
size_t PooledScratchBytes(int64_t num_ids);

// Sums each row's gradients in the order of its occurrences and applies the
// rule. slot_offsets: in floats, one per slot of the rule. num_ids: of all
// occurrences. scratch: aligned to 4 bytes. Enqueues a kernel, and where a key
// may occur very often a fill and a second kernel.
Status LaunchApplyPooled(const std::string& rule, Span<const float> hyper,
                         const RowBatch& batch,
                         Span<const int64_t> slot_offsets,
                         const PooledGradients& gradients, int64_t num_ids,
                         char* scratch, StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GPU_APPLY_POOLED_H_
