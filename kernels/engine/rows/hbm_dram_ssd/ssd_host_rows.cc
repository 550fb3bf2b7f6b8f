// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/hbm_dram_ssd/ssd_host_rows.h"

#include <algorithm>
#include <mutex>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/ssd/open_tiered_rows.h"
#include "kernels/engine/storage/tiered/row_states.h"

namespace ev {
namespace {

// Rows that a Visit reads together.
constexpr size_t kVisitedAtOnce = 512;

}  // namespace

Status SsdHostRows::AddHandle(RowHandle handle) {
  if (handle + 1 >= kInFastTier) {
    return ResourceExhausted("a table with rows on an SSD holds fewer than " +
                             std::to_string(kInFastTier) + " rows");
  }
  return tiers_->NewRow(handle, 0);
}

// Takes no memory: the row has its state, and Write moves it in.
Status SsdHostRows::Allocate(RowHandle handle, bool, Row* row) {
  *row = handle;
  return Status::OK();
}

void SsdHostRows::Free(Span<const Row> rows) {
  {
    std::lock_guard<std::shared_mutex> lock(mu_);
    tiers_->Discard(rows);
  }
  tiers_->Compact();
}

Status SsdHostRows::Write(Span<const Row> rows, bool is_reserved,
                          const float* floats, const uint32_t* ranks) {
  size_t done = 0;
  const Status status = CatchBadAlloc(
      [&] { return tiers_->Put(rows, is_reserved, floats, ranks, &done); });
  tiers_->Compact();
  return status;
}

Status SsdHostRows::Read(Span<const Row> rows, float* floats, uint32_t* ranks) {
  return CatchBadAlloc([&] { return tiers_->CopyWhole(rows, floats, ranks); });
}

Status SsdHostRows::Visit(
    Span<const Row> rows,
    const std::function<void(size_t, const float*)>& body) {
  return CatchBadAlloc([&] {
    const int64_t width = floats();
    std::vector<float> copies(std::min(rows.size(), kVisitedAtOnce) * width);
    for (size_t begin = 0; begin < rows.size(); begin += kVisitedAtOnce) {
      const size_t n = std::min(kVisitedAtOnce, rows.size() - begin);
      EV_RETURN_IF_ERROR(
          tiers_->Copy(rows.subspan(begin, n), 0, width, copies.data()));
      for (size_t k = 0; k < n; ++k) body(begin + k, copies.data() + k * width);
    }
    return Status::OK();
  });
}

Status SsdHostRows::Reserve(int64_t rows, int64_t most) {
  return CatchBadAlloc([&] {
    // If no row has to leave the device, none takes a cache slot here.
    return most == 0 ? tiers_->Reserve(rows) : tiers_->ReservePut(rows);
  });
}

void SsdHostRows::AddStats(TierStats* stats, TierStats* below) const {
  *below = StatsOf(*tiers_);
  stats->stored_rows += below->memory_rows;
  stats->stored_bytes += bytes();
}

Status SsdHostRows::AddSlots(Span<const float> initial_values) {
  return CatchBadAlloc([&] {
    std::vector<float> all = slots_;
    all.insert(all.end(), initial_values.begin(), initial_values.end());
    EV_RETURN_IF_ERROR(tiers_->SetSlots(FullSlots(dim_, all)));
    slots_.swap(all);
    return Status::OK();
  });
}

Status SsdHostRows::RemoveSlots(size_t count) {
  EV_RETURN_IF_ERROR(tiers_->RemoveSlots(count));
  slots_.resize(slots_.size() - count);
  return Status::OK();
}

void SsdHostRows::Forget(Span<const RowHandle> handles, Span<const Row>) {
  tiers_->Forget(handles);
}

void SsdHostRows::Clear(size_t num_slots) {
  tiers_->Clear();
  // Cannot fail without rows.
  if (slots_.size() > num_slots) RemoveSlots(slots_.size() - num_slots);
}

}  // namespace ev
