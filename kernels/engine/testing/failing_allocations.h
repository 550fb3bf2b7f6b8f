// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Replaces operator new in a test program, so that an allocation can fail. To
// be included by one source file of a program.

#ifndef KERNELS_ENGINE_TESTING_FAILING_ALLOCATIONS_H_
#define KERNELS_ENGINE_TESTING_FAILING_ALLOCATIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ev {
namespace testing {

// Allocations that this thread may make before one throws std::bad_alloc, which
// makes it negative. Negative: none fails.
thread_local int64_t allocations_left = -1;

inline void* AllocateOrFail(size_t bytes, size_t alignment) {
  if (allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace testing
}  // namespace ev

void* operator new(size_t bytes) {
  return ev::testing::AllocateOrFail(bytes, alignof(std::max_align_t));
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return ev::testing::AllocateOrFail(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif  // KERNELS_ENGINE_TESTING_FAILING_ALLOCATIONS_H_
