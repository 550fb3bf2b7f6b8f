// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/embedding_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

#define EXPECT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    EXPECT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

void ExpectError(StatusCode code, const std::string& part,
                 const Status& status) {
  EXPECT_EQ(code, status.code()) << status.message();
  EXPECT_NE(std::string::npos, status.message().find(part)) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"))
      << status.message();
}

TableOptions Options(int64_t dim, bool with_meta = false) {
  TableOptions options;
  options.name = "user";
  options.dim = dim;
  testing::PutUnderTest(&options);
  options.record_frequency = with_meta;
  options.record_version = with_meta;
  return options;
}

// Default row r is r + 0.5 in every element.
std::vector<float> DefaultRows(int64_t rows, int64_t dim) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) values.insert(values.end(), dim, r + 0.5f);
  return values;
}

class EmbeddingTableTest : public ::testing::Test {
 protected:
  void SetUp() override { EXPECT_OK(table_.Initialize(DefaultRows(3, 2), 3)); }

  std::vector<float> Read(const std::vector<int64_t>& keys) {
    std::vector<float> out(keys.size() * 2, -1.0f);
    EXPECT_OK(table_.Gather(keys, out.data(), &pool_));
    return out;
  }
  Status Write(const std::vector<int64_t>& keys,
               const std::vector<float>& values, int64_t step = 0) {
    return table_.WriteRows(keys, {}, values.data(), {}, nullptr, step, &pool_);
  }
  std::vector<float> ReadSlot(const std::vector<int64_t>& keys,
                              const SlotSpec& slot) {
    std::vector<float> values(keys.size() * 2), out(keys.size() * 2, -1.0f);
    const std::vector<SlotSpec> slots = {slot};
    const std::vector<float*> outs = {out.data()};
    EXPECT_OK(table_.ReadRows(keys, slots, values.data(), outs, &pool_));
    return out;
  }

  testing::ThreadPool pool_{2};
  EmbeddingTable table_{Options(2, true)};
};

TEST_F(EmbeddingTableTest, AbsentKeysReadTheirDefaultRowAndAreNotInserted) {
  EXPECT_EQ((std::vector<float>{0.5f, 0.5f, 1.5f, 1.5f, 2.5f, 2.5f}),
            Read({3, 4, -1}));
  EXPECT_EQ(0, table_.size());
}

TEST_F(EmbeddingTableTest, EveryInt64IsAKey) {
  const std::vector<int64_t> keys = {kMin, kMin + 1, -1, 0, 1, kMax - 1, kMax};
  std::vector<float> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    values.insert(values.end(), 2, 10.0f + i);
  }
  // FloorMod of negative keys too.
  EXPECT_EQ(1.5f, Read({kMin})[0]);  // -2^63 = 1 (mod 3)
  EXPECT_OK(Write(keys, values));
  EXPECT_EQ(values, Read(keys));
  EXPECT_EQ(7, table_.size());
  EXPECT_EQ(7, testing::Erased(&table_, keys));
  EXPECT_EQ(0, table_.size());
  EXPECT_EQ(1.5f, Read({kMin})[0]);
}

TEST_F(EmbeddingTableTest, NewKeysStartFromTheirDefaultRowAndInitialSlots) {
  const SlotSpec slot{"Adagrad", 0.25f};
  EXPECT_OK(Write({7}, {1, 2}));
  EXPECT_EQ((std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f}),
            ReadSlot({7, 8}, slot));
  EXPECT_EQ(1, table_.size());
}

TEST_F(EmbeddingTableTest, SlotsWidenLiveRowsAndKeepTheirValues) {
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (int64_t k = 0; k < 10000; ++k) {
    keys.push_back(k * k - 5000);
    values.push_back(k);
    values.push_back(-k);
  }
  EXPECT_OK(Write(keys, values));
  std::vector<int> columns;
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 1.0f}, {"v", 2.0f}},
                               &columns));
  EXPECT_EQ((std::vector<int>{0, 1}), columns);
  EXPECT_EQ(values, Read(keys));
  // A third slot is added later, given among existing ones and in another
  // order.
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"u", 3.0f}, {"v", 2.0f}},
                               &columns));
  EXPECT_EQ((std::vector<int>{2, 1}), columns);
  EXPECT_EQ(values, Read(keys));
  EXPECT_EQ(std::vector<float>(values.size(), 1.0f),
            ReadSlot(keys, {"m", 1.0f}));
  EXPECT_EQ(std::vector<float>(values.size(), 3.0f),
            ReadSlot(keys, {"u", 3.0f}));
}

