// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table: as many as a budget allows in the memory of a device
// (rows/gpu_row_home.h), the others in the memory below (host_rows.h). A row
// state per handle has its location (storage/tiered/row_states.h): none,
// fresh, in a cache slot of the device, or in the memory below. A cache slot is
// a row of the device; its number is the row's handle on the device.
//
// To use rows a caller HOLDS them. Rows that are not on the device are copied
// to it, all missing rows of a call at once, and held rows stay until they are
// released. A row that is evicted for them is copied to the memory below if it
// was written since it arrived, or if its copy is only on an SSD; otherwise CPU
// memory still has its contents.
//
// EVICTION. A clock hand goes round the cache slots
// (storage/tiered/victim_hand.h), and the cache strategy
// (policy/cache_strategy.h) chooses among the rows that it visits. A row keeps
// its rank in the memory below.
//
// WAITING. A row may be held by work in flight on the device whose caller has
// gone on to other tables. So no thread may wait for a held row that it could
// itself hold. Reads never wait for a held row: rows that cannot be held at
// once are read where they are. They wait for rows that another thread is
// moving, and for an eviction in progress. Writes may wait, but only for a
// cache slot, and only while their thread holds no row of this cache; they wait
// for work in flight.
//
// A thread keeps some cache slots free, so that copies to CPU memory finish
// before the cache slots are needed. It starts when it is first needed.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram_ssd/host_rows.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/tiered/background_thread.h"
#include "kernels/engine/storage/tiered/fresh_rows.h"
#include "kernels/engine/storage/tiered/row_states.h"
#include "kernels/engine/storage/tiered/use_ranks.h"
#include "kernels/engine/storage/tiered/victim_hand.h"

namespace ev {

struct DeviceCacheOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], R below 2^30; copied
  int64_t device_bytes = 0;        // for rows on the device; at least 64 rows
  std::shared_ptr<UseRanks> ranks;
};

class DeviceCache {
 public:
  // A row of the device. Values >= kFirstReservedHandle are no cache slot.
  using CacheSlot = RowHandle;

  // Callbacks for rows that are read without holding them. i: the position of
  // the handle. 'row' of 'host', [floats], is valid only during the call.
  struct Visitor {
    std::function<void(size_t i, int64_t default_row)> fresh;
    std::function<void(size_t i, const float* row)> host;  // the memory below
    std::function<Status(Span<const size_t> which,
                         Span<const CacheSlot> cache_slots)>
        device;
  };

  DeviceCache(const DeviceCacheOptions& options,
              std::unique_ptr<GpuRowHome> device,
              std::unique_ptr<HostRows> host);
  ~DeviceCache();
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  // --- Thread-safe: any number of threads may call these at once. They may
  // throw std::bad_alloc; the call then holds and changes no row ---

  // Gives the handle a fresh row, which takes no memory except its row state.
  // ResourceExhausted.
  Status NewRow(RowHandle handle, int64_t default_row);

  // Holds the rows of the first *held handles. cache_slots[i] is the cache slot
  // of handles[i], or handles[i] itself if it has no row. The row of a handle
  // that occurs twice is held twice. For reads *held may be 0; for writes it is
  // at least 1 unless handles is empty. ResourceExhausted: no memory on the
  // device, or no room below for evicted rows. DataLoss: an SSD does not hold
  // what was written. No row is held then.
  enum class Use { kReads, kWrites };
  Status Hold(Span<const RowHandle> handles, Use use, CacheSlot* cache_slots,
              size_t* held);
  // Announces that held rows will be written.
  void Wrote(Span<const CacheSlot> cache_slots);
  void Release(Span<const CacheSlot> cache_slots);

  // Reads each row where it is; rows do not become hot by it. All handles must
  // have rows.
  Status Visit(Span<const RowHandle> handles, const Visitor& visitor);

  // Reserves the memory on the device and the CPU that Hold for writes of that
  // many rows needs.
  Status Reserve(int64_t rows);
  void Unreserve(int64_t rows);

