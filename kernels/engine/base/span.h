// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A pointer and a length: the engine's view of memory that other code owns.
// Readable by C++14, since kernels/tf is compiled with TensorFlow's own
// dialect.

#ifndef KERNELS_ENGINE_BASE_SPAN_H_
#define KERNELS_ENGINE_BASE_SPAN_H_

#include <cstddef>
#include <type_traits>
#include <vector>

namespace ev {

template <typename T>
class Span {
 public:
  constexpr Span() : data_(nullptr), size_(0) {}
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  // From a vector of the same (or of the non-const) element type.
  template <typename U, typename = typename std::enable_if<
                            std::is_convertible<U (*)[], T (*)[]>::value>::type>
  Span(const std::vector<U>& v)  // NOLINT: implicit on purpose
      : data_(const_cast<T*>(v.data())), size_(v.size()) {}
  template <typename U, typename = typename std::enable_if<
                            std::is_convertible<U (*)[], T (*)[]>::value>::type>
  constexpr Span(const Span<U>& s)  // NOLINT: implicit on purpose
      : data_(s.data()), size_(s.size()) {}

  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  Span subspan(size_t offset, size_t count) const {
    return Span(data_ + offset, count);
  }

 private:
  T* data_;
  size_t size_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_SPAN_H_
