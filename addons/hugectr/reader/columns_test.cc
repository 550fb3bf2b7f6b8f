// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/columns.h"

#include <memory>
#include <vector>

#include "addons/hugectr/reader/made_files.h"
#include "gtest/gtest.h"

namespace hugectr {
namespace {

TEST(ColumnsTest, PiecesFollowEachOther) {
  Layout layout;
  layout.label_dim = 2;
  layout.dense_dim = 3;
  layout.slots = 5;
  // Slot 4 is no input's.
  layout.inputs = {Input{0, 3, false}, Input{2, 2, true}};
  const auto pool = std::make_shared<BatchPool>(layout);
  for (const auto& counts :
       std::vector<std::vector<int64_t>>{{300, 1, 129}, {7}, {0, 5}, {}, {0}}) {
    const std::vector<int64_t> added = {0, 100, -7, int64_t{1} << 40, 5};
    std::vector<Sample> expected;
    std::vector<ColumnPiece> pieces;
    std::vector<std::vector<float>> floats;
    std::vector<std::vector<int64_t>> keys;
    std::vector<std::vector<const int64_t*>> columns;
    floats.reserve(2 * counts.size());
    keys.reserve(5 * counts.size());
    columns.reserve(counts.size());
    for (int64_t count : counts) {
      auto samples = MakeSamples(layout, count, 1, true, false, count);
      ColumnPiece piece;
      piece.count = count;
      floats.emplace_back();
      for (const Sample& sample : samples) {
        floats.back().insert(floats.back().end(), sample.labels.begin(),
                             sample.labels.end());
      }
      piece.labels = floats.back().data();
      floats.emplace_back();
      for (const Sample& sample : samples) {
        floats.back().insert(floats.back().end(), sample.dense.begin(),
                             sample.dense.end());
      }
      piece.dense = floats.back().data();
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

}  // namespace
}  // namespace hugectr
