// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/eviction_hand.h"

#include <algorithm>
#include <limits>

#include "kernels/engine/base/hash.h"

namespace ev {
namespace {

// Up to here all keys are candidates; they fit the second-level cache.
constexpr int64_t kSmallTable = 4096;
// Keys to fetch at a time.
constexpr uint64_t kFetched = 16384;
constexpr uint64_t kLastHash = std::numeric_limits<uint64_t>::max();

}  // namespace

void EvictionHand::Reset() {
  next_hash_ = 0;
  used_ = 0;
  std::vector<int64_t>().swap(keys_);
}

void EvictionHand::Fetch(const HashIndex& index) {
  const uint64_t size = std::max<int64_t>(1, index.size());
  const uint64_t width =
      size <= kFetched ? kLastHash : kLastHash / size * kFetched;
  const uint64_t last =
      kLastHash - next_hash_ < width ? kLastHash : next_hash_ + width;
  keys_.clear();
  used_ = 0;
  index.ForEachBetween(next_hash_, last, [this](int64_t key, RowHandle) {
    keys_.push_back(key);
  });
  std::sort(keys_.begin(), keys_.end(),
            [](int64_t a, int64_t b) { return MixKey(a) < MixKey(b); });
  next_hash_ = last + 1;  // 0 after the last
}

void EvictionHand::Next(const HashIndex& index, int64_t count,
                        std::vector<EvictionCandidate>* candidates) {
  candidates->clear();
  if (index.size() <= kSmallTable || count >= index.size()) {
    candidates->reserve(index.size());
    index.ForEach([&](int64_t key, RowHandle handle) {
      candidates->push_back(EvictionCandidate{key, handle});
    });
    return;
  }
  candidates->reserve(count);
  std::vector<RowHandle> handles;
  // Ends at the latest when the hand has gone round: then it has met every key.
  bool round = false;
  const uint64_t start =
      used_ < keys_.size() ? MixKey(keys_[used_]) : next_hash_;
  while (static_cast<int64_t>(candidates->size()) < count && !round) {
    if (used_ == keys_.size()) {
      const uint64_t before = next_hash_;
      Fetch(index);
      // The hand has come to where it started: what lies beyond came first.
      const uint64_t end = next_hash_ - 1;
      if (!candidates->empty() && before <= start && start <= end) {
        round = true;
        const auto first =
            std::find_if(keys_.begin(), keys_.end(),
                         [&](int64_t key) { return MixKey(key) >= start; });
        keys_.erase(first, keys_.end());
      }
      if (keys_.empty()) continue;
    }
    const size_t taken =
        std::min<size_t>(count - candidates->size(), keys_.size() - used_);
    handles.resize(taken);
    index.Find(Span<const int64_t>(keys_.data() + used_, taken),
               handles.data());
    for (size_t i = 0; i < taken; ++i) {
      if (handles[i] >= kFirstReservedHandle) continue;  // erased meanwhile
      candidates->push_back(EvictionCandidate{keys_[used_ + i], handles[i]});
    }
    used_ += taken;
  }
}

}  // namespace ev
