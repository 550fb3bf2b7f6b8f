// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/pooled_lookup.h"

#include <algorithm>
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
// earlier than the last. The call that holds the mutex takes no table lock, so
// a call may hold table locks while it waits for the mutex.
std::mutex* TurnToPutIds() {
  static std::mutex* const turn = new std::mutex;
  return turn;
}

// Computes the factors of samples [begin, end) for the gradient.
void FindFactors(int64_t begin, int64_t end, PlannedTable* planned) {
  if (SampleFactors(planned->combiner, planned->offsets, WeightsOf(*planned),
                    planned->no_nan, begin, end, planned->factors)) {
    planned->has_factors.store(true, std::memory_order_relaxed);
  }
}

// Pools the samples of one table on the CPU, which reads the rows in place or
// as copies. Calls for ranges of the table may be concurrent.
class PoolsOnCpu {
 public:
  PoolsOnCpu(PlannedTable* planned, const EmbeddingTable::Impl& table,
             MutableFloats output, RowHolds* holds)
      : planned_(planned), table_(table), output_(output), holds_(holds) {}

  // Distinct keys that one task finds, and the cost of a sample in ids if tasks
  // pool it.
  int64_t keys_at_once() const {
    return std::max(kIdsPerTask, table_.home->costs().rows_per_hold);
  }
  int64_t sample_weight() const {
    return std::max<int64_t>(1, planned_->num_ids / planned_->batch_size);
  }
  // Finds distinct keys [begin, end).
  Status Find(int64_t begin, int64_t end) {
    return FindRows(planned_, begin, end, holds_);
  }
  // Pools samples [begin, end), when all keys are found.
  void Pool(int64_t begin, int64_t end) {
    PoolSamples(planned_->batch(), begin, end, output_);
    FindFactors(begin, end, planned_);
  }

 private:
  PlannedTable* const planned_;
  const EmbeddingTable::Impl& table_;
  const MutableFloats output_;
  RowHolds* const holds_;
};

// How often a lookup moves rows to where the GPU accesses them. Other calls may
// move them away again before the lookup has used them.
constexpr int kMostBrings = 2;

// A pooled lookup of many tables.
class Forward {
 public:
  Forward(Span<const PooledInput> inputs,
          const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
          Span<const MutableFloats> outputs, Parallel* parallel)
      : inputs_(inputs),
        owners_(owners),
        outputs_(outputs),
        parallel_(parallel),
        on_cpu_(inputs.size(), false) {}

  Status Run(std::shared_ptr<const LookupPlan>* plan) {
    EV_RETURN_IF_ERROR(TablesOf(inputs_, owners_, &impls_));
    for (int round = 0;; ++round) {
      std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables());
      std::vector<int> missed;
      EV_RETURN_IF_ERROR(Try(round == 0, made.get(), &missed));
      if (missed.empty()) {
        *plan = std::move(made);
        return Status::OK();
      }
      for (int t : missed) {
        EV_RETURN_IF_ERROR(Bring(t, round >= kMostBrings, *made));
      }
    }
  }

 private:
  int num_tables() const { return static_cast<int>(inputs_.size()); }

  // Looks up all tables. If it adds to *missed, it has stopped: the GPU does
  // not access all rows of these tables that it needs. The caller brings the
  // rows and tries again. is_first: whether this is the lookup's first try.
  Status Try(bool is_first, LookupPlan* plan, std::vector<int>* missed);
  // Adds the tables of which a step has not found rows that exist.
  Status FindMissed(const StepLookup& step, const LookupPlan& plan,
                    std::vector<int>* missed) const;
  // Moves the rows of table t to where the GPU accesses them, or leaves them to
  // the CPU. plan: what the failed try has made.
  Status Bring(int t, bool is_last, const LookupPlan& plan);
  // Writes zeros to the outputs in GPU memory of tables without ids.
  Status WriteZeros() const;

  const Span<const PooledInput> inputs_;
  const std::vector<std::shared_ptr<EmbeddingTable>>& owners_;
  const Span<const MutableFloats> outputs_;
  Parallel* const parallel_;
  std::vector<EmbeddingTable::Impl*> impls_;
  std::vector<bool> on_cpu_;  // the CPU finds and reads the table's rows
};

