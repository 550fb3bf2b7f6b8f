// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests PoolGivenRows, the gradient of weights with given rows, and weights
// that sum to 0.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kDim = 5;
constexpr int64_t kBatch = 400;

std::shared_ptr<EmbeddingTable> MakeTable() {
  TableOptions options;
  options.name = "user";
  options.dim = kDim;
  testing::PutUnderTest(&options);
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows(37 * kDim);
  // Few distinct values, so that elements tie.
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.5f * (i * 7 % 5);
  EXPECT_TRUE(table->Initialize(rows, 37).ok());
  return table;
}

// A lookup of random ids, samples of 0 to 6.
class GivenRowsTest : public ::testing::TestWithParam<Combiner> {
 protected:
  GivenRowsTest() : pool_(3), table_(MakeTable()) {
    splits_.push_back(0);
    for (int64_t s = 0; s < kBatch; ++s) {
      const int n = random_() % 7;
      for (int i = 0; i < n; ++i) {
        ids_.push_back(random_() % 60);
        weights_.push_back(0.5f + random_() % 4);
      }
      splits_.push_back(ids_.size());
    }
  }

  void Run(bool weighted, bool no_nan = false) {
    PooledInput in;
    in.table = table_.get();
    in.combiner = GetParam();
    in.no_nan = no_nan;
    in.batch_size = kBatch;
    in.num_ids = ids_.size();
    in.ids64 = ids_.data();
    in.row_splits = splits_.data();
    if (weighted) in.weights = weights_.data();
    output_.assign(kBatch * kDim, -77.0f);
    float* outputs[] = {output_.data()};
    ASSERT_OK(PooledForward(Span<const PooledInput>(&in, 1), {table_},
                            Span<float* const>(outputs, 1), &pool_, &plan_));
  }

  std::vector<float> Random(int64_t count) {
    std::vector<float> values(count);
    for (float& v : values)
      v = static_cast<int>(random_() % 2001) / 1000.0f - 1;
    return values;
  }

  std::vector<float> UniqueGrads(const std::vector<float>& grads) {
    std::vector<float> sums(UniqueKeys(*plan_, 0).size() * kDim, -77.0f);
    const float* in[] = {grads.data()};
    float* out[] = {sums.data()};
    EXPECT_TRUE(PooledBackward(*plan_, Span<const float* const>(in, 1),
                               Span<float* const>(out, 1), &pool_)
                    .ok());
    return sums;
  }

  std::vector<float> Pooled(const std::vector<float>& given) {
    std::vector<float> out(kBatch * kDim, -77.0f);
    EXPECT_TRUE(
        PoolGivenRows(*plan_, 0, given.data(), out.data(), &pool_).ok());
    return out;
  }

