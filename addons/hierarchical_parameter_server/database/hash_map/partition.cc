// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/partition.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

namespace hps {
namespace {

// Longer segments are split. Long enough for huge pages, short enough to copy
// within a few milliseconds.
constexpr int64_t kMaxSegmentBytes = int64_t{16} << 20;
constexpr int64_t kMinSplitRows = 64;
constexpr int kMaxDepth = 24;

int64_t RoomAfter(int64_t rows) { return rows + rows / 12 + 4; }

// Pseudo-random numbers: splitmix64.
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace

Partition::Partition(int number, int width, bool with_use,
                     const Placing* placing)
    : number_(number), width_(width), with_use_(with_use), placing_(placing) {
  for (uint64_t half = 0; half < 2; ++half) {
    segments_.push_back(Empty(half << 63, 1, 4));
    directory_.push_back(segments_.back().get());
  }
}

std::unique_ptr<Segment> Partition::Empty(uint64_t fraction, int depth,
                                          int64_t rows) const {
  const bool upper = (fraction >> 63) != 0;
  return std::unique_ptr<Segment>(new Segment(
      width_, rows, depth, placing_->ForeignKey(number_, upper), with_use_));
}

int64_t Partition::bytes() const {
  int64_t bytes = static_cast<int64_t>(
      sizeof(*this) + directory_.capacity() * sizeof(directory_[0]) +
      segments_.capacity() * sizeof(segments_[0]));
  for (const auto& segment : segments_) bytes += segment->bytes();
  return bytes;
}

void Partition::CopyRow(const Segment& from, int64_t slot, Segment* to) const {
  const int64_t key = from.key(slot);
  const int64_t at = to->Add(key, to->GroupOf(placing_->Of(key).fraction));
  std::memcpy(to->row(at), from.row(slot), width_ * sizeof(float));
  if (with_use_) {
    to->use(at).store(from.use(slot).load(std::memory_order_relaxed),
                      std::memory_order_relaxed);
  }
}

void Partition::Replace(size_t old, uint64_t fraction, Segments fresh,
                        const Exclusively& exclusively) {
  const int depth = fresh[0]->depth();
  std::vector<Segment*> directory = directory_;
  const int new_depth = std::max(depth_, depth);
  if (new_depth > depth_) {  // grows by one bit: every entry twice
    directory.resize(size_t{1} << new_depth);
    for (size_t i = directory.size(); i-- > 0;) directory[i] = directory[i / 2];
  }
  const int shift = new_depth - depth;
  for (size_t i = 0; i < fresh.size(); ++i) {
    const uint64_t mask = fresh.size() - 1;
    const uint64_t prefix = ((fraction >> (64 - depth)) & ~mask) | i;
    for (uint64_t e = prefix << shift; e < (prefix + 1) << shift; ++e) {
      directory[e] = fresh[i].get();
    }
  }
  if (fresh.size() > 1) segments_.reserve(segments_.size() + 1);
  exclusively([&] {
    directory_.swap(directory);
    depth_ = new_depth;
    segments_[old].swap(fresh[0]);
    if (fresh.size() > 1) segments_.push_back(std::move(fresh[1]));
  });
}

void Partition::Grow(uint64_t fraction, const Exclusively& exclusively) {
  const Segment* const old = SegmentOf(fraction);
  size_t number = 0;
  while (segments_[number].get() != old) ++number;
  const int64_t rows = RoomAfter(old->count());
  const int depth = old->depth();
  Segments fresh;
  if (old->count() < kMinSplitRows || depth == kMaxDepth ||
      Segment::BytesFor(width_, rows, with_use_) < kMaxSegmentBytes) {
    fresh.push_back(Empty(fraction, depth, rows));
    for (int64_t slot = 0; slot < old->slots(); ++slot) {
      if (old->Holds(slot)) CopyRow(*old, slot, fresh[0].get());
    }
  } else {
    int64_t counts[2] = {0, 0};
    const auto half = [&](int64_t slot) {
      return (placing_->Of(old->key(slot)).fraction >> (63 - depth)) & 1;
    };
    for (int64_t slot = 0; slot < old->slots(); ++slot) {
      if (old->Holds(slot)) ++counts[half(slot)];
    }
    for (const int64_t count : counts) {
      fresh.push_back(Empty(fraction, depth + 1, RoomAfter(count)));
    }
    for (int64_t slot = 0; slot < old->slots(); ++slot) {
      if (old->Holds(slot)) CopyRow(*old, slot, fresh[half(slot)].get());
    }
  }
  Replace(number, fraction, std::move(fresh), exclusively);
}

void Partition::Reserve(int64_t rows, const Exclusively& exclusively) {
  if (count_ > 0) return;
  int depth = 1;
  const auto each = [&] {
    // Segments vary in size; one that gets more rows than this grows.
    const double mean = static_cast<double>(rows) / (int64_t{1} << depth);
    return static_cast<int64_t>(mean + 2.5 * std::sqrt(mean)) + 4;
  };
  while (depth < kMaxDepth && each() > 2 * kMinSplitRows &&
         Segment::BytesFor(width_, each(), with_use_) > kMaxSegmentBytes) {
    ++depth;
  }
  Segments segments;
  std::vector<Segment*> directory;
  for (uint64_t prefix = 0; prefix < uint64_t{1} << depth; ++prefix) {
    segments.push_back(Empty(prefix << (64 - depth), depth, each()));
    directory.push_back(segments.back().get());
  }
  exclusively([&] {
    segments_.swap(segments);
    directory_.swap(directory);
    depth_ = depth;
  });
}

void Partition::LimitAges(uint32_t now) const {
  for (const auto& segment : segments_) {
    for (int64_t slot = 0; slot < segment->slots(); ++slot) {
      if (!segment->Holds(slot)) continue;
      std::atomic<uint32_t>& use = segment->use(slot);
      uint32_t before = use.load(std::memory_order_relaxed);
      const uint32_t age = now - before;
      // A reader may have stored a time later than `now`.
      if (age > kOldestAge && age <= UINT32_MAX / 2) {
        use.compare_exchange_strong(before, now - kOldestAge,
                                    std::memory_order_relaxed);
      }
    }
  }
}

int64_t Partition::Evict(EvictionPolicy policy, int64_t target, uint32_t now,
                         uint64_t seed, const Exclusively& exclusively) {
  const int64_t surplus = count_ - target;
  if (surplus <= 0) return 0;
  // Ranks each row; the highest ranks are evicted.
  const auto worth = [&](const Segment& segment, int64_t slot,
                         uint64_t* state) -> uint32_t {
    switch (policy) {
      case EvictionPolicy::kLeastUsed:
        return ~segment.use(slot).load(std::memory_order_relaxed);
      case EvictionPolicy::kOldest: {
        // A reader may have stored a time later than `now`.
        const uint32_t age =
            now - segment.use(slot).load(std::memory_order_relaxed);
        return age > UINT32_MAX / 2 ? 0 : age;
      }
      case EvictionPolicy::kRandom:
        break;
    }
    return static_cast<uint32_t>(NextRandom(state));
  };
  // Computed once, since readers keep changing the counters.
  std::vector<uint32_t> numbers;
  numbers.reserve(count_);
  uint64_t state = seed;
  for (const auto& segment : segments_) {
    for (int64_t slot = 0; slot < segment->slots(); ++slot) {
      if (segment->Holds(slot))
        numbers.push_back(worth(*segment, slot, &state));
    }
  }
  std::vector<uint32_t> sorted = numbers;
  std::nth_element(sorted.begin(), sorted.begin() + (surplus - 1), sorted.end(),
                   std::greater<uint32_t>());
  const uint32_t limit = sorted[surplus - 1];
  int64_t at_limit = surplus;  // evicted among the rows ranked at the limit
  for (const uint32_t number : numbers) at_limit -= number > limit;
  std::vector<uint32_t>().swap(sorted);

  size_t next = 0;
  int64_t evicted = 0;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const Segment& old = *segments_[i];
    const size_t first = next;
    int64_t kept = 0, ties = at_limit;
    const auto goes = [&](uint32_t number) {
      return number > limit || (number == limit && ties-- > 0);
    };
    for (int64_t slot = 0; slot < old.slots(); ++slot) {
      if (old.Holds(slot)) kept += !goes(numbers[next++]);
    }
    Segments fresh;
    fresh.push_back(nullptr);
    uint64_t fraction = 0;
    for (int64_t slot = 0; slot < old.slots(); ++slot) {
      if (old.Holds(slot)) fraction = placing_->Of(old.key(slot)).fraction;
    }
    if (old.count() == 0) continue;
    fresh[0] = Empty(fraction, old.depth(), RoomAfter(kept));
    next = first;
    ties = at_limit;
    for (int64_t slot = 0; slot < old.slots(); ++slot) {
      if (!old.Holds(slot) || goes(numbers[next++])) continue;
      CopyRow(old, slot, fresh[0].get());
    }
    at_limit = std::max<int64_t>(0, ties);
    if (policy == EvictionPolicy::kLeastUsed) {
      for (int64_t slot = 0; slot < fresh[0]->slots(); ++slot) {
        std::atomic<uint32_t>& use = fresh[0]->use(slot);
        use.store(use.load(std::memory_order_relaxed) / 2,
                  std::memory_order_relaxed);
      }
    }
    const int64_t gone = old.count() - kept;
    Replace(i, fraction, std::move(fresh), exclusively);  // frees `old`
    evicted += gone;
    count_ -= gone;
  }
  return evicted;
}

}  // namespace hps
