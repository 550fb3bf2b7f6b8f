// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one table, as many as a budget allows in the memory of a device
// (rows/gpu_row_home.h), the others in CPU memory (host_rows.h). Where a
// handle's row is, one word tells (storage/tiered/handle_words.h): nowhere, not
// made yet, in a place of the device, or in CPU memory. A place is a row of the
// device; its number is the handle by which the device knows it.
//
// To use rows a caller HOLDS them: those that are not on the device are brought
// there, all that one call lacks at once, and held rows stay until they are
// released. What makes way for them is copied to CPU memory if it was written
// since it came, and else nothing is copied: CPU memory still has it.
//
// WHICH ROWS GO. A hand goes round the places (storage/tiered/victim_hand.h);
// of the rows that it meets the cache strategy chooses
// (policy/cache_strategy.h). A row takes its rank with it to CPU memory and
// back.
//
// WAITING. Rows may be held by work that a device does while its caller goes on
// to other tables, so no thread may wait for a held row that it could itself
// hold. Reads never wait: what cannot be held at once they read where it is.
// Writes may wait, but for a place only, while their thread holds no row here;
// what they wait for is work that is under way.
//
// A thread keeps some places free, so that copying to CPU memory is done before
// it is waited for. It is started when it is first needed.

#ifndef KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_H_
#define KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/hbm_dram/host_rows.h"
#include "kernels/engine/storage/dram/slab_array.h"
#include "kernels/engine/storage/tiered/background_thread.h"
#include "kernels/engine/storage/tiered/fresh_rows.h"
#include "kernels/engine/storage/tiered/handle_words.h"
#include "kernels/engine/storage/tiered/use_ranks.h"
#include "kernels/engine/storage/tiered/victim_hand.h"

namespace ev {

struct DeviceCacheOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim], R below 2^30; copied
  int64_t device_bytes = 0;        // of rows on the device; 64 rows at least
  CacheStrategy strategy = CacheStrategy::kLfu;
};

class DeviceCache {
 public:
  // A row of the device; of kFirstReservedHandle and more: none.
  using Place = RowHandle;

  // How rows are read that no call holds; i: the position of the handle. The
  // row of 'host', [floats], is there during the call only.
  struct Visitor {
    std::function<void(size_t i, int64_t default_row)> fresh;
    std::function<void(size_t i, const float* row)> host;
    std::function<Status(Span<const size_t> which, Span<const Place> places)>
        device;
  };

  DeviceCache(const DeviceCacheOptions& options,
              std::unique_ptr<GpuRowHome> device);
  ~DeviceCache();
  DeviceCache(const DeviceCache&) = delete;
  DeviceCache& operator=(const DeviceCache&) = delete;

  // --- May be called by any number of threads at once ---

  // Gives the handle a row. Takes no memory but a word. ResourceExhausted.
  Status NewRow(RowHandle handle, int64_t default_row);

  // Holds the rows of the first *held of handles: places[i] is that of
  // handles[i], or handles[i] itself when that is of no row. Of a handle that
  // comes twice the row is held twice. For reads *held is anything from 0 on,
  // for writes 1 at least if there are any handles. ResourceExhausted: no
  // memory on the device, or for what goes. Nothing is held then.
  enum class Use { kReads, kWrites };
  Status Hold(Span<const RowHandle> handles, Use use, Place* places,
              size_t* held);
  // They are going to be written, while they are held.
  void Wrote(Span<const Place> places);
  void Release(Span<const Place> places);

  // Each row where it is; it does not become hot by it. Handles are rows.
  Status Visit(Span<const RowHandle> handles, const Visitor& visitor);

  // Room on the device and in CPU memory for what Hold for writes of so many
  // rows needs.
  Status Reserve(int64_t rows);
  void Unreserve(int64_t rows);

  // Whether a use of the row would bring it to the device first.
  bool IsOnHost(RowHandle handle) const;
  TierStats stats() const;
  int64_t bytes() const;  // rows, wherever they are, places and words
  int64_t capacity() const { return capacity_; }
  GpuRowHome* device() const { return device_.get(); }
  const FreshRows& fresh() const { return fresh_; }

  // --- REQUIRE that no other call is running and nothing is held ---

  // As those of RowHome.
  Status Relayout(Span<const float> initial_values);
  void Forget(Span<const RowHandle> handles);
  void Clear();

 private:
  struct Entry;
  struct Load;
  enum class Pin { kHeld, kBusy, kAway, kNoRow };

  int64_t floats() const { return fresh_.floats(); }
  void MakePlaces();
  std::atomic<uint32_t>* word(RowHandle handle) const {
    return words_.at(handle);
  }
  Entry* entry(Place place) const;

  Pin TryPin(RowHandle handle, bool counts, Place* place, uint32_t* seen);
  // One round of Hold: of *pending what is there is held, what is away is
  // brought there, and what another thread is moving stays pending. *end: the
  // first for which there was no room, or as it was.
  Status Round(Span<const RowHandle> handles, Use use,
               std::vector<size_t>* pending, Place* places, size_t* end);
  Status LoadAll(const std::vector<Load>& loads);
  Status CopyUp(const std::vector<Load>& loads);
  // Up to n places, busy and the caller's.
  Status TakePlaces(size_t n, Use use, std::vector<Place>* taken);
  Status Grow(int64_t n, std::vector<Place>* places);
  void GiveBack(Span<const Place> places);
  // Frees up to n places; *freed: how many. is_reserved: HostRows::Allocate.
  Status Evict(size_t n, bool is_reserved, size_t* freed);
  void Choose(size_t n, std::vector<Place>* victims);
  Status WriteBack(std::vector<Place> victims, bool is_reserved, size_t* freed);
  Status CopyDown(const std::vector<Place>& places,
                  const std::vector<HostRows::Row>& rows);
  Status EvictAll();
  Status MakeFreshRows();
  bool IsShort() const;
  void KeepFree();
  void WorkAhead();

  const int64_t budget_;
  FreshRows fresh_;
  const std::unique_ptr<GpuRowHome> device_;
  HostRows host_;
  // Shared by threads that read rows of CPU memory that they do not own, alone
  // for a thread that writes some.
  std::shared_mutex host_mu_;
  // Not OK when a failed Relayout left rows of which nothing is known.
  Status broken_;

  HandleWords words_;
  UseRanks ranks_;
  std::atomic<int64_t> live_{0};

  mutable std::mutex places_mu_;
  std::atomic<int64_t> capacity_{0};    // written alone
  std::unique_ptr<SlabArray> entries_;  // by place
  int64_t made_ = 0;                    // rows that the device has
  std::vector<Place> free_;
  int64_t reserved_ = 0;
  int64_t demand_ = 0;  // what calls took of late at most

  std::mutex evict_mu_;  // one at a time, and not while alone
  VictimHand hand_;

  std::atomic<int64_t> hits_{0}, misses_{0}, written_{0};
  BackgroundThread evictor_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_HBM_DRAM_DEVICE_CACHE_H_
