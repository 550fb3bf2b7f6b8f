// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Stand-in for deduplication on a GPU, and for the GPU's key tables. Aborts the
// process if the caller breaks the contract:
//
//   an id is put twice or not at all;
//   calls are out of order;
//   offsets are not those of the batch;
//   results are read before Wait;
//   a key is inserted with two rows, or still has a row that is forgotten.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/ids/device_distinct.h"

namespace ev {
namespace testing {

// Aborts the process if 'holds' is false. The message has 'promise', which
// describes the breach, and 'which'.
void Check(bool holds, const char* promise, int64_t which);

// Stand-in for the GPU's key table of one embedding table. Thread-safe.
class HostKnownKeys {
 public:
  // Returns kNoRow if the key has no row.
  RowHandle Find(int64_t key) const;
  // Handles without a row are ignored.
  void Put(int64_t key, RowHandle handle);
  void Erase(Span<const int64_t> keys);
  void Clear();
  // Aborts the process if a key has this row.
  void CheckHasNoKey(RowHandle handle) const;

 private:
  mutable std::mutex mu_;
  std::unordered_map<int64_t, RowHandle> rows_;
  std::unordered_map<RowHandle, int64_t> keys_;
};

// Number of tables, of those deduplicated together, that are not yet started.
using UnstartedTables = std::shared_ptr<std::atomic<int64_t>>;

class HostDeviceDistinct : public DeviceDistinct {
 public:
  // For one table by itself, whose ids are put.
  HostDeviceDistinct(int64_t num_ids, int64_t num_samples)
      : HostDeviceDistinct(RequestOf(num_ids, num_samples),
                           std::make_shared<std::atomic<int64_t>>(1)) {}
  // Wait reads a batch in GPU memory (host_device_memory.h).
  HostDeviceDistinct(const DistinctRequest& request, UnstartedTables unstarted)
      : num_samples_(request.num_samples),
        unstarted_(std::move(unstarted)),
        on_device_(request.on_device),
        brings_inverse_(request.brings_inverse),
        device_ids_(request.device_ids),
        owners_(request.owners.begin(), request.owners.end()),
        num_owners_(request.num_owners),
        ids_(request.num_ids),
        was_put_(request.on_device ? 0 : request.num_ids) {}

  bool needs_put() const override { return !on_device_; }

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  // Returns true at every second call, if all tables have been started and
  // BeLate was not called.
  bool IsDone() const override;
  void BeLate() { is_late_ = true; }
  // Does all the work, so that tests detect a caller that does not wait.
  Status Wait() override;
  int64_t num_unique() const override;
  const int64_t* keys() const override;
  const int32_t* owner_starts() const override;
  Status Places(int32_t* places) const override;
  Status Inverse(int32_t* inverse, int32_t* counts) const override;
  Status Samples(int32_t* offsets) const override;

  // Arrays that stay in GPU memory, valid after Wait.
  int64_t num_samples() const { return num_samples_; }
  Span<const int32_t> inverse() const { return inverse_; }
  Span<const int32_t> offsets() const { return offsets_; }
  // For a request with owners. Valid even if Places was not called.
  Span<const int32_t> places() const { return places_; }

 private:
  enum class State { kPutting, kStarted, kDone };
  static DistinctRequest RequestOf(int64_t num_ids, int64_t num_samples) {
    DistinctRequest request;
    request.num_ids = num_ids;
    request.num_samples = num_samples;
    return request;
  }
  template <typename Id>
  Status PutTyped(int64_t begin, Span<const Id> ids);
  Status Read();
  void SortByOwner();
  void CheckDone() const;

  const int64_t num_samples_;
  const UnstartedTables unstarted_;
  const bool on_device_, brings_inverse_;
  const IdsOnDevice device_ids_;
  const std::vector<int32_t> owners_;
  const int num_owners_;
  std::atomic<State> state_{State::kPutting};
  mutable std::atomic<int> times_asked_{0};
  bool is_late_ = false;
  std::vector<int64_t> ids_;
  std::vector<char> was_put_;  // the id's width in bytes; 0: not put
  std::vector<int32_t> offsets_, inverse_;
  std::vector<int64_t> keys_, sorted_keys_;
  std::vector<int32_t> counts_;
  std::vector<int32_t> places_, owner_starts_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_
