// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/gpu/bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "kernels/engine/table/gpu/host_table.h"

namespace ev {
namespace gpu {
namespace {

// Returns the pair of a base pair and a layer in a table of num_pairs, using as
// many bits of the layer as lead to an existing pair.
uint64_t PairOf(uint64_t base, uint64_t layer, uint64_t base_pairs,
                uint64_t num_pairs) {
  uint64_t pair = base;
  for (int bits = 1; bits < 32; ++bits) {
    const uint64_t next =
        base + base_pairs * (layer & ((uint64_t{1} << bits) - 1));
    if (next >= num_pairs) break;
    pair = next;
  }
  return pair;
}

TEST(ChainTest, EachBucketStaysOrMovesToItsOtherHalf) {
  std::mt19937_64 random(1);
  for (uint32_t base_pairs : {2u, 3u, 16u, 61u, 4194301u}) {
    TableView view = {nullptr, nullptr, base_pairs, 0, 0, kMaxProbeLimit};
    while (NumPairs(view) < base_pairs * 9) {
      const uint32_t left = DoublingPairs(view) - view.split;
      const TableView next =
          AfterSplit(view, std::min<uint32_t>(left, 1 + random() % left));
      const uint32_t distance = DoublingPairs(view);
      for (int k = 0; k < 200; ++k) {
        const uint64_t hash = random();
        Chain before(hash, view), after(hash, next);
        uint64_t base = before.base, layer = (hash & 0xFFFFFFFF) >> 1;
        ASSERT_LT(base, base_pairs);
        for (int j = 0; j < kMaxProbeLimit; ++j) {
          ASSERT_EQ(before.parity(), hash & 1);
          ASSERT_EQ(before.pair(),
                    PairOf(base, layer, base_pairs, NumPairs(view)));
          ASSERT_LT(after.pair(), NumPairs(next));
          if (after.pair() != before.pair()) {
            ASSERT_EQ(after.pair(), before.pair() + distance);
            ASSERT_GE(before.pair(), view.split);
          }
          base = (base + before.step) % base_pairs;
          layer = (layer + 2 * uint64_t{before.step} + 1) & 0x7FFFFFFF;
          before.Next();
          after.Next();
        }
      }
      view = next;
    }
  }
}

TEST(ChainTest, PairsAreDistinctIfTheTableHasEnough) {
  std::mt19937_64 random(2);
  TableView view = {nullptr, nullptr, 17, 0, 0, kMaxProbeLimit};
  for (int growth = 0; growth < 4; ++growth) {
    for (int k = 0; k < 1000; ++k) {
      Chain chain(random(), view);
      std::set<uint32_t> pairs;
      for (int j = 0; j < kMaxProbeLimit; ++j, chain.Next()) {
        pairs.insert(chain.pair());
      }
      ASSERT_EQ(pairs.size(), kMaxProbeLimit);
    }
    view = AfterSplit(view, growth % 2 == 0 ? 5 : DoublingPairs(view) - 5);
  }
}

TEST(ChainTest, TheLargestTableFits32Bits) {
  // 2^31 + 2^31 - 1 pairs: intermediate sums exceed 32 bits, the result does
  // not.
  TableView view = {nullptr, nullptr, 1u << 30, 1, (1u << 31) - 1, 16};
  EXPECT_EQ(NumPairs(view), 0xFFFFFFFFu);
  std::mt19937_64 random(3);
  for (int k = 0; k < 100000; ++k) {
    const uint64_t hash = random();
    Chain chain(hash, view);
    EXPECT_EQ(chain.pair(), PairOf(chain.base, (hash & 0xFFFFFFFF) >> 1,
                                   1u << 30, NumPairs(view)));
  }
}

std::vector<int64_t> SomeKeys(int n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> keys = {
      0, -1, kEmptyInEven, kEmptyInOdd, kErasedInEven, kErasedInOdd};
  while (keys.size() < static_cast<size_t>(n)) {
    keys.push_back(static_cast<int64_t>(random()));
  }
  return keys;
}

// Compares random inserts, erases and growths with a map of slots, also in a
// full table.
void MatchesAMap(uint32_t base_pairs, uint32_t probe_limit, uint64_t seed) {
  SCOPED_TRACE(testing::Message()
               << base_pairs << " pairs, " << probe_limit << " probes");
  HostTable table(base_pairs, probe_limit);
  std::unordered_map<int64_t, int64_t> model;
  std::mt19937_64 random(seed);
  const std::vector<int64_t> keys = SomeKeys(base_pairs * 32 * 8, seed);
  for (int round = 0; round < 60; ++round) {
    // Up to full: twice as many keys as slots.
    const size_t some = table.num_slots() * (1 + random() % 8) / 4;
    const size_t count = std::min(some, keys.size());
    for (size_t i = 0; i < count; ++i) {
      const int64_t slot = table.FindOrInsert(keys[i]);
      const auto known = model.find(keys[i]);
      if (known != model.end()) {
        ASSERT_EQ(slot, known->second);
      } else if (slot >= 0) {
        model[keys[i]] = slot;
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      if (random() % 3 != 0) continue;
      table.Erase(keys[i]);
      model.erase(keys[i]);
    }
    if (table.num_slots() < static_cast<int64_t>(base_pairs) * 32 * 7) {
      const TableView before = table.view();
      const uint32_t left = DoublingPairs(before) - before.split;
      const uint32_t pairs = 1 + random() % left;
      table.Grow(pairs);
      const int64_t first = NumPairs(before) * int64_t{2 * kBucketSlots};
      const int64_t distance =
          DoublingPairs(before) * int64_t{2 * kBucketSlots};
      ASSERT_EQ(table.num_slots(), first + pairs * 2 * kBucketSlots);
      // Exactly the keys in new slots have moved, by the distance.
      for (int64_t slot = first; slot < table.num_slots(); ++slot) {
        const int64_t key = table.slots()[slot];
        if (HostTable::IsFree(slot, key)) continue;
        ASSERT_EQ(model.count(key), 1u);
        ASSERT_EQ(model[key], slot - distance);
        model[key] = slot;
      }
    }
    if (random() % 3 == 0) table.RestoreEmpty();
    for (int64_t key : keys) {
      const auto known = model.find(key);
      ASSERT_EQ(table.Find(key), known == model.end() ? -1 : known->second);
    }
  }
  int64_t taken = 0;
  for (int64_t slot = 0; slot < table.num_slots(); ++slot) {
    taken += !HostTable::IsFree(slot, table.slots()[slot]);
  }
  EXPECT_EQ(taken, static_cast<int64_t>(model.size()));
}

TEST(GrowthTest, MatchesAMap) {
  uint64_t seed = 10;
  for (uint32_t base_pairs : {2u, 3u, 17u}) {
    for (uint32_t probe_limit : {1u, 2u, 5u, 16u}) {
      MatchesAMap(base_pairs, probe_limit, ++seed);
    }
  }
}

TEST(GrowthTest, ManySmallOnesAreOneLargeOne) {
  for (uint32_t base_pairs : {2u, 13u}) {
    HostTable small(base_pairs, 16), large(base_pairs, 16);
    for (int64_t key : SomeKeys(base_pairs * 40, 4)) {  // full
      small.FindOrInsert(key);
      large.FindOrInsert(key);
    }
    for (uint32_t p = 0; p < base_pairs * 6; ++p) small.Grow(1);
    large.Grow(base_pairs * 6);
    EXPECT_EQ(small.slots(), large.slots());
  }
}

TEST(GrowthTest, RestoredMarksEndTheWalksOfAbsentKeys) {
  HostTable table(61, 16);
  for (int64_t key = 0; key < 61 * 32; ++key) table.FindOrInsert(key);
  for (int64_t key = 0; key < 61 * 32; ++key) {
    if (key % 4 != 0) table.Erase(key);
  }
  table.Grow(61);
  const auto looked_at = [&] {
    int64_t sum = 0;
    for (int64_t key = -1000; key < 0; ++key) {
      int buckets = 0;
      EXPECT_EQ(table.Find(key, &buckets), -1);
      sum += buckets;
    }
    return sum / 1000.0;
  };
  EXPECT_GT(looked_at(), 8);
  table.RestoreEmpty();
  EXPECT_LT(looked_at(), 2);
}

// A table grown by eighths of its initial size at a load of .6 refuses next to
// no key. It finds its keys nearly as fast as a table created with its final
// size.
TEST(GrowthTest, FullChainsStayRare) {
  const uint32_t pairs = 1021;
  HostTable table(pairs, 16);
  int64_t refused = 0, key = 0;
  for (int eighths = 8; eighths <= 32; ++eighths) {
    for (; key < table.num_slots() * 6 / 10; ++key) {
      if (table.FindOrInsert(key * 7919) < 0) ++refused;
    }
    if (eighths < 32)
      table.Grow(pairs * (eighths + 1) / 8 - pairs * eighths / 8);
  }
  EXPECT_EQ(table.num_slots(), pairs * 4 * 32);
  EXPECT_LE(refused, key / 10000);
  int64_t buckets = 0;
  for (int64_t k = 0; k < key; ++k) {
    int looked = 0;
    if (table.Find(k * 7919, &looked) >= 0) buckets += looked;
  }
  EXPECT_LT(static_cast<double>(buckets) / key, 1.15);
}

}  // namespace
}  // namespace gpu
}  // namespace ev
