// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where the ids of each sample begin, from either form in which TensorFlow
// gives ragged data. The input is checked in the same pass.

#ifndef KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_
#define KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {

// Whether sample i is id i, for all: by the row splits or the indices,
// whichever is not null. Writes nothing, and has no branch until the end:
// memory's rate.
bool IsOneIdEach(const int64_t* row_splits, const int64_t* coo_indices,
                 int64_t batch_size, int64_t num_ids);

// offsets [B + 1] from a RaggedTensor's row splits [B + 1]. InvalidArgument:
// not starting at 0, decreasing, or not ending at num_ids; 'table' is named.
// REQUIRES: num_ids and batch_size < 2^31.
Status OffsetsFromSplits(const int64_t* row_splits, int64_t batch_size,
                         int64_t num_ids, const std::string& table,
                         int32_t* offsets);

// offsets [B + 1] from a SparseTensor's indices [N, 2], of which the columns
// are ignored. InvalidArgument: rows that decrease, are negative or not below
// batch_size.
Status OffsetsFromIndices(const int64_t* coo_indices, int64_t batch_size,
                          int64_t num_ids, const std::string& table,
                          int32_t* offsets);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_
