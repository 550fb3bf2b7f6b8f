// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How many rows a cache of a table holds and what GPU memory it takes: one
// function each, for what is allocated and for what `check` foretells.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_

#include <cstdint>

namespace hps {

// Rows that are sent to a device, or come from it, at a time: large enough to
// use the link's rate, small enough for many callers to have some under way.
int64_t CacheRowsAtOnce(int width);

// The slots of a cache of `rows` rows of a table, or of a share of them. One
// that holds the whole table and evicts nothing has room to spare, so that
// every key finds a slot.
struct CacheSize {
  int64_t capacity = 0;
  bool evicts = true;
};
CacheSize CacheSizeFor(int64_t rows, double share, bool whole_table);

// Rows that there is room for.
int64_t CacheSlots(int64_t capacity, bool evicts);
// Device memory: keys, scores, rows, and what an insert needs. max_keys: the
// most ids of a lookup.
int64_t CacheBytes(int64_t capacity, bool evicts, int width, int64_t max_keys);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_CACHE_SIZE_H_
