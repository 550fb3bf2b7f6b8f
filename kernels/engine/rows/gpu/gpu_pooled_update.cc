// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows::StartPooledUpdate: copies handles and occurrences to the GPU as one
// block; a kernel sums the gradients and applies the rule. Nothing is copied
// back.

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/combine/gpu/long_sums.h"
#include "kernels/engine/rows/gpu/apply_pooled.h"
#include "kernels/engine/rows/gpu/gpu_gradients.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/lane_work.h"

namespace ev {
namespace gpu {

Status GpuRows::StartGradients(const float* grads, int64_t num_samples,
                               std::unique_ptr<DeviceGradients>* put) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return GpuGradients::Make(device_, dim_, grads, num_samples, put);
}

Status GpuRows::StartPooledUpdate(const DevicePooledUpdate& update,
                                  std::unique_ptr<DeviceWork>* work) {
  EV_RETURN_IF_ERROR(broken_);
  EV_RETURN_IF_ERROR(Flush());
  if (update.handles.empty()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Span<const float> weights(
      update.weights, update.weights == nullptr ? 0 : update.samples.size());
  const size_t grad_bytes = update.num_samples * dim_ * sizeof(float);
  auto* const put = static_cast<GpuGradients*>(update.put_grads);
  if (update.stream != nullptr && grad_bytes != 0) {
    EV_RETURN_IF_ERROR(CheckIsOn(device_, update.grads, "the gradient"));
  }
  Parts up;
  const size_t handles_at = up.Add(update.handles);
  const size_t ends_at = up.Add(update.ends);
  const size_t samples_at = up.Add(update.samples);
  const size_t weights_at = up.Add(weights);
  const size_t factors_at = up.Add(update.factors);
  const size_t up_bytes = up.bytes();
  Parts there = up;
  const int64_t num_ids = update.samples.size();
  const size_t sums_at = there.AddBytes(LongSumBytes(num_ids, dim_));
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(up_bytes, there.bytes(), &lane));
  EV_RETURN_IF_ERROR(Follow(lane->stream()));
  char* const device = lane->device();
  Put(update.handles, handles_at, lane.get());
  Put(update.ends, ends_at, lane.get());
  Put(update.samples, samples_at, lane.get());
  Put(weights, weights_at, lane.get());
  Put(update.factors, factors_at, lane.get());
  if (up_bytes != 0) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device, lane->host(), up_bytes,
                                            cudaMemcpyHostToDevice,
                                            lane->stream()));
  }
  RowBatch batch;
  batch.rows = pieces_->view();
  batch.handles = reinterpret_cast<const RowHandle*>(device + handles_at);
  batch.num_rows = update.handles.size();
  batch.dim = dim_;
  PooledGradients gradients;
  gradients.ends = reinterpret_cast<const int32_t*>(device + ends_at);
  gradients.samples = reinterpret_cast<const int32_t*>(device + samples_at);
  if (!weights.empty()) {
    gradients.weights = reinterpret_cast<const float*>(device + weights_at);
  } else if (!update.factors.empty()) {
    gradients.factors = reinterpret_cast<const float*>(device + factors_at);
  }
  // Waited for last, so that the work above runs while the gradients are
  // computed or copied.
  if (put != nullptr) {
    gradients.grads = put->on_gpu();
    EV_RETURN_IF_ERROR(put->Before(lane->stream()));
  } else {
    gradients.grads = update.grads;
    EV_RETURN_IF_ERROR(lane->Follow(*update.stream));
  }
  float* const long_sums = reinterpret_cast<float*>(device + sums_at);
  EV_RETURN_IF_ERROR(LaunchLongSums(gradients, batch.num_rows, num_ids, dim_,
                                    long_sums, lane->stream()));
  std::vector<int64_t> offsets;
  for (int column : update.slot_columns) offsets.push_back((1 + column) * dim_);
  EV_RETURN_IF_ERROR(LaunchApplyPooled(update.rule, update.hyper, batch,
                                       offsets, gradients, long_sums,
                                       lane->stream()));
  work->reset(new LaneWork(device_, std::move(lane)));
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
