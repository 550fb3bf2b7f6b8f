// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/pooled_lookup.h"

#include <algorithm>
#include <atomic>
#include <map>
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
#include "kernels/engine/embedding/lookup/handle_step.h"
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
             MutableFloats output, RowHolds* holds)
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

 private:
  PlannedTable* const planned_;
  const EmbeddingTable::Impl& table_;
  const MutableFloats output_;
  RowHolds* const holds_;
};

// Finds the rows of a table that a GPU pools by handles (handle_step.h), for
// all tables of the call together. Pool computes the factors only.
class FindsHandles : public TablePooling {
 public:
  FindsHandles(PlannedTable* planned, const EmbeddingTable::Impl& table)
      : planned_(planned), table_(table) {}

  int64_t keys_at_once() const override { return kIdsPerTask; }
  int64_t sample_weight() const override { return 1; }
  Status Begin() override {
    planned_->gpu_handles =
        planned_->gpu_handle_memory.ReserveOf<RowHandle>(planned_->num_unique);
    to_find_ = planned_->num_unique;
    is_placed_ = planned_->num_unique == 0;
    return Status::OK();
  }
  // The last call gives the rows their places.
  Status Find(int64_t begin, int64_t end) override {
    FindHandles(planned_, begin, end);
    for (int64_t u = begin; u < end; ++u) {
      const RowHandle handle = planned_->handles[u];
      planned_->gpu_handles[u] = handle < kFirstReservedHandle
                                     ? handle
                                     : table_.AbsentOnGpu(planned_->unique[u]);
    }
    const int64_t found = end - begin;
    if (found == 0 ||
        to_find_.fetch_sub(found, std::memory_order_acq_rel) != found) {
      return Status::OK();
    }
    return table_.WithName(table_.home->gpu()->PlaceRows(
        Span<const RowHandle>(planned_->gpu_handles, planned_->num_unique),
        /*writes=*/false, planned_->gpu_handles, &hold_, &is_placed_));
  }
  void Pool(int64_t begin, int64_t end) override {
    FindFactors(begin, end, planned_);
  }
  // False if the rows got no places, when all keys are found.
  bool is_placed() const { return is_placed_; }

  // REQUIRES: the result is used while this object and 'output' live.
  SamplesOfRows Samples(MutableFloats output) {
    SamplesOfRows samples;
    samples.table = &table_;
    samples.num_ids = planned_->num_ids;
    samples.num_samples = planned_->batch_size;
    samples.combiner = planned_->combiner;
    if (!IsOneIdEach()) {
      samples.offsets =
          Span<const int32_t>(planned_->offsets, planned_->batch_size + 1);
    }
    samples.out = output;
    samples.inverse = planned_->all_unique() ? nullptr : planned_->inverse;
    samples.of_keys = planned_->gpu_handles;
    samples.release = [this] { hold_.reset(); };
    return samples;
  }

 private:
  bool IsOneIdEach() const {
    const int64_t n = planned_->num_ids;
    if (n != planned_->batch_size) return false;
    for (int64_t i = 0; i <= n; ++i) {
      if (planned_->offsets[i] != i) return false;
    }
    return true;
  }

  PlannedTable* const planned_;
  const EmbeddingTable::Impl& table_;
  std::atomic<int64_t> to_find_{0};
  bool is_placed_ = false;
  std::unique_ptr<RowHold> hold_;
};

// Returns whether a table in no step by ids is pooled on the GPU, by handles:
// some of its rows may be in CPU memory, or its output is in GPU memory and it
// has no ids.
bool IsPooledByHandles(const PooledInput& in) {
  if (in.stream != nullptr) return true;
  RowHome& home = *in.table->impl()->home;
  // The gradient of weights, or of a combiner that selects, needs copies of the
  // rows in CPU memory anyway.
  const bool keeps_rows =
      Selects(in.combiner) || (in.weights != nullptr && in.num_ids > 0);
  return home.gpu() != nullptr && home.gpu_table() == nullptr && !keeps_rows;
}

