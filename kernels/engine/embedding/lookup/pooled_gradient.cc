// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/combine/selected_gradient.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/lookup/grouped_occurrences.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

// Ids per task: at some 10 ns each, about 50 us.
constexpr int64_t kIdsPerTask = 4096;

int64_t IdsPer(const PlannedTable& planned, int64_t count) {
  return std::max<int64_t>(1, planned.num_ids / std::max<int64_t>(1, count));
}

Recycler<SelectedShares>& SharesPool() {
  static Recycler<SelectedShares>* const pool =
      new Recycler<SelectedShares>(256);
  return *pool;
}

// Sums the gradients of distinct keys [begin, end). selected: null unless the
// combiner selects.
void SumRows(const PlannedTable& planned, const Grouped& grouped,
             const SelectedShares* selected, ConstFloats grads, int64_t begin,
             int64_t end, float* out) {
  if (selected != nullptr) {
    SumShares(grouped.occurrences(), planned.rows, *selected, planned.dim,
              begin, end, out + begin * planned.dim);
    return;
  }
  SumOccurrences(grouped.occurrences(), FactorsOf(planned), grads, planned.dim,
                 begin, end, out + begin * planned.dim);
}

Status CheckTable(const LookupPlan& plan, int t) {
  if (t >= 0 && t < plan.num_tables()) return Status::OK();
  return InvalidArgument("table index: expected a number in [0, " +
                         std::to_string(plan.num_tables()) +
                         "), the tables of the lookup, got " +
                         std::to_string(t));
}

// One table's batch of a plan, with given rows in place of the table's.
class GivenRows {
 public:
  // given: [U, dim]. Throws std::bad_alloc.
  Status Take(const LookupPlan& plan, int t, const float* given) {
    EV_RETURN_IF_ERROR(plan.Fetch({&t, 1}, nullptr));
    const PlannedTable& planned = plan.planned(t);
    rows_.resize(planned.num_unique);
    for (size_t u = 0; u < rows_.size(); ++u) {
      rows_[u] = given + static_cast<int64_t>(u) * planned.dim;
    }
    batch_ = planned.PooledIds::batch(rows_.data());
    return Status::OK();
  }
  const PoolingBatch& batch() const { return batch_; }

 private:
  std::vector<const float*> rows_;
  PoolingBatch batch_;
};

template <typename Body>
void ForSamples(const PlannedTable& planned, Parallel* parallel,
                const Body& body) {
  ForRanges(
      parallel, planned.batch_size,
      std::max<int64_t>(1, kIdsPerTask / IdsPer(planned, planned.batch_size)),
      body);
}

}  // namespace

