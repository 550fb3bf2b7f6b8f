// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/batch.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace hugectr {
namespace {

constexpr size_t kAlignment = 64;

// Larger blocks use pages of 2 MB if the system has them: fewer page faults and
// TLB misses.
constexpr size_t kHugePage = 1 << 21;

// Splits of a few sizes are cached, since the last batch of the data may be
// shorter.
constexpr size_t kKeptSplits = 8;

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  const bool is_huge = bytes >= kHugePage;
  if (posix_memalign(&memory, is_huge ? kHugePage : kAlignment,
                     bytes + AlignedMemory::kPadding) != 0) {
    throw std::bad_alloc();
  }
  // Only for speed, so errors are ignored.
  if (is_huge) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

AlignedMemory::~AlignedMemory() { free(data_); }

void AlignedMemory::Reserve(size_t bytes) {
  if (data_ != nullptr && bytes <= capacity_) return;
  void* memory = Allocate(bytes);
  free(data_);
  data_ = memory;
  capacity_ = bytes;
}

void AlignedMemory::Grow(size_t bytes, size_t used) {
  if (data_ != nullptr && bytes <= capacity_) return;
  bytes = std::max(bytes, capacity_ + capacity_ / 2);
  void* memory = Allocate(bytes);
  if (used > 0) std::memcpy(memory, data_, used);
  free(data_);
  data_ = memory;
  capacity_ = bytes;
}

void BatchPool::Return::operator()(Batch* batch) const {
  std::unique_ptr<Batch> returned(batch);
  std::lock_guard<std::mutex> hold(pool->lock_);
  pool->free_.push_back(std::move(returned));
}

BatchPool::Owned BatchPool::Take(int64_t size, int64_t global_size) {
  std::unique_ptr<Batch> batch;
  {
    std::lock_guard<std::mutex> hold(lock_);
    if (!free_.empty()) {
      batch = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (batch == nullptr) batch.reset(new Batch);
  batch->pool = this;
  batch->size = size;
  batch->global_size = global_size;
  batch->labels.Reserve(size * layout_.label_dim * sizeof(float));
  batch->dense.Reserve(size * layout_.dense_dim * sizeof(float));
  batch->inputs.resize(layout_.inputs.size());
  return Owned(batch.release(), Return{shared_from_this()});
}

std::shared_ptr<const AlignedMemory> BatchPool::OneKeySplits(const Input& input,
                                                             int64_t size) {
  std::lock_guard<std::mutex> hold(lock_);
  for (const Splits& kept : splits_) {
    if (kept.count == input.count && kept.size == size &&
        kept.is_slot_major == input.is_slot_major) {
      return kept.values;
    }
  }
  auto made = std::make_shared<AlignedMemory>();
  const int64_t total = NumSplits(input, size);
  made->Reserve(total * sizeof(int64_t));
  int64_t* values = made->as<int64_t>();
  const int64_t row = input.is_slot_major ? size + 1 : total;
  for (int64_t begin = 0; begin < total; begin += row) {
    for (int64_t i = 0; i < row; ++i) values[begin + i] = i;
  }
  if (splits_.size() == kKeptSplits) splits_.erase(splits_.begin());
  splits_.push_back(Splits{input.count, size, input.is_slot_major, made});
  return made;
}

}  // namespace hugectr
