// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An array that ends at the end of readable memory. Reading or writing an
// element beyond it raises SIGSEGV. A prefetch of such an address does not
// fault.

#ifndef KERNELS_ENGINE_TESTING_GUARDED_ARRAY_H_
#define KERNELS_ENGINE_TESTING_GUARDED_ARRAY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

namespace ev {
namespace testing {

template <typename T>
class GuardedArray {
 public:
  static_assert(std::is_trivially_copyable<T>::value,
                "no destructor is called");

  explicit GuardedArray(const std::vector<T>& elements)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        bytes_((elements.size() * sizeof(T) + page_ - 1) / page_ * page_) {
    void* const mapped = mmap(nullptr, bytes_ + page_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<char*>(mapped);
    if (mprotect(begin_ + bytes_, page_, PROT_NONE) != 0) {
      munmap(begin_, bytes_ + page_);
      throw std::bad_alloc();
    }
    data_ = reinterpret_cast<T*>(begin_ + bytes_) - elements.size();
    std::copy(elements.begin(), elements.end(), data_);
  }
  ~GuardedArray() { munmap(begin_, bytes_ + page_); }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::vector<T> ToVector() const {
    return std::vector<T>(data_, reinterpret_cast<T*>(begin_ + bytes_));
  }

 private:
  const size_t page_;
  const size_t bytes_;  // without the unreadable page after them
  char* begin_;
  T* data_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_GUARDED_ARRAY_H_
