// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Skips tests that need a GPU on machines without one. A GPU that exists but
// fails must not look like a missing one.

#ifndef KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_
#define KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_

#include "gtest/gtest.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace testing {

// Returns whether 'status' means that no GPU is usable: no GPU, no driver, an
// old driver, or no code for the GPU. 'status' is the result of ProcessDevice
// or of a call that starts with it. A test must fail on all other errors.
inline bool IsWithoutGpu(const Status& status) {
  return status.code() == StatusCode::kFailedPrecondition;
}

}  // namespace testing
}  // namespace ev

// For a fixture's SetUp: skips the test, or fails, depending on the result of
// that call; otherwise continues.
#define EV_SKIP_WITHOUT_GPU(expression)                   \
  do {                                                    \
    const ::ev::Status ev_status_ = (expression);         \
    if (::ev::testing::IsWithoutGpu(ev_status_)) {        \
      GTEST_SKIP() << ev_status_.message();               \
    }                                                     \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#endif  // KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_
