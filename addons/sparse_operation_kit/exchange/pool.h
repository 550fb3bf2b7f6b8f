// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The last step of a lookup over ranks, and the first of its gradient, both on
// the rank whose batch it is. Rows and gradients lie as the message of keys
// does: by rank, then by table, then by key, without a header.
//
// Samples are summed in the order of their ids, a key's gradient in the order
// of its occurrences. Thread-safe; 'parallel' may be null.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_POOL_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_POOL_H_

#include <cstdint>
#include <memory>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// rows: num_floats numbers of type 'wire', the rows of all of the plan's keys.
// outputs[t]: [B_t, dim_t], overwritten; null: not wanted. A sample without ids
// gives zeros. InvalidArgument: num_floats is not what the plan's keys need.
ev::Status PoolReceived(const RoutePlan& plan, const void* rows,
                        int64_t num_floats, WireType wire,
                        ev::Span<float* const> outputs, ev::Parallel* parallel);

// A route's occurrences, grouped by key: where every gradient begins, and what
// can be done before there is one.
struct RouteOccurrences;
ev::Status GroupRoute(const RoutePlan& plan, ev::Parallel* parallel,
                      std::shared_ptr<const RouteOccurrences>* occurrences);

// Rows as PoolReceived got them.
struct ReceivedRows {
  const void* data = nullptr;
  int64_t num_floats = 0;
};

// grads[k]: d loss / d outputs[tables[k]], [B, dim]. occurrences: of the plan,
// or null. message: the gradients of these tables' keys, by rank, then by table
// in the order of 'tables'; plan.row_floats(r, tables) numbers for rank r.
// rows: needed where the combiner of one of the tables selects (combiner.h).
ev::Status PoolGradient(const RoutePlan& plan,
                        const RouteOccurrences* occurrences,
                        ev::Span<const int> tables,
                        ev::Span<const float* const> grads, WireType wire,
                        void* message, ev::Parallel* parallel,
                        const ReceivedRows& rows = ReceivedRows());

// Pools given rows in place of the tables': the transpose of PoolGradient, for
// gradients of gradients (ev::PoolGivenRows). given: rows of the keys of
// 'tables' (each once), by rank, then by table in the order of 'tables'.
// outputs[k]: [B, dim], overwritten. rows: as for PoolGradient.
// InvalidArgument: the given rows are not as many as these tables' keys.
ev::Status PoolGivenRows(const RoutePlan& plan, ev::Span<const int> tables,
                         const ReceivedRows& given, WireType wire,
                         ev::Span<float* const> outputs, ev::Parallel* parallel,
                         const ReceivedRows& rows = ReceivedRows());

// d loss / d weights of table t, [N]. rows: as PoolReceived got them; output:
// its result. Or, with 'tables' not empty, the given rows and an output of
// PoolGivenRows. Zeros when the combiner selects, which takes no weights.
// InvalidArgument: the table was looked up without weights otherwise.
ev::Status PoolWeightGradient(
    const RoutePlan& plan, int t, const ReceivedRows& rows, WireType wire,
    const float* grad, const float* output, float* weight_grad,
    ev::Parallel* parallel, ev::Span<const int> tables = ev::Span<const int>());

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_POOL_H_
