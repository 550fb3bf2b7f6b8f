// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sizes of a table's cache: its rows and its GPU memory. The cache allocates by
// these functions, and the `check` command estimates with them.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_

#include <cstdint>

namespace hps {

// Rows copied between host and device at a time. Large enough to use the link's
// full rate, small enough that many callers can have copies in flight.
int64_t CacheRowsAtOnce(int width);

// Sizes a cache for `share` of the `rows` rows of a table. A cache that holds
// the whole table never evicts, so it gets spare slots: every key must find
// one.
struct CacheSize {
  int64_t capacity = 0;
  bool evicts = true;
};
CacheSize CacheSizeFor(int64_t rows, double share, bool whole_table);

// Number of slots allocated for `capacity` rows.
int64_t CacheSlots(int64_t capacity, bool evicts);
// Device memory in bytes: keys, scores, rows and the scratch memory of an
// insert. max_keys: the largest number of ids in one lookup.
int64_t CacheBytes(int64_t capacity, bool evicts, int width, int64_t max_keys);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_