// Pools the tables with a FindsHandles, in one step for each stream. *left:
// those whose rows have no places, or for which there is no memory; the CPU has
// to pool them.
Status PoolTablesByHandles(Span<const PooledInput> inputs,
                           Span<const MutableFloats> outputs,
                           const std::vector<FindsHandles*>& by_handles,
                           LookupPlan* plan, Parallel* parallel,
                           std::vector<int>* left) {
  std::map<const void*, std::vector<int>> by_stream;
  int64_t num_ids = 0;
  for (size_t t = 0; t < by_handles.size(); ++t) {
    if (by_handles[t] == nullptr || inputs[t].batch_size == 0) continue;
    const DeviceStream* const stream = inputs[t].stream;
    if (stream == nullptr && (!by_handles[t]->is_placed() ||
                              num_ids + inputs[t].num_ids > kMaxStepIds / 2)) {
      left->push_back(static_cast<int>(t));
      continue;
    }
    num_ids += inputs[t].num_ids;
    by_stream[stream == nullptr ? nullptr : stream->native].push_back(
        static_cast<int>(t));
  }
  for (const auto& one : by_stream) {
    const std::vector<int>& tables = one.second;
    std::vector<SamplesOfRows> samples;
    for (int t : tables) samples.push_back(by_handles[t]->Samples(outputs[t]));
    const DeviceStream* const stream = inputs[tables[0]].stream;
    std::shared_ptr<GpuStep> step;
    const Status status = PoolByHandles(samples, stream, parallel, &step);
    if (status.code() == StatusCode::kResourceExhausted && stream == nullptr) {
      left->insert(left->end(), tables.begin(), tables.end());
      continue;
    }
    EV_RETURN_IF_ERROR(status);
    for (size_t k = 0; k < tables.size(); ++k) {
      PlannedTable* const planned = plan->mutable_planned(tables[k]);
      planned->step = step;
      planned->step_number = static_cast<int>(k);
    }
  }
  return Status::OK();
}

// Finds the rows of these tables and pools them on the CPU.
Status PoolOnCpu(const std::vector<int>& tables,
                 const std::vector<EmbeddingTable::Impl*>& impls,
                 Span<const MutableFloats> outputs, LookupPlan* plan,
                 RowHolds* holds, Parallel* parallel) {
  if (tables.empty()) return Status::OK();
  std::map<int, std::unique_ptr<TablePooling>> pooling;
  FindTasks find;
  TaskList pool(kIdsPerTask);
  for (int t : tables) {
    PlannedTable* const planned = plan->mutable_planned(t);
    planned->num_absent = 0;  // counted again
    pooling[t].reset(new PoolsOnCpu(planned, *impls[t], outputs[t], holds));
    find.Add(t, planned->num_unique, pooling[t]->keys_at_once());
    pool.Add(t, planned->batch_size, pooling[t]->sample_weight());
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, find.list(), [&](const Piece& piece) {
    return pooling.at(piece.item)->Find(piece.begin, piece.end);
  }));
  RunPieces(parallel, pool, [&](const Piece& piece) {
    pooling.at(piece.item)->Pool(piece.begin, piece.end);
  });
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
    std::vector<EmbeddingTable::Impl*> impls;
    EV_RETURN_IF_ERROR(TablesOf(inputs, owners, &impls));
    const SharedTableLocks table_locks(impls,
                                       SharedTableLocks::Purpose::kReading);
    for (const PooledInput& in : inputs) EV_RETURN_IF_ERROR(CheckInput(in));

    const std::shared_ptr<LookupPlan> made = LookupPlan::Make(num_tables);
    for (int t = 0; t < num_tables; ++t) {
      if (!owners.empty()) made->mutable_planned(t)->owner = owners[t];
    }
    // Outlives 'tables', whose rows it holds; both are destroyed within the
    // table locks.
    RowHolds holds;
    StepLookup step;
    EV_RETURN_IF_ERROR(step.Start(inputs, outputs));
    // Null for the tables of the step.
    std::vector<std::unique_ptr<TablePooling>> tables(num_tables);
    std::vector<FindsHandles*> by_handles(num_tables, nullptr);
    for (int t = 0; t < num_tables; ++t) {
      if (step.Has(t)) continue;
      if (inputs[t].on_device) {
        return Status(
            StatusCode::kUnimplemented,
            "no step takes ids on a device, " + impls[t]->QuotedName());
      }
      const PooledInput& in = inputs[t];
      PlannedTable* const planned = made->mutable_planned(t);
      if (IsPooledByHandles(in)) {
        by_handles[t] = new FindsHandles(planned, *impls[t]);
        tables[t].reset(by_handles[t]);
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
      if (by_handles[t] == nullptr || Divides(planned.combiner)) {
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
    std::vector<int> left;
    EV_RETURN_IF_ERROR(PoolTablesByHandles(inputs, outputs, by_handles,
                                           made.get(), parallel, &left));
    EV_RETURN_IF_ERROR(
        PoolOnCpu(left, impls, outputs, made.get(), &holds, parallel));
    EV_RETURN_IF_ERROR(step.TakeOutputs(parallel));
    tables.clear();  // while the table locks are held
    for (int t = 0; t < num_tables; ++t) {
      impls[t]->CountIds(inputs[t].num_ids, made->planned(t).step_finds_rows);
    }
    *plan = made;
    return Status::OK();
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