TEST_F(EmbeddingTableTest, TheNewerInitialValueCountsForNewRows) {
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 1.0f}}, nullptr));
  EXPECT_OK(Write({1}, {0, 0}));
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 5.0f}}, nullptr));
  EXPECT_OK(Write({2}, {0, 0}));
  EXPECT_EQ((std::vector<float>{1, 1, 5, 5}), ReadSlot({1, 2}, {"m", 5.0f}));
}

TEST_F(EmbeddingTableTest, RejectsSlotsWithoutAnOwnName) {
  ExpectError(StatusCode::kInvalidArgument, "slot 'm' is named twice",
              table_.EnsureSlots(
                  std::vector<SlotSpec>{{"m", 1.0f}, {"m", 2.0f}}, nullptr));
  ExpectError(StatusCode::kInvalidArgument, "needs a name",
              table_.EnsureSlots(std::vector<SlotSpec>{{"", 1.0f}}, nullptr));
  EXPECT_TRUE(table_.slots().empty());
}

TEST_F(EmbeddingTableTest, WriteThenReadRowsWithSlots) {
  const std::vector<SlotSpec> slots = {{"a", 0.0f}, {"b", 0.0f}};
  const std::vector<float> values = {1, 2, 3, 4}, a = {5, 6, 7, 8},
                           b = {9, 10, 11, 12};
  const std::vector<const float*> in = {a.data(), b.data()};
  const std::vector<int64_t> keys = {100, -100};
  EXPECT_OK(
      table_.WriteRows(keys, slots, values.data(), in, nullptr, 3, &pool_));
  std::vector<float> v(4), a2(4), b2(4);
  const std::vector<float*> out = {b2.data(), a2.data()};
  EXPECT_OK(table_.ReadRows(keys, std::vector<SlotSpec>{slots[1], slots[0]},
                            v.data(), out, &pool_));
  EXPECT_EQ(values, v);
  EXPECT_EQ(a, a2);
  EXPECT_EQ(b, b2);
}

TEST_F(EmbeddingTableTest, WriteRejectsAKeyThatComesTwiceAndChangesNothing) {
  ExpectError(StatusCode::kInvalidArgument, "3 keys of which 2 are distinct",
              Write({5, 6, 5}, {1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(0, table_.size());
}

TEST_F(EmbeddingTableTest, WriteChecksTheNumberOfSlots) {
  const float values[2] = {1, 1};
  const std::vector<int64_t> keys = {5};
  ExpectError(StatusCode::kInvalidArgument, "expected 1 slot inputs, got 0",
              table_.WriteRows(keys, std::vector<SlotSpec>{{"m", 0.0f}}, values,
                               {}, nullptr, 0, &pool_));
  EXPECT_EQ(0, table_.size());
  EXPECT_TRUE(table_.slots().empty());
}

TEST_F(EmbeddingTableTest, MetaCountsOccurrencesAndTheLastStep) {
  const std::vector<int64_t> keys = {8, 9};
  const std::vector<float> values(4);
  const std::vector<int64_t> counts = {3, 4};
  EXPECT_OK(
      table_.WriteRows(keys, {}, values.data(), {}, counts.data(), 10, &pool_));
  EXPECT_OK(Write({9}, {0, 0}, 12));
  std::vector<int64_t> frequency(3), version(3);
  EXPECT_OK(table_.GetMeta(std::vector<int64_t>{8, 9, 10}, frequency.data(),
                           version.data()));
  EXPECT_EQ((std::vector<int64_t>{3, 5, 0}), frequency);
  EXPECT_EQ((std::vector<int64_t>{10, 12, -1}), version);
}

TEST_F(EmbeddingTableTest, FrequenciesSaturateAndVersionsDoNot) {
  const std::vector<int64_t> key = {8};
  const std::vector<float> values(2);
  const std::vector<int64_t> counts = {kMax};
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(table_.WriteRows(key, {}, values.data(), {}, counts.data(), kMax,
                               &pool_));
  }
  int64_t frequency, version;
  EXPECT_OK(table_.GetMeta(key, &frequency, &version));
  EXPECT_EQ(4294967295, frequency);
  EXPECT_EQ(kMax, version);
}

TEST(EmbeddingTableMetaTest, WithoutRecordingNumbersHaveTheirDefaults) {
  EmbeddingTable table(Options(1, false));
  EXPECT_OK(table.Initialize(DefaultRows(1, 1), 1));
  const float value = 1;
  const std::vector<int64_t> key = {8};
  EXPECT_OK(table.WriteRows(key, {}, &value, {}, nullptr, 3, nullptr));
  int64_t frequency = 7, version = 7;
  EXPECT_OK(table.GetMeta(key, &frequency, &version));
  EXPECT_EQ(0, frequency);
  EXPECT_EQ(-1, version);
}

TEST_F(EmbeddingTableTest, EraseForgetsAndGivesMemoryBack) {
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 300000; ++k) keys.push_back(k);
  EXPECT_OK(Write(keys, std::vector<float>(keys.size() * 2, 3.0f)));
  const TableStats before = table_.stats();
  EXPECT_EQ(300000, before.rows);
  EXPECT_EQ(300000, before.inserted_rows);
  EXPECT_EQ(300000, testing::Erased(&table_, keys));
  EXPECT_EQ(0, testing::Erased(&table_, keys));
  const TableStats after = table_.stats();
  EXPECT_EQ(0, after.rows);
  EXPECT_LT(after.row_bytes, before.row_bytes / 4);
  EXPECT_EQ(0.5f, Read({0})[0]);
  EXPECT_OK(Write({0}, {9, 9}));
  EXPECT_EQ(9.0f, Read({0})[0]);
  int64_t frequency, version;
  EXPECT_OK(table_.GetMeta(std::vector<int64_t>{0}, &frequency, &version));
  EXPECT_EQ(1, frequency);  // without the count of the erased row
}

TEST_F(EmbeddingTableTest, ClearKeepsDefaultRowsAndSlots) {
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 1.0f}}, nullptr));
  EXPECT_OK(Write({1, 2}, {1, 1, 2, 2}));
  EXPECT_OK(table_.Clear());
  EXPECT_EQ(0, table_.size());
  EXPECT_EQ(1.5f, Read({1})[0]);
  EXPECT_EQ(1u, table_.slots().size());
}

