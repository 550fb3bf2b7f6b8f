// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/pool.h"

#include <algorithm>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/row_chunks.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/combine/selected_gradient.h"
#include "kernels/engine/embedding/lookup/grouped_occurrences.h"

namespace sok {
namespace {

using ev::Grouped;
using ev::LineBuffer;
using ev::Recycler;
using ev::Span;
using ev::Status;

constexpr int64_t kIdsPerTask = 8192;
constexpr int64_t kFloatsPerTask = 65536;
// Floats per conversion; they fit the L1 cache.
constexpr int64_t kFloatsAtOnce = 4096;

struct Buffer {
  LineBuffer line;
};

Recycler<Buffer>& Buffers() {
  static Recycler<Buffer>* const buffers = new Recycler<Buffer>(128);
  return *buffers;
}

int64_t PoolWeight(const RoutedTable& table) {
  return ev::PlanWeight(table.num_ids, table.batch_size);
}

int64_t IdsPerSample(const RoutedTable& table) {
  return std::max<int64_t>(
      1, table.num_ids / std::max<int64_t>(1, table.batch_size));
}

template <typename Body>
void ForSamples(const RoutedTable& table, ev::Parallel* parallel,
                const Body& body) {
  ev::ForRanges(parallel, table.batch_size,
                std::max<int64_t>(1, kIdsPerTask / IdsPerSample(table)), body);
}

// Returns the addresses of table t's rows, which are chunk k of each rank.
// float32 rows are used in place; others are converted into *floats.
const float* const* RowAddresses(const RoutePlan& plan, int t, int64_t k,
                                 const std::vector<int64_t>& starts,
                                 const void* rows, WireType wire,
                                 LineBuffer* addresses, LineBuffer* floats) {
  const RoutedTable& table = plan.routed(t);
  const int64_t n = table.num_unique;
  const float** out = addresses->ReserveOf<const float*>(n);
  const int64_t chunks_per_rank = (starts.size() - 1) / plan.num_ranks();
  float* converted = nullptr;
  if (wire != WireType::kFloat32) {
    converted = floats->ReserveOf<float>(n * table.dim);
  }
  for (int r = 0; r < plan.num_ranks(); ++r) {
    const int64_t begin = table.starts[r], end = table.starts[r + 1];
    const int64_t start = starts[r * chunks_per_rank + k];
    const float* chunk;
    if (wire == WireType::kFloat32) {
      chunk = static_cast<const float*>(rows) + start;
    } else {
      float* to = converted + begin * table.dim;
      FromWire(static_cast<const char*>(rows) + start * WireBytes(wire),
               (end - begin) * table.dim, wire, to);
      chunk = to;
    }
    for (int64_t u = begin; u < end; ++u) {
      out[u] = chunk + (u - begin) * table.dim;
    }
  }
  return out;
}

// Inputs for the gradient of a table whose combiner selects.
struct Selected {
  LineBuffer addresses, floats;
  const float* const* rows = nullptr;
  ev::SelectedShares shares;
};

Recycler<Selected>& Selections() {
  static Recycler<Selected>* const selections = new Recycler<Selected>(64);
  return *selections;
}

// Writes the gradients of keys [begin, end) of one table, all for one rank, to
// 'out'. selected: null if the combiner does not select.
void SumKeys(const RoutedTable& table, const Grouped& grouped,
             const Selected* selected, ev::ConstFloats grads, int64_t begin,
             int64_t end, WireType wire, char* out) {
  const auto sum = [&](int64_t first, int64_t stop, float* sums) {
    if (selected != nullptr) {
      ev::SumShares(grouped.occurrences(), selected->rows, selected->shares,
                    table.dim, first, stop, sums);
      return;
    }
    ev::SumOccurrences(grouped.occurrences(), ev::FactorsOf(table), grads,
                       table.dim, first, stop, sums);
  };
  if (wire == WireType::kFloat32) {
    sum(begin, end, reinterpret_cast<float*>(out));
    return;
  }
  auto buffer = Buffers().Acquire();
  const int64_t at_once = std::max<int64_t>(1, kFloatsAtOnce / table.dim);
  float* sums = buffer->line.ReserveOf<float>(at_once * table.dim);
  for (int64_t u = begin; u < end; u += at_once) {
    const int64_t stop = std::min(end, u + at_once);
    sum(u, stop, sums);
    ToWire(sums, (stop - u) * table.dim, wire, out);
    out += (stop - u) * table.dim * WireBytes(wire);
  }
}

// Groups tables[k] into *grouped[k], one task per table.
Status GroupTables(const RoutePlan& plan, Span<const int> tables,
                   const std::vector<Recycler<Grouped>::Handle>& grouped,
                   ev::Parallel* parallel) {
  EV_RETURN_IF_ERROR(FetchInverse(plan, tables, parallel));
  ev::TaskList group(kIdsPerTask);
  for (size_t k = 0; k < tables.size(); ++k) {
    const int64_t num_ids = plan.routed(tables[k]).num_ids;
    if (num_ids > 0) group.AddWhole(static_cast<int>(k), num_ids);
  }
  return ev::RunPieces(parallel, group, [&](const ev::Piece& piece) {
    const RoutedTable& table = plan.routed(tables[piece.item]);
    grouped[piece.item]->Reserve(table);
    ev::GroupByInverse(table, &*grouped[piece.item]);
    return Status::OK();
  });
}

// Fills *selected[k], which is null if the combiner of tables[k] does not
// select. Call it after grouping, which fetches the inverse.
Status ShareKeys(const RoutePlan& plan, Span<const int> tables,
                 Span<const ev::ConstFloats> grads, const ReceivedRows& rows,
                 WireType wire, const std::vector<Selected*>& selected,
                 ev::Parallel* parallel) {
  std::vector<int64_t> starts;
  ev::TaskList share(kIdsPerTask);
  for (size_t k = 0; k < tables.size(); ++k) {
    if (selected[k] == nullptr) continue;
    const RoutedTable& table = plan.routed(tables[k]);
    if (starts.empty()) {
      EV_RETURN_IF_ERROR(ChunkStartsOf(plan, rows.num_floats, &starts));
    }
    selected[k]->rows =
        RowAddresses(plan, tables[k], tables[k], starts, rows.data, wire,
                     &selected[k]->addresses, &selected[k]->floats);
    selected[k]->shares.Reserve(table.batch_size, table.dim);
    share.Add(static_cast<int>(k), table.batch_size, IdsPerSample(table));
  }
  return ev::RunPieces(parallel, share, [&](const ev::Piece& piece) {
    const int k = piece.item;
    ev::ShareGradients(plan.routed(tables[k]).batch(selected[k]->rows),
                       grads[k], piece.begin, piece.end, &selected[k]->shares);
    return Status::OK();
  });
}

// Cuts a table's keys into tasks of equal memory traffic: a few keys may have
// most of the occurrences.
void CutKeys(int item, const RoutedTable& table, const Grouped& grouped,
             ev::TaskList* sum) {
  const int64_t n = table.num_unique;
  const int32_t* const ends = grouped.ends;
  // Number of rows that the keys before u read and write.
  const auto rows_before = [&](int64_t u) {
    return u == 0 ? 0 : ends[u - 1] + u;
  };
  const int64_t at_once = std::max<int64_t>(1, kFloatsPerTask / table.dim);
  for (int64_t begin = 0; begin < n;) {
    const int64_t limit = rows_before(begin) + at_once;
    int64_t low = begin + 1, high = n;  // becomes the last end within the limit
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (rows_before(middle) <= limit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    sum->AddPart(item, begin, low,
                 (rows_before(low) - rows_before(begin)) * table.dim);
    begin = low;
  }
}

// InvalidArgument unless there are as many of 'what' as tables, and all tables
// are in the plan.
Status CheckTables(const RoutePlan& plan, Span<const int> tables, size_t count,
                   const char* what) {
  if (count != tables.size()) {
    return ev::InvalidArgument(std::to_string(count) + " " + what +
                               " came for " + std::to_string(tables.size()) +
                               " tables");
  }
  for (int t : tables) {
    if (t < 0 || t >= plan.num_tables()) {
      return ev::InvalidArgument("table " + std::to_string(t) +
                                 " of a lookup of " +
                                 std::to_string(plan.num_tables()));
    }
  }
  return Status::OK();
}

}  // namespace

struct RouteOccurrences {
  std::vector<Recycler<Grouped>::Handle> tables;
};

Status PoolReceived(const RoutePlan& plan, const void* rows, int64_t num_floats,
                    WireType wire, Span<const ev::MutableFloats> outputs,
                    ev::Parallel* parallel) {
  const int num_tables = plan.num_tables();
  if (outputs.size() != static_cast<size_t>(num_tables)) {
    return ev::InvalidArgument("a lookup of " + std::to_string(num_tables) +
                               " tables got " + std::to_string(outputs.size()) +
                               " outputs");
  }
  return ev::CatchBadAlloc([&] {
    std::vector<int64_t> starts;
    EV_RETURN_IF_ERROR(ChunkStartsOf(plan, num_floats, &starts));
    std::vector<int> wanted;
    for (int t = 0; t < num_tables; ++t) {
      if (outputs[t] != nullptr) wanted.push_back(t);
    }
    EV_RETURN_IF_ERROR(FetchInverse(plan, wanted, parallel));
    std::vector<Recycler<Buffer>::Handle> addresses, floats;
    for (int t = 0; t < num_tables; ++t) {
      addresses.push_back(Buffers().Acquire());
      floats.push_back(Buffers().Acquire());
    }
    std::vector<const float* const*> found(num_tables, nullptr);
    ev::TaskList find(kIdsPerTask), pool(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      if (outputs[t] == nullptr) continue;
      const RoutedTable& table = plan.routed(t);
      find.AddWhole(t, PoolWeight(table));
      if (PoolWeight(table) > kIdsPerTask) {
        pool.Add(t, table.batch_size, IdsPerSample(table));
      }
    }
    EV_RETURN_IF_ERROR(
        ev::RunTasksWithStatus(parallel, find.num_tasks(), [&](int64_t task) {
          find.ForEachPiece(task, [&](const ev::Piece& piece) {
            const int t = piece.item;
            const RoutedTable& table = plan.routed(t);
            found[t] = RowAddresses(plan, t, t, starts, rows, wire,
                                    &addresses[t]->line, &floats[t]->line);
            if (PoolWeight(table) <= kIdsPerTask) {
              ev::PoolSamples(table.batch(found[t]), 0, table.batch_size,
                              outputs[t]);
            }
          });
          return Status::OK();
        }));
    ev::RunTasks(parallel, pool.num_tasks(), [&](int64_t task) {
      pool.ForEachPiece(task, [&](const ev::Piece& piece) {
        ev::PoolSamples(plan.routed(piece.item).batch(found[piece.item]),
                        piece.begin, piece.end, outputs[piece.item]);
      });
    });
    return Status::OK();
  });
}

Status GroupRoute(const RoutePlan& plan, ev::Parallel* parallel,
                  std::shared_ptr<const RouteOccurrences>* occurrences) {
  return ev::CatchBadAlloc([&] {
    const auto made = std::make_shared<RouteOccurrences>();
    std::vector<int> all;
    for (int t = 0; t < plan.num_tables(); ++t) {
      all.push_back(t);
      made->tables.push_back(ev::GroupedPool().Acquire());
    }
    EV_RETURN_IF_ERROR(GroupTables(plan, all, made->tables, parallel));
    *occurrences = made;
    return Status::OK();
  });
}

Status PoolGradient(const RoutePlan& plan, const RouteOccurrences* occurrences,
                    Span<const int> tables, Span<const ev::ConstFloats> grads,
                    WireType wire, void* message, ev::Parallel* parallel,
                    const ReceivedRows& rows) {
  const int num_grads = static_cast<int>(tables.size());
  EV_RETURN_IF_ERROR(CheckTables(plan, tables, grads.size(), "gradients"));
  return ev::CatchBadAlloc([&] {
    const std::vector<int64_t> starts = ChunkStarts(plan, tables);
    std::vector<Recycler<Grouped>::Handle> own;
    std::vector<const Grouped*> grouped;
    for (int k = 0; k < num_grads; ++k) {
      if (occurrences == nullptr) own.push_back(ev::GroupedPool().Acquire());
      grouped.push_back(occurrences == nullptr
                            ? &*own.back()
                            : &*occurrences->tables[tables[k]]);
    }
    if (occurrences == nullptr) {
      EV_RETURN_IF_ERROR(GroupTables(plan, tables, own, parallel));
    }
    std::vector<Recycler<Selected>::Handle> selections;
    std::vector<Selected*> selected(num_grads, nullptr);
    for (int k = 0; k < num_grads; ++k) {
      if (!ev::Selects(plan.routed(tables[k]).combiner)) continue;
      selections.push_back(Selections().Acquire());
      selected[k] = &*selections.back();
    }
    EV_RETURN_IF_ERROR(
        ShareKeys(plan, tables, grads, rows, wire, selected, parallel));
    ev::TaskList sum(kFloatsPerTask);
    for (int k = 0; k < num_grads; ++k) {
      CutKeys(k, plan.routed(tables[k]), *grouped[k], &sum);
    }
    return ev::RunTasksWithStatus(parallel, sum.num_tasks(), [&](int64_t task) {
      sum.ForEachPiece(task, [&](const ev::Piece& piece) {
        const int k = piece.item;
        const RoutedTable& table = plan.routed(tables[k]);
        for (int r = 0; r < plan.num_ranks(); ++r) {
          const int64_t first = table.starts[r];
          const int64_t begin = std::max(piece.begin, first);
          const int64_t end = std::min<int64_t>(piece.end, table.starts[r + 1]);
          if (begin >= end) continue;
          const int64_t start =
              starts[r * num_grads + k] + (begin - first) * table.dim;
          SumKeys(table, *grouped[k], selected[k], grads[k], begin, end, wire,
                  static_cast<char*>(message) + start * WireBytes(wire));
        }
      });
      return Status::OK();
    });
  });
}

Status PoolGivenRows(const RoutePlan& plan, Span<const int> tables,
                     const ReceivedRows& given, WireType wire,
                     Span<float* const> outputs, ev::Parallel* parallel,
                     const ReceivedRows& rows) {
  EV_RETURN_IF_ERROR(CheckTables(plan, tables, outputs.size(), "outputs"));
  return ev::CatchBadAlloc([&] {
    std::vector<int64_t> starts, row_starts;
    EV_RETURN_IF_ERROR(ChunkStartsOf(plan, tables, given.num_floats, &starts));
    EV_RETURN_IF_ERROR(FetchInverse(plan, tables, parallel));
    for (size_t k = 0; k < tables.size(); ++k) {
      const RoutedTable& table = plan.routed(tables[k]);
      const bool selects = ev::Selects(table.combiner);
      LineBuffer addresses, floats, own_addresses, own_floats;
      const float* const* const given_rows = RowAddresses(
          plan, tables[k], k, starts, given.data, wire, &addresses, &floats);
      const float* const* own_rows = nullptr;
      if (selects) {
        EV_RETURN_IF_ERROR(ChunkStartsOf(plan, rows.num_floats, &row_starts));
        own_rows = RowAddresses(plan, tables[k], tables[k], row_starts,
                                rows.data, wire, &own_addresses, &own_floats);
      }
      ForSamples(table, parallel, [&](int64_t begin, int64_t end) {
        if (selects) {
          ev::PoolSelected(table.batch(own_rows), given_rows, begin, end,
                           outputs[k]);
        } else {
          ev::PoolSamples(table.batch(given_rows), begin, end, outputs[k]);
        }
      });
    }
    return Status::OK();
  });
}

Status PoolWeightGradient(const RoutePlan& plan, int t,
                          const ReceivedRows& rows, WireType wire,
                          const float* grad, const float* output,
                          float* weight_grad, ev::Parallel* parallel,
                          Span<const int> tables) {
  EV_RETURN_IF_ERROR(CheckTables(plan, Span<const int>(&t, 1), 1, "weights"));
  EV_RETURN_IF_ERROR(CheckTables(plan, tables, tables.size(), "rows"));
  const RoutedTable& table = plan.routed(t);
  if (table.num_ids == 0) return Status::OK();
  if (ev::Selects(table.combiner)) {
    std::fill_n(weight_grad, table.num_ids, 0.0f);
    return Status::OK();
  }
  if (!table.has_weights) {
    return ev::InvalidArgument(
        "there is no gradient of weights: the lookup had none, table '" +
        table.name + "'");
  }
  return ev::CatchBadAlloc([&] {
    std::vector<int64_t> starts;
    int64_t k = t;
    if (tables.empty()) {
      EV_RETURN_IF_ERROR(ChunkStartsOf(plan, rows.num_floats, &starts));
    } else {
      EV_RETURN_IF_ERROR(ChunkStartsOf(plan, tables, rows.num_floats, &starts));
      k = std::find(tables.begin(), tables.end(), t) - tables.begin();
      if (k == static_cast<int64_t>(tables.size())) {
        return ev::InvalidArgument("no rows were given for table '" +
                                   table.name + "'");
      }
    }
    LineBuffer addresses, floats;
    const ev::PoolingBatch batch = table.batch(
        RowAddresses(plan, t, k, starts, rows.data, wire, &addresses, &floats));
    ForSamples(table, parallel, [&](int64_t begin, int64_t end) {
      ev::WeightGradients(batch, grad, output, begin, end, weight_grad);
    });
    return Status::OK();
  });
}

}  // namespace sok
