// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeviceGradients of the stand-in device of host_device_rows.h.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_GRADIENTS_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_GRADIENTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/testing/host_device_distinct.h"

namespace ev {
namespace testing {

// Gradients in host memory. Ends the process if a sample is put twice or not at
// all.
class HostDeviceGradients : public DeviceGradients {
 public:
  HostDeviceGradients(int64_t dim, int64_t num_samples)
      : dim_(dim), floats_(dim * num_samples), was_put_(num_samples) {}
  Status Put(int64_t begin, Span<const float> grads) override {
    Check(begin >= 0 && grads.size() % dim_ == 0 &&
              begin * dim_ + grads.size() <= floats_.size(),
          "gradients are beyond the batch", begin);
    for (size_t i = 0; i < grads.size() / dim_; ++i) {
      Check(!was_put_[begin + i].exchange(true), "a gradient is put twice",
            begin + i);
    }
    std::copy(grads.begin(), grads.end(), floats_.data() + begin * dim_);
    return Status::OK();
  }
  const float* all() const {
    for (const auto& was_put : was_put_) {
      Check(was_put, "a gradient was never put", 0);
    }
    return floats_.data();
  }

 private:
  const int64_t dim_;
  std::vector<float> floats_;
  std::vector<std::atomic<bool>> was_put_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_GRADIENTS_H_
