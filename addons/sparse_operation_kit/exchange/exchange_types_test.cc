// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests narrow outputs and gradients of a lookup over ranks: outputs are
// rounded once, and gradients are widened.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;

class ExchangeTypesTest : public ::testing::TestWithParam<int> {};

TEST_P(ExchangeTypesTest, NarrowOutputsAndGradientsHaveTheBitsOfCasts) {
  LoopbackJob::Options options;
  options.storage = ev::testing::StorageUnderTest();
  options.num_ranks = GetParam();
  LoopbackJob job(options, {{"t", 12, Combiner::kMean, {0}}}, {0.3f});
  std::vector<std::vector<Bag>> bags(GetParam());
  std::mt19937 rng(3);
  for (auto& of_rank : bags) {
    Bag bag;
    bag.splits = {0};
    for (int s = 0; s < 20; ++s) {
      for (uint32_t n = rng() % 6; n > 0; --n) bag.ids.push_back(rng() % 30);
      bag.splits.push_back(bag.ids.size());
    }
    of_rank = {bag};
  }
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward(bags, &outputs).ok());
  const std::vector<int> tables = {0};
  for (int r = 0; r < GetParam(); ++r) {
    const std::vector<float>& wide = outputs[r][0];
    std::vector<uint16_t> narrow(wide.size());
    const ev::MutableFloats out[] = {
        {reinterpret_cast<char*>(narrow.data()), ev::FloatType::kFloat16}};
    ASSERT_TRUE(PoolReceived(job.route(r), job.received_rows(r),
                             job.num_floats(r), WireType::kFloat32,
                             ev::Span<const ev::MutableFloats>(out, 1), nullptr)
                    .ok());
    std::vector<float> widened;
    for (size_t i = 0; i < wide.size(); ++i) {
      ASSERT_EQ(ev::ToFloat16(wide[i]), narrow[i]) << i;
      widened.push_back(ev::FromFloat16(narrow[i]));
    }
    const ev::ConstFloats grads[] = {
        {widened.data()},
        {reinterpret_cast<char*>(narrow.data()), ev::FloatType::kFloat16}};
    std::vector<float> sums[2];
    for (int k = 0; k < 2; ++k) {
      sums[k].assign(job.num_floats(r) + 1, -77.0f);
      ASSERT_TRUE(PoolGradient(job.route(r), nullptr, tables,
                               ev::Span<const ev::ConstFloats>(grads + k, 1),
                               WireType::kFloat32, sums[k].data(), nullptr)
                      .ok());
    }
    EXPECT_EQ(sums[0], sums[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTypesTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace testing
}  // namespace sok
