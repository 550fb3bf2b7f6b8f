// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/stream_under_test.h"

namespace ev {
namespace testing {
namespace {

class HostStreamUnderTest : public StreamUnderTest {
 public:
  ~HostStreamUnderTest() override {
    stream_.Wait();
    for (float* memory : memory_) FreeHostDeviceMemory(memory);
  }
  DeviceStream stream() override { return stream_.stream(); }
  float* Allocate(int64_t n) override {
    memory_.push_back(
        static_cast<float*>(AllocateHostDeviceMemory(n * sizeof(float))));
    return memory_.back();
  }
  void Fill(const std::vector<float>& from, float* to) override {
    stream_.Give([=] { std::copy(from.begin(), from.end(), Reach(to)); });
  }
  std::vector<float> Peek(const float* from, int64_t n) override {
    const float* const reached = Reach(from);
    return std::vector<float>(reached, reached + n);
  }

  void Wait() override { stream_.Wait(); }

 private:
  HostStream stream_;
  std::vector<float*> memory_;
};

}  // namespace

std::unique_ptr<StreamUnderTest> StreamUnderTest::Make() {
  return std::unique_ptr<StreamUnderTest>(new HostStreamUnderTest);
}

void GiveLate(const DeviceStream& stream, std::function<void()> work) {
  static_cast<HostStream*>(stream.native)->Give(std::move(work));
}

}  // namespace testing
}  // namespace ev
