// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/tiered/handle_words.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(HandleWordsTest, EachKindOfWordIsOne) {
  for (const uint32_t word :
       {0u, 1u, kInFastTier - 1, kInFastTier, kInFastTier | kPayload, kFresh,
        kFresh | (kPayload - 1), kMoving}) {
    const int kinds = (word == 0) + InSlowTier(word) + InFastTier(word) +
                      IsFresh(word) + (word == kMoving);
    EXPECT_EQ(kinds, 1) << word;
  }
}

TEST(HandleWordsTest, AWordExistsOnceItIsMade) {
  HandleWords words;
  const std::vector<RowHandle> handles = {0, 65536, 600000,
                                          kFirstReservedHandle - 1};
  for (const RowHandle handle : handles) {
    EXPECT_FALSE(words.Has(handle)) << handle;
    ASSERT_TRUE(words.Make(handle, handle % 7).ok());
    EXPECT_TRUE(words.Has(handle));
  }
  EXPECT_FALSE(words.Has(kFirstReservedHandle));
  EXPECT_FALSE(words.Has(kNoRow));
  std::map<RowHandle, uint32_t> met;
  ASSERT_TRUE(words
                  .ForEach([&](RowHandle handle, std::atomic<uint32_t>* word) {
                    if (word->load() != 0) met[handle] = word->load();
                    return Status::OK();
                  })
                  .ok());
  ASSERT_EQ(met.size(), handles.size());
  for (const RowHandle handle : handles) {
    EXPECT_EQ(met[handle], kFresh | (handle % 7));
    EXPECT_EQ(words.at(handle)->load(), kFresh | (handle % 7));
  }
}

TEST(HandleWordsTest, MemoryIsFreedWhenAllItsWordsAreZero) {
  HandleWords words;
  const int64_t before = words.bytes();
  for (const RowHandle handle : {3u, 4u, 1u << 20, (1u << 20) + 70000}) {
    ASSERT_TRUE(words.Make(handle, 0).ok());
  }
  const int64_t full = words.bytes();
  EXPECT_GT(full, before + (1 << 18));
  words.at(1 << 20)->store(0);
  words.DropUnused(std::vector<RowHandle>{1 << 20});
  EXPECT_EQ(words.bytes(), full);  // a neighbour is still in use
  words.at((1 << 20) + 70000)->store(0);
  words.DropUnused(std::vector<RowHandle>{(1 << 20) + 70000, 9999999});
  EXPECT_LT(words.bytes(), full);
  EXPECT_FALSE(words.Has(1 << 20));
  EXPECT_TRUE(words.Has(3));
  ASSERT_TRUE(words.Make(1 << 20, 2).ok());
  EXPECT_EQ(words.at(1 << 20)->load(), kFresh | 2);
  EXPECT_EQ(words.at((1 << 20) + 70000)->load(), 0);
  words.Clear();
  EXPECT_FALSE(words.Has(3));
}

// This would take minutes if each freed handle searched its whole slab.
TEST(HandleWordsTest, ManyHandlesGoAtOnceAndTheLastTakesTheMemoryAlong) {
  constexpr RowHandle kMany = 400000;
  HandleWords words;
  std::vector<RowHandle> up, down;
  for (RowHandle handle = 0; handle < kMany; ++handle) {
    if (handle != kMany / 2) up.push_back(handle);
  }
  down.assign(up.rbegin(), up.rend());
  for (const std::vector<RowHandle>& order : {up, down}) {
    for (RowHandle handle = 0; handle < kMany; ++handle) {
      ASSERT_TRUE(words.Make(handle, 0).ok());
    }
    for (const RowHandle handle : order) words.at(handle)->store(0);
    const int64_t full = words.bytes();
    words.DropUnused(order);
    EXPECT_EQ(words.bytes(), full);
    EXPECT_TRUE(words.Has(kMany / 2));
    EXPECT_EQ(words.at(kMany / 2)->load(), kFresh);
    words.at(kMany / 2)->store(0);
    words.DropUnused(std::vector<RowHandle>{kMany / 2});
    EXPECT_FALSE(words.Has(kMany / 2));
    EXPECT_LT(words.bytes(), full - (1 << 20));
  }
}

}  // namespace
}  // namespace ev
