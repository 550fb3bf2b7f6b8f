// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The last step of a lookup over ranks (pooling) and the first step of its
// gradient. Both run on the rank that owns the batch. Rows and gradients are
// ordered like the message of keys: by rank, then by table, then by key; they
// have no header.
//
// Samples are summed in the order of their ids, and a key's gradient in the
// order of its occurrences. All functions are thread-safe; 'parallel' may be
// null.

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

// rows: the rows of all keys of the plan, num_floats numbers of type 'wire'.
// outputs[t]: [B_t, dim_t], overwritten; null if not needed. Sums are float32;
// a narrow output is rounded once. A sample without ids gives zeros.
// InvalidArgument if num_floats does not match the plan's keys.
ev::Status PoolReceived(const RoutePlan& plan, const void* rows,
                        int64_t num_floats, WireType wire,
                        ev::Span<const ev::MutableFloats> outputs,
                        ev::Parallel* parallel);

// The occurrences of a route's ids, grouped by key. Every gradient needs this
// grouping first, and it can be computed before the gradients exist.
struct RouteOccurrences;
ev::Status GroupRoute(const RoutePlan& plan, ev::Parallel* parallel,
                      std::shared_ptr<const RouteOccurrences>* occurrences);

// The rows that PoolReceived read.
struct ReceivedRows {
  const void* data = nullptr;
  int64_t num_floats = 0;
};

// Sums the gradients of each key. grads[k]: d loss / d outputs[tables[k]], [B,
// dim]. occurrences: those of 'plan', or null to group here. message: gradients
// of these tables' keys by rank, then by table in the order of 'tables';
// plan.row_floats(r, tables) numbers for rank r. rows: required if the combiner
// of one of the tables selects (combiner.h).
ev::Status PoolGradient(const RoutePlan& plan,
                        const RouteOccurrences* occurrences,
                        ev::Span<const int> tables,
                        ev::Span<const ev::ConstFloats> grads, WireType wire,
                        void* message, ev::Parallel* parallel,
                        const ReceivedRows& rows = ReceivedRows());

// Pools 'given' in place of the tables' rows: the transpose of PoolGradient,
// for gradients of gradients (ev::PoolGivenRows). given: rows of the keys of
// 'tables' (each table once), by rank, then by table in the order of 'tables'.
// outputs[k]: [B, dim], overwritten. rows: as for PoolGradient. InvalidArgument
// if the number of given rows differs from that of the tables' keys.
ev::Status PoolGivenRows(const RoutePlan& plan, ev::Span<const int> tables,
                         const ReceivedRows& given, WireType wire,
                         ev::Span<float* const> outputs, ev::Parallel* parallel,
                         const ReceivedRows& rows = ReceivedRows());

// Computes d loss / d weights of table t, [N]. rows and output: input and
// result of PoolReceived, or, if 'tables' is not empty, given rows and an
// output of PoolGivenRows. The result is zero for a combiner that selects,
// since it ignores weights. InvalidArgument if the lookup of the table had no
// weights otherwise.
ev::Status PoolWeightGradient(
    const RoutePlan& plan, int t, const ReceivedRows& rows, WireType wire,
    const float* grad, const float* output, float* weight_grad,
    ev::Parallel* parallel, ev::Span<const int> tables = ev::Span<const int>());

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_POOL_H_
