// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/cache_size.h"

#include <algorithm>
#include <cmath>

#include "addons/hierarchical_parameter_server/cache/table/table_size.h"

namespace hps {

int64_t CacheRowsAtOnce(int width) {
  constexpr int64_t kBytes = 4 << 20, kMostRows = 16384;
  return std::max<int64_t>(64, std::min(kMostRows, kBytes / (4 * width)));
}

CacheSize CacheSizeFor(int64_t rows, double share, bool whole_table) {
  CacheSize size;
  if (whole_table || share >= 1.0) {
    size.evicts = false;
    // The table refuses new keys when it is nine tenths full (table_set.h,
    // CAPACITY), and updates add keys.
    size.capacity = static_cast<int64_t>(std::ceil(rows / 0.85));
  } else {
    size.capacity = static_cast<int64_t>(std::ceil(rows * share));
  }
  size.capacity = std::max<int64_t>(size.capacity, 64);
  return size;
}

int64_t CacheSlots(int64_t capacity, bool evicts) {
  if (capacity == 0) return 0;
  return ev::gpu::SlotsFor(capacity, ev::gpu::DefaultProbeLimit(evicts));
}

int64_t CacheBytes(int64_t capacity, bool evicts, int width, int64_t max_keys) {
  if (capacity == 0) return 0;
  const int64_t keys = std::min(max_keys, CacheRowsAtOnce(width));
  return CacheSlots(capacity, evicts) * 4 * width +
         ev::gpu::IndexBytesFor(capacity, evicts, keys);
}

}  // namespace hps
