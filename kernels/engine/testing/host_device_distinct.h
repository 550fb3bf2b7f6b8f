// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplication by the device of host_device_rows.h. Ends the process when an
// id is put twice or not at all, when calls come in another order than
// promised, and when offsets are not those of the batch.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/device_distinct.h"

namespace ev {
namespace testing {

// Ends the process with the promise that was broken, unless it holds.
void Check(bool holds, const char* promise, int64_t which);

class HostDeviceDistinct : public DeviceDistinct {
 public:
  HostDeviceDistinct(int64_t num_ids, int64_t num_samples)
      : num_samples_(num_samples), ids_(num_ids), was_put_(num_ids) {}

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  // Does all of it: who forgets to wait is noticed.
  Status Wait() override;
  int64_t num_unique() const override;
  int64_t* keys() const override;
  int32_t* counts() const override;
  Status Occurrences(int32_t* samples) const override;

  // What a device keeps, after Wait.
  int64_t num_samples() const { return num_samples_; }
  Span<const int32_t> inverse() const { return inverse_; }
  Span<const int32_t> offsets() const { return offsets_; }
  Span<const int32_t> ends() const { return ends_; }
  Span<const int32_t> samples() const { return samples_; }

 private:
  enum class State { kPutting, kStarted, kDone };
  template <typename Id>
  Status PutTyped(int64_t begin, Span<const Id> ids);
  void CheckDone() const;

  const int64_t num_samples_;
  std::atomic<State> state_{State::kPutting};
  std::vector<int64_t> ids_;
  std::vector<char> was_put_;  // the width of the id
  std::vector<int32_t> offsets_, inverse_, ends_, samples_;
  mutable std::vector<int64_t> keys_;
  mutable std::vector<int32_t> counts_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_
