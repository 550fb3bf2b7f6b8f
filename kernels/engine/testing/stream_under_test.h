// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A framework's memory and stream on the device of storage_under_test_device.
// The stream runs its work late. Link stream_under_test_host with
// host_device_rows, or stream_under_test_gpu with a GPU's rows.

#ifndef KERNELS_ENGINE_TESTING_STREAM_UNDER_TEST_H_
#define KERNELS_ENGINE_TESTING_STREAM_UNDER_TEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"

namespace ev {
namespace testing {

class StreamUnderTest {
 public:
  static std::unique_ptr<StreamUnderTest> Make();
  // Waits for the stream and frees the memory.
  virtual ~StreamUnderTest() {}

  virtual DeviceStream stream() = 0;
  virtual float* Allocate(int64_t n) = 0;
  // Copies in the stream's order, long after it has returned.
  virtual void Fill(const std::vector<float>& from, float* to) = 0;
  // Copies at once, whatever work the stream still has.
  virtual std::vector<float> Peek(const float* from, int64_t n) = 0;
  virtual void Wait() = 0;
  // Copies in the stream's order.
  std::vector<float> Read(const float* from, int64_t n) {
    Wait();
    return Peek(from, n);
  }
};

// Enqueues work on any stream of that device, including streams of other
// owners. It runs in the stream's order, long after this has returned, and must
// not use the device.
void GiveLate(const DeviceStream& stream, std::function<void()> work);

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_STREAM_UNDER_TEST_H_