Status PooledBackward(const LookupPlan& plan, Span<const ConstFloats> grads,
                      Span<float* const> unique_grads, Parallel* parallel) {
  const int num_tables = plan.num_tables();
  if (grads.size() != static_cast<size_t>(num_tables) ||
      unique_grads.size() != static_cast<size_t>(num_tables)) {
    return InvalidArgument("the gradient of a lookup of " +
                           std::to_string(num_tables) + " tables got " +
                           std::to_string(grads.size()) + " gradients and " +
                           std::to_string(unique_grads.size()) + " outputs");
  }
  return NoThrow("a lookup's gradient", [&] {
    for (int t = 0; t < num_tables; ++t) {
      const PlannedTable& planned = plan.planned(t);
      if (unique_grads[t] != nullptr && planned.num_ids > 0 &&
          grads[t] == nullptr) {
        return InvalidArgument(
            "the gradient of the lookup's output is missing, " +
            planned.table->impl()->QuotedName());
      }
    }
    // Gradients of tables without repeated ids are copied. Other tables are
    // grouped, and small ones are also summed by the same task. If the combiner
    // selects, item T + t stands for samples of table t, whose gradients are
    // divided into shares before any sum.
    std::vector<Recycler<SelectedShares>::Handle> selected;
    std::vector<SelectedShares*> selected_of(num_tables, nullptr);
    std::vector<Recycler<Grouped>::Handle> grouped;
    std::vector<Grouped*> grouped_of(num_tables, nullptr);
    TaskList first(kIdsPerTask), sum(kIdsPerTask);
    std::vector<int> fetched;
    for (int t = 0; t < num_tables; ++t) {
      if (unique_grads[t] != nullptr) fetched.push_back(t);
    }
    EV_RETURN_IF_ERROR(plan.Fetch(fetched, parallel));
    for (int t = 0; t < num_tables; ++t) {
      const PlannedTable& planned = plan.planned(t);
      if (unique_grads[t] == nullptr || planned.num_ids == 0) continue;
      const bool selects = Selects(planned.combiner);
      if (selects) {
        selected.push_back(SharesPool().Acquire());
        selected.back()->Reserve(planned.batch_size, planned.dim);
        selected_of[t] = &*selected.back();
        first.Add(num_tables + t, planned.batch_size,
                  IdsPer(planned, planned.batch_size));
      } else if (planned.all_unique()) {
        first.Add(t, planned.batch_size, IdsPer(planned, planned.batch_size));
        continue;
      }
      grouped.push_back(GroupedPool().Acquire());
      grouped.back()->Reserve(planned);
      grouped_of[t] = &*grouped.back();
      if (planned.is_sharded) {
        const int64_t shards = planned.shards.num_shards();
        first.Add(t, shards, IdsPer(planned, shards));
      } else {
        first.AddWhole(t, planned.num_ids);
      }
      if (selects || planned.num_ids > kIdsPerTask) {
        sum.Add(t, planned.num_unique, IdsPer(planned, planned.num_unique));
      }
    }
    RunPieces(parallel, first, [&](const Piece& piece) {
      const int t = piece.item % num_tables;
      const PlannedTable& planned = plan.planned(t);
      if (piece.item >= num_tables) {
        ShareGradients(planned.batch(), grads[t], piece.begin, piece.end,
                       selected_of[t]);
      } else if (planned.all_unique() && selected_of[t] == nullptr) {
        SpreadGradients(planned.offsets, WeightsOf(planned), FactorsOf(planned),
                        grads[t], planned.dim, piece.begin, piece.end,
                        unique_grads[t]);
      } else if (planned.is_sharded) {
        for (int64_t s = piece.begin; s < piece.end; ++s) {
          GroupPartOf(planned, s, grouped_of[t]);
        }
      } else {
        GroupPartOf(planned, 0, grouped_of[t]);
        if (planned.num_ids <= kIdsPerTask && selected_of[t] == nullptr) {
          SumRows(planned, *grouped_of[t], nullptr, grads[t], 0,
                  planned.num_unique, unique_grads[t]);
        }
      }
    });
    RunPieces(parallel, sum, [&](const Piece& piece) {
      const int t = piece.item;
      SumRows(plan.planned(t), *grouped_of[t], selected_of[t], grads[t],
              piece.begin, piece.end, unique_grads[t]);
    });
    return Status::OK();
  });
}

Status PooledBackward(const LookupPlan& plan, Span<const float* const> grads,
                      Span<float* const> unique_grads, Parallel* parallel) {
  return NoThrow("a lookup's gradient", [&] {
    const std::vector<ConstFloats> typed(grads.begin(), grads.end());
    return PooledBackward(plan, Span<const ConstFloats>(typed), unique_grads,
                          parallel);
  });
}

Status PooledWeightGrad(const LookupPlan& plan, int t, const float* grad,
                        const float* output, float* weight_grad,
                        Parallel* parallel, const float* given) {
  EV_RETURN_IF_ERROR(CheckTable(plan, t));
  const PlannedTable& planned = plan.planned(t);
  if (planned.num_ids == 0) return Status::OK();
  if (Selects(planned.combiner)) {
    std::fill_n(weight_grad, planned.num_ids, 0.0f);
    return Status::OK();
  }
  if (!planned.has_weights) {
    return InvalidArgument(
        "cannot compute the gradient of weights: the lookup had none, " +
        planned.table->impl()->QuotedName());
  }
  return NoThrow("the gradient of a lookup's weights", [&] {
    GivenRows rows;
    if (given != nullptr) EV_RETURN_IF_ERROR(rows.Take(plan, t, given));
    const PoolingBatch batch =
        given != nullptr ? rows.batch() : planned.batch();
    ForSamples(planned, parallel, [&](int64_t begin, int64_t end) {
      WeightGradients(batch, grad, output, begin, end, weight_grad);
    });
    return Status::OK();
  });
}

Status PoolGivenRows(const LookupPlan& plan, int t, const float* given,
                     float* output, Parallel* parallel) {
  EV_RETURN_IF_ERROR(CheckTable(plan, t));
  const PlannedTable& planned = plan.planned(t);
  return NoThrow("the gradient of a lookup's gradient", [&] {
    GivenRows rows;
    EV_RETURN_IF_ERROR(rows.Take(plan, t, given));
    ForSamples(planned, parallel, [&](int64_t begin, int64_t end) {
      if (Selects(planned.combiner)) {
        PoolSelected(planned.batch(), rows.batch().rows, begin, end, output);
      } else {
        PoolSamples(rows.batch(), begin, end, output);
      }
    });
    return Status::OK();
  });
}

}  // namespace ev
