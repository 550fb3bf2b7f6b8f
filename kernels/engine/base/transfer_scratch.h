// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_TRANSFER_SCRATCH_H_
#define KERNELS_ENGINE_BASE_TRANSFER_SCRATCH_H_

#include <cstddef>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/transfer_memory.h"

namespace ev {

// A LineBuffer, a block that only grows, for data that is copied to or from a
// device. It uses transfer memory if available.
class TransferScratch {
 public:
  TransferScratch() {}
  ~TransferScratch() {
    if (transfer_ != nullptr) FreeTransferMemory(transfer_);
  }
  TransferScratch(const TransferScratch&) = delete;
  TransferScratch& operator=(const TransferScratch&) = delete;

  // Returns at least 'bytes' bytes, aligned to a cache line; growing loses the
  // contents. Throws std::bad_alloc.
  void* Reserve(size_t bytes) {
    if (bytes <= bytes_) return data_;
    const size_t wanted = bytes + bytes / 4;
    void* const fresh = AllocateTransferMemory(wanted);
    if (fresh == nullptr) {
      data_ = ordinary_.Reserve(wanted);
    } else {
      data_ = fresh;
    }
    if (transfer_ != nullptr) FreeTransferMemory(transfer_);
    transfer_ = fresh;
    bytes_ = wanted;
    return data_;
  }
  template <typename T>
  T* ReserveOf(size_t count) {
    return static_cast<T*>(Reserve(count * sizeof(T)));
  }
  size_t bytes() const { return bytes_; }

 private:
  void* transfer_ = nullptr;
  LineBuffer ordinary_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TRANSFER_SCRATCH_H_
