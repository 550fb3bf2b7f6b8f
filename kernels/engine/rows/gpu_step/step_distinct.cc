// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepDistinct: the DeviceDistinct of one table of a step. The ids are still in
// pinned memory or on the GPU; when a caller first needs distinct keys, they
// are deduplicated by a GpuDistinct. A key's name is the name of its ids in the
// step.

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/ids/gpu/gpu_distinct.h"
#include "kernels/engine/rows/gpu_step/step_call.h"

namespace ev {
namespace gpu {

class StepDistinct : public DeviceDistinct {
 public:
  StepDistinct(std::shared_ptr<StepCall> step, int t)
      : step_(std::move(step)), t_(t) {}

  GpuStep* step() const override { return step_.get(); }
  int step_table() const override { return t_; }
  bool needs_put() const override {
    return table().where == StepCall::IdsAre::kPut;
  }

  Status Put(int64_t begin, Span<const int64_t> ids) override {
    return step_->Put(t_, begin, ids);
  }
  Status Put(int64_t begin, Span<const int32_t> ids) override {
    return step_->Put(t_, begin, ids);
  }
  Status Start(Span<const int32_t> offsets) override {
    return step_->Start(t_, offsets);
  }
  bool IsDone() const override { return step_->IsDone(); }
  Status Wait() override { return step_->Wait(); }
  int64_t num_unknown_of_step() override { return step_->num_unknown(); }

  int64_t num_unique() const override {
    return made_ == nullptr ? table().num_ids : made_->num_unique();
  }
  bool is_settled() const override { return step_->is_settled(t_); }
  Status Settle() override { return step_->Settle(t_); }
  int64_t num_unknown() const override { return table().keys.size(); }
  const int64_t* unknown_keys() const override { return step_->keys(t_); }
  const int32_t* unknown_counts() const override { return step_->counts(t_); }
  const int32_t* occurrences_of_ids() const override {
    return step_->HostOccurrences(table());
  }

  Status Fetch() const override {
    EV_RETURN_IF_ERROR(Make());
    return made_->Fetch();
  }
  int64_t* keys() const override { return made_->keys(); }
  int32_t* counts() const override { return made_->counts(); }
  RowHandle* names() const override { return names_.data(); }
  Status Inverse(int32_t* inverse, int32_t* counts) const override {
    EV_RETURN_IF_ERROR(Make());
    return made_->Inverse(inverse, counts);
  }
  Status Samples(int32_t* offsets) const override {
    return step_->Offsets(t_, offsets);
  }
  Status Occurrences(int32_t* samples) const override {
    EV_RETURN_IF_ERROR(Make());
    return made_->Occurrences(samples);
  }

 private:
  const StepCall::Table& table() const { return step_->tables_[t_]; }

  Status Make() const {
    std::lock_guard<std::mutex> lock(mu_);
    if (made_ != nullptr) return Status::OK();
    const StepCall::Table& of = table();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(step_->device_));
    std::unique_ptr<DeviceDistinct> distinct;
    EV_RETURN_IF_ERROR(GpuDistinct::Make(step_->device_, of.num_ids,
                                         of.num_samples,
                                         /*brings_inverse=*/true, &distinct));
    std::vector<char> ids;
    EV_RETURN_IF_ERROR(step_->Ids(t_, &ids));
    const void* const first = ids.data();
    const size_t n = of.num_ids;
    EV_RETURN_IF_ERROR(
        of.is_narrow
            ? distinct->Put(
                  0, Span<const int32_t>(static_cast<const int32_t*>(first), n))
            : distinct->Put(0, Span<const int64_t>(
                                   static_cast<const int64_t*>(first), n)));
    std::vector<int32_t> offsets(of.num_samples + 1);
    EV_RETURN_IF_ERROR(step_->Offsets(t_, offsets.data()));
    EV_RETURN_IF_ERROR(distinct->Start(offsets));
    EV_RETURN_IF_ERROR(distinct->Wait());
    std::vector<RowHandle> of_ids(n), names(distinct->num_unique());
    std::vector<int32_t> inverse(n);
    EV_RETURN_IF_ERROR(step_->BringNames(t_, of_ids.data()));
    EV_RETURN_IF_ERROR(distinct->Inverse(inverse.data(), nullptr));
    for (size_t i = 0; i < n; ++i) names[inverse[i]] = of_ids[i];
    names_ = std::move(names);
    made_ = std::move(distinct);
    return Status::OK();
  }

  const std::shared_ptr<StepCall> step_;
  const int t_;
  mutable std::mutex mu_;
  mutable std::unique_ptr<DeviceDistinct> made_;  // null until it is needed
  mutable std::vector<RowHandle> names_;          // of the distinct keys
};

std::unique_ptr<DeviceDistinct> MakeStepDistinct(std::shared_ptr<StepCall> step,
                                                 int t) {
  return std::unique_ptr<DeviceDistinct>(new StepDistinct(std::move(step), t));
}

}  // namespace gpu
}  // namespace ev
