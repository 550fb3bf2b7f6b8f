// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/slots.h"

#include <algorithm>

namespace ev {
namespace {

// Slots to look at for each row that leaves, and at least.
constexpr int64_t kLookedAtEach = 4, kLeastLookedAt = 1024;

}  // namespace

Slots::Slot Slots::Take(int64_t key, RowHandle handle, bool is_new) {
  std::lock_guard<std::mutex> lock(mu_);
  if (is_new) ++made_;
  const Row row{key, handle, brings_};
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    rows_[slot] = row;
    return slot;
  }
  if (num_used() == capacity_) return kNoRow;
  rows_.push_back(row);
  if (free_.capacity() < rows_.capacity()) {
    try {
      free_.reserve(rows_.capacity());  // so that GiveBack cannot fail
    } catch (...) {
      rows_.pop_back();
      throw;
    }
  }
  return static_cast<Slot>(rows_.size() - 1);
}

void Slots::GiveBack(Span<const Slot> slots) {
  std::lock_guard<std::mutex> lock(mu_);
  for (const Slot slot : slots) {
    rows_[slot] = Row();
    free_.push_back(slot);
  }
}

void Slots::FindHandles(Span<const Slot> slots, RowHandle* handles) const {
  std::lock_guard<std::mutex> lock(mu_);
  for (size_t i = 0; i < slots.size(); ++i) {
    handles[i] = slots[i] < rows_.size() ? rows_[slots[i]].handle : kNoRow;
  }
}

int64_t Slots::num_free() const {
  std::lock_guard<std::mutex> lock(mu_);
  return FreeLocked();
}

int64_t Slots::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(rows_.capacity() * sizeof(Row) +
                              free_.capacity() * sizeof(Slot));
}

bool Slots::NeedsRoom() {
  std::lock_guard<std::mutex> lock(mu_);
  demand_ = std::max(demand_ - (demand_ + 15) / 16, made_);
  made_ = 0;
  return FreeLocked() < std::min(demand_, capacity_ / 16);
}

int64_t Slots::room() const {
  std::lock_guard<std::mutex> lock(mu_);
  // For several calls, so that not every call has to make room.
  return std::min(4 * demand_, capacity_ / 8);
}

void Slots::Resize(int64_t capacity) {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<Row>().swap(rows_);
  std::vector<Slot>().swap(free_);
  capacity_ = capacity;
  made_ = demand_ = hand_ = 0;
}

Status Slots::Choose(int64_t n, const std::vector<bool>& stays,
                     const ReadWorth& read_worth, std::vector<Slot>* chosen) {
  chosen->clear();
  if (n <= 0) return Status::OK();
  const int64_t all = num_used();
  int64_t looked_at = 0;
  std::vector<Candidate> candidates;
  // Free slots may be next to each other, then twice as many are looked at.
  for (int64_t next = std::max(kLookedAtEach * n, kLeastLookedAt);
       looked_at < all && static_cast<int64_t>(candidates.size()) < n;
       next *= 2) {
    next = std::min(next, all);
    EV_RETURN_IF_ERROR(LookAt(looked_at, next, stays, read_worth, &candidates));
    looked_at = next;
  }
  if (static_cast<int64_t>(candidates.size()) > n) {
    std::nth_element(candidates.begin(), candidates.begin() + n,
                     candidates.end());
    candidates.resize(n);
  }
  for (const Candidate& one : candidates) chosen->push_back(one.slot);
  if (all > 0) hand_ = (hand_ + looked_at) % all;
  return Status::OK();
}

Status Slots::LookAt(int64_t begin, int64_t end, const std::vector<bool>& stays,
                     const ReadWorth& read_worth,
                     std::vector<Candidate>* candidates) const {
  constexpr uint32_t kMaxAge = 0x7FFFFFFF;
  const int64_t all = num_used();
  std::vector<uint32_t> worth;
  for (int64_t next; begin < end; begin = next) {
    // Up to the last slot, after which the hand starts at the first one.
    const int64_t first = (hand_ + begin) % all;
    const int64_t count = std::min(end - begin, all - first);
    next = begin + count;
    worth.assign(count, 0);
    if (read_worth != nullptr) {
      EV_RETURN_IF_ERROR(
          read_worth(static_cast<Slot>(first), Span<uint32_t>(worth)));
    }
    for (int64_t k = 0; k < count; ++k) {
      const Row& row = rows_[first + k];
      if (row.handle == kNoRow || stays[first + k]) continue;
      // Rows that have just come have not been used yet.
      const uint32_t age = std::min(kMaxAge, brings_ - row.arrived);
      candidates->push_back(
          {uint64_t{age < 2} << 63 | uint64_t{worth[k]} << 31 | (kMaxAge - age),
           static_cast<Slot>(first + k)});
    }
  }
  return Status::OK();
}

}  // namespace ev