TEST_F(EmbeddingTableTest, InitializeAgainForgetsEverything) {
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 1.0f}}, nullptr));
  EXPECT_OK(Write({1, 2}, {1, 1, 2, 2}));
  EXPECT_OK(table_.Initialize(std::vector<float>{7, 7}, 1));
  EXPECT_EQ(0, table_.size());
  EXPECT_TRUE(table_.slots().empty());
  EXPECT_EQ((std::vector<float>{7, 7}), Read({1}));
}

TEST_F(EmbeddingTableTest, InitializeRejectsWhatDoesNotFitAndKeepsTheTable) {
  EXPECT_OK(Write({1}, {4, 4}));
  ExpectError(StatusCode::kInvalidArgument,
              "expected 2 default rows of dim 2, got 3 values",
              table_.Initialize(std::vector<float>{1, 2, 3}, 2));
  ExpectError(StatusCode::kInvalidArgument, "at least 1 default row",
              table_.Initialize(std::vector<float>{}, 0));
  EXPECT_EQ(4.0f, Read({1})[0]);
  EmbeddingTable flat(Options(0));
  ExpectError(StatusCode::kInvalidArgument, "dim: expected at least 1, got 0",
              flat.Initialize(std::vector<float>{}, 1));
}

TEST(EmbeddingTableUninitializedTest, CallsFailUntilInitialize) {
  EmbeddingTable table(Options(2));
  EXPECT_FALSE(table.initialized());
  EXPECT_EQ(0, table.size());
  EXPECT_EQ(0, table.stats().rows);
  const std::vector<int64_t> keys = {1};
  float row[2];
  int64_t meta;
  TableSnapshot snapshot;
  const auto expect = [](const Status& status) {
    ExpectError(StatusCode::kFailedPrecondition, "not initialized", status);
  };
  expect(table.Gather(keys, row, nullptr));
  expect(table.GetMeta(keys, &meta, &meta));
  expect(table.ReadRows(keys, {}, row, {}, nullptr));
  expect(table.WriteRows(keys, {}, row, {}, nullptr, 0, nullptr));
  expect(table.EnsureSlots(std::vector<SlotSpec>{{"m", 0.0f}}, nullptr));
  expect(table.Export({}, &snapshot));
  expect(table.Import(keys, row, {}, {}, {}, {}, 0, 1));
  expect(table.Clear());
  EXPECT_EQ(0, testing::Erased(&table, keys));
}

// --- Export and import ---

