// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_distinct.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "kernels/engine/combine/pooling_gradient.h"

namespace ev {
namespace testing {

void Check(bool holds, const char* promise, int64_t which) {
  if (holds) return;
  std::fprintf(stderr, "rows on a device: %s (%lld)\n", promise,
               static_cast<long long>(which));
  std::abort();
}

template <typename Id>
Status HostDeviceDistinct::PutTyped(int64_t begin, Span<const Id> ids) {
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
  return Status::OK();
}

Status HostDeviceDistinct::Wait() {
  Check(state_ == State::kStarted, "what is waited for was not started", 0);
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
  ends_.resize(keys_.size());
  samples_.resize(ids_.size());
  GroupOccurrences(inverse_.data(), counts_.data(), keys_.size(),
                   offsets_.data(), num_samples_, nullptr, nullptr,
                   ends_.data(), samples_.data(), nullptr);
  state_ = State::kDone;
  return Status::OK();
}

void HostDeviceDistinct::CheckDone() const {
  Check(state_ == State::kDone, "nobody has waited for the distinct keys", 0);
}

int64_t HostDeviceDistinct::num_unique() const {
  CheckDone();
  return static_cast<int64_t>(keys_.size());
}
int64_t* HostDeviceDistinct::keys() const {
  CheckDone();
  return keys_.data();
}
int32_t* HostDeviceDistinct::counts() const {
  CheckDone();
  return counts_.data();
}

Status HostDeviceDistinct::Occurrences(int32_t* samples) const {
  CheckDone();
  std::copy(samples_.begin(), samples_.end(), samples);
  return Status::OK();
}

}  // namespace testing
}  // namespace ev
