// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Location of each row in a table with two memories, of which the faster one
// holds only some rows. One atomic word per handle has the state of the row:
// none; fresh (default row and initial slot values, not stored yet); in a place
// of the faster memory; in the slower memory; or being moved. A row moves by
// changing its word.
//
// Every use of a row reads its word at random, so words are in huge pages: with
// small pages most of the access would be the page walk.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_HANDLE_WORDS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_HANDLE_WORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/storage/dram/slab_array.h"

namespace ev {

// Encoding. 0: no row. Below kInFastTier: position in the slower memory + 1.
// From kInFastTier: a place of the faster memory. From kFresh: the default row
// of a fresh row. kMoving: being moved.
constexpr uint32_t kInFastTier = 0x80000000u;
constexpr uint32_t kFresh = 0xC0000000u;
constexpr uint32_t kKind = 0xC0000000u;
constexpr uint32_t kPayload = 0x3FFFFFFFu;  // must not be all ones with kFresh
constexpr uint32_t kMoving = 0xFFFFFFFFu;

inline bool InSlowTier(uint32_t word) {
  return word != 0 && word < kInFastTier;
}
inline bool InFastTier(uint32_t word) { return (word & kKind) == kInFastTier; }
inline bool IsFresh(uint32_t word) {
  return (word & kKind) == kFresh && word != kMoving;
}

// Returns the error for a handle that should have a row and has none.
inline Status NoSuchRow(RowHandle handle) {
  return Internal("handle " + std::to_string(handle) + " has no row");
}

// Thread-safe except for DropUnused and Clear.
class HandleWords {
 public:
  HandleWords() { Clear(); }
  HandleWords(const HandleWords&) = delete;
  HandleWords& operator=(const HandleWords&) = delete;

  // Gives the handle a fresh row. Allocates memory for a group of handles.
  // ResourceExhausted.
  Status Make(RowHandle handle, int64_t default_row);

  // Returns whether Make was called for any handle of the group, so that
  // at(handle) has memory.
  bool Has(RowHandle handle) const {
    return handle < kFirstReservedHandle &&
           has_[handle >> kGroupLog2].load(std::memory_order_acquire);
  }
  std::atomic<uint32_t>* at(RowHandle handle) const {
    return reinterpret_cast<std::atomic<uint32_t>*>(words_->Address(handle));
  }
  // Calls body(handle, word), which returns a Status, for every word in memory,
  // in the order of handles. Stops at an error.
  template <typename Body>
  Status ForEach(const Body& body) const {
    for (uint64_t g = 0; g < kGroups; ++g) {
      if (!has_[g].load(std::memory_order_acquire)) continue;
      for (uint64_t h = g << kGroupLog2; h < (g + 1) << kGroupLog2; ++h) {
        const RowHandle handle = static_cast<RowHandle>(h);
        EV_RETURN_IF_ERROR(body(handle, at(handle)));
      }
    }
    return Status::OK();
  }

  // Calls body(handle, word, default_row) for every fresh row.
  template <typename Body>
  Status ForEachFresh(const Body& body) const {
    return ForEach([&](RowHandle handle, std::atomic<uint32_t>* word) {
      const uint32_t seen = word->load();
      if (!IsFresh(seen)) return Status::OK();
      return body(handle, word, static_cast<int64_t>(seen & kPayload));
    });
  }

  // Frees the memory of these handles' words wherever all words of a slab are
  // zero. REQUIRES, like Clear, that no other call is running.
  void DropUnused(Span<const RowHandle> handles);
  void Clear();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A slab is a huge page of words. Memory is counted and made usable in
  // groups, so that a small table takes little.
  static constexpr int kSlabLog2 = 19;
  static constexpr int kGroupLog2 = 16;
  static constexpr size_t kGroups = size_t{kFirstReservedHandle} >> kGroupLog2;
  static constexpr size_t kSlabs = size_t{kFirstReservedHandle} >> kSlabLog2;

  std::mutex mu_;  // to add memory
  std::unique_ptr<SlabArray> words_;
  std::unique_ptr<std::atomic<bool>[]> has_;  // by group
  // Index of a non-zero word in each slab when DropUnused last looked.
  std::vector<uint32_t> in_use_;
  std::atomic<int64_t> bytes_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_HANDLE_WORDS_H_
