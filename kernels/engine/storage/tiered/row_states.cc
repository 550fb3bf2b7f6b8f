// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/row_states.h"

#include <utility>

namespace ev {

Status RowStates::Make(RowHandle handle, int64_t default_row) {
  const size_t group = handle >> kGroupLog2;
  if (!has_[group].load(std::memory_order_acquire)) {
    std::lock_guard<std::mutex> lock(mu_);
    const size_t slab = handle >> kSlabLog2;
    if (!row_states_->has_slab(slab) && !row_states_->AddSlab(slab)) {
      return ResourceExhausted("no memory for the state of another row");
    }
    row_states_->Use(slab, ((group + 1) << kGroupLog2) - (slab << kSlabLog2));
    bytes_.store(static_cast<int64_t>(kGroups + row_states_->bytes()));
    has_[group].store(true, std::memory_order_release);
  }
  at(handle)->store(kFresh | static_cast<uint32_t>(default_row),
                    std::memory_order_release);
  return Status::OK();
}

void RowStates::DropUnused(Span<const RowHandle> handles) {
  constexpr uint32_t kSlabStates = uint32_t{1} << kSlabLog2;
  constexpr size_t kGroupsEach = size_t{1} << (kSlabLog2 - kGroupLog2);
  for (const RowHandle handle : handles) {
    const size_t slab = handle >> kSlabLog2;
    if (!row_states_->has_slab(slab)) continue;
    const RowHandle first = static_cast<RowHandle>(slab << kSlabLog2);
    // Searches from the row state that was not zero the last time, and once
    // around, which avoids reading a slab from its beginning for each of its
    // handles. Words that were never touched are zero.
    uint32_t looked_at = 0;
    uint32_t i = in_use_[slab];
    while (looked_at < kSlabStates && at(first + i)->load() == 0) {
      ++looked_at;
      i = (i + 1) % kSlabStates;
    }
    in_use_[slab] = i;
    if (looked_at < kSlabStates) continue;
    for (size_t g = 0; g < kGroupsEach; ++g) {
      has_[slab * kGroupsEach + g].store(false);
    }
    row_states_->DropSlab(slab);
  }
  bytes_.store(static_cast<int64_t>(kGroups + row_states_->bytes()));
}

void RowStates::Clear() {
  // Replaced only after all memory has been allocated.
  std::unique_ptr<SlabArray> row_states(
      new SlabArray(sizeof(uint32_t), kSlabLog2));
  std::unique_ptr<std::atomic<bool>[]> has(new std::atomic<bool>[kGroups]());
  std::vector<uint32_t> in_use(kSlabs, 0);
  row_states_ = std::move(row_states);
  has_ = std::move(has);
  in_use_ = std::move(in_use);
  bytes_.store(static_cast<int64_t>(kGroups));
}

}  // namespace ev
