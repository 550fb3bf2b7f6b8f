// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplication by the device of host_device_rows.h, and the keys that it
// knows. Ends the process when an id is put twice or not at all, when calls
// come in another order than promised, when offsets are not those of the batch,
// when unknown keys are named twice or batches are used that have any, when
// something is read that was not fetched, and when a key is known by another
// row than it is named, or is forgotten with its row still there to be found.

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

// Ends the process with the promise that was broken, unless it holds.
void Check(bool holds, const char* promise, int64_t which);

// The rows of keys that a device knows. Thread-safe.
class HostKnownKeys {
 public:
  // kNoRow: unknown.
  RowHandle Find(int64_t key) const;
  // Handles of no row are passed over.
  void Put(int64_t key, RowHandle handle);
  void Erase(Span<const int64_t> keys);
  void Clear();
  // Whether every key that was to be put since the last Clear is here.
  bool KnowsAll() const;
  void Miss();
  // Ends the process if any key is known by this row.
  void CheckUnnamed(RowHandle handle) const;

 private:
  mutable std::mutex mu_;
  std::unordered_map<int64_t, RowHandle> rows_;
  std::unordered_map<RowHandle, int64_t> keys_;
  bool knows_all_ = true;
};

// How many of the tables that are deduplicated together were not started.
using UnstartedTables = std::shared_ptr<std::atomic<int64_t>>;

class HostDeviceDistinct : public DeviceDistinct {
 public:
  // Alone. Ids are put.
  HostDeviceDistinct(int64_t num_ids, int64_t num_samples,
                     std::shared_ptr<const HostKnownKeys> known)
      : HostDeviceDistinct(RequestOf(num_ids, num_samples), std::move(known),
                           std::make_shared<std::atomic<int64_t>>(1)) {}
  // A batch that is there is in the memory of host_device_memory.h, and is read
  // by Wait.
  HostDeviceDistinct(const DistinctRequest& request,
                     std::shared_ptr<const HostKnownKeys> known,
                     UnstartedTables unstarted)
      : num_samples_(request.num_samples),
        known_(std::move(known)),
        unstarted_(std::move(unstarted)),
        is_there_(request.is_there),
        brings_inverse_(request.brings_inverse),
        there_(request.there),
        owners_(request.owners.begin(), request.owners.end()),
        num_owners_(request.num_owners),
        ids_(request.num_ids),
        was_put_(request.is_there ? 0 : request.num_ids) {}

  bool needs_put() const override { return !is_there_; }

  Status Put(int64_t begin, Span<const int64_t> ids) override;
  Status Put(int64_t begin, Span<const int32_t> ids) override;
  Status Start(Span<const int32_t> offsets) override;
  // True at every second call, unless it is late or another was not started.
  bool IsDone() const override;
  void BeLate() { is_late_ = true; }
  // Does all of it: a caller that forgets to wait is noticed.
  Status Wait() override;
  int64_t num_unique() const override;
  int64_t num_unknown() const override;
  const uint32_t* unknown_numbers() const;  // [K], of unknown_keys
  const int64_t* unknown_keys() const override;
  const int32_t* owner_starts() const override;
  Status Places(int32_t* places) const override;
  Status Fetch() const override;
  int64_t* keys() const override;
  int32_t* counts() const override;
  RowHandle* names() const override;
  Status Inverse(int32_t* inverse, int32_t* counts) const override;
  Status Samples(int32_t* offsets) const override;
  Status Occurrences(int32_t* samples) const override;

  void Name(Span<const RowHandle> names);

  // What a device keeps, after Wait.
  int64_t num_samples() const { return num_samples_; }
  Span<const int32_t> inverse() const { return inverse_; }
  Span<const int32_t> offsets() const { return offsets_; }
  Span<const int32_t> ends() const { return ends_; }
  Span<const int32_t> samples() const { return samples_; }
  // With owners; the device's, also while no caller has asked for them.
  Span<const int32_t> places() const { return places_; }
  // REQUIRES that all keys have names.
  Span<const RowHandle> all_names() const;

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
  void CheckFetched() const;

  const int64_t num_samples_;
  const std::shared_ptr<const HostKnownKeys> known_;
  const UnstartedTables unstarted_;
  const bool is_there_, brings_inverse_;
  const IdsOnDevice there_;
  const std::vector<int32_t> owners_;
  const int num_owners_;
  std::atomic<State> state_{State::kPutting};
  mutable std::atomic<int> times_asked_{0};
  bool is_late_ = false;
  std::vector<int64_t> ids_;
  std::vector<char> was_put_;  // the width of the id
  std::vector<int32_t> offsets_, inverse_, ends_, samples_;
  std::vector<int64_t> keys_, unknown_keys_;
  std::vector<int32_t> counts_;
  std::vector<RowHandle> names_;
  std::vector<uint32_t> unknown_numbers_;
  std::vector<int32_t> places_, owner_starts_;
  std::atomic<bool> is_named_{false};
  // What was fetched: a copy, so that a caller that reads it too soon reads
  // nothing.
  mutable std::mutex fetch_mu_;
  mutable bool is_fetched_ = false;
  mutable std::vector<int64_t> fetched_keys_;
  mutable std::vector<int32_t> fetched_counts_;
  mutable std::vector<RowHandle> fetched_names_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_DISTINCT_H_
