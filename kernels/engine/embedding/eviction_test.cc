// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests eviction: by age, by weight, by capacity.

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/parts/eviction_hand.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/counting_row_source.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Keys = std::vector<int64_t>;

std::shared_ptr<EmbeddingTable> MakeTable(const CapacityOptions& capacity,
                                          int64_t dim = 1) {
  TableOptions options;
  options.name = "t";
  options.dim = dim;
  testing::PutUnderTest(&options);
  options.record_version = true;
  options.capacity = capacity;
  auto table = std::make_shared<EmbeddingTable>(options);
  EXPECT_TRUE(table->Initialize(std::vector<float>(dim, 0.0f), 1).ok());
  return table;
}

CapacityOptions Rows(int64_t rows, CacheStrategy strategy) {
  CapacityOptions capacity;
  capacity.max_rows = rows;
  capacity.strategy = strategy;
  return capacity;
}

void Train(EmbeddingTable* table, const Keys& keys, int64_t step,
           Parallel* parallel = nullptr) {
  const std::vector<float> grads(keys.size() * table->options().dim, -1.0f);
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = grads.data();
  const std::vector<std::vector<SlotSpec>> slots = {{{"Adagrad", 0.1f}}};
  ASSERT_OK(ApplyRule("Adagrad", std::vector<float>{1.0f},
                      std::vector<UpdateInput>{update}, slots, step, parallel));
}

std::set<int64_t> KeysOf(const EmbeddingTable& table) {
  TableSnapshot snapshot;
  EXPECT_TRUE(table.Export({}, &snapshot).ok());
  return std::set<int64_t>(snapshot.keys.begin(), snapshot.keys.end());
}

TEST(EvictStaleTest, StaleRowsAreEvictedWithTheirSlots) {
  const auto table = MakeTable(CapacityOptions());
  Train(table.get(), {1, 2}, 10);
  Train(table.get(), {2, 3}, 14);
  int64_t evicted = -1;
  ASSERT_OK(table->EvictStale(15, 5, &evicted));
  EXPECT_EQ(evicted, 0);
  ASSERT_OK(table->EvictStale(16, 5, &evicted));
  EXPECT_EQ(evicted, 1);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{2, 3}));
  EXPECT_EQ(table->stats().evicted_rows, 1);
  // A key that returns is a new key, slots included.
  Train(table.get(), {1}, 17);
  TableSnapshot snapshot;
  ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &snapshot));
  ASSERT_EQ(snapshot.keys[0], 1);
  EXPECT_FLOAT_EQ(snapshot.slots[0][0], 1.1f);
}

TEST(EvictStaleTest, ARowThatWasNeverUpdatedIsStamped) {
  const auto table = MakeTable(CapacityOptions());
  ASSERT_OK(table->Import(Keys{5}, std::vector<float>{1.0f}.data(), {}, {}, {},
                          {}, 0, 1));
  int64_t evicted = -1;
  ASSERT_OK(table->EvictStale(100, 5, &evicted));
  EXPECT_EQ(evicted, 0);
  ASSERT_OK(table->EvictStale(105, 5, &evicted));
  EXPECT_EQ(evicted, 0);
  ASSERT_OK(table->EvictStale(106, 5, &evicted));
  EXPECT_EQ(evicted, 1);
}

TEST(EvictStaleTest, CountedKeysAreEvictedToo) {
  TableOptions options;
  options.name = "t";
  options.dim = 1;
  testing::PutUnderTest(&options);
  options.record_version = true;
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 2;
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
  Train(&table, {1, 2, 2}, 0);
  Train(&table, {3}, 8);
  int64_t evicted = -1;
  ASSERT_OK(table.EvictStale(9, 5, &evicted));
  EXPECT_EQ(evicted, 1);
  EXPECT_EQ(table.size(), 0);
  EXPECT_EQ(table.stats().filtered_keys, 1);
}

