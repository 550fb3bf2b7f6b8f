// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The segments of an index and their directory: growth, splitting, shrinking,
// and retirement of replaced arrays. bucket.h defines the contents of a
// segment.

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

// A segment holds all keys whose hash begins with the 'depth' bits 'prefix'.
// This hash, like that of the directory, is the public MixKey, not the secret
// hash, because the order of segments is visible (HashIndex::ForEachBetween).
// An attacker can choose keys that share a segment, but that only makes the
// segment large.
struct alignas(kCacheLine) Segment {
  SpinLock lock;       // guards everything below
  uint32_t depth = 0;  // changes when the segment splits
  uint64_t prefix = 0;
  uint64_t array = 0;  // also published in the directory
  // of the array; 0: it is the shared empty array
  uint64_t buckets = 0;
  int64_t max_keys = 0;          // the segment grows beyond this
  int64_t erased = 0;            // since the array was made
  std::atomic<int64_t> keys{0};  // written under the lock, read by any thread

  bool Owns(uint64_t hash) const {
    return depth == 0 || hash >> (64 - depth) == prefix;
  }
};

// Maps the first 'depth' bits of the hash to an array and a segment: 2^depth
// entries.
struct Directory {
  explicit Directory(uint32_t depth);

  // Shifts in two steps: depth may be 0, and a shift by 64 is undefined.
  size_t IndexOf(uint64_t hash) const { return hash >> 1 >> (63 - depth); }

  // Returns the array that holds this key, or held it when this directory was
  // the current one. REQUIRES: an epoch guard.
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

  // The hash that chooses buckets, in all arrays.
  const KeyedHash& secret() const { return secret_; }

  // Directories are not freed before Clear, so reading one needs no guard. The
  // arrays in it do.
  const Directory& directory() const {
    return *directory_.load(std::memory_order_acquire);
  }

  // Returns the segment that holds this hash, locked.
  Segment* Lock(uint64_t hash);

  // The following calls REQUIRE the segment's lock. They may split the segment,
  // which then may no longer own the hash it was locked for: check Owns.

  // Makes room for more keys, by splitting if necessary. Without memory returns
  // false and changes nothing except max_keys: it rises to the next number of
  // keys at which to try again, at most MaxKeysWithoutMemory.
  bool Grow(Segment* segment);
  // Copies the segment to an array of this length, which must have a slot for
  // every key. The copy has no slots that erased keys left behind. Without
  // memory returns false and changes nothing.
  bool Rebuild(Segment* segment, uint64_t buckets);

  void Clear();  // REQUIRES: no other call
  int64_t keys() const;
  int64_t bytes() const;
  // Frees the replaced arrays that no reader can reach any more. Costs one load
  // if there are none.
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
  mutable std::mutex mu_;  // lock order: a segment's lock first, then mu_
  // the current one is last
  std::vector<std::unique_ptr<Directory>> directories_;
  std::vector<std::unique_ptr<Segment>> segments_;
  mutable std::vector<Retired> retired_;
  mutable std::atomic<bool> has_retired_{false};  // changes under mu_
  int64_t array_bytes_ = 0;
  mutable int64_t retired_bytes_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_SEGMENTS_H_
