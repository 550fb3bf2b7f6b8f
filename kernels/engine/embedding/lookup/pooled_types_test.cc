// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests narrow outputs and gradients. Narrow outputs have the bits of rounded
// float32 outputs, and narrow gradients have the sums of widened ones.

#include <cstdint>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

constexpr int64_t kBatch = 300;

uint16_t Rounded(FloatType type, float x) {
  return type == FloatType::kFloat16 ? ToFloat16(x) : ToBFloat16(x);
}

// The type, the combiner, and whether every id occurs once.
using Case = std::tuple<FloatType, Combiner, bool>;

class PooledTypesTest : public ::testing::TestWithParam<Case> {
 protected:
  FloatType type() const { return std::get<0>(GetParam()); }

  void Make(int64_t dim) {
    TableOptions options;
    options.name = "user";
    options.dim = dim;
    testing::PutUnderTest(&options);
    table_ = std::make_shared<EmbeddingTable>(options);
    std::vector<float> rows(37 * dim);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = 0.37f * static_cast<float>(i % 101) - 17.0f;
    }
    rows[0] = 1e6f;  // infinite as float16
    rows[1] = 1e-7f;
    ASSERT_OK(table_->Initialize(rows, 37));
    std::mt19937 random(static_cast<unsigned>(dim));
    ids_.clear();
    splits_ = {0};
    for (int64_t s = 0; s < kBatch; ++s) {
      const int n = static_cast<int>(random() % 5);
      for (int i = 0; i < n; ++i) {
        ids_.push_back(std::get<2>(GetParam())
                           ? static_cast<int64_t>(ids_.size())
                           : static_cast<int64_t>(random() % 60));
      }
      splits_.push_back(static_cast<int64_t>(ids_.size()));
    }
  }

  void LookUp(MutableFloats output) {
    PooledInput in;
    in.table = table_.get();
    in.combiner = std::get<1>(GetParam());
    in.batch_size = kBatch;
    in.num_ids = static_cast<int64_t>(ids_.size());
    in.ids64 = ids_.data();
    in.row_splits = splits_.data();
    ASSERT_OK(PooledForward(Span<const PooledInput>(&in, 1), {table_},
                            Span<const MutableFloats>(&output, 1), &pool_,
                            &plan_));
  }

  std::vector<float> Sums(int64_t dim, ConstFloats grads) {
    std::vector<float> sums(testing::UniqueKeys(*plan_, 0).size() * dim, -77.f);
    float* out[] = {sums.data()};
    EXPECT_TRUE(PooledBackward(*plan_, Span<const ConstFloats>(&grads, 1),
                               Span<float* const>(out, 1), &pool_)
                    .ok());
    return sums;
  }

  testing::ThreadPool pool_{3};
  std::shared_ptr<EmbeddingTable> table_;
  std::vector<int64_t> ids_, splits_;
  std::shared_ptr<const LookupPlan> plan_;
};

TEST_P(PooledTypesTest, OutputsAndGradientsHaveTheBitsOfCasts) {
  for (int64_t dim : {5, 16, 72}) {
    Make(dim);
    std::vector<float> wide(kBatch * dim), grads(kBatch * dim);
    std::vector<uint16_t> out(kBatch * dim, 0xFFFF), narrow(kBatch * dim);
    LookUp(wide.data());
    LookUp(MutableFloats(reinterpret_cast<char*>(out.data()), type()));
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(Rounded(type(), wide[i]), out[i]) << dim << " " << i;
      narrow[i] = Rounded(type(), 0.01f * static_cast<float>(i % 777) - 3.0f);
      grads[i] = type() == FloatType::kFloat16 ? FromFloat16(narrow[i])
                                               : FromBFloat16(narrow[i]);
    }
    EXPECT_EQ(
        Sums(dim, grads.data()),
        Sums(dim, ConstFloats(reinterpret_cast<char*>(narrow.data()), type())))
        << dim;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PooledTypesTest,
    ::testing::Combine(::testing::Values(FloatType::kFloat16,
                                         FloatType::kBFloat16),
                       ::testing::ValuesIn(kCombiners), ::testing::Bool()));

}  // namespace
}  // namespace ev
