// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests combiners that select, and their gradient, against the definition.
// There are only a few distinct values, so that elements often tie.

#include "kernels/engine/combine/selected_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/guarded_array.h"

namespace ev {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Batch {
  int64_t dim = 0;
  std::vector<float> values;
  std::vector<const float*> rows;
  std::vector<int32_t> inverse, offsets = {0}, counts;

  Batch(int64_t dim, std::vector<float> values_in,
        const std::vector<std::vector<int32_t>>& samples)
      : dim(dim), values(std::move(values_in)) {
    counts.resize(values.size() / dim);
    for (size_t r = 0; r < counts.size(); ++r) rows.push_back(&values[r * dim]);
    for (const auto& sample : samples) {
      for (int32_t row : sample) {
        inverse.push_back(row);
        ++counts[row];
      }
      offsets.push_back(static_cast<int32_t>(inverse.size()));
    }
  }

  int64_t batch_size() const { return offsets.size() - 1; }

  PoolingBatch pooling() const {
    PoolingBatch batch;
    batch.rows = rows.data();
    batch.inverse = inverse.data();
    batch.offsets = offsets.data();
    batch.dim = dim;
    batch.combiner = Combiner::kMax;
    return batch;
  }

  std::vector<float> Pool() const {
    std::vector<float> out(batch_size() * dim, -77.0f);
    PoolSamples(pooling(), 0, batch_size(), out.data());
    return out;
  }

  // Works on ranges of 'piece' samples and rows, as tasks do it.
  std::vector<float> RowGradients(const std::vector<float>& grads,
                                  int64_t piece) const {
    SelectedShares selected;
    selected.Reserve(batch_size(), dim);
    for (int64_t s = 0; s < batch_size(); s += piece) {
      ShareGradients(pooling(), grads.data(), s,
                     std::min(batch_size(), s + piece), &selected);
    }
    const int64_t num_rows = rows.size();
    std::vector<int32_t> ends(num_rows), samples(inverse.size());
    GroupOccurrences(inverse.data(), counts.data(), num_rows, offsets.data(),
                     batch_size(), nullptr, nullptr, ends.data(),
                     samples.data(), nullptr);
    Occurrences occurrences;
    occurrences.ends = ends.data();
    occurrences.samples = samples.data();
    std::vector<float> out(num_rows * dim, -77.0f);
    for (int64_t u = 0; u < num_rows; u += piece) {
      SumShares(occurrences, rows.data(), selected, dim, u,
                std::min(num_rows, u + piece), out.data() + u * dim);
    }
    return out;
  }
};

Batch Random(int64_t dim, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(9 * dim);
  // The first columns are all negative: an initial 0 must not win the maximum.
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.5f * static_cast<int>(random() % 4) -
                (static_cast<int64_t>(i) % dim < 3 ? 4.0f : 0.5f);
  }
  std::vector<std::vector<int32_t>> samples(40);
  for (auto& sample : samples) {
    const int n = random() % 7;
    for (int k = 0; k < n; ++k) sample.push_back(random() % 9);
  }
  return Batch(dim, std::move(values), samples);
}

TEST(SelectedGradientTest, FollowsTheDefinition) {
  for (int64_t dim : {1, 5, 8, 12, 16, 32, 64, 100, 131}) {
    const Batch batch = Random(dim, static_cast<unsigned>(dim));
    std::vector<float> grads(batch.batch_size() * dim);
    for (size_t i = 0; i < grads.size(); ++i) grads[i] = std::sin(0.3f * i);
    const std::vector<float> out = batch.Pool();
    const std::vector<float> row_grads = batch.RowGradients(grads, 1000);
    std::vector<float> expected(row_grads.size(), 0.0f);
    for (int64_t s = 0; s < batch.batch_size(); ++s) {
      for (int64_t c = 0; c < dim; ++c) {
        const auto at = [&](int32_t i) {
          return batch.rows[batch.inverse[i]][c];
        };
        const int32_t begin = batch.offsets[s], end = batch.offsets[s + 1];
        float largest = begin == end ? 0.0f : at(begin);
        for (int32_t i = begin; i < end; ++i) {
          largest = std::max(largest, at(i));
        }
        ASSERT_EQ(largest, out[s * dim + c]) << "dim " << dim;
        float ties = 0.0f;
        for (int32_t i = begin; i < end; ++i) ties += at(i) == largest;
        for (int32_t i = begin; i < end; ++i) {
          if (at(i) != largest) continue;
          expected[batch.inverse[i] * dim + c] += grads[s * dim + c] / ties;
        }
      }
    }
    EXPECT_EQ(expected, row_grads) << "dim " << dim;
  }
}

