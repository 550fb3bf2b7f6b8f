// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_TESTING_COUNTING_ROW_SOURCE_H_
#define KERNELS_ENGINE_TESTING_COUNTING_ROW_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/engine/table/cpu/hash_index.h"

namespace ev {
namespace testing {

// Returns rows 0, 1, 2, ..., which have no memory; fails from 'limit' rows on.
class CountingRowSource : public RowSource {
 public:
  explicit CountingRowSource(int64_t limit = kFirstReservedHandle)
      : limit_(limit) {}

  Status NewRow(int64_t key, RowHandle* handle) override {
    const int64_t row = next_.fetch_add(1, std::memory_order_relaxed);
    if (row >= limit_.load(std::memory_order_relaxed)) {
      next_.fetch_sub(1, std::memory_order_relaxed);
      return ResourceExhausted("no row for key " + std::to_string(key));
    }
    *handle = static_cast<RowHandle>(row);
    return Status::OK();
  }

  int64_t rows() const { return next_.load(std::memory_order_relaxed); }
  void set_limit(int64_t limit) { limit_.store(limit); }

 private:
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> limit_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_COUNTING_ROW_SOURCE_H_
