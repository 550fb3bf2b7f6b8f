// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows::StartPooledUpdate: handles and occurrences go up as one block, the
// gradients beside them unless they are there or were put, a kernel sums and
// applies the rule. Where the ids were deduplicated on the device the handles
// are there too, but for keys that were inserted since, and occurrences are
// grouped there. Nothing comes back.

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/apply_pooled.h"
#include "kernels/engine/rows/gpu/gpu_distinct.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/group_ids.h"
#include "kernels/engine/rows/gpu/lane_work.h"
#include "kernels/engine/rows/gpu/long_sums.h"
#include "kernels/engine/rows/gpu/staged_upload.h"

namespace ev {
namespace gpu {

namespace {

class GpuGradients : public DeviceGradients {
 public:
  GpuGradients(int device, int64_t dim, int64_t num_samples,
               std::unique_ptr<WorkLane> lane)
      : device_(device),
        row_bytes_(dim * sizeof(float)),
        bytes_(num_samples * row_bytes_),
        lane_(std::move(lane)),
        upload_(bytes_) {}
  ~GpuGradients() override {
    EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
    // One that failed is destroyed instead.
    if (lane_->Wait().ok()) WorkLane::Release(std::move(lane_));
  }

  Status Put(int64_t begin, Span<const float> grads) override {
    if (grads.empty()) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    return upload_.Put(begin * row_bytes_, grads.data(),
                       grads.size() * sizeof(float), bytes_, lane_->host(),
                       lane_->device(), lane_->stream());
  }

  const float* there() const {
    return reinterpret_cast<const float*>(lane_->device());
  }
  DeviceStream stream() const { return DeviceStream{lane_->stream()}; }

 private:
  const int device_;
  const size_t row_bytes_, bytes_;
  std::unique_ptr<WorkLane> lane_;
  StagedUpload upload_;
};

}  // namespace

Status GpuRows::StartGradients(const float* grads, int64_t num_samples,
                               std::unique_ptr<DeviceGradients>* put) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  if (num_samples == 0 || IsPinned(grads)) return Status::OK();
  const size_t bytes = num_samples * dim_ * sizeof(float);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(bytes, bytes, &lane));
  put->reset(new GpuGradients(device_, dim_, num_samples, std::move(lane)));
  return Status::OK();
}

Status GpuRows::StartPooledUpdate(const DevicePooledUpdate& update,
                                  std::unique_ptr<DeviceWork>* work) {
  EV_RETURN_IF_ERROR(broken_);
  EV_RETURN_IF_ERROR(Flush());
  const auto* const distinct = static_cast<const GpuDistinct*>(
      update.distinct == nullptr ? nullptr : update.distinct->made());
  if (update.handles.empty() && distinct == nullptr) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const Span<const float> weights(
      update.weights, update.weights == nullptr ? 0 : update.samples.size());
  const size_t grad_bytes = update.num_samples * dim_ * sizeof(float);
  const auto* const put = static_cast<const GpuGradients*>(update.put_grads);
  const bool are_there = update.stream != nullptr || put != nullptr;
  if (update.stream != nullptr && grad_bytes != 0) {
    EV_RETURN_IF_ERROR(CheckIsOn(device_, update.grads, "the gradient"));
  }
  Parts up;
  const size_t handles_at = up.Add(update.handles);
  const size_t unknown_at = up.Add(update.unknown_handles);
  const size_t ends_at = up.Add(update.ends);
  const size_t samples_at = up.Add(update.samples);
  const size_t weights_at = up.Add(weights);
  const size_t factors_at = up.Add(update.factors);
  const size_t up_bytes = up.bytes();
  Parts there = up;
  const size_t grads_at = there.AddBytes(are_there ? 0 : grad_bytes);
  int64_t num_ids = update.samples.size();
  GroupedBatch ids;
  size_t ids_ends_at = 0, ids_samples_at = 0, scratch_at = 0, scratch_bytes = 0;
  size_t names_at = 0;
  if (distinct != nullptr) {
    ids = distinct->batch();
    EV_RETURN_IF_ERROR(GroupScratchBytes(ids, &scratch_bytes));
    ids_ends_at = there.AddBytes(ids.num_unique * sizeof(int32_t));
    ids_samples_at = there.AddBytes(ids.num_ids * sizeof(int32_t));
    scratch_at = there.AddBytes(scratch_bytes);
    num_ids = ids.num_ids;
    if (!update.unknown_handles.empty()) {
      names_at = there.AddBytes(ids.num_unique * sizeof(RowHandle));
    }
  }
  const size_t sums_at = there.AddBytes(LongSumBytes(num_ids, dim_));
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(up_bytes, there.bytes(), &lane));
  EV_RETURN_IF_ERROR(Follow(lane->stream()));
  char* const device = lane->device();
  // The large part first: the link works while the rest is laid out.
  if (are_there) {
    // Nothing to send.
  } else if (IsPinned(update.grads)) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device + grads_at, update.grads,
                                            grad_bytes, cudaMemcpyHostToDevice,
                                            lane->stream()));
  } else {
    EV_RETURN_IF_ERROR(lane->SendUp(reinterpret_cast<const char*>(update.grads),
                                    grad_bytes, device + grads_at));
  }
  Put(update.handles, handles_at, lane.get());
  Put(update.unknown_handles, unknown_at, lane.get());
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
  if (distinct != nullptr && update.handles.empty()) {
    batch.num_rows = ids.num_unique;
    batch.handles = distinct->device_names();
    if (!update.unknown_handles.empty()) {
      RowHandle* const names = reinterpret_cast<RowHandle*>(device + names_at);
      EV_RETURN_IF_ERROR(distinct->Rename(
          reinterpret_cast<const RowHandle*>(device + unknown_at),
          NumRows(update.unknown_handles), known_.get(), names,
          lane->stream()));
      batch.handles = names;
    }
  }
  if (distinct != nullptr) {
    int32_t* const ends = reinterpret_cast<int32_t*>(device + ids_ends_at);
    int32_t* const samples =
        reinterpret_cast<int32_t*>(device + ids_samples_at);
    EV_RETURN_IF_ERROR(LaunchGroup(ids, device + scratch_at, scratch_bytes,
                                   ends, samples, lane->stream()));
    gradients.ends = ends;
    gradients.samples = samples;
  }
  if (!weights.empty()) {
    gradients.weights = reinterpret_cast<const float*>(device + weights_at);
  } else if (!update.factors.empty()) {
    gradients.factors = reinterpret_cast<const float*>(device + factors_at);
  }
  // Only now: all before goes on beside what makes, or brings, the gradients.
  if (put != nullptr) {
    gradients.grads = put->there();
    EV_RETURN_IF_ERROR(lane->Follow(put->stream()));
  } else if (are_there) {
    gradients.grads = update.grads;
    EV_RETURN_IF_ERROR(lane->Follow(*update.stream));
  } else {
    gradients.grads = reinterpret_cast<const float*>(device + grads_at);
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
