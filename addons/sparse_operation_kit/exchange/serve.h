// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The owner's part of a lookup over ranks: rows for the keys that all ranks
// sent, and the sum of the gradients that come back for them.
//
// The gradient of a key is the sum over ranks in rank order, so it has the same
// bits on every run. Thread-safe; 'parallel' may be null.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "addons/sparse_operation_kit/exchange/wire_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"

namespace sok {

// Floats of the rows of these tables' keys from rank r. dims: by table of the
// message, not of 'tables'.
int64_t RowFloats(const MessageLayout& layout, int r,
                  ev::Span<const int> tables, ev::Span<const int64_t> dims);

// message: what 'layout' was parsed from. tables: the T tables, which the plan
// keeps alive. rows: by rank, table, key; a key that is absent gives its
// default row, nothing is inserted. The plan serves ServeGradient and the
// update. Errors as of ev::LookupRows.
ev::Status Serve(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 WireType wire, void* rows, ev::Parallel* parallel,
                 std::shared_ptr<const ev::LookupPlan>* plan);

// gradients: num_floats numbers of type 'wire', for the keys of tables[0],
// tables[1], ... (numbers of tables, each once) by rank, table, key.
// unique_grads[k]: [U, dim] beside plan.unique_keys(tables[k]), the sums over
// ranks divided by 'divisor'.
// InvalidArgument: num_floats is not what these keys need.
ev::Status ServeGradient(const MessageLayout& layout,
                         const ev::LookupPlan& plan, ev::Span<const int> tables,
                         const void* gradients, int64_t num_floats,
                         WireType wire, ev::Span<float* const> unique_grads,
                         ev::Parallel* parallel, int divisor = 1);

// The transpose of ServeGradient, for gradients of gradients. given[k]: [U,
// dim] beside plan.unique_keys(tables[k]). values: num_floats numbers of type
// 'wire', the row of each key of tables[0], tables[1], ... by rank, table, key,
// divided by 'divisor'. InvalidArgument: as ServeGradient.
ev::Status ServeGivenRows(const MessageLayout& layout,
                          const ev::LookupPlan& plan,
                          ev::Span<const int> tables,
                          ev::Span<const float* const> given,
                          int64_t num_floats, WireType wire, void* values,
                          ev::Parallel* parallel, int divisor = 1);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVE_H_