TEST(SelectedGradientTest, AnySplitGivesTheSameBits) {
  const Batch batch = Random(24, 7);
  std::vector<float> grads(batch.batch_size() * 24);
  for (size_t i = 0; i < grads.size(); ++i) grads[i] = std::cos(0.7f * i);
  const std::vector<float> whole = batch.RowGradients(grads, 1000);
  EXPECT_EQ(whole, batch.RowGradients(grads, 1));
  EXPECT_EQ(whole, batch.RowGradients(grads, 4));
}

TEST(SelectedGradientTest, IdsThatTieShareAndAnIdTwiceHasTwoShares) {
  // Row 0, which occurs twice, and row 1 tie; row 2 is smaller.
  const Batch batch(1, {3.0f, 3.0f, 2.0f}, {{0, 1, 0, 2}});
  EXPECT_EQ(std::vector<float>({3.0f}), batch.Pool());
  const std::vector<float> third = {1.0f / 3.0f};
  EXPECT_EQ(std::vector<float>({third[0] + third[0], third[0], 0.0f}),
            batch.RowGradients({1.0f}, 1));
}

TEST(SelectedGradientTest, OneIdGetsTheGradientUnchanged) {
  const Batch batch(2, {-1.0f, 0.1f}, {{0}});
  EXPECT_EQ(std::vector<float>({0.3f, -0.7f}),
            batch.RowGradients({0.3f, -0.7f}, 1));
}

TEST(SelectedGradientTest, WhatIsNotANumberStaysInItsElementAndTrainsNoRow) {
  // NaN in the first and in the second row, in the vector part (8 columns) and
  // in the remainder.
  for (const bool nan_first : {true, false}) {
    std::vector<float> values(18, 1.0f);
    for (int c = 9; c < 18; ++c) values[c] = 2.0f;
    values[nan_first ? 4 : 9 + 4] = kNaN;
    values[nan_first ? 8 : 9 + 8] = kNaN;
    const Batch batch(9, values, {{0, 1}, {nan_first ? 1 : 0}});
    const std::vector<float> out = batch.Pool();
    const std::vector<float> grads =
        batch.RowGradients(std::vector<float>(18, 1.0f), 10);
    for (int c = 0; c < 9; ++c) {
      const float other = nan_first ? 2.0f : 1.0f;
      EXPECT_EQ(other, out[9 + c]);
      if (c == 4 || c == 8) {
        EXPECT_TRUE(std::isnan(out[c])) << c;
        // The second sample has one id, whose row has no NaN in this column.
        EXPECT_EQ(nan_first ? 0.0f : 1.0f, grads[c]);
        EXPECT_EQ(nan_first ? 1.0f : 0.0f, grads[9 + c]);
      } else {
        EXPECT_EQ(2.0f, out[c]);
        EXPECT_EQ(nan_first ? 0.0f : 1.0f, grads[c]);
        EXPECT_EQ(nan_first ? 2.0f : 1.0f, grads[9 + c]);
      }
    }
  }
}

TEST(SelectedGradientTest, NothingBeyondTheBatchIsRead) {
  using testing::GuardedArray;
  const std::vector<float> values = {1, 2};
  const GuardedArray<const float*> rows({&values[0], &values[1]});
  const GuardedArray<int32_t> inverse({0, 1, 1});
  const GuardedArray<int32_t> offsets({0, 2, 3});
  const GuardedArray<float> grads({5, 7});
  PoolingBatch batch;
  batch.rows = rows.data();
  batch.inverse = inverse.data();
  batch.offsets = offsets.data();
  batch.dim = 1;
  batch.combiner = Combiner::kMax;
  SelectedShares selected;
  selected.Reserve(2, 1);
  ShareGradients(batch, grads.data(), 0, 2, &selected);
  const GuardedArray<int32_t> ends({1, 3});
  const GuardedArray<int32_t> samples({0, 0, 1});
  Occurrences occurrences;
  occurrences.ends = ends.data();
  occurrences.samples = samples.data();
  GuardedArray<float> out({-1, -1});
  SumShares(occurrences, rows.data(), selected, 1, 0, 2, out.data());
  EXPECT_EQ(out.ToVector(), (std::vector<float>{0, 12}));
}

}  // namespace
}  // namespace ev
