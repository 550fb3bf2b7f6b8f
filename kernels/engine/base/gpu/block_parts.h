// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How arrays share a block of memory: one after the other, each aligned for any
// access of a GPU. Needs no CUDA.

#ifndef KERNELS_ENGINE_BASE_GPU_BLOCK_PARTS_H_
#define KERNELS_ENGINE_BASE_GPU_BLOCK_PARTS_H_

#include <cstddef>

#include "kernels/engine/base/span.h"

namespace ev {
namespace gpu {

// Where the parts of a block are.
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

// Takes arrays off a block. Without one, in a first pass, it counts the bytes
// that the block needs, and all that it gives is null.
class Carver {
 public:
  explicit Carver(char* block) : block_(block) {}
  template <typename T>
  T* Take(size_t count) {
    return reinterpret_cast<T*>(At(parts_.AddBytes(count * sizeof(T))));
  }
  // Where the next array begins.
  char* here() const { return At(parts_.bytes()); }
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
