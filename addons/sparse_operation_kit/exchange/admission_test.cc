// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/admission.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/engine/embedding/embedding_table.h"

namespace sok {
namespace {

std::shared_ptr<ev::EmbeddingTable> MakeTable(
    const std::vector<int64_t>& keys) {
  ev::TableOptions options;
  options.name = "t";
  options.dim = 1;
  auto table = std::make_shared<ev::EmbeddingTable>(options);
  const std::vector<float> row = {0.f};
  EXPECT_TRUE(table->Initialize(row, 1).ok());
  const std::vector<float> values(keys.size(), 1.f);
  EXPECT_TRUE(table->Import(keys, values.data(), {}, {}, {}, {}, 0, 1).ok());
  return table;
}

double FractionThatDraws(double ratio) {
  int count = 0;
  for (int64_t key = 0; key < 200; ++key) {
    for (uint64_t seed = 0; seed < 200; ++seed)
      count += Draws(key, seed, ratio);
  }
  return count / 40000.0;
}

TEST(DrawsTest, FollowsTheRatio) {
  EXPECT_EQ(FractionThatDraws(0.0), 0.0);
  EXPECT_EQ(FractionThatDraws(1.0), 1.0);
  EXPECT_NEAR(FractionThatDraws(0.25), 0.25, 0.01);
  EXPECT_NEAR(FractionThatDraws(0.9), 0.9, 0.01);
}

TEST(DrawsTest, OneKeyDrawsAnewWithEachSeedAndKeysDifferUnderOne) {
  int of_key = 0, of_seed = 0;
  for (int i = 0; i < 10000; ++i) {
    of_key += Draws(7, i, 0.5);
    of_seed += Draws(i, 7, 0.5);
  }
  EXPECT_NEAR(of_key, 5000, 250);
  EXPECT_NEAR(of_seed, 5000, 250);
}

class AdmitTest : public ::testing::Test {
 protected:
  // Two ranks send keys of two tables.
  void SetUp() override {
    const MessageFormat format = {2, false, 5, ""};
    message_ = {5, 3, 1, 0, 10, 11, 12, 10,  // rank 0: table 0, table 1
                5, 2, 0, 0, 12, 10};         // rank 1
    const std::vector<int32_t> splits = {8, 6};
    ASSERT_TRUE(MessageLayout::Parse(format, message_, splits, &layout_).ok());
  }

  std::vector<float> Admitted(const std::vector<float>& ratios,
                              uint64_t seed = 3) {
    std::vector<float> flags(6, -1.f);
    EXPECT_TRUE(Admit(layout_, message_.data(),
                      {MakeTable({10}), MakeTable({})}, ratios, seed,
                      flags.data())
                    .ok());
    return flags;
  }

  std::vector<int64_t> message_;
  MessageLayout layout_;
};

TEST_F(AdmitTest, KeysWithARowAreShownWhateverTheRatio) {
  EXPECT_EQ(Admitted({0.f, 0.f}), std::vector<float>({1, 0, 0, 0, 0, 1}));
}

TEST_F(AdmitTest, AllAreShownAtRatioOne) {
  EXPECT_EQ(Admitted({1.f, 1.f}), std::vector<float>({1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Admitted({0.f, 1.f}), std::vector<float>({1, 0, 0, 1, 0, 1}));
}

TEST_F(AdmitTest, RanksSeeTheSameDraw) {
  int shown = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> flags = Admitted({0.5f, 0.5f}, seed);
    EXPECT_EQ(flags[2], flags[4]);
    shown += flags[2] == 1.f;
  }
  EXPECT_NEAR(shown, 50, 20);
}

TEST_F(AdmitTest, WantsARatioPerTable) {
  float flag;
  const std::vector<float> ratios = {1.f};
  EXPECT_FALSE(
      Admit(layout_, message_.data(), {MakeTable({})}, ratios, 0, &flag).ok());
}

}  // namespace
}  // namespace sok
