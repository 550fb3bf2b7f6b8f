// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests pooling and its gradients against loops that follow the definition, and
// against numerical gradients.

#include "kernels/engine/combine/pooling.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/testing/guarded_array.h"

namespace ev {
namespace {

// A random batch: rows of distinct ids, samples of 0 to 12 ids with repeats.
class RandomBatch {
 public:
  RandomBatch(int64_t dim, int64_t num_samples, int64_t num_rows,
              Combiner combiner, bool weighted, unsigned seed)
      : dim_(dim), combiner_(combiner), values_(num_rows * dim) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& v : values_) v = normal(random);
    for (int64_t r = 0; r < num_rows; ++r) rows_.push_back(&values_[r * dim]);
    offsets_.push_back(0);
    for (int64_t s = 0; s < num_samples; ++s) {
      const int n = random() % 3 == 0 ? 1 : random() % 13;
      for (int k = 0; k < n; ++k) {
        inverse_.push_back(random() % num_rows);
        weights_.push_back(0.25f + (random() % 8) * 0.25f);
      }
      offsets_.push_back(static_cast<int32_t>(inverse_.size()));
    }
    counts_.resize(num_rows);
    for (int32_t row : inverse_) ++counts_[row];
    if (!weighted) weights_.clear();
  }

  PoolingBatch batch() const {
    PoolingBatch batch;
    batch.rows = rows_.data();
    batch.inverse = inverse_.data();
    batch.offsets = offsets_.data();
    batch.weights = weights_.empty() ? nullptr : weights_.data();
    batch.dim = dim_;
    batch.combiner = combiner_;
    return batch;
  }
  int64_t num_samples() const { return offsets_.size() - 1; }
  int64_t num_ids() const { return inverse_.size(); }
  int64_t num_rows() const { return rows_.size(); }
  const int32_t* counts() const { return counts_.data(); }
  std::vector<float>* values() { return &values_; }
  std::vector<float>* weights() { return &weights_; }

  std::vector<float> Pool() const {
    std::vector<float> out(num_samples() * dim_, -1.0f);
    PoolSamples(batch(), 0, num_samples(), out.data());
    return out;
  }
  std::vector<uint16_t> PoolNarrow(FloatType type) const {
    std::vector<uint16_t> out(num_samples() * dim_, 0xFFFF);
    PoolSamples(batch(), 0, num_samples(),
                MutableFloats(reinterpret_cast<char*>(out.data()), type));
    return out;
  }

  // The definition, in double.
  std::vector<double> Definition() const {
    std::vector<double> out(num_samples() * dim_, 0.0);
    for (int64_t s = 0; s < num_samples(); ++s) {
      double sum = 0, squares = 0;
      for (int32_t i = offsets_[s]; i < offsets_[s + 1]; ++i) {
        const double w = weights_.empty() ? 1.0 : weights_[i];
        sum += w;
        squares += w * w;
        for (int64_t j = 0; j < dim_; ++j) {
          out[s * dim_ + j] += w * rows_[inverse_[i]][j];
        }
      }
      if (offsets_[s] == offsets_[s + 1]) continue;
      for (int64_t j = 0; j < dim_; ++j) {
        if (combiner_ == Combiner::kMean) out[s * dim_ + j] /= sum;
        if (combiner_ == Combiner::kSqrtN) {
          out[s * dim_ + j] /= std::sqrt(squares);
        }
      }
    }
    return out;
  }

