// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuDistinct: deduplicates a table's ids on a GPU. Ids are copied through
// pinned memory as they are put, and the distinct keys are copied back into the
// same memory. All other results stay on the GPU until they are fetched. Tables
// of one call are deduplicated together (distinct_group.h).
//
// MEMORY, until all objects of the call are destroyed:
//   GPU, per id          44 bytes, 8 less for ids that are in GPU memory, 4
//                        more if keys are sorted
//   GPU, per sample      4 bytes
//   pinned, per id       8 bytes, 4 more if the inverse is copied back
//   pinned, per sample   4 bytes, unless the samples are in GPU memory
//
// The memory is one context's (base/gpu/work/work_context.h), which is reused.

#ifndef KERNELS_ENGINE_IDS_GPU_GPU_DISTINCT_H_
#define KERNELS_ENGINE_IDS_GPU_GPU_DISTINCT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/work/staged_upload.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/gpu/distinct_group.h"

namespace ev {
namespace gpu {

// From this number of ids on, deduplication on the GPU is faster than on the
// CPU, including kernel launches and the wait.
constexpr int64_t kMinDistinctIds = 32768;

class GpuDistinct : public DeviceDistinct {
 public:
  // Creates one object per request; they are deduplicated together. REQUIRES:
  // the device is current. InvalidArgument, with the table's name: a batch is
  // in another device's memory. ResourceExhausted: not enough memory.
  static Status Make(int device, Span<const DistinctRequest> requests,
                     std::vector<std::unique_ptr<DeviceDistinct>>* distincts);

  bool needs_put() const override { return !table_.on_device; }

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  bool IsDone() const override;
  Status Wait() override;
  int64_t num_unique() const override { return num_unique_; }
  const int64_t* keys() const override { return table_.on_host.keys; }
  const int32_t* owner_starts() const override;
  Status Places(int32_t* places) const override;
  Status Inverse(int32_t* inverse, int32_t* counts) const override;
  Status Samples(int32_t* offsets) const override;

  // Arrays in GPU memory, valid from Wait until this object is destroyed. Work
  // of other streams that uses them must have finished by then.
  const int32_t* device_inverse() const { return batch().inverse; }  // [N]
  const int32_t* device_offsets() const { return batch().offsets; }  // [B + 1]
  // [U]; null without owners.
  const int32_t* device_cache_slots() const { return table_.places; }

 private:
  GpuDistinct(int device, std::shared_ptr<DistinctGroup> group, size_t t);
  Status PutBytes(int64_t begin, const void* ids, size_t count, size_t width);
  // Returns an array's offset in the context's device memory, for
  // WorkContext::BringDown.
  size_t AtOf(const void* array) const;
  const DistinctBatch& batch() const { return group_->batch(t_); }

  const int device_;
  const std::shared_ptr<DistinctGroup> group_;
  const size_t t_;
  const DistinctGroup::Table& table_;  // the group's
  StagedUpload ids_;
  std::atomic<bool> is_narrow_{false};
  bool one_id_each_ = false;  // of samples in GPU memory
  int64_t num_unique_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_GPU_DISTINCT_H_
