// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that a copy to which a table's deltas are applied stays equal to the
// table.

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/ids/key_partition.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Keys = std::vector<int64_t>;
using Filter = AdmissionOptions::Filter;

const std::vector<std::string> kSlots = {"Adagrad"};
const std::vector<SlotSpec> kSpecs = {{"Adagrad", 0.5f}};

// Each partition's keys are those from its offset up to the next one.
void ExpectOffsets(const Keys& keys, const std::vector<int32_t>& offsets) {
  ASSERT_EQ(1001u, offsets.size());
  EXPECT_EQ(0, offsets[0]);
  EXPECT_EQ(static_cast<int32_t>(keys.size()), offsets[1000]);
  for (int64_t p = 0; p < 1000; ++p) {
    ASSERT_LE(offsets[p], offsets[p + 1]) << p;
    for (int32_t i = offsets[p]; i < offsets[p + 1]; ++i) {
      EXPECT_EQ(p, KeyPartition(keys[i])) << keys[i];
    }
  }
}

TableOptions Options() {
  TableOptions options;
  options.name = "user";
  options.dim = 2;
  testing::PutUnderTest(&options);
  options.record_frequency = options.record_version = true;
  return options;
}

class Table {
 public:
  explicit Table(TableOptions options) {
    // Each table has files of its own.
    testing::PutUnderTest(&options);
    table_ = std::make_shared<EmbeddingTable>(options);
    Initialize();
    EXPECT_TRUE(table_->EnsureSlots(kSpecs, nullptr).ok());
  }
  EmbeddingTable* operator->() const { return table_.get(); }
  EmbeddingTable* get() const { return table_.get(); }

  void Initialize() {
    const std::vector<float> rows = {1, 2, 3, 4};
    const Status status = table_->Initialize(rows, 2);
    EXPECT_TRUE(status.ok()) << status.message();
  }

