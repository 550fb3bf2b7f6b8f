// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/pooled_lookup.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/combiner_names.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/lookup/find_rows.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/step_lookup.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Checks everything that can be checked without reading the arrays.
Status CheckInput(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  EV_RETURN_IF_ERROR(table.CheckInitialized());
  EV_RETURN_IF_ERROR(CheckIds(in, table.options.name));
  if (in.weights != nullptr && Selects(in.combiner)) {
    return InvalidArgument("combiner " + CombinerName(in.combiner) +
                           " takes no weights, " + table.QuotedName());
  }
  if (in.stream == nullptr) {
    return in.on_device
               ? InvalidArgument(
                     "ids are in device memory, but no stream is given, " +
                     table.QuotedName())
               : Status::OK();
  }
  if (in.weights != nullptr || Selects(in.combiner)) {
    return InvalidArgument(
        "a lookup with weights, or with a combiner that selects, cannot write "
        "its output to device memory, " +
        table.QuotedName());
  }
  return table.CheckTakesDeviceTensors("the output");
}

// Number of ids of a step beyond which its call takes its turn (below).
constexpr int64_t kIdsInTurn = 32768;

// Mutex of concurrent calls, for parts of one step, that copy their ids to
// devices in turn: results of the first are copied back while the ids of the
// next are copied to the device. Without turns the first would finish no
// earlier than the last. The call that holds the mutex enters no gate, so a
// call may hold gates while it waits for the mutex.
std::mutex* TurnToPutIds() {
  static std::mutex* const turn = new std::mutex;
  return turn;
}

// Pools the samples of one table. Calls for ranges of the table may be
// concurrent.
class TablePooling {
 public:
  virtual ~TablePooling() {}
  // Distinct keys that one task finds, and the cost of a sample in ids if tasks
  // pool it.
  virtual int64_t keys_at_once() const = 0;
  virtual int64_t sample_weight() const = 0;
  // Called when the distinct keys are planned, before they are found.
  virtual Status Begin() = 0;
  // Finds distinct keys [begin, end).
  virtual Status Find(int64_t begin, int64_t end) = 0;
  // Pools samples [begin, end), when all keys are found.
  virtual void Pool(int64_t begin, int64_t end) = 0;
  // The work of a GPU after Pool, or null.
  virtual DeviceWork* work() const = 0;
};

// Computes the factors of samples [begin, end) for the gradient.
void FindFactors(int64_t begin, int64_t end, PlannedTable* planned) {
  if (SampleFactors(planned->combiner, planned->offsets, WeightsOf(*planned),
                    planned->no_nan, begin, end, planned->factors)) {
    planned->has_factors.store(true, std::memory_order_relaxed);
  }
}

// Pools on the CPU, which reads the rows in place or as copies.
class PoolsOnCpu : public TablePooling {
 public:
  PoolsOnCpu(PlannedTable* planned, const EmbeddingTable::Impl& table,
             float* output, RowHolds* holds)
      : planned_(planned), table_(table), output_(output), holds_(holds) {}

  int64_t keys_at_once() const override {
    return std::max(kIdsPerTask, table_.home->costs().rows_per_hold);
  }
  int64_t sample_weight() const override {
    return std::max<int64_t>(1, planned_->num_ids / planned_->batch_size);
  }
  Status Begin() override { return Status::OK(); }
  Status Find(int64_t begin, int64_t end) override {
    return FindRows(planned_, begin, end, holds_);
  }
  void Pool(int64_t begin, int64_t end) override {
    PoolSamples(planned_->batch(), begin, end, output_);
    FindFactors(begin, end, planned_);
  }
  DeviceWork* work() const override { return nullptr; }

 private:
  PlannedTable* const planned_;
  const EmbeddingTable::Impl& table_;
  float* const output_;
  RowHolds* const holds_;
};

// Pools on the GPU that has the rows, which the CPU finds: all samples, as soon
// as the last key is found, while keys of other tables are being found.
class PoolsOnGpu : public TablePooling {
 public:
  PoolsOnGpu(PlannedTable* planned, const EmbeddingTable::Impl& table,
             const DeviceStream* stream, float* output)
      : planned_(planned), table_(table), stream_(stream), output_(output) {}

  int64_t keys_at_once() const override { return kIdsPerTask; }
  int64_t sample_weight() const override { return 1; }
  Status Begin() override {
    planned_->device_rows =
        planned_->device_row_memory.ReserveOf<RowHandle>(planned_->num_unique);
    to_find_ = planned_->num_unique;
    return planned_->num_unique == 0 ? Start() : Status::OK();
  }
  Status Find(int64_t begin, int64_t end) override {
    FindHandles(planned_, begin, end);
    for (int64_t u = begin; u < end; ++u) {
      const RowHandle handle = planned_->handles[u];
      planned_->device_rows[u] = handle < kFirstReservedHandle
                                     ? handle
                                     : table_.AbsentOnGpu(planned_->unique[u]);
    }
    const int64_t found = end - begin;
    const bool is_last =
        found > 0 &&
        to_find_.fetch_sub(found, std::memory_order_acq_rel) == found;
    return is_last ? Start() : Status::OK();
  }
  void Pool(int64_t begin, int64_t end) override {
    FindFactors(begin, end, planned_);
  }
  DeviceWork* work() const override { return work_.get(); }

