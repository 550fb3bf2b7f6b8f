// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/key_changes.h"

#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

TEST(KeyChangesTest, AChangeIsSeenByEarlierReaders) {
  KeyChanges changes;
  const std::vector<int64_t> keys = {5, INT64_MIN, -1};
  EXPECT_EQ(changes.count(), 0);
  EXPECT_FALSE(changes.HasChanged(5, 0));
  changes.Add(keys);
  EXPECT_EQ(changes.count(), 1);
  for (const int64_t key : keys) {
    EXPECT_TRUE(changes.HasChanged(key, 0));
    EXPECT_FALSE(changes.HasChanged(key, 1));
  }
  changes.Add(std::vector<int64_t>{7});
  EXPECT_TRUE(changes.HasChanged(7, 1));
  EXPECT_FALSE(changes.HasChanged(5, 1));
  changes.AddAll();
  EXPECT_TRUE(changes.HasChanged(12345, 2));
  EXPECT_FALSE(changes.HasChanged(12345, 3));
  changes.Add({});
  EXPECT_EQ(changes.count(), 3);
}

TEST(KeyChangesTest, FewKeysShareANumber) {
  KeyChanges changes;
  changes.Add(std::vector<int64_t>{3});
  int64_t others = 0;
  for (int64_t key = 4; key < 4004; ++key) others += changes.HasChanged(key, 0);
  EXPECT_LT(others, 40);
}

TEST(KeyChangesTest, TheLastOfARepeatedKeyStays) {
  EXPECT_EQ(LastOfEach(std::vector<int64_t>{4, 5, 4, 6, 5, 5}),
            (std::vector<int64_t>{2, 3, 5}));
  EXPECT_TRUE(LastOfEach({}).empty());
}

TEST(CacheSizeTest, AShareEvictsAndTheWholeDoesNot) {
  const CacheSize share = CacheSizeFor(100000, 0.1, false);
  EXPECT_TRUE(share.evicts);
  EXPECT_EQ(share.capacity, 10000);
  EXPECT_EQ(CacheSlots(10000, true), 10016);
  for (const CacheSize whole :
       {CacheSizeFor(100000, 1.0, false), CacheSizeFor(100000, 0.1, true)}) {
    EXPECT_FALSE(whole.evicts);
    EXPECT_GT(whole.capacity, 100000 / 0.9);
  }
  EXPECT_EQ(CacheSizeFor(10, 0.0, false).capacity, 64);
  EXPECT_EQ(CacheBytes(0, true, 16, 100), 0);
  // Per slot 16 bytes of index and the row; then locks, marks and lists.
  const int64_t bytes = CacheBytes(10000, true, 16, 1024);
  EXPECT_GT(bytes, 10016 * (16 + 64) + 1024 * 73 + (1 << 20));
  EXPECT_LT(bytes, 10016 * (16 + 64) + 1024 * 73 + (1 << 20) + 4096);
}

}  // namespace
}  // namespace hps
