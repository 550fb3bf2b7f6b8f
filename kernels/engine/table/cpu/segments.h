// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The segments of an index and their directory: growth, splitting, shrinking,
// and the retirement of replaced arrays. What a segment holds is bucket.h's.

#ifndef KERNELS_ENGINE_TABLE_CPU_SEGMENTS_H_
#define KERNELS_ENGINE_TABLE_CPU_SEGMENTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/spin_lock.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/table/cpu/bucket.h"

namespace ev {

// All keys whose hash begins with the 'depth' bits 'prefix'. The hash is
// MixKey, here and in the directory: which segment a key is in is no secret,
// since the order of segments is seen (HashIndex::ForEachBetween). Keys that
// are made to share a segment only make it long.
struct alignas(kCacheLine) Segment {
  SpinLock lock;       // guards everything below
  uint32_t depth = 0;  // changes when the segment splits
  uint64_t prefix = 0;
  uint64_t array = 0;            // as published in the directory
  uint64_t buckets = 0;          // of the array; 0: it is the shared empty one
  int64_t max_keys = 0;          // beyond which it grows
  int64_t erased = 0;            // since the array was made
  std::atomic<int64_t> keys{0};  // written under the lock, read by any thread

  bool Owns(uint64_t hash) const {
    return depth == 0 || hash >> (64 - depth) == prefix;
  }
};

// 2^depth entries, by the first 'depth' bits of the hash.
struct Directory {
  explicit Directory(uint32_t depth);

  // depth may be 0, and a shift by 64 is undefined.
  size_t IndexOf(uint64_t hash) const { return hash >> 1 >> (63 - depth); }

  // The array that holds this key, or held it when this was the directory.
  // REQUIRES: an epoch guard.
  uint64_t ArrayOf(int64_t key) const {
    return arrays[IndexOf(MixKey(key))].load(std::memory_order_acquire);
  }

  const uint32_t depth;
  const size_t size;
  std::unique_ptr<std::atomic<uint64_t>[]> arrays;    // for finds
  std::unique_ptr<std::atomic<Segment*>[]> segments;  // for writers
};

class Segments {
 public:
  Segments();
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  // What chooses the buckets of all arrays.
  const KeyedHash& secret() const { return secret_; }

  // Never freed before Clear: needs no guard. Arrays read from it do.
  const Directory& directory() const {
    return *directory_.load(std::memory_order_acquire);
  }

  // The segment that holds this hash, locked.
  Segment* Lock(uint64_t hash);

  // The following REQUIRE the segment's lock. After them it may no longer own
  // the hash it was locked for (a split): check Owns.

  // Makes room for more keys, if need be by splitting. False when there is no
  // memory; then nothing has changed, but that max_keys says when to try again,
  // up to MaxKeysWithoutMemory.
  bool Grow(Segment* segment);
  // Copies the segment to an array of this length, which must have a slot for
  // every key and loses the traces of erased ones. False: as Grow.
  bool Rebuild(Segment* segment, uint64_t buckets);

  void Clear();  // REQUIRES: no other call
  int64_t keys() const;
  int64_t bytes() const;
  // Frees the replaced arrays that no reader can see any more. Costs one load
  // when there are none.
  void Reclaim() const;

 private:
  struct Retired {
    uint64_t array;
    uint64_t stamp;
  };

  void Reset();
  void FreeAll();
  bool TryToGrow(Segment* segment);
  bool MaySplit(const Segment& segment) const;
  bool Split(Segment* segment);
  void Publish(const Directory& directory, Segment* segment);
  void Retire(uint64_t array, uint64_t buckets);
  void ReclaimLocked() const;

  const KeyedHash secret_ = KeyedHash::OfProcess();
  std::atomic<Directory*> directory_{nullptr};
  mutable std::mutex mu_;  // taken after a segment's lock, never before
  std::vector<std::unique_ptr<Directory>> directories_;  // current one last
  std::vector<std::unique_ptr<Segment>> segments_;
  mutable std::vector<Retired> retired_;
  mutable std::atomic<bool> has_retired_{false};  // changes under mu_
  int64_t array_bytes_ = 0;
  mutable int64_t retired_bytes_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_SEGMENTS_H_
