// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/table/bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/table/host_table.h"

namespace ev {
namespace gpu {
namespace {

TEST(ChainTest, StepsFromPairToPair) {
  std::mt19937_64 random(1);
  // 2^32 - 1 pairs: intermediate sums exceed 32 bits, the result does not.
  for (uint32_t num_pairs : {2u, 3u, 16u, 61u, 4194301u, 0xFFFFFFFFu}) {
    const TableView view = {nullptr, nullptr, num_pairs, kMaxProbeLimit};
    for (int k = 0; k < 1000; ++k) {
      const uint64_t hash = random();
      Chain chain(hash, view);
      uint64_t pair = chain.pair;
      for (int j = 0; j < kMaxProbeLimit; ++j, chain.Next()) {
        ASSERT_LT(chain.pair, num_pairs);
        ASSERT_EQ(chain.pair, pair);
        ASSERT_EQ(chain.parity, hash & 1);
        ASSERT_EQ(chain.first_slot(),
                  static_cast<int64_t>(32 * pair + 16 * (hash & 1)));
        pair = (pair + chain.step) % num_pairs;
      }
    }
  }
}

TEST(ChainTest, PairsAreDistinctIfTheTableHasEnough) {
  std::mt19937_64 random(2);
  const TableView view = {nullptr, nullptr, 17, kMaxProbeLimit};
  for (int k = 0; k < 1000; ++k) {
    Chain chain(random(), view);
    std::set<uint32_t> pairs;
    for (int j = 0; j < kMaxProbeLimit; ++j, chain.Next()) {
      pairs.insert(chain.pair);
    }
    ASSERT_EQ(pairs.size(), kMaxProbeLimit);
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

// Compares random inserts and erases with a map of slots, also in a full table.
void MatchesAMap(uint32_t num_pairs, uint32_t probe_limit, uint64_t seed) {
  SCOPED_TRACE(testing::Message()
               << num_pairs << " pairs, " << probe_limit << " probes");
  HostTable table(num_pairs, probe_limit);
  std::unordered_map<int64_t, int64_t> model;
  std::mt19937_64 random(seed);
  const std::vector<int64_t> keys = SomeKeys(num_pairs * 32 * 2, seed);
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

TEST(HostTableTest, MatchesAMap) {
  uint64_t seed = 10;
  for (uint32_t num_pairs : {2u, 3u, 17u}) {
    for (uint32_t probe_limit : {1u, 2u, 5u, 16u}) {
      MatchesAMap(num_pairs, probe_limit, ++seed);
    }
  }
}

// A table that is filled to nine tenths refuses next to no key.
TEST(HostTableTest, FullChainsAreRare) {
  HostTable table(4093, 16);
  int64_t refused = 0, buckets = 0, key = 0;
  for (; key < table.num_slots() * 9 / 10; ++key) {
    if (table.FindOrInsert(key * 7919) < 0) ++refused;
  }
  EXPECT_LE(refused, key / 10000);
  for (int64_t k = 0; k < key; ++k) {
    int looked = 0;
    if (table.Find(k * 7919, &looked) >= 0) buckets += looked;
  }
  EXPECT_LT(static_cast<double>(buckets) / key, 1.15);
}

}  // namespace
}  // namespace gpu
}  // namespace ev
