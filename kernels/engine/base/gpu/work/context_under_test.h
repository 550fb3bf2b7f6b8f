// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A WorkContext for tests that include no CUDA header.

#ifndef KERNELS_ENGINE_BASE_GPU_WORK_CONTEXT_UNDER_TEST_H_
#define KERNELS_ENGINE_BASE_GPU_WORK_CONTEXT_UNDER_TEST_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class WorkContext;

class ContextUnderTest {
 public:
  ContextUnderTest();
  ~ContextUnderTest();

  // Limit on the device memory of contexts in flight (work_context.h).
  // FailedPrecondition without a GPU.
  static Status MaxBytesInFlight(size_t* bytes);
  // Waits for all work on the device.
  static void WaitForAll();

  Status Acquire(size_t device_bytes);
  // Keeps the context's stream busy until the flag is set.
  Status HoldUntil(const std::atomic<bool>* flag);
  void Release();
  void ReleaseBusy();
  const void* memory() const;

 private:
  std::unique_ptr<WorkContext> context_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_WORK_CONTEXT_UNDER_TEST_H_
