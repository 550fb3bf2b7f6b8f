// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/row_handles.h"

#include <new>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/spin_lock.h"
#include "kernels/engine/base/thread_stripe.h"

namespace ev {
namespace {

constexpr unsigned kStripes = 8;
// maximum number of handles that a stripe takes at once
constexpr int kMaxChunk = 64;

// A slab of meta is 2 MiB, or has as many rows as a slab of rows if that is
// more.
constexpr int kMetaRowsLog2 = 17;
static_assert((sizeof(RowMeta) << kMetaRowsLog2) == kHugePage, "");

}  // namespace

struct alignas(kCacheLine) RowHandles::Stripe {
  mutable SpinLock lock;
  int count = 0;
  RowHandle handles[kMaxChunk];  // used from the back
};

RowHandles::RowHandles(bool with_meta) : RowHandles(kMetaRowsLog2, with_meta) {}

RowHandles::RowHandles(int rows_log2, bool with_meta)
    : rows_log2_(rows_log2), stripes_(new Stripe[kStripes]) {
  if (with_meta) meta_ = MakeMeta(rows_log2);
}

RowHandles::~RowHandles() {}

std::unique_ptr<SlabArray> RowHandles::MakeMeta(int rows_log2) {
  return std::unique_ptr<SlabArray>(
      new SlabArray(sizeof(RowMeta), std::max(rows_log2, kMetaRowsLog2)));
}

Status RowHandles::Allocate(RowHandle* handle) {
  Stripe& stripe = stripes_[ThisThreadStripe() % kStripes];
  std::lock_guard<SpinLock> lock(stripe.lock);
  if (stripe.count == 0) EV_RETURN_IF_ERROR(Refill(&stripe));
  *handle = stripe.handles[--stripe.count];
  return Status::OK();
}

// Chunks grow with the table: a table of a few rows must not touch pages for
// handles that wait in stripes.
Status RowHandles::Refill(Stripe* stripe) {
  std::lock_guard<std::mutex> lock(mu_);
  const int chunk = static_cast<int>(std::min<int64_t>(
      kMaxChunk, std::max<int64_t>(4, in_stripes_or_live_ / 64)));
  int count = 0;
  RowHandle taken[kMaxChunk];
  while (count < chunk && !free_.empty()) {
    taken[count++] = free_.back();
    --free_in_slab_[free_.back() >> rows_log2_];
    free_.pop_back();
  }
  if (count == 0) {
    if (next_ == end_ && !NextRange()) {
      return ResourceExhausted("no memory for " + AnotherRow() +
                               " in addition to " +
                               std::to_string(in_stripes_or_live_) + " rows");
    }
    while (count < chunk && next_ < end_) {
      taken[count++] = static_cast<RowHandle>(next_++);
    }
    const size_t slab = (next_ - 1) >> rows_log2_;
    UseRows(slab, next_ - slab * slab_rows());
    if (meta_ != nullptr) {
      const size_t meta_slab = (next_ - 1) >> meta_->rows_log2();
      meta_->Use(meta_slab, next_ - meta_slab * meta_->slab_rows());
    }
  }
  // Stripes are used from the back: reverse, so that handles ascend.
  std::reverse_copy(taken, taken + count, stripe->handles);
  stripe->count = count;
  in_stripes_or_live_ += count;
  return Status::OK();
}

// Opens the handles of one slab. Prefers a dropped slab, so that the directory
// and the handles stay small.
bool RowHandles::NextRange() {
  const bool reuse = !dropped_slabs_.empty();
  const size_t slab = reuse ? dropped_slabs_.back() : free_in_slab_.size();
  const uint64_t begin = static_cast<uint64_t>(slab) * slab_rows();
  if (begin >= kFirstReservedHandle) return false;
  if (!AddSlab(slab)) return false;
  if (reuse) dropped_slabs_.pop_back();
  next_ = begin;
  end_ = std::min<uint64_t>(begin + slab_rows(), kFirstReservedHandle);
  return true;
}

bool RowHandles::AddSlab(size_t slab) {
  try {
    if (free_in_slab_.size() <= slab) free_in_slab_.reserve(slab + 1);
    if (meta_ != nullptr) {
      const size_t meta_slab = (slab << rows_log2_) >> meta_->rows_log2();
      if (meta_users_.size() <= meta_slab) meta_users_.resize(meta_slab + 1, 0);
      if (meta_users_[meta_slab] == 0 && !meta_->AddSlab(meta_slab)) {
        return false;
      }
      ++meta_users_[meta_slab];
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!AddRows(slab)) {
    if (meta_ != nullptr) {
      const size_t meta_slab = (slab << rows_log2_) >> meta_->rows_log2();
      if (--meta_users_[meta_slab] == 0) meta_->DropSlab(meta_slab);
    }
    return false;
  }
  if (free_in_slab_.size() <= slab) free_in_slab_.resize(slab + 1, 0);
  free_in_slab_[slab] = 0;
  return true;
}

void RowHandles::DropSlab(size_t slab) {
  DropRows(slab);
  if (meta_ == nullptr) return;
  const size_t meta_slab = (slab << rows_log2_) >> meta_->rows_log2();
  if (--meta_users_[meta_slab] == 0) meta_->DropSlab(meta_slab);
}

void RowHandles::ReserveFree(size_t handles) {
  std::lock_guard<std::mutex> lock(mu_);
  ReserveFreeLocked(handles);
}

void RowHandles::ReserveFreeLocked(size_t handles) {
  size_t needed = free_.size() + handles;
  for (unsigned s = 0; s < kStripes; ++s) needed += stripes_[s].count;
  if (needed > free_.capacity()) {
    free_.reserve(std::max(needed, 2 * free_.capacity()));
  }
}

void RowHandles::DrainStripes() {
  // First: a handle must not be in a stripe and in the free list.
  ReserveFreeLocked(0);
  for (unsigned s = 0; s < kStripes; ++s) {
    Stripe& stripe = stripes_[s];
    for (int i = 0; i < stripe.count; ++i) {
      free_.push_back(stripe.handles[i]);
      ++free_in_slab_[stripe.handles[i] >> rows_log2_];
    }
    in_stripes_or_live_ -= stripe.count;
    stripe.count = 0;
  }
}

void RowHandles::Free(Span<const RowHandle> handles) {
  std::lock_guard<std::mutex> lock(mu_);
  ReserveFreeLocked(handles.size());
  DrainStripes();
  for (RowHandle handle : handles) {
    if (meta_ != nullptr) *Meta(handle) = RowMeta();
    free_.push_back(handle);
    ++free_in_slab_[handle >> rows_log2_];
  }
  in_stripes_or_live_ -= static_cast<int64_t>(handles.size());
  ReleaseEmptySlabs();
}

void RowHandles::ReleaseEmptySlabs() {
  std::vector<bool> empty;
  try {
    empty.resize(free_in_slab_.size(), false);
    dropped_slabs_.reserve(free_in_slab_.size());
  } catch (const std::bad_alloc&) {
    return;  // a later call releases the slabs
  }
  bool any = false;
  ForEachSlab([&](size_t slab, uint64_t begin, uint64_t end) {
    if (free_in_slab_[slab] != end - begin) return;
    if (next_ < end_ && (next_ >> rows_log2_) == slab) next_ = end_ = 0;
    DropSlab(slab);
    dropped_slabs_.push_back(slab);
    free_in_slab_[slab] = kDropped;
    empty[slab] = any = true;
  });
  if (!any) return;
  free_.erase(
      std::remove_if(free_.begin(), free_.end(),
                     [&](RowHandle h) { return empty[h >> rows_log2_]; }),
      free_.end());
  if (free_.size() < free_.capacity() / 4) free_.shrink_to_fit();
  // The lowest slab is restarted first.
  std::sort(dropped_slabs_.rbegin(), dropped_slabs_.rend());
}

std::vector<bool> RowHandles::FreeRows() const {
  std::vector<bool> is_free(free_in_slab_.size() * slab_rows(), false);
  for (RowHandle handle : free_) is_free[handle] = true;
  return is_free;
}

void RowHandles::Restart(int rows_log2) {
  if (meta_ != nullptr) meta_ = MakeMeta(rows_log2);
  rows_log2_ = rows_log2;
  free_.clear();
  free_in_slab_.clear();
  dropped_slabs_.clear();
  meta_users_.clear();
  next_ = end_ = 0;
  in_stripes_or_live_ = 0;
}

void RowHandles::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  for (unsigned s = 0; s < kStripes; ++s) stripes_[s].count = 0;
  Restart(DropAllRows());
  free_.shrink_to_fit();
}

int64_t RowHandles::live_rows() const {
  int64_t waiting = 0;
  for (unsigned s = 0; s < kStripes; ++s) {
    std::lock_guard<SpinLock> lock(stripes_[s].lock);
    waiting += stripes_[s].count;
  }
  std::lock_guard<std::mutex> lock(mu_);
  return in_stripes_or_live_ - waiting;
}

int64_t RowHandles::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(BookkeepingBytes());
}

size_t RowHandles::BookkeepingBytes() const {
  size_t bytes =
      sizeof(*this) + kStripes * sizeof(Stripe) +
      free_.capacity() * sizeof(RowHandle) +
      dropped_slabs_.capacity() * sizeof(size_t) +
      (free_in_slab_.capacity() + meta_users_.capacity()) * sizeof(uint32_t);
  if (meta_ != nullptr) bytes += meta_->bytes();
  return bytes;
}

}  // namespace ev
