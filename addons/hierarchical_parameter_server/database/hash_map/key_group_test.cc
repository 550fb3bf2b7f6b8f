// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/key_group.h"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hps {
namespace {

// Reference: the index of the first match, or -1.
int FirstOf(const int64_t* keys, int64_t key) {
  for (int i = 0; i < kKeyGroup; ++i) {
    if (keys[i] == key) return i;
  }
  return -1;
}

void ExpectAsInALoop(const int64_t* keys, int64_t key) {
  const SameKeys same(keys, key);
  const int first = FirstOf(keys, key);
  ASSERT_EQ(same.any(), first >= 0) << key;
  if (first >= 0) ASSERT_EQ(same.first(), first) << key;
}

TEST(KeyGroup, FindsAKeyAtEveryPlace) {
  for (int place = 0; place < kKeyGroup; ++place) {
    alignas(64) int64_t keys[kKeyGroup] = {1, 2, 3, 4, 5, 6, 7, 8};
    keys[place] = -9;
    ExpectAsInALoop(keys, -9);
    ExpectAsInALoop(keys, 9);
  }
}

TEST(KeyGroup, ComparesEveryBit) {
  for (int place = 0; place < kKeyGroup; ++place) {
    for (int bit = 0; bit < 64; ++bit) {
      alignas(64) int64_t keys[kKeyGroup] = {};
      const int64_t key = static_cast<int64_t>(uint64_t{1} << bit);
      keys[place] = key;
      ExpectAsInALoop(keys, key);
      ExpectAsInALoop(keys, ~key);
      ExpectAsInALoop(keys, 0);
      for (int64_t& other : keys) other = -1;
      keys[place] = ~key;
      ExpectAsInALoop(keys, ~key);
      ExpectAsInALoop(keys, -1);
      ExpectAsInALoop(keys, key);
    }
  }
}

TEST(KeyGroup, GivesTheFirstOfSeveral) {
  const std::vector<int64_t> values = {0,
                                       -1,
                                       1,
                                       std::numeric_limits<int64_t>::max(),
                                       std::numeric_limits<int64_t>::min(),
                                       int64_t{1} << 32,
                                       0xFFFFFFFF};
  std::mt19937 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    alignas(64) int64_t keys[kKeyGroup];
    for (int64_t& key : keys) key = values[random() % values.size()];
    for (const int64_t value : values) ExpectAsInALoop(keys, value);
  }
}

}  // namespace
}  // namespace hps
