// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's part of a RoutePlan.

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
// by first occurrence. A device that has deduplicated ('distinct' is not null)
// numbers keys in the order of first occurrence: its key u is places[u] here.
// Then inverse is null until FetchInverse, and so are counts unspecified, but
// where the message says them. A device that has sorted the keys as well has
// their places, too, and they are unspecified here until FetchInverse.
struct RoutedTable : ev::PooledIds {
  std::vector<int32_t> starts;  // [W + 1]: keys of rank r are [starts[r], ...)
  int32_t* places = nullptr;    // [U], with 'distinct'
  bool is_sorted_there = false;

  // Makes room for what Begin told of. Throws std::bad_alloc.
  void Reserve() {
    ev::ArrayLayout layout;
    const Layout at = AddTo(&layout, num_ids);
    PointInto(static_cast<char*>(arrays.Reserve(layout.bytes())), at);
    samples_bytes = at.end_of_inverse;
    places = nullptr;
    is_sorted_there = false;
    if (distinct != nullptr) std::swap(inverse, places);
  }

  // What a device that pools is to be told, in memory that it can read by
  // itself: offsets and inverse, which are one stretch; with 'distinct',
  // places, and nothing when the keys are sorted there.
  const char* for_pooling() const {
    return reinterpret_cast<const char*>(distinct != nullptr ? places
                                                             : offsets);
  }
  size_t for_pooling_bytes() const {
    if (distinct == nullptr) return samples_bytes;
    return is_sorted_there ? 0 : num_unique * sizeof(int32_t);
  }
  size_t samples_bytes = 0;  // of offsets and inverse
  ev::TransferScratch arrays;
  mutable ev::LineBuffer fetched;  // of FetchInverse
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTED_TABLE_H_
