// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/row_lookup.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/engine/base/row_math.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/lookup/find_rows.h"
#include "kernels/engine/embedding/lookup/grouped_occurrences.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/step_lookup.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

// Keys whose rows one task visits; only copying is left to do.
constexpr int64_t kKeysPerTask = 8192;
constexpr int64_t kRowsAtOnce = 256;
// Floats that one task sums.
constexpr int64_t kFloatsPerTask = 65536;

PooledInput AsPooled(const RowsInput& in, const DeviceStream* stream) {
  PooledInput pooled;
  pooled.stream = stream;
  pooled.table = in.table;
  pooled.combiner = Combiner::kSum;
  pooled.batch_size = pooled.num_ids = in.keys.size();
  pooled.ids64 = in.keys.data();
  pooled.occurrences = in.occurrences;
  return pooled;
}

std::vector<StepLookup::Pieces> PiecesOf(Span<const RowPlaces> places) {
  std::vector<StepLookup::Pieces> all(places.size());
  for (size_t t = 0; t < places.size(); ++t) {
    for (size_t p = 0; p < places[t].pieces.size(); ++p) {
      GpuStepPiece piece;
      piece.begin = places[t].starts[p];
      piece.count = places[t].starts[p + 1] - piece.begin;
      piece.out = places[t].pieces[p];
      all[t].push_back(piece);
    }
  }
  return all;
}

// Narrow rows are visited as float32 copies.
void VisitRows(const PlannedTable& planned, int t, int64_t begin, int64_t end,
               const RowsVisitor& visit) {
  const bool is_narrow = planned.row_type() != FloatType::kFloat32;
  const int64_t dim = planned.dim;
  if (planned.all_unique() && !is_narrow) {
    if (begin < end) visit(t, begin, end, planned.rows + begin);
    return;
  }
  std::vector<float> widened(is_narrow ? kRowsAtOnce * dim : 0);
  const float* rows[kRowsAtOnce];
  for (int64_t i = begin; i < end; i += kRowsAtOnce) {
    const int64_t stop = std::min(end, i + kRowsAtOnce);
    for (int64_t j = i; j < stop; ++j) {
      rows[j - i] = planned.rows[planned.all_unique() ? j : planned.inverse[j]];
    }
    if (is_narrow) {
      CopyRows(rows, 0, stop - i, dim, widened.data(), planned.row_type());
      for (int64_t k = 0; k < stop - i; ++k) {
        rows[k] = widened.data() + k * dim;
      }
    }
    visit(t, i, stop, rows);
  }
}

void CopyRow(const float* from, int64_t dim, float* to) {
  int64_t c = 0;
  for (; c + 8 <= dim; c += 8) Store8(to + c, Load8(from + c));
  for (; c < dim; ++c) to[c] = from[c];
}

void AddRow(const float* from, int64_t dim, float* to) {
  int64_t c = 0;
  for (; c + 8 <= dim; c += 8) Store8(to + c, Load8(to + c) + Load8(from + c));
  for (; c < dim; ++c) to[c] += from[c];
}

// Returns the gradient of key i.
const float* GradientOf(const PlannedTable& planned, const RowGradients& grads,
                        int64_t i) {
  size_t p = 0;
  while (i >= grads.starts[p + 1]) ++p;
  return grads.pieces[p] + (i - grads.starts[p]) * planned.dim;
}

// Copies the gradients of keys [begin, end) of a table without repeated keys.
void CopyGradients(const PlannedTable& planned, const RowGradients& grads,
                   int64_t begin, int64_t end, float* out) {
  for (size_t p = 0; p < grads.pieces.size(); ++p) {
    const int64_t first = std::max(begin, grads.starts[p]);
    const int64_t last = std::min(end, grads.starts[p + 1]);
    if (first >= last) continue;
    std::copy_n(grads.pieces[p] + (first - grads.starts[p]) * planned.dim,
                (last - first) * planned.dim, out + first * planned.dim);
  }
}

// Sums the gradients of distinct keys [begin, end). Key u occurs at positions
// samples[ends[u - 1] .. ends[u]), ascending.
void SumGradients(const PlannedTable& planned, const RowGradients& grads,
                  const Grouped& grouped, int64_t begin, int64_t end,
                  float* out) {
  const int64_t dim = planned.dim;
  const int64_t ahead = RowsAhead(dim);
  const int64_t last = grouped.ends[end - 1] - 1;
  int64_t place = begin == 0 ? 0 : grouped.ends[begin - 1];
  for (int64_t u = begin; u < end; ++u) {
    float* sum = out + u * dim;
    const int64_t first = place;
    for (; place < grouped.ends[u]; ++place) {
      const int64_t next = grouped.samples[std::min(place + ahead, last)];
      PrefetchFloats(GradientOf(planned, grads, next), dim);
      const float* grad = GradientOf(planned, grads, grouped.samples[place]);
      if (place == first) {
        CopyRow(grad, dim, sum);
      } else {
        AddRow(grad, dim, sum);
      }
    }
  }
}

