// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table of a GPU's cache: a hash table of the engine's
// (table/gpu/table_set.h), a row for each of its slots, and the order
// in which streams use the two.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/gpu/cache_kernels.h"
#include "addons/hierarchical_parameter_server/cache/gpu/stream_order.h"
#include "addons/hierarchical_parameter_server/cache/key_changes.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/table/gpu/table_set.h"

namespace hps {

// Parts of a lane's memory, one after the other.
class LaneParts {
 public:
  size_t Add(size_t bytes) {
    const size_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

class GpuTable : public CacheTable,
                 public std::enable_shared_from_this<GpuTable> {
 public:
  static ev::Status Make(int device, const CacheTableOptions& options,
                         std::shared_ptr<GpuTable>* table);
  ~GpuTable() override { Drop(); }

  const CacheTableOptions& options() const override { return options_; }
  bool holds_rows() const override { return holds_rows_; }
  ev::Status Lookup(const CacheBatch& batch,
                    std::unique_ptr<CacheLookup>* lookup) override;
  ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                    int64_t seen) override;
  int64_t changes() const override { return changes_.count(); }
  ev::Status Refresh(ev::Span<const int64_t> keys, const float* rows) override;
  ev::Status Erase(ev::Span<const int64_t> keys) override;
  ev::Status Clear() override;
  ev::Status Review(std::unique_ptr<CacheReview>* review) override;
  void Drop() override;
  ev::Status Statistics(CacheStatistics* statistics) override;

  // For lookups. All but the first two enqueue on the lane's stream.

  int device() const { return device_; }
  // Rows that are stored, or sent, at once.
  int64_t rows_at_once() const { return rows_at_once_; }

  // out[i, :] = the row of keys[i], or zeros; bit i of bits: there is none. All
  // is device memory, slots of `count` numbers too. *is_here: whether the table
  // is; if not, nothing is written.
  ev::Status Find(const int64_t* keys, int64_t count, float* out,
                  int64_t* slots, uint32_t* bits, ev::gpu::WorkLane* lane,
                  bool* is_here);

  // What Store needs of a lane that has `count` rows staged.
  struct StoreParts {
    StoreParts(int64_t count, LaneParts* host, LaneParts* device);
    size_t host_keys, host_sources;
    size_t keys, sources, slots, is_new, evicted, evicted_count;
  };
  // Stores staged rows of keys, but those whose numbers are in `unknown` and
  // those that have changed since `seen`. staged: device memory, in which row i
  // is that of keys[i].
  ev::Status Store(ev::Span<const int64_t> keys,
                   ev::Span<const int64_t> unknown, int64_t seen,
                   const float* staged, const StoreParts& parts,
                   ev::gpu::WorkLane* lane);

  // For reviews. From BeginReview to EndReview the table notes what is stored
  // and changed.
  void BeginReview();
  void EndReview();
  // The keys in slots [first_slot, first_slot + num_slots), both multiples of
  // 16, as far as the table has slots. *seen: how far the notes were. *is_over:
  // there are no slots from there on, or no rows any more.
  ev::Status ListKeys(int64_t first_slot, int64_t num_slots,
                      std::vector<int64_t>* keys, int64_t* seen, bool* is_over);
  // Overwrites rows of keys that are here, and erases those whose numbers are
  // in `gone`, but no key that was noted since `seen`.
  ev::Status Renew(ev::Span<const int64_t> keys, const float* rows,
                   ev::Span<const int64_t> gone, int64_t seen);

  void Count(int64_t hits, int64_t misses) {
    hits_.fetch_add(hits, std::memory_order_relaxed);
    misses_.fetch_add(misses, std::memory_order_relaxed);
  }

 private:
  // The table's device memory.
  struct Storage {
    std::unique_ptr<ev::gpu::TableSet> set;
    ev::gpu::DeviceBuffer rows, counters;
    StreamOrder order;
    int64_t bytes = 0;
  };

  GpuTable(int device, const CacheTableOptions& options);
  ev::Status MakeStorage();
  // Takes the storage away, for ever; the caller frees it without the lock.
  // REQUIRES mu_.
  std::unique_ptr<Storage> TakeStorage();
  // Counts a change of a table that holds no rows; false: it holds some. A
  // device that has failed must not stop the updates of the tiers.
  bool CountWithoutRows(ev::Span<const int64_t> keys);
  // Calls work(storage, stream) in the order of writers, unless the table is
  // dropped. If it fails the table is dropped: some rows may be in no order.
  template <typename Work>
  ev::Status Write(ev::gpu::WorkLane* lane, const Work& work);
  // Gives memory back when the device is through with it.
  static void Free(std::unique_ptr<Storage> storage);
  // Of keys that are stored, or changed, for reviews under way. REQUIRES mu_.
  void NoteForReviews(ev::Span<const int64_t> keys) {
    if (reviews_ > 0) touched_->Add(keys);
  }
  ev::Status RefreshPart(ev::Span<const int64_t> keys,
                         ev::Span<const int64_t> numbers, const float* rows);

  const int device_;
  const CacheTableOptions options_;
  const int64_t rows_at_once_;
  std::atomic<int64_t> hits_{0}, misses_{0};
  std::atomic<bool> holds_rows_{false};  // whether there is a storage_
  std::mutex mu_;                        // held while work is enqueued
  std::unique_ptr<Storage> storage_;  // guarded by mu_; null: dropped, or none
  KeyChanges changes_;                // guarded by mu_, but count()
  int reviews_ = 0;                   // under way; guarded by mu_
  // Made by the first review; guarded by mu_.
  std::unique_ptr<KeyChanges> touched_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_TABLE_H_
