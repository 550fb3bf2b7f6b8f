// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/pooled_lookup.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/combine/sample_offsets.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/planned_table.h"
#include "kernels/engine/embedding/scratch.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/tasks.h"
#include "kernels/engine/ids/unique.h"

namespace ev {
namespace {

// Ids of one task. A table of fewer is pooled by the task that found its rows,
// which are then still in that core's cache.
constexpr int64_t kIdsPerTask = 8192;

Recycler<Unique>& Uniques() {
  static Recycler<Unique>* const uniques = new Recycler<Unique>(64);
  return *uniques;
}

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
  if (in.num_ids > 0 && in.row_splits == nullptr &&
      in.coo_indices == nullptr) {
    return Bad(table, "ids came without row splits and without indices");
  }
  return Status::OK();
}

// Offsets, distinct keys and rows of one table; afterwards 'planned' can pool.
Status PlanTable(const PooledInput& in, PlannedTable* planned) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  planned->table = in.table;
  planned->combiner = in.combiner;
  planned->dim = table.dim();
  planned->batch_size = in.batch_size;
  planned->num_ids = in.num_ids;
  planned->generation = table.generation;
  planned->has_weights = in.weights != nullptr && in.num_ids > 0;
  planned->Reserve(in.num_ids, in.batch_size);
  if (in.row_splits != nullptr) {
    EV_RETURN_IF_ERROR(OffsetsFromSplits(in.row_splits, in.batch_size,
                                         in.num_ids, table.options.name,
                                         planned->offsets));
  } else {
    EV_RETURN_IF_ERROR(OffsetsFromIndices(in.coo_indices, in.batch_size,
                                          in.num_ids, table.options.name,
                                          planned->offsets));
  }
  {
    auto unique = Uniques().Acquire();
    EV_RETURN_IF_ERROR(
        in.ids64 != nullptr
            ? unique->Run(Span<const int64_t>(in.ids64, in.num_ids),
                          planned->unique, planned->inverse, planned->counts,
                          &planned->num_unique)
            : unique->Run(Span<const int32_t>(in.ids32, in.num_ids),
                          planned->unique, planned->inverse, planned->counts,
                          &planned->num_unique));
  }
  planned->num_absent = table.FindRows(
      Span<const int64_t>(planned->unique, planned->num_unique),
      planned->handles, planned->rows);
  if (planned->has_weights) {
    std::copy_n(in.weights, in.num_ids, planned->weights);
    float* copies = planned->row_copies.ReserveOf<float>(planned->num_unique *
                                                         planned->dim);
    CopyRows(planned->rows, 0, planned->num_unique, planned->dim, copies);
    for (int64_t u = 0; u < planned->num_unique; ++u) {
      planned->rows[u] = copies + u * planned->dim;
    }
  }
  planned->has_factors = SampleFactors(
      in.combiner, planned->offsets,
      planned->has_weights ? planned->weights : nullptr, in.batch_size,
      planned->factors);
  return Status::OK();
}

// What pooling one table costs, in ids.
int64_t PoolWeight(const PooledInput& in) {
  return in.num_ids + in.batch_size / 4;
}

// Samples in which pooling 'in' is cut, for tasks of about kIdsPerTask ids.
int64_t IdsPerSample(int64_t num_ids, int64_t batch_size) {
  return std::max<int64_t>(1, num_ids / std::max<int64_t>(1, batch_size));
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
    const SharedGates gates(std::move(impls));
    for (const PooledInput& in : inputs) EV_RETURN_IF_ERROR(CheckInput(in));

    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    TaskList find(kIdsPerTask), pool(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      if (!owners.empty()) made->mutable_planned(t)->owner = owners[t];
      find.AddWhole(t, PoolWeight(inputs[t]));
      if (PoolWeight(inputs[t]) > kIdsPerTask) {
        pool.Add(t, inputs[t].batch_size,
                 IdsPerSample(inputs[t].num_ids, inputs[t].batch_size));
      }
    }
    EV_RETURN_IF_ERROR(RunTasksWithStatus(
        parallel, find.num_tasks(), [&](int64_t task) {
          Status status;
          find.ForEachPiece(task, [&](const Piece& piece) {
            if (!status.ok()) return;
            const int t = piece.item;
            PlannedTable* planned = made->mutable_planned(t);
            status = PlanTable(inputs[t], planned);
            if (status.ok() && PoolWeight(inputs[t]) <= kIdsPerTask) {
              PoolSamples(planned->batch(), 0, planned->batch_size,
                          outputs[t]);
            }
          });
          return status;
        }));
    RunTasks(parallel, pool.num_tasks(), [&](int64_t task) {
      pool.ForEachPiece(task, [&](const Piece& piece) {
        PoolSamples(made->planned(piece.item).batch(), piece.begin, piece.end,
                    outputs[piece.item]);
      });
    });
    *plan = made;
    return Status::OK();
  });
}

