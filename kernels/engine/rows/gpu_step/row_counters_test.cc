// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/row_counters.h"

#include <cstdint>
#include <map>

#include "gtest/gtest.h"
#include "kernels/engine/rows/gpu_step/counters_under_test.h"
#include "kernels/engine/testing/skip_without_gpu.h"

namespace ev {
namespace gpu {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr RowHandle kFew = CountersUnderTest::kFew,
                    kMany = CountersUnderTest::kMany;

class RowCountersTest : public ::testing::Test {
 protected:
  void SetUp() override { EV_SKIP_WITHOUT_GPU(updates_.Make(&counters_)); }

  std::map<RowHandle, RowMeta> Take() {
    std::map<RowHandle, RowMeta> taken;
    const Status status =
        counters_.Take([&](RowHandle row, const RowMeta& meta) {
          EXPECT_TRUE(taken.emplace(row, meta).second) << row;
        });
    EXPECT_TRUE(status.ok()) << status.message();
    return taken;
  }

  static void Expect(const RowMeta& meta, uint64_t version_plus1,
                     uint32_t frequency, uint32_t call) {
    EXPECT_EQ(version_plus1, meta.version_plus1);
    EXPECT_EQ(frequency, meta.frequency);
    EXPECT_EQ(call, meta.call);
  }

  RowCounters counters_;
  CountersUnderTest updates_;
};

TEST_F(RowCountersTest, UpdatesAddUpUntilTheyAreTaken) {
  EXPECT_FALSE(counters_.has_any());
  EXPECT_TRUE(Take().empty());
  ASSERT_OK(updates_.Update(8, 1));
  ASSERT_OK(updates_.Update(9, 2));
  EXPECT_TRUE(counters_.has_any());
  std::map<RowHandle, RowMeta> taken = Take();
  ASSERT_EQ(2u, taken.size());
  Expect(taken[kFew], 9, 6, 2);
  Expect(taken[kMany], 9, 40, 2);
  EXPECT_FALSE(counters_.has_any());
  ASSERT_OK(updates_.Update(0, 3));
  taken = Take();
  ASSERT_EQ(2u, taken.size());
  Expect(taken[kFew], 0, 3, 3);
  Expect(taken[kMany], 0, 20, 3);
}

TEST_F(RowCountersTest, AFrequencySaturates) {
  ASSERT_OK(updates_.Set(RowMeta{1, UINT32_MAX - 25, 1}));
  for (uint32_t call : {1, 2, 3}) ASSERT_OK(updates_.Update(call, call));
  Expect(Take()[kMany], 3, UINT32_MAX, 3);
}

TEST_F(RowCountersTest, ClearRemovesAllCounters) {
  ASSERT_OK(updates_.Update(1, 1));
  counters_.Clear();
  EXPECT_FALSE(counters_.has_any());
  EXPECT_FALSE(counters_.Has(kFew));
  ASSERT_OK(counters_.Reserve(kFew));
  counters_.WillHave();
  EXPECT_TRUE(Take().empty());
}

}  // namespace
}  // namespace gpu
}  // namespace ev
