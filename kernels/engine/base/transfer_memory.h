// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory of this process that a device reads and writes by itself, at the full
// rate of its link: pinned pages. What a lookup gives out lies best there, and
// what an update takes in. Pinning costs more than copying, so blocks are kept
// and given out again, which spares the page faults of fresh memory as well.
//
// All calls are thread-safe.

#ifndef KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_
#define KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace ev {

// Where blocks come from; allocate gives null when there is nothing.
struct TransferMemorySource {
  void* (*allocate)(size_t bytes) = nullptr;
  void (*free)(void* block) = nullptr;
  // Whether a device reads and writes the blocks by itself.
  bool is_pinned = true;
};

// Called by code that has a device, once it is in use, or that has another use
// for memory that is kept. The first source stays, but a pinned one takes the
// place of one that is not.
void RegisterTransferMemory(const TransferMemorySource& source);

// At least that many bytes, aligned to a page, not initialised. Null without a
// device or without memory: ordinary memory does as well, more slowly.
void* AllocateTransferMemory(size_t bytes);
// Takes blocks of AllocateTransferMemory only. Keeps at most
// kMaxIdleTransferBytes; the block that was given back first goes first.
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

// What a request of that many bytes takes: at most an eighth more, so that
// batches of nearly one size share blocks.
size_t TransferBlockBytes(size_t bytes);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TRANSFER_MEMORY_H_
