// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests of the eviction policies, least recently and least frequently used,
// that every cache passes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/cache/testing/device_cache_fixture.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

// Oracle for a cache with a single bucket. Each new key of a batch evicts the
// old key with the fewest uses; ties evict the least recently used.
class FewestUsesGo {
 public:
  explicit FewestUsesGo(int64_t slots) : slots_(slots) {}

  // Returns how many of the keys were cached.
  int64_t Look(const std::vector<int64_t>& keys) {
    ++batch_;
    int64_t hits = 0;
    std::map<int64_t, int64_t> absent;  // key -> occurrences
    for (const int64_t key : keys) {
      const auto found = uses_.find(key);
      if (found == uses_.end()) {
        ++absent[key];
        continue;
      }
      ++hits;
      order_.erase(Entry(found->second.first, found->second.second, key));
      ++found->second.first;
      found->second.second = batch_;
      order_.insert(Entry(found->second.first, batch_, key));
    }
    std::vector<Entry> come;
    for (const auto& one : absent) {
      if (static_cast<int64_t>(uses_.size()) == slots_) {
        if (order_.empty()) break;
        uses_.erase(std::get<2>(*order_.begin()));
        order_.erase(order_.begin());
      }
      uses_[one.first] = {one.second, batch_};
      come.emplace_back(one.second, batch_, one.first);
    }
    order_.insert(come.begin(), come.end());
    return hits;
  }

 private:
  using Entry = std::tuple<int64_t, int64_t, int64_t>;  // uses, last, key
  const int64_t slots_;
  int64_t batch_ = 0;
  std::unordered_map<int64_t, std::pair<int64_t, int64_t>> uses_;
  std::set<Entry> order_;
};

// Draws ranks from a Zipf distribution; the first is the most frequent.
class Zipf {
 public:
  Zipf(int64_t ranks, double exponent) : sums_(ranks) {
    double sum = 0;
    for (int64_t r = 0; r < ranks; ++r) {
      sums_[r] = sum += std::pow(r + 1.0, -exponent);
    }
  }
  std::vector<int64_t> Draw(int count) {
    std::uniform_real_distribution<double> uniform(0, sums_.back());
    std::vector<int64_t> keys(count);
    for (int64_t& key : keys) {
      key = std::lower_bound(sums_.begin(), sums_.end(), uniform(random_)) -
            sums_.begin();
    }
    return keys;
  }

 private:
  std::vector<double> sums_;
  std::mt19937_64 random_{7};
};

// The cache's buckets of 16 keep a little less than one bucket of all slots. By
// the model of the engine's table 35.2 % of this stream hit, against the
// oracle's 36.3 %; with LRU 25.5 %.
TEST_F(DeviceCacheTest, LfuHitsOfAZipfStreamMatchTheOracle) {
  constexpr int64_t kRows = 20000, kCapacity = 500;
  constexpr int kBatches = 600, kBegin = 100, kBatch = 100;
  Below below{{}, {}, 4};
  Give(&below, Range(0, kRows), 1);
  auto by_use = Open(4, kCapacity, true, "hps_et.m.u", CachePolicy::kLfu);
  auto by_time = Open(4, kCapacity, true, "hps_et.m.t", CachePolicy::kLru);
  EXPECT_EQ(by_use->options().policy, CachePolicy::kLfu);
  FewestUsesGo oracle(CacheSlots(kCapacity, true));
  Zipf zipf(kRows, 0.8);
  int64_t use_hits = 0, time_hits = 0, oracle_hits = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    // Small enough that a lookup's misses are stored in one part.
    const std::vector<int64_t> keys = zipf.Draw(kBatch);
    const std::vector<float> want = Expected(&below, keys);
    int64_t misses = 0;
    ASSERT_EQ(LookUp(by_use.get(), &below, keys, &misses), want);
    const int64_t hits = kBatch - misses;
    ASSERT_EQ(LookUp(by_time.get(), &below, keys, &misses), want);
    const int64_t would_hit = oracle.Look(keys);
    if (batch < kBegin) continue;
    use_hits += hits;
    time_hits += kBatch - misses;
    oracle_hits += would_hit;
  }
  const double all = (kBatches - kBegin) * kBatch;
  EXPECT_NEAR(use_hits / all, oracle_hits / all, 0.03);
  EXPECT_GT(use_hits / all, time_hits / all + 0.05);
  const CacheStatistics statistics = StatisticsOf(by_use.get());
  EXPECT_EQ(statistics.rows, statistics.inserted - statistics.evicted);
  EXPECT_LE(statistics.rows, CacheSlots(kCapacity, true));
  EXPECT_GT(statistics.evicted, 1000);
}

// With LFU, keys used often survive a stream of keys that are used once, even
// if their last use is the oldest. With LRU they are evicted.
TEST_F(DeviceCacheTest, TheLeastFrequentlyUsedIsEvicted) {
  for (const CachePolicy policy : {CachePolicy::kLfu, CachePolicy::kLru}) {
    Below below{{}, {}, 4};
    auto table = Open(4, 512, true, "hps_et.m.t", policy);
    Give(&below, Range(0, 100000), 1);
    const std::vector<int64_t> often = Range(0, 128);
    for (int use = 0; use < 5; ++use) LookUp(table.get(), &below, often);
    for (int step = 0; step < 100; ++step) {
      const std::vector<int64_t> once = Range(1000 + step * 64, 64);
      EXPECT_EQ(LookUp(table.get(), &below, once), Expected(&below, once));
    }
    int64_t misses = 0;
    EXPECT_EQ(LookUp(table.get(), &below, often, &misses),
              Expected(&below, often));
    if (policy == CachePolicy::kLfu) {
      // Except keys whose two buckets are crowded.
      EXPECT_LT(misses, 13);
    } else {
      EXPECT_GT(misses, 115);
    }
  }
}

// An erased key that is stored again starts with a new use count.
TEST_F(DeviceCacheTest, UsesAreForgottenWithTheRow) {
  Below below{{}, {}, 4};
  auto table = Open(4, 512, true, "hps_et.m.t", CachePolicy::kLfu);
  Give(&below, Range(0, 100000), 1);
  const std::vector<int64_t> often = Range(0, 128);
  for (int use = 0; use < 5; ++use) LookUp(table.get(), &below, often);
  Ok(table->Erase(often));
  int64_t misses = 0;
  LookUp(table.get(), &below, often, &misses);
  EXPECT_EQ(misses, 128);
  // Keys used twice outlast them.
  const std::vector<int64_t> twice = Range(1000, 384);
  for (int use = 0; use < 2; ++use) LookUp(table.get(), &below, twice);
  for (int step = 0; step < 4; ++step) {
    LookUp(table.get(), &below, Range(2000 + step * 64, 64));
  }
  LookUp(table.get(), &below, twice, &misses);
  const int64_t lost = misses;
  LookUp(table.get(), &below, often, &misses);
  EXPECT_LT(lost, 100);
  EXPECT_GT(misses, 64);
}

}  // namespace
}  // namespace hps
