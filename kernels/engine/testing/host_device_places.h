// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The stand-in device's places of rows (rows/gpu/row_places.h): which rows of a
// table with a budget are in the device's memory. The rows themselves do not
// move; host_device_rows.cc keeps them by handle.

#ifndef KERNELS_ENGINE_TESTING_HOST_DEVICE_PLACES_H_
#define KERNELS_ENGINE_TESTING_HOST_DEVICE_PLACES_H_

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/rows/row_home.h"
#include "kernels/engine/testing/host_device_distinct.h"

namespace ev {
namespace testing {

// The caller's lock guards it.
class HostPlaces {
 public:
  explicit HostPlaces(int64_t budget) : budget_(budget) {}

  void SetRowBytes(int64_t bytes) {
    row_bytes_ = bytes;
    num_on_device_ = std::max<int64_t>(64, budget_ / bytes);
  }
  void Add(RowHandle handle) {
    Check(Of(handle) == handle, "a new row's handle has another place", handle);
    live_.insert(handle);
  }
  void Forget(Span<const RowHandle> handles) {
    for (RowHandle handle : handles) {
      const RowHandle owner = OwnerOf(handle), place = Of(handle);
      if (owner != handle) Put(owner, place);
      Put(handle, handle);
      live_.erase(handle);
      last_use_.erase(handle);
    }
  }
  void Clear() {
    last_use_.clear();
    live_.clear();
    places_.clear();
    owners_.clear();
  }

  // Counts the read of a row.
  void Read(RowHandle handle) {
    if (handle >= kFirstReservedHandle) return;
    Check(OwnerOf(Of(handle)) == handle, "two rows have one place", handle);
    ++(IsOnDevice(handle) ? hits_ : misses_);
    if (!IsOnDevice(handle)) fetched_.insert(handle);
  }
  // Counts the update of rows, each once.
  void Update(Span<const RowHandle> handles) {
    for (RowHandle handle : handles) {
      updated_ += live_.count(handle) != 0 && !IsOnDevice(handle);
    }
  }
  // Moves all these rows to the device, in place of rows that are not among
  // them.
  void Use(Span<const RowHandle> handles) {
    const std::unordered_set<RowHandle> used(handles.begin(), handles.end());
    ++num_uses_;
    // A call reads a row once.
    num_fetched_ += fetched_.size();
    fetched_.clear();
    for (RowHandle handle : used) last_use_[handle] = num_uses_;
    for (RowHandle handle : handles) {
      if (live_.count(handle) == 0 || IsOnDevice(handle)) continue;
      for (int64_t visited = 0; visited < num_on_device_; ++visited) {
        hand_ = (hand_ + 1) % num_on_device_;
        const RowHandle other = OwnerOf(static_cast<RowHandle>(hand_));
        if (live_.count(other) == 0 || used.count(other) != 0) continue;
        const RowHandle place = Of(handle);
        Put(handle, Of(other));
        Put(other, place);
        ++moves_;
        break;
      }
    }
  }

  // Returns the number of the call of Use that last had the row; 0: none.
  uint32_t LastUse(RowHandle handle) const {
    const auto found = last_use_.find(handle);
    return found == last_use_.end() ? 0 : found->second;
  }
  bool IsOnDevice(RowHandle handle) const {
    return Of(handle) < num_on_device_;
  }
  TierStats stats(int64_t value_bytes) const {
    TierStats stats;
    for (RowHandle handle : live_) {
      ++(IsOnDevice(handle) ? stats.memory_rows : stats.stored_rows);
    }
    stats.stored_bytes = stats.stored_rows * row_bytes_;
    stats.hits = hits_;
    stats.misses = misses_;
    stats.moved_up = stats.moved_down = moves_;
    stats.written_bytes = moves_ * row_bytes_;
    stats.link_bytes =
        num_fetched_ * value_bytes + 2 * row_bytes_ * (updated_ + moves_);
    return stats;
  }

 private:
  using Map = std::unordered_map<RowHandle, RowHandle>;
  static RowHandle Find(const Map& map, RowHandle of) {
    const auto found = map.find(of);
    return found == map.end() ? of : found->second;
  }
  RowHandle Of(RowHandle handle) const { return Find(places_, handle); }
  RowHandle OwnerOf(RowHandle place) const { return Find(owners_, place); }
  void Put(RowHandle handle, RowHandle place) {
    places_[handle] = place;
    owners_[place] = handle;
  }

  const int64_t budget_;
  int64_t row_bytes_ = 0, num_on_device_ = 0, hand_ = 0;
  int64_t hits_ = 0, misses_ = 0, moves_ = 0;
  int64_t num_fetched_ = 0, updated_ = 0;
  uint32_t num_uses_ = 0;
  std::unordered_set<RowHandle> live_;
  std::unordered_set<RowHandle> fetched_;  // by the current call
  std::unordered_map<RowHandle, uint32_t> last_use_;
  Map places_, owners_;
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_HOST_DEVICE_PLACES_H_
