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
  HostDeviceGradients(FloatType type, int64_t dim, int64_t num_samples)
      : type_(type),
        row_bytes_(dim * FloatBytes(type)),
        bytes_(row_bytes_ * num_samples),
        was_put_(num_samples) {}
  Status Put(int64_t begin, int64_t end, ConstFloats grads) override {
    Check(begin >= 0 && begin <= end &&
              end <= static_cast<int64_t>(was_put_.size()),
          "gradients are beyond the batch", begin);
    Check(grads.type() == type_, "gradients have another type than was said",
          begin);
    for (int64_t i = begin; i < end; ++i) {
      Check(!was_put_[i].exchange(true), "a gradient is put twice", i);
    }
    std::copy_n(grads.data(), (end - begin) * row_bytes_,
                bytes_.data() + begin * row_bytes_);
    return Status::OK();
  }
  ConstFloats all() const {
    for (const auto& was_put : was_put_) {
      Check(was_put, "a gradient was never put", 0);
    }
    return ConstFloats(bytes_.data(), type_);
  }

 private:
  const FloatType type_;
  const int64_t row_bytes_;
  std::vector<char> bytes_;
  std::vector<std::atomic<bool>> was_put_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_GRADIENTS_H_