  // d (grad . outputs) / d rows, through the functions under test.
  std::vector<float> RowGradients(const std::vector<float>& grads) const {
    return RowGradients(ConstFloats(grads.data()));
  }
  std::vector<float> RowGradients(ConstFloats grads) const {
    std::vector<float> factors(num_samples());
    const float* weights = weights_.empty() ? nullptr : weights_.data();
    const bool any = SampleFactors(combiner_, offsets_.data(), weights, false,
                                   0, num_samples(), factors.data());
    const float* factors_or_null = any ? factors.data() : nullptr;
    std::vector<int32_t> ends(num_rows()), samples(num_ids());
    std::vector<float> grouped(num_ids());
    GroupOccurrences(inverse_.data(), counts_.data(), num_rows(),
                     offsets_.data(), num_samples(), weights, factors_or_null,
                     ends.data(), samples.data(), grouped.data());
    Occurrences occurrences;
    occurrences.ends = ends.data();
    occurrences.samples = samples.data();
    occurrences.weights = weights == nullptr ? nullptr : grouped.data();
    std::vector<float> out(num_rows() * dim_, -1.0f);
    // Split into ranges, as tasks do it.
    for (int64_t u = 0; u < num_rows(); u += 7) {
      const int64_t end = std::min(num_rows(), u + 7);
      SumOccurrences(occurrences, factors_or_null, grads, dim_, u, end,
                     out.data() + u * dim_);
    }
    return out;
  }

 private:
  const int64_t dim_;
  const Combiner combiner_;
  std::vector<float> values_;
  std::vector<const float*> rows_;
  std::vector<int32_t> inverse_, offsets_, counts_;
  std::vector<float> weights_;
};

struct PoolCase {
  Combiner combiner;
  bool weighted;
};

class PoolingTest : public ::testing::TestWithParam<PoolCase> {
 protected:
  RandomBatch Make(int64_t dim, unsigned seed) const {
    return RandomBatch(dim, 60, 25, GetParam().combiner, GetParam().weighted,
                       seed);
  }
};

constexpr int64_t kDims[] = {1,  3,  4,  7,  8,   15,  16, 17,
                             32, 40, 64, 72, 100, 128, 200};

TEST_P(PoolingTest, FollowsTheDefinition) {
  for (int64_t dim : kDims) {
    const RandomBatch batch = Make(dim, static_cast<unsigned>(dim));
    const std::vector<float> out = batch.Pool();
    const std::vector<double> expected = batch.Definition();
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(expected[i], out[i], 1e-5 * (1 + std::abs(expected[i])))
          << "dim " << dim << ", element " << i;
    }
  }
}

// Calls body(FloatType, round, widen) for each narrow type.
template <typename Body>
void ForNarrowTypes(const Body& body) {
  body(FloatType::kFloat16, ToFloat16, FromFloat16);
  body(FloatType::kBFloat16, ToBFloat16, FromBFloat16);
}

TEST_P(PoolingTest, NarrowOutputsAreTheFloat32OutputsRoundedOnce) {
  for (int64_t dim : kDims) {
    RandomBatch batch = Make(dim, static_cast<unsigned>(dim));
    (*batch.values())[0] = 1e30f;
    (*batch.values())[batch.values()->size() - 1] = 3e-6f;
    const std::vector<float> wide = batch.Pool();
    ForNarrowTypes([&](FloatType type, auto round, auto) {
      const std::vector<uint16_t> out = batch.PoolNarrow(type);
      for (size_t i = 0; i < wide.size(); ++i) {
        ASSERT_EQ(round(wide[i]), out[i]) << "dim " << dim << ", element " << i;
      }
    });
  }
}

TEST_P(PoolingTest, NarrowGradientsAreWidenedAndSummedInFloat32) {
  for (int64_t dim : kDims) {
    const RandomBatch batch = Make(dim, static_cast<unsigned>(dim));
    ForNarrowTypes([&](FloatType type, auto round, auto widen) {
      std::vector<uint16_t> narrow(batch.num_samples() * dim);
      std::vector<float> wide(narrow.size());
      for (size_t i = 0; i < narrow.size(); ++i) {
        narrow[i] = round(static_cast<float>(i % 97) * 0.37f - 11.0f);
        wide[i] = widen(narrow[i]);
      }
      const ConstFloats grads(reinterpret_cast<const char*>(narrow.data()),
                              type);
      EXPECT_EQ(batch.RowGradients(wide), batch.RowGradients(grads)) << dim;
    });
  }
}

