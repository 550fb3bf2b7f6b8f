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
struct Told {
  explicit Told(const Status& status) {
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

TEST(SkipWithoutGpuTest, GoesOnWithOne) {
  const Told told{Status::OK()};
  EXPECT_EQ(0, told.parts.size());
  EXPECT_TRUE(told.goes_on);
}

TEST(SkipWithoutGpuTest, SkipsWhereThereIsNone) {
  const Told told(FailedPrecondition("there is no driver"));
  ASSERT_EQ(1, told.parts.size());
  EXPECT_TRUE(told.parts.GetTestPartResult(0).skipped());
  EXPECT_NE(std::string::npos, told.message().find("there is no driver"));
  EXPECT_FALSE(told.goes_on);
}

TEST(SkipWithoutGpuTest, FailsWhereOneIsBroken) {
  for (const Status& status :
       {Internal("an ECC error"), ResourceExhausted("no memory")}) {
    const Told told(status);
    ASSERT_EQ(1, told.parts.size());
    EXPECT_TRUE(told.parts.GetTestPartResult(0).fatally_failed());
    EXPECT_NE(std::string::npos, told.message().find(status.message()));
    EXPECT_FALSE(told.goes_on);
  }
}

}  // namespace
}  // namespace testing
}  // namespace ev
