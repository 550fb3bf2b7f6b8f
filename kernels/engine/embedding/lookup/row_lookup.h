// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The lookup of many tables for a caller that lays the rows out itself, key by
// key, and its gradient. It makes the same plan as a pooled lookup, so the
// update is the same: row_update.h.
//
// All calls are thread-safe. 'parallel' may be null: the calling thread then
// does all.

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

// rows[i - begin]: the row of keys[i] of input t, dim floats; its default row
// when absent. Called once for every key, in pieces, from several threads at
// once. Rows may be written meanwhile: read them with CopyRows
// (combine/pooling.h).
using RowsVisitor = std::function<void(int t, int64_t begin, int64_t end,
                                       const float* const* rows)>;

// Deduplicates and finds the keys, shows 'visit' their rows, inserts nothing.
// In the plan each key is a sample of one id. owners: as for PooledForward.
// InvalidArgument: 2^31 - 1 keys or more; FailedPrecondition: a table is not
// initialized; ResourceExhausted: no memory for the plan. After an error *plan
// is as it was.
Status LookupRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  const RowsVisitor& visit, Parallel* parallel,
                  std::shared_ptr<const LookupPlan>* plan);

// Where the rows of one table's keys go, [N, dim] in pieces, each contiguous:
// piece p takes keys [starts[p], starts[p + 1]).
struct RowPlaces {
  std::vector<int64_t> starts;  // pieces + 1; from 0 to N
  std::vector<float*> pieces;   // in the memory of the device with the rows
};

// LookupRows of tables that take device tensors (embedding_table.h): their rows
// are copied on the device, and are there when it is through with what 'stream'
// has been given by then, also after an error. Keys are deduplicated and found
// there too, and stay there, when they are enough
// (GpuTableCompute::min_ids_to_deduplicate); of an input with occurrences, if
// its table is one of those that a device takes together (step_lookup.h).
// places: one per input; 'stream' as in base/device_stream.h. Moreover
// InvalidArgument: places that are not of the keys, or in no memory of the
// device; FailedPrecondition: a table takes none.
Status GatherRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  Span<const RowPlaces> places, const DeviceStream& stream,
                  Parallel* parallel, std::shared_ptr<const LookupPlan>* plan);

// The gradients of one table's keys [N, dim] in pieces, each contiguous: piece
// p holds keys [starts[p], starts[p + 1]).
struct RowGradients {
  std::vector<int64_t> starts;  // pieces + 1; from 0 to N
  std::vector<const float*> pieces;
};

// unique_grads[t]: [U_t, dim_t], for each distinct key of table t of the plan
// the sum over its occurrences, in the order of the keys, whatever the threads.
// Null: not wanted; then grads[t] is not looked at. InvalidArgument: the pieces
// are not as long as the keys.
Status SumRowGradients(const LookupPlan& plan, Span<const RowGradients> grads,
                       Span<float* const> unique_grads, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_ROW_LOOKUP_H_
