// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Internals of TieredRows, for its own source files only.

#ifndef KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_
#define KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// The state of a cache slot except for its floats and its row's handle; a
// quarter of a cache line.
struct TieredRows::Entry {
  std::atomic<HoldNumbers::Number> held, kept;  // stamps of briefly_ and kept_
  // the file's record of the row's current contents, or kNoRecord
  std::atomic<uint32_t> record;
  std::atomic<uint32_t> rank;
};

inline TieredRows::Entry* TieredRows::entry(CacheSlot cache_slot) const {
  return reinterpret_cast<Entry*>(entries_.Address(cache_slot));
}

// kNoRow: the cache slot has no row now, or never had one.
inline std::atomic<RowHandle>* TieredRows::handle_of(
    CacheSlot cache_slot) const {
  return reinterpret_cast<std::atomic<RowHandle>*>(
      handles_.Address(cache_slot));
}

inline float* TieredRows::row(CacheSlot cache_slot) const {
  return reinterpret_cast<float*>(rows_->Address(cache_slot));
}

inline bool TieredRows::MayBeHeld(const Entry& in) const {
  return briefly_.MayBeHeld(in.held.load(std::memory_order_relaxed)) ||
         kept_.MayBeHeld(in.kept.load(std::memory_order_relaxed));
}

inline void TieredRows::Stamp(const Holding& holding, CacheSlot cache_slot) {
  Entry* const in = entry(cache_slot);
  (holding.numbers_ == &kept_ ? in->kept : in->held)
      .store(holding.number_, std::memory_order_relaxed);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_
