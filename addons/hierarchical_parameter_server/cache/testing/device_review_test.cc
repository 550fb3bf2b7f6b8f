// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that every cache passes with rows that another process changes in the
// tiers.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/testing/device_cache_fixture.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

class DeviceReviewTest : public DeviceCacheTest {
 protected:
  // Passes the tiers' current rows to Renew.
  static ev::Status RenewFrom(
      CacheReview* review, Below* below, const std::vector<int64_t>& keys,
      const std::function<void()>& late = [] {}) {
    std::vector<float> rows(keys.size() * below->width);
    std::vector<int64_t> gone;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!below->Read(keys[i], rows.data() + i * below->width)) {
        gone.push_back(static_cast<int64_t>(i));
      }
    }
    late();
    return review->Renew(rows.data(), gone);
  }
  // Returns the keys that the walk listed.
  static std::vector<int64_t> Walk(CacheTable* table, Below* below) {
    std::unique_ptr<CacheReview> review;
    Ok(table->Review(&review));
    std::vector<int64_t> all, keys;
    for (;;) {
      Ok(review->Next(&keys));
      if (keys.empty()) return all;
      all.insert(all.end(), keys.begin(), keys.end());
      Ok(RenewFrom(review.get(), below, keys));
    }
  }
  static void TakeAway(Below* below, const std::vector<int64_t>& keys) {
    std::lock_guard<std::mutex> lock(below->mu);
    for (const int64_t key : keys) below->versions.erase(key);
  }
};

TEST_F(DeviceReviewTest, RowsChangedInTheTiersAreRefreshed) {
  for (const int width : {1, 3, 4, 33, 128}) {
    for (const bool evicts : {true, false}) {
      Below below{{}, {}, width};
      auto table = Open(width, 3000, evicts);
      const std::vector<int64_t> keys = Range(-700, 1500);
      Give(&below, keys, 1);
      const std::vector<float> before = LookUp(table.get(), &below, keys);
      Give(&below, keys, 2);
      int64_t misses = -1;
      EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), before);
      EXPECT_EQ(misses, 0);
      EXPECT_EQ(Walk(table.get(), &below).size(), keys.size());
      EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
                Expected(&below, keys));
      EXPECT_EQ(misses, 0) << width << evicts;
      EXPECT_EQ(StatisticsOf(table.get()).refreshed, 1500);
      EXPECT_EQ(StatisticsOf(table.get()).rows, 1500);
    }
  }
}

TEST_F(DeviceReviewTest, AWalkListsEveryKeyOnce) {
  Below below{{}, {}, 16};
  Give(&below, Range(0, 40000), 1);
  for (const CachePolicy policy : {CachePolicy::kLru, CachePolicy::kLfu}) {
    auto table = Open(16, 20000, true, "hps_et.m.t", policy);
    EXPECT_TRUE(Walk(table.get(), &below).empty());
    // Few keys in many slots, then more keys than slots.
    for (const int64_t count : {1, 50, 40000}) {
      LookUp(table.get(), &below, Range(0, count));
      const std::vector<int64_t> listed = Walk(table.get(), &below);
      const std::set<int64_t> distinct(listed.begin(), listed.end());
      EXPECT_EQ(distinct.size(), listed.size());
      EXPECT_EQ(static_cast<int64_t>(listed.size()),
                StatisticsOf(table.get()).rows);
      int64_t misses = -1;
      LookUp(table.get(), &below, listed, &misses);
      EXPECT_EQ(misses, 0);
    }
    table->Drop();
    EXPECT_TRUE(Walk(table.get(), &below).empty());
  }
  auto none = Open(16, 0);
  EXPECT_TRUE(Walk(none.get(), &below).empty());
}

TEST_F(DeviceReviewTest, RowsRemovedFromTheTiersAreErased) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int64_t> keys = Range(0, 300);
  Give(&below, keys, 1);
  LookUp(table.get(), &below, keys);
  TakeAway(&below, Range(0, 300 / 2));
  Walk(table.get(), &below);
  EXPECT_EQ(StatisticsOf(table.get()).rows, 150);
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), Expected(&below, keys));
  EXPECT_EQ(misses, 150);
  TakeAway(&below, keys);
  Walk(table.get(), &below);
  EXPECT_EQ(StatisticsOf(table.get()).rows, 0);
}