Status PooledBackward(const LookupPlan& plan, Span<const float* const> grads,
                      Span<float* const> unique_grads, Parallel* parallel) {
  const size_t num_tables = plan.num_tables();
  if (grads.size() != num_tables || unique_grads.size() != num_tables) {
    return InvalidArgument("the gradient of a lookup of " +
                           std::to_string(num_tables) + " tables got " +
                           std::to_string(grads.size()) + " gradients and " +
                           std::to_string(unique_grads.size()) + " outputs");
  }
  return NoThrow("a lookup's gradient", [&] {
    struct Scratch {
      LineBuffer arrays;
    };
    static Recycler<Scratch>* const scratches = new Recycler<Scratch>(64);
    TaskList tasks(kIdsPerTask);
    for (size_t t = 0; t < num_tables; ++t) {
      const PlannedTable& planned = plan.planned(static_cast<int>(t));
      if (unique_grads[t] == nullptr || planned.num_ids == 0) continue;
      if (grads[t] == nullptr) {
        return Bad(*planned.table->impl(), "the gradient is missing");
      }
      if (planned.all_unique()) {
        tasks.Add(static_cast<int>(t), planned.batch_size,
                  IdsPerSample(planned.num_ids, planned.batch_size));
      } else {
        tasks.AddWhole(static_cast<int>(t), planned.num_ids);
      }
    }
    return RunTasksWithStatus(parallel, tasks.num_tasks(), [&](int64_t task) {
      tasks.ForEachPiece(task, [&](const Piece& piece) {
        const int t = piece.item;
        const PlannedTable& planned = plan.planned(t);
        const float* factors =
            planned.has_factors ? planned.factors : nullptr;
        const float* weights =
            planned.has_weights ? planned.weights : nullptr;
        if (planned.all_unique()) {
          SpreadGradients(planned.offsets, weights, factors, grads[t],
                          planned.dim, piece.begin, piece.end,
                          unique_grads[t]);
          return;
        }
        auto scratch = scratches->Acquire();
        ArrayLayout layout;
        const size_t ends_at = layout.Add<int32_t>(planned.num_unique);
        const size_t samples_at = layout.Add<int32_t>(planned.num_ids);
        const size_t weights_at =
            layout.Add<float>(planned.has_weights ? planned.num_ids : 0);
        char* base = static_cast<char*>(scratch->arrays.Reserve(layout.bytes()));
        int32_t* ends = reinterpret_cast<int32_t*>(base + ends_at);
        int32_t* samples = reinterpret_cast<int32_t*>(base + samples_at);
        float* grouped = reinterpret_cast<float*>(base + weights_at);
        GroupOccurrences(planned.inverse, planned.counts, planned.num_unique,
                         planned.offsets, planned.batch_size, weights, factors,
                         ends, samples, grouped);
        Occurrences occurrences;
        occurrences.ends = ends;
        occurrences.samples = samples;
        occurrences.weights = planned.has_weights ? grouped : nullptr;
        SumOccurrences(occurrences, factors, grads[t], planned.dim, 0,
                       planned.num_unique, unique_grads[t]);
      });
      return Status::OK();
    });
  });
}

Status PooledWeightGrad(const LookupPlan& plan, int t, const float* grad,
                        const float* output, float* weight_grad,
                        Parallel* parallel) {
  if (t < 0 || t >= plan.num_tables()) {
    return InvalidArgument("table " + std::to_string(t) + " of a lookup of " +
                           std::to_string(plan.num_tables()));
  }
  const PlannedTable& planned = plan.planned(t);
  if (planned.num_ids == 0) return Status::OK();
  if (!planned.has_weights) {
    return Bad(*planned.table->impl(),
               "the gradient of weights was asked for, but the lookup had none");
  }
  const PoolingBatch batch = planned.batch();
  ForRanges(parallel, planned.batch_size,
            std::max<int64_t>(
                1, kIdsPerTask /
                       IdsPerSample(planned.num_ids, planned.batch_size)),
            [&](int64_t begin, int64_t end) {
              WeightGradients(batch, grad, output, begin, end, weight_grad);
            });
  return Status::OK();
}

}  // namespace ev
