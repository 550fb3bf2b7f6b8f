// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/sharded_ids.h"

#include <random>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/ids/unique.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

struct Result {
  explicit Result(int64_t n) : unique(n), inverse(n), counts(n) {}
  ShardedIds::Output output() {
    return {unique.data(), inverse.data(), counts.data()};
  }
  std::vector<int64_t> unique;
  std::vector<int32_t> inverse, counts;
};

// Samples of 0, 1, 2, 3, 0, 1, ... ids.
std::vector<int32_t> Offsets(int64_t n) {
  std::vector<int32_t> offsets = {0};
  for (int s = 0; offsets.back() < n; ++s) {
    offsets.push_back(
        static_cast<int32_t>(std::min<int64_t>(n, offsets.back() + s % 4)));
  }
  offsets.push_back(static_cast<int32_t>(n));  // and an empty one at the end
  return offsets;
}

void Check(const std::vector<int64_t>& ids, Parallel* parallel,
           Result* result) {
  const int64_t n = ids.size();
  const std::vector<int32_t> offsets = Offsets(n);
  ShardedIds sharded;
  int64_t u = 0;
  ASSERT_TRUE(sharded
                  .Run(ids.data(), nullptr, n, offsets.data(),
                       offsets.size() - 1, DistinctOrder::kShardByShard,
                       result->output(), parallel, &u)
                  .ok());
  std::unordered_map<int64_t, int32_t> counts;
  for (int64_t id : ids) ++counts[id];
  ASSERT_EQ(static_cast<int64_t>(counts.size()), u);
  for (int64_t r = 0; r < u; ++r) {
    ASSERT_EQ(counts.at(result->unique[r]), result->counts[r]);
  }
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(ids[i], result->unique[result->inverse[i]]);
  }
  if (u == n) return;
  // The shards hold all occurrences, in order, each within its shard's rows.
  ASSERT_EQ(n, sharded.begin(sharded.num_shards()));
  ASSERT_EQ(u, sharded.row_begin(sharded.num_shards()));
  std::vector<bool> seen(n);
  for (int s = 0; s < sharded.num_shards(); ++s) {
    for (int64_t k = sharded.begin(s); k < sharded.begin(s + 1); ++k) {
      const int32_t i = sharded.positions()[k];
      ASSERT_FALSE(seen[i]);
      seen[i] = true;
      if (k > sharded.begin(s)) {
        ASSERT_LT(sharded.positions()[k - 1], i);
      }
      ASSERT_EQ(result->inverse[i], sharded.rows()[k]);
      ASSERT_GE(sharded.rows()[k], sharded.row_begin(s));
      ASSERT_LT(sharded.rows()[k], sharded.row_begin(s + 1));
      ASSERT_LE(offsets[sharded.samples()[k]], i);
      ASSERT_GT(offsets[sharded.samples()[k] + 1], i);
    }
  }
}

class ShardedIdsTest : public ::testing::Test {
 protected:
  testing::ThreadPool pool_{2};
};

TEST_F(ShardedIdsTest, FindsDistinctIdsAndTheirOccurrences) {
  std::mt19937_64 random(1);
  for (int64_t n : {1, 2, 100, 70000, 300000}) {
    for (int64_t range : {int64_t{1}, n / 3 + 1, int64_t{1} << 62}) {
      std::vector<int64_t> ids(n);
      for (int64_t& id : ids) id = static_cast<int64_t>(random()) % range;
      Result result(n);
      Check(ids, &pool_, &result);
    }
  }
}

TEST_F(ShardedIdsTest, DistinctIdsStayInPlace) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 100000; ++i) ids.push_back(i * i - 5);
  Result result(ids.size());
  Check(ids, &pool_, &result);
  EXPECT_EQ(ids, result.unique);
}

TEST_F(ShardedIdsTest, SameResultWhateverTheThreads) {
  std::mt19937_64 random(2);
  std::vector<int64_t> ids(200000);
  for (int64_t& id : ids) id = random() % 60000;
  Result first(ids.size());
  Check(ids, nullptr, &first);
  for (int threads : {2, 8}) {
    testing::ThreadPool pool(threads);
    Result result(ids.size());
    Check(ids, &pool, &result);
    EXPECT_EQ(first.unique, result.unique);
    EXPECT_EQ(first.inverse, result.inverse);
    EXPECT_EQ(first.counts, result.counts);
  }
}

TEST_F(ShardedIdsTest, NarrowIds) {
  std::vector<int32_t> narrow;
  for (int32_t i = 0; i < 150000; ++i) narrow.push_back(i % 777 - 300);
  const std::vector<int32_t> offsets = Offsets(narrow.size());
  Result result(narrow.size());
  ShardedIds sharded;
  int64_t u = 0;
  ASSERT_TRUE(sharded
                  .Run(nullptr, narrow.data(), narrow.size(), offsets.data(),
                       offsets.size() - 1, DistinctOrder::kShardByShard,
                       result.output(), &pool_, &u)
                  .ok());
  ASSERT_EQ(777, u);
  for (size_t i = 0; i < narrow.size(); ++i) {
    ASSERT_EQ(narrow[i], result.unique[result.inverse[i]]);
  }
}

// The result must be that of one pass over the batch.
TEST_F(ShardedIdsTest, OrderOfFirstOccurrence) {
  std::mt19937_64 random(3);
  for (int64_t n : {1, 2, 100, 70000, 300000}) {
    for (int64_t range : {int64_t{1}, n / 3 + 1, int64_t{1} << 62}) {
      std::vector<int64_t> ids(n);
      for (int64_t& id : ids) id = static_cast<int64_t>(random()) % range;
      Result whole(n);
      int64_t expected = 0;
      ASSERT_TRUE(Unique()
                      .Run(Span<const int64_t>(ids.data(), n),
                           whole.unique.data(), whole.inverse.data(),
                           whole.counts.data(), &expected)
                      .ok());
      for (Parallel* parallel :
           {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&pool_)}) {
        Result result(n);
        int64_t u = 0;
        ASSERT_TRUE(ShardedIds()
                        .Run(ids.data(), nullptr, n, nullptr, 0,
                             DistinctOrder::kFirstOccurrence, result.output(),
                             parallel, &u)
                        .ok());
        ASSERT_EQ(expected, u);
        ASSERT_EQ(whole.inverse, result.inverse);
        for (int64_t k = 0; k < u; ++k) {
          ASSERT_EQ(whole.unique[k], result.unique[k]);
          ASSERT_EQ(whole.counts[k], result.counts[k]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ev
