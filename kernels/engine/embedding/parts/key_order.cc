// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/key_order.h"

#include <algorithm>
#include <string>

namespace ev {

KeyOrder::KeyOrder(const HashIndex& index, const HandleMarks* marks,
                   const Limits& limits)
    : index_(index),
      marks_(marks),
      limits_(limits),
      begins_(kKeyPartitions + 1, 0) {
  index_.ForEach([this](int64_t key, RowHandle handle) {
    if (!IsPassedOver(handle)) ++begins_[KeyPartition(key) + 1];
  });
  for (int64_t p = 0; p < kKeyPartitions; ++p) begins_[p + 1] += begins_[p];
  for (int64_t p = 0; p < kKeyPartitions; ++p) {
    const bool fits =
        !segments_.empty() &&
        begins_[p + 1] - begins_[segments_.back().first_partition] <=
            limits_.segment_keys;
    if (!fits) segments_.push_back(Segment{p, p});
    segments_.back().end_partition = p + 1;
  }
}

int64_t KeyOrder::SizeOf(int segment) const {
  return begins_[segments_[segment].end_partition] -
         begins_[segments_[segment].first_partition];
}

Status KeyOrder::Collect(int segment) {
  if (collected_ == segment) return Status::OK();
  collected_ = -1;
  const Segment& wanted = segments_[segment];
  const int64_t first = begins_[wanted.first_partition];
  // Frees the old array before a larger one is allocated.
  entries_.clear();
  if (entries_.capacity() < static_cast<size_t>(SizeOf(segment))) {
    std::vector<Entry>().swap(entries_);
  }
  entries_.resize(SizeOf(segment));
  std::vector<int64_t> next(begins_);
  int64_t found = 0;
  index_.ForEach([&](int64_t key, RowHandle handle) {
    const int64_t p = KeyPartition(key);
    if (p < wanted.first_partition || p >= wanted.end_partition) return;
    if (IsPassedOver(handle)) return;
    ++found;
    if (next[p] == begins_[p + 1]) return;
    entries_[next[p]++ - first] = Entry{key, handle};
  });
  for (int64_t p = wanted.first_partition; p < wanted.end_partition; ++p) {
    if (next[p] != begins_[p + 1] || found != SizeOf(segment)) {
      return Internal("keys came or went while their order was used: " +
                      std::to_string(found) + " where " +
                      std::to_string(SizeOf(segment)) + " were counted");
    }
    std::sort(entries_.begin() + (begins_[p] - first),
              entries_.begin() + (begins_[p + 1] - first),
              [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }
  collected_ = segment;
  return Status::OK();
}

Status KeyOrder::ForEach(int64_t piece_size, const VisitBoth& visit) {
  std::vector<int64_t> keys;
  std::vector<RowHandle> handles;
  const int num_segments = static_cast<int>(segments_.size());
  for (int s = 0; s < num_segments; ++s) {
    EV_RETURN_IF_ERROR(Collect(s));
    const int64_t n = SizeOf(s);
    for (int64_t i = 0; i < n; i += piece_size) {
      keys.clear();
      handles.clear();
      for (int64_t j = i; j < std::min(n, i + piece_size); ++j) {
        keys.push_back(entries_[j].key);
        handles.push_back(entries_[j].handle);
      }
      EV_RETURN_IF_ERROR(visit(keys, handles));
    }
  }
  return Status::OK();
}

Status KeyOrder::ForEachKey(int64_t piece_size, const VisitKeys& visit) {
  std::vector<int64_t> keys;
  std::vector<RowHandle> handles;
  const bool keep = kept_.empty() && size() <= limits_.kept_handles;
  if (keep) handles.reserve(size());
  const int num_segments = static_cast<int>(segments_.size());
  for (int s = 0; s < num_segments; ++s) {
    EV_RETURN_IF_ERROR(Collect(s));
    const int64_t n = SizeOf(s);
    for (int64_t i = 0; i < n; i += piece_size) {
      keys.clear();
      for (int64_t j = i; j < std::min(n, i + piece_size); ++j) {
        keys.push_back(entries_[j].key);
        if (keep) handles.push_back(entries_[j].handle);
      }
      EV_RETURN_IF_ERROR(visit(keys));
    }
  }
  if (keep) {
    kept_ = std::move(handles);
    collected_ = -1;
    std::vector<Entry>().swap(entries_);
  }
  return Status::OK();
}

Status KeyOrder::ForEachHandle(int64_t piece_size, const VisitHandles& visit) {
  if (!kept_.empty()) {
    const Span<const RowHandle> all(kept_);
    for (int64_t i = 0; i < size(); i += piece_size) {
      EV_RETURN_IF_ERROR(
          visit(all.subspan(i, std::min(piece_size, size() - i))));
    }
    return Status::OK();
  }
  std::vector<RowHandle> handles;
  const int num_segments = static_cast<int>(segments_.size());
  for (int s = 0; s < num_segments; ++s) {
    EV_RETURN_IF_ERROR(Collect(s));
    const int64_t n = SizeOf(s);
    for (int64_t i = 0; i < n; i += piece_size) {
      handles.clear();
      for (int64_t j = i; j < std::min(n, i + piece_size); ++j) {
        handles.push_back(entries_[j].handle);
      }
      EV_RETURN_IF_ERROR(visit(handles));
    }
  }
  return Status::OK();
}

}  // namespace ev
