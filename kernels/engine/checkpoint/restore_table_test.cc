// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/restore_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/checkpoint/save_table.h"
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
using testing::MemoryCheckpoint;

const std::vector<SlotSpec> kSlots = {{"m", 0.5f}};

TableOptions Options(int64_t dim = 2) {
  TableOptions options;
  options.name = "user";
  options.dim = dim;
  options.record_frequency = options.record_version = true;
  options.admission.filter = AdmissionOptions::Filter::kCounter;
  options.admission.threshold = 10;
  return options;
}

class RestoreTableTest : public ::testing::Test {
 protected:
  RestoreTableTest() : table_(Options()) {}

  void SetUp() override { ASSERT_OK(table_.Initialize(Floats{9, 9}, 1)); }

  // Stores the rows of 'keys' under 'name', with value (key, 1), slot m (-key,
  // 2), version key, frequency key + 10 and default row (3, 4); and one
  // filtered key 77, counted 5 times, version 6.
  void Store(const std::string& name, const Ints& keys) {
    EmbeddingTable table(Options());
    ASSERT_OK(table.Initialize(Floats{3, 4}, 1));
    Floats values, slot;
    Ints frequencies;
    for (const int64_t key : keys) {
      values.insert(values.end(), {static_cast<float>(key), 1});
      slot.insert(slot.end(), {static_cast<float>(-key), 2});
      frequencies.push_back(key + 10);
    }
    const std::vector<const float*> slots = {slot.data()};
    ASSERT_OK(table.Import(keys, values.data(), kSlots, slots, keys,
                           frequencies, 0, 1));
    ASSERT_OK(table.ImportFiltered(Ints{77}, Ints{6}, Ints{5}, 0, 1));
    SaveOptions options;
    options.name = name;
    options.slots = kSlots;
    options.row_type = row_type_;
    ASSERT_OK(SaveTable(options, &table, &checkpoint_));
  }

  Status Restore(const RestoreOptions& options = RestoreOptions()) {
    return RestoreTable(&checkpoint_, "user", kSlots, options, &table_);
  }

  TableSnapshot Exported() {
    TableSnapshot snapshot;
    const Status status =
        table_.Export(std::vector<std::string>{"m"}, &snapshot);
    EXPECT_TRUE(status.ok()) << status.message();
    return snapshot;
  }

  Ints RestoredKeys() { return Exported().keys; }

  MemoryCheckpoint checkpoint_;
  RowType row_type_ = RowType::kFloat32;
  EmbeddingTable table_;
};

TEST_F(RestoreTableTest, GivesBackAllThatWasStored) {
  Store("user", {1, 2, 3});
  ASSERT_OK(table_.Import(Ints{5}, Floats{1, 1}.data(), {}, {}, {}, {}, 0, 1));
  ASSERT_OK(Restore());
  const TableSnapshot found = Exported();
  EXPECT_EQ(found.keys, Ints({1, 2, 3}));
  EXPECT_EQ(found.values, Floats({1, 1, 2, 1, 3, 1}));
  EXPECT_EQ(found.slots[0], Floats({-1, 2, -2, 2, -3, 2}));
  EXPECT_EQ(found.versions, Ints({1, 2, 3}));
  EXPECT_EQ(found.frequencies, Ints({11, 12, 13}));
  EXPECT_EQ(found.filtered_keys, Ints({77}));
  EXPECT_EQ(found.filtered_versions, Ints({6}));
  EXPECT_EQ(found.filtered_frequencies, Ints({5}));
  EXPECT_EQ(table_.default_rows(), Floats({3, 4}));
}

