// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/sample_offsets.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Offsets = std::vector<int32_t>;

Status FromSplits(const std::vector<int64_t>& splits, int64_t num_ids,
                  Offsets* offsets) {
  offsets->assign(splits.size(), -1);
  return OffsetsFromSplits(splits.data(), splits.size() - 1, num_ids, "user",
                           offsets->data());
}

Status FromRows(const std::vector<int64_t>& rows, int64_t batch_size,
                Offsets* offsets) {
  std::vector<int64_t> indices;
  for (int64_t row : rows) {
    indices.push_back(row);
    indices.push_back(77);  // columns do not matter
  }
  offsets->assign(batch_size + 1, -1);
  return OffsetsFromIndices(indices.data(), batch_size, rows.size(), "user",
                            offsets->data());
}

void ExpectBad(const Status& status, const std::string& part) {
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_NE(std::string::npos, status.message().find(part)) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"))
      << status.message();
}

TEST(OffsetsFromSplitsTest, CopiesSplits) {
  Offsets offsets;
  EXPECT_TRUE(FromSplits({0, 2, 2, 5}, 5, &offsets).ok());
  EXPECT_EQ((Offsets{0, 2, 2, 5}), offsets);
}

TEST(OffsetsFromSplitsTest, EmptyBatch) {
  Offsets offsets;
  EXPECT_TRUE(FromSplits({0}, 0, &offsets).ok());
  EXPECT_EQ((Offsets{0}), offsets);
}

TEST(OffsetsFromSplitsTest, RejectsBadSplits) {
  Offsets offsets;
  ExpectBad(FromSplits({1, 2}, 2, &offsets), "expected 0 as the first, got 1");
  ExpectBad(FromSplits({0, 2}, 3, &offsets), "3, got 2");
  ExpectBad(FromSplits({0, 3, 1, 4}, 4, &offsets), "3 before 1 at sample 1");
  ExpectBad(FromSplits({0, 9, 4}, 4, &offsets), "9 before 4");
  ExpectBad(FromSplits({0, -1, 4}, 4, &offsets), "0 before -1");
}

TEST(OffsetsFromIndicesTest, CountsIdsOfEachSample) {
  Offsets offsets;
  EXPECT_TRUE(FromRows({0, 0, 2, 2, 2, 5}, 7, &offsets).ok());
  EXPECT_EQ((Offsets{0, 2, 2, 5, 5, 5, 6, 6}), offsets);
}

TEST(OffsetsFromIndicesTest, NoIds) {
  Offsets offsets;
  EXPECT_TRUE(FromRows({}, 3, &offsets).ok());
  EXPECT_EQ((Offsets{0, 0, 0, 0}), offsets);
  EXPECT_TRUE(FromRows({}, 0, &offsets).ok());
  EXPECT_EQ((Offsets{0}), offsets);
}

TEST(OffsetsFromIndicesTest, RejectsBadIndices) {
  Offsets offsets;
  ExpectBad(FromRows({0, 2, 1}, 3, &offsets), "sample 1 after 2 at id 2");
  ExpectBad(FromRows({-1, 0}, 3, &offsets), "samples of at least 0, got -1");
  ExpectBad(FromRows({0, 1, -5}, 3, &offsets), "samples of at least 0, got -5");
  ExpectBad(FromRows({0, 3}, 3, &offsets), "batch size 3, got sample 3");
  ExpectBad(FromRows({0}, 0, &offsets), "batch size 0, got sample 0");
  ExpectBad(FromRows({int64_t{1} << 40}, 3, &offsets), "1099511627776");
}

}  // namespace
}  // namespace ev