TEST(EvictStaleTest, VersionsMayBeTimestamps) {
  // In milliseconds, microseconds and nanoseconds since 1970.
  for (const int64_t now : {int64_t{1700000000000}, int64_t{1700000000000000},
                            int64_t{1700000000000000000}}) {
    TableOptions options;
    options.name = "t";
    options.dim = 1;
    testing::PutUnderTest(&options);
    options.record_version = true;
    options.admission.filter = AdmissionOptions::Filter::kCounter;
    options.admission.threshold = 2;
    EmbeddingTable table(options);
    ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
    Train(&table, {1, 1, 2}, now);  // 2 is counted only
    Train(&table, {3, 3, 4}, now + 60000);
    std::vector<int64_t> frequencies(4), versions(4);
    ASSERT_OK(
        table.GetMeta(Keys{1, 2, 3, 4}, frequencies.data(), versions.data()));
    EXPECT_EQ(versions, (Keys{now, now, now + 60000, now + 60000}));
    int64_t evicted = -1;
    ASSERT_OK(table.EvictStale(now + 60000, 60000, &evicted));
    EXPECT_EQ(evicted, 0);
    EXPECT_EQ(table.stats().filtered_keys, 2);
    TableSnapshot snapshot;
    ASSERT_OK(table.Export({}, &snapshot));
    EXPECT_EQ(snapshot.versions, (Keys{now, now + 60000}));
    EXPECT_EQ(snapshot.filtered_versions, (Keys{now, now + 60000}));
    EmbeddingTable restored(options);
    ASSERT_OK(restored.Initialize(std::vector<float>{0.0f}, 1));
    ASSERT_OK(restored.Import(snapshot.keys, snapshot.values.data(), {}, {},
                              snapshot.versions, snapshot.frequencies, 0, 1));
    ASSERT_OK(restored.ImportFiltered(snapshot.filtered_keys,
                                      snapshot.filtered_versions,
                                      snapshot.filtered_frequencies, 0, 1));
    for (EmbeddingTable* each : {&table, &restored}) {
      ASSERT_OK(each->EvictStale(now + 60001, 60000, &evicted));
      EXPECT_EQ(evicted, 1);
      EXPECT_EQ(KeysOf(*each), std::set<int64_t>{3});
      EXPECT_EQ(each->stats().filtered_keys, 1);
    }
  }
}

TEST(EvictStaleTest, NeedsVersions) {
  TableOptions options;
  options.name = "t";
  options.dim = 1;
  testing::PutUnderTest(&options);
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
  int64_t evicted;
  EXPECT_EQ(table.EvictStale(9, 5, &evicted).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(MakeTable(CapacityOptions())->EvictStale(9, 0, &evicted).code(),
            StatusCode::kInvalidArgument);
}

TEST(EvictWeakTest, RowsOfLittleWeightAreEvicted) {
  const auto table = MakeTable(CapacityOptions(), /*dim=*/2);
  ASSERT_OK(table->Import(Keys{1, 2, 3},
                          std::vector<float>{1, 1, 2, 0, 0, 0}.data(), {}, {},
                          {}, {}, 0, 1));
  int64_t evicted = -1;
  ASSERT_OK(table->EvictWeak(1.0f, &evicted));  // 1, 2 and 0
  EXPECT_EQ(evicted, 1);
  ASSERT_OK(table->EvictWeak(1.5f, &evicted));
  EXPECT_EQ(evicted, 1);
  EXPECT_EQ(KeysOf(*table), std::set<int64_t>{2});
  EXPECT_EQ(table->stats().evicted_rows, 2);
}

TEST(CapacityTest, LruKeepsWhatWasUpdatedLast) {
  const auto table = MakeTable(Rows(4, CacheStrategy::kLru));
  Train(table.get(), {1, 2}, 0);
  Train(table.get(), {3, 4}, 1);
  Train(table.get(), {1}, 2);
  EXPECT_EQ(table->stats().evicted_rows, 0);
  Train(table.get(), {5}, 3);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 3, 4, 5}));
  Train(table.get(), {6, 7}, 4);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 5, 6, 7}));
  EXPECT_EQ(table->stats().evicted_rows, 3);
  EXPECT_EQ(table->stats().inserted_rows, 7);
}

