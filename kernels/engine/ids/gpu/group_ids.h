// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Groups the occurrences of a batch by key: keys in their order, the
// occurrences of each key in the order of the batch. The result is that of
// GroupOccurrences (combine/pooling_gradient.h).

#ifndef KERNELS_ENGINE_IDS_GPU_GROUP_IDS_H_
#define KERNELS_ENGINE_IDS_GPU_GROUP_IDS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// The input; arrays are in device memory.
struct GroupedBatch {
  const int32_t* inverse = nullptr;  // [N]
  const int32_t* counts = nullptr;   // [U]
  const int32_t* offsets = nullptr;  // [B + 1]
  int64_t num_ids = 0;               // N, 1 to 2^30
  int64_t num_unique = 0;
  int64_t num_samples = 0;
};

// Returns the size of 'scratch' of LaunchGroup.
Status GroupScratchBytes(const GroupedBatch& batch, size_t* bytes);

// Writes samples [N], the sample of each occurrence, and ends [U], the end of
// each key's occurrences; ends may be null. scratch: aligned to 256 bytes.
Status LaunchGroup(const GroupedBatch& batch, char* scratch,
                   size_t scratch_bytes, int32_t* ends, int32_t* samples,
                   StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_GROUP_IDS_H_
