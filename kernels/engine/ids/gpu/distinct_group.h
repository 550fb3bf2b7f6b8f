// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tables that a GPU deduplicates together, for GpuDistinct: they lie in one
// lane (base/gpu/work_lane.h), have their launches in common, and are waited
// for once. What has to be cleared lies together, and so do samples' offsets,
// rules of owners, and inverses that come down: each is one call of the driver
// for all tables, of which clearing and rules go before there are ids.

#ifndef KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_
#define KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/gpu/staged_upload.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/gpu/distinct.h"
#include "kernels/engine/ids/gpu/sort_by_owner.h"

namespace ev {
namespace gpu {

class DistinctGroup {
 public:
  struct Table {
    int64_t num_ids = 0, num_samples = 0;
    bool is_there = false, is_sorted = false, brings_inverse = false;
    // On the device, of a table whose ids are put, and of one that is sorted.
    char* ids = nullptr;
    int32_t* places = nullptr;
    // In pinned memory; null where a table needs none. Keys come down where the
    // ids were, which have gone up by then.
    struct {
      char* ids = nullptr;
      int64_t* keys = nullptr;
      int32_t* offsets = nullptr;
      int32_t* inverse = nullptr;
      int32_t* owners = nullptr;
      int32_t* owner_starts = nullptr;
    } here;
  };

  // REQUIRES: the device is current. InvalidArgument, with the table's name: a
  // batch is in another device's memory; ResourceExhausted.
  static Status Make(int device, Span<const DistinctRequest> requests,
                     std::shared_ptr<DistinctGroup>* group);
  // Waits for what is under way, which may be some ids of a group that was
  // never launched.
  ~DistinctGroup();
  DistinctGroup(const DistinctGroup&) = delete;
  DistinctGroup& operator=(const DistinctGroup&) = delete;

  const Table& table(size_t t) const { return tables_[t]; }
  const DistinctBatch& batch(size_t t) const { return batches_[t]; }
  WorkLane* lane() const { return lane_.get(); }

  // All of table t's ids were put: is_narrow as int32. offsets: of its samples,
  // read when this returns; none where it is there. The call for the last table
  // launches. From any thread.
  Status Start(size_t t, bool is_narrow, Span<const int32_t> offsets);
  // Wait would return at once.
  bool IsDone() const;
  // Waits once. By any threads at once, when all tables were started.
  Status Wait();
  // The device gave numbers that cannot be: nothing is known of the lane.
  void Fail() { has_failed_.store(true, std::memory_order_relaxed); }

 private:
  // What is cleared, or copied as it lies, of all tables.
  struct Stretch {
    char* here = nullptr;
    char* there = nullptr;
    size_t bytes = 0;
  };

  DistinctGroup(int device, size_t num_tables);
  // Points into the two memories, which have so many bytes then; into none, for
  // their number alone, where the memories are null.
  void LayOut(Span<const DistinctRequest> requests, char* host, char* device,
              size_t* host_bytes, size_t* device_bytes);
  // What needs no ids.
  Status Prepare(Span<const DistinctRequest> requests);
  Status SendUp(const Stretch& stretch);
  Status Launch();
  Status WaitForAll();

  const int device_;
  std::unique_ptr<WorkLane> lane_;
  std::vector<Table> tables_;
  std::vector<DistinctBatch> batches_;  // of each table
  std::vector<OwnedKeys> owned_;        // of those that are sorted
  std::vector<DeviceStream> streams_;   // of batches that are there
  Stretch cleared_, offsets_, owners_, inverses_;
  std::unique_ptr<StagedUpload> offsets_upload_;

  std::atomic<size_t> left_;  // tables that were not started
  std::atomic<bool> is_launched_{false};
  std::atomic<bool> has_failed_{false};  // nothing is known of the lane
  std::mutex mu_;
  Status launched_;             // right when is_launched_
  bool is_waited_for_ = false;  // by mu_
  Status waited_;               // by mu_
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_
