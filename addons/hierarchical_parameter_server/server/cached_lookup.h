// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The way of a lookup through a cache: what it misses is read from the tiers,
// part by part, and put to its place.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHED_LOOKUP_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHED_LOOKUP_H_

#include <cstdint>
#include <memory>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/server/background.h"
#include "addons/hierarchical_parameter_server/server/tiers.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct CachedLookupOptions {
  // Below 1, a lookup of which this share of ids, or more, hits is answered at
  // once, missing ids with the default value; their rows come up later. From 1
  // on every answer is exact.
  double hit_rate_threshold = 1.0;
  std::shared_ptr<Background> background;  // REQUIRED below 1
};

struct CachedLookupCounts {
  int64_t hits = 0;    // ids whose rows the cache had
  int64_t late = 0;    // ids that were answered with the default value although
                       // a tier may have a row
  Tiers::Found found;  // of the others; nowhere is the sum
};

ev::Status LookUpThroughCache(const CacheBatch& batch,
                              const std::shared_ptr<CacheTable>& cache,
                              const std::shared_ptr<Tiers>& tiers,
                              const CachedLookupOptions& options,
                              ev::Parallel* parallel,
                              CachedLookupCounts* counts);

// Stores the rows that the tiers have of these keys, as far as there is room.
ev::Status BringUp(ev::Span<const int64_t> keys, CacheTable* cache,
                   Tiers* tiers, ev::Parallel* parallel);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHED_LOOKUP_H_
