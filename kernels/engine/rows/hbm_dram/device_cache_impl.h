// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What is inside DeviceCache; for its sources only.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_IMPL_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/rows/hbm_dram/device_cache.h"

namespace ev {

// In an entry's state: a thread changes which row lives in the place, or none
// does. The rest counts the calls that hold it.
constexpr uint32_t kBusy = 0x80000000u;
// Entries of a huge page: they are as many random accesses as rows.
constexpr int kEntriesLog2 = 17;

constexpr int64_t kMinPlaces = 64;

struct DeviceCache::Entry {
  std::atomic<uint32_t> state;
  RowHandle handle;  // while busy or held
  // The word that is still right for the row elsewhere; 0: it was written.
  std::atomic<uint32_t> home;
  std::atomic<uint32_t> rank;
};

// A row on its way to the device.
struct DeviceCache::Load {
  size_t i;
  RowHandle handle;
  Place place;
  uint32_t from;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_IMPL_H_
