// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/eviction_hand.h"

#include <algorithm>
#include <limits>

#include "kernels/engine/base/hash.h"

namespace ev {
namespace {

// Up to this size all keys are candidates; they fit the L2 cache.
constexpr int64_t kSmallTable = 4096;
// Keys to fetch at a time. They are many, since the index scans a whole segment
// (at most 800,000 keys) for any part of it, but scanning and sorting them
// takes only a few milliseconds.
constexpr uint64_t kFetched = 262144;
// Buckets with more keys than this are sorted by comparison.
constexpr size_t kMany = 32;
constexpr uint64_t kLastHash = std::numeric_limits<uint64_t>::max();

struct Hashed {
  uint64_t hash;
  int64_t key;
};
struct HashedCandidate {
  uint64_t hash;
  EvictionCandidate candidate;
};

// Sorts items by hash, for hashes that are spread evenly over [first, last]:
// one pass puts each item near its place, and an insertion sort fixes
// neighbours. A comparison sort of everything was the larger part of an
// eviction. It is still used for large buckets, since keys can be crafted to
// fall into one.
template <typename Item>
void SortByHash(uint64_t first, uint64_t last, std::vector<Item>* items) {
  const size_t n = items->size();
  if (n < 2) return;
  int shift = 0;
  while ((last - first) >> shift > n) ++shift;
  std::vector<uint32_t> begins(((last - first) >> shift) + 2, 0);
  for (const Item& item : *items) ++begins[((item.hash - first) >> shift) + 1];
  for (size_t b = 1; b < begins.size(); ++b) begins[b] += begins[b - 1];
  std::vector<Item> sorted(n);
  for (const Item& item : *items) {
    size_t at = begins[(item.hash - first) >> shift]++;
    sorted[at] = item;
  }
  const auto by_hash = [](const Item& a, const Item& b) {
    return a.hash < b.hash;
  };
  for (size_t b = 0, begin = 0; begin < n; ++b) {
    const size_t end = begins[b];
    if (end - begin > kMany) {
      std::sort(sorted.begin() + begin, sorted.begin() + end, by_hash);
    }
    begin = end;
  }
  for (size_t i = 1; i < n; ++i) {
    const Item item = sorted[i];
    size_t at = i;
    for (; at > 0 && sorted[at - 1].hash > item.hash; --at) {
      sorted[at] = sorted[at - 1];
    }
    sorted[at] = item;
  }
  items->swap(sorted);
}

}  // namespace

void EvictionHand::Reset() {
  next_hash_ = 0;
  first_ = true;
  used_ = 0;
  std::vector<int64_t>().swap(keys_);
}

void EvictionHand::Fetch(const HashIndex& index) {
  const uint64_t size = std::max<int64_t>(1, index.size());
  uint64_t wanted = std::min(kFetched, size);
  // The first fetch is shorter. Otherwise tables of one size that fill at the
  // same time would always fetch in the same step.
  if (first_) wanted = wanted / 8 + wanted / 8 * 7 / 1024 * (seed_ % 1024);
  first_ = false;
  const uint64_t width = size <= wanted ? kLastHash : kLastHash / size * wanted;
  const uint64_t last =
      kLastHash - next_hash_ < width ? kLastHash : next_hash_ + width;
  keys_.clear();
  used_ = 0;
  std::vector<Hashed> found;
  found.reserve(wanted + wanted / 8);
  index.ForEachBetween(next_hash_, last, [&found](int64_t key, RowHandle) {
    found.push_back(Hashed{MixKey(key), key});
  });
  SortByHash(next_hash_, last, &found);
  keys_.reserve(found.size());
  for (const Hashed& item : found) keys_.push_back(item.key);
  next_hash_ = last + 1;  // 0 after the last
}

void EvictionHand::Next(const HashIndex& index, int64_t count,
                        std::vector<EvictionCandidate>* candidates) {
  candidates->clear();
  if (index.size() <= kSmallTable || count >= index.size()) {
    // Sorted by hash as well: the order of the index differs from process to
    // process, and evicted keys are reported in this order.
    std::vector<HashedCandidate> all;
    all.reserve(index.size());
    index.ForEach([&](int64_t key, RowHandle handle) {
      all.push_back(HashedCandidate{MixKey(key), {key, handle}});
    });
    SortByHash(0, kLastHash, &all);
    candidates->reserve(all.size());
    for (const HashedCandidate& item : all) {
      candidates->push_back(item.candidate);
    }
    return;
  }
  candidates->reserve(count);
  std::vector<RowHandle> handles;
  // Ends at the latest after a whole round, when the hand has met every key.
  bool round = false;
  const uint64_t start =
      used_ < keys_.size() ? MixKey(keys_[used_]) : next_hash_;
  while (static_cast<int64_t>(candidates->size()) < count && !round) {
    if (used_ == keys_.size()) {
      const uint64_t before = next_hash_;
      Fetch(index);
      // The hand is back where it started: the keys beyond were taken first.
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
