// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Layout of several arrays in one memory block: one after the other, each
// aligned for any access of a GPU. Does not depend on CUDA.

#ifndef KERNELS_ENGINE_BASE_GPU_BLOCK_PARTS_H_
#define KERNELS_ENGINE_BASE_GPU_BLOCK_PARTS_H_

#include <cstddef>

#include "kernels/engine/base/span.h"

namespace ev {
namespace gpu {

// Computes the offsets of the arrays in a block.
class Parts {
 public:
  template <typename T>
  size_t Add(Span<const T> part) {
    return AddBytes(part.size() * sizeof(T));
  }
  size_t AddBytes(size_t bytes) {
    const size_t at = bytes_;
    bytes_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlign = 256;
  size_t bytes_ = 0;
};

// Takes arrays off a block. With a null block, in a first pass, it only counts
// the bytes that the block needs, and returns null for each array.
class Carver {
 public:
  explicit Carver(char* block) : block_(block) {}
  template <typename T>
  T* Take(size_t count) {
    return reinterpret_cast<T*>(At(parts_.AddBytes(count * sizeof(T))));
  }
  // First byte of the next array.
  char* next() const { return At(parts_.bytes()); }
  size_t bytes() const { return parts_.bytes(); }

 private:
  char* At(size_t offset) const {
    return block_ == nullptr ? nullptr : block_ + offset;
  }

  char* const block_;
  Parts parts_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_BLOCK_PARTS_H_
