// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/apply_delta.h"

#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/testing/failing_allocations.h"
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

class ApplyDeltaTest : public ::testing::Test {
 protected:
  ApplyDeltaTest() : table_(Options()) {}

  static TableOptions Options() {
    TableOptions options;
    options.name = "user";
    options.dim = 1;
    options.record_frequency = options.record_version = true;
    options.admission.filter = AdmissionOptions::Filter::kCounter;
    options.admission.threshold = 10;
    return options;
  }

  // Keys 0 to 5 with value 1, and key 6, counted twice.
  void SetUp() override {
    ASSERT_OK(table_.Initialize(Floats{9}, 1));
    const Floats ones(6, 1);
    ASSERT_OK(table_.Import(Ints{0, 1, 2, 3, 4, 5}, ones.data(), {}, {}, {}, {},
                            0, 1));
    ASSERT_OK(table_.ImportFiltered(Ints{6}, {}, Ints{2}, 0, 1));
  }

  // Rows with value 2 and slot 3, as DeepRec stores them.
  void Put(const std::string& name, const Ints& keys) {
    const int64_t n = keys.size();
    checkpoint_.Put<int64_t>(name + "-sparse_incr_keys", {n}, keys);
    checkpoint_.Put<float>(name + "-sparse_incr_values", {n, 1}, Floats(n, 2));
    checkpoint_.Put<float>(name + "/m-sparse_incr_values", {n, 1},
                           Floats(n, 3));
  }

  // Tensors that DeepRec does not store.
  void PutOwn(const std::string& name, const Ints& erased, bool replaces) {
    const int64_t n = erased.size();
    checkpoint_.Put<int64_t>(name + "-sparse_incr_erased_keys", {n}, erased);
    checkpoint_.Put<int64_t>(name + "-sparse_incr_replaces", {1}, {replaces});
    checkpoint_.Put<float>(name + "-sparse_incr_default_rows", {replaces, 1},
                           Floats(replaces, 8));
    checkpoint_.Put<int64_t>(name + "-sparse_incr_keys_filtered", {1}, {3});
    checkpoint_.Put<int64_t>(name + "-sparse_incr_versions_filtered", {1}, {7});
    checkpoint_.Put<int64_t>(name + "-sparse_incr_freqs_filtered", {1}, {4});
  }

  Status Apply(const KeyFilter& wanted = KeyFilter()) {
    return ApplyDelta(&checkpoint_, "user", kSlots, wanted, &table_);
  }

  TableSnapshot Exported() {
    TableSnapshot snapshot;
    const Status status = table_.Export({}, &snapshot);
    EXPECT_TRUE(status.ok()) << status.message();
    return snapshot;
  }

  MemoryCheckpoint checkpoint_;
  EmbeddingTable table_;
};

TEST_F(ApplyDeltaTest, DeepRecsOwnTensorsAreEnough) {
  Put("user", {2, 9});
  checkpoint_.tensors().erase("user/m-sparse_incr_values");
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().keys, Ints({0, 1, 2, 3, 4, 5, 9}));
  EXPECT_EQ(Exported().values, Floats({1, 1, 2, 1, 1, 1, 2}));
}

TEST_F(ApplyDeltaTest, RowsOfFewerBytesAreUnpacked) {
  Put("user", {2, 9});
  checkpoint_.Put<uint16_t>("user-sparse_incr_values", {2, 1},
                            {ToFloat16(0.5f), ToFloat16(3.0f)});
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().values, Floats({1, 1, 0.5f, 1, 1, 1, 3}));
  // Row 2 * 7 + 1, with a scale of 2 and an offset of 1; then 0 * 7 + 4.
  const uint16_t ends[] = {ToFloat16(2.0f), ToFloat16(1.0f), ToFloat16(7.0f),
                           ToFloat16(4.0f)};
  std::vector<uint8_t> bytes(10);
  bytes[0] = 7;
  std::memcpy(&bytes[1], &ends[0], 4);
  std::memcpy(&bytes[6], &ends[2], 4);
  checkpoint_.Put<uint8_t>("user-sparse_incr_values", {2, 5}, bytes);
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().values, Floats({1, 1, 15, 1, 1, 1, 4}));
}

