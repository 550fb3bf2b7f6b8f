// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Lookup of many tables for a caller that lays out the rows itself, key by key,
// and its gradient. It makes the same plan as a pooled lookup, so the update is
// the same (row_update.h).
//
// All calls are thread-safe. If 'parallel' is null, the calling thread does all
// the work.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_ROW_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_ROW_LOOKUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"

namespace ev {

struct RowsInput {
  EmbeddingTable* table = nullptr;
  Span<const int64_t> keys;  // [N], duplicates allowed
  // [N] how many occurrences each key stands for in the table's frequencies, or
  // null: 1 each.
  const int64_t* occurrences = nullptr;
};

// Receives the rows of keys [begin, end) of input t: rows[i - begin] is the row
// of keys[i], dim floats, or its default row if absent. Called once for every
// key, in pieces, from several threads at once. Other threads may write the
// rows: read them with CopyRows (combine/pooling.h).
using RowsVisitor = std::function<void(int t, int64_t begin, int64_t end,
                                       const float* const* rows)>;

// Deduplicates and finds the keys and calls 'visit' with their rows; inserts
// nothing. In the plan each key is a sample of one id. owners: as for
// PooledForward. InvalidArgument: 2^31 - 1 keys or more. FailedPrecondition: a
// table is not initialized. ResourceExhausted: no memory for the plan. After an
// error *plan is unchanged.
Status LookupRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  const RowsVisitor& visit, Parallel* parallel,
                  std::shared_ptr<const LookupPlan>* plan);

// Destination of the rows of one table's keys, [N, dim], in contiguous pieces:
// piece p takes keys [starts[p], starts[p + 1]).
struct RowPlaces {
  std::vector<int64_t> starts;  // pieces + 1; from 0 to N
  std::vector<float*> pieces;   // in the memory of the device with the rows
};

// LookupRows for tables that take device tensors (embedding_table.h). Rows are
// copied on the device; they are written, even after an error, when it has
// finished the work that 'stream' has been given by then. The device finds the
// keys, in steps (step_lookup.h). places: one per input; 'stream' as in
// base/device_stream.h.
//
// Further errors: InvalidArgument for places that do not match the keys or are
// not in memory of the device; FailedPrecondition for a table that takes no
// device tensors.
Status GatherRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  Span<const RowPlaces> places, const DeviceStream& stream,
                  Parallel* parallel, std::shared_ptr<const LookupPlan>* plan);

// Gradients of one table's keys, [N, dim], in contiguous pieces: piece p holds
// keys [starts[p], starts[p + 1]).
struct RowGradients {
  std::vector<int64_t> starts;  // pieces + 1; from 0 to N
  std::vector<const float*> pieces;
};

// Sums the gradients of each distinct key of table t of the plan into
// unique_grads[t], [U_t, dim_t], in the order of its occurrences, whatever the
// threads. If unique_grads[t] is null, the table is skipped and grads[t] is not
// read. InvalidArgument: the pieces do not match the keys.
Status SumRowGradients(const LookupPlan& plan, Span<const RowGradients> grads,
                       Span<float* const> unique_grads, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_ROW_LOOKUP_H_
