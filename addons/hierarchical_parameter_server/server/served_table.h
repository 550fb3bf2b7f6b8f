// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table of a model. A lookup passes through
//
//   [GPU cache] -> the tiers below (tiers.h)
//
// and is exact, unless the model's hit_rate_threshold is below 1
// (cached_lookup.h).

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/server/cached_lookup.h"
#include "addons/hierarchical_parameter_server/server/counters.h"
#include "addons/hierarchical_parameter_server/server/tiers.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

class ServedTable {
 public:
  ServedTable(const ModelConfig& model, const TableConfig& table,
              std::string tag, std::shared_ptr<Tiers> tiers,
              std::shared_ptr<Background> background);

  const std::string& tag() const { return tag_; }
  const TableConfig& config() const { return config_; }
  // Floats of an output row.
  int width() const { return config_.width; }
  int64_t max_keys() const { return max_keys_; }

  // Call before the first lookup.
  void SetCache(std::shared_ptr<CacheTable> cache) {
    cache_ = std::move(cache);
  }
  // Null: the table has no cache.
  const std::shared_ptr<CacheTable>& cache() const { return cache_; }

  // rows + i * width = the row of keys[i]. InvalidArgument: more keys than the
  // configuration allows. Errors of a tier are returned; the rows are undefined
  // then.
  ev::Status Lookup(ev::Span<const int64_t> keys, float* rows,
                    ev::Parallel* parallel);
  // The same for 32-bit ids.
  ev::Status Lookup(ev::Span<const int32_t> keys, float* rows,
                    ev::Parallel* parallel);
  // The same with ids, rows or both in GPU memory (see CacheBatch). Works
  // without a cache too. FailedPrecondition: this machine has no GPU, or the
  // library has no GPU code.
  ev::Status LookupOnDevice(const CacheBatch& batch, ev::Parallel* parallel);

  // Stores rows in the selected tiers, in the table's format. InvalidArgument:
  // a row has a number that the format cannot store; nothing is stored. If the
  // highest tier is one of them, lookups that start afterwards return them, and
  // the cache has them if it had their keys. Otherwise the keys leave the
  // cache, and a row of the volatile tier still hides the new one. An error of
  // the cache drops the cache.
  ev::Status Update(ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent);

  // Discards queued elevations: rows that lookups have read from the lower
  // tier, which has been changed since.
  void DropElevations() { tiers_->DropElevations(); }

  const std::shared_ptr<Tiers>& tiers() const { return tiers_; }
  const std::shared_ptr<Table>& above() const { return tiers_->above(); }
  const std::shared_ptr<Table>& below() const { return tiers_->below(); }
  Served served() const { return counters_.Sum(); }
  // Counts of refreshing the cache from databases shared with other processes.
  RefreshCounters* refreshes() { return &refreshes_; }
  Refreshed refreshed() const { return refreshes_.Get(); }

 private:
  bool lookups_use_cache() const {
    return cache_ != nullptr && cache_->holds_rows();
  }
  ev::Status CheckCount(int64_t count) const;
  ev::Status LookUpTiers(ev::Span<const int64_t> keys, float* rows,
                         ev::Parallel* parallel, Served* served);
  ev::Status LookUpCache(const CacheBatch& batch,
                         const std::shared_ptr<CacheTable>& cache,
                         ev::Parallel* parallel, Served* served);
  // Runs work(served) and counts it as a lookup of `count` ids.
  template <typename Work>
  ev::Status Counted(int64_t count, const Work& work);
  // Returns the cache, or a cache of capacity 0, which only moves ids and rows.
  ev::Status DeviceWay(std::shared_ptr<CacheTable>* way);

  const TableConfig config_;
  const std::string tag_;
  const int64_t max_keys_;
  const int64_t max_batch_size_;
  const std::shared_ptr<Tiers> tiers_;
  const CachedLookupOptions cached_;
  std::shared_ptr<CacheTable> cache_;
  std::mutex way_mutex_;
  std::shared_ptr<CacheTable> way_;  // guarded by way_mutex_
  Counters counters_;
  RefreshCounters refreshes_;
  ev::Recycler<ev::LineBuffer> scratch_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_