int64_t Partition(int64_t key) { return ((key % 1000) + 1000) % 1000; }

TEST_F(EmbeddingTableTest, ExportIsSortedByPartitionAndKey) {
  std::mt19937_64 random(1);
  std::map<int64_t, float> model;
  std::vector<int64_t> keys = {kMin, kMax, 0, -1, 1000, -1000, 999};
  for (int i = 0; i < 5000; ++i) keys.push_back(random());
  std::vector<float> values;
  for (int64_t key : keys) {
    const float v = static_cast<float>(random() % 1000);
    model[key] = v;
    values.push_back(v);
    values.push_back(v + 1);
  }
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 4.0f}}, nullptr));
  EXPECT_OK(Write(keys, values, 6));
  TableSnapshot snapshot;
  EXPECT_OK(table_.Export(std::vector<std::string>{"m"}, &snapshot));
  ASSERT_EQ(keys.size(), snapshot.keys.size());
  ASSERT_EQ(keys.size() * 2, snapshot.values.size());
  ASSERT_EQ(1u, snapshot.slots.size());
  EXPECT_EQ(std::vector<float>(keys.size() * 2, 4.0f), snapshot.slots[0]);
  EXPECT_EQ(std::vector<int64_t>(keys.size(), 6), snapshot.versions);
  EXPECT_EQ(std::vector<int64_t>(keys.size(), 1), snapshot.frequencies);
  ASSERT_EQ(1001u, snapshot.partition_offset.size());
  EXPECT_EQ(0, snapshot.partition_offset[0]);
  EXPECT_EQ(static_cast<int32_t>(keys.size()), snapshot.partition_offset[1000]);
  for (int p = 0; p < 1000; ++p) {
    for (int i = snapshot.partition_offset[p];
         i < snapshot.partition_offset[p + 1]; ++i) {
      ASSERT_EQ(p, Partition(snapshot.keys[i]));
      if (i > snapshot.partition_offset[p]) {
        ASSERT_LT(snapshot.keys[i - 1], snapshot.keys[i]);
      }
      ASSERT_EQ(model.at(snapshot.keys[i]), snapshot.values[2 * i]);
      ASSERT_EQ(model.at(snapshot.keys[i]) + 1, snapshot.values[2 * i + 1]);
    }
  }
}

TEST_F(EmbeddingTableTest, ExportDoesNotDependOnTheOrderOfInsertion) {
  std::vector<int64_t> keys;
  for (int64_t k = -500; k < 500; ++k) keys.push_back(k * 7919);
  EmbeddingTable other(Options(2, true));
  EXPECT_OK(other.Initialize(DefaultRows(3, 2), 3));
  TableSnapshot a, b;
  for (EmbeddingTable* table : {&table_, &other}) {
    for (int64_t key : keys) {
      const float row[2] = {static_cast<float>(key), 1.0f};
      EXPECT_OK(table->WriteRows(std::vector<int64_t>{key}, {}, row, {},
                                 nullptr, 0, nullptr));
    }
    std::reverse(keys.begin(), keys.end());
  }
  EXPECT_OK(table_.Export({}, &a));
  EXPECT_OK(other.Export({}, &b));
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
}

TEST_F(EmbeddingTableTest, ExportOfAnEmptyTable) {
  TableSnapshot snapshot;
  EXPECT_OK(table_.Export({}, &snapshot));
  EXPECT_TRUE(snapshot.keys.empty());
  EXPECT_EQ(std::vector<int32_t>(1001, 0), snapshot.partition_offset);
}

TEST_F(EmbeddingTableTest, ExportOfAnUnknownSlot) {
  TableSnapshot snapshot;
  ExpectError(StatusCode::kNotFound, "no slot 'v'",
              table_.Export(std::vector<std::string>{"v"}, &snapshot));
}

