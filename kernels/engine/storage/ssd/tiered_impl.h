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

// What a handle's word says: 0, nothing; below kInMemory, a record's number +
// 1; else a place in memory, or the default row of a row that is not made yet.
constexpr uint32_t kInMemory = 0x80000000u;
constexpr uint32_t kFresh = 0xC0000000u;
constexpr uint32_t kKind = 0xC0000000u;
constexpr uint32_t kPayload = 0x3FFFFFFFu;

inline bool IsInMemory(uint32_t word) { return (word & kKind) == kInMemory; }
inline bool IsFresh(uint32_t word) { return (word & kKind) == kFresh; }
inline bool IsRecord(uint32_t word) { return word != 0 && word < kInMemory; }

// In an entry's state: someone changes who lives in the place. The rest counts
// who holds it.
constexpr uint32_t kBusy = 0x80000000u;
// In a rank: used since the hand was here.
constexpr uint32_t kUsed = 0x80000000u;

// Words of a slab, which goes when none says anything.
constexpr int kWordsLog2 = 16;
constexpr int64_t kWordSlabBytes = sizeof(uint32_t) << kWordsLog2;
constexpr size_t kMaxWordSlabs = size_t{kFirstReservedHandle} >> kWordsLog2;

// All of a place but its floats.
struct TieredRows::Entry {
  std::atomic<uint32_t> state;
  RowHandle handle;              // while busy or held
  std::atomic<uint32_t> record;  // what the file has of the row as it is now
  std::atomic<uint32_t> rank;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_TIERED_IMPL_H_
