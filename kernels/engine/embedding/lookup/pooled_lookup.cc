// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/pooled_lookup.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/lookup/device_lookup.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/row_home.h"

namespace ev {
namespace {

// Keys whose rows one call to a device gets: half a ms of a link, and enough to
// make little of the call's own tens of us.
constexpr int64_t kKeysPerFetch = 16384;
// And where the rows are held: enough that reads wait for a disk together.
constexpr int64_t kKeysPerHold = 4096;

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
  if (in.stream == nullptr) return Status::OK();
  if (in.weights != nullptr) {
    return Bad(table, "a weighted lookup cannot put its output on a device");
  }
  return table.CheckTakesDeviceTensors("the output");
}

// Whether the samples are pooled where the rows are. With weights their
// gradient needs copies of the rows here anyway.
bool PoolsOnDevice(const PlannedTable& planned) {
  const EmbeddingTable::Impl& table = *planned.table->impl();
  return table.on_device() && table.device->pools() && !planned.has_weights;
}

// Rows of distinct keys [begin, end).
void FindRows(PlannedTable* planned, int64_t begin, int64_t end) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  const Span<const int64_t> keys(planned->unique + begin, end - begin);
  const int64_t absent =
      table.FindRows(keys, planned->handles + begin, planned->rows + begin);
  if (absent != 0) {
    planned->num_absent.fetch_add(absent, std::memory_order_relaxed);
  }
  if (PoolsOnDevice(*planned)) {
    for (int64_t u = begin; u < end; ++u) {
      planned->on_device[u] = planned->handles[u] < kFirstReservedHandle
                                  ? planned->handles[u]
                                  : table.AbsentOnDevice(planned->unique[u]);
    }
  }
  // Rows on a device are fetched afterwards, which makes copies of them too.
  if (!planned->has_weights || table.on_device()) return;
  float* copies = static_cast<float*>(planned->row_copies.data());
  CopyRows(planned->rows, begin, end, planned->dim, copies);
  for (int64_t u = begin; u < end; ++u) {
    planned->rows[u] = copies + u * planned->dim;
  }
}

void ReserveCopies(PlannedTable* planned) {
  if (PoolsOnDevice(*planned)) {
    planned->on_device =
        planned->device_rows.ReserveOf<RowHandle>(planned->num_unique);
    return;
  }
  if (!planned->has_weights && !planned->table->impl()->on_device()) return;
  planned->row_copies.ReserveOf<float>(planned->num_unique * planned->dim);
}

// Rows that are held until the lookup is done. Thread-safe.
class Holds {
 public:
  void Add(std::unique_ptr<DeviceWork> hold) {
    std::lock_guard<std::mutex> lock(mu_);
    holds_.push_back(std::move(hold));
  }

 private:
  std::mutex mu_;
  std::vector<std::unique_ptr<DeviceWork>> holds_;
};

// Whether rows are pooled where they are, held meanwhile, if there is room.
bool HoldsRows(const PlannedTable& planned) {
  const EmbeddingTable::Impl& table = *planned.table->impl();
  return table.on_device() && table.device->can_hold() && !planned.has_weights;
}

// The same keys' rows, when they are on a device: held, or else copies that
// outlive the update.
Status FetchRows(PlannedTable* planned, int64_t begin, int64_t end,
                 Holds* holds) {
  const EmbeddingTable::Impl& table = *planned->table->impl();
  if (!table.on_device() || PoolsOnDevice(*planned)) return Status::OK();
  if (HoldsRows(*planned)) {
    std::unique_ptr<DeviceWork> hold;
    EV_RETURN_IF_ERROR(table.Named(table.device->Hold(
        Span<const RowHandle>(planned->handles + begin, end - begin),
        planned->rows + begin, &hold)));
    if (hold != nullptr) {
      holds->Add(std::move(hold));
      return Status::OK();
    }
  }
  const int64_t dim = planned->dim;
  float* copies = static_cast<float*>(planned->row_copies.data());
  EV_RETURN_IF_ERROR(table.CopyFromDevice(
      Span<const int64_t>(planned->unique + begin, end - begin),
      planned->handles + begin, copies + begin * dim));
  for (int64_t u = begin; u < end; ++u) planned->rows[u] = copies + u * dim;
  return Status::OK();
}

// Calls that are made at once, for parts of one step, bring their ids to
// devices in turn: what the first asked for comes down while the next one's ids
// go up. Side by side the first would be done no earlier than the last. Who has
// the turn enters no gate, so who waits for it may be in some.
std::mutex* TurnToPutIds() {
  static std::mutex* const turn = new std::mutex;
  return turn;
}

// Begins to pool all samples where the rows are, which are found.
Status StartPool(const PlannedTable& planned, const DeviceStream* stream,
                 float* output, std::unique_ptr<DeviceWork>* work) {
  const EmbeddingTable::Impl& table = *planned.table->impl();
  DevicePooling pooling;
  pooling.distinct = planned.distinct.get();
  if (planned.distinct == nullptr) {
    pooling.rows = Span<const RowHandle>(planned.on_device, planned.num_unique);
    pooling.inverse = Span<const int32_t>(planned.inverse, planned.num_ids);
    pooling.offsets =
        Span<const int32_t>(planned.offsets, planned.batch_size + 1);
  }
  pooling.combiner = planned.combiner;
  pooling.stream = stream;
  return table.Named(table.device->StartPool(pooling, output, work));
}

