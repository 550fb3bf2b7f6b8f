// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The fused lookup of many tables: deduplicate, find, gather, pool; and its
// gradient. What the forward found out is kept in a LookupPlan and serves the
// gradient and the update.
//
// Determinism: a sample is summed in the order of its ids, a row's gradient in
// the order of its occurrences, whatever the threads. All calls are
// thread-safe. 'parallel' may be null: the calling thread then does all.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

// One table's ids of one batch, of this table. A combiner that selects
// (combiner.h) takes no weights.
struct PooledInput : IdsInput {
  EmbeddingTable* table = nullptr;
  Combiner combiner = Combiner::kMean;
  bool no_nan = false;  // as PoolingBatch::no_nan (combine/pooling.h)
  // [N] how many occurrences each id stands for; null: 1 each. Samples are one
  // id each then (row_lookup.h).
  const int64_t* occurrences = nullptr;
  // Not null: the output is in the memory of the device that has the rows. Of
  // tables that take device tensors (embedding_table.h), without weights and
  // with a combiner that does not select.
  const DeviceStream* stream = nullptr;
  // Keeps the array of ids for as long as it lives: the call may return before
  // a device has read them. Null: it does not.
  std::shared_ptr<const void> ids_owner;
};

// outputs[t]: [B_t, dim_t], overwritten, what the combiner (combiner.h) makes
// of a sample's rows. A sample without ids gives zeros. Keys that are absent
// read their default row; nothing is inserted. The same table may come several
// times. owners: the tables again, which the plan then keeps alive, or empty.
// InvalidArgument, with the table's name: unsorted indices, a sample out of
// range, bad splits, sizes that do not fit; FailedPrecondition: a table is not
// initialized, or has no device for an output that is on one;
// ResourceExhausted: no memory for the plan. After an error the outputs hold
// nothing of use and *plan is as it was. Unimplemented: ids on a device
// (IdsInput::on_device) that no step takes: too few, of a table that none takes
// (step_lookup.h), or whose samples are not in order; the caller brings them to
// CPU memory and calls again. Outputs in CPU memory are written when
// it returns. Those on a device are when the stream is through with what it has
// been given by then.
Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<float* const> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan);

// grads[t]: d loss / d outputs[t], [B_t, dim_t]. unique_grads[t]: [U_t, dim_t],
// the sum over every occurrence of each unique key in order of occurrence; null
// for a table whose gradient is not wanted.
Status PooledBackward(const LookupPlan& plan, Span<const float* const> grads,
                      Span<float* const> unique_grads, Parallel* parallel);

// d loss / d weights of table t, [N_t]; outputs[t] is the forward's result. The
// rows are those that the forward read, whatever was updated since; or given
// [U_t, dim_t], in which case 'output' is the result of PoolGivenRows. Zeros
// when the combiner selects, which takes no weights. InvalidArgument when the
// table was looked up without weights otherwise.
Status PooledWeightGrad(const LookupPlan& plan, int t, const float* grad,
                        const float* output, float* weight_grad,
                        Parallel* parallel, const float* given = nullptr);

// Pools given rows in place of the table's: output [B_t, dim_t] is what the
// forward would write if unique key u of table t had row u of given [U_t,
// dim_t]. A combiner that selects takes the elements from the given rows of the
// ids that the forward selected, and their mean where several tie.
//
// This is the transpose of PooledBackward: the gradient of its unique_grads by
// its grads is PoolGivenRows, and the gradient of PoolGivenRows by the rows is
// PooledBackward.
Status PoolGivenRows(const LookupPlan& plan, int t, const float* given,
                     float* output, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_
