// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests that every table from key to row must pass, whatever memory it uses. To
// test a table, write an adapter and one line:
//
//   std::unique_ptr<TableUnderTest> MakeMyTable() { ... }
//   INSTANTIATE_TEST_SUITE_P(MyTable, TableContract,
//                            ::testing::Values(&MakeMyTable));

#ifndef KERNELS_ENGINE_TESTING_TABLE_CONTRACT_H_
#define KERNELS_ENGINE_TESTING_TABLE_CONTRACT_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/row_handle.h"

namespace ev {
namespace testing {

// The adapter. It assigns rows 0, 1, 2, ... to new keys in the order of
// insertion, and never the same row twice.
class TableUnderTest {
 public:
  using Keys = std::vector<int64_t>;
  using Rows = std::vector<RowHandle>;
  using Pairs = std::vector<std::pair<int64_t, RowHandle>>;

  virtual ~TableUnderTest() {}
  virtual Rows Find(const Keys& keys) = 0;
  virtual Rows FindOrInsert(const Keys& keys, int64_t* num_inserted) = 0;
  // Returns the removed pairs.
  virtual Pairs Erase(const Keys& keys) = 0;
  virtual Pairs All() = 0;
  virtual void Clear() = 0;
  virtual int64_t size() = 0;
};

class TableContract
    : public ::testing::TestWithParam<std::unique_ptr<TableUnderTest> (*)()> {
 protected:
  using Keys = TableUnderTest::Keys;
  using Rows = TableUnderTest::Rows;
  using Pairs = TableUnderTest::Pairs;

  void SetUp() override { table_ = GetParam()(); }

  // Each function performs an operation on the table and on the model.
  void Insert(const Keys& keys) {
    int64_t inserted = -1;
    const Rows rows = table_->FindOrInsert(keys, &inserted);
    ASSERT_EQ(rows.size(), keys.size());
    int64_t expected = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_NE(rows[i], kNoRow) << "key " << keys[i];
      const auto it = model_.emplace(keys[i], rows[i]);
      if (it.second) {
        ++expected;
        ASSERT_TRUE(rows_seen_.emplace(rows[i], keys[i]).second)
            << "row " << rows[i] << " given to " << keys[i] << " and to "
            << rows_seen_[rows[i]];
      }
      ASSERT_EQ(it.first->second, rows[i]) << "key " << keys[i];
    }
    ASSERT_EQ(inserted, expected);
    ASSERT_EQ(table_->size(), static_cast<int64_t>(model_.size()));
  }

  void Erase(const Keys& keys) {
    Pairs expected;
    for (int64_t key : keys) {
      const auto it = model_.find(key);
      if (it == model_.end()) continue;
      expected.push_back(*it);
      model_.erase(it);
    }
    Pairs erased = table_->Erase(keys);
    std::sort(erased.begin(), erased.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(erased, expected);
    ASSERT_EQ(table_->size(), static_cast<int64_t>(model_.size()));
  }

  void CheckFind(const Keys& keys) {
    const Rows rows = table_->Find(keys);
    ASSERT_EQ(rows.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto it = model_.find(keys[i]);
      ASSERT_EQ(rows[i], it == model_.end() ? kNoRow : it->second)
          << "key " << keys[i];
    }
  }

  void CheckAll() {
    Pairs all = table_->All();
    Pairs expected(model_.begin(), model_.end());
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(all, expected);
    Keys keys;
    for (const auto& pair : expected) keys.push_back(pair.first);
    CheckFind(keys);
  }

  std::unique_ptr<TableUnderTest> table_;
  std::unordered_map<int64_t, RowHandle> model_;
  std::unordered_map<RowHandle, int64_t> rows_seen_;
};

TEST_P(TableContract, EmptyTableHasNothing) {
  CheckFind({});
  CheckFind({0, 1, -1});
  Insert({});
  Erase({5});
  CheckAll();
  EXPECT_EQ(table_->size(), 0);
}

TEST_P(TableContract, EveryInt64IsAKey) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const int64_t highest = std::numeric_limits<int64_t>::max();
  const Keys extremes = {
      0,          -1,          1,         lowest,       highest,
      lowest + 1, highest - 1, 1ll << 32, -(1ll << 32), 0xFFFFFFFFll};
  CheckFind(extremes);
  for (int64_t key : extremes) Insert({key});
  Insert(extremes);
  CheckAll();
  Erase({0, lowest});
  CheckFind(extremes);
  Insert({lowest, 0});
  CheckAll();
}

TEST_P(TableContract, DuplicatesInABatchAreOneKey) {
  Keys keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(i % 7);
  Insert(keys);
  EXPECT_EQ(table_->size(), 7);
  CheckFind(keys);
  Erase({3, 3, 3, 4});
  EXPECT_EQ(table_->size(), 5);
  CheckFind(keys);
}

TEST_P(TableContract, BatchesOfEveryLength) {
  // Lengths at which pipelines, groups and vectors end.
  for (int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257,
                    511, 513, 1025}) {
    Keys keys;
    for (int64_t i = 0; i < n; ++i) keys.push_back(n * 10000 + i);
    CheckFind(keys);
    Insert(keys);
    CheckFind(keys);
    keys.push_back(-n);  // absent and last
    CheckFind(keys);
  }
  CheckAll();
}

TEST_P(TableContract, PatternedKeysSpread) {
  // Keys that a weak hash would cluster: runs, strides of powers of two, keys
  // that differ only in high bits.
  Keys keys;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(i);
    keys.push_back(-i * 4096);
    keys.push_back(i << 40);
    keys.push_back(static_cast<int64_t>(static_cast<uint64_t>(i) << 52));
    keys.push_back((i << 20) | (i << 44));
  }
  Insert(keys);
  CheckAll();
}

TEST_P(TableContract, GrowsToAMillion) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const int kBatches = 3;  // grows, but not to a million
#else
  const int kBatches = 25;
#endif
  std::mt19937_64 random(17);
  const size_t kBatch = 40000;
  for (int batch = 0; batch < kBatches; ++batch) {
    Keys keys(kBatch);
    for (int64_t& key : keys) key = static_cast<int64_t>(random());
    Insert(keys);
    keys.resize(100);
    CheckFind(keys);
  }
  CheckAll();
}

TEST_P(TableContract, RandomOperationsAgainstAModel) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    // With few keys the same keys come and go in the same slots.
    const int64_t range = seed % 2 == 0 ? 300 : 20000;
    for (int step = 0; step < 400; ++step) {
      Keys keys(random() % 200);
      for (int64_t& key : keys) {
        key = static_cast<int64_t>(random() % range) - range / 2;
      }
      switch (random() % 4) {
        case 0:
          Erase(keys);
          break;
        case 1:
          CheckFind(keys);
          break;
        default:
          Insert(keys);
      }
      if (HasFatalFailure()) return;
    }
    CheckAll();
    if (seed == 3) {
      table_->Clear();
      model_.clear();
      EXPECT_EQ(table_->size(), 0);
      CheckAll();
    }
  }
}

TEST_P(TableContract, EraseEverythingAndInsertAgain) {
  for (int round = 0; round < 5; ++round) {
    Keys keys;
    for (int64_t i = 0; i < 20000; ++i) keys.push_back(i * (round + 1));
    Insert(keys);
    CheckAll();
    Erase(keys);
    EXPECT_EQ(table_->size(), 0);
    CheckFind(keys);
  }
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_TABLE_CONTRACT_H_
