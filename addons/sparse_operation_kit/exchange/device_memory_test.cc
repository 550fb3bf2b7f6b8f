// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests ExchangeDevice::KeepUntil on every device: the GPU and the stand-in in
// host memory.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/testing/skip_without_gpu.h"
#include "kernels/engine/testing/stream_under_test.h"

namespace sok {
namespace {

constexpr int kNotFreed = -1;

class DeviceMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { EV_SKIP_WITHOUT_GPU(ExchangeDevice::Get(&device_)); }

  ExchangeDevice* device_ = nullptr;
};

// Enqueues late work three times; each keeps memory that it may read.
TEST_F(DeviceMemoryTest, KeepsMemoryUntilTheStreamIsDone) {
  // done: number of works that have finished. done_when_freed: its value when
  // each memory was freed. Both may outlive a failing test.
  const auto done = std::make_shared<std::atomic<int>>(0);
  std::vector<std::shared_ptr<std::atomic<int>>> done_when_freed;
  for (int k = 0; k < 3; ++k) {
    std::shared_ptr<char> memory;
    const ev::Status status = device_->Allocate(1000, &memory);
    ASSERT_TRUE(status.ok()) << status.message();
    const auto freed = std::make_shared<std::atomic<int>>(kNotFreed);
    done_when_freed.push_back(freed);
    std::shared_ptr<char> noted(memory.get(), [=](char*) mutable {
      *freed = done->load();
      memory.reset();
    });
    ev::testing::GiveLate(device_->stream(), [done] { ++*done; });
    std::shared_ptr<StreamEvent> event;
    const ev::Status marked = device_->RecordEvent(device_->stream(), &event);
    ASSERT_TRUE(marked.ok()) << marked.message();
    device_->KeepUntil(event, std::move(noted));
  }
  // Finished memory is released at the latest when more is allocated.
  const auto all_are_freed = [&] {
    return std::none_of(done_when_freed.begin(), done_when_freed.end(),
                        [](const std::shared_ptr<std::atomic<int>>& freed) {
                          return *freed == kNotFreed;
                        });
  };
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!all_are_freed() && std::chrono::steady_clock::now() < last) {
    std::shared_ptr<char> other;
    const ev::Status status = device_->Allocate(1000, &other);
    ASSERT_TRUE(status.ok()) << status.message();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int k = 0; k < 3; ++k) {
    ASSERT_NE(kNotFreed, *done_when_freed[k]) << "memory " << k << " stays";
    EXPECT_GT(*done_when_freed[k], k)
        << "memory " << k << " went before its work was done";
  }
}

}  // namespace
}  // namespace sok