TEST_P(PoolingTest, AnySplitOfTheSamplesGivesTheSameBits) {
  const RandomBatch batch = Make(24, 3);
  const std::vector<float> whole = batch.Pool();
  std::vector<float> pieces(whole.size());
  for (int64_t s = 0; s < batch.num_samples(); s += 11) {
    PoolSamples(batch.batch(), s, std::min(batch.num_samples(), s + 11),
                pieces.data());
  }
  EXPECT_EQ(whole, pieces);
}

TEST_P(PoolingTest, RowGradientsAreTheNumericalOnes) {
  for (int64_t dim : kDims) {
    RandomBatch batch = Make(dim, 100 + static_cast<unsigned>(dim));
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> grads(batch.num_samples() * dim);
    for (float& g : grads) g = normal(random);
    const std::vector<float> gradients = batch.RowGradients(grads);
    const auto loss = [&] {
      const std::vector<double> out = batch.Definition();
      double sum = 0;
      for (size_t i = 0; i < out.size(); ++i) sum += out[i] * grads[i];
      return sum;
    };
    for (size_t v = 0; v < batch.values()->size();
         v += 1 + batch.values()->size() / 50) {
      if (batch.counts()[v / dim] == 0) continue;
      float& value = (*batch.values())[v];
      const float before = value;
      value =
          before + 0.5f;  // pooling is linear in the rows: any step is exact
      const double plus = loss();
      value = before - 0.5f;
      const double minus = loss();
      value = before;
      ASSERT_NEAR(plus - minus, gradients[v],
                  1e-4 * (1 + std::abs(gradients[v])))
          << "dim " << dim << ", value " << v;
    }
  }
}

TEST_P(PoolingTest, WeightGradientsAreTheNumericalOnes) {
  if (!GetParam().weighted) return;
  for (int64_t dim : {1, 5, 8, 19, 64}) {
    RandomBatch batch = Make(dim, 200 + static_cast<unsigned>(dim));
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    std::vector<float> grads(batch.num_samples() * dim);
    for (float& g : grads) g = normal(random);
    const std::vector<float> out = batch.Pool();
    std::vector<float> gradients(batch.num_ids(), -99.0f);
    WeightGradients(batch.batch(), grads.data(), out.data(), 0, 20,
                    gradients.data());
    WeightGradients(batch.batch(), grads.data(), out.data(), 20,
                    batch.num_samples(), gradients.data());
    const auto loss = [&] {
      const std::vector<double> pooled = batch.Definition();
      double sum = 0;
      for (size_t i = 0; i < pooled.size(); ++i) sum += pooled[i] * grads[i];
      return sum;
    };
    for (int64_t i = 0; i < batch.num_ids(); ++i) {
      float& weight = (*batch.weights())[i];
      const float before = weight;
      const float h = 1.0f / 512;
      weight = before + h;
      const double plus = loss();
      weight = before - h;
      const double minus = loss();
      weight = before;
      ASSERT_NEAR((plus - minus) / (2 * h), gradients[i],
                  2e-3 * (1 + std::abs(gradients[i])))
          << "dim " << dim << ", id " << i;
    }
  }
}

