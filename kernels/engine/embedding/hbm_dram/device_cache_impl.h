// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What is inside DeviceCache; for its sources only.

#ifndef KERNELS_ENGINE_EMBEDDING_HBM_DRAM_DEVICE_CACHE_IMPL_H_
#define KERNELS_ENGINE_EMBEDDING_HBM_DRAM_DEVICE_CACHE_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/hbm_dram/device_cache.h"

namespace ev {

// In an entry's state: someone changes who lives in the place, or nobody does.
// The rest counts who holds it.
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

// Floats on their way between the memories: in memory that a device
// reads by itself, if there is such.
class Staging {
 public:
  explicit Staging(size_t floats)
      : transfer_(AllocateTransferMemory(floats * sizeof(float))) {
    if (transfer_ == nullptr) ordinary_.resize(floats);
  }
  ~Staging() {
    if (transfer_ != nullptr) FreeTransferMemory(transfer_);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  float* data() {
    return transfer_ != nullptr ? static_cast<float*>(transfer_)
                                : ordinary_.data();
  }

 private:
  void* const transfer_;
  std::vector<float> ordinary_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_HBM_DRAM_DEVICE_CACHE_IMPL_H_