template <typename Pieces>  // RowGradients or RowPlaces
bool AreOf(int64_t num_keys, const Pieces& pieces) {
  const std::vector<int64_t>& starts = pieces.starts;
  return starts.size() == pieces.pieces.size() + 1 &&
         std::is_sorted(starts.begin(), starts.end()) && starts.front() == 0 &&
         starts.back() == num_keys;
}

Status CheckPieces(const PlannedTable& planned, const RowGradients& grads) {
  if (AreOf(planned.num_ids, grads)) return Status::OK();
  return InvalidArgument("the pieces of the gradients do not match the " +
                         std::to_string(planned.num_ids) + " keys, " +
                         planned.table->impl()->QuotedName());
}

// Destination of the rows of a lookup.
struct Destination {
  // In CPU memory: called for keys [begin, end) when their rows are found.
  // Functions for one table may run at the same time as those for others.
  std::function<void(const PlannedTable& planned, int t, int64_t begin,
                     int64_t end)>
      visit;
  // Instead of 'visit': places on the device of this stream, whose steps
  // (rows/gpu_step.h) find the rows.
  const DeviceStream* stream = nullptr;
  Span<const RowPlaces> places;
};

Status Lookup(Span<const RowsInput> inputs,
              const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
              const Destination& to, Parallel* parallel,
              std::shared_ptr<const LookupPlan>* plan) {
  const int num_tables = static_cast<int>(inputs.size());
  const auto who = [num_tables] {
    return "a lookup of " + std::to_string(num_tables) + " tables";
  };
  return NoThrow(who, [&] {
    std::vector<EmbeddingTable::Impl*> impls;
    EV_RETURN_IF_ERROR(TablesOf(inputs, owners, &impls));
    for (int t = 0; t < num_tables; ++t) {
      EV_RETURN_IF_ERROR(impls[t]->BringRowsBelow(inputs[t].keys, parallel));
    }
    const SharedTableLocks table_locks(std::move(impls),
                                       SharedTableLocks::Purpose::kReading);
    std::vector<PooledInput> lookups;
    for (int t = 0; t < num_tables; ++t) {
      const EmbeddingTable::Impl& table = *inputs[t].table->impl();
      EV_RETURN_IF_ERROR(table.CheckInitialized());
      if (to.stream != nullptr) {
        EV_RETURN_IF_ERROR(table.CheckTakesDeviceTensors("the output"));
      }
      const int64_t n = inputs[t].keys.size();
      if (n >= std::numeric_limits<int32_t>::max()) {
        return InvalidArgument(
            "the number of keys: expected a number below 2^31 - 1, got " +
            std::to_string(n) + ", " + table.QuotedName());
      }
      lookups.push_back(AsPooled(inputs[t], to.stream));
    }
    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables && !owners.empty(); ++t) {
      made->mutable_planned(t)->owner = owners[t];
    }
    RowHolds holds;
    StepLookup step;
    if (to.stream != nullptr) {
      EV_RETURN_IF_ERROR(step.Start(lookups, PiecesOf(to.places)));
    }
    EV_RETURN_IF_ERROR(PlanLookup(
        lookups, Samples::kOneIdEach, made.get(), &step, parallel, [&](int t) {
          PlannedTable* planned = made->mutable_planned(t);
          if (inputs[t].occurrences != nullptr) {
            planned->SumOccurrences(inputs[t].occurrences, planned->inverse);
          }
          EV_RETURN_IF_ERROR(FindRows(planned, 0, planned->num_unique, &holds));
          if (to.visit) to.visit(*planned, t, 0, planned->num_ids);
          return Status::OK();
        }));
    FindTasks find;
    TaskList rest(kKeysPerTask);
    std::vector<int> counted;
    for (int t = 0; t < num_tables; ++t) {
      PlannedTable* planned = made->mutable_planned(t);
      if (planned->step_finds_rows || IsSmall(*planned)) continue;
      const RowHomeCosts& costs = planned->table->impl()->home->costs();
      find.Add(t, planned->num_unique,
               std::max(kIdsPerTask, costs.rows_per_hold));
      rest.Add(t, planned->num_ids, 1);
      if (inputs[t].occurrences != nullptr) counted.push_back(t);
    }
    step.DoRestLater(parallel);
    EV_RETURN_IF_ERROR(RunTasksWithStatus(
        parallel, static_cast<int64_t>(counted.size()), [&](int64_t k) {
          PlannedTable* const planned = made->mutable_planned(counted[k]);
          planned->SumOccurrences(inputs[counted[k]].occurrences,
                                  planned->inverse);
          return Status::OK();
        }));
    EV_RETURN_IF_ERROR(
        RunPieces(parallel, find.list(), [&](const Piece& piece) {
          return FindRows(made->mutable_planned(piece.item), piece.begin,
                          piece.end, &holds);
        }));
    RunPieces(parallel, rest, [&](const Piece& piece) {
      to.visit(made->planned(piece.item), piece.item, piece.begin, piece.end);
    });
    for (int t = 0; t < num_tables; ++t) {
      const PlannedTable& planned = made->planned(t);
      inputs[t].table->impl()->CountIds(planned.num_ids,
                                        planned.step_finds_rows);
    }
    *plan = made;
    return Status::OK();
  });
}

}  // namespace

