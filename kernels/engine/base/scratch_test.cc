// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/scratch.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace {

TEST(ScratchTest, ABufferGrowsByAQuarterMore) {
  LineBuffer line;
  TransferScratch transfer;
  EXPECT_EQ(nullptr, line.Reserve(0));
  for (size_t bytes : {1, 1000, 100}) {
    EXPECT_NE(nullptr, line.Reserve(bytes));
    EXPECT_NE(nullptr, transfer.Reserve(bytes));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(line.data()) % kCacheLine);
  }
  EXPECT_EQ(1280u, line.bytes());
  EXPECT_EQ(1250u, transfer.bytes());
  EXPECT_EQ(line.data(), line.Reserve(1280));
  EXPECT_EQ(line.data(), line.ReserveOf<int64_t>(160));
}

TEST(ScratchTest, ALayoutAlignsArrays) {
  ArrayLayout layout;
  EXPECT_EQ(0u, layout.Add<int32_t>(3));
  EXPECT_EQ(kCacheLine, layout.Add<int64_t>(9));
  EXPECT_EQ(3 * kCacheLine, layout.Add<char>(0));
  EXPECT_EQ(3 * kCacheLine, layout.bytes());
}

// Handles are destroyed where nothing may be thrown.
TEST(ScratchTest, AnObjectIsGivenBackWithoutMemory) {
  Recycler<int> pool(2);
  const int* first = nullptr;
  {
    auto one = pool.Acquire();
    auto two = pool.Acquire();
    auto three = pool.Acquire();
    first = &*one;
    testing::allocations_left = 0;
  }
  EXPECT_EQ(0, testing::allocations_left);
  testing::allocations_left = -1;
  EXPECT_NE(first, pool.Take().get());  // beyond the most that it keeps
  EXPECT_NE(nullptr, pool.Take());
  EXPECT_EQ(nullptr, pool.Take());
}

int blocks = 0;

TEST(ScratchTest, TransferMemoryIsGivenBackWithoutMemory) {
  TransferMemorySource source;
  source.allocate = [](size_t bytes) -> void* {
    ++blocks;
    return std::malloc(bytes);
  };
  source.free = [](void* data) {
    --blocks;
    std::free(data);
  };
  RegisterTransferMemory(source);
  // A block that cannot be recorded is given back to its source.
  testing::allocations_left = 0;
  EXPECT_EQ(nullptr, AllocateTransferMemory(100));
  testing::allocations_left = -1;
  EXPECT_EQ(0, blocks);
  constexpr int kMany = 2000;  // more than one node of a queue
  std::unique_ptr<void*[]> all(new void*[kMany]);
  for (int i = 0; i < kMany; ++i) all[i] = AllocateTransferMemory(100);
  int freed = 0;
  for (int i = 0; i < kMany; ++i) {
    testing::allocations_left = 0;
    FreeTransferMemory(all[i]);
    freed += testing::allocations_left < 0;
    testing::allocations_left = -1;
  }
  EXPECT_GT(freed, 0);
  EXPECT_EQ(kMany - freed, blocks);
  EXPECT_EQ(blocks * size_t{4096}, GetTransferMemoryStats().idle_bytes);
  EXPECT_EQ(0u, GetTransferMemoryStats().live_bytes);
  EXPECT_NE(nullptr, AllocateTransferMemory(100));
  EXPECT_EQ(kMany - freed, blocks);
}

}  // namespace
}  // namespace ev
