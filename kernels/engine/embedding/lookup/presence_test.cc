// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/presence.h"

#include <limits>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace ev {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

class PresenceTest : public ::testing::Test {
 protected:
  PresenceTest() : table_(Options()) {}

  static TableOptions Options() {
    TableOptions options;
    options.name = "user";
    options.dim = 2;
    testing::PutUnderTest(&options);
    options.record_frequency = options.record_version = true;
    return options;
  }

  void SetUp() override {
    const std::vector<float> defaults = {0.5f, 0.5f};
    ASSERT_TRUE(table_.Initialize(defaults, 1).ok());
  }

  std::vector<int32_t> Tiers(const std::vector<int64_t>& keys) {
    std::vector<int32_t> tiers(keys.size(), 7);
    EXPECT_TRUE(FindTiers(table_, keys, tiers.data()).ok());
    return tiers;
  }

  int64_t Insert(const std::vector<int64_t>& keys,
                 const std::vector<float>& values) {
    int64_t inserted = -1;
    EXPECT_TRUE(InsertAbsent(&table_, keys, values.data(), &inserted).ok());
    return inserted;
  }

  std::vector<float> Read(const std::vector<int64_t>& keys) {
    std::vector<float> out(keys.size() * 2);
    EXPECT_TRUE(table_.Gather(keys, out.data(), nullptr).ok());
    return out;
  }

  EmbeddingTable table_;
};

TEST_F(PresenceTest, FindsWhichKeysHaveARow) {
  EXPECT_EQ(2, Insert({3, kMin}, {1, 2, 3, 4}));
  EXPECT_EQ((std::vector<int32_t>{0, -1, 0, 0, -1, -1}),
            Tiers({3, 4, kMin, 3, kMax, -1}));
  EXPECT_TRUE(Tiers({}).empty());
  EXPECT_EQ(2, table_.size());
}

TEST_F(PresenceTest, NewRowsStartWithTheGivenValues) {
  EXPECT_EQ(1, Insert({3}, {1, 2}));
  EXPECT_EQ((std::vector<float>{1, 2, 0.5f, 0.5f}), Read({3, 4}));
  int64_t frequency = 7, version = 7;
  const std::vector<int64_t> keys = {3};
  ASSERT_TRUE(table_.GetMeta(keys, &frequency, &version).ok());
  EXPECT_EQ(0, frequency);
  EXPECT_EQ(-1, version);
}

TEST_F(PresenceTest, ExistingRowsStay) {
  Insert({3}, {1, 2});
  EXPECT_EQ(1, Insert({3, 5}, {8, 9, 6, 7}));
  EXPECT_EQ((std::vector<float>{1, 2, 6, 7}), Read({3, 5}));
}

TEST_F(PresenceTest, TheFirstOfAKeyThatComesTwiceCounts) {
  EXPECT_EQ(1, Insert({5, 5}, {1, 2, 3, 4}));
  EXPECT_EQ((std::vector<float>{1, 2}), Read({5}));
}

TEST_F(PresenceTest, SlotsStartAtTheirInitialValue) {
  const std::vector<SlotSpec> slots = {{"Adagrad", 0.25f}};
  ASSERT_TRUE(table_.EnsureSlots(slots, nullptr).ok());
  Insert({5}, {1, 2});
  const std::vector<int64_t> keys = {5};
  std::vector<float> values(2), slot(2);
  float* const out[] = {slot.data()};
  ASSERT_TRUE(table_
                  .ReadRows(keys, slots, values.data(),
                            Span<float* const>(out, 1), nullptr)
                  .ok());
  EXPECT_EQ((std::vector<float>{0.25f, 0.25f}), slot);
}

TEST_F(PresenceTest, FailsIfTheTableIsNotInitialized) {
  EmbeddingTable table(Options());
  const std::vector<int64_t> keys = {1};
  const std::vector<float> values = {1, 2};
  int32_t tier = 0;
  int64_t inserted = 7;
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            FindTiers(table, keys, &tier).code());
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            InsertAbsent(&table, keys, values.data(), &inserted).code());
  EXPECT_EQ(0, inserted);
}

TEST_F(PresenceTest, ThreadsThatInsertTheSameKeysAgreeOnARow) {
  constexpr int kThreads = 4;
  constexpr int64_t kKeys = 2000;
  std::vector<int64_t> keys(kKeys), inserted(kThreads);
  for (int64_t i = 0; i < kKeys; ++i) keys[i] = i;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> values(2 * kKeys, t);
      EXPECT_TRUE(
          InsertAbsent(&table_, keys, values.data(), &inserted[t]).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t total = 0;
  for (const int64_t n : inserted) total += n;
  EXPECT_EQ(kKeys, total);
  const std::vector<float> rows = Read(keys);
  for (int64_t i = 0; i < kKeys; ++i) EXPECT_EQ(rows[2 * i], rows[2 * i + 1]);
}

}  // namespace
}  // namespace ev
