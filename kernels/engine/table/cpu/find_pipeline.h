// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Many finds at once. The keys come in groups, several of which are under way:
// while the homes of group g are read, those of the next are asked for; the
// second buckets of group g - 1 are read, and whatever is left of group g - 2,
// which is then complete. Nothing is read that was not asked for a group
// earlier, but for the third bucket on of one key in fifty.
//
// The homes are computed ahead, so that the loop that waits for memory is
// short: a prefetch that misses the TLB holds up what comes after it, and the
// fewer the instructions from one prefetch to the next, the more of them wait
// together. For the same reason keys that are not at home are only noted there.

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
  // Keys of a group. A core of today keeps 12 to 24 lines in flight; asking a
  // little earlier than that keeps it from running dry, asking much earlier
  // evicts what was asked for.
  static constexpr size_t kGroup = 32;

  using GroupFn = void (*)(void* context, size_t begin, size_t end);

  // handles: [keys.size()]. REQUIRES: an epoch guard as long as this lives.
  FindPipeline(const Segments& segments, Span<const int64_t> keys,
               RowHandle* handles)
      : segments_(segments),
        keys_(keys.data()),
        size_(keys.size()),
        handles_(handles) {}

  // Finds all; calls fn (may be null) for each group as it is complete.
  void Run(GroupFn fn, void* context);

 private:
  // The home of a key and, in the bits that the address of a line leaves free,
  // which bit tells there whether to go on.
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

  // A key that is not at home; its chain stands at the bucket that comes next.
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
  // Reads the group in homes_[0, kGroup), while asking for the one behind it.
  void ReadHomes(size_t group, BeyondList* beyond);
  // Reads the next bucket of each; those that must go further go to 'to'.
  void Advance(BeyondList* from, BeyondList* to);
  // Follows each chain to its end.
  void Finish(BeyondList* list);

  const Segments& segments_;
  const int64_t* const keys_;
  const size_t size_;
  RowHandle* const handles_;
  Home homes_[2 * kGroup];  // of the group that is read, then of the next
  BeyondList second_[2], later_[2];
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_FIND_PIPELINE_H_
