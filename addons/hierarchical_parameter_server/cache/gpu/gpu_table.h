// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table of a GPU's cache: a hash table of the engine
// (cache/table/table_set.h), a row for each of its slots, and the order in
// which streams use them.

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
#include "addons/hierarchical_parameter_server/cache/table/table_set.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/work/work_context.h"

namespace hps {

// Offsets of buffers within one context's memory, laid out one after the other.
class ContextParts {
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

  // For lookups. All except the first two enqueue on the context's stream.
  // REQUIRES: device() is the current device.

  int device() const { return device_; }
  // Most rows that are stored or copied at once.
  int64_t rows_at_once() const { return rows_at_once_; }

  // out[i, :] = the row of keys[i], or zeros. Bit i of `bits` is set if keys[i]
  // is missing. All pointers, also `slots` of `count` elements, are device
  // memory. *has_rows: false if the table holds no rows; nothing is written
  // then.
  ev::Status Find(const int64_t* keys, int64_t count, float* out,
                  int64_t* slots, uint32_t* bits, ev::gpu::WorkContext* context,
                  bool* has_rows);

  // Offsets of the buffers that Store needs on a context with `count` staged
  // rows.
  struct StoreParts {
    StoreParts(int64_t count, ContextParts* host, ContextParts* device);
    size_t host_keys, host_sources;
    size_t keys, sources, slots, is_new, evicted, evicted_count;
  };
  // Stores the staged rows of `keys`, except those with indices in `unknown`
  // and those that changed since `seen`. staged: device memory; its row i
  // belongs to keys[i]. After an error the table holds no rows any more.
  // REQUIRES: `unknown` is ascending; at most rows_at_once() keys.
  ev::Status Store(ev::Span<const int64_t> keys,
                   ev::Span<const int64_t> unknown, int64_t seen,
                   const float* staged, const StoreParts& parts,
                   ev::gpu::WorkContext* context);

  // For reviews. Between BeginReview and EndReview the table records which keys
  // are stored or changed.
  void BeginReview();
  void EndReview();
  // Lists the keys in slots [first_slot, first_slot + num_slots), both
  // multiples of 16. *seen: the change count to pass to Renew. *is_over: no
  // slots are left, or the table holds no rows any more.
  ev::Status ListKeys(int64_t first_slot, int64_t num_slots,
                      std::vector<int64_t>* keys, int64_t* seen, bool* is_over);
  // Overwrites the rows of cached keys and erases the keys with indices in
  // `gone`, ascending. Skips every key that was stored or changed since `seen`.
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
  // Detaches the storage for good; the caller frees it after releasing the
  // lock. REQUIRES mu_.
  std::unique_ptr<Storage> TakeStorage();
  // If the table holds no rows: records the change of `keys` and returns true.
  // A device that has failed must not stop updates of the tiers.
  bool CountWithoutRows(ev::Span<const int64_t> keys);
  // Calls work(storage) ordered as a write, with null if the table is dropped.
  // If it fails, the table is dropped: the content of its rows is uncertain.
  template <typename Work>
  ev::Status Write(ev::gpu::WorkContext* context, const Work& work);
  // Waits until the device has finished with the storage, then frees it.
  static void Free(std::unique_ptr<Storage> storage);
  // Records keys that are stored or changed, if a review is in progress.
  // REQUIRES mu_.
  void NoteForReviews(ev::Span<const int64_t> keys) {
    if (reviews_ > 0) touched_->Add(keys);
  }
  ev::Status RefreshPart(ev::Span<const int64_t> keys,
                         ev::Span<const int64_t> numbers, const float* rows);

  const int device_;
  const CacheTableOptions options_;
  const int64_t rows_at_once_;
  std::atomic<int64_t> hits_{0}, misses_{0};
  std::atomic<bool> holds_rows_{false};  // whether storage_ is set
  std::mutex mu_;                        // held while work is enqueued
  // guarded by mu_; null if dropped or of capacity 0
  std::unique_ptr<Storage> storage_;
  KeyChanges changes_;  // guarded by mu_, except count()
  int reviews_ = 0;     // in progress; guarded by mu_
  // Created by the first review; guarded by mu_.
  std::unique_ptr<KeyChanges> touched_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_TABLE_H_
