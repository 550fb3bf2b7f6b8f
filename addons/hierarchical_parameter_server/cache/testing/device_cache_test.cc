// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that every cache passes: the GPU's and the stand-in.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/cache/testing/device_cache_fixture.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"

namespace hps {
namespace {

constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST_F(DeviceCacheTest, FilledRowsAreCached) {
  for (const int width : {1, 2, 3, 4, 6, 16, 33, 128}) {
    Below below{{}, {}, width};
    auto table = Open(width, 1000);
    const std::vector<int64_t> keys = Range(-150, 300);
    Give(&below, keys, 3);
    int64_t misses = -1;
    EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
              Expected(&below, keys));
    EXPECT_EQ(misses, 300);
    EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
              Expected(&below, keys));
    EXPECT_EQ(misses, 0) << width;
    const CacheStatistics statistics = StatisticsOf(table.get());
    EXPECT_EQ(statistics.hits, 300);
    EXPECT_EQ(statistics.misses, 300);
    EXPECT_EQ(statistics.rows, 300);
    EXPECT_EQ(statistics.inserted, 300);
    EXPECT_EQ(statistics.evicted, 0);
  }
}

TEST_F(DeviceCacheTest, PackedRowsAreUnpacked) {
  for (const RowType type : {RowType::kFloat16, RowType::kUint8}) {
    for (const int dim : {1, 2, 3, 4, 6, 16, 33, 128}) {
      Below below{{}, {}, dim, type};
      auto table = Open(below.format(), 1000);
      const std::vector<int64_t> keys = Range(-150, 310);
      Give(&below, Range(-150, 300), 3);
      int64_t misses = -1;
      for (const int64_t expected : {310, 10}) {
        EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
                  Expected(&below, keys))
            << RowTypeName(type) << " " << dim;
        EXPECT_EQ(misses, expected);
      }
      Update(table.get(), &below, Range(-10, 50), 4);
      EXPECT_EQ(LookUp(table.get(), &below, keys), Expected(&below, keys));
    }
  }
}

TEST_F(DeviceCacheTest, EveryInt64IsAKey) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int64_t> keys = {kLargest,
                                     kSmallest,
                                     -1,
                                     0,
                                     1,
                                     kLargest - 1,
                                     -2,
                                     kSmallest + 1,
                                     int64_t{1} << 32,
                                     77,
                                     0x5eed000000000000LL,
                                     0x5eed000000010000LL};
  int64_t misses = -1;
  for (size_t i = 0; i < keys.size(); ++i) {  // Adds one key at a time.
    Give(&below, {keys[i]}, 1);
    EXPECT_EQ(LookUp(table.get(), &below, {keys[i]}, &misses),
              Expected(&below, {keys[i]}));
    EXPECT_EQ(misses, 1);
    EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
              Expected(&below, keys));
    EXPECT_EQ(misses, keys.size() - i - 1);
  }
}

TEST_F(DeviceCacheTest, KeysOf32Bits) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int32_t> ids = {-1, 0, INT32_MAX, INT32_MIN, 5, -1};
  const std::vector<int64_t> keys(ids.begin(), ids.end());
  Give(&below, keys, 1);
  for (int64_t misses : {6, 0}) {
    std::vector<float> rows(ids.size() * 4);
    CacheBatch batch;
    batch.ids = ids.data();
    batch.count = 6;
    batch.long_ids = false;
    batch.rows = rows.data();
    std::unique_ptr<CacheLookup> lookup;
    Ok(table->Lookup(batch, &lookup));
    EXPECT_EQ(lookup->missing().size(), misses);
    Ok(FillMisses(lookup.get(), &below));
    EXPECT_EQ(rows, Expected(&below, keys));
  }
}

TEST_F(DeviceCacheTest, DuplicatesAndNothing) {
  Below below{{}, {}, 8};
  auto table = Open(8, 1000);
  Give(&below, {4, 5}, 1);
  std::vector<int64_t> keys;
  for (int i = 0; i < 700; ++i) keys.push_back(i % 3 == 0 ? 4 : 5);
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), Expected(&below, keys));
  EXPECT_EQ(misses, 700);
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), Expected(&below, keys));
  EXPECT_EQ(misses, 0);
  EXPECT_EQ(StatisticsOf(table.get()).rows, 2);
  EXPECT_TRUE(LookUp(table.get(), &below, {}, &misses).empty());
  EXPECT_EQ(misses, 0);
  Ok(table->Refresh({}, nullptr));
  Ok(table->Erase({}));
  Ok(table->Insert({}, nullptr, table->changes()));
}

