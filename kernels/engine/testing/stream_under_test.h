// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a framework has on the device of storage_under_test_device: memory, and
// a stream that is late. Link stream_under_test_host with host_device_rows, or
// stream_under_test_gpu with a GPU's.

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
  // Waits, and frees the memory.
  virtual ~StreamUnderTest() {}

  virtual DeviceStream stream() = 0;
  virtual float* Allocate(int64_t n) = 0;
  // Long after it has returned, in the stream's order.
  virtual void Fill(const std::vector<float>& from, float* to) = 0;
  // At once, whatever the stream still has to do.
  virtual std::vector<float> Peek(const float* from, int64_t n) = 0;
  virtual void Wait() = 0;
  // In the stream's order.
  std::vector<float> Read(const float* from, int64_t n) {
    Wait();
    return Peek(from, n);
  }
};

// Any stream of that device, also of another owner's, does the work in its
// order, long after this has returned. The work uses no device.
void GiveLate(const DeviceStream& stream, std::function<void()> work);

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_STREAM_UNDER_TEST_H_
