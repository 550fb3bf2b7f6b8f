// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/save_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/memory_checkpoint.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Narrow = std::vector<int32_t>;
using testing::MemoryCheckpoint;

TableOptions Options() {
  TableOptions options;
  options.name = "user";
  options.dim = 2;
  options.record_frequency = options.record_version = true;
  return options;
}

SaveOptions Saved(std::vector<SlotSpec> slots = {}) {
  SaveOptions options;
  options.name = "user";
  options.slots = slots;
  return options;
}

Floats Unpacked(const MemoryCheckpoint& checkpoint, RowType type, int dim) {
  const std::string bytes = checkpoint.tensors().at("user-values").bytes;
  const RowFormat format(dim, type);
  const int64_t n = bytes.size() / FileRowBytes(format);
  Floats rows(n * dim);
  UnpackFileRows(format, n, bytes.data(), rows.data());
  return rows;
}

// Rows (1001, -1, 1), whose values are (key, 0), versions 7, 8, 9 and
// frequencies 4, 5, 6.
void Fill(EmbeddingTable* table) {
  ASSERT_OK(table->Initialize(Floats{0.5f, 0.25f}, 1));
  const Ints keys = {1001, -1, 1};
  const Floats values = {1001, 0, -1, 0, 1, 0};
  ASSERT_OK(table->Import(keys, values.data(), {}, {}, Ints{7, 8, 9},
                          Ints{4, 5, 6}, 0, 1));
}

TEST(SaveTableTest, WritesValuesInFewerBytes) {
  EmbeddingTable table(Options());
  Fill(&table);
  for (const RowType type : {RowType::kFloat16, RowType::kUint8}) {
    MemoryCheckpoint checkpoint;
    SaveOptions options = Saved({{"Adagrad", 0.1f}});
    options.row_type = type;
    ASSERT_OK(SaveTable(options, &table, &checkpoint));
    EXPECT_EQ(checkpoint.Describe("user-values"),
              type == RowType::kUint8 ? "uint8 [3,6]" : "half [3,2]");
    const Floats rows = Unpacked(checkpoint, type, 2);
    const Floats expected = {1, 0, 1001, 0, -1, 0};
    for (size_t i = 0; i < expected.size(); ++i) {
      // Half of a step of the longest row, and the rounding of its ends.
      EXPECT_NEAR(rows[i], expected[i],
                  2e-3 * std::max(1.0f, std::fabs(expected[i])))
          << i;
    }
    EXPECT_EQ(checkpoint.Get<float>("user/Adagrad-values"), Floats(6, 0.1f));
    EXPECT_EQ(checkpoint.Get<float>("user-default_rows"),
              Floats({0.5f, 0.25f}));

    ASSERT_OK(
        table.Import(Ints{77}, Floats{1e30f, 0}.data(), {}, {}, {}, {}, 0, 1));
    MemoryCheckpoint refused;
    const Status status = SaveTable(options, &table, &refused);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("key 77: expected a row of finite numbers"),
              std::string::npos)
        << status.message();
    ASSERT_OK(table.Erase(Ints{77}));
    MemoryCheckpoint again;
    ASSERT_OK(SaveTable(options, &table, &again));
  }
}

