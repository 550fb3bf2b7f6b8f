// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepIds: copies the ids and samples of a step's tables to the GPU, and back
// for callers that need them.
//
// The ids are copied through pinned memory, as one block or as one block per
// wave. Ids in the caller's pinned memory are copied directly. Ids in GPU
// memory are read in place; the lookup copies them, for the update.
//
// A lookup of many ids is limited by the copy to the GPU, and the int64 ids of
// most models fit into 32 bits. They are therefore copied as int32. When a
// table gets an id that does not fit, its ids of this step are copied again as
// int64, and all its later steps copy int64.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_IDS_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_IDS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/work/staged_upload.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/rows/gpu_step/step_layout.h"
#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

class SideStream;  // base/gpu/side_stream.h

class StepIds {
 public:
  // Both outlive this object.
  StepIds(const StepLayout* layout, StepWork* work);
  ~StepIds();
  StepIds(const StepIds&) = delete;
  StepIds& operator=(const StepIds&) = delete;

  // Enqueues the copies of ids in the caller's pinned memory. Call first, once
  // the work has its context.
  Status Create();
  // GpuStep::Put.
  Status Put(int t, int64_t begin, Span<const int64_t> ids);
  Status Put(int t, int64_t begin, Span<const int32_t> ids);
  // Reads the table's offsets and occurrences, for GpuStep::Start.
  Status Start(int t, Span<const int32_t> offsets);

  // Makes later work of the step's stream wait for the copies so far.
  Status Join();
  // Gives the stream of the copies back. Call at the end of the step.
  void ReleaseStream();
  // Enqueues the copies of a wave's offsets, of all occurrences, and of the
  // result of the check of samples in GPU memory (LaunchFindSamples) to the
  // host.
  Status SendOffsets(const StepLayout::Wave& wave);
  Status SendOccurrences();
  Status BringChecks();
  // Waits until the GPU has read pinned ids without an owner, and checked the
  // samples in GPU memory. Unimplemented: they are not sorted.
  Status Wait();

  // --- After Start of all tables; for samples in GPU memory, after Wait ---

  // True if some sample may not be exactly one id.
  bool has_lists() const { return has_lists_; }
  // True if each of the table's samples is exactly one id.
  bool one_id_each(int t) const {
    return inputs_[layout_->tables[t].first].one_id_each;
  }
  // True if ids on the GPU are int32.
  bool is_narrow(int t) const {
    return layout_->tables[t].is_narrow && inputs_[t].wide == nullptr;
  }
  const char* OnHost(int t) const;  // if they were put
  char* OnDevice(int t) const;
  // The occurrences of the table's ids, [N]; null: 1 each.
  const int32_t* HostOccurrences(int t) const;
  const int32_t* DeviceOccurrences(int t) const;
  // Copies ids and offsets to the host. Leaves the handles to the caller.
  Status Bring(int t, GpuStepIds* to) const;

 private:
  // The int64 ids of a table whose ids do not all fit into int32. Not context
  // memory, since a table needs it in one step only. 'on_device' is freed
  // first; that waits for the copy that reads 'on_host'.
  struct WideIds {
    std::vector<int64_t> on_host;
    DeviceBuffer on_device;
  };
  struct Input {
    // True if the table narrows and an id did not fit into int32.
    std::atomic<bool> misfits{false};
    std::unique_ptr<WideIds> wide;
    // Set only for the first table with the same samples.
    bool one_id_each = true;
  };
  // Addresses to which the ids of a table's wave are staged and sent. 'device'
  // is null for a small step, whose ids are copied later
  // (StepDescription::Send).
  struct Upload {
    StagedUpload* put;
    size_t at;  // of the table's ids
    size_t bytes;
    char *host, *device;
    StreamView stream;
  };
  Upload UploadOf(int t) const;
  // Copies a table's ids again, as int64, because one does not fit into int32.
  Status PutWide(int t);
  Status BringOffsets(int t, int32_t* offsets) const;

  const StepLayout* const layout_;
  StepWork* const work_;
  std::vector<std::unique_ptr<StagedUpload>> puts_;  // one per wave
  std::vector<Input> inputs_;                        // one per table
  std::atomic<bool> has_lists_;
  // The stream that copies ids to the GPU; null: the context's stream does.
  std::unique_ptr<SideStream> uploads_;
  // Event recorded after the GPU has read pinned ids without an owner; null if
  // there are none.
  std::shared_ptr<DeviceEvent> ids_are_read_;
  // Event recorded after BringChecks.
  std::shared_ptr<DeviceEvent> samples_are_checked_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_IDS_H_
