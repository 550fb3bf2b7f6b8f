// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map_table.h"
#include "addons/hierarchical_parameter_server/database/hash_map/partition.h"
#include "addons/hierarchical_parameter_server/database/hash_map/segment.h"
#include "addons/hierarchical_parameter_server/database/testing/database_contract.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/testing/thread_pool.h"

namespace hps {
namespace {

std::unique_ptr<Database> MakeMap(const HashMapOptions& options) {
  std::unique_ptr<Database> database;
  const ev::Status status = HashMap::Make(options, &database);
  EXPECT_TRUE(status.ok()) << status.message();
  return database;
}

template <int partitions>
struct HashMapUnderTest {
  HashMapUnderTest() {
    HashMapOptions options;
    options.num_partitions = partitions;
    map = MakeMap(options);
  }
  std::string SkipReason() { return ""; }
  Database* database() { return map.get(); }
  std::unique_ptr<Database> map;
};
INSTANTIATE_TYPED_TEST_SUITE_P(OnePartition, DatabaseContract,
                               HashMapUnderTest<1>);
INSTANTIATE_TYPED_TEST_SUITE_P(SevenPartitions, DatabaseContract,
                               HashMapUnderTest<7>);

std::shared_ptr<Table> Open(Database* database, int width) {
  std::shared_ptr<Table> table;
  EXPECT_TRUE(database->OpenTable("hps_et.m.t", width, &table).ok());
  return table;
}

std::vector<int64_t> Keys(int64_t first, int64_t count) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < count; ++i) keys.push_back(first + i);
  return keys;
}

int64_t CountFound(Table* table, const std::vector<int64_t>& keys) {
  ev::Serial serial;
  std::vector<float> rows(keys.size() * table->width());
  std::vector<int64_t> missing(keys.size());
  int64_t count = -1;
  EXPECT_TRUE(table
                  ->Fetch(keys, Positions::All(keys.size()), rows.data(),
                          missing.data(), &count, &serial)
                  .ok());
  return static_cast<int64_t>(keys.size()) - count;
}

TEST(HashMapTest, AgreesWithAMapThroughInsertsAndRemoves) {
  HashMapOptions options;
  options.num_partitions = 1;
  const auto database = MakeMap(options);
  const auto table = Open(database.get(), 2);
  std::map<int64_t, int> oracle;
  std::mt19937_64 random(7);
  ev::Serial serial;
  for (int step = 0; step < 3000; ++step) {
    std::vector<int64_t> keys(1 + random() % 40);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % 3000);
    if (random() % 100 < (step / 500 % 2 == 0 ? 60 : 40)) {
      const int version = step % 100;
      const std::vector<float> rows = MadeRows(keys, version, 2);
      ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
      for (const int64_t key : keys) oracle[key] = version;
    } else {
      int64_t removed = -1, expected = 0;
      for (const int64_t key : keys) expected += oracle.erase(key);
      ASSERT_TRUE(table->Remove(keys, &removed).ok());
      ASSERT_EQ(removed, expected);
    }
    if (step % 50 != 0) continue;
    const std::vector<int64_t> all = Keys(0, 3000);
    std::vector<float> rows(all.size() * 2);
    std::vector<int64_t> missing(all.size());
    int64_t count = -1;
    ASSERT_TRUE(table
                    ->Fetch(all, Positions::All(3000), rows.data(),
                            missing.data(), &count, &serial)
                    .ok());
    ASSERT_EQ(count, 3000 - static_cast<int64_t>(oracle.size()));
    for (const auto& entry : oracle) {
      const std::vector<float> got(&rows[entry.first * 2],
                                   &rows[entry.first * 2] + 2);
      ASSERT_EQ(got, MadeRow(entry.first, entry.second, 2));
    }
  }
}