TEST_F(DeviceCacheTest, UnknownKeysAreNotStored) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int64_t> keys = Range(0, 500);
  for (int64_t key = 0; key < 500; key += 2) Give(&below, {key}, 1);
  EXPECT_EQ(LookUp(table.get(), &below, keys), Expected(&below, keys));
  EXPECT_EQ(StatisticsOf(table.get()).rows, 250);
  // A new row is visible at once.
  Update(table.get(), &below, {1, 3}, 5);
  EXPECT_EQ(StatisticsOf(table.get()).rows, 250);
  EXPECT_EQ(LookUp(table.get(), &below, keys), Expected(&below, keys));
  EXPECT_EQ(StatisticsOf(table.get()).rows, 252);
}

// A small, a middling and a whole cache return the same rows as the tiers.
TEST_F(DeviceCacheTest, ZipfThroughCachesOfAllSizes) {
  constexpr int64_t kRows = 20000;
  std::vector<double> sums(kRows);
  double sum = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    sums[r] = sum += std::pow(r + 1.0, -1.05);
  }
  const auto check = [&](double share, CachePolicy policy) {
    Below below{{}, {}, 16};
    Give(&below, Range(0, kRows), 1);
    const CacheSize size = CacheSizeFor(kRows, share, false);
    auto table = Open(16, size.capacity, size.evicts, "hps_et.m.t", policy);
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(0, sum);
    int version = 1;
    for (int step = 0; step < 40; ++step) {
      std::vector<int64_t> keys;
      for (int i = 0; i < 1500; ++i) {
        // Includes some keys that no tier has.
        keys.push_back(
            std::lower_bound(sums.begin(), sums.end(), uniform(random)) -
            sums.begin() + (i % 50 == 0 ? kRows : 0));
      }
      ASSERT_EQ(LookUp(table.get(), &below, keys), Expected(&below, keys))
          << "share " << share << " step " << step;
      if (step % 4 == 3) {
        std::vector<int64_t> changed;
        for (int i = 0; i < 200; ++i) changed.push_back(keys[i * 7] % kRows);
        Update(table.get(), &below, changed, ++version);
      }
    }
    const CacheStatistics statistics = StatisticsOf(table.get());
    EXPECT_LE(statistics.rows, CacheSlots(size.capacity, size.evicts));
    EXPECT_EQ(statistics.rows, statistics.inserted - statistics.evicted);
    EXPECT_EQ(statistics.hits + statistics.misses, 40 * 1500);
    if (share == 0.01) {
      EXPECT_GT(statistics.evicted, 1000);
    }
    if (share == 1.0) {
      EXPECT_EQ(statistics.evicted, 0);
    }
    // The hottest keys stay: with a Zipf distribution, a tenth of the rows gets
    // most hits.
    if (share == 0.1) {
      EXPECT_GT(statistics.hits, 40 * 1500 / 2);
    }
  };
  for (const double share : {0.01, 0.1, 1.0}) {
    check(share, CachePolicy::kLru);
    if (share < 1.0) check(share, CachePolicy::kLfu);
  }
}

TEST_F(DeviceCacheTest, TheLeastRecentlyUsedIsEvicted) {
  Below below{{}, {}, 4};
  auto table = Open(4, 512);
  const std::vector<int64_t> hot = Range(0, 128);
  Give(&below, Range(0, 100000), 1);
  LookUp(table.get(), &below, hot);
  int64_t hot_misses = 0;
  for (int step = 0; step < 100; ++step) {
    LookUp(table.get(), &below, Range(1000 + step * 64, 64));
    int64_t misses = 0;
    LookUp(table.get(), &below, hot, &misses);
    hot_misses += misses;
  }
  // 6,400 keys passed through 512 slots. Keys in constant use stay, except
  // those whose two buckets are crowded.
  EXPECT_LT(hot_misses, 128);
  EXPECT_GE(StatisticsOf(table.get()).evicted, 6400 - 512);
}

