// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/transfer_tensor.h"

#include <cstdlib>

#include "gtest/gtest.h"
#include "kernels/engine/base/transfer_memory.h"

namespace embedding_variable {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

void* Take(size_t bytes) { return aligned_alloc(4096, bytes); }
void GiveBack(void* block) { free(block); }

TEST(TransferTensorTest, SharesAndRecyclesBlocks) {
  Tensor tensor;
  EXPECT_FALSE(
      MakeTransferTensor(tensorflow::DT_FLOAT, TensorShape({2, 3}), &tensor));
  ev::RegisterTransferMemory(ev::TransferMemorySource{&Take, &GiveBack});
  EXPECT_FALSE(
      MakeTransferTensor(tensorflow::DT_FLOAT, TensorShape({0, 3}), &tensor));
  ASSERT_TRUE(
      MakeTransferTensor(tensorflow::DT_FLOAT, TensorShape({2, 3}), &tensor));
  EXPECT_EQ(tensorflow::DT_FLOAT, tensor.dtype());
  const float* const first = tensor.flat<float>().data();
  {
    const Tensor shared = tensor;
    tensor = Tensor();
    EXPECT_EQ(4096u, ev::GetTransferMemoryStats().live_bytes);
    EXPECT_EQ(first, shared.flat<float>().data());
  }
  EXPECT_EQ(0u, ev::GetTransferMemoryStats().live_bytes);
  ASSERT_TRUE(
      MakeTransferTensor(tensorflow::DT_FLOAT, TensorShape({6}), &tensor));
  EXPECT_EQ(first, tensor.flat<float>().data());
  Tensor halves;
  ASSERT_TRUE(
      MakeTransferTensor(tensorflow::DT_HALF, TensorShape({6}), &halves));
  EXPECT_EQ(tensorflow::DT_HALF, halves.dtype());
}

}  // namespace
}  // namespace embedding_variable
