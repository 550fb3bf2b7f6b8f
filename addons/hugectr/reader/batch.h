// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A batch's arrays, and the pool that batches come from and return to: the
// memory of a batch that was used up serves a later one, so that no page is
// touched for the first time but in the first batches.

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

// Memory that begins at a multiple of 64 bytes, as TensorFlow asks for where it
// is to take an array without a copy. What was stored is lost when it grows.
class AlignedMemory {
 public:
  // Bytes behind the end that may be read and written: loops may end in whole
  // vectors.
  static constexpr size_t kPadding = 64;

  AlignedMemory() = default;
  AlignedMemory(AlignedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedMemory& operator=(AlignedMemory&&) = delete;
  ~AlignedMemory();

  // Makes room for at least `bytes`; throws std::bad_alloc.
  void Reserve(size_t bytes);
  // The same, and keeps the first `used` bytes.
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

// keys: those of an input. splits: where keys of slots begin among them;
// slot-major [slots, size + 1], each row beginning at 0; otherwise
// [size * slots + 1].
struct InputKeys {
  AlignedMemory keys;
  int64_t num_keys = 0;
  // Of this batch, or shared by all batches whose samples have one key a slot.
  AlignedMemory own_splits;
  std::shared_ptr<const AlignedMemory> one_key_splits;
  int64_t num_splits = 0;

  const int64_t* splits() const {
    return one_key_splits ? one_key_splits->as<int64_t>()
                          : own_splits.as<int64_t>();
  }
};

class BatchPool;

// labels, dense: [size, dim], row by row.
struct Batch {
  // Where it is from; it keeps no pool alive.
  BatchPool* pool = nullptr;
  int64_t size = 0;
  int64_t global_size = 0;
  AlignedMemory labels;
  AlignedMemory dense;
  std::vector<InputKeys> inputs;
};

// Thread-safe. Batches that are out may outlive every other owner of the pool.
class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  explicit BatchPool(const Layout& layout) : layout_(layout) {}

  struct Return {
    std::shared_ptr<BatchPool> pool;
    void operator()(Batch* batch) const;
  };
  using Owned = std::unique_ptr<Batch, Return>;

  // A batch with room for the labels and dense features of `size` samples.
  Owned Take(int64_t size, int64_t global_size);

  // The splits of an input whose samples have one key in each slot.
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

// The number of splits of an input.
inline int64_t NumSplits(const Input& input, int64_t size) {
  return input.is_slot_major ? input.count * (size + 1)
                             : input.count * size + 1;
}

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BATCH_H_