TEST(SaveTableTest, WritesTheTensorsOfTheFormat) {
  EmbeddingTable table(Options());
  Fill(&table);
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved({{"Adagrad", 0.1f}}), &table, &checkpoint));
  // Ascending by (floormod(key, 1000), key).
  for (const std::string name : {"user", "user/Adagrad"}) {
    EXPECT_EQ(checkpoint.Get<int64_t>(name + "-keys"), Ints({1, 1001, -1}));
    EXPECT_EQ(checkpoint.Get<int64_t>(name + "-versions"), Ints({9, 7, 8}));
    EXPECT_EQ(checkpoint.Get<int64_t>(name + "-freqs"), Ints({6, 4, 5}));
    const Narrow offsets = checkpoint.Get<int32_t>(name + "-partition_offset");
    ASSERT_EQ(offsets.size(), 1001u);
    EXPECT_EQ(offsets[1], 0);
    EXPECT_EQ(offsets[2], 2);
    EXPECT_EQ(offsets[999], 2);
    EXPECT_EQ(offsets[1000], 3);
    EXPECT_EQ(checkpoint.Describe(name + "-keys_filtered"), "int64 [0]");
    EXPECT_EQ(checkpoint.Describe(name + "-versions_filtered"), "int64 [0]");
    EXPECT_EQ(checkpoint.Describe(name + "-freqs_filtered"), "int64 [0]");
    EXPECT_EQ(checkpoint.Get<int32_t>(name + "-partition_filter_offset"),
              Narrow(1001));
  }
  EXPECT_EQ(checkpoint.Describe("user-values"), "float [3,2]");
  EXPECT_EQ(checkpoint.Get<float>("user-values"),
            Floats({1, 0, 1001, 0, -1, 0}));
  EXPECT_EQ(checkpoint.Get<float>("user/Adagrad-values"), Floats(6, 0.1f));
  EXPECT_EQ(checkpoint.Describe("user-default_rows"), "float [1,2]");
  EXPECT_EQ(checkpoint.Get<float>("user-default_rows"), Floats({0.5f, 0.25f}));
  EXPECT_EQ(checkpoint.tensors().size(), 9u + 1 + 9);
}

TEST(SaveTableTest, ASlotWithOneNumberPerRowHasOneColumn) {
  EmbeddingTable table(Options());
  Fill(&table);
  const std::vector<SlotSpec> slots = {{"a@row", 0.1f}, {"m", 0.5f}};
  ASSERT_OK(table.EnsureSlots(slots, nullptr));
  ASSERT_OK(table.ImportSlot(Ints{1, -1}, slots[0], Floats{3, 4}.data()));
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved(slots), &table, &checkpoint));
  EXPECT_EQ(checkpoint.Describe("user/a@row-values"), "float [3,1]");
  EXPECT_EQ(checkpoint.Get<float>("user/a@row-values"), Floats({3, 0.1f, 4}));
  EXPECT_EQ(checkpoint.Get<int64_t>("user/a@row-keys"), Ints({1, 1001, -1}));
  EXPECT_EQ(checkpoint.Get<float>("user/m-values"), Floats(6, 0.5f));
}

TEST(SaveTableTest, RowsAreWrittenSideBySide) {
  EmbeddingTable table(Options());
  Fill(&table);
  const SaveOptions options = Saved({{"m", 0.0f}, {"v", 0.0f}});
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(options, &table, &checkpoint));
  EXPECT_EQ(NumSaveStreams(options, table.options()), 6);
  const auto stream = [&](const std::string& name) {
    return checkpoint.tensors().at(name).stream;
  };
  EXPECT_EQ(stream("user-keys"), 0);
  EXPECT_EQ(stream("user-default_rows"), 0);
  EXPECT_EQ(stream("user-values"), 1);
  EXPECT_EQ(stream("user/m-values"), 2);
  EXPECT_EQ(stream("user/v-values"), 3);
  EXPECT_EQ(stream("user-versions"), 4);
  EXPECT_EQ(stream("user-freqs"), 5);
}

TEST(SaveTableTest, NumbersThatAreNotRecordedAreEmpty) {
  TableOptions options = Options();
  options.record_version = false;
  EmbeddingTable table(options);
  Fill(&table);
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved(), &table, &checkpoint));
  EXPECT_EQ(NumSaveStreams(Saved(), table.options()), 3);
  EXPECT_EQ(checkpoint.Describe("user-versions"), "int64 [0]");
  EXPECT_EQ(checkpoint.Get<int64_t>("user-freqs"), Ints({6, 4, 5}));
  EXPECT_EQ(checkpoint.tensors().at("user-freqs").stream, 2);
}

TEST(SaveTableTest, AnEmptyTableHasAllTensors) {
  EmbeddingTable table(Options());
  ASSERT_OK(table.Initialize(Floats{0.5f, 0.25f}, 1));
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved(), &table, &checkpoint));
  EXPECT_EQ(checkpoint.Describe("user-keys"), "int64 [0]");
  EXPECT_EQ(checkpoint.Describe("user-values"), "float [0,2]");
  EXPECT_EQ(checkpoint.tensors().size(), 10u);
}

