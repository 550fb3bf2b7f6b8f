// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for the pending counters (rows/gpu_compute.h) of one table of
// host_device_rows.h. Aborts the process if a row with pending counters is
// removed, or if the pending counters are taken during an update.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_COUNTERS_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_COUNTERS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace ev {
namespace testing {

class HostCounters {
 public:
  // Call them before and after an update of a step.
  void Begin() { ++updates_; }
  void End() { --updates_; }
  void Add(RowHandle row, const RowMeta& update, uint32_t occurrences) {
    std::lock_guard<std::mutex> lock(mu_);
    RowMeta& meta = of_[row];
    const uint32_t most = std::numeric_limits<uint32_t>::max();
    meta.frequency += std::min(occurrences, most - meta.frequency);
    meta.version_plus1 = update.version_plus1;
    meta.call = update.call;
  }
  // Calls take(row, meta) for each row.
  template <typename Take>
  void TakeAll(const Take& take) {
    std::lock_guard<std::mutex> lock(mu_);
    Check(updates_ == 0, "pending counters are taken during an update",
          updates_);
    for (const auto& row : of_) take(row.first, row.second);
    of_.clear();
  }
  bool has_any() const {
    std::lock_guard<std::mutex> lock(mu_);
    return !of_.empty();
  }
  void CheckHasNone(RowHandle row) {
    std::lock_guard<std::mutex> lock(mu_);
    Check(of_.count(row) == 0,
          "a row is removed before its pending counters are taken", row);
  }
  void Clear() {
    std::lock_guard<std::mutex> lock(mu_);
    of_.clear();
  }

 private:
  std::atomic<int> updates_{0};
  mutable std::mutex mu_;
  std::unordered_map<RowHandle, RowMeta> of_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_COUNTERS_H_
