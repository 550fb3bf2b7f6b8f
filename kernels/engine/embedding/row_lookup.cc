// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/row_lookup.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/combine/row_math.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/planned_table.h"
#include "kernels/engine/embedding/scratch.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/tasks.h"
#include "kernels/engine/ids/unique.h"

namespace ev {
namespace {

// Keys of one task. A table of fewer is visited by the task that found its
// rows.
constexpr int64_t kKeysPerTask = 8192;
constexpr int64_t kRowsAtOnce = 256;
// Floats that one task sums.
constexpr int64_t kFloatsPerTask = 65536;

Recycler<Unique>& Uniques() {
  static Recycler<Unique>* const uniques = new Recycler<Unique>(64);
  return *uniques;
}

// Occurrences of each distinct key, summed over its places; saturates.
void SumCounts(const RowsInput& in, PlannedTable* planned) {
  planned->occurrences =
      planned->occurrence_counts.ReserveOf<int32_t>(planned->num_unique);
  std::fill_n(planned->occurrences, planned->num_unique, 0);
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  for (int64_t i = 0; i < planned->num_ids; ++i) {
    int32_t* count = &planned->occurrences[planned->inverse[i]];
    const int64_t more =
        std::min(kMax, std::max<int64_t>(0, in.occurrences[i]));
    *count = static_cast<int32_t>(std::min(kMax, *count + more));
  }
}

Status PlanTable(const RowsInput& in, PlannedTable* planned) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  const int64_t n = in.keys.size();
  planned->table = in.table;
  planned->combiner = Combiner::kSum;
  planned->dim = table.dim();
  planned->batch_size = n;
  planned->num_ids = n;
  planned->generation = table.generation;
  planned->has_weights = false;
  planned->has_factors = false;
  planned->Reserve(n, n);
  std::iota(planned->offsets, planned->offsets + n + 1, 0);
  {
    auto unique = Uniques().Acquire();
    EV_RETURN_IF_ERROR(unique->Run(in.keys, planned->unique, planned->inverse,
                                   planned->counts, &planned->num_unique));
  }
  if (in.occurrences != nullptr) SumCounts(in, planned);
  planned->num_absent =
      table.FindRows(Span<const int64_t>(planned->unique, planned->num_unique),
                     planned->handles, planned->rows);
  if (!table.on_device()) return Status::OK();
  float* copies =
      planned->row_copies.ReserveOf<float>(planned->num_unique * planned->dim);
  EV_RETURN_IF_ERROR(table.CopyFromDevice(
      Span<const int64_t>(planned->unique, planned->num_unique),
      planned->handles, copies));
  for (int64_t u = 0; u < planned->num_unique; ++u) {
    planned->rows[u] = copies + u * planned->dim;
  }
  return Status::OK();
}

void VisitRows(const PlannedTable& planned, int t, int64_t begin, int64_t end,
               const RowsVisitor& visit) {
  if (planned.all_unique()) {
    if (begin < end) visit(t, begin, end, planned.rows + begin);
    return;
  }
  const float* rows[kRowsAtOnce];
  for (int64_t i = begin; i < end; i += kRowsAtOnce) {
    const int64_t stop = std::min(end, i + kRowsAtOnce);
    for (int64_t j = i; j < stop; ++j) {
      rows[j - i] = planned.rows[planned.inverse[j]];
    }
    visit(t, i, stop, rows);
  }
}

// Where a table's keys recur: the places of distinct key u are
// places[ends[u - 1] .. ends[u]), ascending.
struct Recurrences {
  LineBuffer arrays;
  int32_t* ends = nullptr;    // [U]
  int32_t* places = nullptr;  // [N]

  void Group(const PlannedTable& planned) {
    ArrayLayout layout;
    const size_t ends_at = layout.Add<int32_t>(planned.num_unique);
    const size_t places_at = layout.Add<int32_t>(planned.num_ids);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    ends = reinterpret_cast<int32_t*>(base + ends_at);
    places = reinterpret_cast<int32_t*>(base + places_at);
    GroupOccurrences(planned.inverse, planned.counts, planned.num_unique,
                     planned.offsets, planned.batch_size, nullptr, nullptr,
                     ends, places, nullptr);
  }
};

void AddRow(const float* from, int64_t dim, float* to) {
  int64_t c = 0;
  for (; c + 8 <= dim; c += 8) Store8(to + c, Load8(to + c) + Load8(from + c));
  for (; c < dim; ++c) to[c] += from[c];
}

// Distinct keys [begin, end) of one table.
void SumTable(const PlannedTable& planned, const RowGradients& grads,
              const Recurrences* recurrences, int64_t begin, int64_t end,
              float* out) {
  const int64_t dim = planned.dim;
  const size_t num_pieces = grads.pieces.size();
  if (recurrences == nullptr) {  // key u is distinct key u
    for (size_t p = 0; p < num_pieces; ++p) {
      const int64_t first = std::max(begin, grads.starts[p]);
      const int64_t last = std::min(end, grads.starts[p + 1]);
      if (first >= last) continue;
      std::copy_n(grads.pieces[p] + (first - grads.starts[p]) * dim,
                  (last - first) * dim, out + first * dim);
    }
    return;
  }
  for (int64_t u = begin; u < end; ++u) {
    float* sum = out + u * dim;
    int32_t place = u == 0 ? 0 : recurrences->ends[u - 1];
    const int32_t first = place;
    size_t p = 0;
    for (; place < recurrences->ends[u]; ++place) {
      const int64_t i = recurrences->places[place];
      while (i >= grads.starts[p + 1]) ++p;
      const float* grad = grads.pieces[p] + (i - grads.starts[p]) * dim;
      if (place == first) {
        std::copy_n(grad, dim, sum);
      } else {
        AddRow(grad, dim, sum);
      }
    }
  }
}

Status CheckPieces(const PlannedTable& planned, const RowGradients& grads) {
  const std::vector<int64_t>& starts = grads.starts;
  const bool fits = starts.size() == grads.pieces.size() + 1 &&
                    std::is_sorted(starts.begin(), starts.end()) &&
                    starts.front() == 0 && starts.back() == planned.num_ids;
  if (fits) return Status::OK();
  return InvalidArgument("the gradients' pieces are not those of " +
                         std::to_string(planned.num_ids) + " keys, " +
                         planned.table->impl()->Named());
}

}  // namespace