TEST(CapacityTest, LfuKeepsWhatOccursOften) {
  const auto table = MakeTable(Rows(3, CacheStrategy::kLfu));
  Train(table.get(), {1, 1, 1, 2, 2, 3}, 0);
  // A new row stays in its step, however low its frequency.
  Train(table.get(), {4}, 1);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 2, 4}));
  Train(table.get(), {5, 5}, 2);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 2, 5}));
  Train(table.get(), {6}, 3);  // 2 and 5 occurred twice; 2 is older
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 5, 6}));
}

TEST(CapacityTest, LfuFrequenciesAreExported) {
  // MakeTable does not set record_frequency.
  const auto table = MakeTable(Rows(3, CacheStrategy::kLfu));
  Train(table.get(), {1, 1, 1, 2}, 0);
  TableSnapshot snapshot;
  ASSERT_OK(table->Export({}, &snapshot));
  EXPECT_EQ(snapshot.keys, (Keys{1, 2}));
  EXPECT_EQ(snapshot.frequencies, (Keys{3, 1}));
}

TEST(CapacityTest, FifoKeepsWhatCameLast) {
  const auto table = MakeTable(Rows(3, CacheStrategy::kFifo));
  Train(table.get(), {1}, 0);
  Train(table.get(), {2}, 1);
  Train(table.get(), {3, 1, 1}, 2);  // a use makes no row younger
  Train(table.get(), {4}, 3);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{2, 3, 4}));
  // A row of the current step stays; afterwards it is the oldest again.
  Train(table.get(), {2, 5}, 4);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{2, 4, 5}));
  Train(table.get(), {6}, 5);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{4, 5, 6}));
  // Writing or reading an existing row does not make it younger either.
  ASSERT_OK(table->WriteRows(Keys{4}, {}, std::vector<float>{4}.data(), {},
                             nullptr, 6, nullptr));
  std::vector<int64_t> gone;
  std::vector<float> values, out(2);
  ASSERT_OK(table->ReadAndEvict(Keys{7}, 7, out.data(), &gone, &values));
  EXPECT_EQ(gone, Keys{4});
  // A row that was evicted and returns is new.
  Train(table.get(), {4}, 8);
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{4, 6, 7}));
}

// Calls are counted in 32 bits. Row 1 came 2^32 calls and a few ago.
TEST(CapacityTest, TheOldestRowStaysTheOldestWhenCallNumbersWrap) {
  for (const bool reads : {false, true}) {
    const auto table = MakeTable(Rows(3, CacheStrategy::kFifo));
    int64_t step = 0;
    const auto use = [&](int64_t key) {
      ++step;
      if (!reads) return Train(table.get(), {key}, step);
      std::vector<int64_t> gone;
      std::vector<float> values, out(2);
      ASSERT_OK(
          table->ReadAndEvict(Keys{key}, step, out.data(), &gone, &values));
    };
    const auto pass = [&] {
      table->impl()->calls += uint32_t{1} << 30;
      use(1);
    };
    use(1);
    for (int i = 0; i < 3; ++i) pass();
    use(2);
    use(3);
    pass();
    use(4);
    EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{2, 3, 4}));
  }
}

// Model of a table with kFifo, built of maps.
class FifoModel {
 public:
  explicit FifoModel(size_t most) : most_(most) {}

