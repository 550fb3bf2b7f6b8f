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

// What a handle's word says: 0, nothing; below kOnDevice, a row of CPU memory +
// 1; else a place of the device, or the default row of a row that is not made
// yet.
constexpr uint32_t kOnDevice = 0x80000000u;
constexpr uint32_t kFresh = 0xC0000000u;
constexpr uint32_t kKind = 0xC0000000u;
constexpr uint32_t kPayload = 0x3FFFFFFFu;

inline bool IsOnDevice(uint32_t word) { return (word & kKind) == kOnDevice; }
inline bool IsFresh(uint32_t word) { return (word & kKind) == kFresh; }
inline bool IsHostRow(uint32_t word) { return word != 0 && word < kOnDevice; }

// In an entry's state: someone changes who lives in the place, or nobody does.
// The rest counts who holds it.
constexpr uint32_t kBusy = 0x80000000u;
// In a rank: used since the hand was here.
constexpr uint32_t kUsed = 0x80000000u;

// Words of a slab, which goes when none says anything.
constexpr int kWordsLog2 = 16;
constexpr int64_t kWordSlabBytes = sizeof(uint32_t) << kWordsLog2;
constexpr size_t kMaxWordSlabs = size_t{kFirstReservedHandle} >> kWordsLog2;

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
