// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/plan_builder.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/ids/sharded_ids.h"
#include "kernels/engine/ids/unique_pool.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Ids that are copied for a device at a time: half a MiB, at some 10 GB/s.
constexpr int64_t kIdsPerPut = 65536;

// Whether a device could deduplicate, for a batch that is long enough.
bool CanDeduplicate(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  return table.home->gpu_table() != nullptr && in.weights == nullptr &&
         in.num_ids > 0 && in.num_ids <= kMaxDistinctIds;
}

// Ids of all tables, where those of a device stand together: the 100 us until
// it has their keys are waited for once by all tables. (A pooled lookup goes on
// with one table while another waits: there each stands for itself.)
int64_t IdsTogether(Span<const PooledInput> inputs, Samples samples) {
  if (samples == Samples::kAsGiven) return 0;
  int64_t ids = 0;
  for (const PooledInput& in : inputs)
    ids += CanDeduplicate(in) ? in.num_ids : 0;
  return ids;
}

// Gets the table's device ready to deduplicate, if that is worth it. A device
// that is short of memory leaves it to the processor.
Status PrepareDevice(const PooledInput& in, int64_t ids_together,
                     PlannedTable* planned) {
  if (!CanDeduplicate(in)) return Status::OK();
  const EmbeddingTable::Impl& table = *in.table->impl();
  const int64_t least = table.home->gpu_table()->min_ids_to_deduplicate();
  if (std::max(ids_together, in.num_ids) < least ||
      in.num_ids < least / kDistinctShares) {
    return Status::OK();
  }
  const Status status = table.home->gpu_table()->StartDistinct(
      in.num_ids, in.batch_size, &planned->distinct);
  if (status.code() == StatusCode::kResourceExhausted) return Status::OK();
  return table.Named(status);
}

// Sizes and memory of one table's part.
Status Prepare(const PooledInput& in, bool on_devices, int64_t ids_together,
               PlannedTable* planned) {
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
  if (on_devices) {
    EV_RETURN_IF_ERROR(PrepareDevice(in, ids_together, planned));
  }
  planned->Reserve(planned->distinct == nullptr ? in.num_ids : 0,
                   in.batch_size);
  return Status::OK();
}

// Where samples begin; checks them, and the ids.
Status FindSamples(const PooledInput& in, Samples samples,
                   PlannedTable* planned) {
  if (in.ids64 != nullptr) {
    EV_RETURN_IF_ERROR(
        in.table->impl()->CheckKeys(Span<const int64_t>(in.ids64, in.num_ids)));
  }
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

// Ids [begin, end) on their way to the device.
Status PutIds(const PooledInput& in, int64_t begin, int64_t end,
              PlannedTable* planned) {
  const size_t n = end - begin;
  return in.table->impl()->Named(
      in.ids64 != nullptr
          ? planned->distinct->Put(begin,
                                   Span<const int64_t>(in.ids64 + begin, n))
          : planned->distinct->Put(begin,
                                   Span<const int32_t>(in.ids32 + begin, n)));
}

}  // namespace

bool IsDeduplicatedByDevice(const PooledInput& in) {
  return CanDeduplicate(in) &&
         in.num_ids >=
             in.table->impl()->home->gpu_table()->min_ids_to_deduplicate();
}

Status PlanIds(Span<const PooledInput> inputs, Samples samples,
               LookupPlan* plan, DeviceLookup* devices, Parallel* parallel,
               const std::function<Status(int t)>& small_done) {
  const int num_tables = static_cast<int>(inputs.size());
  // The devices' tables come first, so that the link has something to do. What
  // is left of each before its device can start: samples, and all ids.
  TaskList tasks(kIdsPerTask);
  const int64_t ids_together = IdsTogether(inputs, samples);
  std::vector<std::atomic<int64_t>> left(num_tables);
  for (int t = 0; t < num_tables; ++t) {
    PlannedTable* planned = plan->mutable_planned(t);
    EV_RETURN_IF_ERROR(
        Prepare(inputs[t], devices != nullptr, ids_together, planned));
    if (planned->distinct == nullptr) continue;
    left[t] = 1 + inputs[t].num_ids;
    tasks.AddWhole(t, kIdsPerTask);
    tasks.AddAlone(t, inputs[t].num_ids, kIdsPerPut);
  }
  for (int t = 0; t < num_tables; ++t) {
    if (plan->planned(t).distinct != nullptr) continue;
    tasks.AddWhole(t, PlanWeight(inputs[t]));
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, tasks, [&](const Piece& piece) {
    const int t = piece.item;
    const PooledInput& in = inputs[t];
    PlannedTable* planned = plan->mutable_planned(t);
    const int64_t num_put = piece.end - piece.begin;
    if (num_put == 0) {
      EV_RETURN_IF_ERROR(FindSamples(in, samples, planned));
    } else {
      EV_RETURN_IF_ERROR(PutIds(in, piece.begin, piece.end, planned));
    }
    if (planned->distinct != nullptr) {
      const int64_t done = num_put == 0 ? 1 : num_put;
      if (left[t].fetch_sub(done, std::memory_order_acq_rel) == done) {
        EV_RETURN_IF_ERROR(in.table->impl()->Named(planned->distinct->Start(
            Span<const int32_t>(planned->offsets, in.batch_size + 1))));
        devices->Started(t);
      }
      return devices->Advance();
    }
    if (in.num_ids > ShardedIds::kMaxWhole) return Status::OK();
    EV_RETURN_IF_ERROR(Deduplicate(in, planned));
    return IsSmall(in, *planned) ? small_done(t) : Status::OK();
  }));
  for (int t = 0; t < num_tables; ++t) {
    const PooledInput& in = inputs[t];
    PlannedTable* planned = plan->mutable_planned(t);
    if (planned->distinct != nullptr || in.num_ids <= ShardedIds::kMaxWhole) {
      continue;
    }
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
