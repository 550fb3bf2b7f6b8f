// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/gpu/gpu_distinct.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/gpu/samples_on_device.h"

namespace ev {
namespace gpu {

GpuDistinct::GpuDistinct(int device, std::shared_ptr<DistinctGroup> group,
                         size_t t)
    : device_(device),
      group_(std::move(group)),
      t_(t),
      table_(group_->table(t)),
      ids_(table_.on_device ? 0 : table_.num_ids * sizeof(int64_t)) {}

Status GpuDistinct::Make(
    int device, Span<const DistinctRequest> requests,
    std::vector<std::unique_ptr<DeviceDistinct>>* distincts) {
  std::shared_ptr<DistinctGroup> group;
  EV_RETURN_IF_ERROR(DistinctGroup::Make(device, requests, &group));
  distincts->clear();
  for (size_t t = 0; t < requests.size(); ++t) {
    distincts->push_back(
        std::unique_ptr<GpuDistinct>(new GpuDistinct(device, group, t)));
  }
  return Status::OK();
}

Status GpuDistinct::PutBytes(int64_t begin, const void* ids, size_t count,
                             size_t width) {
  if (count == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return ids_.Put(begin * width, ids, count * width, table_.num_ids * width,
                  table_.on_host.ids, table_.ids, group_->context()->stream());
}

Status GpuDistinct::Put(int64_t begin, Span<const int64_t> ids) {
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int64_t));
}

Status GpuDistinct::Put(int64_t begin, Span<const int32_t> ids) {
  is_narrow_.store(true, std::memory_order_relaxed);
  return PutBytes(begin, ids.data(), ids.size(), sizeof(int32_t));
}

Status GpuDistinct::Start(Span<const int32_t> offsets) {
  return group_->Start(t_, is_narrow_.load(std::memory_order_relaxed), offsets);
}

bool GpuDistinct::IsDone() const { return group_->IsDone(); }

Status GpuDistinct::Wait() {
  EV_RETURN_IF_ERROR(group_->Wait());
  const DistinctCounts counted = *batch().sent.counts;
  num_unique_ = counted.num_unique;
  if (num_unique_ < 1 || num_unique_ > table_.num_ids) {
    group_->Fail();
    return Internal("the GPU found " + std::to_string(num_unique_) +
                    " distinct keys among " + std::to_string(table_.num_ids) +
                    " ids");
  }
  if (table_.on_device) {
    if ((counted.samples & kNotInOrder) != 0) {
      return Status(StatusCode::kUnimplemented,
                    "samples in the GPU's memory are not in order");
    }
    one_id_each_ = (counted.samples & kNotOneIdEach) == 0;
  }
  return Status::OK();
}

size_t GpuDistinct::AtOf(const void* array) const {
  return static_cast<const char*>(array) - group_->context()->device();
}

Status GpuDistinct::Inverse(int32_t* inverse, int32_t* counts) const {
  if (table_.brings_inverse) {
    const int32_t* const brought = table_.on_host.inverse;
    if (inverse != nullptr) std::copy_n(brought, table_.num_ids, inverse);
    if (counts == nullptr) return Status::OK();
    std::fill_n(counts, num_unique_, 0);
    for (int64_t i = 0; i < table_.num_ids; ++i) ++counts[brought[i]];
    return Status::OK();
  }
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t inverse_bytes =
      inverse == nullptr ? 0 : table_.num_ids * sizeof(int32_t);
  const size_t count_bytes =
      counts == nullptr ? 0 : num_unique_ * sizeof(int32_t);
  Parts on_host;
  const size_t inverse_at = on_host.AddBytes(inverse_bytes);
  const size_t counts_at = on_host.AddBytes(count_bytes);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(on_host.bytes(), 0, &context));
  const auto fetch = [&](size_t to, const void* from, size_t bytes) {
    if (bytes == 0) return Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->host() + to, from, bytes,
                                            cudaMemcpyDeviceToHost,
                                            context->stream()));
    return Status::OK();
  };
  EV_RETURN_IF_ERROR(fetch(inverse_at, batch().inverse, inverse_bytes));
  EV_RETURN_IF_ERROR(fetch(counts_at, batch().counts, count_bytes));
  EV_RETURN_IF_ERROR(context->Wait());
  if (inverse_bytes != 0) {
    std::memcpy(inverse, context->host() + inverse_at, inverse_bytes);
  }
  if (count_bytes != 0) {
    std::memcpy(counts, context->host() + counts_at, count_bytes);
  }
  WorkContext::Release(std::move(context));
  return Status::OK();
}

Status GpuDistinct::Samples(int32_t* offsets) const {
  if (!table_.on_device) return DeviceDistinct::Samples(offsets);
  const int64_t count = table_.num_samples + 1;
  if (one_id_each_) {
    std::iota(offsets, offsets + count, 0);
    return Status::OK();
  }
  return group_->context()->BringDown(AtOf(batch().offsets),
                                      count * sizeof(int32_t), offsets);
}

const int32_t* GpuDistinct::owner_starts() const {
  return table_.on_host.owner_starts;
}

Status GpuDistinct::Places(int32_t* places) const {
  if (!table_.is_sorted) return DeviceDistinct::Places(places);
  return group_->context()->BringDown(AtOf(table_.places),
                                      num_unique_ * sizeof(int32_t), places);
}

}  // namespace gpu
}  // namespace ev
