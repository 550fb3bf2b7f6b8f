// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_memory.h"

#include <cmath>

#include "gtest/gtest.h"

namespace ev {
namespace testing {
namespace {

TEST(HostDeviceMemoryTest, OnlyTheDeviceCanAccessIt) {
  float* const memory =
      static_cast<float*>(AllocateHostDeviceMemory(3000 * sizeof(float)));
  ASSERT_NE(nullptr, memory);
  EXPECT_TRUE(std::isnan(*Reach(memory + 2999)));
  *Reach(memory + 2999) = 2.0f;
  const float* const at = memory + 2999;
  EXPECT_EQ(2.0f, *Reach(at));
  const float other = 0.0f;
  EXPECT_EQ(nullptr, Reach(&other));
  EXPECT_DEATH(static_cast<volatile float*>(memory)[1] = 1.0f, "");
  FreeHostDeviceMemory(memory);
  EXPECT_EQ(nullptr, Reach(memory));
}

TEST(HostStreamTest, RunsWorkInOrderWhenWaitedFor) {
  HostStream stream;
  int x = 1;
  stream.Give([&] { x += 2; });
  stream.Give([&] { x *= 5; });
  EXPECT_EQ(1, x);
  HostStream::Wait(stream.stream());
  EXPECT_EQ(15, x);
  stream.Wait();
  EXPECT_EQ(15, x);
}

TEST(HostStreamTest, APointCoversEarlierWorkOnly) {
  HostStream stream, other;
  int x = 1;
  stream.Give([&] { x += 2; });
  const auto first = stream.Record();
  EXPECT_EQ(first, stream.Record());
  // The streams wait for each other, at points recorded earlier.
  other.Give([&, first] {
    first->Reach();
    x *= 5;
  });
  const auto second = other.Record();
  stream.Give([second] { second->Reach(); });
  stream.Give([&] { x += 1; });
  EXPECT_FALSE(first->is_reached());
  first->Reach();
  EXPECT_TRUE(first->is_reached());
  EXPECT_EQ(3, x);
  stream.Wait();
  EXPECT_EQ(16, x);
}

}  // namespace
}  // namespace testing
}  // namespace ev