  void Train(const Keys& keys, int64_t step) {
    const std::vector<float> grads(keys.size() * 2, 0.25f);
    const std::vector<float> hyper = {0.5f};
    UpdateInput in;
    in.table = table_.get();
    in.keys = keys;
    in.grads = grads.data();
    const std::vector<std::vector<SlotSpec>> slots = {kSpecs};
    const Status status =
        ApplyRule("Adagrad", hyper, Span<const UpdateInput>(&in, 1), slots,
                  step, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  void Write(const Keys& keys, float value) {
    const std::vector<float> values(keys.size() * 2, value);
    const float* slot = values.data();
    ASSERT_OK(table_->WriteRows(keys, kSpecs, values.data(),
                                Span<const float* const>(&slot, 1), nullptr, 1,
                                nullptr));
  }

  int64_t Cut() {
    int64_t cut = 0;
    const Status status = table_->CutChanges(&cut);
    EXPECT_TRUE(status.ok()) << status.message();
    return cut;
  }

  TableDelta Since(int64_t cut) {
    TableDelta delta;
    const Status status = table_->ExportChanges(cut, kSlots, &delta);
    EXPECT_TRUE(status.ok()) << status.message();
    ExpectOffsets(delta.changed.keys, delta.changed.partition_offset);
    ExpectOffsets(delta.changed.filtered_keys,
                  delta.changed.filtered_partition_offset);
    return delta;
  }

  TableSnapshot All() const {
    TableSnapshot all;
    const Status status = table_->Export(kSlots, &all);
    EXPECT_TRUE(status.ok()) << status.message();
    return all;
  }

  void Import(const TableSnapshot& rows) {
    const float* slot = rows.slots[0].data();
    ASSERT_OK(table_->Import(rows.keys, rows.values.data(), kSpecs,
                             Span<const float* const>(&slot, 1), rows.versions,
                             rows.frequencies, 0, 1));
    ASSERT_OK(table_->ImportFiltered(rows.filtered_keys, rows.filtered_versions,
                                     rows.filtered_frequencies, 0, 1));
  }

  void Apply(const TableDelta& delta) {
    if (delta.replaces) ASSERT_OK(table_->Clear());
    table_->Erase(delta.erased);
    Import(delta.changed);
  }

 private:
  std::shared_ptr<EmbeddingTable> table_;
};

void ExpectSame(const TableSnapshot& a, const TableSnapshot& b) {
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.slots, b.slots);
  EXPECT_EQ(a.versions, b.versions);
  EXPECT_EQ(a.frequencies, b.frequencies);
  EXPECT_EQ(a.partition_offset, b.partition_offset);
  EXPECT_EQ(a.filtered_keys, b.filtered_keys);
  EXPECT_EQ(a.filtered_versions, b.filtered_versions);
  EXPECT_EQ(a.filtered_frequencies, b.filtered_frequencies);
  EXPECT_EQ(a.filtered_partition_offset, b.filtered_partition_offset);
}

TEST(TableDeltaTest, OnlyWhatChangedIsExported) {
  Table table(Options());
  table.Train({1, 2, 3, -4}, 0);
  const int64_t cut = table.Cut();
  table.Train({2, 1002, 5}, 1);
  table.Write({-4}, 8.0f);
  const TableDelta delta = table.Since(cut);
  EXPECT_FALSE(delta.replaces);
  EXPECT_EQ((Keys{2, 1002, 5, -4}), delta.changed.keys);
  EXPECT_TRUE(delta.erased.empty());
  EXPECT_EQ(1001u, delta.changed.partition_offset.size());
  EXPECT_EQ(2, delta.changed.partition_offset[3]);
  EXPECT_EQ((std::vector<int64_t>{1, 1, 1, 1}), delta.changed.versions);
  // Lookups change nothing.
  std::vector<float> out(4);
  ASSERT_OK(table->Gather(Keys{2, 77}, out.data(), nullptr));
  EXPECT_TRUE(table.Since(delta.cut).changed.keys.empty());
}

TEST(TableDeltaTest, SlotsWithOneNumberPerRow) {
  Table table(Options());
  const std::vector<SlotSpec> slots = {{"a@row", 0.5f}};
  ASSERT_OK(table->EnsureSlots(slots, nullptr));
  const std::vector<float> values = {1, 2, 3, 4}, numbers = {7, 8};
  const std::vector<const float*> slot_values = {numbers.data()};
  const int64_t cut = table.Cut();
  ASSERT_OK(table->WriteRows(Keys{5, 6}, slots, values.data(), slot_values,
                             nullptr, 1, nullptr));
  TableDelta delta;
  ASSERT_OK(
      table->ExportChanges(cut, std::vector<std::string>{"a@row"}, &delta));
  EXPECT_EQ(delta.changed.keys, (Keys{5, 6}));
  EXPECT_EQ(delta.changed.values, values);
  EXPECT_EQ(delta.changed.slots[0], numbers);
}

TEST(TableDeltaTest, ExportingTwiceGivesTheSame) {
  Table table(Options());
  table.Train({1, 2}, 0);
  const int64_t cut = table.Cut();
  table.Train({2, 3}, 1);
  table->Erase(Keys{1});
  const TableDelta first = table.Since(cut);
  // The first delta is treated as lost.
  table.Train({4}, 2);
  const TableDelta second = table.Since(cut);
  EXPECT_EQ((Keys{2, 3}), first.changed.keys);
  EXPECT_EQ((Keys{2, 3, 4}), second.changed.keys);
  EXPECT_EQ(Keys{1}, second.erased);
}

TEST(TableDeltaTest, EveryWayToChangeARowIsNoticed) {
  Table table(Options());
  table.Write({1, 2, 3, 4, 5}, 1.0f);
  int64_t cut = table.Cut();
  const auto changed = [&] {
    const TableDelta delta = table.Since(cut);
    cut = delta.cut;
    return delta.changed.keys;
  };
  table.Train({1}, 7);
  EXPECT_EQ(Keys{1}, changed());
  table.Write({2}, 2.0f);
  EXPECT_EQ(Keys{2}, changed());
  const std::vector<float> values(2, 3.0f);
  int64_t inserted = 0;
  ASSERT_OK(InsertAbsent(table.get(), Keys{9}, values.data(), &inserted));
  EXPECT_EQ(Keys{9}, changed());
  ASSERT_OK(table->Import(Keys{3}, values.data(), {}, {}, {}, {}, 0, 1));
  EXPECT_EQ(Keys{3}, changed());
  // A row that was never updated gets its version from the first eviction.
  int64_t evicted = 0;
  ASSERT_OK(table->EvictStale(3, 100, &evicted));
  EXPECT_EQ((Keys{3, 9}), changed());
}

TEST(TableDeltaTest, ErasedAndEvictedKeysAreNamed) {
  Table table(Options());
  table.Train({1, 2, 3}, 0);
  table.Train({4, 5}, 9);
  int64_t cut = table.Cut();
  table->Erase(Keys{5, 77});
  int64_t evicted = 0;
  ASSERT_OK(table->EvictStale(10, 5, &evicted));
  ASSERT_EQ(3, evicted);
  table.Train({2}, 10);  // back again
  const TableDelta delta = table.Since(cut);
  EXPECT_EQ((Keys{1, 3, 5}), delta.erased);
  EXPECT_EQ(Keys{2}, delta.changed.keys);
}

TEST(TableDeltaTest, ARowThatTakesTheMemoryOfAnotherHasChanged) {
  Table table(Options());
  table.Train({1}, 0);
  const int64_t cut = table.Cut();
  table->Erase(Keys{1});
  table.Train({2}, 0);
  const TableDelta delta = table.Since(cut);
  EXPECT_EQ(Keys{1}, delta.erased);
  EXPECT_EQ(Keys{2}, delta.changed.keys);
}

TEST(TableDeltaTest, AnEmptiedTableIsExportedWhole) {
  Table table(Options());
  table.Train({1, 2}, 0);
  const int64_t cut = table.Cut();
  ASSERT_OK(table->Clear());
  table.Train({3}, 0);
  TableDelta delta = table.Since(cut);
  EXPECT_TRUE(delta.replaces);
  EXPECT_EQ(Keys{3}, delta.changed.keys);
  // The same after it was initialized again.
  table.Initialize();
  table.Train({4}, 0);
  delta = table.Since(delta.cut);
  EXPECT_TRUE(delta.replaces);
  EXPECT_EQ(Keys{4}, delta.changed.keys);
}

TEST(TableDeltaTest, Errors) {
  Table table(Options());
  TableDelta delta;
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            table->ExportChanges(1, kSlots, &delta).code());
  const int64_t cut = table.Cut();
  const Status no_cut = table->ExportChanges(cut + 1, kSlots, &delta);
  EXPECT_EQ(StatusCode::kInvalidArgument, no_cut.code());
  EXPECT_NE(std::string::npos, no_cut.message().find("table 'user'"));
  EXPECT_EQ(
      StatusCode::kNotFound,
      table->ExportChanges(cut, std::vector<std::string>{"m"}, &delta).code());
  EmbeddingTable uninitialized(Options());
  int64_t unused;
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            uninitialized.CutChanges(&unused).code());
}

