// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// From a key, any int64, to the row it owns.
//
// Layout. The high bits of the key's MixKey choose a segment from a small
// directory, a second hash, with a secret (base/keyed_hash.h), a bucket of that
// segment's array: keys that are made to share a bucket do not, and keys that
// are made to share a segment find it longer than others (up to 19 million
// fit), not slower. A bucket is one cache line with five keys and their rows
// (bucket.h). So what is seen, the order of segments (ForEachBetween) and the
// memory, is the same in every process. The directory entry is
// one word with the array's address and length, so a find costs one access to a
// directory that lives in the first-level cache and one line of the array; one
// find in nine at the highest load costs a second line, and a find of an
// absent key hardly ever.
//
// Finds take no lock. They run in a pipeline (find_pipeline.h): the line of a
// key is asked for a group of keys before it is read, so that the memory
// system, not its latency, sets the pace; so are the second lines of the few
// keys that need one.
//
// Writers lock one segment. An insert first looks without a lock, so a batch of
// keys that are all present is a find. For the absent keys of a batch it asks
// for the buckets that will take them, and keeps the lock for a few of them.
//
// Growth is by one segment at a time: the keys are copied to a longer array
// while readers go on in the old one, one store publishes the new, and the old
// is freed when the last reader of before has left (base/epoch.h). Arrays are
// in order of the hash, so that copying reads and writes memory in sequence. A
// segment of 10 MiB splits in two instead; when there are more segments than
// directory entries, the directory doubles by copying (it is 16 bytes per
// segment; old ones are kept, together they are no longer than the current).
// No moment has two copies of more than the segments that are growing.
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

// Gives the row of a key that the index is about to insert. Called under a lock
// of the index: it must not call back into the index.
class RowSource {
 public:
  virtual ~RowSource() {}
  // Returns a handle whose row is completely filled (any value but kNoRow), or
  // an error, which leaves the key absent and is returned by the call that
  // wanted the insert. Called once per key that is inserted.
  virtual Status NewRow(int64_t key, RowHandle* handle) = 0;
};

// Any int64 -> RowHandle. Thread-safe: every member may be called by any number
// of threads at once; Find takes no lock and never waits.
class HashIndex {
 public:
  HashIndex();
  ~HashIndex();
  HashIndex(const HashIndex&) = delete;
  HashIndex& operator=(const HashIndex&) = delete;

  // handles[i] = the row of keys[i], or kNoRow. Duplicates are allowed.
  void Find(Span<const int64_t> keys, RowHandle* handles) const {
    FindInGroups(keys, handles, nullptr, nullptr);
  }

  // As Find, and calls on_group(begin, end) as soon as handles[begin, end) are
  // known, a few dozen keys at a time and in order: the place to prefetch the
  // rows of this group, or to read those of the group before it, while the
  // index lines of the next group are on their way. on_group runs inside the
  // find and may do anything but destroy or Clear the index; keys that it
  // inserts or erases may or may not be seen by the rest of this find.
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

  // As Find, but an absent key is inserted with the row that source gives. On
  // an error the keys before the failing one stay inserted; handles of the
  // others are kNoRow. num_inserted (may be null) counts this call's inserts,
  // also when it fails. ResourceExhausted when the index itself finds no
  // memory.
  Status FindOrInsert(Span<const int64_t> keys, RowSource* source,
                      RowHandle* handles, int64_t* num_inserted);

  // Removes keys; erased(key, handle), which may be empty, is called once for
  // each that was present, under a lock of the index. Returns how many were.
  // The caller retires the rows: a reader may still hold the handle.
  int64_t Erase(Span<const int64_t> keys,
                const std::function<void(int64_t, RowHandle)>& erased);

  // Calls visit once for every key that is present during the whole call; keys
  // inserted or erased meanwhile may or may not be seen. No order. No lock is
  // held: visit may call any member but Clear.
  void ForEach(const std::function<void(int64_t, RowHandle)>& visit) const;
  // The same for the keys whose hash (base/hash.h) lies in [first, last], which
  // are a random sample of all. Scans the segments that hold such keys whole: 1
  // ms each at most.
  void ForEachBetween(
      uint64_t first, uint64_t last,
      const std::function<void(int64_t, RowHandle)>& visit) const;

  // Empties the index and returns its memory. REQUIRES: no other call is
  // running.
  void Clear();

  // Keys. Exact when no other call is running.
  int64_t size() const;
  // Memory of the index, bookkeeping and arrays that wait for readers included.
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
