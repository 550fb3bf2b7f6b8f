// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Computes where the ids of each sample begin, from either of TensorFlow's
// forms of ragged data. The same pass validates the input.

#ifndef KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_
#define KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {

// Returns whether each sample i is exactly id i. Reads the row splits or the
// indices, whichever is not null. Branch-free, so it runs at memory bandwidth.
bool IsOneIdEach(const int64_t* row_splits, const int64_t* coo_indices,
                 int64_t batch_size, int64_t num_ids);

// Fills offsets [B + 1] from a RaggedTensor's row splits [B + 1].
// InvalidArgument, naming 'table', if the splits do not start at 0, decrease,
// or do not end at num_ids. REQUIRES: num_ids and batch_size < 2^31.
Status OffsetsFromSplits(const int64_t* row_splits, int64_t batch_size,
                         int64_t num_ids, const std::string& table,
                         int32_t* offsets);

// Fills offsets [B + 1] from a SparseTensor's indices [N, 2]; the column
// indices are ignored. InvalidArgument, naming 'table', if the row indices
// decrease, are negative, or are not below batch_size.
Status OffsetsFromIndices(const int64_t* coo_indices, int64_t batch_size,
                          int64_t num_ids, const std::string& table,
                          int32_t* offsets);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_SAMPLE_OFFSETS_H_
