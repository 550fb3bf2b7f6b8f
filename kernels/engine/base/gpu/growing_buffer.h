// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block of device memory that grows in place. Addresses are reserved for its
// maximum size, and memory is mapped to them in chunks. Growing copies nothing,
// and pointers into the block stay valid.

#ifndef KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_
#define KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Movable, not copyable, not thread-safe. Memory is added in multiples of 2
// MiB, on the device that was current in Allocate. Reserved addresses cost no
// memory; a device has 128 TiB of them or more.
class GrowingBuffer {
 public:
  GrowingBuffer() {}
  // Waits for the device, because freeing device memory does.
  ~GrowingBuffer();
  GrowingBuffer(GrowingBuffer&& other);
  GrowingBuffer& operator=(GrowingBuffer&& other);
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;

  // Frees the previous block, allocates size_bytes, uninitialised, and reserves
  // addresses for max_bytes. If max_bytes <= size_bytes, this is a plain
  // DeviceBuffer of any size that cannot grow. ResourceExhausted names 'what',
  // the requested bytes and the free bytes. FailedPrecondition: the device has
  // no virtual memory management.
  Status Allocate(size_t size_bytes, size_t max_bytes, const std::string& what);

  // Grows the memory to size_bytes; no effect if it is that large already. Does
  // not wait for work on the device. InvalidArgument: more than max_bytes.
  // Other errors as in Allocate. After an error nothing has changed.
  Status GrowTo(size_t size_bytes, const std::string& what);

  // Unmaps the chunks that begin at or after size_bytes. REQUIRES: no work on
  // the device uses them.
  void ShrinkTo(size_t size_bytes);

  void* data() const { return data_ != nullptr ? data_ : fixed_.data(); }
  // Mapped memory: at least the requested size.
  size_t size_bytes() const {
    return ends_.empty() ? fixed_.size_bytes() : ends_.back();
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data());
  }

 private:
  void Free();

  DeviceBuffer fixed_;        // used if it cannot grow; else:
  char* data_ = nullptr;      // first address
  size_t reserved_ = 0;       // bytes of addresses
  size_t max_bytes_ = 0;      // as requested
  size_t granularity_ = 0;    // of chunks
  int device_ = 0;            // holds the memory
  std::vector<size_t> ends_;  // of the chunks
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_
