// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu_step/step_fetch.h"

#include <string>

#include "gtest/gtest.h"
#include "kernels/engine/rows/gpu_step/fetch_under_test.h"
#include "kernels/engine/testing/skip_without_gpu.h"

namespace ev {
namespace gpu {
namespace {

class StepFetchTest : public ::testing::Test {
 protected:
  void SetUp() override { EV_SKIP_WITHOUT_GPU(UseGpuForFetch()); }

  void Run(FetchCase what) {
    int64_t host_ids = 0, reads = 0;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      what.seed = seed;
      what.num_tables = 1 + seed % 5;
      std::string wrong;
      int64_t num_host_ids = 0, num_reads = 0;
      const Status status = RunFetch(what, &wrong, &num_host_ids, &num_reads);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ("", wrong) << "seed " << seed;
      host_ids += num_host_ids;
      reads += num_reads;
    }
    EXPECT_GT(host_ids, 0);
    EXPECT_GT(reads, 0);
    EXPECT_LT(reads, host_ids);
  }
};

TEST_F(StepFetchTest, EveryRowIsReadOnce) { Run(FetchCase()); }

TEST_F(StepFetchTest, KeysAreWindowsOfPlaces) {
  FetchCase what;
  what.more_window_log2 = 4;
  Run(what);
}

TEST_F(StepFetchTest, RowsBeyondTheStagingBufferAreReadInPlace) {
  FetchCase what;
  what.staged_part = 5;
  Run(what);
}

TEST_F(StepFetchTest, RowsThatWereMadeMeanwhile) {
  FetchCase what;
  what.known_part = 3;
  Run(what);
}

}  // namespace
}  // namespace gpu
}  // namespace ev