TEST_F(ApplyDeltaTest, ErasesThenWritesThenCounts) {
  Put("user", {2, 9});
  PutOwn("user", {0, 1}, false);
  checkpoint_.Put<int64_t>("user-sparse_incr_versions", {2}, {20, 90});
  checkpoint_.Put<int64_t>("user-sparse_incr_freqs", {2}, {21, 91});
  ASSERT_OK(Apply());
  const TableSnapshot found = Exported();
  // Key 3 is counted and has no row any more.
  EXPECT_EQ(found.keys, Ints({2, 4, 5, 9}));
  EXPECT_EQ(found.versions, Ints({20, -1, -1, 90}));
  EXPECT_EQ(found.frequencies, Ints({21, 10, 10, 91}));
  EXPECT_EQ(found.filtered_keys, Ints({3, 6}));
  EXPECT_EQ(found.filtered_versions, Ints({7, -1}));
  EXPECT_EQ(found.filtered_frequencies, Ints({4, 2}));
  ASSERT_EQ(table_.slots().size(), 1u);
  EXPECT_EQ(table_.slots()[0].name, "m");
}

TEST_F(ApplyDeltaTest, KeysThatTheTableCannotHaveChangeNothing) {
  TableOptions options = Options();
  options.int32_keys = true;
  for (const bool is_filtered : {false, true}) {
    EmbeddingTable narrow(options);
    ASSERT_OK(narrow.Initialize(Floats{9}, 1));
    const Floats ones(2, 1);
    ASSERT_OK(narrow.Import(Ints{0, 1}, ones.data(), {}, {}, {}, {}, 0, 1));
    const int64_t wide = int64_t{1} << 40;
    Put("user", is_filtered ? Ints{2} : Ints{2, wide});
    PutOwn("user", {0}, true);
    if (is_filtered) {
      checkpoint_.Put<int64_t>("user-sparse_incr_keys_filtered", {1}, {wide});
    }
    const Status status =
        ApplyDelta(&checkpoint_, "user", kSlots, KeyFilter(), &narrow);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    TableSnapshot found;
    ASSERT_OK(narrow.Export({}, &found));
    EXPECT_EQ(found.keys, Ints({0, 1}));
    EXPECT_EQ(narrow.default_rows(), Floats({9}));
  }
}

TEST_F(ApplyDeltaTest, AWholeTableReplacesTheRows) {
  Put("user", {2});
  PutOwn("user", {}, true);
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().keys, Ints({2}));
  EXPECT_EQ(Exported().filtered_keys, Ints({3}));
  EXPECT_EQ(table_.default_rows(), Floats({8}));
}

TEST_F(ApplyDeltaTest, APartThatReplacesLeavesTheOtherAlone) {
  Put("user/part_0", {2});
  PutOwn("user/part_0", {}, true);
  checkpoint_.Put<int64_t>("user/part_0-sparse_incr_keys_filtered", {1}, {8});
  Put("user/part_1", {3});
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().keys, Ints({1, 2, 3, 5}));
  EXPECT_EQ(Exported().values, Floats({1, 2, 2, 1}));
  EXPECT_EQ(table_.default_rows(), Floats({9}));
}

TEST_F(ApplyDeltaTest, OfAsManyPartsEachReadsItsOwn) {
  Put("user/part_0", {2});
  Put("user/part_1", {3});
  KeyFilter wanted;
  wanted.part = 1;
  wanted.num_parts = 2;
  ASSERT_OK(Apply(wanted));
  EXPECT_FALSE(checkpoint_.WasRead("user/part_0-sparse_incr_keys"));
  EXPECT_EQ(Exported().values, Floats({1, 1, 1, 2, 1, 1}));
}

TEST_F(ApplyDeltaTest, OfOtherPartsAKeyIsTakenWhereItBelongs) {
  Put("user/part_0", {2, 4});
  Put("user/part_1", {3, 7});
  KeyFilter wanted;
  wanted.part = 1;
  wanted.num_parts = 3;
  ASSERT_OK(Apply(wanted));
  EXPECT_EQ(Exported().keys, Ints({0, 1, 2, 3, 4, 5, 7}));
  EXPECT_EQ(Exported().values, Floats({1, 1, 1, 1, 2, 1, 2}));
}

