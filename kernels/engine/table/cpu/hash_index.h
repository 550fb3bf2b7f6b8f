// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Hash table in CPU memory: any int64 key -> the handle of its row.
//
// Layout. The high bits of the key's MixKey choose a segment from a small
// directory. A second, secret hash (base/keyed_hash.h) chooses a bucket of that
// segment's array. So keys that are chosen to collide do not share a bucket.
// Keys that are chosen to share a segment only make it longer (it takes up to
// 19 million), not slower. What is visible outside, the order of segments
// (ForEachBetween) and the memory, is the same in every process.
//
// A bucket is one cache line with five keys and their rows (bucket.h). A
// directory entry is one word with the array's address and length. So a find
// costs one access to a directory that stays in the first-level cache, and one
// cache line of the array. At the highest load one find in nine costs a second
// line; a find of an absent key hardly ever does.
//
// Finds take no lock. They run in a pipeline (find_pipeline.h) that prefetches
// the line of a key one group of keys before it is read, and likewise the
// second line of the few keys that need one. So memory bandwidth, not latency,
// limits the rate.
//
// Writers lock one segment. An insert first looks up its keys without a lock,
// so a batch of keys that are all present is only a find. For the absent keys
// of a batch it prefetches the buckets they will go to, and keeps a lock for
// several inserts.
//
// Growth is by one segment at a time. The keys are copied to a longer array
// while readers continue in the old one, one store publishes the new array, and
// the old one is freed when no reader can reach it any more (base/epoch.h).
// Arrays are in the order of the hash, so copying reads and writes memory
// sequentially. A segment of 10 MiB splits in two instead. When there are more
// segments than directory entries, the directory doubles by copying. It takes
// 16 bytes per segment; old directories are kept and together are no longer
// than the current one. At any time only the segments that are growing have two
// copies.
//
// Cost: 17 to 23 bytes per key (segment_size.h); an empty index is under 1 KiB.

#ifndef KERNELS_ENGINE_TABLE_CPU_HASH_INDEX_H_
#define KERNELS_ENGINE_TABLE_CPU_HASH_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Provides the row of a key that the index is about to insert. Called under a
// lock of the index: it must not call back into the index.
class RowSource {
 public:
  virtual ~RowSource() {}
  // Returns a handle, any value except kNoRow, whose row is completely filled.
  // An error leaves the key absent and is returned by the call that tried to
  // insert it. Called once per inserted key.
  virtual Status NewRow(int64_t key, RowHandle* handle) = 0;
};

// Map from any int64 to RowHandle. Thread-safe: any number of threads may call
// any member at once. Find takes no lock and never waits.
class HashIndex {
 public:
  HashIndex();
  ~HashIndex();
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  // Sets handles[i] to the row of keys[i], or to kNoRow. Duplicates are
  // allowed.
  void Find(Span<const int64_t> keys, RowHandle* handles) const {
    FindInGroups(keys, handles, nullptr, nullptr);
  }

  // Like Find, but also calls on_group(begin, end) as soon as handles[begin,
  // end) are set, for a few dozen keys at a time and in order. Use it to
  // prefetch the rows of this group, or to read those of the previous group,
  // while the index lines of the next group are being fetched. on_group runs
  // inside the find and may do anything except destroy or Clear the index. The
  // rest of this find may or may not see keys that it inserts or erases.
  template <typename OnGroup>  // void(size_t begin, size_t end)
  void FindWith(Span<const int64_t> keys, RowHandle* handles,
                OnGroup&& on_group) const {
    using Fn = typename std::remove_reference<OnGroup>::type;
    FindInGroups(
        keys, handles,
        [](void* context, size_t begin, size_t end) {
          (*static_cast<Fn*>(context))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&on_group)));
  }

  // Like Find, but inserts an absent key with the row that 'source' returns. On
  // an error, keys before the failing one stay inserted, and the handles of all
  // others are kNoRow. num_inserted (may be null) is the number of keys that
  // this call inserted, also on an error. ResourceExhausted if the index has no
  // memory.
  Status FindOrInsert(Span<const int64_t> keys, RowSource* source,
                      RowHandle* handles, int64_t* num_inserted);

  // Removes keys and returns the number of keys removed. Calls erased(key,
  // handle), which may be empty, once for each removed key, under a lock of the
  // index. The caller retires the rows: a reader may still hold the handle.
  int64_t Erase(Span<const int64_t> keys,
                const std::function<void(int64_t, RowHandle)>& erased);

  // Calls visit once for every key that is present during the whole call. Keys
  // inserted or erased meanwhile may or may not be visited; one that is erased
  // and inserted again may be visited twice. The order is unspecified. No lock
  // is held: visit may call any member except Clear.
  void ForEach(const std::function<void(int64_t, RowHandle)>& visit) const;
  // Like ForEach, for the keys whose hash (base/hash.h) is in [first, last], a
  // random sample of all keys. Reads each segment with such keys completely,
  // which takes at most 1 ms per segment.
  void ForEachBetween(
      uint64_t first, uint64_t last,
      const std::function<void(int64_t, RowHandle)>& visit) const;

  // Empties the index and frees its memory. REQUIRES: no other call is running.
  void Clear();

  // Number of keys. Exact if no other call is running.
  int64_t size() const;
  // Memory of the index, including bookkeeping and replaced arrays that are not
  // freed yet.
  int64_t bytes() const;

 private:
  using GroupFn = void (*)(void* context, size_t begin, size_t end);
  void FindInGroups(Span<const int64_t> keys, RowHandle* handles, GroupFn fn,
                    void* context) const;

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_HASH_INDEX_H_
