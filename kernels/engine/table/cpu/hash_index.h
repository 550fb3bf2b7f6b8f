// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// (API sketch: the essay on layout, invariants and cost belongs here.)

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
  // Returns a handle whose row is completely filled, or an error, which leaves
  // the key absent and is returned by the call that wanted the insert.
  virtual Status NewRow(int64_t key, RowHandle* handle) = 0;
};

// Any int64 -> RowHandle. Thread-safe: every member may be called by any number of
// threads at once; Find takes no lock and never waits.
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
  // find: it must not change this index.
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

  // As Find, but an absent key is inserted with the row that source gives. On an
  // error the keys before the failing one stay inserted; handles of the others
  // are kNoRow. num_inserted (may be null) counts this call's inserts.
  Status FindOrInsert(Span<const int64_t> keys, RowSource* source,
                      RowHandle* handles, int64_t* num_inserted);

  // Removes keys; erased(key, handle) is called once for each that was present.
  // The caller retires the rows: a reader may still hold the handle.
  int64_t Erase(Span<const int64_t> keys,
                const std::function<void(int64_t, RowHandle)>& erased);

  // Calls visit for every key that is present during the whole call; keys
  // inserted or erased meanwhile may or may not be seen. No order.
  void ForEach(const std::function<void(int64_t, RowHandle)>& visit) const;

  // Empties the index. REQUIRES: no other call is running.
  void Clear();

  int64_t size() const;     // keys
  int64_t bytes() const;    // memory of the index, bookkeeping included

 private:
  using GroupFn = void (*)(void* context, size_t begin, size_t end);
  void FindInGroups(Span<const int64_t> keys, RowHandle* handles, GroupFn fn,
                    void* context) const;

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_TABLE_CPU_HASH_INDEX_H_
