// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Memory that each step needs again. Allocating megabytes in each step costs
// more than the work on them, because every page faults in again.

#ifndef KERNELS_ENGINE_BASE_SCRATCH_H_
#define KERNELS_ENGINE_BASE_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "kernels/engine/base/pages.h"

namespace ev {

// A block that only grows; growing loses its contents.
class LineBuffer {
 public:
  LineBuffer() {}
  ~LineBuffer() { FreeLines(data_, bytes_); }
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;

  // At least 'bytes' bytes, aligned to a cache line. Throws std::bad_alloc.
  void* Reserve(size_t bytes) {
    if (bytes <= bytes_) return data_;
    // A quarter more, so that batches of varying size do not reallocate
    // forever.
    const size_t wanted = RoundUp(bytes + bytes / 4, kCacheLine);
    void* fresh = AllocateLines(wanted);
    if (fresh == nullptr) throw std::bad_alloc();
    FreeLines(data_, bytes_);
    data_ = fresh;
    bytes_ = wanted;
    return data_;
  }
  template <typename T>
  T* ReserveOf(size_t count) {
    return static_cast<T*>(Reserve(count * sizeof(T)));
  }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Lays out several arrays in one LineBuffer: Add all of them, then take them in
// the same order.
class ArrayLayout {
 public:
  template <typename T>
  size_t Add(size_t count) {
    const size_t offset = bytes_;
    bytes_ += RoundUp(count * sizeof(T), kCacheLine);
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// Pool of idle objects for reuse. Thread-safe.
template <typename T>
class Recycler {
 public:
  // Returns its object to the pool when destroyed.
  class Handle {
   public:
    Handle(Recycler* home, std::unique_ptr<T> object)
        : home_(home), object_(std::move(object)) {}
    ~Handle() {
      if (object_) home_->Release(std::move(object_));
    }
    Handle(Handle&&) = default;
    T* operator->() const { return object_.get(); }
    T& operator*() const { return *object_; }

   private:
    Recycler* home_;
    std::unique_ptr<T> object_;
  };

  // Keeps at most max_idle objects. Throws std::bad_alloc; Release does not.
  explicit Recycler(size_t max_idle) : max_idle_(max_idle) {
    idle_.reserve(max_idle);
  }

  Handle Acquire() {
    std::unique_ptr<T> object = Take();
    if (!object) object.reset(new T);
    return Handle(this, std::move(object));
  }
  // Returns the object that was released last, or null.
  std::unique_ptr<T> Take() {
    std::lock_guard<std::mutex> lock(mu_);
    if (idle_.empty()) return nullptr;
    std::unique_ptr<T> object = std::move(idle_.back());
    idle_.pop_back();
    return object;
  }
  void Release(std::unique_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mu_);
    if (idle_.size() < max_idle_) idle_.push_back(std::move(object));
  }

 private:
  const size_t max_idle_;
  std::mutex mu_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_SCRATCH_H_
