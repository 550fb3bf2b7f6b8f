// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/pages.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; older kernels return EINVAL
#endif

namespace ev {
namespace {

std::atomic<bool (*)(size_t)> allocation_hook{nullptr};

bool Allowed(size_t bytes) {
  bool (*hook)(size_t) = allocation_hook.load(std::memory_order_acquire);
  return hook == nullptr || hook(bytes);
}

}  // namespace

void SetAllocationHookForTesting(bool (*allow)(size_t bytes)) {
  allocation_hook.store(allow, std::memory_order_release);
}

void* MapPages(size_t bytes, PageKind kind) {
  if (!Allowed(bytes)) return nullptr;
  const size_t length = RoundUp(bytes, kSmallPage);
  if (length < bytes) return nullptr;  // bytes near 2^64
  // Any 2 MiB boundary lies within the first 2 MiB of a longer mapping. The
  // surplus on both sides is unmapped at once.
  const size_t slack = length >= kHugePage ? kHugePage - kSmallPage : 0;
  if (length + slack < length) return nullptr;
  void* raw = mmap(nullptr, length + slack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(raw);
  if (slack != 0) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(raw);
    const size_t head = RoundUp(address, kHugePage) - address;
    if (head != 0) munmap(begin, head);
    if (head != slack) munmap(begin + head + length, slack - head);
    begin += head;
  }
  // Advice only: without huge pages everything works, but slower.
  if (length >= kHugePage) {
    madvise(begin, length,
            kind == PageKind::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  return begin;
}

void UnmapPages(void* address, size_t bytes) {
  if (address != nullptr) munmap(address, RoundUp(bytes, kSmallPage));
}

void MakeHuge(void* address, size_t bytes) {
  const size_t length = RoundUp(bytes, kSmallPage);
  if (length < kHugePage) return;
  madvise(address, length, MADV_HUGEPAGE);
  madvise(address, length, MADV_COLLAPSE);
}

void* AllocateLines(size_t bytes) {
  if (bytes >= kHugePage) return MapPages(bytes, PageKind::kHuge);
  if (!Allowed(bytes)) return nullptr;
  const size_t length = RoundUp(bytes, kCacheLine);
  void* address = nullptr;
  if (posix_memalign(&address, kCacheLine, length) != 0) return nullptr;
  std::memset(address, 0, length);
  return address;
}

void FreeLines(void* address, size_t bytes) {
  if (bytes >= kHugePage) {
    UnmapPages(address, bytes);
  } else {
    std::free(address);
  }
}

}  // namespace ev
