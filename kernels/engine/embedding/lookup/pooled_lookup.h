// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fused lookup of many tables (deduplicate, find, gather, pool) and its
// gradient. The forward keeps its results in a LookupPlan, which the gradient
// and the update reuse.
//
// Determinism: a sample is summed in the order of its ids, a row's gradient in
// the order of its occurrences, whatever the threads. All calls are
// thread-safe. If 'parallel' is null, the calling thread does all the work.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/ids/table_ids.h"

namespace ev {

// One table's ids of one batch. A combiner that selects (combiner.h) takes no
// weights.
struct PooledInput : IdsInput {
  EmbeddingTable* table = nullptr;
  Combiner combiner = Combiner::kMean;
  bool no_nan = false;  // as PoolingBatch::no_nan (combine/pooling.h)
  // [N]: how many occurrences of its key each id stands for; null: 1 each.
  // REQUIRES, if not null: each sample is one id (as in row_lookup.h).
  const int64_t* occurrences = nullptr;
  // If not null, the output is in memory of the device that has the rows. Only
  // for tables that take device tensors (embedding_table.h), without weights
  // and with a combiner that adds.
  const DeviceStream* stream = nullptr;
  // Keeps the array of ids alive, so that the call may return before a device
  // has read it. If null, the call returns only after that.
  std::shared_ptr<const void> ids_owner;
};

// Looks up the ids, combines the rows of each sample (combiner.h) and writes
// the results to outputs[t], [B_t, dim_t]. Sums are float32; a narrow output is
// rounded once, when it is stored. A sample without ids gives zeros.
// Absent keys read their default row; nothing is inserted. A table may occur
// several times. owners: empty, or the tables of 'inputs'; the plan then keeps
// them alive.
//
// Outputs in CPU memory are written when the call returns. Outputs on a device
// are written when the stream has finished all work that was enqueued before
// the call returned.
//
// InvalidArgument, naming the table: unsorted indices, a sample out of range,
// bad splits, or sizes that do not match. FailedPrecondition: a table is not
// initialized, or has no device for an output on a device. ResourceExhausted:
// no memory for the plan. Unimplemented: a table's ids are on a device
// (IdsInput::on_device), but the table cannot be in a step of that device
// (step_lookup.h), there is no memory for a step, or their samples are not
// sorted. The caller then copies the ids to CPU memory and calls again. After
// an error the outputs are unspecified and *plan is unchanged.
Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<const MutableFloats> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan);
// The same for float32 outputs.
Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<float* const> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan);

// Computes the gradient of each unique key: unique_grads[t], [U_t, dim_t], is
// the float32 sum over the key's occurrences in their order. Null: the table is
// skipped. grads[t]: d loss / d outputs[t], [B_t, dim_t]; narrow ones are
// widened when they are loaded.
Status PooledBackward(const LookupPlan& plan, Span<const ConstFloats> grads,
                      Span<float* const> unique_grads, Parallel* parallel);
// The same for float32 gradients.
Status PooledBackward(const LookupPlan& plan, Span<const float* const> grads,
                      Span<float* const> unique_grads, Parallel* parallel);

// Computes d loss / d weights of table t, [N_t]. Uses the rows that the forward
// read, even if they have been updated since; output: the forward's result. If
// 'given' [U_t, dim_t] is not null, uses those rows instead; output: the result
// of PoolGivenRows for them. Zeros if the combiner selects; otherwise
// InvalidArgument if the lookup had no weights.
Status PooledWeightGrad(const LookupPlan& plan, int t, const float* grad,
                        const float* output, float* weight_grad,
                        Parallel* parallel, const float* given = nullptr);

// Pools given rows in place of the table's: output [B_t, dim_t] is what the
// forward would write if unique key u of table t had row u of given [U_t,
// dim_t]. A combiner that selects takes the elements from the given rows of the
// ids that the forward selected, or their mean if several tie.
//
// This is the transpose of PooledBackward: the gradient of its unique_grads by
// its grads is PoolGivenRows, and the gradient of PoolGivenRows by the rows is
// PooledBackward.
Status PoolGivenRows(const LookupPlan& plan, int t, const float* given,
                     float* output, Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_POOLED_LOOKUP_H_