TEST_F(RestoreTableTest, RowsOfFewerBytesAreUnpacked) {
  for (const RowType type : {RowType::kFloat16, RowType::kUint8}) {
    checkpoint_.tensors().clear();
    row_type_ = type;
    Store("user", {1, 2, 3});
    ASSERT_OK(Restore());
    const TableSnapshot found = Exported();
    const Floats expected = {1, 1, 2, 1, 3, 1};
    ASSERT_EQ(found.values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found.values[i], expected[i], 4e-3) << i;
    }
    EXPECT_EQ(found.slots[0], Floats({-1, 2, -2, 2, -3, 2}));
    // Not a matrix of rows.
    checkpoint_.tensors()["user-values"].shape = {3, 4};
    checkpoint_.tensors()["user-values"].type = ElementType::kUint8;
    EXPECT_EQ(Restore().code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(RestoreTableTest, ASlotMayHaveOneNumberPerRow) {
  Store("user", {1, 2, 3});
  const std::vector<SlotSpec> slots = {{"a@row", 0.5f}, {"m", 0.5f}};
  const std::vector<std::string> names = {"a@row", "m"};
  checkpoint_.Put<float>("user/a@row-values", {3, 1}, {7, 8, 9});
  for (const bool custom_dim : {false, true}) {
    RestoreOptions options;
    options.custom_dim = custom_dim;
    ASSERT_OK(RestoreTable(&checkpoint_, "user", slots, options, &table_));
    TableSnapshot found;
    ASSERT_OK(table_.Export(names, &found));
    EXPECT_EQ(found.slots[0], Floats({7, 8, 9}));
    EXPECT_EQ(found.slots[1], Floats({-1, 2, -2, 2, -3, 2}));
  }
  // With keys of its own, and only those of one part.
  checkpoint_.Put<int64_t>("user/a@row-keys", {3}, {3, 8, 1});
  RestoreOptions options;
  options.keys.num_parts = 3;
  options.keys.part = 1;
  ASSERT_OK(RestoreTable(&checkpoint_, "user", slots, options, &table_));
  TableSnapshot found;
  ASSERT_OK(table_.Export(names, &found));
  EXPECT_EQ(found.keys, Ints({1}));
  EXPECT_EQ(found.slots[0], Floats({9}));
  // Adagrad's accumulator is not one number per row.
  checkpoint_.Put<float>("user/a@row-values", {3, 2}, {7, 7, 8, 8, 9, 9});
  const Status status = RestoreTable(&checkpoint_, "user", slots, {}, &table_);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("expected float [3,1]"), std::string::npos)
      << status.message();
  checkpoint_.Put<float>("user/a@row-values", {3, 1}, {7, 8, 9});
  ASSERT_OK(RestoreTable(&checkpoint_, "user", slots, {}, &table_));
}

TEST_F(RestoreTableTest, DeepRecsOwnTensorsAreEnough) {
  Store("user", {1, 2});
  for (const char* name :
       {"user-default_rows", "user-versions", "user-freqs",
        "user-keys_filtered", "user/m-values", "user/m-keys"}) {
    checkpoint_.tensors().erase(name);
  }
  ASSERT_OK(Restore());
  ASSERT_OK(table_.EnsureSlots(kSlots, nullptr));
  const TableSnapshot found = Exported();
  EXPECT_EQ(found.values, Floats({1, 1, 2, 1}));
  EXPECT_EQ(found.versions, Ints({-1, -1}));
  EXPECT_EQ(found.slots[0], Floats(4, 0.5f));
  EXPECT_EQ(found.filtered_keys, Ints());
  EXPECT_EQ(table_.default_rows(), Floats({9, 9}));
}

TEST_F(RestoreTableTest, PartsAndAWholeTableAreTheSame) {
  Store("user/part_0", {0, 2, 1000});
  Store("user/part_1", {1, 3});
  ASSERT_OK(Restore());
  EXPECT_EQ(RestoredKeys(), Ints({0, 1000, 1, 2, 3}));

  for (int part = 0; part < 3; ++part) {
    RestoreOptions options;
    options.keys.part = part;
    options.keys.num_parts = 3;
    ASSERT_OK(Restore(options));
    Ints found = RestoredKeys();
    std::sort(found.begin(), found.end());
    // floormod(1000, 1000) is 0.
    EXPECT_EQ(found, part == 0   ? Ints({0, 3, 1000})
                     : part == 1 ? Ints({1})
                                 : Ints({2}));
    EXPECT_EQ(Exported().filtered_keys, part == 2 ? Ints({77}) : Ints());
  }
}

TEST_F(RestoreTableTest, ARankTakesTheKeysPlacedOnIt) {
  Store("user", {0, 1, 2, 3, -1});
  RestoreOptions options;
  options.keys.placement = {0, 2};
  options.keys.rank = 2;
  ASSERT_OK(Restore(options));
  EXPECT_EQ(RestoredKeys(), Ints({1, 3, -1}));
}

TEST_F(RestoreTableTest, APartOfWhichNothingIsWantedIsNotRead) {
  Store("user/part_0", {0, 2});
  Store("user/part_1", {1, 3});
  RestoreOptions options;
  options.keys.part = 1;
  options.keys.num_parts = 2;
  ASSERT_OK(Restore(options));
  EXPECT_FALSE(checkpoint_.WasRead("user/part_0-values"));
  EXPECT_TRUE(checkpoint_.WasRead("user/part_1-values"));
}

TEST_F(RestoreTableTest, ASlotMayHaveItsKeysInAnotherOrder) {
  Store("user", {1, 2, 3});
  checkpoint_.Put<int64_t>("user/m-keys", {3}, {3, 8, 1});
  checkpoint_.Put<float>("user/m-values", {3, 2}, {30, 31, 80, 81, 10, 11});
  ASSERT_OK(Restore());
  const TableSnapshot found = Exported();
  EXPECT_EQ(found.keys, Ints({1, 2, 3}));
  EXPECT_EQ(found.slots[0], Floats({10, 11, 0.5f, 0.5f, 30, 31}));
}

TEST_F(RestoreTableTest, ASlotMayHaveFewerOrMoreKeys) {
  Store("user", {1, 2, 3});
  checkpoint_.Put<int64_t>("user/m-keys", {2}, {1, 2});
  checkpoint_.Put<float>("user/m-values", {2, 2}, {10, 11, 20, 21});
  ASSERT_OK(Restore());
  EXPECT_EQ(Exported().slots[0], Floats({10, 11, 20, 21, 0.5f, 0.5f}));
  checkpoint_.Put<int64_t>("user/m-keys", {4}, {1, 2, 3, 4});
  checkpoint_.Put<float>("user/m-values", {4, 2},
                         {10, 11, 20, 21, 30, 31, 40, 41});
  ASSERT_OK(Restore());
  EXPECT_EQ(RestoredKeys(), Ints({1, 2, 3}));
  EXPECT_EQ(Exported().slots[0], Floats({10, 11, 20, 21, 30, 31}));
}

TEST_F(RestoreTableTest, RowsOfAnotherLengthAreCutOrCompleted) {
  Store("user", {1});
  checkpoint_.Put<float>("user-values", {1, 3}, {5, 6, 7});
  checkpoint_.Put<float>("user/m-values", {1, 1}, {8});
  RestoreOptions options;
  EXPECT_EQ(
      Restore(options).message(),
      "tensor user-values of checkpoint memory: expected float [1,2] (the "
      "variable's embedding_dim is 2; TF_EV_RESTORE_CUSTOM_DIM=1 takes "
      "rows of another length), got float [1,3]");
  options.custom_dim = true;
  ASSERT_OK(Restore(options));
  EXPECT_EQ(Exported().values, Floats({5, 6}));
  EXPECT_EQ(Exported().slots[0], Floats({8, 0.5f}));
  checkpoint_.Put<float>("user-values", {1, 1}, {5});
  ASSERT_OK(Restore(options));
  // Completed from the stored default rows.
  EXPECT_EQ(Exported().values, Floats({5, 4}));
}

TEST_F(RestoreTableTest, VersionsMayBeReset) {
  Store("user", {1, 2});
  RestoreOptions options;
  options.reset_version = true;
  ASSERT_OK(Restore(options));
  EXPECT_EQ(Exported().versions, Ints({0, 0}));
  EXPECT_EQ(Exported().frequencies, Ints({11, 12}));
}

TEST_F(RestoreTableTest, KeysMayBeInt32) {
  Store("user", {1, 2});
  checkpoint_.Put<int32_t>("user-keys", {2}, {-4, 4});
  checkpoint_.tensors().erase("user/m-keys");
  ASSERT_OK(Restore());
  EXPECT_EQ(RestoredKeys(), Ints({4, -4}));
}

TEST_F(RestoreTableTest, WhatDoesNotFitIsRefusedBeforeTheTableChanges) {
  ASSERT_OK(table_.Import(Ints{5}, Floats{1, 1}.data(), {}, {}, {}, {}, 0, 1));
  const auto refused = [&](const std::string& message) {
    const Status status = Restore();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(table_.size(), 1);
    checkpoint_.tensors().clear();
    Store("user", {1, 2});
  };
  refused(
      "checkpoint memory has neither tensor user-keys nor user/part_0-keys");
  checkpoint_.Put<float>("user-keys", {2}, {1, 2});
  refused(
      "tensor user-keys of checkpoint memory: expected a vector of int64 or "
      "int32, got float [2]");
  checkpoint_.Put<int64_t>("user-versions", {1}, {1});
  refused(
      "tensor user-versions of checkpoint memory: expected int64 [0] or [2], "
      "got int64 [1]");
  checkpoint_.Put<int64_t>("user-freqs_filtered", {2}, {1, 2});
  refused(
      "tensor user-freqs_filtered of checkpoint memory: expected int64 [0] or "
      "[1], got int64 [2]");
  checkpoint_.Put<int64_t>("user-keys_filtered", {1, 1}, {1});
  refused(
      "tensor user-keys_filtered of checkpoint memory: expected a vector of "
      "int64 or int32, got int64 [1,1]");
  checkpoint_.Put<float>("user-default_rows", {1, 3}, {1, 2, 3});
  refused(
      "tensor user-default_rows of checkpoint memory: expected float [R,2], "
      "got "
      "float [1,3]");
  checkpoint_.tensors().erase("user-values");
  refused("checkpoint memory has no tensor user-values");
}

TEST_F(RestoreTableTest, DamageIsReported) {
  Store("user", {1, 2});
  for (const char* name :
       {"user-keys", "user-values", "user-versions", "user-freqs",
        "user/m-values", "user-keys_filtered", "user-default_rows"}) {
    checkpoint_.set_damaged(name);
    const Status status = Restore();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name;
    EXPECT_EQ(status.message(), std::string("tensor ") + name + " is damaged");
  }
}

}  // namespace
}  // namespace ev