Status Forward::FindMissed(const StepLookup& step, const LookupPlan& plan,
                           std::vector<int>* missed) const {
  for (int t = 0; t < num_tables(); ++t) {
    if (!step.Has(t) || impls_[t]->rows_below() == nullptr) continue;
    EV_RETURN_IF_ERROR(plan.Settle(t));
    const Span<const int64_t> keys = plan.planned(t).unknown.keys;
    std::vector<RowHandle> handles(keys.size());
    impls_[t]->index.Find(keys, handles.data());
    if (std::any_of(handles.begin(), handles.end(), [](RowHandle handle) {
          return handle < kFirstReservedHandle;
        })) {
      missed->push_back(t);
    }
  }
  return Status::OK();
}

Status Forward::Bring(int t, bool is_last, const LookupPlan& plan) {
  bool all = false;
  if (!is_last) {
    Span<const int64_t> keys;
    // Without a step the table needs only room for new rows.
    if (plan.planned(t).step_finds_rows) {
      EV_RETURN_IF_ERROR(plan.Fetch({&t, 1}, parallel_));
      EV_RETURN_IF_ERROR(plan.UniqueKeys(t, &keys));
    }
    EV_RETURN_IF_ERROR(impls_[t]->BringRows(keys, parallel_, &all));
    if (keys.empty()) return Status::OK();
  }
  if (!all) on_cpu_[t] = true;
  return Status::OK();
}

Status Forward::WriteZeros() const {
  for (int t = 0; t < num_tables(); ++t) {
    const PooledInput& in = inputs_[t];
    if (in.stream == nullptr || in.num_ids > 0 || in.batch_size == 0) continue;
    // One id that is in no sample stands for none.
    const int32_t absent = static_cast<int32_t>(AbsentAs(0));
    const std::vector<int32_t> offsets(in.batch_size + 1, 0);
    GpuStepTable table;
    table.table = impls_[t]->home->gpu()->step_rows();
    table.num_ids = 1;
    table.num_samples = in.batch_size;
    table.is_narrow = table.are_handles = true;
    table.combiner = in.combiner;
    table.out = outputs_[t];
    std::shared_ptr<GpuStep> step;
    EV_RETURN_IF_ERROR(impls_[t]->WithName([&] {
      EV_RETURN_IF_ERROR(table.table->StartStep({&table, 1}, in.stream, &step));
      EV_RETURN_IF_ERROR(step->Put(0, 0, Span<const int32_t>(&absent, 1)));
      EV_RETURN_IF_ERROR(step->Start(0, offsets));
      return step->Pool();
    }()));
  }
  return Status::OK();
}