  void Train(const Keys& keys, int64_t step) {
    const int64_t call = ++calls_;
    for (const int64_t key : keys) {
      rows_.emplace(key, Row{call, step}).first->second.version = step;
    }
    Evict(call, step);
  }
  // All restored rows have one age; their versions stay.
  void Restore() {
    const int64_t call = ++calls_;
    for (auto& row : rows_) row.second.first_call = call;
  }
  std::set<int64_t> keys() const {
    std::set<int64_t> keys;
    for (const auto& row : rows_) keys.insert(row.first);
    return keys;
  }

 private:
  struct Row {
    int64_t first_call, version;
  };

  void Evict(int64_t call, int64_t step) {
    // Spared, first call, version, hash; key.
    using Rank = std::tuple<int, int64_t, int64_t, uint64_t, int64_t>;
    std::set<Rank> ranks;
    for (const auto& row : rows_) {
      const int64_t first = row.second.first_call;
      const int64_t version = row.second.version;
      const int spared = first == call ? 2 : version == step ? 1 : 0;
      ranks.emplace(spared, first, version, MixKey(row.first), row.first);
    }
    for (; rows_.size() > most_; ranks.erase(ranks.begin())) {
      rows_.erase(std::get<4>(*ranks.begin()));
    }
  }

  const size_t most_;
  int64_t calls_ = 0;
  std::map<int64_t, Row> rows_;
};

TEST(CapacityTest, FifoMatchesTheModel) {
  constexpr int64_t kMost = 200;
  auto table = MakeTable(Rows(kMost, CacheStrategy::kFifo));
  FifoModel model(kMost);
  std::mt19937_64 random(3);
  int64_t step = 0;
  for (int i = 0; i < 300; ++i) {
    Keys keys(1 + random() % 40);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % 600);
    step += random() % 2;  // several calls may be of one step
    Train(table.get(), keys, step);
    model.Train(keys, step);
    ASSERT_EQ(KeysOf(*table), model.keys()) << i;
    if (i % 100 != 60) continue;
    TableSnapshot saved;
    ASSERT_OK(table->Export(std::vector<std::string>{"Adagrad"}, &saved));
    table = MakeTable(Rows(kMost, CacheStrategy::kFifo));
    const std::vector<SlotSpec> slots = {{"Adagrad", 0.1f}};
    // In two parts, as from a checkpoint of two files.
    for (int part = 0; part < 2; ++part) {
      const std::vector<const float*> slot_values = {saved.slots[0].data()};
      ASSERT_OK(table->Import(saved.keys, saved.values.data(), slots,
                              slot_values, saved.versions, saved.frequencies,
                              part, 2));
    }
    model.Restore();
  }
  EXPECT_GT(table->stats().evicted_rows, 100);
}

Keys Range(int64_t begin, int64_t end) {
  Keys keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

// All calls have one step, as without a global step, or with timestamps within
// one second.
TEST(CapacityTest, ACallsOwnRowsStay) {
  for (const bool are_times : {false, true}) {
    for (const CacheStrategy strategy :
         {CacheStrategy::kLru, CacheStrategy::kLfu}) {
      TableOptions options;
      options.name = "t";
      options.dim = 1;
      testing::PutUnderTest(&options);
      options.versions_are_times = are_times;
      options.capacity = Rows(8192, strategy);
      EmbeddingTable table(options);
      ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
      const auto expect_stayed = [&](const Keys& keys) {
        const std::set<int64_t> left = KeysOf(table);
        EXPECT_EQ(left.size(), 8192u);
        int64_t gone = 0;
        for (const int64_t key : keys) gone += left.count(key) == 0;
        EXPECT_EQ(gone, 0) << "strategy " << static_cast<int>(strategy)
                           << ", are_times " << are_times;
      };
      // Old rows have a high frequency.
      for (int i = 0; i < 3; ++i) Train(&table, Range(0, 8192), 7);
      Train(&table, Range(10000, 14000), 7);
      expect_stayed(Range(10000, 14000));
      // Nearly all rows are the call's own.
      Keys keys = Range(20000, 24192);
      for (const int64_t key : KeysOf(table)) {
        if (keys.size() < 8192) keys.push_back(key);
      }
      Train(&table, keys, 7);
      expect_stayed(keys);
      Keys gone;
      std::vector<float> values, out(8192);
      keys = Range(30000, 38192);
      ASSERT_OK(table.ReadAndEvict(keys, 7, out.data(), &gone, &values));
      EXPECT_EQ(gone.size(), 8192u);
      expect_stayed(keys);
      keys = Range(40000, 48192);
      ASSERT_OK(table.WriteRows(keys, {}, out.data(), {}, nullptr, 7, nullptr));
      expect_stayed(keys);
    }
  }
}

TEST(CapacityTest, WithinOneStepRowsOfEarlierCallsAreEvicted) {
  const auto table = MakeTable(Rows(3, CacheStrategy::kLru));
  for (const int64_t key : {11, 12, 13, 11, 14, 15}) {
    Train(table.get(), {key}, 0);
  }
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{11, 14, 15}));
}

