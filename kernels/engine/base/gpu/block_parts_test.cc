// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu/block_parts.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/span.h"

namespace ev {
namespace gpu {
namespace {

TEST(PartsTest, EachBeginsAligned) {
  Parts parts;
  EXPECT_EQ(0u, parts.AddBytes(1));
  EXPECT_EQ(256u, parts.AddBytes(256));
  EXPECT_EQ(512u, parts.AddBytes(0));
  EXPECT_EQ(512u, parts.AddBytes(257));
  const std::vector<int64_t> numbers(33);
  EXPECT_EQ(1024u, parts.Add(Span<const int64_t>(numbers)));
  EXPECT_EQ(1536u, parts.bytes());
}

TEST(CarverTest, GivesArraysOfABlock) {
  alignas(256) static char block[1024];
  Carver carve(block);
  EXPECT_EQ(block, carve.next());
  EXPECT_EQ(block, carve.Take<char>(3));
  EXPECT_EQ(reinterpret_cast<int64_t*>(block + 256), carve.Take<int64_t>(33));
  EXPECT_EQ(block + 768, carve.next());
  EXPECT_EQ(block + 768, carve.Take<char>(0));
  EXPECT_EQ(reinterpret_cast<float*>(block + 768), carve.Take<float>(1));
  EXPECT_EQ(1024u, carve.bytes());
}

TEST(CarverTest, WithoutABlockCountsTheSame) {
  Carver count(nullptr);
  EXPECT_EQ(nullptr, count.next());
  EXPECT_EQ(nullptr, count.Take<char>(3));
  EXPECT_EQ(nullptr, count.Take<int64_t>(33));
  EXPECT_EQ(nullptr, count.next());
  EXPECT_EQ(768u, count.bytes());
}

}  // namespace
}  // namespace gpu
}  // namespace ev