TEST_F(EmbeddingTableTest, ImportRestoresWhatWasExported) {
  const std::vector<SlotSpec> slots = {{"m", 4.0f}};
  std::vector<int64_t> keys;
  std::vector<float> values, m;
  for (int64_t k = 0; k < 3000; ++k) {
    keys.push_back(k * 1234567 - 99);
    for (int j = 0; j < 2; ++j) {
      values.push_back(k + j);
      m.push_back(2 * k + j);
    }
  }
  const std::vector<const float*> in = {m.data()};
  EXPECT_OK(
      table_.WriteRows(keys, slots, values.data(), in, nullptr, 3, &pool_));
  TableSnapshot before, after;
  EXPECT_OK(table_.Export(std::vector<std::string>{"m"}, &before));
  EmbeddingTable other(Options(2, true));
  EXPECT_OK(other.Initialize(DefaultRows(3, 2), 3));
  const std::vector<const float*> saved = {before.slots[0].data()};
  EXPECT_OK(other.Import(before.keys, before.values.data(), slots, saved,
                         before.versions, before.frequencies, 0, 1));
  EXPECT_OK(other.Export(std::vector<std::string>{"m"}, &after));
  EXPECT_EQ(before.keys, after.keys);
  EXPECT_EQ(before.values, after.values);
  EXPECT_EQ(before.slots, after.slots);
  EXPECT_EQ(before.versions, after.versions);
  EXPECT_EQ(before.frequencies, after.frequencies);
}

TEST_F(EmbeddingTableTest, ImportSlotGoesToKeysThatHaveARow) {
  const SlotSpec slot{"m", 4.0f};
  const std::vector<int64_t> keys = {7, -5, 2000};
  EXPECT_OK(table_.Import(keys, std::vector<float>(6, 1.0f).data(), {}, {}, {},
                          {}, 0, 1));
  // In another order, with one key twice and one that has no row.
  const std::vector<int64_t> given = {2000, 99, 7, 7};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_OK(table_.ImportSlot(given, slot, rows.data()));
  EXPECT_EQ(table_.size(), 3);
  TableSnapshot snapshot;
  EXPECT_OK(table_.Export(std::vector<std::string>{"m"}, &snapshot));
  EXPECT_EQ(snapshot.keys, (std::vector<int64_t>{2000, 7, -5}));
  EXPECT_EQ(snapshot.slots[0], (std::vector<float>{1, 2, 7, 8, 4, 4}));
  EXPECT_EQ(snapshot.values, std::vector<float>(6, 1.0f));
}

TEST_F(EmbeddingTableTest, UninitializeMakesCallsFail) {
  EXPECT_OK(table_.Import(std::vector<int64_t>{7}, std::vector<float>(2).data(),
                          {}, {}, {}, {}, 0, 1));
  table_.Uninitialize();
  EXPECT_FALSE(table_.initialized());
  EXPECT_EQ(table_.size(), 0);
  float row[2];
  ExpectError(StatusCode::kFailedPrecondition, "not initialized",
              table_.Gather(std::vector<int64_t>{7}, row, nullptr));
  EXPECT_OK(table_.Initialize(DefaultRows(1, 2), 1));
  EXPECT_OK(table_.Gather(std::vector<int64_t>{7}, row, nullptr));
}

TEST_F(EmbeddingTableTest, ImportKeepsOnlyItsPart) {
  std::vector<int64_t> keys;
  for (int64_t k = -3000; k < 3000; ++k) keys.push_back(k * 31);
  const std::vector<float> values(keys.size() * 2, 1.0f);
  int64_t total = 0;
  for (int part = 0; part < 3; ++part) {
    EmbeddingTable shard(Options(2));
    EXPECT_OK(shard.Initialize(DefaultRows(1, 2), 1));
    EXPECT_OK(shard.Import(keys, values.data(), {}, {}, {}, {}, part, 3));
    TableSnapshot snapshot;
    EXPECT_OK(shard.Export({}, &snapshot));
    for (int64_t key : snapshot.keys) EXPECT_EQ(part, Partition(key) % 3);
    total += shard.size();
  }
  EXPECT_EQ(static_cast<int64_t>(keys.size()), total);
}

TEST_F(EmbeddingTableTest, ImportOverwritesAndFillsWhatIsNotGiven) {
  EXPECT_OK(table_.EnsureSlots(std::vector<SlotSpec>{{"m", 4.0f}, {"v", 5.0f}},
                               nullptr));
  const std::vector<int64_t> keys = {1};
  const std::vector<float> old = {1, 1};
  const std::vector<const float*> old_slots = {old.data(), old.data()};
  EXPECT_OK(table_.WriteRows(keys,
                             std::vector<SlotSpec>{{"m", 4.0f}, {"v", 5.0f}},
                             old.data(), old_slots, nullptr, 9, &pool_));
  const std::vector<float> fresh = {8, 9};
  const std::vector<const float*> fresh_slots = {fresh.data()};
  EXPECT_OK(table_.Import(keys, fresh.data(),
                          std::vector<SlotSpec>{{"v", 5.0f}}, fresh_slots, {},
                          {}, 0, 1));
  EXPECT_EQ(fresh, Read({1}));
  EXPECT_EQ((std::vector<float>{4, 4}), ReadSlot({1}, {"m", 4.0f}));
  EXPECT_EQ(fresh, ReadSlot({1}, {"v", 5.0f}));
  int64_t frequency, version;
  EXPECT_OK(table_.GetMeta(keys, &frequency, &version));
  EXPECT_EQ(0, frequency);
  EXPECT_EQ(-1, version);
}

