// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_TESTING_DEVICE_SHORTAGE_H_
#define KERNELS_ENGINE_TESTING_DEVICE_SHORTAGE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {
namespace testing {

// Allocations of device memory that the stand-in device (host_device_rows.h)
// may make before one fails, which makes it negative. Negative: none fails.
inline std::atomic<int64_t>& DeviceAllocationsLeft() {
  static std::atomic<int64_t> left{-1};
  return left;
}

// Called by the stand-in wherever a GPU would allocate memory.
inline Status AllocateOnDevice(const char* what) {
  std::atomic<int64_t>& left = DeviceAllocationsLeft();
  if (left < 0 || --left >= 0) return Status::OK();
  return ResourceExhausted(std::string("no device memory for ") + what);
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_DEVICE_SHORTAGE_H_
