// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/segments.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/engine/base/epoch.h"
#include "kernels/engine/table/cpu/segment_size.h"

namespace ev {
namespace {

// The array of segments without keys: readers need no special case, and
// thousands of empty tables share one line. Never written.
Bucket empty_bucket;
uint64_t EmptyArray() { return PackArray(&empty_bucket, 1); }

uint64_t NewArray(uint64_t buckets) {
  void* memory = AllocateLines(buckets * sizeof(Bucket));
  return memory == nullptr ? 0
                           : PackArray(static_cast<Bucket*>(memory), buckets);
}

void FreeArray(uint64_t array) {
  FreeLines(ArrayBuckets(array), ArrayCount(array) * sizeof(Bucket));
}

// Calls visit(key, row) for each key, in the order of the buckets. Gathers the
// live slots first, without a branch on which slots are live.
template <typename Visit>
void ForEachLocked(const Segment& segment, const Visit& visit) {
  constexpr size_t kBatch = 64;
  int64_t keys[kBatch + kSlots];
  uint32_t rows[kBatch + kSlots];
  size_t size = 0;
  const auto flush = [&] {
    for (size_t i = 0; i < size; ++i) {
      visit(keys[i], ~rows[i]);
    }
    size = 0;
  };
  for (uint64_t b = 0; b < segment.buckets; ++b) {
    const Bucket& bucket = ArrayBuckets(segment.array)[b];
    for (int s = 0; s < kSlots; ++s) {
      keys[size] = bucket.keys[s].load(std::memory_order_relaxed);
      rows[size] = bucket.rows[s].load(std::memory_order_relaxed);
      size += rows[size] != 0;
    }
    if (size >= kBatch) flush();
  }
  flush();
}

}  // namespace

Directory::Directory(uint32_t depth_bits)
    : depth(depth_bits),
      size(size_t{1} << depth_bits),
      arrays(new std::atomic<uint64_t>[size]),
      segments(new std::atomic<Segment*>[size]) {}

Segments::Segments() { Reset(); }

Segments::~Segments() { FreeAll(); }

// No other thread uses the index, so replaced arrays need not wait either.
void Segments::FreeAll() {
  for (const Retired& retired : retired_) FreeArray(retired.array);
  retired_.clear();
  for (const auto& segment : segments_) {
    if (segment->buckets != 0) FreeArray(segment->array);
  }
  segments_.clear();
  directories_.clear();
  array_bytes_ = retired_bytes_ = 0;
  has_retired_.store(false, std::memory_order_relaxed);
}

void Segments::Reset() {
  segments_.push_back(std::make_unique<Segment>());
  segments_.back()->array = EmptyArray();
  directories_.push_back(std::make_unique<Directory>(0));
  Publish(*directories_.back(), segments_.back().get());
  directory_.store(directories_.back().get(), std::memory_order_release);
}

void Segments::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  FreeAll();
  Reset();
}

Segment* Segments::Lock(uint64_t hash) {
  for (;;) {
    const Directory& directory = this->directory();
    Segment* segment = directory.segments[directory.IndexOf(hash)].load(
        std::memory_order_acquire);
    segment->lock.lock();
    if (segment->Owns(hash)) return segment;
    segment->lock.unlock();  // split while this thread waited
  }
}

void Segments::Publish(const Directory& directory, Segment* segment) {
  const uint32_t below = directory.depth - segment->depth;
  const size_t begin = static_cast<size_t>(segment->prefix) << below;
  for (size_t i = begin; i < begin + (size_t{1} << below); ++i) {
    directory.arrays[i].store(segment->array, std::memory_order_release);
    directory.segments[i].store(segment, std::memory_order_release);
  }
}

void Segments::Retire(uint64_t array, uint64_t buckets) {
  if (buckets == 0) return;
  const int64_t bytes = static_cast<int64_t>(buckets * sizeof(Bucket));
  retired_.push_back(Retired{array, EpochDomain::Global().Stamp()});
  has_retired_.store(true, std::memory_order_relaxed);
  retired_bytes_ += bytes;
  array_bytes_ -= bytes;
}

void Segments::ReclaimLocked() const {
  size_t kept = 0;
  for (const Retired& retired : retired_) {
    if (EpochDomain::Global().Expired(retired.stamp)) {
      retired_bytes_ -= ArrayCount(retired.array) * sizeof(Bucket);
      FreeArray(retired.array);
    } else {
      retired_[kept++] = retired;
    }
  }
  retired_.resize(kept);
  has_retired_.store(kept != 0, std::memory_order_relaxed);
}

void Segments::Reclaim() const {
  if (!has_retired_.load(std::memory_order_relaxed)) return;
  std::lock_guard<std::mutex> lock(mu_);
  ReclaimLocked();
}

bool Segments::Grow(Segment* segment) {
  if (TryToGrow(segment)) return true;
  // The attempt may have read all keys, so it is repeated only after a good
  // part of the slots has been filled, not for each new key.
  const int64_t later = segment->keys.load(std::memory_order_relaxed) + 1 +
                        static_cast<int64_t>(segment->buckets * kSlots / 64);
  segment->max_keys =
      std::max(segment->max_keys,
               std::min(later, MaxKeysWithoutMemory(segment->buckets)));
  return false;
}

bool Segments::TryToGrow(Segment* segment) {
  const uint64_t grown = GrownBuckets(segment->buckets);
  if (grown > kMaxSegmentBuckets && MaySplit(*segment)) return Split(segment);
  // The array's word cannot hold a larger count. A segment that may not split
  // reaches this limit at 20 million keys.
  return grown <= kCountMask && Rebuild(segment, grown);
}

