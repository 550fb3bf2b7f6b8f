// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/memory_host_rows.h"

#include <algorithm>

#include "kernels/engine/base/prefetch.h"

namespace ev {
namespace {

// Rows written while readers wait.
constexpr size_t kWrittenAtOnce = 256;
constexpr size_t kWritesAhead = 8;
// Bytes to prefetch ahead of a read.
constexpr size_t kBytesAhead = 4096;
constexpr size_t kRanksAhead = 16;

}  // namespace

// Called under rows_mu_, before another row is allocated. Throws
// std::bad_alloc.
void MemoryHostRows::MakeRoomToFree() {
  const size_t rows = static_cast<size_t>(in_use_) + free_.size() + 1;
  if (free_.capacity() < rows) {
    free_.reserve(std::max(rows, 2 * free_.capacity()));
  }
}

Status MemoryHostRows::Allocate(RowHandle, bool is_reserved, Row* row) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  const int64_t kept = is_reserved ? 0 : reserved_;
  if (static_cast<int64_t>(free_.size()) > kept) {
    *row = free_.back();
    free_.pop_back();
  } else {
    MakeRoomToFree();
    EV_RETURN_IF_ERROR(rows_.Allocate(row));
  }
  ++in_use_;
  return Status::OK();
}

void MemoryHostRows::Free(Span<const Row> rows) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  free_.insert(free_.end(), rows.begin(), rows.end());
  in_use_ -= static_cast<int64_t>(rows.size());
}

Status MemoryHostRows::Write(Span<const Row> rows, bool, const float* floats,
                             const uint32_t* ranks) {
  const int64_t width = rows_.floats_per_row();
  for (size_t begin = 0; begin < rows.size(); begin += kWrittenAtOnce) {
    const size_t end = std::min(rows.size(), begin + kWrittenAtOnce);
    std::lock_guard<std::shared_mutex> lock(mu_);
    for (size_t k = begin; k < end; ++k) {
      if (k + kWritesAhead < rows.size()) {
        rows_.PrefetchRow(rows[k + kWritesAhead], width);
        PrefetchLine(rows_.Meta(rows[k + kWritesAhead]));
      }
      std::copy_n(floats + k * width, width, rows_.Row(rows[k]));
      rows_.Meta(rows[k])->frequency = ranks[k];
    }
  }
  return Status::OK();
}

Status MemoryHostRows::Read(Span<const Row> rows, float* floats,
                            uint32_t* ranks) {
  const int64_t width = rows_.floats_per_row();
  const size_t ahead = std::max<size_t>(1, kBytesAhead / (4 * width));
  for (size_t k = 0; k < rows.size(); ++k) {
    if (k + kRanksAhead < rows.size()) {
      PrefetchLine(rows_.Meta(rows[k + kRanksAhead]));
    }
    if (k + ahead < rows.size()) rows_.PrefetchRow(rows[k + ahead], width);
    std::copy_n(rows_.Row(rows[k]), width, floats + k * width);
    ranks[k] = rows_.Meta(rows[k])->frequency;
  }
  return Status::OK();
}

Status MemoryHostRows::Visit(
    Span<const Row> rows,
    const std::function<void(size_t, const float*)>& body) {
  for (size_t k = 0; k < rows.size(); ++k) body(k, rows_.Row(rows[k]));
  return Status::OK();
}

Status MemoryHostRows::Reserve(int64_t rows, int64_t most) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  const int64_t wanted = std::min(reserved_ + rows, most - in_use_);
  while (static_cast<int64_t>(free_.size()) < wanted) {
    Row row;
    MakeRoomToFree();
    EV_RETURN_IF_ERROR(rows_.Allocate(&row));
    free_.push_back(row);
  }
  reserved_ += rows;
  return Status::OK();
}

void MemoryHostRows::Unreserve(int64_t rows) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  reserved_ -= rows;
}

void MemoryHostRows::AddStats(TierStats* stats, TierStats*) const {
  stats->stored_bytes += bytes();
  std::lock_guard<std::mutex> lock(rows_mu_);
  stats->stored_rows += in_use_;
}

Status MemoryHostRows::AddSlots(Span<const float> initial_values) {
  const int64_t before = rows_.floats_per_row();
  const auto fill = [&](float* row) {
    for (size_t s = 0; s < initial_values.size(); ++s) {
      std::fill_n(row + before + s * dim_, dim_, initial_values[s]);
    }
  };
  return rows_.Relayout(
      before + dim_ * static_cast<int64_t>(initial_values.size()), fill);
}

Status MemoryHostRows::RemoveSlots(size_t count) {
  return rows_.Relayout(
      rows_.floats_per_row() - dim_ * static_cast<int64_t>(count),
      [](float*) {});
}

void MemoryHostRows::Forget(Span<const RowHandle>, Span<const Row> rows) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  rows_.Free(rows);
  rows_.Free(free_);
  free_.clear();
  in_use_ -= static_cast<int64_t>(rows.size());
}

void MemoryHostRows::Clear(size_t num_slots) {
  std::lock_guard<std::mutex> lock(rows_mu_);
  rows_.Clear();
  free_.clear();
  in_use_ = 0;
  // Cannot fail without rows.
  rows_.Relayout(dim_ * (1 + static_cast<int64_t>(num_slots)), [](float*) {});
}

}  // namespace ev
