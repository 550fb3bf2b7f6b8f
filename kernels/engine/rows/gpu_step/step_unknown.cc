// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: copies the unknown ids, those without a row, to the host, and
// deduplicates them.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/occurrences.h"
#include "kernels/engine/ids/unique_pool.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {

// Sets unknown_ and unknown_keys_, and each table's range of them.
Status StepCall::TakeUnknown() {
  const int64_t count = *OnHost<uint32_t>(on_host_.counter);
  if (count > num_ids_) {
    return Internal("the GPU found no row for " + std::to_string(count) +
                    " ids of " + std::to_string(num_ids_));
  }
  const uint32_t* const sent = OnHost<uint32_t>(on_host_.unknown);
  if (count <= num_ids_ / 8) {
    PutInOrder(Span<const uint32_t>(sent, count),
               all_put() ? nullptr : OnHost<int64_t>(on_host_.unknown_keys));
  } else {
    if (!all_put()) {
      // Copies all ids too. Ids that were put are overwritten with equal ones.
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          context_->host() + on_host_.ids, context_->device() + on_device_.ids,
          id_bytes_, cudaMemcpyDeviceToHost, context_->stream()));
    }
    // Copies all handles: scanning them costs less than sorting the positions.
    RowHandle* const handles = OnHost<RowHandle>(on_host_.unknown);
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(handles, context_->device() + on_device_.handles,
                        num_ids_ * sizeof(RowHandle), cudaMemcpyDeviceToHost,
                        context_->stream()));
    EV_RETURN_IF_ERROR(context_->Wait());
    unknown_.reserve(count);
    // The handle of an unknown id is the handle of a default row.
    for (int64_t i = 0; i < num_ids_; ++i) {
      if (handles[i] >= kFirstReservedHandle) {
        unknown_.push_back(static_cast<uint32_t>(i));
      }
    }
  }
  auto at = unknown_.begin();
  for (Table& table : tables_) {
    const auto end =
        std::lower_bound(at, unknown_.end(),
                         static_cast<uint64_t>(table.id_begin + table.num_ids));
    table.unknown = Span<const uint32_t>(
        unknown_.data() + (at - unknown_.begin()), end - at);
    if (!unknown_keys_.empty()) {
      table.unknown_keys = unknown_keys_.data() + (at - unknown_.begin());
    }
    at = end;
  }
  return Status::OK();
}

// Sorts by a bitmap of all ids with the number of bits set before each word. A
// position's rank then takes two reads of small arrays, while sorting would
// take 0.1 us per position.
void StepCall::PutInOrder(Span<const uint32_t> positions, const int64_t* keys) {
  if (positions.empty()) return;
  const size_t num_words = (num_ids_ + 63) / 64;
  std::vector<uint64_t> words(num_words);
  for (uint32_t at : positions) words[at / 64] |= uint64_t{1} << at % 64;
  std::vector<uint32_t> before(num_words);
  unknown_.reserve(positions.size());
  for (size_t w = 0; w < num_words; ++w) {
    before[w] = static_cast<uint32_t>(unknown_.size());
    for (uint64_t left = words[w]; left != 0; left &= left - 1) {
      unknown_.push_back(static_cast<uint32_t>(64 * w + __builtin_ctzll(left)));
    }
  }
  if (keys == nullptr) return;
  unknown_keys_.resize(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) {
    const uint32_t at = positions[k];
    const uint64_t lower = (uint64_t{1} << at % 64) - 1;
    unknown_keys_[before[at / 64] +
                  __builtin_popcountll(words[at / 64] & lower)] = keys[k];
  }
}

Status StepCall::FindKeysOfUnknown(Table* table) {
  const size_t n = table->unknown.size();
  if (n == 0) return Status::OK();
  const char* const ids = HostIds(*table);
  std::vector<int64_t> keys(n);
  for (size_t k = 0; k < n; ++k) {
    if (table->unknown_keys != nullptr) {
      keys[k] = table->unknown_keys[k];
      continue;
    }
    const int64_t i = table->unknown[k] - table->id_begin;
    keys[k] = table->is_narrow ? reinterpret_cast<const int32_t*>(ids)[i]
                               : reinterpret_cast<const int64_t*>(ids)[i];
  }
  table->keys.resize(n);
  table->key_of.resize(n);
  table->counts.resize(n);
  int64_t num_keys = 0;
  EV_RETURN_IF_ERROR(UniquePool().Acquire()->Run(
      Span<const int64_t>(keys), table->keys.data(), table->key_of.data(),
      table->counts.data(), &num_keys));
  table->keys.resize(num_keys);
  table->counts.resize(num_keys);
  const int32_t* const of_ids = HostOccurrences(*table);
  if (of_ids == nullptr) return Status::OK();
  std::fill(table->counts.begin(), table->counts.end(), 0);
  for (size_t k = 0; k < n; ++k) {
    AddOccurrences(of_ids[table->unknown[k] - table->id_begin],
                   &table->counts[table->key_of[k]]);
  }
  return Status::OK();
}

Status StepCall::Settle(int t, GpuStepUnknown* unknown) {
  Table* const table = &tables_[t];
  if (!table->is_settled) {
    EV_RETURN_IF_ERROR(TakeOnce());
    EV_RETURN_IF_ERROR(FindKeysOfUnknown(table));
    table->is_settled = true;
  }
  unknown->keys = table->keys;
  unknown->counts = table->counts.data();
  unknown->num_ids_of_step = static_cast<int64_t>(unknown_.size());
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
