// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/slab_array.h"

#include <algorithm>
#include <new>

#include "kernels/engine/base/pages.h"

namespace ev {

SlabArray::SlabArray(size_t stride, int rows_log2)
    : stride_(stride),
      shift_(rows_log2),
      mask_((uint32_t{1} << rows_log2) - 1),
      directory_(nullptr) {}

SlabArray::~SlabArray() { Clear(); }

void SlabArray::Clear() {
  for (size_t s = 0; s < used_rows_.size(); ++s) DropSlab(s);
}

bool SlabArray::GrowDirectory(size_t slabs) {
  if (slabs > capacity_) {
    const size_t capacity = std::max<size_t>({slabs, 2 * capacity_, 4});
    std::unique_ptr<char*[]> grown(new (std::nothrow) char*[capacity]());
    if (grown == nullptr) return false;
    char** old = directory_.load(std::memory_order_relaxed);
    std::copy(old, old + used_rows_.size(), grown.get());
    directories_.push_back(std::move(grown));
    directory_.store(directories_.back().get(), std::memory_order_release);
    capacity_ = capacity;
  }
  if (slabs > used_rows_.size()) used_rows_.resize(slabs, 0);
  return true;
}

bool SlabArray::AddSlab(size_t slab) {
  try {
    if (!GrowDirectory(slab + 1)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void* memory =
      MapPages(SlabBytes(), slab == 0 ? PageKind::kSmall : PageKind::kHuge);
  if (memory == nullptr) return false;
  if (slab == 0) slab0_huge_ = false;
  directory_.load(std::memory_order_relaxed)[slab] = static_cast<char*>(memory);
  return true;
}

void SlabArray::DropSlab(size_t slab) {
  char*& memory = directory_.load(std::memory_order_relaxed)[slab];
  if (memory == nullptr) return;
  touched_ -= UsedBytes(slab);
  used_rows_[slab] = 0;
  UnmapPages(memory, SlabBytes());
  memory = nullptr;
}

size_t SlabArray::UsedBytes(size_t slab) const {
  const bool huge = slab != 0 || slab0_huge_;
  return std::min(
      RoundUp(used_rows_[slab] * stride_, huge ? kHugePage : kSmallPage),
      RoundUp(SlabBytes(), kSmallPage));
}

void SlabArray::Use(size_t slab, size_t rows) {
  if (rows <= used_rows_[slab]) return;
  touched_ -= UsedBytes(slab);
  used_rows_[slab] = rows;
  if (slab == 0 && !slab0_huge_ && rows > slab_rows() / 4) {
    slab0_huge_ = true;
    MakeHuge(directory_.load(std::memory_order_relaxed)[0], SlabBytes());
  }
  touched_ += UsedBytes(slab);
}

size_t SlabArray::bytes() const {
  return touched_ + 2 * capacity_ * sizeof(char*) +
         used_rows_.capacity() * sizeof(size_t);
}

}  // namespace ev