TEST_F(DeviceCacheTest, WithoutEvictionTheFirstStay) {
  Below below{{}, {}, 4};
  auto table = Open(4, 64, false);
  const int64_t slots = CacheSlots(64, false);
  Give(&below, Range(0, 1000), 1);
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, 1000)),
            Expected(&below, Range(0, 1000)));
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, 1000)),
            Expected(&below, Range(0, 1000)));
  const CacheStatistics statistics = StatisticsOf(table.get());
  EXPECT_LE(statistics.rows, slots);
  EXPECT_GE(statistics.rows, slots * 9 / 10);
  EXPECT_EQ(statistics.evicted, 0);
}

TEST_F(DeviceCacheTest, RefreshOverwritesAndInsertsNothing) {
  Below below{{}, {}, 8};
  auto table = Open(8, 1000);
  Give(&below, Range(0, 20), 1);
  LookUp(table.get(), &below, Range(0, 10));
  Update(table.get(), &below, Range(5, 10), 2);
  EXPECT_EQ(StatisticsOf(table.get()).rows, 10);
  EXPECT_EQ(StatisticsOf(table.get()).refreshed, 5);
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, 20), &misses),
            Expected(&below, Range(0, 20)));
  EXPECT_EQ(misses, 10);
  // If a key repeats, its last row is stored.
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (int version = 3; version < 9; ++version) {
    keys.push_back(7);
    const std::vector<float> row = MadeRow(7, version, 8);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  Give(&below, {7}, 8);
  Ok(table->Refresh(keys, rows.data()));
  EXPECT_EQ(LookUp(table.get(), &below, {7}, &misses), Expected(&below, {7}));
  EXPECT_EQ(misses, 0);
}

TEST_F(DeviceCacheTest, EraseAndClear) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  Give(&below, Range(0, 100), 1);
  LookUp(table.get(), &below, Range(0, 100));
  Ok(table->Erase(std::vector<int64_t>{3, 5, 3, 1000}));
  EXPECT_EQ(StatisticsOf(table.get()).rows, 98);
  int64_t misses = -1;
  LookUp(table.get(), &below, Range(0, 100), &misses);
  EXPECT_EQ(misses, 2);
  Ok(table->Clear());
  EXPECT_EQ(StatisticsOf(table.get()).rows, 0);
  EXPECT_EQ(LookUp(table.get(), &below, Range(0, 100), &misses),
            Expected(&below, Range(0, 100)));
  EXPECT_EQ(misses, 100);
}

// A row read from the tiers before its key changed is output, but not cached.
TEST_F(DeviceCacheTest, AStaleRowIsAnsweredAndNotStored) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int64_t> keys = {1, 2, 3};
  Give(&below, keys, 1);
  const auto late = [&](const std::function<void()>& change) {
    std::vector<float> rows(12);
    CacheBatch batch;
    batch.ids = keys.data();
    batch.count = 3;
    batch.rows = rows.data();
    std::unique_ptr<CacheLookup> lookup;
    Ok(table->Lookup(batch, &lookup));
    ASSERT_EQ(lookup->missing().size(), 3);
    float* room = nullptr;
    Ok(lookup->Stage(3, &room));
    for (int i = 0; i < 3; ++i) below.Read(keys[i], room + i * 4);
    change();
    ev::Serial serial;
    Ok(lookup->Fill(3, {}, &serial));
    Ok(lookup->Finish());
  };
  late([&] { Update(table.get(), &below, {2}, 2); });
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), Expected(&below, keys));
  EXPECT_EQ(misses, 1);
  Ok(table->Clear());
  late([&] { Ok(table->Erase(std::vector<int64_t>{1, 2})); });
  LookUp(table.get(), &below, keys, &misses);
  EXPECT_EQ(misses, 2);
  Ok(table->Clear());
  late([&] { Ok(table->Clear()); });
  LookUp(table.get(), &below, keys, &misses);
  EXPECT_EQ(misses, 3);
  // Insert checks for changes, too.
  Ok(table->Clear());
  const int64_t seen = table->changes();
  Update(table.get(), &below, {2}, 3);
  const std::vector<float> old(12, 1.0f);
  Ok(table->Insert(keys, old.data(), seen));
  LookUp(table.get(), &below, {1, 3}, &misses);
  EXPECT_EQ(misses, 0);
  EXPECT_EQ(LookUp(table.get(), &below, {2}, &misses), Expected(&below, {2}));
  EXPECT_EQ(misses, 1);
}