TEST(CapacityTest, AClockThatIsSetBackDoesNotEvictTheCallsOwnRows) {
  TableOptions options;
  options.name = "t";
  options.dim = 1;
  testing::PutUnderTest(&options);
  options.versions_are_times = true;
  options.capacity = Rows(2, CacheStrategy::kLru);
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>{0.0f}, 1));
  Train(&table, {1, 2}, 1000);
  Train(&table, {3}, 400);
  EXPECT_EQ(KeysOf(table).count(3), 1u);
}

TEST(CapacityTest, ABatchOfMoreKeysThanRowsLeavesTheCapacity) {
  for (const CacheStrategy strategy : kCacheStrategies) {
    const auto table = MakeTable(Rows(10, strategy));
    Keys keys(1000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    Train(table.get(), keys, 0);
    EXPECT_EQ(table->size(), 10);
    EXPECT_EQ(table->stats().evicted_rows, 990);
  }
}

TEST(CapacityTest, WritesAndImportsRespectIt) {
  const auto table = MakeTable(Rows(2, CacheStrategy::kLru));
  ASSERT_OK(table->Import(Keys{1, 2, 3}, std::vector<float>{1, 2, 3}.data(), {},
                          {}, Keys{9, 7, 8}, {}, 0, 1));
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 3}));
  ASSERT_OK(table->WriteRows(Keys{4}, {}, std::vector<float>{4}.data(), {},
                             nullptr, 10, nullptr));
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{1, 4}));
}

TEST(ReadAndEvictTest, ReturnsTheEvictedRows) {
  const auto table = MakeTable(Rows(3, CacheStrategy::kLru), /*dim=*/2);
  const Keys old = {1, 2, 3};
  const float values[] = {1, 10, 2, 20, 3, 30};
  ASSERT_OK(table->Import(old, values, {}, {}, Keys{5, 4, 6}, {}, 0, 1));
  Keys gone = {77};
  std::vector<float> gone_values;
  std::vector<float> out(8, -1.0f);
  // 3 exists, 8 is new and occurs twice, 9 is new: two rows must be evicted, by
  // age.
  ASSERT_OK(table->ReadAndEvict(Keys{3, 8, 9, 8}, 7, out.data(), &gone,
                                &gone_values));
  EXPECT_EQ(out, (std::vector<float>{3, 30, 0, 0, 0, 0, 0, 0}));
  std::map<int64_t, std::vector<float>> pushed_out;
  ASSERT_EQ(gone.size(), 2u);
  ASSERT_EQ(gone_values.size(), 4u);
  for (size_t i = 0; i < gone.size(); ++i) {
    pushed_out[gone[i]] = {gone_values[2 * i], gone_values[2 * i + 1]};
  }
  EXPECT_EQ(pushed_out, (std::map<int64_t, std::vector<float>>{{1, {1, 10}},
                                                               {2, {2, 20}}}));
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{3, 8, 9}));
  EXPECT_EQ(table->stats().evicted_rows, 2);
  // The same read again inserts and evicts nothing.
  ASSERT_OK(
      table->ReadAndEvict(Keys{9, 3}, 8, out.data(), &gone, &gone_values));
  EXPECT_TRUE(gone.empty());
  EXPECT_TRUE(gone_values.empty());
  EXPECT_EQ(out[2], 3.0f);
}

