// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeviceDistinct on a GPU: ids go up through pinned memory piece by piece as
// they are put; keys that the GPU does not know come down into the same memory,
// and their names go up; all else stays until it is fetched. Tables that were
// made together are deduplicated together (distinct_group.h).
//
// MEMORY, until all that were made together are destroyed: per id 48 bytes on
// the device, 8 less where ids are there already, 4 more where keys are sorted,
// and 12 pinned, 4 more where the inverse is brought; 4 per sample of both (on
// the device alone where samples are there); per distinct key 16 pinned bytes
// when it is fetched. It is a lane's (base/gpu/work_lane.h), one for all that
// were made together, and is used again.

#ifndef KERNELS_ENGINE_ROWS_GPU_GPU_DISTINCT_H_
#define KERNELS_ENGINE_ROWS_GPU_GPU_DISTINCT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/rows/gpu/distinct_group.h"
#include "kernels/engine/rows/gpu/group_ids.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/staged_upload.h"

namespace ev {
namespace gpu {

// From here on launches and the wait cost less than the processor's dedup.
constexpr int64_t kMinDistinctIds = 32768;

class GpuDistinct : public DeviceDistinct {
 public:
  // One for each request, which are deduplicated together.
  // known: where keys are looked up, until they have been waited for. REQUIRES
  // that the device is current. InvalidArgument, with the table's name: a batch
  // that is there is in another device's memory; ResourceExhausted.
  static Status Make(int device, Span<const DistinctRequest> requests,
                     std::shared_ptr<KnownKeys> known,
                     std::vector<std::unique_ptr<DeviceDistinct>>* distincts);
  // The same of one table whose ids are put.
  static Status Make(int device, int64_t num_ids, int64_t num_samples,
                     std::shared_ptr<KnownKeys> known, bool brings_inverse,
                     std::unique_ptr<DeviceDistinct>* distinct);
  ~GpuDistinct() override;

  bool needs_put() const override { return !table_.is_there; }

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  bool IsDone() const override;
  Status Wait() override;
  int64_t num_unique() const override { return num_unique_; }
  int64_t num_unknown() const override { return num_unknown_; }
  const int64_t* unknown_keys() const override;
  const int32_t* owner_starts() const override;
  Status Places(int32_t* places) const override;
  Status Fetch() const override;
  int64_t* keys() const override;
  int32_t* counts() const override;
  RowHandle* names() const override;
  Status Inverse(int32_t* inverse, int32_t* counts) const override;
  Status Samples(int32_t* offsets) const override;
  Status Occurrences(int32_t* samples) const override;

  // In device memory, after Wait. A reader of the names has called Follow if
  // they were given; all else is not being written any more.
  GroupedBatch batch() const;
  const RowHandle* device_names() const;
  const int32_t* device_places() const;  // with owners

  // GpuTableCompute::SetUnknownHandles, on the stream of this.
  Status Name(Span<const RowHandle> names, KnownKeys* known);
  // The same, and the GPU need not know them.
  Status NameOnly(Span<const RowHandle> names);
  // Makes the lane come after that.
  Status Follow(WorkLane* lane) const;

  // The unknown keys under other names: a copy of the names, in 'all_names'
  // [U]. names: pinned or in device memory, [K], of which num_rows are of rows.
  // On the stream.
  Status Rename(const RowHandle* names, int64_t num_rows, KnownKeys* known,
                RowHandle* all_names, StreamView stream) const;

 private:
  GpuDistinct(int device, std::shared_ptr<DistinctGroup> group, size_t t);
  Status PutBytes(int64_t begin, const void* ids, size_t count, size_t width);
  NamedKeys UnknownKeys() const;
  Status NameThem(Span<const RowHandle> names, int64_t num_rows,
                  KnownKeys* known);
  // [at] of the lane's device memory, for WorkLane::BringDown.
  size_t AtOf(const void* array) const;
  const DistinctBatch& there() const { return group_->batch(t_); }

  const int device_;
  const std::shared_ptr<DistinctGroup> group_;
  const size_t t_;
  const DistinctGroup::Table& table_;  // the group's
  StagedUpload ids_;
  std::atomic<bool> is_narrow_{false};
  bool one_id_each_ = false;  // samples that are there
  bool is_named_ = false;     // names may be on their way
  int64_t num_unique_ = 0, num_unknown_ = 0;

  mutable std::mutex fetch_mu_;
  mutable std::atomic<bool> is_fetched_{false};
  mutable std::unique_ptr<WorkLane> fetched_;  // keys, counts, names
};

// How many of the names are of rows.
int64_t NumRows(Span<const RowHandle> names);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_GPU_DISTINCT_H_
