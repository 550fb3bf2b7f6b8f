// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory mapped directly from the system, for large blocks that are read at
// random and must really be returned when they are freed. With 4 KiB pages most
// random reads pay for a page walk, which costs about a third of the rate on a
// large table. So large arrays start on a 2 MiB boundary and request huge
// pages.

#ifndef KERNELS_ENGINE_BASE_PAGES_H_
#define KERNELS_ENGINE_BASE_PAGES_H_

#include <cstddef>

namespace ev {

constexpr size_t kCacheLine = 64;
constexpr size_t kSmallPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

inline size_t RoundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

enum class PageKind {
  kSmall,  // 4 KiB pages even where the system prefers huge ones
  kHuge,   // 2 MiB pages wherever a whole one fits
};

// Returns zeroed memory that takes no physical pages until it is touched,
// aligned to 2 MiB (to 4 KiB if bytes < 2 MiB). Null if the system refuses.
// Thread-safe.
void* MapPages(size_t bytes, PageKind kind);

// bytes: as given to MapPages.
void UnmapPages(void* address, size_t bytes);

// Turns a kSmall mapping into a kHuge one. Pages that were touched already are
// included if the system supports that.
void MakeHuge(void* address, size_t bytes);

// Returns zeroed memory aligned to a cache line: from the heap below 2 MiB,
// from huge pages above. Null if no memory is free. Thread-safe.
void* AllocateLines(size_t bytes);
void FreeLines(void* address, size_t bytes);

// Tests only: every allocation of this file first calls 'allow' and fails if
// that returns false. Null removes the hook.
void SetAllocationHookForTesting(bool (*allow)(size_t bytes));

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PAGES_H_