  static double Product(const std::vector<float>& a,
                        const std::vector<float>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

  testing::ThreadPool pool_;
  std::mt19937 random_{7};
  std::shared_ptr<EmbeddingTable> table_;
  std::vector<int64_t> ids_, splits_;
  std::vector<float> weights_, output_;
  std::shared_ptr<const LookupPlan> plan_;
};

TEST_P(GivenRowsTest, ComputesTheTransposeOfTheGradient) {
  for (bool weighted : {false, true}) {
    if (weighted && Selects(GetParam())) continue;
    ASSERT_NO_FATAL_FAILURE(Run(weighted));
    const int64_t num_keys = UniqueKeys(*plan_, 0).size();
    const std::vector<float> grads = Random(kBatch * kDim);
    const std::vector<float> given = Random(num_keys * kDim);
    const double expected = Product(UniqueGrads(grads), given);
    EXPECT_NEAR(expected, Product(grads, Pooled(given)),
                1e-3 * (1 + std::abs(expected)));
  }
}

TEST_P(GivenRowsTest, TheTablesOwnRowsGiveTheOutput) {
  ASSERT_NO_FATAL_FAILURE(Run(false));
  const Span<const int64_t> keys = UniqueKeys(*plan_, 0);
  std::vector<float> rows(keys.size() * kDim);
  ASSERT_OK(table_->Gather(std::vector<int64_t>(keys.begin(), keys.end()),
                           rows.data(), nullptr));
  EXPECT_EQ(output_, Pooled(rows));
}

TEST_P(GivenRowsTest, WeightsHaveGradients) {
  if (Selects(GetParam())) return;
  ASSERT_NO_FATAL_FAILURE(Run(true));
  const std::vector<float> grads = Random(kBatch * kDim);
  const std::vector<float> given = Random(UniqueKeys(*plan_, 0).size() * kDim);
  const std::vector<float> pooled = Pooled(given);
  std::vector<float> found(ids_.size(), -77.0f);
  ASSERT_OK(PooledWeightGrad(*plan_, 0, grads.data(), pooled.data(),
                             found.data(), &pool_, given.data()));
  for (size_t i = 0; i < ids_.size(); i += ids_.size() / 20) {
    const float before = weights_[i], h = 1.0f / 64;
    double losses[2];
    for (int side : {0, 1}) {
      weights_[i] = before + (side == 0 ? -h : h);
      ASSERT_NO_FATAL_FAILURE(Run(true));
      losses[side] = Product(grads, Pooled(given));
    }
    weights_[i] = before;
    const double numerical = (losses[1] - losses[0]) / (2 * h);
    EXPECT_NEAR(numerical, found[i], 2e-3 * (1 + std::abs(numerical)));
  }
}

TEST_P(GivenRowsTest, RefusesATableThatThePlanLacks) {
  ASSERT_NO_FATAL_FAILURE(Run(false));
  float out = 0.0f;
  EXPECT_EQ(StatusCode::kInvalidArgument,
            PoolGivenRows(*plan_, 1, &out, &out, nullptr).code());
}

// Samples 1, 3, 5, ... have weights whose terms sum to exactly 0.
TEST_P(GivenRowsTest, WeightsThatSumToZero) {
  if (!Divides(GetParam())) return;
  const bool squares = GetParam() == Combiner::kSqrtN;
  for (int64_t s = 1; s < kBatch; s += 2) {
    float total = 0.0f;
    for (int64_t i = splits_[s]; i < splits_[s + 1]; ++i) {
      weights_[i] = squares                  ? 0.0f
                    : i + 1 < splits_[s + 1] ? 0.25f * (i % 3)
                                             : -total;
      total += weights_[i];
    }
  }
  const std::vector<float> grads = Random(kBatch * kDim);
  for (bool no_nan : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(Run(true, no_nan));
    std::vector<float> of_weights(ids_.size(), -77.0f);
    ASSERT_OK(PooledWeightGrad(*plan_, 0, grads.data(), output_.data(),
                               of_weights.data(), &pool_));
    for (int64_t s = 0; s < kBatch; ++s) {
      const bool is_weightless = s % 2 == 1 && splits_[s] != splits_[s + 1];
      for (int64_t c = 0; c < kDim; ++c) {
        const float x = output_[s * kDim + c];
        EXPECT_EQ(no_nan || !is_weightless, std::isfinite(x)) << s;
        if (is_weightless && no_nan) {
          EXPECT_EQ(0.0f, x);
        }
      }
      for (int64_t i = splits_[s]; i < splits_[s + 1]; ++i) {
        EXPECT_EQ(no_nan || !is_weightless, std::isfinite(of_weights[i]));
        if (is_weightless && no_nan) {
          EXPECT_EQ(0.0f, of_weights[i]);
        }
      }
    }
    if (!no_nan) continue;
    // The rows' gradients are those of a batch without these samples.
    const std::vector<float> sums = UniqueGrads(grads);
    std::vector<float> others = grads;
    for (int64_t s = 1; s < kBatch; s += 2) {
      std::fill_n(&others[s * kDim], kDim, 0.0f);
    }
    EXPECT_EQ(UniqueGrads(others), sums);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GivenRowsTest,
                         ::testing::Values(Combiner::kSum, Combiner::kMean,
                                           Combiner::kSqrtN, Combiner::kMax));

}  // namespace
}  // namespace ev
