// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/transfer_memory.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>
#include <unordered_map>

namespace ev {
namespace {

constexpr size_t kPage = 4096;

struct Block {
  void* data;
  size_t bytes;
  void (*free)(void*);  // from the source that allocated it
};

std::atomic<TransferMemoryPool*> shared_pool{nullptr};

}  // namespace

struct TransferMemoryPool {
  std::mutex mu;
  TransferMemorySource source;
  std::unordered_map<void*, Block> live;
  std::deque<Block> idle;  // idle blocks, in the order they were freed
  size_t live_bytes = 0, idle_bytes = 0;
};

// Never destroyed: outputs may outlive whatever is destroyed at exit.
TransferMemoryPool* GetTransferMemoryPool() {
  TransferMemoryPool* const shared = shared_pool.load();
  if (shared != nullptr) return shared;
  static TransferMemoryPool* const own = new TransferMemoryPool;
  return own;
}

void UseTransferMemoryPool(TransferMemoryPool* pool) { shared_pool = pool; }

size_t TransferBlockBytes(size_t bytes) {
  size_t step = kPage;
  while (step * 16 < bytes) step *= 2;
  return std::max(kPage, (bytes + step - 1) / step * step);
}

void RegisterTransferMemory(const TransferMemorySource& source) {
  TransferMemoryPool* const pool = GetTransferMemoryPool();
  std::deque<Block> surplus;
  {
    std::lock_guard<std::mutex> lock(pool->mu);
    if (pool->source.allocate != nullptr &&
        (pool->source.is_pinned || !source.is_pinned)) {
      return;
    }
    pool->source = source;
    surplus.swap(pool->idle);
    pool->idle_bytes = 0;
  }
  for (const Block& block : surplus) block.free(block.data);
}

void* AllocateTransferMemory(size_t bytes) {
  const size_t wanted = TransferBlockBytes(bytes);
  TransferMemoryPool* const pool = GetTransferMemoryPool();
  TransferMemorySource source;
  {
    std::lock_guard<std::mutex> lock(pool->mu);
    source = pool->source;
    if (source.allocate == nullptr) return nullptr;
    for (size_t i = pool->idle.size(); i-- > 0;) {
      const Block block = pool->idle[i];
      if (block.bytes != wanted) continue;
      pool->idle.erase(pool->idle.begin() + i);
      pool->idle_bytes -= wanted;
      pool->live_bytes += wanted;
      pool->live[block.data] = block;
      return block.data;
    }
  }
  void* const data = source.allocate(wanted);  // slow, so not under the lock
  if (data == nullptr) return nullptr;
  try {
    std::lock_guard<std::mutex> lock(pool->mu);
    pool->live[data] = Block{data, wanted, source.free};
    pool->live_bytes += wanted;
  } catch (const std::bad_alloc&) {
    source.free(data);
    return nullptr;
  }
  return data;
}

void FreeTransferMemory(void* data) {
  TransferMemoryPool* const pool = GetTransferMemoryPool();
  std::unique_lock<std::mutex> lock(pool->mu);
  const auto found = pool->live.find(data);
  if (found == pool->live.end()) return;
  Block block = found->second;
  pool->live.erase(found);
  pool->live_bytes -= block.bytes;
  bool is_surplus = block.free != pool->source.free;  // it was replaced
  if (!is_surplus) {
    try {
      pool->idle.push_back(block);
      pool->idle_bytes += block.bytes;
    } catch (const std::bad_alloc&) {
      is_surplus = true;
    }
  }
  for (;;) {
    if (!is_surplus) {
      if (pool->idle_bytes <= kMaxIdleTransferBytes) return;
      block = pool->idle.front();
      pool->idle.pop_front();
      pool->idle_bytes -= block.bytes;
    }
    // Slow, so not under the lock.
    lock.unlock();
    block.free(block.data);
    lock.lock();
    is_surplus = false;
  }
}

TransferMemoryStats GetTransferMemoryStats() {
  TransferMemoryPool* const pool = GetTransferMemoryPool();
  std::lock_guard<std::mutex> lock(pool->mu);
  return TransferMemoryStats{pool->live_bytes, pool->idle_bytes};
}

}  // namespace ev
