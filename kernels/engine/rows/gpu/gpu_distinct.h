// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeviceDistinct on a GPU: ids go up through pinned memory piece by piece as
// they are put; keys that the GPU does not know come down into the same memory,
// and their names go up; all else stays until it is fetched.
//
// MEMORY, until it is destroyed: per id 48 bytes on the device (44 where ids
// are there already and keys are sorted) and 16 pinned, and 4 per sample of
// both; per distinct key 16 pinned bytes when it is fetched. It is a lane's
// (base/gpu/work_lane.h) and is used again.

#ifndef KERNELS_ENGINE_ROWS_GPU_GPU_DISTINCT_H_
#define KERNELS_ENGINE_ROWS_GPU_GPU_DISTINCT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/rows/gpu/group_ids.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/staged_upload.h"

namespace ev {
namespace gpu {

// From here on launches and the wait cost less than the processor's dedup.
constexpr int64_t kMinDistinctIds = 32768;

class GpuDistinct : public DeviceDistinct {
 public:
  // known: where keys are looked up, until it has been waited for.
  // brings_inverse: the inverse comes down with the keys, into 4 pinned bytes
  // per id more, so that Inverse has no device to wait for. REQUIRES that the
  // device is current. ResourceExhausted.
  static Status Make(int device, int64_t num_ids, int64_t num_samples,
                     std::shared_ptr<KnownKeys> known, bool brings_inverse,
                     std::unique_ptr<DeviceDistinct>* distinct);
  // Of ids and samples in this device's memory. InvalidArgument: in another's.
  static Status MakeOfIdsThere(int device, const IdsOnDevice& ids,
                               std::shared_ptr<KnownKeys> known,
                               std::unique_ptr<DeviceDistinct>* distinct);
  ~GpuDistinct() override;

  bool needs_put() const override { return !are_there_; }

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
  // Where arrays are in one kind of memory.
  struct Layout {
    size_t ids, entries, done, heads, tiles, unknown_tiles, inverse, keys,
        counts, names, offsets, counted, owners, owner_tiles, places, bytes;
  };

  // there: null, or ids and samples in the device's memory.
  GpuDistinct(int device, int64_t num_ids, int64_t num_samples,
              const IdsOnDevice* there, std::shared_ptr<KnownKeys> known,
              bool brings_inverse);
  Status SendOffsets(Span<const int32_t> offsets);
  Status SortByOwner();
  Status PutBytes(int64_t begin, const void* ids, size_t count, size_t width);
  NamedKeys UnknownKeys() const;
  Status NameThem(Span<const RowHandle> names, int64_t num_rows,
                  KnownKeys* known);
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
  const bool brings_inverse_;
  const bool are_there_;
  const IdsOnDevice given_;           // with are_there_, until Wait
  const int64_t num_residues_;        // of owners; 0: keys are not sorted
  bool one_id_each_ = false;          // samples that are there
  std::shared_ptr<KnownKeys> known_;  // until Wait
  Layout here_, there_;               // on the host, on the device
  std::unique_ptr<WorkLane> lane_;
  StagedUpload ids_;
  std::atomic<bool> is_narrow_{false};
  bool has_failed_ = false;  // nothing is known of the lane
  bool is_named_ = false;    // names may be on their way
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
