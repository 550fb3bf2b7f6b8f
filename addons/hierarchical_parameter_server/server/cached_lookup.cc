// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/cached_lookup.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

namespace hps {
namespace {

// Most keys that one lookup leaves to the background; later lookups offer the
// rest.
constexpr int64_t kMostLate = 65536;
constexpr int64_t kBringAtOnce = 8192;

ev::Status FillDefaults(CacheLookup* lookup, const std::vector<float>& row,
                        ev::Parallel* parallel) {
  const int64_t all = static_cast<int64_t>(lookup->missing().size());
  std::vector<int64_t> unknown(std::min(lookup->max_fill(), all));
  for (size_t i = 0; i < unknown.size(); ++i) unknown[i] = i;
  for (int64_t begin = 0; begin < all;) {
    const int64_t count = std::min(lookup->max_fill(), all - begin);
    float* room = nullptr;
    EV_RETURN_IF_ERROR(lookup->Stage(count, &room));
    for (int64_t i = 0; i < count; ++i, room += row.size()) {
      std::copy(row.begin(), row.end(), room);
    }
    EV_RETURN_IF_ERROR(lookup->Fill(
        count, ev::Span<const int64_t>(unknown.data(), count), parallel));
    begin += count;
  }
  return lookup->Finish();
}

}  // namespace

ev::Status LookUpThroughCache(const CacheBatch& batch,
                              const std::shared_ptr<CacheTable>& cache,
                              const std::shared_ptr<Tiers>& tiers,
                              const CachedLookupOptions& options,
                              ev::Parallel* parallel,
                              CachedLookupCounts* counts) {
  std::unique_ptr<CacheLookup> lookup;
  EV_RETURN_IF_ERROR(cache->Lookup(batch, &lookup));
  const ev::Span<const int64_t> keys = lookup->missing_keys();
  const int64_t all = static_cast<int64_t>(keys.size());
  counts->hits = batch.count - all;
  if (all > 0 && options.hit_rate_threshold < 1.0 &&
      static_cast<double>(counts->hits) >=
          options.hit_rate_threshold * static_cast<double>(batch.count)) {
    counts->late = all;
    std::vector<int64_t> late(keys.begin(),
                              keys.begin() + std::min(all, kMostLate));
    options.background->Offer([cache, tiers, late = std::move(late)] {
      // A row that is not cached is missed and offered again.
      try {
        ev::Serial serial;
        BringUp(late, cache.get(), tiers.get(), &serial);
      } catch (const std::bad_alloc&) {
      }
    });
    return FillDefaults(lookup.get(), tiers->default_row(), parallel);
  }
  std::vector<int64_t> missing;
  int64_t nowhere = 0;
  for (int64_t begin = 0; begin < all;) {
    const int64_t count = std::min(lookup->max_fill(), all - begin);
    float* room = nullptr;
    EV_RETURN_IF_ERROR(lookup->Stage(count, &room));
    missing.resize(count);
    EV_RETURN_IF_ERROR(tiers->Read(keys.subspan(begin, count), room,
                                   missing.data(), &counts->found, parallel));
    nowhere += counts->found.nowhere;
    int64_t unknown = counts->found.nowhere;
    if (counts->found.skipped) {
      // The skipped tier may have other rows, so none of these is cached.
      unknown = count;
      std::iota(missing.begin(), missing.end(), int64_t{0});
    }
    EV_RETURN_IF_ERROR(lookup->Fill(
        count, ev::Span<const int64_t>(missing.data(), unknown), parallel));
    begin += count;
  }
  counts->found.nowhere = nowhere;
  return lookup->Finish();
}

ev::Status BringUp(ev::Span<const int64_t> keys, CacheTable* cache,
                   Tiers* tiers, ev::Parallel* parallel) {
  const int width = cache->options().format.width();
  const int64_t all = static_cast<int64_t>(keys.size());
  std::vector<int64_t> found_keys, missing;
  std::vector<float> rows;
  for (int64_t begin = 0; begin < all; begin += kBringAtOnce) {
    const int64_t count = std::min(kBringAtOnce, all - begin);
    const ev::Span<const int64_t> part = keys.subspan(begin, count);
    rows.resize(count * width);
    missing.resize(count);
    Tiers::Found found;
    const int64_t seen = cache->changes();
    EV_RETURN_IF_ERROR(tiers->Read(part, rows.data(), missing.data(), &found,
                                   parallel, Tiers::Purpose::kBringUp));
    found_keys.clear();
    int64_t next = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (next < found.nowhere && missing[next] == i) {
        ++next;
        continue;
      }
      const int64_t to = static_cast<int64_t>(found_keys.size());
      if (to < i) {
        std::copy(rows.data() + i * width, rows.data() + (i + 1) * width,
                  rows.data() + to * width);
      }
      found_keys.push_back(part[i]);
    }
    EV_RETURN_IF_ERROR(cache->Insert(found_keys, rows.data(), seen));
  }
  return ev::Status::OK();
}

}  // namespace hps
