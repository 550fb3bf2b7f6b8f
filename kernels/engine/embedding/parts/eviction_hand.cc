// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/eviction_hand.h"

#include <algorithm>
#include <limits>

#include "kernels/engine/base/hash.h"

namespace ev {
namespace {

// Up to here all keys are candidates; they fit the second-level cache.
constexpr int64_t kSmallTable = 4096;
// Keys to fetch at a time: many, since the index has to look at a whole segment
// of itself (800,000 keys at most) for any part of it, but no more than takes
// a few milliseconds to look at and sort.
constexpr uint64_t kFetched = 262144;
// Keys with one place that are not sorted by moving each past its neighbours.
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

// Ascending by hash, of hashes in [first, last] that are spread evenly there: a
// pass that puts each near its place, and one that mends neighbours. A sort by
// comparison was the larger part of an eviction; keys can be made of which many
// have one place, and those are still sorted so.
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
  // Tables of one size that fill at once would all fetch in the same step, for
  // ever.
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
    // In the order of their hashes too: the index has them in an order that is
    // another in each process, and what is evicted is given in this one.
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
