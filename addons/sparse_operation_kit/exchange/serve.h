// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The owner's half of a lookup over ranks: reads the rows of the keys that all
// ranks sent, and sums the gradients that come back for them.
//
// The gradient of a key is summed in rank order, so it has the same bits in
// every run. All functions are thread-safe; 'parallel' may be null.

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

// Count of floats in the rows of rank r's keys of 'tables'. dims: one per table
// of the message.
int64_t RowFloats(const MessageLayout& layout, int r,
                  ev::Span<const int> tables, ev::Span<const int64_t> dims);

// Reads the rows of all keys in 'message', from which 'layout' was parsed.
// tables: the T tables; the plan keeps them alive. rows: by rank, table, key. A
// key without a row gives its default row, and nothing is inserted. The plan is
// the input of ServeGradient and of the update. Errors are those of
// ev::LookupRows.
ev::Status Serve(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 WireType wire, void* rows, ev::Parallel* parallel,
                 std::shared_ptr<const ev::LookupPlan>* plan);

// gradients: num_floats numbers of type 'wire' for the keys of tables[0],
// tables[1], ... (table numbers, each once), by rank, table, key.
// unique_grads[k]: [U, dim], in the order of plan.UniqueKeys(tables[k]): the
// sums over ranks divided by 'divisor'. InvalidArgument if num_floats does not
// match these keys.
ev::Status ServeGradient(const MessageLayout& layout,
                         const ev::LookupPlan& plan, ev::Span<const int> tables,
                         const void* gradients, int64_t num_floats,
                         WireType wire, ev::Span<float* const> unique_grads,
                         ev::Parallel* parallel, int divisor = 1);

// The transpose of ServeGradient, for gradients of gradients. given[k]: [U,
// dim], in the order of plan.UniqueKeys(tables[k]). values: num_floats numbers
// of type 'wire': the given row of each key of tables[0], tables[1], ...
// divided by 'divisor', by rank, table, key. InvalidArgument as for
// ServeGradient.
ev::Status ServeGivenRows(const MessageLayout& layout,
                          const ev::LookupPlan& plan,
                          ev::Span<const int> tables,
                          ev::Span<const float* const> given,
                          int64_t num_floats, WireType wire, void* values,
                          ev::Parallel* parallel, int divisor = 1);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVE_H_
