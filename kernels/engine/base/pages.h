// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory straight from the system, for what is big, touched at random and must
// really go away when it is given back. Random reads of 4 KiB pages pay for a
// page walk on most touches (about a third of the rate on a large table), so
// big arrays start on a 2 MiB boundary and ask for huge pages.

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

// Zeroed memory that costs nothing until it is touched, aligned to 2 MiB (to
// 4 KiB when bytes < 2 MiB). Null when the system refuses. Thread-safe.
void* MapPages(size_t bytes, PageKind kind);

// bytes: as given to MapPages.
void UnmapPages(void* address, size_t bytes);

// Turns a kSmall mapping into a kHuge one, the pages that are already touched
// included where the system can do that.
void MakeHuge(void* address, size_t bytes);

// Zeroed memory aligned to a cache line: from the heap below 2 MiB, from huge
// pages above. Null when there is none. Thread-safe.
void* AllocateLines(size_t bytes);
void FreeLines(void* address, size_t bytes);

// Tests only: every allocation of this file asks 'allow' first and fails when
// it says no. Null takes it away.
void SetAllocationHookForTesting(bool (*allow)(size_t bytes));

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PAGES_H_