// If all ids are distinct, SpreadGradients computes the same as grouping and
// summing.
TEST_P(PoolingTest, SpreadGradientsAreTheSumsOfSingleOccurrences) {
  for (int64_t dim : {3, 16, 70}) {
    std::vector<int32_t> offsets = {0, 0, 3, 4, 4, 9};
    const int64_t n = 9, b = 5;
    std::vector<int32_t> inverse(n), counts(n, 1), ends(n), samples(n);
    std::vector<float> weights(n), grouped(n), grads(b * dim), factors(b);
    for (int i = 0; i < n; ++i) {
      inverse[i] = i;
      weights[i] = 0.5f + i;
    }
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = std::sin(1.0f * i);
    const float* w = GetParam().weighted ? weights.data() : nullptr;
    const bool any = SampleFactors(GetParam().combiner, offsets.data(), w,
                                   false, 0, b, factors.data());
    const float* f = any ? factors.data() : nullptr;
    GroupOccurrences(inverse.data(), counts.data(), n, offsets.data(), b, w, f,
                     ends.data(), samples.data(), grouped.data());
    Occurrences occurrences;
    occurrences.ends = ends.data();
    occurrences.samples = samples.data();
    occurrences.weights = w == nullptr ? nullptr : grouped.data();
    std::vector<float> summed(n * dim), spread(n * dim, -1.0f);
    SumOccurrences(occurrences, f, grads.data(), dim, 0, n, summed.data());
    SpreadGradients(offsets.data(), w, f, grads.data(), dim, 0, 2,
                    spread.data());
    SpreadGradients(offsets.data(), w, f, grads.data(), dim, 2, b,
                    spread.data());
    EXPECT_EQ(summed, spread);
  }
}

std::string CaseName(const ::testing::TestParamInfo<PoolCase>& info) {
  const char* const names[] = {"Sum", "Mean", "SqrtN"};
  return std::string(names[static_cast<int>(info.param.combiner)]) +
         (info.param.weighted ? "Weighted" : "");
}

INSTANTIATE_TEST_SUITE_P(All, PoolingTest,
                         ::testing::Values(PoolCase{Combiner::kSum, false},
                                           PoolCase{Combiner::kSum, true},
                                           PoolCase{Combiner::kMean, false},
                                           PoolCase{Combiner::kMean, true},
                                           PoolCase{Combiner::kSqrtN, false},
                                           PoolCase{Combiner::kSqrtN, true}),
                         CaseName);

TEST(PoolingEdgeTest, SumsInTheOrderOfTheIds) {
  // 1e8 + 1 - 1e8 is 0 in float, 1e8 - 1e8 + 1 is 1.
  const float big = 1e8f, one = 1.0f, minus = -1e8f;
  const float* rows[] = {&big, &one, &minus};
  const int32_t inverse[] = {0, 1, 2, 0, 2, 1};
  const int32_t offsets[] = {0, 3, 6};
  PoolingBatch batch;
  batch.rows = rows;
  batch.inverse = inverse;
  batch.offsets = offsets;
  batch.dim = 1;
  float out[2];
  PoolSamples(batch, 0, 2, out);
  EXPECT_EQ(0.0f, out[0]);
  EXPECT_EQ(1.0f, out[1]);
}

TEST(PoolingEdgeTest, MeanOfWeightsThatCancelIsNotANumberInThatSampleOnly) {
  const std::vector<float> row(8, 1.0f);
  const float* rows[] = {row.data()};
  const int32_t inverse[] = {0, 0, 0};
  const int32_t offsets[] = {0, 2, 3};
  const float weights[] = {1.0f, -1.0f, 1.0f};
  PoolingBatch batch;
  batch.rows = rows;
  batch.inverse = inverse;
  batch.offsets = offsets;
  batch.weights = weights;
  batch.dim = 8;
  batch.combiner = Combiner::kMean;
  std::vector<float> out(16);
  PoolSamples(batch, 0, 2, out.data());
  EXPECT_TRUE(std::isnan(out[0]));  // 0 / 0, as TensorFlow's division
  EXPECT_EQ(1.0f, out[8]);
}

TEST(PoolingEdgeTest, InfinityStaysInItsElement) {
  std::vector<float> first(16, 1.0f), second(16, 2.0f);
  first[3] = std::numeric_limits<float>::infinity();
  const float* rows[] = {first.data(), second.data()};
  const int32_t inverse[] = {0, 1, 1};
  const int32_t offsets[] = {0, 2, 3};
  PoolingBatch batch;
  batch.rows = rows;
  batch.inverse = inverse;
  batch.offsets = offsets;
  batch.dim = 16;
  std::vector<float> out(32);
  PoolSamples(batch, 0, 2, out.data());
  for (int j = 0; j < 32; ++j) {
    if (j == 3) {
      EXPECT_TRUE(std::isinf(out[j]));
    } else {
      EXPECT_EQ(j < 16 ? 3.0f : 2.0f, out[j]);
    }
  }
}

