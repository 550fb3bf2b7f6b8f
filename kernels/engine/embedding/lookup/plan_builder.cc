// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/plan_builder.h"

#include <algorithm>
#include <vector>

#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Returns whether a device can deduplicate the ids if the batch is long enough.
// It counts ids, so ids that stand for several occurrences are excluded.
bool CanDeduplicate(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  return table.home->gpu_table() != nullptr && in.weights == nullptr &&
         in.occurrences == nullptr && !Selects(in.combiner) && in.num_ids > 0 &&
         in.num_ids <= kMaxDistinctIds;
}

// Returns the number of ids of all tables that a device can deduplicate, if
// they count together. They do in a row lookup, in which all tables wait once
// for the 100 us until the device has returned their keys. In a pooled lookup
// one table goes on while another waits, so each counts by itself.
int64_t IdsTogether(Span<const PooledInput> inputs, Samples samples) {
  if (samples == Samples::kAsGiven) return 0;
  int64_t ids = 0;
  for (const PooledInput& in : inputs)
    ids += CanDeduplicate(in) ? in.num_ids : 0;
  return ids;
}

// Lets the table's device deduplicate, if that is worth it. If the device is
// short of memory, the CPU does it.
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
  return table.WithName(status);
}

// Sets the sizes of one table's part and reserves its memory.
Status Prepare(const PooledInput& in, int t, const DeviceLookup* devices,
               int64_t ids_together, PlannedTable* planned) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  planned->Begin(in, table.options.name);
  planned->table = in.table;
  planned->combiner = in.combiner;
  planned->no_nan = in.no_nan;
  planned->dim = table.dim();
  planned->num_absent = 0;
  planned->generation = table.generation;
  if (devices != nullptr && devices->IsInStep(t)) {
    planned->distinct = devices->step()->Distinct(t);
  } else if (devices != nullptr) {
    EV_RETURN_IF_ERROR(PrepareDevice(in, ids_together, planned));
  }
  planned->Reserve(planned->distinct == nullptr ? in.num_ids : 0);
  return Status::OK();
}

}  // namespace

bool IsDeduplicatedByDevice(const PooledInput& in) {
  return CanDeduplicate(in) &&
         in.num_ids >=
             in.table->impl()->home->gpu_table()->min_ids_to_deduplicate();
}

Status PlanLookup(Span<const PooledInput> inputs, Samples samples,
                  LookupPlan* plan, DeviceLookup* devices, Parallel* parallel,
                  const std::function<Status(int t)>& small_done) {
  const int num_tables = static_cast<int>(inputs.size());
  const int64_t ids_together = IdsTogether(inputs, samples);
  std::vector<const IdsInput*> ids(num_tables);
  std::vector<TableIds*> tables(num_tables);
  for (int t = 0; t < num_tables; ++t) {
    PlannedTable* const planned = plan->mutable_planned(t);
    EV_RETURN_IF_ERROR(Prepare(inputs[t], t, devices, ids_together, planned));
    ids[t] = &inputs[t];
    tables[t] = planned;
  }
  PlanIdsOptions options;
  options.samples = samples;
  options.ids_per_task = kIdsPerTask;
  options.check = [&](int t) {
    const PooledInput& in = inputs[t];
    if (in.ids64 == nullptr || in.on_device) return Status::OK();
    return in.table->impl()->CheckKeys(
        Span<const int64_t>(in.ids64, in.num_ids));
  };
  options.keys_known = [&](int t, Parallel*) {
    return IsSmall(plan->planned(t)) ? small_done(t) : Status::OK();
  };
  return PlanIds(ids, tables, options,
                 devices == nullptr ? nullptr : devices->queue(), parallel);
}

}  // namespace ev
