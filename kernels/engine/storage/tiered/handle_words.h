// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where each row of a table is of which only some are in the faster of two
// memories: one atomic word per handle says nowhere, not made yet (it is the
// default row and the slots' initial values), in a place of the faster memory,
// away in the slower one, or just being moved. Changing the word is what moves
// a row.
//
// A word is a random access for each row used, so words lie in huge pages:
// with small ones most of the access is the search for the page.

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

// 0, nothing; below kHere, where the slower memory has it + 1; else a place, or
// the default row of a row that is not made yet, or kMoving.
constexpr uint32_t kHere = 0x80000000u;
constexpr uint32_t kFresh = 0xC0000000u;
constexpr uint32_t kKind = 0xC0000000u;
constexpr uint32_t kPayload = 0x3FFFFFFFu;  // of kFresh: not this one itself
constexpr uint32_t kMoving = 0xFFFFFFFFu;

inline bool IsAway(uint32_t word) { return word != 0 && word < kHere; }
inline bool IsHere(uint32_t word) { return (word & kKind) == kHere; }
inline bool IsFresh(uint32_t word) {
  return (word & kKind) == kFresh && word != kMoving;
}

// The error of a handle that should have a row and has none.
inline Status NamesNoRow(RowHandle handle) {
  return Internal("handle " + std::to_string(handle) + " names no row");
}

// Thread-safe but for DropUnused and Clear.
class HandleWords {
 public:
  HandleWords() { Clear(); }
  HandleWords(const HandleWords&) = delete;
  HandleWords& operator=(const HandleWords&) = delete;

  // The handle's row is not made yet. Takes memory for its neighbours too.
  // ResourceExhausted.
  Status Make(RowHandle handle, int64_t default_row);

  // Whether the handle or a neighbour was ever made: at(handle) is memory.
  bool Has(RowHandle handle) const {
    return handle < kFirstReservedHandle &&
           has_[handle >> kGroupLog2].load(std::memory_order_acquire);
  }
  std::atomic<uint32_t>* at(RowHandle handle) const {
    return reinterpret_cast<std::atomic<uint32_t>*>(words_->Address(handle));
  }
  // body(handle, word), which returns a Status, for every word of memory, from
  // the first handle on; ends at an error.
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

  // body(handle, word, default_row) for those whose row is not made yet.
  template <typename Body>
  Status ForEachFresh(const Body& body) const {
    return ForEach([&](RowHandle handle, std::atomic<uint32_t>* word) {
      const uint32_t seen = word->load();
      if (!IsFresh(seen)) return Status::OK();
      return body(handle, word, static_cast<int64_t>(seen & kPayload));
    });
  }

  // Gives memory back in which no word says anything, that of the handles'
  // words. REQUIRES, as Clear, that no other call is running.
  void DropUnused(Span<const RowHandle> handles);
  void Clear();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A slab is a huge page of words; memory is counted and made usable by
  // groups, so that a small table takes little.
  static constexpr int kSlabLog2 = 19;
  static constexpr int kGroupLog2 = 16;
  static constexpr size_t kGroups = size_t{kFirstReservedHandle} >> kGroupLog2;
  static constexpr size_t kSlabs = size_t{kFirstReservedHandle} >> kSlabLog2;

  std::mutex mu_;  // to add memory
  std::unique_ptr<SlabArray> words_;
  std::unique_ptr<std::atomic<bool>[]> has_;  // by group
  // For each slab, a word that said something when DropUnused last looked.
  std::vector<uint32_t> in_use_;
  std::atomic<int64_t> bytes_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_HANDLE_WORDS_H_