TEST(SaveTableTest, CountedKeysAreStoredUnlessDisabled) {
  TableOptions options = Options();
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 10;
  EmbeddingTable table(options);
  Fill(&table);
  ASSERT_OK(table.ImportFiltered(Ints{2, 1002, 3}, Ints{4, 5, 6}, Ints{1, 2, 3},
                                 0, 1));
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved(), &table, &checkpoint));
  EXPECT_EQ(checkpoint.Get<int64_t>("user-keys_filtered"), Ints({2, 1002, 3}));
  EXPECT_EQ(checkpoint.Get<int64_t>("user-versions_filtered"), Ints({4, 5, 6}));
  EXPECT_EQ(checkpoint.Get<int64_t>("user-freqs_filtered"), Ints({1, 2, 3}));
  EXPECT_EQ(checkpoint.Get<int32_t>("user-partition_filter_offset")[3], 2);

  SaveOptions without = Saved();
  without.with_filtered = false;
  MemoryCheckpoint less;
  ASSERT_OK(SaveTable(without, &table, &less));
  EXPECT_EQ(less.Describe("user-keys_filtered"), "int64 [0]");
  EXPECT_EQ(less.Get<int32_t>("user-partition_filter_offset"), Narrow(1001));
}

TEST(SaveTableTest, KeysMayBeInt32) {
  EmbeddingTable table(Options());
  Fill(&table);
  SaveOptions options = Saved();
  options.int32_keys = true;
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(options, &table, &checkpoint));
  EXPECT_EQ(checkpoint.Get<int32_t>("user-keys"), Narrow({1, 1001, -1}));
  EXPECT_EQ(checkpoint.Describe("user-keys_filtered"), "int32 [0]");

  const Ints beyond = {int64_t{std::numeric_limits<int32_t>::max()} + 1};
  const Floats values = {1, 2};
  ASSERT_OK(table.Import(beyond, values.data(), {}, {}, {}, {}, 0, 1));
  MemoryCheckpoint second;
  const Status status = SaveTable(options, &table, &second);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "key 2147483648 does not fit into int32, the type of the stored keys");
}

TEST(SaveTableTest, AFullDiskIsReported) {
  EmbeddingTable table(Options());
  Fill(&table);
  MemoryCheckpoint whole;
  ASSERT_OK(SaveTable(Saved(), &table, &whole));
  size_t bytes = 0;
  for (const auto& tensor : whole.tensors())
    bytes += tensor.second.bytes.size();
  for (size_t capacity = 0; capacity < bytes; capacity += 8) {
    MemoryCheckpoint checkpoint;
    checkpoint.set_capacity(capacity);
    const Status status = SaveTable(Saved(), &table, &checkpoint);
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted) << capacity;
    ASSERT_EQ(status.message(), "the disk is full");
  }
}

TEST(SaveTableTest, ALargeTableIsWrittenInPieces) {
  EmbeddingTable table(Options());
  ASSERT_OK(table.Initialize(Floats{0.5f, 0.25f}, 1));
  const int64_t n = 300000;
  Ints keys(n);
  Floats values(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    keys[i] = i * 7 - n;
    values[2 * i] = static_cast<float>(keys[i]);
  }
  ASSERT_OK(table.Import(keys, values.data(), {}, {}, {}, {}, 0, 1));
  MemoryCheckpoint checkpoint;
  ASSERT_OK(SaveTable(Saved(), &table, &checkpoint));
  EXPECT_LE(checkpoint.most_bytes_at_once(), size_t{4} << 20);
  const Ints stored = checkpoint.Get<int64_t>("user-keys");
  const Floats rows = checkpoint.Get<float>("user-values");
  ASSERT_EQ(stored.size(), n);
  ASSERT_EQ(rows.size(), 2 * n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(rows[2 * i], float(stored[i]));
}

}  // namespace
}  // namespace ev
