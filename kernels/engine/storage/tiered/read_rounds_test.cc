// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/read_rounds.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

using Positions = std::vector<size_t>;

TEST(ReadRoundsTest, WhatIsBeingMovedIsReadARoundLater) {
  const std::vector<RowHandle> handles = {7, kNoRow, 8, 9, 7, 10};
  std::vector<Positions> rounds;
  std::map<size_t, int> busy = {{2, 2}, {4, 1}};  // rounds left to wait
  const Status status =
      ReadInRounds(handles, 3, [&](const Positions& left, Positions* again) {
        rounds.push_back(left);
        EXPECT_TRUE(again->empty());
        for (const size_t i : left) {
          if (busy[i]-- > 0) again->push_back(i);
        }
        return Status::OK();
      });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(rounds, (std::vector<Positions>{{0, 2}, {2}, {2}, {3, 4, 5}, {4}}));
}

TEST(ReadRoundsTest, AnErrorIsTheLastRound) {
  int rounds = 0;
  const std::vector<RowHandle> handles(10, 1);
  const Status status =
      ReadInRounds(handles, 2, [&](const Positions&, Positions*) {
        return ++rounds == 2 ? Internal("gone") : Status::OK();
      });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(rounds, 2);
}

}  // namespace
}  // namespace ev
