// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_distinct.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace ev {
namespace testing {

void Check(bool holds, const char* promise, int64_t which) {
  if (holds) return;
  std::fprintf(stderr, "rows on a device: %s (%lld)\n", promise,
               static_cast<long long>(which));
  std::abort();
}

RowHandle HostKnownKeys::Find(int64_t key) const {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = rows_.find(key);
  return found == rows_.end() ? kNoRow : found->second;
}

void HostKnownKeys::Put(int64_t key, RowHandle handle) {
  if (handle >= kFirstReservedHandle) return;
  std::lock_guard<std::mutex> lock(mu_);
  const auto key_at = rows_.emplace(key, handle).first;
  Check(key_at->second == handle, "a key is known by another row", key);
  const auto row_at = keys_.emplace(handle, key).first;
  Check(row_at->second == key, "a row is known by another key", handle);
}

void HostKnownKeys::Erase(Span<const int64_t> keys) {
  std::lock_guard<std::mutex> lock(mu_);
  for (int64_t key : keys) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) continue;
    keys_.erase(found->second);
    rows_.erase(found);
  }
}

void HostKnownKeys::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  rows_.clear();
  keys_.clear();
}

void HostKnownKeys::CheckHasNoKey(RowHandle handle) const {
  std::lock_guard<std::mutex> lock(mu_);
  Check(keys_.count(handle) == 0, "a row is forgotten before its key", handle);
}

template <typename Id>
Status HostDeviceDistinct::PutTyped(int64_t begin, Span<const Id> ids) {
  Check(!on_device_, "ids that are there are put", begin);
  Check(state_ == State::kPutting, "ids come late", begin);
  Check(begin >= 0 && begin + ids.size() <= ids_.size(),
        "ids are beyond the batch", begin);
  for (size_t i = 0; i < ids.size(); ++i) {
    Check(was_put_[begin + i] == 0, "an id comes twice", begin + i);
    was_put_[begin + i] = sizeof(Id);
    ids_[begin + i] = ids[i];
  }
  return Status::OK();
}

Status HostDeviceDistinct::Put(int64_t begin, Span<const int64_t> ids) {
  return PutTyped(begin, ids);
}
Status HostDeviceDistinct::Put(int64_t begin, Span<const int32_t> ids) {
  return PutTyped(begin, ids);
}

Status HostDeviceDistinct::Start(Span<const int32_t> offsets) {
  Check(state_ == State::kPutting, "it is started twice", 0);
  if (on_device_) {
    Check(offsets.empty(), "samples that are there come again", 0);
    Check(!brings_inverse_, "the inverse of ids that are there is brought", 0);
    state_ = State::kStarted;
    --*unstarted_;
    return Status::OK();
  }
  for (char width : was_put_) {
    Check(width != 0, "an id never came", 0);
    Check(width == was_put_[0], "ids are of two types", width);
  }
  Check(static_cast<int64_t>(offsets.size()) == num_samples_ + 1 &&
            offsets[0] == 0 &&
            offsets[num_samples_] == static_cast<int64_t>(ids_.size()) &&
            std::is_sorted(offsets.begin(), offsets.end()),
        "offsets are not those of the samples", offsets.size());
  offsets_.assign(offsets.begin(), offsets.end());
  state_ = State::kStarted;
  --*unstarted_;
  return Status::OK();
}

bool HostDeviceDistinct::IsDone() const {
  Check(state_ != State::kPutting, "what is asked about was not started", 0);
  return *unstarted_ == 0 && times_asked_.fetch_add(1) % 2 == 1 && !is_late_;
}

