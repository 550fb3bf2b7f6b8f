// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/kept_memory.h"

#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_memory.h"

namespace sok {
namespace {

TEST(KeptMemoryTest, GivesABlockOutAgain) {
  EXPECT_EQ(nullptr, ev::AllocateTransferMemory(5 << 20));
  KeepMessages();
  KeepMessages();
  void* const block = ev::AllocateTransferMemory(5 << 20);
  ASSERT_NE(nullptr, block);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block) % (2 << 20));
  std::memset(block, 1, 5 << 20);
  ev::FreeTransferMemory(block);
  EXPECT_EQ(block, ev::AllocateTransferMemory(5 << 20));
  ev::FreeTransferMemory(block);
}

}  // namespace
}  // namespace sok
