// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/row_store.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/thread_stripe.h"
#include "kernels/engine/storage/dram/row_layout.h"

namespace ev {
namespace {

constexpr unsigned kStripes = 8;
constexpr int kMaxChunk = 64;  // handles that a stripe takes at once, at most

// Slabs of meta hold 2 MiB, or as many rows as a slab of rows if that is more.
constexpr int kMetaRowsLog2 = 17;
static_assert((sizeof(RowMeta) << kMetaRowsLog2) == kHugePage, "");

}  // namespace

struct alignas(kCacheLine) RowStore::Stripe {
  mutable SpinLock lock;
  int count = 0;
  RowHandle handles[kMaxChunk];  // taken from the back
};

RowStore::RowStore(int64_t floats_per_row, bool with_meta)
    : floats_per_row_(floats_per_row), stripes_(new Stripe[kStripes]) {
  const size_t stride = RowStride(floats_per_row);
  const int rows_log2 = SlabRowsLog2(stride);
  rows_.reset(new SlabArray(stride, rows_log2));
  if (with_meta) {
    meta_.reset(
        new SlabArray(sizeof(RowMeta), std::max(rows_log2, kMetaRowsLog2)));
  }
}

RowStore::~RowStore() {}

Status RowStore::Allocate(RowHandle* handle) {
  Stripe& stripe = stripes_[ThisThreadStripe() % kStripes];
  std::lock_guard<SpinLock> lock(stripe.lock);
  if (stripe.count == 0) EV_RETURN_IF_ERROR(Refill(&stripe));
  *handle = stripe.handles[--stripe.count];
  return Status::OK();
}

// Chunks grow with the table: a table of a few rows must not touch pages for
// handles that wait in stripes.
Status RowStore::Refill(Stripe* stripe) {
  std::lock_guard<std::mutex> lock(mu_);
  const int chunk = static_cast<int>(std::min<int64_t>(
      kMaxChunk, std::max<int64_t>(4, in_stripes_or_live_ / 64)));
  int count = 0;
  RowHandle taken[kMaxChunk];
  while (count < chunk && !free_.empty()) {
    taken[count++] = free_.back();
    --free_in_slab_[free_.back() >> rows_->rows_log2()];
    free_.pop_back();
  }
  if (count == 0) {
    if (next_ == end_ && !NextRange()) {
      return ResourceExhausted(
          "no memory for another row of " + std::to_string(floats_per_row_) +
          " floats beyond the " + std::to_string(in_stripes_or_live_) +
          " there are");
    }
    while (count < chunk && next_ < end_) {
      taken[count++] = static_cast<RowHandle>(next_++);
    }
    const size_t slab = (next_ - 1) >> rows_->rows_log2();
    rows_->Use(slab, next_ - slab * slab_rows());
    if (meta_ != nullptr) {
      const size_t meta_slab = (next_ - 1) >> meta_->rows_log2();
      meta_->Use(meta_slab, next_ - meta_slab * meta_->slab_rows());
    }
  }
  // Handed out from the back: ascending.
  std::reverse_copy(taken, taken + count, stripe->handles);
  stripe->count = count;
  in_stripes_or_live_ += count;
  return Status::OK();
}

// Opens the handles of one slab: a dropped one if there is any, so that the
// directory and the handles stay small.
bool RowStore::NextRange() {
  const bool reuse = !dropped_slabs_.empty();
  const size_t slab = reuse ? dropped_slabs_.back() : free_in_slab_.size();
  const uint64_t begin = static_cast<uint64_t>(slab) * slab_rows();
  if (begin >= kFirstReservedHandle) return false;
  if (!AddRowSlab(slab)) return false;
  if (reuse) dropped_slabs_.pop_back();
  next_ = begin;
  end_ = std::min<uint64_t>(begin + slab_rows(), kFirstReservedHandle);
  return true;
}

bool RowStore::AddRowSlab(size_t slab) {
  try {
    if (free_in_slab_.size() <= slab) free_in_slab_.reserve(slab + 1);
    if (meta_ != nullptr) {
      const size_t meta_slab =
          (slab << rows_->rows_log2()) >> meta_->rows_log2();
      if (meta_users_.size() <= meta_slab) meta_users_.resize(meta_slab + 1, 0);
      if (meta_users_[meta_slab] == 0 && !meta_->AddSlab(meta_slab)) {
        return false;
      }
      ++meta_users_[meta_slab];
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!rows_->AddSlab(slab)) {
    if (meta_ != nullptr) {
      const size_t meta_slab =
          (slab << rows_->rows_log2()) >> meta_->rows_log2();
      if (--meta_users_[meta_slab] == 0) meta_->DropSlab(meta_slab);
    }
    return false;
  }
  if (free_in_slab_.size() <= slab) free_in_slab_.resize(slab + 1, 0);
  return true;
}

void RowStore::DropRowSlab(size_t slab) {
  rows_->DropSlab(slab);
  if (meta_ == nullptr) return;
  const size_t meta_slab = (slab << rows_->rows_log2()) >> meta_->rows_log2();
  if (--meta_users_[meta_slab] == 0) meta_->DropSlab(meta_slab);
}

void RowStore::DrainStripes() {
  for (unsigned s = 0; s < kStripes; ++s) {
    Stripe& stripe = stripes_[s];
    for (int i = 0; i < stripe.count; ++i) {
      free_.push_back(stripe.handles[i]);
      ++free_in_slab_[stripe.handles[i] >> rows_->rows_log2()];
    }
    in_stripes_or_live_ -= stripe.count;
    stripe.count = 0;
  }
}

void RowStore::Free(Span<const RowHandle> handles) {
  std::lock_guard<std::mutex> lock(mu_);
  DrainStripes();
  free_.reserve(free_.size() + handles.size());
  for (RowHandle handle : handles) {
    if (meta_ != nullptr) *Meta(handle) = RowMeta();
    free_.push_back(handle);
    ++free_in_slab_[handle >> rows_->rows_log2()];
  }
  in_stripes_or_live_ -= static_cast<int64_t>(handles.size());
  ReleaseEmptySlabs();
}

void RowStore::ReleaseEmptySlabs() {
  const int log2 = rows_->rows_log2();
  std::vector<bool> empty(free_in_slab_.size(), false);
  bool any = false;
  for (size_t slab = 0; slab < free_in_slab_.size(); ++slab) {
    if (!rows_->has_slab(slab)) continue;
    const uint64_t begin = static_cast<uint64_t>(slab) * slab_rows();
    const bool open = next_ < end_ && (next_ >> log2) == slab;
    const uint64_t given_out =
        open ? next_ - begin
             : std::min<uint64_t>(slab_rows(), kFirstReservedHandle - begin);
    if (free_in_slab_[slab] != given_out) continue;
    if (open) next_ = end_ = 0;
    DropRowSlab(slab);
    dropped_slabs_.push_back(slab);
    free_in_slab_[slab] = 0;
    empty[slab] = any = true;
  }
  if (!any) return;
  free_.erase(std::remove_if(free_.begin(), free_.end(),
                             [&](RowHandle h) { return empty[h >> log2]; }),
              free_.end());
  if (free_.size() < free_.capacity() / 4) free_.shrink_to_fit();
  // The lowest is begun again first.
  std::sort(dropped_slabs_.rbegin(), dropped_slabs_.rend());
}

std::vector<bool> RowStore::FreeRows() const {
  std::vector<bool> is_free(free_in_slab_.size() * slab_rows(), false);
  for (RowHandle handle : free_) is_free[handle] = true;
  return is_free;
}

Status RowStore::Relayout(int64_t floats_per_row,
                          const std::function<void(float* row)>& fill) {
  std::lock_guard<std::mutex> lock(mu_);
  try {
    DrainStripes();
    const size_t stride = RowStride(floats_per_row);
    if (in_stripes_or_live_ == 0) ReleaseEmptySlabs();
    // Handles say which slab a row is in, so the rows per slab can only be
    // chosen anew while there are none.
    const bool keep = in_stripes_or_live_ != 0;
    std::unique_ptr<SlabArray> fresh(new SlabArray(
        stride, keep ? rows_->rows_log2() : SlabRowsLog2(stride)));
    if (!keep) {
      rows_ = std::move(fresh);
      if (meta_ != nullptr) {
        meta_.reset(new SlabArray(sizeof(RowMeta),
                                  std::max(rows_->rows_log2(), kMetaRowsLog2)));
      }
      free_.clear();
      free_in_slab_.clear();
      dropped_slabs_.clear();
      meta_users_.clear();
      next_ = end_ = 0;
      floats_per_row_ = floats_per_row;
      return Status::OK();
    }
    const std::vector<bool> is_free = FreeRows();
    // Address space for everything first: after that nothing can fail, and it
    // is no memory until the rows of a slab are copied, whereupon the old slab
    // goes.
    for (size_t slab = 0; slab < free_in_slab_.size(); ++slab) {
      if (rows_->has_slab(slab) && !fresh->AddSlab(slab)) {
        return ResourceExhausted("no memory to widen rows from " +
                                 std::to_string(floats_per_row_) + " to " +
                                 std::to_string(floats_per_row) + " floats");
      }
    }
    const size_t copied =
        std::min(floats_per_row_, floats_per_row) * sizeof(float);
    for (size_t slab = 0; slab < free_in_slab_.size(); ++slab) {
      if (!rows_->has_slab(slab)) continue;
      const uint64_t begin = static_cast<uint64_t>(slab) * slab_rows();
      const bool open = next_ < end_ && (next_ >> rows_->rows_log2()) == slab;
      const uint64_t end = open ? next_ : begin + slab_rows();
      fresh->Use(slab, end - begin);
      for (uint64_t row = begin; row < end; ++row) {
        if (is_free[row]) continue;
        char* to = fresh->Address(static_cast<RowHandle>(row));
        std::memcpy(to, rows_->Address(static_cast<RowHandle>(row)), copied);
        fill(reinterpret_cast<float*>(to));
      }
      rows_->DropSlab(slab);
    }
    rows_ = std::move(fresh);
    floats_per_row_ = floats_per_row;
    return Status::OK();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to widen rows to " +
                             std::to_string(floats_per_row) + " floats");
  }
}

void RowStore::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  for (unsigned s = 0; s < kStripes; ++s) stripes_[s].count = 0;
  rows_.reset(new SlabArray(rows_->stride(), SlabRowsLog2(rows_->stride())));
  if (meta_ != nullptr) {
    meta_.reset(new SlabArray(sizeof(RowMeta),
                              std::max(rows_->rows_log2(), kMetaRowsLog2)));
  }
  free_.clear();
  free_.shrink_to_fit();
  free_in_slab_.clear();
  dropped_slabs_.clear();
  meta_users_.clear();
  next_ = end_ = 0;
  in_stripes_or_live_ = 0;
}

int64_t RowStore::live_rows() const {
  int64_t waiting = 0;
  for (unsigned s = 0; s < kStripes; ++s) {
    std::lock_guard<SpinLock> lock(stripes_[s].lock);
    waiting += stripes_[s].count;
  }
  std::lock_guard<std::mutex> lock(mu_);
  return in_stripes_or_live_ - waiting;
}

int64_t RowStore::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  size_t bytes =
      sizeof(*this) + kStripes * sizeof(Stripe) + rows_->bytes() +
      free_.capacity() * sizeof(RowHandle) +
      dropped_slabs_.capacity() * sizeof(size_t) +
      (free_in_slab_.capacity() + meta_users_.capacity()) * sizeof(uint32_t);
  if (meta_ != nullptr) bytes += meta_->bytes();
  return static_cast<int64_t>(bytes);
}

}  // namespace ev