TEST_F(EmbeddingTableTest, ImportRejectsWhatDoesNotFitAndChangesNothing) {
  const std::vector<int64_t> keys = {1, 2}, one = {1};
  const std::vector<float> values(4);
  ExpectError(StatusCode::kInvalidArgument, "expected 2 versions, got 1",
              table_.Import(keys, values.data(), {}, {}, one, {}, 0, 1));
  ExpectError(StatusCode::kInvalidArgument, "expected 2 frequencies, got 1",
              table_.Import(keys, values.data(), {}, {}, {}, one, 0, 1));
  ExpectError(StatusCode::kInvalidArgument, "got part 2 of 2",
              table_.Import(keys, values.data(), {}, {}, {}, {}, 2, 2));
  ExpectError(
      StatusCode::kInvalidArgument, "expected 1 slot inputs, got 0",
      table_.Import(keys, values.data(), std::vector<SlotSpec>{{"m", 0.0f}}, {},
                    {}, {}, 0, 1));
  EXPECT_EQ(0, table_.size());
  EXPECT_TRUE(table_.slots().empty());
}

TEST(Int32KeysTest, EveryCallRejectsOtherKeys) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  TableOptions options = Options(1, true);
  options.int32_keys = true;
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 2;
  EmbeddingTable table(options);
  EXPECT_OK(table.Initialize(DefaultRows(3, 1), 3));
  const std::vector<int64_t> all = {kLeast, -1, 0, kMost};
  const std::vector<float> ones(4, 1.0f);
  EXPECT_OK(table.WriteRows(all, {}, ones.data(), {}, nullptr, 1, nullptr));
  for (const int64_t bad :
       {(int64_t{1} << 40) + 1, kMost + 1, kLeast - 1, kMin, kMax}) {
    const std::vector<int64_t> keys = {5, bad};
    std::vector<int64_t> ints(2), other(2), gone;
    std::vector<float> out(2), values;
    std::vector<int32_t> admitted;
    const auto expect_refused = [&](const Status& status) {
      ExpectError(StatusCode::kInvalidArgument,
                  "id " + std::to_string(bad) + " does not fit into int32",
                  status);
      ExpectError(StatusCode::kInvalidArgument, "[-2147483648, 2147483647]",
                  status);
    };
    expect_refused(table.CheckKeys(keys));
    expect_refused(table.Gather(keys, out.data(), nullptr));
    expect_refused(table.GetMeta(keys, ints.data(), other.data()));
    expect_refused(table.ReadRows(keys, {}, out.data(), {}, nullptr));
    expect_refused(table.Admit(keys, nullptr, 1, &admitted));
    expect_refused(
        table.WriteRows(keys, {}, ones.data(), {}, nullptr, 1, nullptr));
    expect_refused(table.ReadAndEvict(keys, 1, out.data(), &gone, &values));
    expect_refused(table.Import(keys, ones.data(), {}, {}, {}, {}, 0, 1));
    expect_refused(table.ImportFiltered(keys, {}, {}, 0, 1));
    EXPECT_EQ(0, testing::Erased(&table, std::vector<int64_t>{bad}));
    EXPECT_EQ(4, table.size()) << "nothing was inserted";
    EXPECT_EQ(0, table.stats().filtered_keys);
  }
  // Keys of another part are not checked.
  EXPECT_OK(table.Import(std::vector<int64_t>{2, kMost + 2}, ones.data(), {},
                         {}, {}, {}, 0, 2));
  std::vector<float> out(4);
  EXPECT_OK(table.Gather(all, out.data(), nullptr));
  EXPECT_EQ(ones, out);
}

TEST_F(EmbeddingTableTest, NoKeysIsNoWork) {
  EXPECT_OK(Write({}, {}));
  EXPECT_TRUE(Read({}).empty());
  EXPECT_EQ(0, testing::Erased(&table_, {}));
  EXPECT_OK(table_.Import({}, nullptr, {}, {}, {}, {}, 0, 1));
}

}  // namespace
}  // namespace ev
