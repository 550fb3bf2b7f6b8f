// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DistinctGroup: tables that a GPU deduplicates together, for GpuDistinct. They
// share one context (base/gpu/work/work_context.h), the kernel launches and one
// wait. Memory to clear is contiguous, and so are offsets of samples, owner
// rules, and inverses to copy to the host: each takes one driver call for all
// tables. Clearing and the copy of owner rules are enqueued before ids arrive.

#ifndef KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_
#define KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/gpu/work/staged_upload.h"
#include "kernels/engine/base/gpu/work/work_context.h"
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
    bool on_device = false, is_sorted = false, brings_inverse = false;
    // In device memory. ids: null unless they are put. places: null unless keys
    // are sorted by owner.
    char* ids = nullptr;
    int32_t* places = nullptr;
    // In pinned memory; null if the table does not need it. Keys overwrite the
    // ids, which have been copied to the device by then.
    struct {
      char* ids = nullptr;
      int64_t* keys = nullptr;
      int32_t* offsets = nullptr;
      int32_t* inverse = nullptr;
      int32_t* owners = nullptr;
      int32_t* owner_starts = nullptr;
    } on_host;
  };

  // REQUIRES: the device is current. InvalidArgument, with the table's name: a
  // batch is in another device's memory. ResourceExhausted: not enough memory.
  static Status Make(int device, Span<const DistinctRequest> requests,
                     std::shared_ptr<DistinctGroup>* group);
  // Waits for work in flight, including copies of ids of a group that was never
  // launched.
  ~DistinctGroup();
  DistinctGroup(const DistinctGroup&) = delete;
  DistinctGroup& operator=(const DistinctGroup&) = delete;

  const Table& table(size_t t) const { return tables_[t]; }
  const DistinctBatch& batch(size_t t) const { return batches_[t]; }
  WorkContext* context() const { return context_.get(); }

  // Call when all of table t's ids have been put. is_narrow: they are int32.
  // offsets: those of its samples, copied before the return; empty if the
  // samples are in device memory. The call for the last table launches the
  // kernels. Thread-safe.
  Status Start(size_t t, bool is_narrow, Span<const int32_t> offsets);
  // Returns true if Wait would not block.
  bool IsDone() const;
  // Waits for the results of all tables. Thread-safe; later calls return the
  // same status. Internal: not all tables have been started.
  Status Wait();
  // Reports that the device has returned impossible numbers, so the state of
  // the context is unknown.
  void Fail() { has_failed_.store(true, std::memory_order_relaxed); }

 private:
  // A range of both memories, with data of all tables, that is cleared or
  // copied by one call.
  struct Stretch {
    char* on_host = nullptr;
    char* on_device = nullptr;
    size_t bytes = 0;
  };

  DistinctGroup(int device, size_t num_tables);
  // Places the arrays of all tables in the two memories, and returns the bytes
  // that they need. If host and device are null, only the bytes are valid.
  void LayOut(Span<const DistinctRequest> requests, char* host, char* device,
              size_t* host_bytes, size_t* device_bytes);
  // Does all work that needs no ids.
  Status Prepare(Span<const DistinctRequest> requests);
  Status SendUp(const Stretch& stretch);
  Status Launch();
  Status WaitForAll();

  const int device_;
  std::unique_ptr<WorkContext> context_;
  std::vector<Table> tables_;
  std::vector<DistinctBatch> batches_;  // of each table
  std::vector<OwnedKeys> owned_;        // of tables with owners
  std::vector<DeviceStream> streams_;   // of batches in device memory
  Stretch cleared_, offsets_, owners_, inverses_;
  std::unique_ptr<StagedUpload> offsets_upload_;

  std::atomic<size_t> left_;  // number of tables not yet started
  std::atomic<bool> is_launched_{false};
  std::atomic<bool> has_failed_{false};  // the state of the context is unknown
  std::mutex mu_;
  Status launched_;             // valid if is_launched_
  bool is_waited_for_ = false;  // guarded by mu_
  Status waited_;               // guarded by mu_
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_GPU_DISTINCT_GROUP_H_
