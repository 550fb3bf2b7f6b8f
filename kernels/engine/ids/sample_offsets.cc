// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/sample_offsets.h"

#include <numeric>

namespace ev {

bool IsOneIdEach(const int64_t* row_splits, const int64_t* coo_indices,
                 int64_t batch_size, int64_t num_ids) {
  if (num_ids != batch_size) return false;
  int64_t other = 0;
  if (row_splits != nullptr) {
    for (int64_t s = 0; s <= num_ids; ++s) other |= row_splits[s] ^ s;
  } else {
    for (int64_t i = 0; i < num_ids; ++i) other |= coo_indices[2 * i] ^ i;
  }
  return other == 0;
}

Status OffsetsFromSplits(const int64_t* row_splits, int64_t batch_size,
                         int64_t num_ids, const std::string& table,
                         int32_t* offsets) {
  if (row_splits[0] != 0) {
    return InvalidArgument("row splits: expected 0 as the first, got " +
                           std::to_string(row_splits[0]) + ", table '" + table +
                           "'");
  }
  if (row_splits[batch_size] != num_ids) {
    return InvalidArgument(
        "row splits: expected the number of ids as the last, " +
        std::to_string(num_ids) + ", got " +
        std::to_string(row_splits[batch_size]) + ", table '" + table + "'");
  }
  // The first and the last split are right, so it is enough that none is below
  // the one before it.
  bool ascending = true;
  for (int64_t s = 0; s < batch_size; ++s) {
    ascending &= row_splits[s] <= row_splits[s + 1];
    offsets[s] = static_cast<int32_t>(row_splits[s]);
  }
  offsets[batch_size] = static_cast<int32_t>(num_ids);
  if (ascending) return Status::OK();
  for (int64_t s = 0; s < batch_size; ++s) {
    if (row_splits[s] <= row_splits[s + 1]) continue;
    return InvalidArgument("row splits: expected no decrease, got " +
                           std::to_string(row_splits[s]) + " before " +
                           std::to_string(row_splits[s + 1]) + " at sample " +
                           std::to_string(s) + ", table '" + table + "'");
  }
  return Status::OK();
}

Status OffsetsFromIndices(const int64_t* coo_indices, int64_t batch_size,
                          int64_t num_ids, const std::string& table,
                          int32_t* offsets) {
  // Most tables have one id per sample; this check runs at memory bandwidth.
  if (IsOneIdEach(nullptr, coo_indices, batch_size, num_ids)) {
    std::iota(offsets, offsets + num_ids + 1, 0);
    return Status::OK();
  }
  // offsets[0 .. filled) are known: the ids of all samples below 'filled' begin
  // at or before id i.
  int64_t filled = 0;
  for (int64_t i = 0; i < num_ids; ++i) {
    const int64_t sample = coo_indices[2 * i];
    if (sample == filled - 1 && sample >= 0) continue;
    if (sample < filled) {
      if (sample < 0) {
        return InvalidArgument("indices: expected samples of at least 0, got " +
                               std::to_string(sample) + " at id " +
                               std::to_string(i) + ", table '" + table + "'");
      }
      return InvalidArgument(
          "indices: expected an order by sample, got sample " +
          std::to_string(sample) + " after " + std::to_string(filled - 1) +
          " at id " + std::to_string(i) + ", table '" + table + "'");
    }
    if (sample >= batch_size) {
      return InvalidArgument("indices must lie below the batch size " +
                             std::to_string(batch_size) + ", got sample " +
                             std::to_string(sample) + " at id " +
                             std::to_string(i) + ", table '" + table + "'");
    }
    for (; filled <= sample; ++filled) {
      offsets[filled] = static_cast<int32_t>(i);
    }
  }
  for (; filled <= batch_size; ++filled) {
    offsets[filled] = static_cast<int32_t>(num_ids);
  }
  return Status::OK();
}

}  // namespace ev
