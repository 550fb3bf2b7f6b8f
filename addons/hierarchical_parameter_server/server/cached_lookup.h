// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Looks up rows through a cache: misses are read from the tiers part by part
// and filled in.

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
  // Below 1: if at least this share of a lookup's ids hits, it is answered at
  // once with the default value for misses, whose rows are cached later. From 1
  // on every answer is exact.
  double hit_rate_threshold = 1.0;
  // required if the threshold is below 1
  std::shared_ptr<Background> background;
};

struct CachedLookupCounts {
  int64_t hits = 0;  // ids whose rows were cached
  // ids answered with the default value although a tier may have a row
  int64_t late = 0;
  Tiers::Found found;  // where the other ids were found; `nowhere` is the total
};

ev::Status LookUpThroughCache(const CacheBatch& batch,
                              const std::shared_ptr<CacheTable>& cache,
                              const std::shared_ptr<Tiers>& tiers,
                              const CachedLookupOptions& options,
                              ev::Parallel* parallel,
                              CachedLookupCounts* counts);

// Caches the rows that the tiers have for these keys, as far as there is room.
ev::Status BringUp(ev::Span<const int64_t> keys, CacheTable* cache,
                   Tiers* tiers, ev::Parallel* parallel);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHED_LOOKUP_H_
