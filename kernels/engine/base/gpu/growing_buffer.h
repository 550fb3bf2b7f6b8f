// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A block of device memory that grows where it is: addresses are reserved for
// the most it may take, memory is put behind them piece by piece. Nothing is
// copied and no pointer into it changes.

#ifndef KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_
#define KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

// Movable, not copyable, not thread-safe. Memory comes in pieces of a multiple
// of 2 MiB, on the device that was current in Allocate. Addresses cost nothing
// but themselves: a device has 128 TiB or more.
class GrowingBuffer {
 public:
  GrowingBuffer() {}
  // Waits for the device, as freeing device memory does.
  ~GrowingBuffer();
  GrowingBuffer(GrowingBuffer&& other);
  GrowingBuffer& operator=(GrowingBuffer&& other);
  GrowingBuffer(const GrowingBuffer&) = delete;
  GrowingBuffer& operator=(const GrowingBuffer&) = delete;

  // Gives up what it held and takes size_bytes, uninitialised, and addresses
  // for max_bytes. Where max_bytes is no more than size_bytes this is a
  // DeviceBuffer, of any size, that cannot grow. ResourceExhausted names what,
  // the bytes that were wanted and those free; FailedPrecondition: the device
  // has no virtual memory management.
  Status Allocate(size_t size_bytes, size_t max_bytes, const std::string& what);

  // Has memory for size_bytes; more than that changes nothing. Does not wait
  // for work on the device. On an error, as in Allocate, nothing has changed.
  // InvalidArgument: more than max_bytes.
  Status GrowTo(size_t size_bytes, const std::string& what);

  // Gives back the pieces that begin at or behind size_bytes. REQUIRES: no work
  // on the device uses them.
  void ShrinkTo(size_t size_bytes);

  void* data() const { return data_ != nullptr ? data_ : fixed_.data(); }
  // Memory that is there: at least what was asked for.
  size_t size_bytes() const {
    return ends_.empty() ? fixed_.size_bytes() : ends_.back();
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data());
  }

 private:
  void Free();

  DeviceBuffer fixed_;        // when it cannot grow; else:
  char* data_ = nullptr;      // first address
  size_t reserved_ = 0;       // addresses
  size_t max_bytes_ = 0;      // what was asked for
  size_t granularity_ = 0;    // of pieces
  int device_ = 0;            // that has the memory
  std::vector<size_t> ends_;  // of the pieces
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_GROWING_BUFFER_H_
