// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/key_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/counting_row_source.h"

namespace ev {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t Remainder(int64_t key) { return (key % 1000 + 1000) % 1000; }

struct Listed {
  std::vector<int64_t> keys;
  std::vector<RowHandle> handles;
  size_t longest_piece = 0;
};

class KeyOrderTest : public ::testing::Test {
 protected:
  void Insert(std::vector<int64_t> keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::shuffle(keys.begin(), keys.end(), std::mt19937_64(3));
    std::vector<RowHandle> handles(keys.size());
    ASSERT_TRUE(
        index_.FindOrInsert(keys, &source_, handles.data(), nullptr).ok());
    for (size_t i = 0; i < keys.size(); ++i) model_[keys[i]] = handles[i];
  }

  void InsertRandom(int64_t n, int64_t stride = 1) {
    std::mt19937_64 random(5);
    std::vector<int64_t> keys = {0, -1, -1000, 1000, kMin, kMin + 1, kMax};
    while (static_cast<int64_t>(keys.size()) < n) {
      keys.push_back(static_cast<int64_t>(random()) / stride * stride);
    }
    Insert(keys);
  }

  std::vector<std::pair<int64_t, RowHandle>> Expected() const {
    std::vector<std::pair<int64_t, RowHandle>> all(model_.begin(),
                                                   model_.end());
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return Remainder(a.first) < Remainder(b.first);
    });
    return all;
  }

  static Listed List(KeyOrder* order, int64_t piece) {
    Listed listed;
    EXPECT_TRUE(order
                    ->ForEachKey(piece,
                                 [&](Span<const int64_t> keys) {
                                   listed.keys.insert(listed.keys.end(),
                                                      keys.begin(), keys.end());
                                   listed.longest_piece = std::max(
                                       listed.longest_piece, keys.size());
                                   return Status::OK();
                                 })
                    .ok());
    EXPECT_TRUE(order
                    ->ForEachHandle(piece,
                                    [&](Span<const RowHandle> handles) {
                                      listed.handles.insert(
                                          listed.handles.end(), handles.begin(),
                                          handles.end());
                                      listed.longest_piece = std::max(
                                          listed.longest_piece, handles.size());
                                      return Status::OK();
                                    })
                    .ok());
    return listed;
  }

  void Check(const KeyOrder::Limits& limits, int64_t piece) {
    KeyOrder order(index_, nullptr, limits);
    ASSERT_EQ(order.size(), static_cast<int64_t>(model_.size()));
    const auto expected = Expected();
    // Again, since the second time uses what the first has kept.
    for (int time = 0; time < 2; ++time) {
      const Listed listed = List(&order, piece);
      EXPECT_LE(listed.longest_piece, static_cast<size_t>(piece));
      ASSERT_EQ(listed.keys.size(), expected.size());
      ASSERT_EQ(listed.handles.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(listed.keys[i], expected[i].first) << i;
        ASSERT_EQ(listed.handles[i], expected[i].second) << i;
      }
    }
    ASSERT_EQ(order.begins().size(), 1001u);
    for (int64_t r = 0; r < 1000; ++r) {
      for (int64_t i = order.begins()[r]; i < order.begins()[r + 1]; ++i) {
        ASSERT_EQ(Remainder(expected[i].first), r);
      }
    }
  }

  HashIndex index_;
  testing::CountingRowSource source_;
  std::map<int64_t, RowHandle> model_;
};

TEST_F(KeyOrderTest, OfNoKeys) { Check(KeyOrder::Limits(), 10); }

TEST_F(KeyOrderTest, OneSegment) {
  InsertRandom(20000);
  Check(KeyOrder::Limits(), 777);
}

TEST_F(KeyOrderTest, ManySegments) {
  InsertRandom(20000);
  KeyOrder::Limits limits;
  limits.segment_keys = 1500;
  Check(limits, 64);
}

TEST_F(KeyOrderTest, HandlesThatAreNotKept) {
  InsertRandom(20000);
  KeyOrder::Limits limits;
  limits.segment_keys = 3000;
  limits.kept_handles = 19999;
  Check(limits, 1 << 20);
}

TEST_F(KeyOrderTest, ARemainderLongerThanASegment) {
  InsertRandom(3000, 1000);
  KeyOrder::Limits limits;
  limits.segment_keys = 10;
  Check(limits, 100);
}

TEST_F(KeyOrderTest, AnErrorEndsItAndItCanBeDoneAgain) {
  InsertRandom(5000);
  KeyOrder::Limits limits;
  limits.segment_keys = 1500;
  KeyOrder order(index_, nullptr, limits);
  int calls = 0;
  const Status status = order.ForEachKey(100, [&](Span<const int64_t>) {
    return ++calls == 20 ? InvalidArgument("enough") : Status::OK();
  });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(List(&order, 100).keys.size(), model_.size());
}

TEST_F(KeyOrderTest, WhatIsMarkedIsPassedOver) {
  Insert({3, 1003, -5});
  HandleMarks marks;
  for (const int64_t key : {int64_t{2003}, int64_t{7}}) {
    const std::map<int64_t, RowHandle> before = model_;
    Insert({key});
    EXPECT_TRUE(marks.Set(model_[key], HandleMarks::kFirst));
    model_ = before;
  }
  KeyOrder order(index_, &marks);
  EXPECT_EQ(order.size(), 3);
  std::vector<std::pair<int64_t, RowHandle>> found;
  const auto list = [&](Span<const int64_t> keys,
                        Span<const RowHandle> handles) {
    EXPECT_EQ(keys.size(), handles.size());
    EXPECT_LE(keys.size(), 2u);
    for (size_t i = 0; i < keys.size(); ++i) {
      found.emplace_back(keys[i], handles[i]);
    }
    return Status::OK();
  };
  ASSERT_TRUE(order.ForEach(2, list).ok());
  EXPECT_EQ(found, Expected());
}

TEST_F(KeyOrderTest, SaysThatKeysCame) {
  Insert({3, 1003});
  KeyOrder order(index_);
  Insert({2003});
  const auto none = [](Span<const int64_t>, Span<const RowHandle>) {
    return Status::OK();
  };
  EXPECT_EQ(order.ForEach(2, none).code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace ev
