// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/work/context_under_test.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/gpu/work/work_context.h"

namespace ev {
namespace gpu {
namespace {

void Hold(void* flag) {
  while (!static_cast<const std::atomic<bool>*>(flag)->load()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

ContextUnderTest::ContextUnderTest() {}
ContextUnderTest::~ContextUnderTest() {}

Status ContextUnderTest::MaxBytesInFlight(size_t* bytes) {
  int device = 0;
  EV_RETURN_IF_ERROR(ProcessDevice("this test needs", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  size_t free = 0, total = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  *bytes = total / WorkContext::kInFlightShare;
  return Status::OK();
}

void ContextUnderTest::WaitForAll() {
  EV_CUDA_LOG_IF_ERROR(cudaDeviceSynchronize());
}

Status ContextUnderTest::Acquire(size_t device_bytes) {
  return WorkContext::Acquire(0, device_bytes, &context_);
}

Status ContextUnderTest::HoldUntil(const std::atomic<bool>* flag) {
  EV_CUDA_RETURN_IF_ERROR(cudaLaunchHostFunc(
      context_->stream(), &Hold, const_cast<std::atomic<bool>*>(flag)));
  return Status::OK();
}

void ContextUnderTest::Release() { WorkContext::Release(std::move(context_)); }

void ContextUnderTest::ReleaseBusy() {
  WorkContext::ReleaseBusy(std::move(context_));
}

const void* ContextUnderTest::memory() const { return context_->device(); }

}  // namespace gpu
}  // namespace ev
