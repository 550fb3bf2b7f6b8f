// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram/host_rows.h"

#include <algorithm>

namespace ev {

Status HostRows::Allocate(bool is_reserved, Row* row) {
  std::lock_guard<std::mutex> lock(mu_);
  const int64_t kept = is_reserved ? 0 : reserved_;
  if (static_cast<int64_t>(free_.size()) > kept) {
    *row = free_.back();
    free_.pop_back();
  } else {
    EV_RETURN_IF_ERROR(rows_.Allocate(row));
  }
  ++in_use_;
  return Status::OK();
}

void HostRows::Free(Span<const Row> rows) {
  std::lock_guard<std::mutex> lock(mu_);
  free_.insert(free_.end(), rows.begin(), rows.end());
  in_use_ -= static_cast<int64_t>(rows.size());
}

Status HostRows::Reserve(int64_t rows, int64_t most) {
  std::lock_guard<std::mutex> lock(mu_);
  const int64_t wanted = std::min(reserved_ + rows, most - in_use_);
  while (static_cast<int64_t>(free_.size()) < wanted) {
    Row row;
    EV_RETURN_IF_ERROR(rows_.Allocate(&row));
    free_.push_back(row);
  }
  reserved_ += rows;
  return Status::OK();
}

void HostRows::Unreserve(int64_t rows) {
  std::lock_guard<std::mutex> lock(mu_);
  reserved_ -= rows;
}

int64_t HostRows::in_use() const {
  std::lock_guard<std::mutex> lock(mu_);
  return in_use_;
}

void HostRows::Return(Span<const Row> rows) {
  std::lock_guard<std::mutex> lock(mu_);
  rows_.Free(rows);
  rows_.Free(free_);
  free_.clear();
  in_use_ -= static_cast<int64_t>(rows.size());
}

void HostRows::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  rows_.Clear();
  free_.clear();
  in_use_ = 0;
}

}  // namespace ev