TEST(HashMapTest, LentThreadsGiveTheSameRows) {
  ev::testing::ThreadPool pool(3);
  const auto database = MakeMap(HashMapOptions());
  const auto table = Open(database.get(), 16);
  std::vector<int64_t> keys = Keys(-500, 20000);
  keys.insert(keys.end(), {3, 3, 7});  // the last row is stored
  std::vector<float> rows = MadeRows(keys, 0, 16);
  const std::vector<float> last = MadeRow(3, 9, 16);
  std::copy(last.begin(), last.end(), rows.end() - 32);
  ASSERT_TRUE(table->Insert(keys, rows.data(), &pool).ok());
  std::vector<int64_t> wanted = Keys(-600, 20300);
  std::vector<float> got(wanted.size() * 16, -7.0f);
  std::vector<int64_t> missing(wanted.size());
  int64_t count = -1;
  ASSERT_TRUE(table
                  ->Fetch(wanted, Positions::All(wanted.size()), got.data(),
                          missing.data(), &count, &pool)
                  .ok());
  ASSERT_EQ(count, 300);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(missing[i], i);
    EXPECT_EQ(missing[100 + i], 20100 + i);
  }
  for (int64_t i = 100; i < 20100; ++i) {
    const std::vector<float> row(&got[i * 16], &got[i * 16] + 16);
    ASSERT_EQ(row, wanted[i] == 3 ? last : MadeRow(wanted[i], 0, 16));
  }
}

TEST(HashMapTest, ALimitIsKeptByEveryPolicy) {
  for (const EvictionPolicy policy :
       {EvictionPolicy::kRandom, EvictionPolicy::kLeastUsed,
        EvictionPolicy::kOldest}) {
    HashMapOptions options;
    options.num_partitions = 2;
    options.overflow_margin = 1000;
    options.overflow_resolution_target = 0.5;
    options.overflow_policy = policy;
    const auto database = MakeMap(options);
    EXPECT_TRUE(database->capabilities().may_evict);
    const auto table = Open(database.get(), 4);
    ev::Serial serial;
    const std::vector<int64_t> hot = Keys(0, 100);
    for (int64_t first = 0; first < 10000; first += 100) {
      const std::vector<int64_t> keys = Keys(first, 100);
      const std::vector<float> rows = MadeRows(keys, 1, 4);
      ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
      // With these policies, rows in use stay.
      const int64_t found = CountFound(table.get(), hot);
      if (policy != EvictionPolicy::kRandom) {
        ASSERT_EQ(found, 100);
      }
      int64_t count = -1;
      ASSERT_TRUE(table->Count(&count).ok());
      ASSERT_LE(count, 2000);
    }
    TableStatistics statistics;
    ASSERT_TRUE(table->Statistics(&statistics).ok());
    EXPECT_GT(statistics.evicted, 7000);
    EXPECT_EQ(statistics.inserted, 10000);
    EXPECT_EQ(statistics.rows, 10000 - statistics.evicted);
    EXPECT_EQ(CountFound(table.get(), Keys(0, 10000)), statistics.rows);
  }
}

TEST(HashMapTest, RowsUnusedForLongAreTheOldestWhereverTheClockIs) {
  // The number of the first call; the last ones are near the counter's end.
  for (const uint32_t start :
       {0u, 1u << 29, 0x7FFFFFF0u, 0xE0000000u, 0xFFFFFFF0u}) {
    for (const uint32_t unused :
         {100u, 0x3FFFFFFFu, 0x80000001u, 0xC0000000u, 0xFFFFFFFEu}) {
      HashMapOptions options;
      options.num_partitions = 1;
      options.overflow_margin = 2000;
      options.overflow_resolution_target = 0.5;
      options.overflow_policy = EvictionPolicy::kOldest;
      // g++'s AddressSanitizer does not align it on the stack.
      const auto table =
          std::make_unique<HashMapTable>("hps_et.m.t", 1, options);
      ev::Serial serial;
      table->CountCalls(start);
      const auto insert = [&](int64_t first, int64_t count) {
        const std::vector<int64_t> keys = Keys(first, count);
        const std::vector<float> rows = MadeRows(keys, 1, 1);
        EXPECT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
      };
      insert(0, 1000);
      table->CountCalls(unused);
      insert(5000, 900);
      insert(9000, 101);  // evicts 1,001 rows
      EXPECT_EQ(CountFound(table.get(), Keys(0, 1000)), 0)
          << start << " " << unused;
      EXPECT_EQ(CountFound(table.get(), Keys(9000, 101)), 101);
      EXPECT_EQ(CountFound(table.get(), Keys(5000, 900)), 899);
    }
  }
}