Status LookupRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  const RowsVisitor& visit, Parallel* parallel,
                  std::shared_ptr<const LookupPlan>* plan) {
  Destination to;
  to.visit = [&](const PlannedTable& planned, int t, int64_t begin,
                 int64_t end) { VisitRows(planned, t, begin, end, visit); };
  return Lookup(inputs, owners, to, parallel, plan);
}

Status GatherRows(Span<const RowsInput> inputs,
                  const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                  Span<const RowPlaces> places, const DeviceStream& stream,
                  Parallel* parallel, std::shared_ptr<const LookupPlan>* plan) {
  if (places.size() != inputs.size()) {
    return InvalidArgument("a lookup of " + std::to_string(inputs.size()) +
                           " tables got " + std::to_string(places.size()) +
                           " places");
  }
  for (size_t t = 0; t < inputs.size(); ++t) {
    const int64_t n = inputs[t].keys.size();
    if (inputs[t].table != nullptr && !AreOf(n, places[t])) {
      return InvalidArgument("the places do not match the " +
                             std::to_string(n) + " keys, " +
                             inputs[t].table->impl()->QuotedName());
    }
  }
  Destination to;
  to.stream = &stream;
  to.places = places;
  return Lookup(inputs, owners, to, parallel, plan);
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
    std::vector<Recycler<Grouped>::Handle> handles;
    std::vector<Grouped*> grouped(num_tables, nullptr);
    TaskList group(kIdsPerTask), sum(kFloatsPerTask);
    std::vector<int> fetched;
    for (size_t k = 0; k < num_tables; ++k) {
      if (unique_grads[k] != nullptr) fetched.push_back(static_cast<int>(k));
    }
    EV_RETURN_IF_ERROR(plan.Fetch(fetched, parallel));
    for (size_t k = 0; k < num_tables; ++k) {
      if (unique_grads[k] == nullptr) continue;
      const int t = static_cast<int>(k);
      const PlannedTable& planned = plan.planned(t);
      EV_RETURN_IF_ERROR(CheckPieces(planned, grads[t]));
      sum.Add(t, planned.num_unique, planned.dim);
      if (planned.all_unique()) continue;
      handles.push_back(GroupedPool().Acquire());
      grouped[t] = &*handles.back();
      grouped[t]->Reserve(planned);
      const int64_t parts = NumParts(planned);
      group.Add(t, parts, std::max<int64_t>(1, planned.num_ids / parts));
    }
    RunPieces(parallel, group, [&](const Piece& piece) {
      for (int64_t part = piece.begin; part < piece.end; ++part) {
        GroupPartOf(plan.planned(piece.item), part, grouped[piece.item]);
      }
    });
    RunPieces(parallel, sum, [&](const Piece& piece) {
      const int t = piece.item;
      const PlannedTable& planned = plan.planned(t);
      if (grouped[t] == nullptr) {
        CopyGradients(planned, grads[t], piece.begin, piece.end,
                      unique_grads[t]);
      } else {
        SumGradients(planned, grads[t], *grouped[t], piece.begin, piece.end,
                     unique_grads[t]);
      }
    });
    return Status::OK();
  });
}

}  // namespace ev
