// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An array of fixed-size items in slabs that never move: item i is at
// directory[i >> shift] + (i & mask) * stride. The directory is small (8 bytes
// for 2 MiB or more of items) and stays in the first-level cache.
//
// A slab is reserved address space that becomes memory as its items are
// touched. Slab 0 starts on 4 KiB pages, so that a table of a few rows costs a
// few pages. When a quarter of it is used, it is converted to huge pages. All
// later slabs have huge pages from the start.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_
#define KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ev {

// A snapshot of the addresses, for a loop over many items: the compiler may
// keep all of it in registers. Valid for every item whose index existed when it
// was made, until a slab is dropped.
class SlabView {
 public:
  SlabView(char* const* directory, int shift, uint32_t mask, size_t stride)
      : directory_(directory), stride_(stride), mask_(mask), shift_(shift) {}
  char* Address(uint32_t index) const {
    return directory_[index >> shift_] +
           static_cast<size_t>(index & mask_) * stride_;
  }

 private:
  char* const* directory_;
  size_t stride_;
  uint32_t mask_;
  int shift_;
};

// Address is thread-safe while one thread at a time adds slabs. A thread may
// pass an index to Address only if it received the index after AddSlab
// returned.
class SlabArray {
 public:
  SlabArray(size_t stride, int rows_log2);
  ~SlabArray();
  SlabArray(const SlabArray&) = delete;
  SlabArray& operator=(const SlabArray&) = delete;

  SlabView view() const {
    return SlabView(directory_.load(std::memory_order_acquire), shift_, mask_,
                    stride_);
  }
  char* Address(uint32_t index) const { return view().Address(index); }

  // Allocates zeroed memory for slab s. Returns false, with nothing changed, if
  // no memory is free.
  bool AddSlab(size_t slab);
  // Frees the memory of slab s. REQUIRES: no concurrent Address.
  void DropSlab(size_t slab);
  // Frees the memory of all slabs. REQUIRES: no concurrent Address.
  void Clear();
  bool has_slab(size_t slab) const {
    return slab < used_rows_.size() && directory_.load()[slab] != nullptr;
  }
  // Marks items [0, rows) of the slab as used (bookkeeping for bytes() and for
  // slab 0's pages). Never shrinks until DropSlab.
  void Use(size_t slab, size_t rows);

  size_t stride() const { return stride_; }
  size_t slab_rows() const { return size_t{mask_} + 1; }
  int rows_log2() const { return shift_; }
  // Memory that the items used so far can occupy, plus the directory.
  size_t bytes() const;

 private:
  bool GrowDirectory(size_t slabs);
  size_t SlabBytes() const { return stride_ << shift_; }
  size_t UsedBytes(size_t slab) const;

  const size_t stride_;
  const int shift_;
  const uint32_t mask_;
  std::atomic<char**> directory_;
  size_t capacity_ = 0;
  bool slab0_huge_ = false;
  size_t touched_ = 0;             // sum of UsedBytes
  std::vector<size_t> used_rows_;  // per slab
  // Replaced directories, which a reader may still be using. Together they are
  // no longer than the current one.
  std::vector<std::unique_ptr<char*[]>> directories_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_