// Samples [begin, end).
void Pool(PlannedTable* planned, int64_t begin, int64_t end, float* output) {
  if (!PoolsOnDevice(*planned)) {
    PoolSamples(planned->batch(), begin, end, output);
  }
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
    const SharedGates gates(impls, SharedGates::Purpose::kReading);
    for (const PooledInput& in : inputs) EV_RETURN_IF_ERROR(CheckInput(in));

    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables; ++t) {
      if (!owners.empty()) made->mutable_planned(t)->owner = owners[t];
    }
    // What devices are doing. A table's work begins as soon as the last of its
    // rows is found and goes on while others are found.
    std::vector<std::unique_ptr<DeviceWork>> works(num_tables);
    Holds holds;
    std::vector<std::atomic<int64_t>> to_find(num_tables);
    DeviceLookup devices(made.get(), [&](int t) {
      return StartPool(made->planned(t), inputs[t].stream, outputs[t],
                       &works[t]);
    });
    std::unique_lock<std::mutex> turn(*TurnToPutIds(), std::defer_lock);
    for (const PooledInput& in : inputs) {
      if (!turn.owns_lock() && IsDeduplicatedByDevice(in)) turn.lock();
    }
    EV_RETURN_IF_ERROR(PlanIds(
        inputs, Samples::kAsGiven, made.get(), &devices, parallel, [&](int t) {
          PlannedTable* planned = made->mutable_planned(t);
          ReserveCopies(planned);
          FindRows(planned, 0, planned->num_unique);
          EV_RETURN_IF_ERROR(
              FetchRows(planned, 0, planned->num_unique, &holds));
          if (PoolsOnDevice(*planned)) {
            EV_RETURN_IF_ERROR(
                StartPool(*planned, inputs[t].stream, outputs[t], &works[t]));
          }
          Pool(planned, 0, planned->batch_size, outputs[t]);
          return Status::OK();
        }));
    if (turn.owns_lock()) turn.unlock();
    TaskList find(kIdsPerTask), fetch(kKeysPerFetch), pool(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      PlannedTable* planned = made->mutable_planned(t);
      if (IsSmall(inputs[t], *planned)) continue;
      const bool on_device = PoolsOnDevice(*planned);
      pool.Add(t, planned->batch_size,
               on_device ? 1
                         : std::max<int64_t>(
                               1, planned->num_ids / planned->batch_size));
      if (planned->distinct != nullptr) continue;
      to_find[t] = planned->num_unique;
      find.Add(t, planned->num_unique, 1);
      ReserveCopies(planned);
      if (on_device) {
        if (planned->num_unique == 0) {
          EV_RETURN_IF_ERROR(
              StartPool(*planned, inputs[t].stream, outputs[t], &works[t]));
        }
      } else if (impls[t]->on_device()) {
        fetch.Add(t, planned->num_unique,
                  HoldsRows(*planned) ? kKeysPerFetch / kKeysPerHold : 1);
      }
    }
    EV_RETURN_IF_ERROR(devices.Finish(parallel));
    EV_RETURN_IF_ERROR(RunPieces(parallel, find, [&](const Piece& piece) {
      const int t = piece.item;
      PlannedTable* planned = made->mutable_planned(t);
      FindRows(planned, piece.begin, piece.end);
      const int64_t found = piece.end - piece.begin;
      const bool is_last =
          to_find[t].fetch_sub(found, std::memory_order_acq_rel) == found;
      if (!is_last || !PoolsOnDevice(*planned)) return Status::OK();
      return StartPool(*planned, inputs[t].stream, outputs[t], &works[t]);
    }));
    EV_RETURN_IF_ERROR(RunPieces(parallel, fetch, [&](const Piece& piece) {
      return FetchRows(made->mutable_planned(piece.item), piece.begin,
                       piece.end, &holds);
    }));
    RunPieces(parallel, pool, [&](const Piece& piece) {
      Pool(made->mutable_planned(piece.item), piece.begin, piece.end,
           outputs[piece.item]);
    });
    // Outputs in ordinary memory are copied by who waits: all threads. For the
    // others this one waits alone, since those have other things to do.
    std::vector<DeviceWork*> copying, others;
    for (const auto& work : works) {
      if (work == nullptr) continue;
      (work->copies_when_waited_for() ? copying : others).push_back(work.get());
    }
    EV_RETURN_IF_ERROR(
        RunTasksWithStatus(parallel, static_cast<int64_t>(copying.size()),
                           [&](int64_t i) { return copying[i]->Wait(); }));
    for (DeviceWork* work : others) EV_RETURN_IF_ERROR(work->Wait());
    works.clear();  // while the gates are held
    *plan = made;
    return Status::OK();
  });
}

}  // namespace ev
