// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The arrays of a batch, and a pool that recycles batches. Reusing their memory
// avoids page faults after the first batches.

#ifndef ADDONS_HUGECTR_READER_BATCH_H_
#define ADDONS_HUGECTR_READER_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "addons/hugectr/reader/layout.h"

namespace hugectr {

// Memory aligned to 64 bytes, which TensorFlow requires to use an array without
// a copy. Reserve does not keep the contents.
class AlignedMemory {
 public:
  // Readable and writable bytes beyond the capacity, so that loops may end in
  // whole vectors.
  static constexpr size_t kPadding = 64;

  AlignedMemory() = default;
  AlignedMemory(AlignedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedMemory& operator=(AlignedMemory&&) = delete;
  ~AlignedMemory();

  // Allocates at least `bytes`; throws std::bad_alloc.
  void Reserve(size_t bytes);
  // Reserve that keeps the first `used` bytes.
  void Grow(size_t bytes, size_t used);

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t capacity() const { return capacity_; }

 private:
  void* data_ = nullptr;
  size_t capacity_ = 0;
};

// The keys of one input. splits: start of each slot's keys; slot-major: [slots,
// size + 1], each row starting at 0; otherwise [size * slots + 1].
struct InputKeys {
  AlignedMemory keys;
  int64_t num_keys = 0;
  // Own splits, or splits shared by all batches whose samples have one key per
  // slot.
  AlignedMemory own_splits;
  std::shared_ptr<const AlignedMemory> one_key_splits;
  int64_t num_splits = 0;

  const int64_t* splits() const {
    return one_key_splits ? one_key_splits->as<int64_t>()
                          : own_splits.as<int64_t>();
  }
};

class BatchPool;

// One rank's share of a batch. labels, dense: [size, dim], row-major.
struct Batch {
  // The pool to return to; does not keep it alive.
  BatchPool* pool = nullptr;
  int64_t size = 0;
  int64_t global_size = 0;
  AlignedMemory labels;
  AlignedMemory dense;
  std::vector<InputKeys> inputs;
};

// Thread-safe. Batches in use keep the pool alive.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  explicit BatchPool(const Layout& layout) : layout_(layout) {}

  struct Return {
    std::shared_ptr<BatchPool> pool;
    void operator()(Batch* batch) const;
  };
  using Owned = std::unique_ptr<Batch, Return>;

  // Returns a batch with memory for the labels and dense features of `size`
  // samples.
  Owned Take(int64_t size, int64_t global_size);

  // Returns the splits of an input whose samples have one key per slot.
  std::shared_ptr<const AlignedMemory> OneKeySplits(const Input& input,
                                                    int64_t size);

  const Layout& layout() const { return layout_; }

 private:
  struct Splits {
    int64_t count, size;
    bool is_slot_major;
    std::shared_ptr<const AlignedMemory> values;
  };

  const Layout layout_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Batch>> free_;
  std::vector<Splits> splits_;
};

// Returns the number of splits of an input.
inline int64_t NumSplits(const Input& input, int64_t size) {
  return input.is_slot_major ? input.count * (size + 1)
                             : input.count * size + 1;
}

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BATCH_H_
