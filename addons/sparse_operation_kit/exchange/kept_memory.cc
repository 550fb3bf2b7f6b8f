// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/kept_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <cstddef>

#include "kernels/engine/base/transfer_memory.h"

namespace sok {

void KeepMessages() {
  ev::TransferMemorySource source;
  source.is_pinned = false;
  source.allocate = [](size_t bytes) -> void* {
    constexpr size_t kHugePage = 2 << 20;
    void* data = nullptr;
    const size_t alignment = bytes < kHugePage ? 4096 : kHugePage;
    if (posix_memalign(&data, alignment, bytes) != 0) return nullptr;
    if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  };
  source.free = [](void* data) { free(data); };
  ev::RegisterTransferMemory(source);
}

}  // namespace sok