TEST(TableDeltaTest, RowsOfAVersionAndLater) {
  Table table(Options());
  table.Train({1, 2}, 3);
  table.Train({2, 5}, 4);
  TableSnapshot newer;
  ASSERT_OK(table->ExportNewer(4, {}, &newer));
  EXPECT_EQ((Keys{2, 5}), newer.keys);
  EXPECT_EQ((std::vector<int64_t>{4, 4}), newer.versions);
  TableOptions options = Options();
  options.record_version = false;
  Table unversioned(options);
  EXPECT_EQ(StatusCode::kFailedPrecondition,
            unversioned->ExportNewer(4, {}, &newer).code());
}

TEST(TableDeltaTest, ACopyFollowsWhateverHappens) {
  for (const Filter filter : {Filter::kNone, Filter::kCounter}) {
    TableOptions options = Options();
    if (filter != Filter::kNone) {
      options.admission.filter = filter;
      options.admission.threshold = 3;
    }
    std::mt19937 random(5);
    for (int round = 0; round < 20; ++round) {
      Table table(options), copy(options);
      table.Train({1, 2, 3, 3, 3}, 0);
      int64_t cut = table.Cut();
      copy.Import(table.All());
      int64_t step = 1;
      for (int i = 0; i < 60; ++i) {
        Keys keys;
        for (int k = random() % 6; k >= 0; --k) {
          keys.push_back(static_cast<int64_t>(random() % 24) - 8);
        }
        int64_t evicted;
        switch (random() % 12) {
          case 0:
            table->Erase(keys);
            break;
          case 1:
            ASSERT_OK(table->EvictStale(step, 4, &evicted));
            break;
          case 2:
            if (random() % 4 == 0) ASSERT_OK(table->Clear());
            break;
          case 3:
          case 4: {
            const TableDelta delta = table.Since(cut);
            // One delta in four is lost.
            if (random() % 4 == 0) break;
            cut = delta.cut;
            copy.Apply(delta);
            ExpectSame(table.All(), copy.All());
            break;
          }
          default:
            table.Train(keys, ++step);
        }
      }
    }
  }
}

TEST(TableDeltaTest, UpdatesOfOtherThreadsAreInOneOfTheDeltas) {
  Table table(Options());
  table.Train({0}, 0);
  int64_t cut = table.Cut();
  Table copy(Options());
  copy.Import(table.All());
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&table, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        Keys keys;
        for (int k = 0; k < 20; ++k) keys.push_back(random() % 3000);
        table.Train(keys, i);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const TableDelta delta = table.Since(cut);
    EXPECT_FALSE(delta.replaces);
    cut = delta.cut;
    copy.Apply(delta);
  }
  for (std::thread& thread : threads) thread.join();
  copy.Apply(table.Since(cut));
  ExpectSame(table.All(), copy.All());
}

}  // namespace
}  // namespace ev
