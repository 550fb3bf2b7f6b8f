// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Location of each row in a table with two memories, of which the faster one
// holds only some rows. One atomic row state per handle has the location of the
// row: none; fresh (default row and initial slot values, not stored yet); in a
// cache slot of the faster memory; in the slower memory; or being moved. A row
// moves by changing its row state.
//
// Every use of a row reads its row state at random, so row states are in huge
// pages: with small pages most of the access would be the page walk.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_ROW_STATES_H_
#define KERNELS_ENGINE_STORAGE_TIERED_ROW_STATES_H_

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
// From kInFastTier: a cache slot of the faster memory. From kFresh: the default
// row of a fresh row. kMoving: being moved.
constexpr uint32_t kInFastTier = 0x80000000u;
constexpr uint32_t kFresh = 0xC0000000u;
constexpr uint32_t kKind = 0xC0000000u;
constexpr uint32_t kPayload = 0x3FFFFFFFu;  // must not be all ones with kFresh
constexpr uint32_t kMoving = 0xFFFFFFFFu;

inline bool InSlowTier(uint32_t row_state) {
  return row_state != 0 && row_state < kInFastTier;
}
inline bool InFastTier(uint32_t row_state) {
  return (row_state & kKind) == kInFastTier;
}
inline bool IsFresh(uint32_t row_state) {
  return (row_state & kKind) == kFresh && row_state != kMoving;
}

// Returns the error for a handle that should have a row and has none.
inline Status NoSuchRow(RowHandle handle) {
  return Internal("handle " + std::to_string(handle) + " has no row");
}

// Thread-safe except for DropUnused and Clear.
class RowStates {
 public:
  RowStates() { Clear(); }
  RowStates(const RowStates&) = delete;
  RowStates& operator=(const RowStates&) = delete;

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
    return reinterpret_cast<std::atomic<uint32_t>*>(
        row_states_->Address(handle));
  }
  // Calls body(handle, row state), which returns a Status, for every row state
  // in memory, in the order of handles. Stops at an error.
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

  // Calls body(handle, row state, default_row) for every fresh row.
  template <typename Body>
  Status ForEachFresh(const Body& body) const {
    return ForEach([&](RowHandle handle, std::atomic<uint32_t>* row_state) {
      const uint32_t seen = row_state->load();
      if (!IsFresh(seen)) return Status::OK();
      return body(handle, row_state, static_cast<int64_t>(seen & kPayload));
    });
  }

  // Frees the memory of these handles' row states wherever all row states of a
  // slab are zero. REQUIRES, like Clear, that no other call is running.
  void DropUnused(Span<const RowHandle> handles);
  void Clear();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A slab is a huge page of row states. Memory is counted and made usable in
  // groups, so that a small table takes little.
  static constexpr int kSlabLog2 = 19;
  static constexpr int kGroupLog2 = 16;
  static constexpr size_t kGroups = size_t{kFirstReservedHandle} >> kGroupLog2;
  static constexpr size_t kSlabs = size_t{kFirstReservedHandle} >> kSlabLog2;

  std::mutex mu_;  // to add memory
  std::unique_ptr<SlabArray> row_states_;
  std::unique_ptr<std::atomic<bool>[]> has_;  // by group
  // Index of a non-zero row state in each slab when DropUnused last looked.
  std::vector<uint32_t> in_use_;
  std::atomic<int64_t> bytes_{0};
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_ROW_STATES_H_
