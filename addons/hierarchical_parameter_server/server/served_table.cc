// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/served_table.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "kernels/engine/base/tasks.h"

namespace hps {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Count(const Tiers::Found& found, Served* served) {
  served->from_volatile = found.above;
  served->from_persistent = found.below;
  served->defaults = found.nowhere - found.unavailable;
  served->unavailable = found.unavailable;
}

CacheBatch HostBatch(const void* ids, size_t count, bool long_ids,
                     float* rows) {
  CacheBatch batch;
  batch.ids = ids;
  batch.count = static_cast<int64_t>(count);
  batch.long_ids = long_ids;
  batch.rows = rows;
  return batch;
}

}  // namespace

ServedTable::ServedTable(const ModelConfig& model, const TableConfig& table,
                         std::string tag, std::shared_ptr<Tiers> tiers,
                         std::shared_ptr<Background> background)
    : config_(table),
      tag_(std::move(tag)),
      max_keys_(model.max_keys(table)),
      max_batch_size_(model.max_batch_size),
      tiers_(std::move(tiers)),
      cached_{background != nullptr ? model.hit_rate_threshold : 1.0,
              std::move(background)},
      scratch_(64) {}

ev::Status ServedTable::CheckCount(int64_t count) const {
  if (count <= max_keys_) return ev::Status::OK();
  return ev::InvalidArgument(
      "table " + tag_ + ": expected at most " + std::to_string(max_keys_) +
      " ids of a lookup (max_batch_size " + std::to_string(max_batch_size_) +
      " x maxnum_catfeature_query_per_table_per_sample " +
      std::to_string(config_.max_keys_per_sample) + "), got " +
      std::to_string(count));
}

template <typename Work>
ev::Status ServedTable::Counted(int64_t count, const Work& work) {
  const int64_t begin = NowNs();
  Served served;
  served.lookups = 1;
  served.keys = count;
  ev::Status status = CheckCount(count);
  if (status.ok()) status = work(&served);
  if (!status.ok()) {
    served = Served();
    served.failed = served.lookups = 1;
  }
  served.nanoseconds = NowNs() - begin;
  counters_.Add(served);
  return status;
}

ev::Status ServedTable::LookUpTiers(ev::Span<const int64_t> keys, float* rows,
                                    ev::Parallel* parallel, Served* served) {
  auto scratch = scratch_.Acquire();
  const RowFormat format = config_.format();
  // Positions of 8 bytes, then the packed rows.
  const size_t words = format.is_packed() ? keys.size() * format.width() : 0;
  int64_t* const missing =
      scratch->ReserveOf<int64_t>(keys.size() + 1 + (words + 1) / 2);
  float* const stored =
      words == 0 ? rows : reinterpret_cast<float*>(missing + keys.size() + 1);
  Tiers::Found found;
  EV_RETURN_IF_ERROR(tiers_->Read(keys, stored, missing, &found, parallel));
  if (words != 0) {
    UnpackRows(format, static_cast<int64_t>(keys.size()), stored, rows,
               parallel);
  }
  Count(found, served);
  return ev::Status::OK();
}

ev::Status ServedTable::LookUpCache(const CacheBatch& batch,
                                    const std::shared_ptr<CacheTable>& cache,
                                    ev::Parallel* parallel, Served* served) {
  CachedLookupCounts counts;
  EV_RETURN_IF_ERROR(
      LookUpThroughCache(batch, cache, tiers_, cached_, parallel, &counts));
  Count(counts.found, served);
  served->from_cache = counts.hits;
  served->late = counts.late;
  return ev::Status::OK();
}

ev::Status ServedTable::Lookup(ev::Span<const int64_t> keys, float* rows,
                               ev::Parallel* parallel) {
  return Counted(keys.size(), [&](Served* served) {
    return lookups_use_cache()
               ? LookUpCache(HostBatch(keys.data(), keys.size(), true, rows),
                             cache_, parallel, served)
               : LookUpTiers(keys, rows, parallel, served);
  });
}

ev::Status ServedTable::Lookup(ev::Span<const int32_t> keys, float* rows,
                               ev::Parallel* parallel) {
  return Counted(keys.size(), [&](Served* served) {
    if (lookups_use_cache()) {
      return LookUpCache(HostBatch(keys.data(), keys.size(), false, rows),
                         cache_, parallel, served);
    }
    auto scratch = scratch_.Acquire();
    int64_t* const wide = scratch->ReserveOf<int64_t>(keys.size() + 1);
    std::copy(keys.begin(), keys.end(), wide);
    return LookUpTiers(ev::Span<const int64_t>(wide, keys.size()), rows,
                       parallel, served);
  });
}

ev::Status ServedTable::DeviceWay(std::shared_ptr<CacheTable>* way) {
  if (cache_ != nullptr) {
    *way = cache_;
    return ev::Status::OK();
  }
  std::lock_guard<std::mutex> lock(way_mutex_);
  if (way_ == nullptr) {
    std::shared_ptr<DeviceCache> device;
    EV_RETURN_IF_ERROR(MakeDeviceCache(&device));
    CacheTableOptions options;
    options.tag = tag_;
    options.format = config_.format();
    options.max_keys = max_keys_;
    EV_RETURN_IF_ERROR(device->OpenTable(options, &way_));
  }
  *way = way_;
  return ev::Status::OK();
}

ev::Status ServedTable::LookupOnDevice(const CacheBatch& batch,
                                       ev::Parallel* parallel) {
  return Counted(batch.count, [&](Served* served) {
    std::shared_ptr<CacheTable> way;
    EV_RETURN_IF_ERROR(DeviceWay(&way));
    return LookUpCache(batch, way, parallel, served);
  });
}

ev::Status ServedTable::Update(ev::Span<const int64_t> keys, const float* rows,
                               bool to_volatile, bool to_persistent) {
  const RowFormat format = config_.format();
  std::vector<float> packed;
  if (format.is_packed()) {
    packed.resize(keys.size() * format.width());
    const ev::Status status = PackRows(format, keys, rows, packed.data());
    if (!status.ok()) {
      return ev::Status(status.code(),
                        "table " + tag_ + ", " + status.message());
    }
    rows = packed.data();
  }
  return tiers_->Update(
      keys, rows, to_volatile, to_persistent, [&](Tiers::Changed changed) {
        if (cache_ == nullptr || changed == Tiers::Changed::kNothing) {
          return ev::Status::OK();
        }
        const ev::Status status = ev::CatchBadAlloc([&] {
          return changed == Tiers::Changed::kRows ? cache_->Refresh(keys, rows)
                                                  : cache_->Erase(keys);
        });
        // The tiers go on without the cache, which must not keep old rows.
        if (!status.ok()) cache_->Drop();
        return status;
      });
}

}  // namespace hps