TEST_F(ApplyDeltaTest, APlacementDecidesWhichRowIsUsed) {
  // Rank 1 has a row of key 2 that lookups do not find on it.
  Put("user/part_0", {2});
  Put("user/part_1", {2, 3});
  checkpoint_.Put<float>("user/part_1-sparse_incr_values", {2, 1}, {5, 5});
  checkpoint_.Put<int64_t>("user-sparse_incr_placement", {2}, {0, 1});
  ASSERT_OK(Apply());
  EXPECT_EQ(Exported().values, Floats({1, 1, 2, 5, 1, 1}));

  checkpoint_.Put<int64_t>("user-sparse_incr_placement", {2}, {0, 2});
  EXPECT_EQ(Apply().message(),
            "tensor user-sparse_incr_placement of checkpoint memory: expected "
            "entries in [0, 2), got 2");
}

TEST_F(ApplyDeltaTest, WhatDoesNotFitIsRefusedBeforeTheTableChanges) {
  const auto refused = [&](const std::string& message) {
    const Status status = Apply();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), message);
    EXPECT_EQ(Exported().values, Floats(6, 1));
    checkpoint_.tensors().clear();
    Put("user", {0, 1});
    PutOwn("user", {5}, false);
  };
  refused(
      "incremental checkpoint memory has neither tensor user-sparse_incr_keys "
      "nor user/part_0-sparse_incr_keys");
  checkpoint_.Put<float>("user-sparse_incr_keys", {2}, {1, 2});
  refused(
      "tensor user-sparse_incr_keys of checkpoint memory: expected a vector of "
      "integers, got float [2]");
  checkpoint_.Put<float>("user-sparse_incr_values", {2, 2}, {1, 2, 3, 4});
  refused(
      "tensor user-sparse_incr_values of checkpoint memory: expected float "
      "[2,1] (the variable's embedding_dim is 1), got float [2,2]");
  checkpoint_.Put<int64_t>("user-sparse_incr_freqs", {1}, {1});
  refused(
      "tensor user-sparse_incr_freqs of checkpoint memory: expected int64 [2], "
      "got int64 [1]");
  checkpoint_.Put<int64_t>("user-sparse_incr_replaces", {0}, {});
  refused(
      "tensor user-sparse_incr_replaces of checkpoint memory: expected int64 "
      "[1], got int64 [0]");
  checkpoint_.Put<float>("user-sparse_incr_default_rows", {1, 2}, {1, 2});
  refused(
      "tensor user-sparse_incr_default_rows of checkpoint memory: expected "
      "float [R,1] (the variable's embedding_dim is 1), got float [1,2]");
  checkpoint_.set_damaged("user/m-sparse_incr_values");
  refused("tensor user/m-sparse_incr_values is damaged");
}

// Lets the first, second, ... allocation fail until none does.
TEST_F(ApplyDeltaTest, WithoutMemoryTheTableIsUnchangedOrUninitialized) {
  Put("user", {2, 9});
  PutOwn("user", {0, 1}, false);
  int unchanged = 0, uninitialized = 0;
  bool ended = false;
  for (int64_t at = 0; !ended; ++at) {
    SCOPED_TRACE(at);
    table_.Uninitialize();
    SetUp();
    Status status;
    testing::allocations_left = at;
    try {
      status = Apply();
    } catch (const std::bad_alloc&) {
      status = ResourceExhausted("thrown");
    }
    ended = testing::allocations_left >= 0;
    testing::allocations_left = -1;
    if (!status.ok()) {
      if (table_.initialized()) {
        ++unchanged;
        ASSERT_EQ(Exported().values, Floats(6, 1));
        ASSERT_EQ(Exported().filtered_keys, Ints{6});
      } else {
        ++uninitialized;
        ASSERT_NE(status.message().find("restore a full checkpoint"),
                  std::string::npos);
        SetUp();
      }
      ASSERT_OK(Apply());
    }
    ASSERT_EQ(Exported().keys, Ints({2, 4, 5, 9}));
    ASSERT_EQ(Exported().values, Floats({2, 1, 1, 2}));
    ASSERT_EQ(Exported().filtered_keys, Ints({3, 6}));
  }
  EXPECT_GT(unchanged, 0);
  EXPECT_GT(uninitialized, 0);
}

}  // namespace
}  // namespace ev
