// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/frozen_rows.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ev {
namespace {

// Bytes of a copy beside its floats: its entry in a hash map.
constexpr size_t kBytesBesideCopy = 48;
constexpr size_t kAllocatedBytes = 256 << 10;
// Maximum number of copies made while the reader waits for the lock.
constexpr size_t kKeptAtOnce = 1024;
constexpr size_t kMetaFloats = sizeof(RowMeta) / sizeof(float);

// Returns where each column begins if they are adjacent, then where they end.
std::vector<size_t> BeginsOf(const EmbeddingTable::Impl& table,
                             const std::vector<int>& columns) {
  std::vector<size_t> begins{0};
  for (const int column : columns) {
    begins.push_back(begins.back() + table.WidthOf(column));
  }
  return begins;
}

}  // namespace

FrozenRows::FrozenRows(const EmbeddingTable::Impl& table,
                       const std::vector<int>& columns, int64_t kept_bytes)
    : table_(table),
      columns_(columns),
      begins_(BeginsOf(table, columns)),
      copy_floats_(row_floats() + kMetaFloats),
      copies_at_once_(std::max<size_t>(
          1, kAllocatedBytes / (copy_floats_ * sizeof(float)))),
      most_copies_(std::max<size_t>(
          1, kept_bytes / (copy_floats_ * sizeof(float) + kBytesBesideCopy))) {}

Status FrozenRows::status() const {
  std::lock_guard<std::mutex> lock(mu_);
  return status_;
}

int FrozenRows::waiting() const {
  std::lock_guard<std::mutex> lock(mu_);
  return waiting_;
}

void FrozenRows::CloseLocked(const Status& status) {
  if (closed_) return;
  closed_ = true;
  status_ = status;
  went_on_.notify_all();
}

void FrozenRows::Close() {
  std::lock_guard<std::mutex> lock(mu_);
  CloseLocked(Status::OK());
}

void FrozenRows::AddNew(RowHandle handle) {
  if (marks_.Set(handle, kNew)) return;
  std::lock_guard<std::mutex> lock(mu_);
  CloseLocked(ResourceExhausted("out of memory, " + table_.QuotedName()));
}

void FrozenRows::BeforeChange(Span<const RowHandle> handles) {
  try {
    std::vector<RowHandle> left;
    for (const RowHandle handle : handles) {
      if (handle < kFirstReservedHandle && marks_.Get(handle) == 0) {
        left.push_back(handle);
      }
    }
    while (!left.empty()) {
      // Unlocked between iterations, for the reader.
      std::unique_lock<std::mutex> lock(mu_);
      if (closed_) return;
      left.erase(
          std::remove_if(left.begin(), left.end(),
                         [this](RowHandle h) { return marks_.Get(h) != 0; }),
          left.end());
      const size_t n =
          std::min({left.size(), kKeptAtOnce, most_copies_ - kept_.size()});
      if (n > 0) {
        const Status status =
            Keep(Span<const RowHandle>(left.data() + left.size() - n, n));
        if (!status.ok()) CloseLocked(status);
        left.resize(left.size() - n);
      } else if (!left.empty()) {
        ++waiting_;
        went_on_.wait(lock);
        --waiting_;
      }
    }
  } catch (const std::bad_alloc&) {
    std::lock_guard<std::mutex> lock(mu_);
    CloseLocked(ResourceExhausted("out of memory, " + table_.QuotedName()));
  }
}

RowMeta FrozenRows::MetaOf(RowHandle handle) const {
  const RowMeta* const meta = table_.rows->Meta(handle);
  return meta == nullptr ? RowMeta() : *meta;
}

Status FrozenRows::CopyColumns(Span<const RowHandle> handles) {
  const size_t n = handles.size();
  staged_.resize(n * row_floats());
  std::vector<float*> out;
  for (size_t c = 0; c < columns_.size(); ++c) {
    out.push_back(staged_.data() + n * begins_[c]);
  }
  return table_.CopyColumns(handles, columns_, out);
}

Status FrozenRows::Keep(Span<const RowHandle> handles) {
  EV_RETURN_IF_ERROR(CopyColumns(handles));
  const size_t n = handles.size();
  for (size_t i = 0; i < n; ++i) {
    if (free_.empty()) {
      const uint32_t first =
          static_cast<uint32_t>(copies_.size() * copies_at_once_);
      copies_.push_back(
          std::unique_ptr<float[]>(new float[copies_at_once_ * copy_floats_]));
      // Places are taken from the end of the list.
      for (size_t k = copies_at_once_; k > 0; --k) {
        free_.push_back(first + static_cast<uint32_t>(k - 1));
      }
    }
    const uint32_t place = free_.back();
    kept_.emplace(handles[i], place);
    free_.pop_back();
    float* const copy = Copy(place);
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::copy_n(staged_.data() + n * begins_[c] + i * WidthOf(c), WidthOf(c),
                  copy + begins_[c]);
    }
    const RowMeta meta = MetaOf(handles[i]);
    std::memcpy(copy + row_floats(), &meta, sizeof(meta));
    if (!marks_.Set(handles[i], kSafe)) throw std::bad_alloc();
  }
  return Status::OK();
}

Status FrozenRows::ReadLocked(Span<const RowHandle> handles,
                              Span<float* const> out, RowMeta* metas) {
  fresh_.clear();
  fresh_places_.clear();
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto kept =
        marks_.Has(handles[i], kSafe) ? kept_.find(handles[i]) : kept_.end();
    if (kept == kept_.end()) {
      fresh_.push_back(handles[i]);
      fresh_places_.push_back(i);
      continue;
    }
    const float* const copy = Copy(kept->second);
    for (size_t c = 0; c < columns_.size(); ++c) {
      std::copy_n(copy + begins_[c], WidthOf(c), out[c] + i * WidthOf(c));
    }
    std::memcpy(&metas[i], copy + row_floats(), sizeof(RowMeta));
    free_.push_back(kept->second);
    kept_.erase(kept);
  }
  if (fresh_.size() == handles.size()) {
    EV_RETURN_IF_ERROR(table_.CopyColumns(handles, columns_, out));
  } else {
    EV_RETURN_IF_ERROR(CopyColumns(fresh_));
    const size_t n = fresh_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      const size_t width = WidthOf(c);
      for (size_t k = 0; k < n; ++k) {
        std::copy_n(staged_.data() + n * begins_[c] + k * width, width,
                    out[c] + fresh_places_[k] * width);
      }
    }
  }
  for (size_t k = 0; k < fresh_.size(); ++k) {
    metas[fresh_places_[k]] = MetaOf(fresh_[k]);
    if (!marks_.Set(fresh_[k], kSafe)) throw std::bad_alloc();
  }
  return Status::OK();
}

Status FrozenRows::Read(Span<const RowHandle> handles, Span<float* const> out,
                        RowMeta* metas) {
  std::lock_guard<std::mutex> lock(mu_);
  EV_RETURN_IF_ERROR(status_);
  Status status;
  try {
    status = ReadLocked(handles, out, metas);
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory, " + table_.QuotedName());
  }
  if (!status.ok()) CloseLocked(status);
  if (waiting_ > 0) went_on_.notify_all();
  return status;
}

}  // namespace ev
