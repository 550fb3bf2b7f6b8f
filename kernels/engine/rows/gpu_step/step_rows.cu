// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A kernel visits the lists of distinct keys and writes the rows of tables with
// lists_rows to pinned memory, one warp at a time. A copy would have to wait
// for the number of rows, which is in GPU memory.

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/warp.cuh"
#include "kernels/engine/rows/gpu_step/step_keys.cuh"
#include "kernels/engine/rows/gpu_step/step_rows.h"

namespace ev {
namespace gpu {
namespace {

constexpr int kBlocksEach = 4;  // per multiprocessor

struct Lists {  // [most], in pinned memory
  int32_t* numbers;
  RowHandle* rows;
  uint32_t* counts;
};

// Appends one element for each lane with 'has'. Called by all lanes of a warp.
__device__ __forceinline__ void Append(const Lists& to, unsigned* num_rows,
                                       bool has, int32_t number, uint32_t row,
                                       uint32_t count) {
  const unsigned mask = __ballot_sync(kAllLanes, has);
  if (mask == 0) return;
  const int lane = threadIdx.x & (kWarp - 1);
  unsigned at = 0;
  if (lane == 0) at = atomicAdd(num_rows, __popc(mask));
  at = __shfl_sync(kAllLanes, at, 0) + __popc(mask & ((1u << lane) - 1));
  if (!has) return;
  to.numbers[at] = number;
  to.rows[at] = row;
  to.counts[at] = count;
}

__global__ void __launch_bounds__(kStepBlock)
    BringRowsKernel(StepPlan plan, Lists to) {
  unsigned* const num_rows = &plan.counts->listed;
  VisitKeys(
      plan, [](const StepTable& table) { return table.lists_rows != 0; },
      [&](const StepTable& table, uint32_t row, uint32_t occurrences,
          bool has) {
        Append(to, num_rows, has, table.number, row, occurrences);
      });
}

}  // namespace

StepRows::~StepRows() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  // A context that was not waited for is destroyed, which waits for its work.
  if (is_done_) WorkContext::Release(std::move(context_));
}

Status StepRows::Make(int device, int64_t num_ids,
                      std::unique_ptr<StepRows>* rows) {
  std::unique_ptr<StepRows> made(new StepRows(device));
  made->most_ = num_ids;
  char* base = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    Carver carve(base);
    made->count_ = carve.Take<uint32_t>(1);
    made->numbers_ = carve.Take<int32_t>(num_ids);
    made->rows_ = carve.Take<RowHandle>(num_ids);
    made->counts_ = carve.Take<uint32_t>(num_ids);
    if (pass == 0) {
      EV_RETURN_IF_ERROR(WorkContext::Acquire(carve.bytes(), /*device_bytes=*/0,
                                              &made->context_));
      base = made->context_->host();
    }
  }
  *rows = std::move(made);
  return Status::OK();
}

Status StepRows::Launch(const StepPlan& plan, int num_processors,
                        StreamView stream) {
  EV_RETURN_IF_ERROR(context_->Follow(DeviceStream{stream.get()}));
  const cudaStream_t s = context_->stream();
  BringRowsKernel<<<kBlocksEach * num_processors, kStepBlock, 0, s>>>(
      plan, Lists{numbers_, rows_, counts_});
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("BringRowsKernel");
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(count_, &plan.counts->listed,
                                          sizeof(uint32_t),
                                          cudaMemcpyDeviceToHost, s));
  return Status::OK();
}

Status StepRows::Before(StreamView stream) const {
  std::shared_ptr<DeviceEvent> end;
  EV_RETURN_IF_ERROR(DeviceEvent::Record(context_->stream(), &end));
  return end->Before(stream);
}

Status StepRows::Wait(GpuStepRows* rows) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(context_->Wait());
  is_done_ = true;
  const int64_t n = *count_;
  if (n > most_) {
    return Internal("a step on the GPU grouped " + std::to_string(most_) +
                    " ids into " + std::to_string(n) +
                    " rows; expected at most one row per id");
  }
  rows->numbers = Span<const int32_t>(numbers_, n);
  rows->rows = Span<const RowHandle>(rows_, n);
  rows->counts = Span<const uint32_t>(counts_, n);
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
