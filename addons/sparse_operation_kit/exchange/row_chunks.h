// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Positions of the rows of a route's keys in the message that brings them back.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROW_CHUNKS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROW_CHUNKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Returns the start, in numbers, of each chunk (rank r, k-th of 'tables') at [r
// * K + k], and the total at the end.
inline std::vector<int64_t> ChunkStarts(const RoutePlan& plan,
                                        ev::Span<const int> tables) {
  std::vector<int64_t> starts(1, 0);
  for (int r = 0; r < plan.num_ranks(); ++r) {
    for (int t : tables) {
      starts.push_back(starts.back() + plan.num_keys(r, t) * plan.dim(t));
    }
  }
  return starts;
}

// ChunkStarts into *starts. InvalidArgument if the total is not num_floats.
inline ev::Status ChunkStartsOf(const RoutePlan& plan,
                                ev::Span<const int> tables, int64_t num_floats,
                                std::vector<int64_t>* starts) {
  *starts = ChunkStarts(plan, tables);
  if (num_floats == starts->back()) return ev::Status::OK();
  return ev::InvalidArgument(
      "lookup over ranks: " + std::to_string(num_floats) +
      " numbers came back for rows of " + std::to_string(starts->back()) +
      " in all; the first variable is '" +
      (plan.num_tables() > 0 ? plan.name(0) : std::string()) +
      "'. All ranks must build the same graph");
}

// ChunkStartsOf for all tables.
inline ev::Status ChunkStartsOf(const RoutePlan& plan, int64_t num_floats,
                                std::vector<int64_t>* starts) {
  std::vector<int> all(plan.num_tables());
  for (int t = 0; t < plan.num_tables(); ++t) all[t] = t;
  return ChunkStartsOf(plan, all, num_floats, starts);
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROW_CHUNKS_H_