TEST(HashMapTest, UsesAreCountedUpToTheCountersEnd) {
  const Placing placing(ev::KeyedHash::FromSeed(5), 1);
  Partition partition(0, 1, true, &placing);
  const auto directly = [](const std::function<void()>& step) { step(); };
  for (int64_t key = 0; key < 100; ++key) {
    const uint64_t fraction = placing.Of(key).fraction;
    while (partition.SegmentOf(fraction)->full()) {
      partition.Grow(fraction, directly);
    }
    Segment* const segment = partition.SegmentOf(fraction);
    const int64_t slot = segment->Add(key, segment->GroupOf(fraction));
    segment->use(slot).store(key == 7 ? UINT32_MAX : UINT32_MAX - 1);
    partition.Counted(1);
  }
  EXPECT_EQ(partition.Evict(EvictionPolicy::kLeastUsed, 1, 0, 7, directly), 99);
  Segment* const segment = partition.SegmentOf(placing.Of(7).fraction);
  EXPECT_GE(segment->Find(7, segment->GroupOf(placing.Of(7).fraction)), 0);
}

TEST(HashMapTest, ReadersGoOnDuringGrowthAndEviction) {
  HashMapOptions options;
  options.num_partitions = 1;
  options.overflow_margin = 20000;
  options.overflow_policy = EvictionPolicy::kOldest;
  const auto database = MakeMap(options);
  const auto table = Open(database.get(), 8);
  ev::Serial serial;
  const std::vector<int64_t> hot = Keys(0, 64);
  const std::vector<float> stored = MadeRows(hot, 1, 8);
  ASSERT_TRUE(table->Insert(hot, stored.data(), &serial).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    std::vector<float> rows(64 * 8);
    std::vector<int64_t> missing(64);
    ev::Serial mine;
    while (!stop) {
      int64_t count = -1;
      if (!table
               ->Fetch(hot, Positions::All(64), rows.data(), missing.data(),
                       &count, &mine)
               .ok() ||
          count != 0 || rows != stored) {
        ++wrong;
      }
    }
  });
  for (int64_t first = 100; first < 100000; first += 100) {
    // Renews the use of the hot rows before each step that may evict.
    CountFound(table.get(), hot);
    const std::vector<int64_t> keys = Keys(first, 100);
    const std::vector<float> rows = MadeRows(keys, 1, 8);
    ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(PartitionTest, CountsItsRowsAfterAnEvictionWithoutMemory) {
  const Placing placing(ev::KeyedHash::FromSeed(5), 1);
  Partition partition(0, 1, false, &placing);
  const auto directly = [](const std::function<void()>& step) { step(); };
  for (int64_t key = 0; key < 5000; ++key) {
    const uint64_t fraction = placing.Of(key).fraction;
    while (partition.SegmentOf(fraction)->full()) {
      partition.Grow(fraction, directly);
    }
    Segment* const segment = partition.SegmentOf(fraction);
    segment->Add(key, segment->GroupOf(fraction));
    partition.Counted(1);
  }
  int steps = 0;
  EXPECT_THROW(partition.Evict(EvictionPolicy::kRandom, 2500, 0, 7,
                               [&](const std::function<void()>& step) {
                                 if (++steps == 2) throw std::bad_alloc();
                                 step();
                               }),
               std::bad_alloc);
  int64_t rows = 0;
  for (const auto& segment : partition.segments()) rows += segment->count();
  EXPECT_LT(rows, 5000);
  EXPECT_EQ(rows, partition.count());
}

TEST(HashMapTest, OptionsOutOfRangeAreErrors) {
  std::unique_ptr<Database> database;
  HashMapOptions options;
  options.num_partitions = 0;
  EXPECT_NE(HashMap::Make(options, &database)
                .message()
                .find("num_partitions from 1 to 1024, got 0"),
            std::string::npos);
  options = HashMapOptions();
  options.overflow_margin = 0;
  EXPECT_FALSE(HashMap::Make(options, &database).ok());
  options = HashMapOptions();
  options.overflow_resolution_target = 1.5;
  EXPECT_FALSE(HashMap::Make(options, &database).ok());
}

// Fetches prefetch rows and find several slots at once. Every position must get
// its row for any number of keys and any row size.
TEST(HashMap, FetchesAnyNumberOfRowsOfAnyWidth) {
  for (const int width : {1, 3, 128, 2000}) {
    const std::unique_ptr<Database> map = MakeMap(HashMapOptions());
    std::shared_ptr<Table> table;
    ASSERT_TRUE(map->OpenTable("hps_et.m.t", width, &table).ok());
    std::vector<int64_t> keys;
    std::vector<float> rows;
    for (int64_t key = 0; key < 500; ++key) {
      keys.push_back(key * 7);
      for (int i = 0; i < width; ++i) rows.push_back(key * 7 + i * .5f);
    }
    ev::Serial serial;
    ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
    std::mt19937 random(3);
    for (const int count : {0, 1, 23, 24, 25, 127, 128, 129, 256, 300, 1000}) {
      std::vector<int64_t> asked, positions, want_missing;
      for (int i = 0; i < count; ++i) {
        asked.push_back(static_cast<int64_t>(random() % 4000));
        if (random() % 4 == 0) continue;
        positions.push_back(i);
        if (asked[i] % 7 != 0 || asked[i] >= 3500) want_missing.push_back(i);
      }
      // In place, as the server does it.
      std::vector<int64_t> missing = positions;
      std::vector<float> out(count * width + 1, -1.f);
      int64_t num_missing = -1;
      ASSERT_TRUE(table
                      ->Fetch(asked,
                              Positions::Of(missing.data(), missing.size()),
                              out.data(), missing.data(), &num_missing, &serial)
                      .ok());
      missing.resize(num_missing);
      ASSERT_EQ(missing, want_missing);
      size_t next = 0;
      for (int i = 0; i < count; ++i) {
        const bool wanted = next < positions.size() && positions[next] == i;
        next += wanted;
        const bool found = wanted && asked[i] % 7 == 0 && asked[i] < 3500;
        for (int k = 0; k < width; ++k) {
          ASSERT_EQ(out[i * width + k], found ? asked[i] + k * .5f : -1.f)
              << width << " " << count << " " << i << " " << k;
        }
      }
    }
  }
}

// Runs tasks itself and counts the calls.
class CountingParallel : public ev::Parallel {
 public:
  int num_threads() const override { return 4; }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override {
    ++calls;
    for (int64_t i = 0; i < num_tasks; ++i) body(i);
  }
  int calls = 0;
};

TEST(HashMap, OnlyLongFetchesUseOtherThreads) {
  const struct {
    int width, count, calls;
  } cases[] = {{128, 2048, 0}, {128, 4096, 1}, {16, 2048, 0}, {16, 4096, 1}};
  for (const auto& c : cases) {
    const std::unique_ptr<Database> map = MakeMap(HashMapOptions());
    std::shared_ptr<Table> table;
    ASSERT_TRUE(map->OpenTable("hps_et.m.t", c.width, &table).ok());
    std::vector<int64_t> keys(c.count), missing(c.count);
    std::vector<float> rows(c.count * c.width), out(c.count * c.width);
    for (int i = 0; i < c.count; ++i) {
      keys[i] = i;
      std::fill_n(&rows[i * c.width], c.width, i * .25f);
    }
    ev::Serial serial;
    ASSERT_TRUE(table->Insert(keys, rows.data(), &serial).ok());
    CountingParallel parallel;
    int64_t num_missing = -1;
    ASSERT_TRUE(table
                    ->Fetch(keys, Positions::All(c.count), out.data(),
                            missing.data(), &num_missing, &parallel)
                    .ok());
    EXPECT_EQ(num_missing, 0);
    EXPECT_EQ(out, rows);
    EXPECT_EQ(parallel.calls, c.calls) << c.width << " " << c.count;
  }
}

}  // namespace
}  // namespace hps