TEST_F(DeviceCacheTest, InsertStoresWithoutAnAnswer) {
  Below below{{}, {}, 16};
  auto table = Open(16, 20000, false);
  const std::vector<int64_t> keys = Range(-5000, 10000);
  Give(&below, keys, 4);
  const std::vector<float> rows = Expected(&below, keys);
  Ok(table->Insert(keys, rows.data(), table->changes()));
  int64_t misses = -1;
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), rows);
  EXPECT_EQ(misses, 0);
  // Insert does not overwrite cached rows.
  Ok(table->Insert(keys, std::vector<float>(rows.size(), 1.0f).data(),
                   table->changes()));
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), rows);
}

TEST_F(DeviceCacheTest, TwoTablesWithTheSameKeys) {
  Below one{{}, {}, 4}, other{{}, {}, 4};
  auto first = Open(4, 1000, true, "hps_et.m.a");
  auto second = Open(4, 1000, true, "hps_et.n.a");
  const std::vector<int64_t> keys = Range(0, 400);
  Give(&one, keys, 1);
  Give(&other, keys, 2);
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(LookUp(first.get(), &one, keys), Expected(&one, keys));
    EXPECT_EQ(LookUp(second.get(), &other, keys), Expected(&other, keys));
  }
  Update(first.get(), &one, keys, 3);
  EXPECT_EQ(LookUp(first.get(), &one, keys), Expected(&one, keys));
  EXPECT_EQ(LookUp(second.get(), &other, keys), Expected(&other, keys));
  first->Drop();
  int64_t misses = -1;
  EXPECT_EQ(LookUp(second.get(), &other, keys, &misses),
            Expected(&other, keys));
  EXPECT_EQ(misses, 0);
}

TEST_F(DeviceCacheTest, ADroppedTableMissesAndStillAnswers) {
  Below below{{}, {}, 4};
  auto table = Open(4, 1000);
  const std::vector<int64_t> keys = Range(0, 300);
  Give(&below, keys, 1);
  LookUp(table.get(), &below, keys);
  EXPECT_GT(StatisticsOf(table.get()).device_bytes, 0);
  // A lookup that began before the drop can still finish.
  std::vector<float> rows(3 * 4);
  const std::vector<int64_t> some = {1, 7000, 2};
  CacheBatch batch;
  batch.ids = some.data();
  batch.count = 3;
  batch.rows = rows.data();
  std::unique_ptr<CacheLookup> lookup;
  Ok(table->Lookup(batch, &lookup));
  table->Drop();
  Ok(FillMisses(lookup.get(), &below));
  EXPECT_EQ(rows, Expected(&below, some));
  int64_t misses = -1;
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(LookUp(table.get(), &below, keys, &misses),
              Expected(&below, keys));
    EXPECT_EQ(misses, 300);
  }
  Update(table.get(), &below, keys, 2);
  Ok(table->Erase(keys));
  Ok(table->Clear());
  const CacheStatistics statistics = StatisticsOf(table.get());
  EXPECT_EQ(statistics.rows, 0);
  EXPECT_EQ(statistics.device_bytes, 0);
  table->Drop();
  // A new table starts empty.
  table = Open(4, 1000);
  EXPECT_EQ(LookUp(table.get(), &below, keys, &misses), Expected(&below, keys));
  EXPECT_EQ(misses, 300);
}

TEST_F(DeviceCacheTest, WithoutCapacityNothingIsStored) {
  Below below{{}, {}, 4};
  auto table = Open(4, 0);
  Give(&below, {1, 2}, 1);
  int64_t misses = -1;
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(LookUp(table.get(), &below, {1, 2, 9}, &misses),
              Expected(&below, {1, 2, 9}));
    EXPECT_EQ(misses, 3);
  }
}

TEST_F(DeviceCacheTest, BytesArePredicted) {
  for (const bool evicts : {true, false}) {
    for (const int width : {4, 128}) {
      for (const int64_t capacity : {100, 10000}) {
        for (const CachePolicy policy :
             {CachePolicy::kLru, CachePolicy::kLfu}) {
          auto table = Open(width, capacity, evicts, "hps_et.m.t", policy);
          const double bytes = StatisticsOf(table.get()).device_bytes;
          EXPECT_NEAR(bytes / CacheBytes(capacity, evicts, width, 1 << 16), 1.0,
                      0.05)
              << evicts << " " << width << " " << capacity;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hps
