// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Host memory that a device reads and writes directly, at the full rate of its
// link: pinned pages. It is the best place for outputs of a lookup and inputs
// of an update. Pinning costs more than copying, so blocks are kept for reuse,
// which also avoids the page faults of fresh memory. Without a device, the
// blocks may be ordinary memory, which is kept only to avoid the page faults.
//
// All calls are thread-safe.

#ifndef KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_
#define KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace ev {

// Allocator of the blocks; allocate returns null if it has no memory.
struct TransferMemorySource {
  void* (*allocate)(size_t bytes) = nullptr;
  void (*free)(void* block) = nullptr;
  // Whether a device accesses the blocks directly.
  bool is_pinned = true;
};

// Sets the allocator. Device code registers a pinned source once the device is
// in use. Code that only needs recycled memory registers a source of ordinary
// memory. The first source stays, except that a pinned source replaces an
// unpinned one.
void RegisterTransferMemory(const TransferMemorySource& source);

// Returns at least that many bytes, aligned to a page, uninitialised. Returns
// null if no source is registered or memory is short: use ordinary memory,
// which is slower, but correct.
void* AllocateTransferMemory(size_t bytes);
// Frees a block of AllocateTransferMemory; ignores other pointers. Keeps at
// most kMaxIdleTransferBytes of idle blocks and releases the oldest first.
void FreeTransferMemory(void* block);

constexpr size_t kMaxIdleTransferBytes = size_t{2} << 30;

// The blocks and their source. Code that is linked twice in a process, into an
// op library and into its CUDA library, shares the op library's pool.
struct TransferMemoryPool;
TransferMemoryPool* GetTransferMemoryPool();
// From now on this copy of the code uses that pool. Call it before any other
// function of this file.
void UseTransferMemoryPool(TransferMemoryPool* pool);

struct TransferMemoryStats {
  size_t live_bytes, idle_bytes;
};
TransferMemoryStats GetTransferMemoryStats();

// Returns the block size for a request of that many bytes: at most an eighth
// more, so that batches of similar size share blocks.
size_t TransferBlockBytes(size_t bytes);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_
