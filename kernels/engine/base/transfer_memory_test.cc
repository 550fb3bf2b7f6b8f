// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/transfer_memory.h"

#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

// A source whose blocks are only numbers: the test does not touch them.
size_t handed_out = 0;
size_t next_address = 1 << 20;
std::set<void*>* Taken() {
  static std::set<void*>* const taken = new std::set<void*>;
  return taken;
}

void* Take(size_t bytes) {
  if (bytes > (size_t{1} << 40)) return nullptr;
  ++handed_out;
  void* const block = reinterpret_cast<void*>(next_address);
  next_address += bytes;
  Taken()->insert(block);
  return block;
}

void GiveBack(void* block) { EXPECT_EQ(1u, Taken()->erase(block)); }

int ordinary_live = 0;
void* TakeOrdinary(size_t) {
  ++ordinary_live;
  static char blocks[8];
  return &blocks[ordinary_live];
}
void GiveBackOrdinary(void*) { --ordinary_live; }

TEST(TransferMemoryTest, BlocksAreRecycledUpToABound) {
  EXPECT_EQ(nullptr, AllocateTransferMemory(100));

  // Unpinned memory, until a pinned source is registered.
  TransferMemorySource ordinary{&TakeOrdinary, &GiveBackOrdinary, false};
  RegisterTransferMemory(ordinary);
  void* const old = AllocateTransferMemory(5000);
  FreeTransferMemory(AllocateTransferMemory(100));
  EXPECT_EQ(2, ordinary_live);
  RegisterTransferMemory(TransferMemorySource{&Take, &GiveBack});
  EXPECT_EQ(1, ordinary_live);
  FreeTransferMemory(old);
  EXPECT_EQ(0, ordinary_live);
  EXPECT_EQ(0u, GetTransferMemoryStats().live_bytes);
  EXPECT_EQ(0u, GetTransferMemoryStats().idle_bytes);
  RegisterTransferMemory(ordinary);

  void* const first = AllocateTransferMemory(1000000);
  ASSERT_NE(nullptr, first);
  void* const second = AllocateTransferMemory(1000000);
  EXPECT_NE(first, second);
  FreeTransferMemory(first);
  // A similar size reuses the block; another size does not.
  EXPECT_NE(first, AllocateTransferMemory(100));
  EXPECT_EQ(first, AllocateTransferMemory(999000));
  EXPECT_EQ(3u, handed_out);
  EXPECT_EQ(0u, GetTransferMemoryStats().idle_bytes);
  EXPECT_EQ(nullptr, AllocateTransferMemory(size_t{1} << 41));

  // Beyond the limit the oldest blocks are freed.
  constexpr size_t kQuarter = kMaxIdleTransferBytes / 4;
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(AllocateTransferMemory(kQuarter));
  }
  for (void* block : blocks) FreeTransferMemory(block);
  EXPECT_EQ(kMaxIdleTransferBytes, GetTransferMemoryStats().idle_bytes);
  EXPECT_EQ(0u, Taken()->count(blocks[0]));
  EXPECT_EQ(0u, Taken()->count(blocks[1]));
  EXPECT_EQ(1u, Taken()->count(blocks[2]));
}

TEST(TransferMemoryTest, ABlockIsAtMostAnEighthTooLarge) {
  EXPECT_EQ(4096u, TransferBlockBytes(0));
  EXPECT_EQ(4096u, TransferBlockBytes(1));
  for (size_t bytes = 40000; bytes < (size_t{1} << 33); bytes += bytes / 3) {
    const size_t block = TransferBlockBytes(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_LE(block - bytes, bytes / 8);
    EXPECT_EQ(0u, block % 4096);
  }
}

}  // namespace
}  // namespace ev
