// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/handle_words.h"

#include <utility>

namespace ev {

Status HandleWords::Make(RowHandle handle, int64_t default_row) {
  const size_t group = handle >> kGroupLog2;
  if (!has_[group].load(std::memory_order_acquire)) {
    std::lock_guard<std::mutex> lock(mu_);
    const size_t slab = handle >> kSlabLog2;
    if (!words_->has_slab(slab) && !words_->AddSlab(slab)) {
      return ResourceExhausted("no memory for the state of another row");
    }
    words_->Use(slab, ((group + 1) << kGroupLog2) - (slab << kSlabLog2));
    bytes_.store(static_cast<int64_t>(kGroups + words_->bytes()));
    has_[group].store(true, std::memory_order_release);
  }
  at(handle)->store(kFresh | static_cast<uint32_t>(default_row),
                    std::memory_order_release);
  return Status::OK();
}

void HandleWords::DropUnused(Span<const RowHandle> handles) {
  constexpr uint32_t kSlabWords = uint32_t{1} << kSlabLog2;
  constexpr size_t kGroupsEach = size_t{1} << (kSlabLog2 - kGroupLog2);
  for (const RowHandle handle : handles) {
    const size_t slab = handle >> kSlabLog2;
    if (!words_->has_slab(slab)) continue;
    const RowHandle first = static_cast<RowHandle>(slab << kSlabLog2);
    // Searches from the word that was not zero the last time, and once around,
    // which avoids reading a slab from its beginning for each of its handles.
    // Words that were never touched are zero.
    uint32_t looked_at = 0;
    uint32_t i = in_use_[slab];
    while (looked_at < kSlabWords && at(first + i)->load() == 0) {
      ++looked_at;
      i = (i + 1) % kSlabWords;
    }
    in_use_[slab] = i;
    if (looked_at < kSlabWords) continue;
    for (size_t g = 0; g < kGroupsEach; ++g) {
      has_[slab * kGroupsEach + g].store(false);
    }
    words_->DropSlab(slab);
  }
  bytes_.store(static_cast<int64_t>(kGroups + words_->bytes()));
}

void HandleWords::Clear() {
  // Replaced only after all memory has been allocated.
  std::unique_ptr<SlabArray> words(new SlabArray(sizeof(uint32_t), kSlabLog2));
  std::unique_ptr<std::atomic<bool>[]> has(new std::atomic<bool>[kGroups]());
  std::vector<uint32_t> in_use(kSlabs, 0);
  words_ = std::move(words);
  has_ = std::move(has);
  in_use_ = std::move(in_use);
  bytes_.store(static_cast<int64_t>(kGroups));
}

}  // namespace ev
