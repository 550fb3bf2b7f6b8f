// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Finds many keys with software prefetching. Keys are processed in groups, and
// three stages are in flight at a time. While the home buckets of group g are
// read, those of group g + 1 are prefetched. Then the second buckets of group g
// - 1 are read, and the remaining buckets of group g - 2, which completes it.
// Every bucket that is read was prefetched one group earlier, except from the
// third bucket on, which one key in fifty needs.
//
// Home addresses are computed ahead to keep the loop that waits for memory
// short. A prefetch that misses the TLB stalls the instructions after it, so
// the fewer instructions separate two prefetches, the more of them overlap. For
// the same reason that loop only records the keys that are not in their home
// bucket.

#ifndef KERNELS_ENGINE_TABLE_CPU_FIND_PIPELINE_H_
#define KERNELS_ENGINE_TABLE_CPU_FIND_PIPELINE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/table/cpu/bucket.h"
#include "kernels/engine/table/cpu/segments.h"

namespace ev {

class FindPipeline {
 public:
  // Number of keys in a group. A current core keeps 12 to 24 cache lines in
  // flight. Prefetching slightly more lines ahead keeps it busy; many more
  // would evict lines before they are read.
  static constexpr size_t kGroup = 32;

  using GroupFn = void (*)(void* context, size_t begin, size_t end);

  // handles: [keys.size()]. REQUIRES: an epoch guard as long as the pipeline
  // lives.
  FindPipeline(const Segments& segments, Span<const int64_t> keys,
               RowHandle* handles)
      : segments_(segments),
        keys_(keys.data()),
        size_(keys.size()),
        handles_(handles) {}

  // Finds all keys. Calls fn (may be null) for each group when it is complete.
  void Run(GroupFn fn, void* context);

 private:
  // The home bucket of a key. The address bits that alignment leaves free hold
  // the key's passed bit, which decides whether the find goes on to the next
  // bucket.
  class Home {
   public:
    Home() {}
    Home(const Bucket* bucket, uint32_t hash)
        : word_(reinterpret_cast<uintptr_t>(bucket) | PassedBit(hash)) {}
    const Bucket* bucket() const {
      return reinterpret_cast<const Bucket*>(word_ &
                                             ~uintptr_t{kCacheLine - 1});
    }
    uint32_t passed_bit() const { return static_cast<uint32_t>(word_); }
    const void* line() const { return reinterpret_cast<const void*>(word_); }

   private:
    uintptr_t word_;
  };

  // A key that is not in its home bucket. Its chain is at the next bucket to
  // read.
  struct Beyond {
    Chain chain;
    uint32_t passed_bit;
    size_t index;
  };
  struct BeyondList {
    size_t size = 0;
    Beyond keys[kGroup];
  };

  void ComputeHomes(size_t group, Home* homes) const;
  // Reads the group in homes_[0, kGroup) and prefetches the next group.
  void ReadHomes(size_t group, BeyondList* beyond);
  // Reads the next bucket of each key. Keys that must go further are added to
  // 'to'.
  void Advance(BeyondList* from, BeyondList* to);
  // Follows each chain to its end.
  void Finish(BeyondList* list);

  const Segments& segments_;
  const int64_t* const keys_;
  const size_t size_;
  RowHandle* const handles_;
  Home homes_[2 * kGroup];  // of the current group, then of the next
  BeyondList second_[2], later_[2];
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_FIND_PIPELINE_H_
