// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/admission_filter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "kernels/engine/base/hash.h"

namespace ev {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<uint32_t>::max();
constexpr size_t kKeysAtOnce = 256;

uint32_t Saturated(int64_t x) {
  return static_cast<uint32_t>(std::min(kMaxCount, std::max<int64_t>(0, x)));
}

}  // namespace

Status AdmissionFilter::Make(const AdmissionOptions& options,
                             bool with_versions,
                             std::unique_ptr<AdmissionFilter>* filter) {
  if (options.threshold < 1 || options.threshold > kMaxCount) {
    return InvalidArgument(
        "a filter's threshold: expected a number in [1, 2^32), got " +
        std::to_string(options.threshold));
  }
  std::unique_ptr<CountingBloomFilter> bloom;
  if (options.filter == AdmissionOptions::Filter::kBloom) {
    if (options.counter_bits < 64 &&
        options.threshold >= int64_t{1} << options.counter_bits) {
      return InvalidArgument(
          "counters of " + std::to_string(options.counter_bits) +
          " bits cannot reach the filter's threshold, " +
          std::to_string(options.threshold) + "; use wider counters");
    }
    EV_RETURN_IF_ERROR(CountingBloomFilter::Make(options.max_keys,
                                                 options.false_positive,
                                                 options.counter_bits, &bloom));
  }
  filter->reset(new AdmissionFilter(options, with_versions, std::move(bloom)));
  return Status::OK();
}

AdmissionFilter::AdmissionFilter(const AdmissionOptions& options,
                                 bool with_versions,
                                 std::unique_ptr<CountingBloomFilter> bloom)
    : options_(options),
      with_versions_(with_versions),
      bloom_(std::move(bloom)),
      counters_(kCountFloats + (with_versions ? kVersionFloats : 0),
                /*with_meta=*/false) {}

std::mutex* AdmissionFilter::stripe(int64_t key) const {
  return &stripes_[MixKey(key) % kStripes];
}

void AdmissionFilter::Warm(Span<const int64_t> keys) const {
  RowHandle handles[kKeysAtOnce];
  for (size_t i = 0; i < keys.size(); i += kKeysAtOnce) {
    const size_t n = std::min(kKeysAtOnce, keys.size() - i);
    index_.Find(keys.subspan(i, n), handles);
    for (size_t j = 0; j < n; ++j) {
      if (handles[j] != kNoRow) counters_.PrefetchRow(handles[j], 1);
    }
  }
}

Status AdmissionFilter::NewRow(int64_t, RowHandle* handle) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!unused_.empty()) {
      *handle = unused_.back();
      unused_.pop_back();
      return Status::OK();
    }
  }
  return counters_.Allocate(handle);
}

bool AdmissionFilter::Read(int64_t key, int64_t* count,
                           int64_t* version) const {
  RowHandle handle;
  index_.Find(Span<const int64_t>(&key, 1), &handle);
  *count = handle == kNoRow ? 0 : CountOf(handle);
  *version = handle == kNoRow ? -1 : VersionOf(handle);
  return handle != kNoRow;
}

Status AdmissionFilter::Write(int64_t key, int64_t count, int64_t version,
                              RowHandle* handle) {
  EV_RETURN_IF_ERROR(
      index_.FindOrInsert(Span<const int64_t>(&key, 1), this, handle, nullptr));
  float* const counter = counters_.Row(*handle);
  const uint32_t seen = Saturated(count);
  std::memcpy(counter, &seen, sizeof(seen));
  if (with_versions_) {
    const uint64_t plus1 = RowMeta::PlusOne(version);
    std::memcpy(counter + kCountFloats, &plus1, sizeof(plus1));
  }
  return Status::OK();
}

void AdmissionFilter::Forget(int64_t key) {
  index_.Erase(Span<const int64_t>(&key, 1), [this](int64_t, RowHandle handle) {
    std::lock_guard<std::mutex> lock(mu_);
    unused_.push_back(handle);
  });
}

int64_t AdmissionFilter::CountOf(RowHandle handle) const {
  uint32_t count;
  std::memcpy(&count, counters_.Row(handle), sizeof(count));
  return count;
}

int64_t AdmissionFilter::VersionOf(RowHandle handle) const {
  if (!with_versions_) return -1;
  uint64_t plus1;
  std::memcpy(&plus1, counters_.Row(handle) + kCountFloats, sizeof(plus1));
  return static_cast<int64_t>(plus1 - 1);
}

int64_t AdmissionFilter::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(sizeof(*this)) + index_.bytes() +
         counters_.bytes() +
         static_cast<int64_t>(unused_.capacity() * sizeof(RowHandle)) +
         (bloom_ == nullptr ? 0 : bloom_->bytes());
}

void AdmissionFilter::Clear() {
  if (bloom_ != nullptr) bloom_->Clear();
  index_.Clear();
  counters_.Clear();
  std::vector<RowHandle>().swap(unused_);
}

void AdmissionFilter::Erase(Span<const int64_t> keys) {
  index_.Erase(
      keys, [this](int64_t, RowHandle handle) { unused_.push_back(handle); });
  counters_.Free(unused_);
  std::vector<RowHandle>().swap(unused_);
}

}  // namespace ev
