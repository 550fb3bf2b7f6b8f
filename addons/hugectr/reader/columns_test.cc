// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/columns.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "addons/hugectr/reader/made_files.h"
#include "gtest/gtest.h"

namespace hugectr {
namespace {

// Numbers of samples, row-major or column-major, and the start of each column.
struct MadeColumns {
  MadeColumns(const std::vector<std::vector<float>>& rows, int64_t dim,
              bool is_row_major) {
    const int64_t size = rows.size();
    numbers.resize(size * dim);
    for (int64_t r = 0; r < size; ++r) {
      for (int64_t d = 0; d < dim; ++d) {
        numbers[is_row_major ? r * dim + d : d * size + r] = rows[r][d];
      }
    }
    for (int64_t d = 0; d < dim; ++d) {
      places.push_back(numbers.data() + (is_row_major ? d : d * size));
    }
    columns = {places.data(), is_row_major ? dim : 1};
  }

  std::vector<float> numbers;
  std::vector<const float*> places;
  FloatColumns columns;
};

TEST(ColumnsTest, PiecesFollowEachOther) {
  Layout layout;
  layout.label_dim = 2;
  layout.dense_dim = 3;
  layout.slots = 5;
  // Slot 4 belongs to no input.
  layout.inputs = {Input{0, 3, false}, Input{2, 2, true}};
  const auto pool = std::make_shared<BatchPool>(layout);
  for (const auto& counts :
       std::vector<std::vector<int64_t>>{{300, 1, 129}, {7}, {0, 5}, {}, {0}}) {
    const std::vector<int64_t> added = {0, 100, -7, int64_t{1} << 40, 5};
    std::vector<Sample> expected;
    std::vector<ColumnPiece> pieces;
    std::vector<MadeColumns> floats;
    std::vector<std::vector<int64_t>> keys;
    std::vector<std::vector<const int64_t*>> columns;
    floats.reserve(2 * counts.size());
    keys.reserve(5 * counts.size());
    columns.reserve(counts.size());
    for (int64_t count : counts) {
      auto samples = MakeSamples(layout, count, 1, true, false, count);
      ColumnPiece piece;
      piece.count = count;
      std::vector<std::vector<float>> labels, dense;
      for (const Sample& sample : samples) {
        labels.push_back(sample.labels);
        dense.push_back(sample.dense);
      }
      floats.emplace_back(labels, 2, count % 2 == 0);
      piece.labels = floats.back().columns;
      floats.emplace_back(dense, 3, count % 3 == 0);
      piece.dense = floats.back().columns;
      columns.emplace_back();
      for (int s = 0; s < 5; ++s) {
        keys.emplace_back();
        for (const Sample& sample : samples) {
          keys.back().push_back(sample.keys[s][0]);
        }
        columns.back().push_back(keys.back().data());
      }
      piece.keys = columns.back().data();
      piece.added = added.data();
      pieces.push_back(piece);
      for (Sample& sample : samples) {
        for (int s = 0; s < 4; ++s) sample.keys[s][0] += added[s];
        sample.keys[4].clear();
      }
      expected.insert(expected.end(), samples.begin(), samples.end());
    }
    const int64_t size = expected.size();
    BatchPool::Owned batch = pool->Take(size, size);
    FillFromColumns(pieces, batch.get());
    std::vector<Sample> found;
    AppendSamples(layout, *batch, &found);
    EXPECT_TRUE(found == expected);
  }
}

TEST(ColumnsTest, FindsTheFirstKeyOutside) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const int64_t least = std::numeric_limits<int64_t>::min();
  for (int64_t count : {0, 1, 5000, 12289}) {
    for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{77}, most}) {
      std::vector<int64_t> keys(count);
      for (int64_t i = 0; i < count; ++i) keys[i] = size ? i % size : 0;
      if (size == 0) {
        EXPECT_EQ(FirstOutside(keys.data(), count, size), count ? 0 : -1);
        continue;
      }
      EXPECT_EQ(FirstOutside(keys.data(), count, size), -1);
      for (int64_t at : {int64_t{0}, count / 2, count - 1}) {
        for (int64_t wrong : {int64_t{-1}, least, size, most}) {
          if (at >= count || at < 0) continue;
          if (wrong >= 0 && wrong < size) continue;
          std::vector<int64_t> bad = keys;
          bad[at] = bad[count - 1] = wrong;
          EXPECT_EQ(FirstOutside(bad.data(), count, size), at);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hugectr