Status Forward::Try(bool is_first, LookupPlan* plan, std::vector<int>* missed) {
  const SharedTableLocks table_locks(impls_,
                                     SharedTableLocks::Purpose::kReading);
  for (const PooledInput& in : inputs_) EV_RETURN_IF_ERROR(CheckInput(in));
  for (int t = 0; t < num_tables(); ++t) {
    plan->mutable_planned(t)->step_finds_rows = false;
    if (!owners_.empty()) plan->mutable_planned(t)->owner = owners_[t];
    RowsBelow* const below = impls_[t]->rows_below();
    if (is_first && below != nullptr && below->NeedsRoom()) {
      missed->push_back(t);
    }
  }
  if (!missed->empty()) return Status::OK();
  // Outlives 'tables', whose rows it holds; both are destroyed within the
  // table locks.
  RowHolds holds;
  StepLookup step(on_cpu_);
  EV_RETURN_IF_ERROR(step.Start(inputs_, outputs_));
  // Null for the tables of the step.
  std::vector<std::unique_ptr<PoolsOnCpu>> tables(num_tables());
  for (int t = 0; t < num_tables(); ++t) {
    const PooledInput& in = inputs_[t];
    if (step.Has(t)) continue;
    if (in.on_device) {
      return Status(
          StatusCode::kUnimplemented,
          "no step takes ids on a device, " + impls_[t]->QuotedName());
    }
    tables[t].reset(new PoolsOnCpu(plan->mutable_planned(t), *impls_[t],
                                   outputs_[t], &holds));
  }
  std::unique_lock<std::mutex> turn(*TurnToPutIds(), std::defer_lock);
  // Not with ids on a device: the call may then wait for work that was
  // enqueued before it.
  const bool copies_ids =
      std::none_of(inputs_.begin(), inputs_.end(),
                   [](const PooledInput& in) { return in.on_device; });
  if (copies_ids && step.num_ids() >= kIdsInTurn) turn.lock();
  EV_RETURN_IF_ERROR(PlanLookup(
      inputs_, Samples::kAsGiven, plan, &step, parallel_, [&](int t) {
        const PlannedTable& planned = plan->planned(t);
        if (inputs_[t].stream != nullptr) return Status::OK();
        EV_RETURN_IF_ERROR(tables[t]->Find(0, planned.num_unique));
        tables[t]->Pool(0, planned.batch_size);
        return Status::OK();
      }));
  if (turn.owns_lock()) turn.unlock();
  EV_RETURN_IF_ERROR(FindMissed(step, *plan, missed));
  if (!missed->empty()) return Status::OK();
  FindTasks find;
  TaskList pool(kIdsPerTask);
  for (int t = 0; t < num_tables(); ++t) {
    const PlannedTable& planned = plan->planned(t);
    if (step.Has(t) || IsSmall(planned) || inputs_[t].stream != nullptr) {
      continue;
    }
    pool.Add(t, planned.batch_size, tables[t]->sample_weight());
    find.Add(t, planned.num_unique, tables[t]->keys_at_once());
  }
  step.DoRestLater(parallel_);
  EV_RETURN_IF_ERROR(RunPieces(parallel_, find.list(), [&](const Piece& piece) {
    return tables[piece.item]->Find(piece.begin, piece.end);
  }));
  RunPieces(parallel_, pool, [&](const Piece& piece) {
    tables[piece.item]->Pool(piece.begin, piece.end);
  });
  EV_RETURN_IF_ERROR(WriteZeros());
  EV_RETURN_IF_ERROR(step.TakeOutputs(parallel_));
  tables.clear();  // while the table locks are held
  for (int t = 0; t < num_tables(); ++t) {
    impls_[t]->CountIds(inputs_[t].num_ids, plan->planned(t).step_finds_rows);
  }
  return Status::OK();
}

}  // namespace

Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<const MutableFloats> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan) {
  const int num_tables = static_cast<int>(inputs.size());
  const auto who = [num_tables] {
    return "a lookup of " + std::to_string(num_tables) + " tables";
  };
  if (outputs.size() != inputs.size()) {
    return InvalidArgument(who() + " got " + std::to_string(outputs.size()) +
                           " outputs");
  }
  return NoThrow(who, [&] {
    return Forward(inputs, owners, outputs, parallel).Run(plan);
  });
}

Status PooledForward(Span<const PooledInput> inputs,
                     const std::vector<std::shared_ptr<EmbeddingTable>>& owners,
                     Span<float* const> outputs, Parallel* parallel,
                     std::shared_ptr<const LookupPlan>* plan) {
  return NoThrow("a lookup", [&] {
    const std::vector<MutableFloats> typed(outputs.begin(), outputs.end());
    return PooledForward(inputs, owners, Span<const MutableFloats>(typed),
                         parallel, plan);
  });
}

}  // namespace ev