  // Returns 0 if the row is on the device or fresh, 1 if a use would copy it
  // from CPU memory, 2 if from a file.
  int TierOf(RowHandle handle) const;
  TierStats stats() const;
  TierStats stats_below() const;  // zeros if rows are in two memories
  int64_t bytes() const;  // rows in both memories, cache slots and row states
  int64_t capacity() const { return capacity_; }
  GpuRowHome* device() const { return device_.get(); }
  const FreshRows& fresh() const { return fresh_; }

  // --- REQUIRE that no other call is running and nothing is held ---

  // Like those of RowHome, except that a Relayout that fails and cannot be
  // reverted loses the rows: all calls then return FailedPrecondition until
  // Clear.
  Status Relayout(Span<const float> initial_values);
  void Forget(Span<const RowHandle> handles);
  void Clear();

 private:
  struct Entry;
  struct Load;
  enum class Pin { kHeld, kBusy, kAway, kNoRow };

  int64_t floats() const { return fresh_.floats(); }
  // Frees all cache slots, and adapts their number to the rows' layout.
  // Allocates nothing.
  void DropCacheSlots();
  std::atomic<uint32_t>* row_state(RowHandle handle) const {
    return row_states_.at(handle);
  }
  Entry* entry(CacheSlot cache_slot) const;

  Pin TryPin(RowHandle handle, bool counts, CacheSlot* cache_slot,
             uint32_t* seen);
  // One round of Hold. Of the pending handles, holds those whose row is on the
  // device, loads those whose row is elsewhere, and keeps those pending whose
  // row another thread is moving. *end: the first without room; else unchanged.
  Status Round(Span<const RowHandle> handles, Use use,
               std::vector<size_t>* pending, CacheSlot* cache_slots,
               size_t* end);
  Status LoadAll(const std::vector<Load>& loads);
  // Sets ranks[k] to the rank that the row of loads[k] brings.
  Status CopyUp(const std::vector<Load>& loads, uint32_t* ranks);
  // Gives the caller up to n cache slots, marked busy.
  Status TakeCacheSlots(size_t n, Use use, std::vector<CacheSlot>* taken);
  Status Grow(int64_t n, std::vector<CacheSlot>* cache_slots);
  Status FlushMade(bool has_new);
  void GiveBack(Span<const CacheSlot> cache_slots);
  // Frees up to n cache slots; *freed: how many. is_reserved: see HostRows.
  Status Evict(size_t n, bool is_reserved, size_t* freed);
  void Choose(size_t n, std::vector<CacheSlot>* victims);
  Status WriteBack(std::vector<CacheSlot> victims, bool is_reserved,
                   size_t* freed);
  Status CopyDown(const std::vector<CacheSlot>& cache_slots,
                  const std::vector<HostRows::Row>& rows, bool is_reserved);
  Status EvictAll();
  Status MakeFreshRows();
  bool IsShort() const;
  void KeepFree();
  void WorkAhead();

  const int64_t budget_;
  FreshRows fresh_;
  const std::unique_ptr<GpuRowHome> device_;
  const std::unique_ptr<HostRows> host_;
  // Not OK after a failed Relayout left rows with unknown contents.
  Status broken_;

  RowStates row_states_;
  const std::shared_ptr<UseRanks> shared_ranks_;
  UseRanks& ranks_;                // *shared_ranks_
  std::atomic<uint32_t> aged_{0};  // of UseRanks::IsTimeToAge
  std::atomic<int64_t> live_{0};

  mutable std::mutex cache_slots_mu_;
  std::atomic<int64_t> capacity_{0};  // written only by calls that run alone
  SlabArray entries_;                 // by cache slot
  int64_t made_ = 0;                  // rows that the device has
  std::vector<CacheSlot> free_;       // has room for all cache slots
  // Failed flushes, and how many of them a later flush has made up for. Unless
  // they are equal, cache slots may be free whose rows the device has not
  // written. Guarded by cache_slots_mu_.
  int64_t failed_flushes_ = 0, mended_flushes_ = 0;
  int64_t reserved_ = 0;
  int64_t demand_ = 0;  // decaying maximum of cache slots per call

  std::mutex evict_mu_;  // held by an eviction, and by calls that run alone
  VictimHand hand_;

  std::atomic<int64_t> hits_{0}, misses_{0}, written_{0};
  BackgroundThread evictor_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_SSD_DEVICE_CACHE_H_
