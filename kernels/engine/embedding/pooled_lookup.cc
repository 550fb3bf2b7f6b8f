// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/pooled_lookup.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/plan_builder.h"
#include "kernels/engine/embedding/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/tasks.h"

namespace ev {
namespace {

// Keys whose rows one call to a device gets: half a ms of a link, and enough to
// make little of the call's own tens of us.
constexpr int64_t kKeysPerFetch = 16384;

Status Bad(const EmbeddingTable::Impl& table, const std::string& what) {
  return InvalidArgument(what + ", " + table.Named());
}

// All that can be checked without reading the arrays.
Status CheckInput(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  EV_RETURN_IF_ERROR(table.CheckInitialized());
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (in.batch_size < 0 || in.batch_size >= kMax) {
    return Bad(table, "the batch size must be in [0, 2^31 - 1), got " +
                          std::to_string(in.batch_size));
  }
  if (in.num_ids < 0 || in.num_ids >= kMax) {
    return Bad(table, "the number of ids must be in [0, 2^31 - 1), got " +
                          std::to_string(in.num_ids));
  }
  if (in.num_ids > 0 && (in.ids64 != nullptr) == (in.ids32 != nullptr)) {
    return Bad(table, "ids must come either as int64 or as int32");
  }
  if (in.row_splits != nullptr && in.coo_indices != nullptr) {
    return Bad(table, "samples must come either as row splits or as indices");
  }
  if (in.num_ids > 0 && in.row_splits == nullptr && in.coo_indices == nullptr) {
    return Bad(table, "ids came without row splits and without indices");
  }
  return Status::OK();
}

// Rows of distinct keys [begin, end).
void FindRows(PlannedTable* planned, int64_t begin, int64_t end) {
  const int64_t absent = planned->table->impl()->FindRows(
      Span<const int64_t>(planned->unique + begin, end - begin),
      planned->handles + begin, planned->rows + begin);
  if (absent != 0) {
    planned->num_absent.fetch_add(absent, std::memory_order_relaxed);
  }
  // Rows on a device are fetched afterwards, which makes copies of them too.
  if (!planned->has_weights || planned->table->impl()->on_device()) return;
  float* copies = static_cast<float*>(planned->row_copies.data());
  CopyRows(planned->rows, begin, end, planned->dim, copies);
  for (int64_t u = begin; u < end; ++u) {
    planned->rows[u] = copies + u * planned->dim;
  }
}

void ReserveCopies(PlannedTable* planned) {
  if (!planned->has_weights && !planned->table->impl()->on_device()) return;
  planned->row_copies.ReserveOf<float>(planned->num_unique * planned->dim);
}

// The same keys' rows, when they are on a device: copies that outlive the
// update.
Status FetchRows(PlannedTable* planned, int64_t begin, int64_t end) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  if (!table.on_device()) return Status::OK();
  const int64_t dim = planned->dim;
  float* copies = static_cast<float*>(planned->row_copies.data());
  EV_RETURN_IF_ERROR(table.CopyFromDevice(
      Span<const int64_t>(planned->unique + begin, end - begin),
      planned->handles + begin, copies + begin * dim));
  for (int64_t u = begin; u < end; ++u) planned->rows[u] = copies + u * dim;
  return Status::OK();
}

// Samples [begin, end).
void Pool(PlannedTable* planned, int64_t begin, int64_t end, float* output) {
  PoolSamples(planned->batch(), begin, end, output);
  if (SampleFactors(planned->combiner, planned->offsets,
                    planned->has_weights ? planned->weights : nullptr, begin,
                    end, planned->factors)) {
    planned->has_factors.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<float* const> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan) {
  const int num_tables = static_cast<int>(inputs.size());
  if (outputs.size() != inputs.size() ||
      (!owners.empty() && owners.size() != inputs.size())) {
    return InvalidArgument("a lookup of " + std::to_string(num_tables) +
                           " tables got " + std::to_string(outputs.size()) +
                           " outputs and " + std::to_string(owners.size()) +
                           " owners");
  }
  return NoThrow("a lookup of " + std::to_string(num_tables) + " tables", [&] {
    std::vector<EmbeddingTable::Impl*> impls;
    for (int t = 0; t < num_tables; ++t) {
      if (inputs[t].table == nullptr ||
          (!owners.empty() && owners[t].get() != inputs[t].table)) {
        return InvalidArgument("lookup " + std::to_string(t) +
                               " has no table, or another owner's");
      }
      impls.push_back(inputs[t].table->impl());
    }
    const SharedGates gates(impls);
    for (const PooledInput& in : inputs) EV_RETURN_IF_ERROR(CheckInput(in));

    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables; ++t) {
      if (!owners.empty()) made->mutable_planned(t)->owner = owners[t];
    }
    EV_RETURN_IF_ERROR(
        PlanIds(inputs, Samples::kAsGiven, made.get(), parallel, [&](int t) {
          PlannedTable* planned = made->mutable_planned(t);
          ReserveCopies(planned);
          FindRows(planned, 0, planned->num_unique);
          EV_RETURN_IF_ERROR(FetchRows(planned, 0, planned->num_unique));
          Pool(planned, 0, planned->batch_size, outputs[t]);
          return Status::OK();
        }));
    TaskList find(kIdsPerTask), fetch(kKeysPerFetch), pool(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      if (PlanWeight(inputs[t]) <= kIdsPerTask) continue;
      PlannedTable* planned = made->mutable_planned(t);
      ReserveCopies(planned);
      find.Add(t, planned->num_unique, 1);
      if (impls[t]->on_device()) fetch.Add(t, planned->num_unique, 1);
      pool.Add(t, planned->batch_size,
               std::max<int64_t>(1, planned->num_ids / planned->batch_size));
    }
    RunPieces(parallel, find, [&](const Piece& piece) {
      FindRows(made->mutable_planned(piece.item), piece.begin, piece.end);
    });
    EV_RETURN_IF_ERROR(RunPieces(parallel, fetch, [&](const Piece& piece) {
      return FetchRows(made->mutable_planned(piece.item), piece.begin,
                       piece.end);
    }));
    RunPieces(parallel, pool, [&](const Piece& piece) {
      Pool(made->mutable_planned(piece.item), piece.begin, piece.end,
           outputs[piece.item]);
    });
    *plan = made;
    return Status::OK();
  });
}

}  // namespace ev
