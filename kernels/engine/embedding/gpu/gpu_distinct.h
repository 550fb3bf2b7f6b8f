// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeviceDistinct on a GPU: ids go up through pinned memory piece by piece as
// they are put, keys and counts come down into the same memory, the inverse
// and the offsets stay.
//
// MEMORY, until it is destroyed: per id 44 bytes on the device and 12 pinned,
// and 4 per sample of both. It is a lane's (base/gpu/work_lane.h) and is used
// again.

#ifndef KERNELS_ENGINE_EMBEDDING_GPU_GPU_DISTINCT_H_
#define KERNELS_ENGINE_EMBEDDING_GPU_GPU_DISTINCT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/embedding/device_distinct.h"
#include "kernels/engine/embedding/gpu/group_ids.h"

namespace ev {
namespace gpu {

class GpuDistinct : public DeviceDistinct {
 public:
  // REQUIRES that the device is current.
  static Status Make(int device, int64_t num_ids, int64_t num_samples,
                     std::unique_ptr<DeviceDistinct>* distinct);
  ~GpuDistinct() override;

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  Status Wait() override;
  int64_t num_unique() const override { return num_unique_; }
  int64_t* keys() const override;
  int32_t* counts() const override;
  Status Occurrences(int32_t* samples) const override;

  // In device memory, after Wait. Nothing is under way then: any stream may
  // read it.
  GroupedBatch batch() const;

 private:
  // Where arrays are in one kind of memory.
  struct Layout {
    size_t ids, entries, heads, tiles, inverse, keys, counts, offsets,
        num_unique, bytes;
  };

  GpuDistinct(int device, int64_t num_ids, int64_t num_samples);
  Status PutBytes(int64_t begin, const void* ids, size_t count, size_t width);
  template <typename T>
  T* OnDevice(size_t at) const {
    return reinterpret_cast<T*>(lane_->device() + at);
  }
  template <typename T>
  T* OnHost(size_t at) const {
    return reinterpret_cast<T*>(lane_->host() + at);
  }

  const int device_;
  const int64_t num_ids_, num_samples_;
  Layout here_, there_;  // on the host, on the device
  std::unique_ptr<WorkLane> lane_;
  std::atomic<bool> is_narrow_{false};
  bool is_idle_ = false;  // nothing is under way
  int64_t num_unique_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GPU_GPU_DISTINCT_H_