// Limits the directory. Keys that were chosen to share the first bits of their
// hash must not double it until memory runs out. Instead their segment grows
// beyond its usual limit.
bool Segments::MaySplit(const Segment& segment) const {
  std::lock_guard<std::mutex> lock(mu_);
  const Directory& current = directory();
  return segment.depth < current.depth ||
         current.size < std::max<size_t>(1024, 64 * segments_.size());
}

bool Segments::Rebuild(Segment* segment, uint64_t buckets) {
  const uint64_t array = NewArray(buckets);
  if (array == 0) return false;
  const KeyedHash secret = secret_;
  // Sequential on both sides: home buckets ascend with the hash in arrays of
  // any length.
  ForEachLocked(*segment, [&](int64_t key, RowHandle row) {
    Append(array, BucketHash(secret, key), key, row);
  });
  std::lock_guard<std::mutex> lock(mu_);
  try {
    retired_.reserve(retired_.size() + 1);
  } catch (const std::bad_alloc&) {
    FreeArray(array);
    return false;
  }
  const uint64_t old_array = std::exchange(segment->array, array);
  const uint64_t old_buckets = std::exchange(segment->buckets, buckets);
  segment->max_keys = MaxKeys(buckets, segment->prefix, segment->depth);
  segment->erased = 0;
  array_bytes_ += static_cast<int64_t>(buckets * sizeof(Bucket));
  Publish(directory(), segment);
  Retire(old_array, old_buckets);
  ReclaimLocked();
  return true;
}

bool Segments::Split(Segment* segment) {
  const uint64_t bit = uint64_t{1} << (63 - segment->depth);
  // About half of the keys each, but not exactly.
  int64_t keys[2] = {0, 0};
  ForEachLocked(*segment, [&](int64_t key, RowHandle) {
    ++keys[(MixKey(key) & bit) != 0];
  });
  const uint64_t buckets[2] = {BucketsFor(keys[0]), BucketsFor(keys[1])};
  const uint64_t arrays[2] = {NewArray(buckets[0]), NewArray(buckets[1])};
  std::unique_ptr<Segment> sibling;
  std::unique_ptr<Directory> doubled;
  bool ok = arrays[0] != 0 && arrays[1] != 0;
  if (ok) {
    const KeyedHash secret = secret_;
    ForEachLocked(*segment, [&](int64_t key, RowHandle row) {
      Append(arrays[(MixKey(key) & bit) != 0], BucketHash(secret, key), key,
             row);
    });
  }
  std::lock_guard<std::mutex> lock(mu_);
  const Directory& current = directory();
  try {
    if (ok) {
      sibling.reset(new Segment);
      if (segment->depth == current.depth) {
        doubled.reset(new Directory(current.depth + 1));
        directories_.reserve(directories_.size() + 1);
      }
      segments_.reserve(segments_.size() + 1);
      retired_.reserve(retired_.size() + 1);
    }
  } catch (const std::bad_alloc&) {
    ok = false;
  }
  if (!ok) {
    for (const uint64_t array : arrays) {
      if (array != 0) FreeArray(array);
    }
    return false;
  }
  const uint64_t old_array = std::exchange(segment->array, arrays[0]);
  const uint64_t old_buckets = std::exchange(segment->buckets, buckets[0]);
  ++segment->depth;
  segment->prefix *= 2;
  segment->max_keys = MaxKeys(buckets[0], segment->prefix, segment->depth);
  segment->erased = 0;
  segment->keys.store(keys[0], std::memory_order_relaxed);
  sibling->depth = segment->depth;
  sibling->prefix = segment->prefix + 1;
  sibling->array = arrays[1];
  sibling->buckets = buckets[1];
  sibling->max_keys = MaxKeys(buckets[1], sibling->prefix, sibling->depth);
  sibling->keys.store(keys[1], std::memory_order_relaxed);
  array_bytes_ +=
      static_cast<int64_t>((buckets[0] + buckets[1]) * sizeof(Bucket));
  const Directory& published = doubled != nullptr ? *doubled : current;
  if (doubled != nullptr) {
    for (size_t i = 0; i < doubled->size; ++i) {
      doubled->arrays[i].store(
          current.arrays[i / 2].load(std::memory_order_relaxed),
          std::memory_order_relaxed);
      doubled->segments[i].store(
          current.segments[i / 2].load(std::memory_order_relaxed),
          std::memory_order_relaxed);
    }
  }
  Publish(published, segment);
  Publish(published, sibling.get());
  if (doubled != nullptr) {
    directories_.push_back(std::move(doubled));
    directory_.store(directories_.back().get(), std::memory_order_release);
  }
  segments_.push_back(std::move(sibling));
  Retire(old_array, old_buckets);
  ReclaimLocked();
  return true;
}

int64_t Segments::keys() const {
  std::lock_guard<std::mutex> lock(mu_);
  int64_t keys = 0;
  for (const auto& segment : segments_) {
    keys += segment->keys.load(std::memory_order_relaxed);
  }
  return keys;
}

int64_t Segments::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  ReclaimLocked();
  size_t bytes = sizeof(*this) + segments_.size() * sizeof(Segment) +
                 segments_.capacity() * sizeof(segments_[0]) +
                 directories_.capacity() * sizeof(directories_[0]) +
                 retired_.capacity() * sizeof(retired_[0]);
  for (const auto& directory : directories_) {
    bytes += sizeof(Directory) +
             directory->size * (sizeof(uint64_t) + sizeof(Segment*));
  }
  return static_cast<int64_t>(bytes) + array_bytes_ + retired_bytes_;
}

}  // namespace ev
