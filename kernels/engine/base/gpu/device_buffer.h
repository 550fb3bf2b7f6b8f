// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block of memory for kernels that frees itself: device memory, or pinned
// host memory that kernels access in place.

#ifndef KERNELS_ENGINE_BASE_GPU_DEVICE_BUFFER_H_
#define KERNELS_ENGINE_BASE_GPU_DEVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Movable, not copyable. The memory belongs to the device that is current in
// Allocate and is aligned to at least 256 bytes. Freeing waits for the device
// (cudaFree), so do not free within a step.
class DeviceBuffer {
 public:
  DeviceBuffer() {}
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other);
  DeviceBuffer& operator=(DeviceBuffer&& other);
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // Frees the previous block and allocates size_bytes (0: nothing),
  // uninitialised. ResourceExhausted names 'what', the requested bytes and the
  // free bytes.
  Status Allocate(size_t size_bytes, const std::string& what);
  // Like Allocate, but of pinned host memory, at one address for host and
  // kernels. Takes about 0.4 ms per MiB.
  Status AllocateOnHost(size_t size_bytes, const std::string& what);
  void Free();

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  bool is_on_host() const { return is_on_host_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  bool is_on_host_ = false;
};

// Tests only: every allocation of at least one byte first calls 'allow' and
// fails as without memory if that returns false. Null removes the hook.
void SetDeviceAllocationHookForTesting(bool (*allow)(size_t bytes));

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_DEVICE_BUFFER_H_
