// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/copy_past_caches.h"

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// Every length around a few lines, at every offset of source and target within
// a line.
TEST(CopyPastCachesTest, CopiesWhatItIsGivenAndNoMore) {
  std::vector<char> from(400), to(400);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7);
  for (size_t bytes = 0; bytes <= 200; ++bytes) {
    for (size_t shift = 0; shift < 64; shift += 3) {
      std::memset(to.data(), 1, to.size());
      CopyPastCaches(from.data() + shift / 2, bytes, to.data() + shift);
      ASSERT_EQ(0,
                std::memcmp(from.data() + shift / 2, to.data() + shift, bytes));
      for (size_t i = 0; i < to.size(); ++i) {
        const bool is_written = i >= shift && i < shift + bytes;
        ASSERT_TRUE(is_written || to[i] == 1) << i;
      }
    }
  }
}

TEST(NarrowPastCachesTest, KeepsEveryValueThatFits) {
  std::mt19937_64 random(1);
  std::vector<int64_t> from(100);
  std::vector<int32_t> to(130);
  for (size_t count = 0; count <= 90; ++count) {
    for (size_t shift = 0; shift < 17; ++shift) {
      for (int64_t& value : from) {
        value = static_cast<int32_t>(random());
        if (random() % 8 == 0) value = random() % 2 == 0 ? kLeast : kMost;
        if (random() % 8 == 0) value = static_cast<int64_t>(random() % 3) - 1;
      }
      std::fill(to.begin(), to.end(), 77);
      ASSERT_TRUE(NarrowPastCaches(from.data() + 1, count, to.data() + shift));
      for (size_t i = 0; i < to.size(); ++i) {
        const bool is_written = i >= shift && i < shift + count;
        ASSERT_EQ(is_written ? from[1 + i - shift] : 77, to[i]) << i;
      }
    }
  }
}

// One value that does not fit, at every position.
TEST(NarrowPastCachesTest, FindsTheOneThatDoesNotFit) {
  const int64_t wide[] = {kMost + 1,
                          kLeast - 1,
                          int64_t{1} << 32,
                          (int64_t{1} << 32) - 1,
                          -(int64_t{1} << 32),
                          std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::min() + 5};
  std::vector<int32_t> to(90);
  for (size_t count : {1, 5, 16, 33, 70}) {
    for (size_t shift : {0, 1, 5}) {
      for (size_t at = 0; at < count; ++at) {
        for (int64_t value : wide) {
          std::vector<int64_t> from(count, -3);
          from[at] = value;
          ASSERT_FALSE(NarrowPastCaches(from.data(), count, to.data() + shift))
              << value << " at " << at << " of " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ev
