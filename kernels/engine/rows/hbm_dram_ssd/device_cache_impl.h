// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Internals of DeviceCache, for its own source files only.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_IMPL_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"

namespace ev {

// A bit of an entry's state: a thread is changing the row of the cache slot, or
// the cache slot has none. The other bits count the calls that hold it.
constexpr uint32_t kBusy = 0x80000000u;
// Entries per huge page. Every use of a row reads its entry at random.
constexpr int kEntriesLog2 = 17;

constexpr int64_t kMinCacheSlots = 64;

struct DeviceCache::Entry {
  std::atomic<uint32_t> state;
  RowHandle handle;  // while busy or held
  // The row state that is still right for the row's other copy; 0: it was
  // written.
  std::atomic<uint32_t> home;
  std::atomic<uint32_t> rank;
};

// A row being copied to the device.
struct DeviceCache::Load {
  size_t i;
  RowHandle handle;
  CacheSlot cache_slot;
  uint32_t from;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_IMPL_H_
