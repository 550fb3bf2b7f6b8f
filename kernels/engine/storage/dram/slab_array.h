// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An array of fixed-size items in slabs that never move: item i lives at
// directory[i >> shift] + (i & mask) * stride. The directory is small (8 bytes
// for 2 MiB and more of items) and stays in the first-level cache.
//
// Slabs are address space first and memory only as their items are touched.
// Slab 0 begins on 4 KiB pages, so that a table of a few rows costs a few
// pages; once a quarter of it is used it turns into huge pages, which every
// later slab has from the start.

#ifndef KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_
#define KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ev {

// The addresses of one moment, for a loop over many items: the compiler may
// keep all of it in registers. Good for every item whose index was known when
// it was made, until a slab is dropped.
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

// Thread-safe: Address while one thread at a time adds slabs. An index may be
// passed to Address by a thread that learnt of it after AddSlab returned.
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

  // Gives slab s zeroed memory; false, with nothing changed, when there is
  // none.
  bool AddSlab(size_t slab);
  // Gives the memory of slab s back. REQUIRES: no concurrent Address.
  void DropSlab(size_t slab);
  bool has_slab(size_t slab) const {
    return slab < used_rows_.size() && directory_.load()[slab] != nullptr;
  }
  // Items [0, rows) of the slab may be touched from now on (bookkeeping of
  // bytes() and of slab 0's pages). Never shrinks until DropSlab.
  void Use(size_t slab, size_t rows);

  size_t stride() const { return stride_; }
  size_t slab_rows() const { return size_t{mask_} + 1; }
  int rows_log2() const { return shift_; }
  // Dropped ones included.
  size_t num_slabs() const { return used_rows_.size(); }
  // Memory that the items used so far can occupy, and the directory.
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
  // Replaced directories: a reader may still be in one. Together they are no
  // longer than the current one.
  std::vector<std::unique_ptr<char*[]>> directories_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_DRAM_SLAB_ARRAY_H_