TEST(ReadAndEvictTest, MoreThanTheTableHolds) {
  const auto table = MakeTable(Rows(2, CacheStrategy::kLfu));
  Keys gone;
  std::vector<float> gone_values, out(5);
  ASSERT_OK(table->ReadAndEvict(Keys{1, 2, 3, 4, 5}, 1, out.data(), &gone,
                                &gone_values));
  EXPECT_EQ(gone.size(), 3u);
  EXPECT_EQ(table->size(), 2);
}

TEST(ReadAndEvictTest, WithoutCapacityNothingIsEvicted) {
  const auto table = MakeTable(CapacityOptions());
  Keys gone = {1};
  std::vector<float> gone_values, out(2);
  ASSERT_OK(
      table->ReadAndEvict(Keys{4, -4}, -1, out.data(), &gone, &gone_values));
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(KeysOf(*table), (std::set<int64_t>{-4, 4}));
  TableOptions options;
  options.name = "fresh";
  options.dim = 1;
  EmbeddingTable fresh(options);
  const Status status =
      fresh.ReadAndEvict(Keys{1}, 1, out.data(), &gone, &gone_values);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("fresh"), std::string::npos);
}

TEST(CapacityTest, BytesBoundRowsSlotsAndIndex) {
  CapacityOptions capacity;
  capacity.max_bytes = 8 << 20;
  capacity.strategy = CacheStrategy::kLru;
  const auto table = MakeTable(capacity, /*dim=*/16);
  int64_t most = 0;
  for (int64_t step = 0; step < 40; ++step) {
    Keys keys(4000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = step * 4000 + i;
    Train(table.get(), keys, step);
    most = std::max(most, table->size());
  }
  // 16 floats of value, 16 of slot, 16 bytes of meta, 24 of index.
  EXPECT_EQ(most, (8 << 20) / (128 + 40));
  // Rows are allocated in slabs of 2 MiB, and a batch is inserted before the
  // eviction. If rows are also on an SSD, the few on a GPU take a block of 8
  // MiB in its memory, and the place of each of some 54,000 rows takes 8 bytes.
  const bool has_piece = testing::StorageUnderTest() == RowStorage::kHbmDramSsd;
  // A GPU that accesses all rows also has their keys, 16 to 32 bytes each, and
  // if some are in CPU memory, 12 bytes for the place of each.
  const bool has_keys = testing::StorageUnderTest() == RowStorage::kHbm ||
                        testing::StorageUnderTest() == RowStorage::kHbmDram;
  const TableStats stats = table->stats();
  EXPECT_LE(stats.row_bytes + stats.index_bytes,
            (8 << 20) + (5 << 20) + (has_piece ? (8 << 20) + (1 << 19) : 0) +
                (has_keys ? (32 + 12) * most : 0));
}

TEST(CapacityTest, ABigTableKeepsMostOfWhatIsHot) {
  // 20,000 rows are too many to consider all for eviction. Half of each batch
  // is of 5,000 keys that return again and again; the keys of the other half
  // never return.
  for (const CacheStrategy strategy :
       {CacheStrategy::kLru, CacheStrategy::kLfu}) {
    const auto table = MakeTable(Rows(20000, strategy));
    std::mt19937_64 random(7);
    int64_t cold = 1 << 20;
    for (int64_t step = 0; step < 60; ++step) {
      Keys keys;
      for (int i = 0; i < 2000; ++i) {
        keys.push_back(static_cast<int64_t>(random() % 5000));
        keys.push_back(cold++);
      }
      Train(table.get(), keys, step);
      ASSERT_LE(table->size(), 20000);
    }
    const std::set<int64_t> left = KeysOf(*table);
    EXPECT_EQ(left.size(), 20000u);
    const int64_t hot = std::distance(left.begin(), left.lower_bound(5000));
    EXPECT_GT(hot, 4300) << "strategy " << static_cast<int>(strategy);
  }
}

TEST(CapacityTest, ThreadsDoNotChangeWhatIsEvicted) {
  testing::ThreadPool pool(4);
  for (const CacheStrategy strategy : kCacheStrategies) {
    const auto alone = MakeTable(Rows(9000, strategy));
    const auto together = MakeTable(Rows(9000, strategy));
    std::mt19937_64 random(11);
    for (int64_t step = 0; step < 20; ++step) {
      Keys keys(6000);
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % 40000);
      Train(alone.get(), keys, step);
      Train(together.get(), keys, step, &pool);
    }
    TableSnapshot a, b;
    ASSERT_OK(alone->Export(std::vector<std::string>{"Adagrad"}, &a));
    ASSERT_OK(together->Export(std::vector<std::string>{"Adagrad"}, &b));
    EXPECT_EQ(a.keys.size(), 9000u);
    EXPECT_EQ(a.keys, b.keys);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(a.slots, b.slots);
    EXPECT_EQ(alone->stats().evicted_rows, together->stats().evicted_rows);
  }
}