// Reads ids and samples in GPU memory.
Status HostDeviceDistinct::Read() {
  HostStream::Wait(device_ids_.stream);
  const auto reached = [](const auto* array) {
    const auto* const at = Reach(array);
    Check(at != nullptr, "ids or samples are not in the device's memory", 0);
    return at;
  };
  if (device_ids_.ids64 != nullptr) {
    std::copy_n(reached(device_ids_.ids64), ids_.size(), ids_.begin());
  } else {
    std::copy_n(reached(device_ids_.ids32), ids_.size(), ids_.begin());
  }
  offsets_.resize(num_samples_ + 1);
  const Status status =
      device_ids_.row_splits != nullptr
          ? OffsetsFromSplits(reached(device_ids_.row_splits), num_samples_,
                              ids_.size(), "", offsets_.data())
          : OffsetsFromIndices(reached(device_ids_.coo_indices), num_samples_,
                               ids_.size(), "", offsets_.data());
  return status.ok() ? status
                     : Status(StatusCode::kUnimplemented, status.message());
}

Status HostDeviceDistinct::Wait() {
  Check(state_ == State::kStarted, "what is waited for was not started", 0);
  Check(*unstarted_ == 0, "tables that come together were not started",
        *unstarted_);
  if (on_device_) EV_RETURN_IF_ERROR(Read());
  std::unordered_map<int64_t, int32_t> number;
  for (int64_t id : ids_) {
    const auto at =
        number.emplace(id, static_cast<int32_t>(keys_.size())).first;
    if (at->second == static_cast<int32_t>(keys_.size())) {
      keys_.push_back(id);
      counts_.push_back(0);
    }
    ++counts_[at->second];
    inverse_.push_back(at->second);
  }
  if (!owners_.empty()) SortByOwner();
  state_ = State::kDone;
  return Status::OK();
}

void HostDeviceDistinct::SortByOwner() {
  const int64_t n = static_cast<int64_t>(owners_.size());
  Check(num_owners_ >= 1 && num_owners_ <= kMaxKeyOwners,
        "so many owners are not for a device", num_owners_);
  std::vector<std::vector<int32_t>> of_owner(num_owners_);
  for (size_t u = 0; u < keys_.size(); ++u) {
    const int32_t owner = owners_[(keys_[u] % n + n) % n];
    Check(owner >= 0 && owner < num_owners_, "no such owner", owner);
    of_owner[owner].push_back(static_cast<int32_t>(u));
  }
  places_.resize(keys_.size());
  owner_starts_.assign(1, 0);
  for (const std::vector<int32_t>& numbers : of_owner) {
    for (int32_t u : numbers) {
      places_[u] = static_cast<int32_t>(sorted_keys_.size());
      sorted_keys_.push_back(keys_[u]);
    }
    owner_starts_.push_back(static_cast<int32_t>(sorted_keys_.size()));
  }
}

const int32_t* HostDeviceDistinct::owner_starts() const {
  CheckDone();
  return owners_.empty() ? nullptr : owner_starts_.data();
}

Status HostDeviceDistinct::Places(int32_t* places) const {
  CheckDone();
  if (owners_.empty()) return DeviceDistinct::Places(places);
  std::copy(places_.begin(), places_.end(), places);
  return Status::OK();
}

void HostDeviceDistinct::CheckDone() const {
  Check(state_ == State::kDone, "no caller has waited for the distinct keys",
        0);
}

int64_t HostDeviceDistinct::num_unique() const {
  CheckDone();
  return static_cast<int64_t>(keys_.size());
}
const int64_t* HostDeviceDistinct::keys() const {
  CheckDone();
  return owners_.empty() ? keys_.data() : sorted_keys_.data();
}

Status HostDeviceDistinct::Inverse(int32_t* inverse, int32_t* counts) const {
  CheckDone();
  if (inverse != nullptr) {
    std::copy(inverse_.begin(), inverse_.end(), inverse);
  }
  if (counts != nullptr) std::copy(counts_.begin(), counts_.end(), counts);
  return Status::OK();
}

Status HostDeviceDistinct::Samples(int32_t* offsets) const {
  CheckDone();
  if (!on_device_) return DeviceDistinct::Samples(offsets);
  std::copy(offsets_.begin(), offsets_.end(), offsets);
  return Status::OK();
}

}  // namespace testing
}  // namespace ev
