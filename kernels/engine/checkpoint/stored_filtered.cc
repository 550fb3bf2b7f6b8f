// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/stored_filtered.h"

#include <algorithm>
#include <vector>

#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/tensor_names.h"

namespace ev {
namespace {

// Number of keys in memory at once.
constexpr int64_t kPieceKeys = 1 << 18;

}  // namespace

Status StoredFiltered::Open(TensorReader* checkpoint, const std::string& name) {
  const std::string keys = name + tensor_names::kFilteredKeys;
  bool found;
  EV_RETURN_IF_ERROR(checkpoint->Find(keys, &found));
  if (!found) return Status::OK();
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint, keys, &keys_));
  for (int i = 0; i < kNumRowNumbers; ++i) {
    EV_RETURN_IF_ERROR(OpenNumbers(checkpoint,
                                   name + tensor_names::Of(i).filtered,
                                   keys_->shape()[0], &numbers_[i]));
  }
  return Status::OK();
}

Status StoredFiltered::Import(const KeyFilter& wanted, EmbeddingTable* table) {
  if (keys_ == nullptr) return Status::OK();
  const int64_t num_keys = keys_->shape()[0];
  std::vector<int64_t> keys, kept;
  PerRowNumber<std::vector<int64_t>> numbers;
  for (int64_t first = 0; first < num_keys; first += kPieceKeys) {
    const int64_t n = std::min(kPieceKeys, num_keys - first);
    EV_RETURN_IF_ERROR(ReadKeys(keys_.get(), n, &keys));
    kept.clear();
    for (int64_t i = 0; i < n; ++i) {
      if (wanted.Takes(keys[i])) kept.push_back(i);
    }
    KeepRows(kept, 1, &keys);
    for (int i = 0; i < kNumRowNumbers; ++i) {
      if (numbers_[i] == nullptr) continue;
      EV_RETURN_IF_ERROR(ReadInto(numbers_[i].get(), n, &numbers[i]));
      KeepRows(kept, 1, &numbers[i]);
    }
    EV_RETURN_IF_ERROR(table->ImportFiltered(keys, numbers[kVersion],
                                             numbers[kFrequency], /*part=*/0,
                                             /*num_parts=*/1));
  }
  return Status::OK();
}

}  // namespace ev
