// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/skip_without_gpu.h"

#include <string>

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace ev {
namespace testing {
namespace {

void SetUpFor(const Status& status, bool* goes_on) {
  EV_SKIP_WITHOUT_GPU(status);
  *goes_on = true;
}

// The results that a SetUp would report to GoogleTest.
struct Outcome {
  explicit Outcome(const Status& status) {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::
            INTERCEPT_ONLY_CURRENT_THREAD,
        &parts);
    SetUpFor(status, &goes_on);
  }
  std::string message() const {
    return parts.size() == 1 ? parts.GetTestPartResult(0).message() : "";
  }
  ::testing::TestPartResultArray parts;
  bool goes_on = false;
};

TEST(SkipWithoutGpuTest, ContinuesWithAGpu) {
  const Outcome outcome{Status::OK()};
  EXPECT_EQ(0, outcome.parts.size());
  EXPECT_TRUE(outcome.goes_on);
}

TEST(SkipWithoutGpuTest, SkipsWithoutAGpu) {
  const Outcome outcome(FailedPrecondition("there is no driver"));
  ASSERT_EQ(1, outcome.parts.size());
  EXPECT_TRUE(outcome.parts.GetTestPartResult(0).skipped());
  EXPECT_NE(std::string::npos, outcome.message().find("there is no driver"));
  EXPECT_FALSE(outcome.goes_on);
}

TEST(SkipWithoutGpuTest, FailsIfTheGpuFails) {
  for (const Status& status :
       {Internal("an ECC error"), ResourceExhausted("no memory")}) {
    const Outcome outcome(status);
    ASSERT_EQ(1, outcome.parts.size());
    EXPECT_TRUE(outcome.parts.GetTestPartResult(0).fatally_failed());
    EXPECT_NE(std::string::npos, outcome.message().find(status.message()));
    EXPECT_FALSE(outcome.goes_on);
  }
}

}  // namespace
}  // namespace testing
}  // namespace ev
