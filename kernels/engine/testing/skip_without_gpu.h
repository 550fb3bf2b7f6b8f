// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// When a test that needs a GPU is skipped. A GPU that is there and fails must
// not look like a machine that has none.

#ifndef KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_
#define KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_

#include "gtest/gtest.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace testing {

// Whether the call that asks for this process's GPU (ProcessDevice, or what
// begins with it) says that there is none to be used: no GPU, no driver, an old
// one, or no code for the GPU. Of all other errors a test has to fail.
inline bool IsWithoutGpu(const Status& status) {
  return status.code() == StatusCode::kFailedPrecondition;
}

}  // namespace testing
}  // namespace ev

// For a fixture's SetUp: skips the case, or fails, as the result of that call
// says; otherwise goes on.
#define EV_SKIP_WITHOUT_GPU(expression)                   \
  do {                                                    \
    const ::ev::Status ev_status_ = (expression);         \
    if (::ev::testing::IsWithoutGpu(ev_status_)) {        \
      GTEST_SKIP() << ev_status_.message();               \
    }                                                     \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#endif  // KERNELS_ENGINE_TESTING_SKIP_WITHOUT_GPU_H_