  Status Start() {
    DevicePooling pooling;
    pooling.rows =
        Span<const RowHandle>(planned_->device_rows, planned_->num_unique);
    pooling.inverse = Span<const int32_t>(planned_->inverse, planned_->num_ids);
    pooling.offsets =
        Span<const int32_t>(planned_->offsets, planned_->batch_size + 1);
    pooling.combiner = planned_->combiner;
    pooling.stream = stream_;
    return table_.WithName(
        table_.home->gpu()->StartPool(pooling, output_, &work_));
  }

 private:
  PlannedTable* const planned_;
  const EmbeddingTable::Impl& table_;
  const DeviceStream* const stream_;
  float* const output_;
  std::atomic<int64_t> to_find_{0};
  std::unique_ptr<DeviceWork> work_;
};

// Waits for the work of all tables. The thread that waits for an output in
// ordinary memory also copies it, so these waits are split among all threads.
// This thread alone waits for the rest, which leaves the other threads free.
Status WaitForAll(const std::vector<std::unique_ptr<TablePooling>>& tables,
                  Parallel* parallel) {
  std::vector<DeviceWork*> copying, others;
  for (const auto& table : tables) {
    DeviceWork* const work = table == nullptr ? nullptr : table->work();
    if (work == nullptr) continue;
    (work->copies_when_waited_for() ? copying : others).push_back(work);
  }
  EV_RETURN_IF_ERROR(
      RunTasksWithStatus(parallel, static_cast<int64_t>(copying.size()),
                         [&](int64_t i) { return copying[i]->Wait(); }));
  for (DeviceWork* work : others) EV_RETURN_IF_ERROR(work->Wait());
  return Status::OK();
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
                               " has no table, or its owner is another table");
      }
      impls.push_back(inputs[t].table->impl());
    }
    const SharedGates gates(impls, SharedGates::Purpose::kReading);
    for (const PooledInput& in : inputs) EV_RETURN_IF_ERROR(CheckInput(in));

    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables; ++t) {
      if (!owners.empty()) made->mutable_planned(t)->owner = owners[t];
    }
    // Outlives 'tables', whose rows it holds; both are destroyed within the
    // gates.
    RowHolds holds;
    StepLookup step;
    EV_RETURN_IF_ERROR(step.Start(inputs, outputs));
    // Null for the tables of the step.
    std::vector<std::unique_ptr<TablePooling>> tables(num_tables);
    std::vector<bool> on_gpu(num_tables, false);
    for (int t = 0; t < num_tables; ++t) {
      if (step.Has(t)) continue;
      if (inputs[t].on_device) {
        return Status(
            StatusCode::kUnimplemented,
            "no step takes ids on a device, " + impls[t]->QuotedName());
      }
      const PooledInput& in = inputs[t];
      PlannedTable* const planned = made->mutable_planned(t);
      // The gradient of weights, or of a combiner that selects, needs copies of
      // the rows in CPU memory anyway.
      const bool keeps_rows =
          Selects(in.combiner) || (in.weights != nullptr && in.num_ids > 0);
      if (impls[t]->home->gpu() != nullptr && !keeps_rows) {
        on_gpu[t] = true;
        tables[t].reset(
            new PoolsOnGpu(planned, *impls[t], in.stream, outputs[t]));
      } else {
        tables[t].reset(new PoolsOnCpu(planned, *impls[t], outputs[t], &holds));
      }
    }
    std::unique_lock<std::mutex> turn(*TurnToPutIds(), std::defer_lock);
    // Not with ids on a device: the call may then wait for work that was
    // enqueued before it.
    const bool copies_ids =
        std::none_of(inputs.begin(), inputs.end(),
                     [](const PooledInput& in) { return in.on_device; });
    if (copies_ids && step.num_ids() >= kIdsInTurn) turn.lock();
    EV_RETURN_IF_ERROR(PlanLookup(
        inputs, Samples::kAsGiven, made.get(), &step, parallel, [&](int t) {
          const PlannedTable& planned = made->planned(t);
          EV_RETURN_IF_ERROR(tables[t]->Begin());
          EV_RETURN_IF_ERROR(tables[t]->Find(0, planned.num_unique));
          tables[t]->Pool(0, planned.batch_size);
          return Status::OK();
        }));
    if (turn.owns_lock()) turn.unlock();
    FindTasks find;
    TaskList pool(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      const PlannedTable& planned = made->planned(t);
      if (step.Has(t) || IsSmall(planned)) continue;
      // If a GPU pools, only the factors of the samples are left to compute.
      if (!on_gpu[t] || Divides(planned.combiner)) {
        pool.Add(t, planned.batch_size, tables[t]->sample_weight());
      }
      EV_RETURN_IF_ERROR(tables[t]->Begin());
      find.Add(t, planned.num_unique, tables[t]->keys_at_once());
    }
    step.DoRestLater(parallel);
    EV_RETURN_IF_ERROR(
        RunPieces(parallel, find.list(), [&](const Piece& piece) {
          return tables[piece.item]->Find(piece.begin, piece.end);
        }));
    RunPieces(parallel, pool, [&](const Piece& piece) {
      tables[piece.item]->Pool(piece.begin, piece.end);
    });
    EV_RETURN_IF_ERROR(WaitForAll(tables, parallel));
    EV_RETURN_IF_ERROR(step.TakeOutputs(parallel));
    tables.clear();  // while the gates are held
    for (int t = 0; t < num_tables; ++t) {
      impls[t]->CountIds(inputs[t].num_ids,
                         made->planned(t).distinct != nullptr);
    }
    *plan = made;
    return Status::OK();
  });
}

}  // namespace ev