TEST(PoolingEdgeTest, EmptyBatchWritesNothing) {
  const int32_t offsets[] = {0};
  PoolingBatch batch;
  batch.offsets = offsets;
  batch.dim = 4;
  float out = 7.0f;
  PoolSamples(batch, 0, 0, &out);
  EXPECT_EQ(7.0f, out);
}

// Rows are prefetched ahead of their use, but never beyond the last one.
TEST(PoolingEdgeTest, NothingBeyondTheBatchIsRead) {
  using testing::GuardedArray;
  for (const int64_t dim : {5, 8, 16, 32, 64, 100}) {
    // Samples of 1, 0, 3 and 2 ids; the keys occur 2, 1 and 3 times.
    const std::vector<float> ones(dim, 1.0f);
    const GuardedArray<const float*> rows(
        {ones.data(), ones.data(), ones.data()});
    const GuardedArray<int32_t> inverse({0, 2, 1, 2, 0, 2});
    const GuardedArray<int32_t> offsets({0, 1, 1, 4, 6});
    const GuardedArray<float> weights(std::vector<float>(6, 1.0f));
    const GuardedArray<int32_t> ends({2, 3, 6});
    const GuardedArray<int32_t> samples({0, 3, 2, 2, 2, 3});
    const GuardedArray<float> grads(std::vector<float>(4 * dim, 1.0f));
    const GuardedArray<float> factors(std::vector<float>(4, 1.0f));
    for (const bool weighted : {false, true}) {
      PoolingBatch batch;
      batch.rows = rows.data();
      batch.inverse = inverse.data();
      batch.offsets = offsets.data();
      batch.weights = weighted ? weights.data() : nullptr;
      batch.dim = dim;
      batch.combiner = Combiner::kSum;
      GuardedArray<float> out(std::vector<float>(4 * dim, -1.0f));
      PoolSamples(batch, 0, 4, out.data());
      EXPECT_EQ(out.data()[0], 1.0f);
      EXPECT_EQ(out.data()[dim], 0.0f);
      EXPECT_EQ(out.data()[4 * dim - 1], 2.0f);
      Occurrences occurrences;
      occurrences.ends = ends.data();
      occurrences.samples = samples.data();
      occurrences.weights = batch.weights;
      GuardedArray<float> sums(std::vector<float>(3 * dim, -1.0f));
      SumOccurrences(occurrences, weighted ? nullptr : factors.data(),
                     grads.data(), dim, 0, 3, sums.data());
      EXPECT_EQ(sums.data()[0], 2.0f);
      EXPECT_EQ(sums.data()[3 * dim - 1], 3.0f);
    }
    GuardedArray<float> copies(std::vector<float>(3 * dim));
    CopyRows(rows.data(), 0, 3, dim, copies.data());
    EXPECT_EQ(copies.ToVector(), std::vector<float>(3 * dim, 1.0f));
  }
}

TEST(CopyRowsTest, CopiesARange) {
  for (int64_t dim : {1, 7, 8, 16, 33}) {
    std::vector<float> values(5 * dim);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f * i;
    std::vector<const float*> rows;
    for (int r = 4; r >= 0; --r) rows.push_back(values.data() + r * dim);
    std::vector<float> out(5 * dim, -1.0f);
    CopyRows(rows.data(), 1, 4, dim, out.data());
    for (int64_t j = 0; j < dim; ++j) {
      EXPECT_EQ(-1.0f, out[j]);
      EXPECT_EQ(values[3 * dim + j], out[1 * dim + j]);
      EXPECT_EQ(values[1 * dim + j], out[3 * dim + j]);
      EXPECT_EQ(-1.0f, out[4 * dim + j]);
    }
  }
}

}  // namespace
}  // namespace ev
