// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// skip_without_gpu.h for programs that gpu_program.cc runs, which do not use
// GoogleTest.

#ifndef KERNELS_ENGINE_TESTING_EXIT_WITHOUT_GPU_H_
#define KERNELS_ENGINE_TESTING_EXIT_WITHOUT_GPU_H_

#include <cstdio>

#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace testing {

// Returns 0 if this process has a GPU. Otherwise prints the reason and returns
// the exit code for main: 77 without a GPU, 1 if the GPU fails.
inline int ExitWithoutGpu() {
  int device = 0;
  const Status status = gpu::ProcessDevice("this test needs", &device);
  if (status.ok()) return 0;
  const bool is_skipped = status.code() == StatusCode::kFailedPrecondition;
  std::printf("%s: %s\n", is_skipped ? "skipped" : "FAILED",
              status.message().c_str());
  return is_skipped ? 77 : 1;
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_EXIT_WITHOUT_GPU_H_
