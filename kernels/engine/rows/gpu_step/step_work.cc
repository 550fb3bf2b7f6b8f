// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_work.h"

namespace ev {
namespace gpu {

StepWork::StepWork(int device, const DeviceStream* outside)
    : device_(device),
      outside_(outside == nullptr ? nullptr : new DeviceStream(*outside)) {}

Status StepWork::Acquire(size_t host_bytes, size_t device_bytes) {
  return WorkContext::Acquire(host_bytes, device_bytes, &context_);
}

Status StepWork::AcquireMore(size_t host_bytes, size_t device_bytes,
                             WorkContext** context) {
  std::unique_ptr<WorkContext> acquired;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(host_bytes, device_bytes, &acquired));
  *context = acquired.get();
  Keep(std::move(acquired));
  return Status::OK();
}

void StepWork::Keep(std::unique_ptr<WorkContext> context) {
  kept_.push_back(std::move(context));
}

Status StepWork::End(StreamView work, const DeviceStream* outside) {
  EV_RETURN_IF_ERROR(DeviceEvent::Record(work, &end_));
  if (outside == nullptr) return Status::OK();
  return end_->Before(static_cast<cudaStream_t>(outside->native));
}

void StepWork::Release() {
  for (std::unique_ptr<WorkContext>& context : kept_) {
    ReleaseOne(std::move(context));
  }
  ReleaseOne(std::move(context_));
}

void StepWork::ReleaseOne(std::unique_ptr<WorkContext> context) const {
  // A context that is not given back is destroyed.
  if (context == nullptr || num_unknown_ > 0 ||
      (end_ != nullptr && !end_->Before(context->stream()).ok())) {
    return;
  }
  WorkContext::ReleaseBusy(std::move(context));
}

}  // namespace gpu
}  // namespace ev
