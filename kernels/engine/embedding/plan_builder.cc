// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/plan_builder.h"

#include <algorithm>
#include <string>

#include "kernels/engine/combine/sample_offsets.h"
#include "kernels/engine/embedding/planned_table.h"
#include "kernels/engine/embedding/sharded_ids.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/tasks.h"
#include "kernels/engine/embedding/unique_pool.h"

namespace ev {
namespace {

// Sizes and memory of one table's part.
void Prepare(const PooledInput& in, PlannedTable* planned) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  planned->table = in.table;
  planned->combiner = in.combiner;
  planned->dim = table.dim();
  planned->batch_size = in.batch_size;
  planned->num_ids = in.num_ids;
  planned->num_unique = 0;
  planned->num_absent = 0;
  planned->generation = table.generation;
  planned->has_weights = in.weights != nullptr && in.num_ids > 0;
  planned->has_factors = false;
  planned->is_sharded = false;
  planned->Reserve(in.num_ids, in.batch_size);
}

// Where samples begin; checks them.
Status FindSamples(const PooledInput& in, Samples samples,
                   PlannedTable* planned) {
  if (planned->has_weights) {
    std::copy_n(in.weights, in.num_ids, planned->weights);
  }
  if (samples == Samples::kOneIdEach) {
    for (int64_t i = 0; i <= in.num_ids; ++i) {
      planned->offsets[i] = static_cast<int32_t>(i);
    }
    return Status::OK();
  }
  const std::string& name = in.table->impl()->options.name;
  if (in.row_splits != nullptr) {
    return OffsetsFromSplits(in.row_splits, in.batch_size, in.num_ids, name,
                             planned->offsets);
  }
  return OffsetsFromIndices(in.coo_indices, in.batch_size, in.num_ids, name,
                            planned->offsets);
}

Status Deduplicate(const PooledInput& in, PlannedTable* planned) {
  auto unique = UniquePool().Acquire();
  return in.ids64 != nullptr
             ? unique->Run(Span<const int64_t>(in.ids64, in.num_ids),
                           planned->unique, planned->inverse, planned->counts,
                           &planned->num_unique)
             : unique->Run(Span<const int32_t>(in.ids32, in.num_ids),
                           planned->unique, planned->inverse, planned->counts,
                           &planned->num_unique);
}

}  // namespace

Status PlanIds(Span<const PooledInput> inputs, Samples samples,
               LookupPlan* plan, Parallel* parallel,
               const std::function<Status(int t)>& small_done) {
  const int num_tables = static_cast<int>(inputs.size());
  TaskList tasks(kIdsPerTask);
  for (int t = 0; t < num_tables; ++t) {
    Prepare(inputs[t], plan->mutable_planned(t));
    tasks.AddWhole(t, PlanWeight(inputs[t]));
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, tasks, [&](const Piece& piece) {
    const PooledInput& in = inputs[piece.item];
    PlannedTable* planned = plan->mutable_planned(piece.item);
    EV_RETURN_IF_ERROR(FindSamples(in, samples, planned));
    if (in.num_ids > ShardedIds::kMaxWhole) return Status::OK();
    EV_RETURN_IF_ERROR(Deduplicate(in, planned));
    return PlanWeight(in) <= kIdsPerTask ? small_done(piece.item)
                                         : Status::OK();
  }));
  for (int t = 0; t < num_tables; ++t) {
    const PooledInput& in = inputs[t];
    if (in.num_ids <= ShardedIds::kMaxWhole) continue;
    PlannedTable* planned = plan->mutable_planned(t);
    const ShardedIds::Output output = {planned->unique, planned->inverse,
                                       planned->counts};
    EV_RETURN_IF_ERROR(planned->shards.Run(
        in.ids64, in.ids32, in.num_ids, planned->offsets, in.batch_size, output,
        parallel, &planned->num_unique));
    planned->is_sharded = !planned->all_unique();
  }
  return Status::OK();
}

}  // namespace ev
