// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The data of one table in a RoutePlan.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/transfer_scratch.h"
#include "kernels/engine/embedding/lookup/pooled_ids.h"

namespace sok {

// Distinct keys, their counts and the inverse are in send order: by owner, then
// by first occurrence.
//
// If a device has deduplicated, 'distinct' is not null. The device numbers keys
// by first occurrence: its key u has number places[u] in send order. Until
// FetchInverse, inverse is null, and counts are set only if the message
// contains them. If the device has also sorted the keys by owner, places is
// unspecified until FetchInverse.
struct RoutedTable : ev::PooledIds {
  std::vector<int32_t> starts;  // [W + 1]: rank r's keys begin at starts[r]
  int32_t* places = nullptr;    // [U], with 'distinct'
  bool is_sorted_on_device = false;

  // Allocates the arrays for the sizes set by Begin. Throws std::bad_alloc.
  void Reserve() {
    ev::ArrayLayout layout;
    const Layout at = AddTo(&layout, num_ids);
    PointInto(static_cast<char*>(arrays.Reserve(layout.bytes())), at);
    samples_bytes = at.end_of_inverse;
    places = nullptr;
    is_sorted_on_device = false;
    if (distinct != nullptr) std::swap(inverse, places);
  }

  // The bytes that a device needs for pooling, in memory that it can read
  // directly: offsets and inverse, which are contiguous. If 'distinct' is set,
  // only places; nothing if the device has sorted the keys.
  const char* for_pooling() const {
    return reinterpret_cast<const char*>(distinct != nullptr ? places
                                                             : offsets);
  }
  size_t for_pooling_bytes() const {
    if (distinct == nullptr) return samples_bytes;
    return is_sorted_on_device ? 0 : num_unique * sizeof(int32_t);
  }
  size_t samples_bytes = 0;  // of offsets and inverse
  ev::TransferScratch arrays;
  mutable ev::LineBuffer fetched;  // used by FetchInverse
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
