// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What is inside TieredRows; for its sources only.

#ifndef KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_
#define KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_

#include <atomic>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/storage/ssd/tiered_rows.h"

namespace ev {

// All of a place but its floats and the handle whose row it has; a quarter of a
// line.
struct TieredRows::Entry {
  std::atomic<HoldNumbers::Number> held, kept;  // stamps of briefly_ and kept_
  std::atomic<uint32_t> record;  // what the file has of the row as it is now
  std::atomic<uint32_t> rank;
};

inline TieredRows::Entry* TieredRows::entry(Place place) const {
  return reinterpret_cast<Entry*>(entries_->Address(place));
}

// kNoRow: a place without a row, or one that has never held a row.
inline std::atomic<RowHandle>* TieredRows::handle_of(Place place) const {
  return reinterpret_cast<std::atomic<RowHandle>*>(handles_->Address(place));
}

inline float* TieredRows::row(Place place) const {
  return reinterpret_cast<float*>(rows_->Address(place));
}

inline bool TieredRows::MayBeHeld(const Entry& in) const {
  return briefly_.MayBeHeld(in.held.load(std::memory_order_relaxed)) ||
         kept_.MayBeHeld(in.kept.load(std::memory_order_relaxed));
}

inline void TieredRows::Stamp(const Holding& holding, Place place) {
  Entry* const in = entry(place);
  (holding.numbers_ == &kept_ ? in->kept : in->held)
      .store(holding.number_, std::memory_order_relaxed);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_
