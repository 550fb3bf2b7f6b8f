// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Operations on all rows of a DeviceCache while no call uses them.

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache.h"
#include "kernels/engine/rows/hbm_dram_ssd/device_cache_impl.h"

namespace ev {
namespace {

constexpr size_t kEvictAtOnce = 8192;

}  // namespace

// Evicts all rows from the device, unless it fails. Called under evict_mu_.
Status DeviceCache::EvictAll() {
  std::vector<CacheSlot> victims;
  size_t freed = 0;
  for (int64_t p = 0; p < made_; ++p) {
    victims.reserve(kEvictAtOnce);
    uint32_t idle = 0;
    if (entry(p)->state.compare_exchange_strong(idle, kBusy)) {
      victims.push_back(static_cast<CacheSlot>(p));
    }
    if (victims.size() < kEvictAtOnce && p + 1 < made_) continue;
    EV_RETURN_IF_ERROR(
        WriteBack(std::move(victims), /*is_reserved=*/false, &freed));
    victims.clear();
  }
  return Status::OK();
}

// Fixes the contents of fresh rows, on the device and elsewhere, at the current
// initial values. Called under evict_mu_.
Status DeviceCache::MakeFreshRows() {
  for (int64_t p = 0; p < made_; ++p) {
    std::atomic<uint32_t>& home = entry(p)->home;
    if (IsFresh(home.load())) home.store(0);
  }
  std::vector<float> made(floats());
  return row_states_.ForEachFresh([&](RowHandle handle,
                                      std::atomic<uint32_t>* where,
                                      int64_t default_row) {
    HostRows::Row row;
    EV_RETURN_IF_ERROR(host_->Allocate(handle, /*is_reserved=*/false, &row));
    fresh_.Fill(default_row, made.data());
    const uint32_t rank = 0;
    const Status status =
        host_->Write(Span<const HostRows::Row>(&row, 1),
                     /*is_reserved=*/false, made.data(), &rank);
    if (!status.ok()) {
      host_->Free(Span<const HostRows::Row>(&row, 1));
      return status;
    }
    where->store(row + 1);
    return Status::OK();
  });
}

Status DeviceCache::Relayout(Span<const float> initial_values) {
  EV_RETURN_IF_ERROR(broken_);
  std::lock_guard<std::mutex> alone(evict_mu_);
  const std::vector<SlotShape> slots = FullSlots(fresh_.dim(), initial_values);
  RowShape shape = fresh_.shape().With(slots);
  const size_t before = fresh_.shape().num_slots();
  if (!fresh_.KeepsSlots(slots)) EV_RETURN_IF_ERROR(MakeFreshRows());
  if (initial_values.size() == before) {
    EV_RETURN_IF_ERROR(device_->Relayout(slots));
    fresh_.SetShape(std::move(shape));
    return Status::OK();
  }
  // Rows return to the device, in its new layout, as they are used.
  EV_RETURN_IF_ERROR(EvictAll());
  const size_t added = initial_values.size() - before;
  EV_RETURN_IF_ERROR(host_->AddSlots(initial_values.subspan(before, added)));
  device_->Clear();
  const Status status = CatchBadAlloc([&] { return device_->Relayout(slots); });
  if (status.ok()) {
    fresh_.SetShape(std::move(shape));
  } else {
    const Status back =
        CatchBadAlloc([&] { return host_->RemoveSlots(added); });
    if (!back.ok()) {
      broken_ = FailedPrecondition(
          "rows were lost when slots were added (" + status.message() + ", " +
          back.message() +
          "): initialize the variable again, or restore a checkpoint");
    }
  }
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  DropCacheSlots();
  return status;
}

void DeviceCache::Forget(Span<const RowHandle> handles) {
  std::lock_guard<std::mutex> alone(evict_mu_);
  std::vector<HostRows::Row> rows;
  std::vector<CacheSlot> cache_slots;
  rows.reserve(handles.size());
  cache_slots.reserve(handles.size());
  for (const RowHandle handle : handles) {
    const uint32_t seen = row_state(handle)->exchange(0);
    uint32_t elsewhere = seen;
    if (InFastTier(seen)) {
      const CacheSlot cache_slot = seen & kPayload;
      elsewhere = entry(cache_slot)->home.load();
      entry(cache_slot)->state.fetch_add(kBusy, std::memory_order_acq_rel);
      cache_slots.push_back(cache_slot);
    }
    if (InSlowTier(elsewhere)) rows.push_back(elsewhere - 1);
  }
  GiveBack(cache_slots);
  host_->Forget(handles, rows);
  live_.fetch_sub(static_cast<int64_t>(handles.size()));
  {
    std::lock_guard<std::mutex> lock(cache_slots_mu_);
    if (made_ > 0 && static_cast<int64_t>(free_.size()) == made_) {
      device_->Clear();
      DropCacheSlots();
    }
  }
  row_states_.DropUnused(handles);
}

void DeviceCache::Clear() {
  std::lock_guard<std::mutex> alone(evict_mu_);
  std::lock_guard<std::mutex> lock(cache_slots_mu_);
  row_states_.Clear();
  live_.store(0);
  DropCacheSlots();
  device_->Clear();
  host_->Clear(fresh_.shape().num_slots());
  broken_ = Status::OK();
}

}  // namespace ev