// Rows stored or changed after the walk read the tiers may be newer than what
// it read.
TEST_F(DeviceReviewTest, RowsReadBeforeAChangeAreNotStored) {
  Below below{{}, {}, 4};
  const std::vector<int64_t> keys = {1, 2, 3};
  const auto late = [&](const std::function<void(CacheTable*)>& change) {
    auto table = Open(4, 1000);
    Give(&below, keys, 1);
    LookUp(table.get(), &below, keys);
    std::unique_ptr<CacheReview> review;
    Ok(table->Review(&review));
    std::vector<int64_t> listed;
    Ok(review->Next(&listed));
    ASSERT_EQ(listed.size(), 3);
    Give(&below, {1, 3}, 2);
    Ok(RenewFrom(review.get(), &below, listed, [&] { change(table.get()); }));
    // The cache agrees with the tiers for key 1, and for key 2 whatever the
    // change did to it.
    EXPECT_EQ(LookUp(table.get(), &below, {1, 2}), Expected(&below, {1, 2}));
    EXPECT_EQ(LookUp(table.get(), &below, {3}), Expected(&below, {3}));
    review.reset();
    // A second walk finds nothing left to change.
    Walk(table.get(), &below);
    int64_t misses = -1;
    EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
              Expected(&below, keys));
    EXPECT_EQ(misses, 0);
  };
  late([&](CacheTable* table) { Update(table, &below, {2}, 5); });
  // Key 2 is erased, changes in the tiers, and is cached again.
  late([&](CacheTable* table) {
    Ok(table->Erase(std::vector<int64_t>{2}));
    Give(&below, {2}, 6);
    LookUp(table, &below, {2});
  });
  late([&](CacheTable* table) {
    Ok(table->Clear());
    Give(&below, {2}, 7);
    LookUp(table, &below, {2});
  });
  late([&](CacheTable* table) {
    Ok(table->Clear());
    Give(&below, {2}, 8);
    const std::vector<float> row = MadeRow(2, 8, 4);
    Ok(table->Insert(std::vector<int64_t>{2}, row.data(), table->changes()));
  });
}

// A row that no tier had when the walk read them, and that an update then
// added.
TEST_F(DeviceReviewTest, ARowThatComesBackStays) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  Give(&below, {1, 2}, 1);
  LookUp(table.get(), &below, {1, 2});
  std::unique_ptr<CacheReview> review;
  Ok(table->Review(&review));
  std::vector<int64_t> listed;
  Ok(review->Next(&listed));
  TakeAway(&below, {1, 2});
  Ok(RenewFrom(review.get(), &below, listed,
               [&] { Update(table.get(), &below, {2}, 4); }));
  EXPECT_EQ(StatisticsOf(table.get()).rows, 1);
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, {2}, &misses), Expected(&below, {2}));
  EXPECT_EQ(misses, 0);
}

TEST_F(DeviceReviewTest, AWalkIsNoUseOfARow) {
  for (const CachePolicy policy : {CachePolicy::kLru, CachePolicy::kLfu}) {
    Below below{{}, {}, 4};
    Give(&below, Range(0, 4000), 1);
    auto walked = Open(4, 512, true, "hps_et.m.w", policy);
    auto other = Open(4, 512, true, "hps_et.m.o", policy);
    std::mt19937 random(5);
    for (int step = 0; step < 60; ++step) {
      // Distinct keys, so that both caches rank them alike.
      std::vector<int64_t> keys = Range(random() % 3900, 64);
      int64_t misses = -1, other_misses = -1;
      LookUp(walked.get(), &below, keys, &misses);
      LookUp(other.get(), &below, keys, &other_misses);
      EXPECT_EQ(misses, other_misses) << step;
      Walk(walked.get(), &below);
    }
    EXPECT_GT(StatisticsOf(walked.get()).evicted, 500);
  }
}

// Walks, lookups, updates and changes in the tiers run concurrently. Every row
// is whole, never older than its key's last update, and right at the end.
TEST_F(DeviceReviewTest, WalksBesideUpdatesAndLookups) {
  constexpr int kWidth = 32, kKeys = 600;
  Below below{{}, {}, kWidth};
  auto table = Open(kWidth, 300);
  Give(&below, Range(0, kKeys), 0);
  std::vector<std::atomic<int>> done(kKeys);
  for (auto& version : done) version = 0;
  std::atomic<bool> stop{false};
  std::thread walks([&] {
    while (!stop) Walk(table.get(), &below);
  });
  std::thread updates([&] {
    std::mt19937 random(1);
    for (int version = 1; version < 60; ++version) {
      std::vector<int64_t> keys, silent;
      for (int i = 0; i < 100; ++i) {
        keys.push_back(random() % (kKeys / 2));
        silent.push_back(kKeys / 2 + random() % (kKeys / 2));
      }
      Update(table.get(), &below, keys, version);
      for (const int64_t key : keys) done[key] = version;
      Give(&below, silent, version);
    }
    stop = true;
  });
  std::vector<std::thread> threads;
  std::atomic<int64_t> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(10 + t);
      do {
        std::vector<int64_t> keys(200);
        for (int64_t& key : keys) key = random() % kKeys;
        std::vector<int> least;
        for (const int64_t key : keys) least.push_back(done[key]);
        const std::vector<float> rows = LookUp(table.get(), &below, keys);
        for (size_t i = 0; i < keys.size(); ++i) {
          const float* const row = rows.data() + i * kWidth;
          const int version =
              static_cast<int>((row[0] - keys[i] % 4093) * 4 + 0.5f);
          const std::vector<float> whole = MadeRow(keys[i], version, kWidth);
          wrong += !std::equal(whole.begin(), whole.end(), row) ||
                   version < least[i];
        }
      } while (!stop);
    });
  }
  updates.join();
  walks.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  Walk(table.get(), &below);
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, kKeys)),
            Expected(&below, Range(0, kKeys)));
  // Dropping the table during a walk ends the walk.
  std::unique_ptr<CacheReview> review;
  Ok(table->Review(&review));
  std::vector<int64_t> keys;
  Ok(review->Next(&keys));
  EXPECT_FALSE(keys.empty());
  table->Drop();
  Ok(RenewFrom(review.get(), &below, keys));
  Ok(review->Next(&keys));
  EXPECT_TRUE(keys.empty());
}

}  // namespace
}  // namespace hps
