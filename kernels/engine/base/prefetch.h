// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_BASE_PREFETCH_H_
#define KERNELS_ENGINE_BASE_PREFETCH_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/pages.h"

namespace ev {

// Prefetches one cache line for reading. Never faults.
inline void PrefetchLine(const void* address) {
  __builtin_prefetch(address, 0, 3);
}

// Prefetches every line that [address, address + bytes) touches.
inline void PrefetchBytes(const void* address, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t line = begin & ~uintptr_t{kCacheLine - 1};
       line < begin + bytes; line += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 3);
  }
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PREFETCH_H_