TEST(CapacityTest, EvictionWhileOthersReadAndTrain) {
  const auto table = MakeTable(Rows(300, CacheStrategy::kLru));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int64_t step = 0; step < 60; ++step) {
        Keys keys(200);
        for (int64_t& key : keys) key = static_cast<int64_t>(random() % 2000);
        Train(table.get(), keys, step);
      }
    });
  }
  threads.emplace_back([&] {
    Keys keys(2000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    std::vector<float> out(keys.size());
    for (int i = 0; i < 60; ++i) {
      ASSERT_OK(table->Gather(keys, out.data(), nullptr));
      for (const float value : out) ASSERT_GE(value, 0.0f);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(table->size(), 300);
}

TEST(EvictionHandTest, GoesRoundAndMeetsEveryKeyOnce) {
  HashIndex index;
  testing::CountingRowSource source;
  Keys keys(50000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = 3 * i;
  std::vector<RowHandle> handles(keys.size());
  ASSERT_OK(index.FindOrInsert(keys, &source, handles.data(), nullptr));
  EvictionHand hand;
  std::vector<EvictionCandidate> candidates;
  std::set<int64_t> met;
  for (int i = 0; i < 9; ++i) {
    hand.Next(index, 5000, &candidates);
    ASSERT_EQ(candidates.size(), 5000u);
    for (const EvictionCandidate& candidate : candidates) {
      EXPECT_TRUE(met.insert(candidate.key).second);
    }
  }
  EXPECT_EQ(met.size(), 45000u);
  // Across the end of a round, with keys that have been erased since.
  index.Erase(Span<const int64_t>(keys.data(), 20000), nullptr);
  hand.Next(index, 29000, &candidates);
  std::set<int64_t> again;
  for (const EvictionCandidate& candidate : candidates) {
    EXPECT_GE(candidate.key, 60000);
    EXPECT_TRUE(again.insert(candidate.key).second);
  }
  EXPECT_EQ(again.size(), 29000u);
  // All keys of a small table, and all if that many are requested.
  hand.Next(index, 30000, &candidates);
  EXPECT_EQ(candidates.size(), 30000u);
  index.Erase(Span<const int64_t>(keys.data(), 49000), nullptr);
  hand.Next(index, 5, &candidates);
  EXPECT_EQ(candidates.size(), 1000u);
}

}  // namespace
}  // namespace ev