Status LookupRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  const RowsVisitor& visit, Parallel* parallel,
                  std::shared_ptr<const LookupPlan>* plan) {
  const int num_tables = static_cast<int>(inputs.size());
  if (!owners.empty() && owners.size() != inputs.size()) {
    return InvalidArgument("a lookup of " + std::to_string(num_tables) +
                           " tables got " + std::to_string(owners.size()) +
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
    const SharedGates gates(std::move(impls), SharedGates::Purpose::kReading);
    TaskList find(kKeysPerTask), rest(kKeysPerTask);
    for (int t = 0; t < num_tables; ++t) {
      const EmbeddingTable::Impl& table = *inputs[t].table->impl();
      EV_RETURN_IF_ERROR(table.CheckInitialized());
      const int64_t n = inputs[t].keys.size();
      if (n >= std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("a lookup takes fewer than 2^31 - 1 keys, got " +
                               std::to_string(n) + ", " + table.Named());
      }
      find.AddWhole(t, n);
      if (n > kKeysPerTask) rest.Add(t, n, 1);
    }
    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables && !owners.empty(); ++t) {
      made->mutable_planned(t)->owner = owners[t];
    }
    EV_RETURN_IF_ERROR(
        RunTasksWithStatus(parallel, find.num_tasks(), [&](int64_t task) {
          Status status;
          find.ForEachPiece(task, [&](const Piece& piece) {
            if (!status.ok()) return;
            const int t = piece.item;
            PlannedTable* planned = made->mutable_planned(t);
            status = PlanTable(inputs[t], planned);
            if (status.ok() && planned->num_ids <= kKeysPerTask) {
              VisitRows(*planned, t, 0, planned->num_ids, visit);
            }
          });
          return status;
        }));
    RunTasks(parallel, rest.num_tasks(), [&](int64_t task) {
      rest.ForEachPiece(task, [&](const Piece& piece) {
        VisitRows(made->planned(piece.item), piece.item, piece.begin, piece.end,
                  visit);
      });
    });
    *plan = made;
    return Status::OK();
  });
}

Status SumRowGradients(const LookupPlan& plan, Span<const RowGradients> grads,
                       Span<float* const> unique_grads, Parallel* parallel) {
  const size_t num_tables = plan.num_tables();
  if (grads.size() != num_tables || unique_grads.size() != num_tables) {
    return InvalidArgument("the gradient of a lookup of " +
                           std::to_string(num_tables) + " tables got " +
                           std::to_string(grads.size()) + " gradients and " +
                           std::to_string(unique_grads.size()) + " outputs");
  }
  return NoThrow("a lookup's gradient", [&] {
    std::vector<Recurrences> recurrences(num_tables);
    TaskList group(kKeysPerTask), sum(kFloatsPerTask);
    for (size_t t = 0; t < num_tables; ++t) {
      if (unique_grads[t] == nullptr) continue;
      const PlannedTable& planned = plan.planned(static_cast<int>(t));
      EV_RETURN_IF_ERROR(CheckPieces(planned, grads[t]));
      if (!planned.all_unique()) {
        group.AddWhole(static_cast<int>(t), planned.num_ids);
      }
      sum.Add(static_cast<int>(t), planned.num_unique, planned.dim);
    }
    EV_RETURN_IF_ERROR(
        RunTasksWithStatus(parallel, group.num_tasks(), [&](int64_t task) {
          group.ForEachPiece(task, [&](const Piece& piece) {
            recurrences[piece.item].Group(plan.planned(piece.item));
          });
          return Status::OK();
        }));
    RunTasks(parallel, sum.num_tasks(), [&](int64_t task) {
      sum.ForEachPiece(task, [&](const Piece& piece) {
        const PlannedTable& planned = plan.planned(piece.item);
        SumTable(planned, grads[piece.item],
                 planned.all_unique() ? nullptr : &recurrences[piece.item],
                 piece.begin, piece.end, unique_grads[piece.item]);
      });
    });
    return Status::OK();
  });
}

}  // namespace ev
