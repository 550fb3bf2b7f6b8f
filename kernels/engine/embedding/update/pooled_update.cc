// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/update/pooled_update.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/embedding/lookup/grouped_occurrences.h"
#include "kernels/engine/embedding/update/update_steps.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Ids per task: at some 5 ns each, about 50 us.
constexpr int64_t kIdsPerTask = 8192;
// Gradient floats that are put at a time: half a MiB, about 50 us too.
constexpr int64_t kFloatsPerPut = 1 << 17;

// A table's update in a step.
struct StepUpdate {
  const PooledUpdate* update = nullptr;
  // The gradients, if they were copied from host memory.
  DeviceGradients* put_grads = nullptr;
  // The step's handles of the rows of 'update', by distinct key, [U] or [K].
  std::vector<RowHandle> step_handles;
  bool is_on_gpu = true;  // the GPU accesses these rows
  // If the CPU has found the rows: the step's handles by id, [N].
  std::vector<RowHandle> of_ids;

  bool has_handles() const { return update->handles != nullptr; }
};

// Finds the step's handles of the updated rows that the CPU has found.
void FindStepHandles(StepUpdate* step_update) {
  const PooledUpdate& update = *step_update->update;
  const PlannedTable& planned = *update.planned;
  const Span<const RowHandle> handles =
      step_update->has_handles()
          ? Span<const RowHandle>(update.handles, planned.num_unique)
          : Span<const RowHandle>(update.unknown_handles,
                                  update.unknown_handles == nullptr
                                      ? 0
                                      : planned.unknown.keys.size());
  step_update->step_handles.resize(handles.size());
  step_update->is_on_gpu = update.table->home->gpu()->FindStepHandles(
      handles, step_update->step_handles.data());
  if (step_update->has_handles() && step_update->is_on_gpu) {
    step_update->of_ids.resize(planned.num_ids);
  }
}

// Does the same for all updates of a step.
void FindAllStepHandles(std::vector<StepUpdate>* updates, Parallel* parallel) {
  std::vector<StepUpdate*> by_handles;
  for (StepUpdate& update : *updates) {
    FindStepHandles(&update);
    if (update.has_handles()) by_handles.push_back(&update);
  }
  TaskList tasks(kIdsPerTask);
  for (size_t k = 0; k < by_handles.size(); ++k) {
    tasks.Add(static_cast<int>(k), by_handles[k]->of_ids.size(), 1);
  }
  RunPieces(parallel, tasks, [&](const Piece& piece) {
    StepUpdate* const to = by_handles[piece.item];
    const PlannedTable& planned = *to->update->planned;
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      to->of_ids[i] =
          to->step_handles[planned.all_unique() ? i : planned.inverse[i]];
    }
  });
}

// Updates the tables of one step, in the same launches. *left: those with rows
// that the GPU does not access.
Status UpdateStep(const RowRule& rule, std::vector<StepUpdate>* updates,
                  Parallel* parallel,
                  std::vector<StepMetaUpdates>* meta_updates,
                  std::vector<const PooledUpdate*>* left) {
  // For tables that other calls update too, the first stripe stands for all. It
  // is held until the work is started, since work that is started later runs
  // after it. Locked in one order by all calls.
  std::vector<EmbeddingTable::Impl*> shared;
  for (const StepUpdate& update : *updates) {
    if (!update.update->is_solo) shared.push_back(update.update->table);
  }
  std::sort(shared.begin(), shared.end(),
            [](const EmbeddingTable::Impl* a, const EmbeddingTable::Impl* b) {
              return a->number < b->number;
            });
  std::vector<std::unique_lock<std::mutex>> locks;
  for (EmbeddingTable::Impl* table : shared) {
    locks.emplace_back(*table->update_lock.stripe(0));
  }
  FindAllStepHandles(updates, parallel);
  std::vector<GpuStepUpdate> to_do;
  std::vector<RowMeta> added(updates->size());
  for (const StepUpdate& step_update : *updates) {
    const PooledUpdate* const update = step_update.update;
    const bool has_handles = step_update.has_handles();
    if (!step_update.is_on_gpu) {
      left->push_back(update);
      continue;
    }
    GpuStepUpdate one;
    one.number = update->planned->step_number;
    one.table = update->table->home->gpu()->step_rows();
    if (!has_handles) one.unknown_handles = step_update.step_handles;
    one.handles = step_update.of_ids;
    one.grads = update->grads;
    one.put_grads = step_update.put_grads;
    if (update->rounds_randomly) one.salt = &update->salt;
    // If the CPU has found the rows, it counts them too.
    one.lists_rows = !has_handles && update->table->needs_meta_updates();
    if (!has_handles && update->table->keeps_counters()) {
      RowMeta* const counters = &added[to_do.size()];
      counters->version_plus1 = RowMeta::PlusOne(update->call.step);
      counters->call = update->call.call;
      one.counters = counters;
    }
    to_do.push_back(one);
  }
  if (to_do.empty()) return Status::OK();
  const PooledUpdate& first = *updates->front().update;
  GpuStep* const step = first.planned->step.get();
  meta_updates->emplace_back();
  meta_updates->back().step = step;
  EV_RETURN_IF_ERROR(first.table->WithName(
      step->Update(rule.name(), rule.hyper(), to_do, first.stream,
                   &meta_updates->back().meta_updates)));
  if (meta_updates->back().meta_updates == nullptr) meta_updates->pop_back();
  return Status::OK();
}

// Copies gradients in host memory to devices.
Status PutGradients(const std::vector<StepUpdate*>& updates,
                    std::vector<std::unique_ptr<DeviceGradients>>* grads,
                    Parallel* parallel) {
  TaskList tasks(kIdsPerTask);
  grads->resize(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    const PooledUpdate& update = *updates[i]->update;
    const PlannedTable& planned = *update.planned;
    EV_RETURN_IF_ERROR(
        update.table->WithName(update.table->home->gpu()->StartGradients(
            update.grads, planned.batch_size, &(*grads)[i])));
    updates[i]->put_grads = (*grads)[i].get();
    if ((*grads)[i]->needs_put()) {
      tasks.AddAlone(static_cast<int>(i), planned.batch_size,
                     std::max<int64_t>(1, kFloatsPerPut / planned.dim));
    }
  }
  return RunPieces(parallel, tasks, [&](const Piece& piece) {
    const PooledUpdate& update = *updates[piece.item]->update;
    const int64_t dim = update.planned->dim;
    return update.table->WithName((*grads)[piece.item]->Put(
        piece.begin, piece.end, update.grads.At(piece.begin * dim)));
  });
}

// Updates a table with rows that the GPU does not access: the CPU sums the
// gradients.
Status SumAndApply(const RowRule& rule, const PooledUpdate& update,
                   Parallel* parallel) {
  const PlannedTable& planned = *update.planned;
  if (update.stream != nullptr) {
    return update.table->WithName(
        Internal("the GPU does not access some of the table's rows"));
  }
  const Recycler<Grouped>::Handle grouped = GroupedPool().Acquire();
  grouped->Reserve(planned);
  RunTasks(parallel, NumParts(planned),
           [&](int64_t part) { GroupPartOf(planned, part, &*grouped); });
  SumBuffer sums(planned.num_unique * planned.dim);
  ForRanges(parallel, planned.num_unique, kIdsPerTask,
            [&](int64_t begin, int64_t end) {
              SumOccurrences(grouped->occurrences(), FactorsOf(planned),
                             update.grads, planned.dim, begin, end,
                             sums.data() + begin * planned.dim);
            });
  std::vector<uint64_t> salts;
  for (size_t u = 0; update.rounds_randomly && u < update.keys.size(); ++u) {
    salts.push_back(RoundingSalt(update.salt, update.keys[u]));
  }
  std::unique_lock<std::mutex> lock;
  if (!update.is_solo) {
    lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
  }
  return update.table->WithName(update.table->home->Apply(
      rule, Span<const RowHandle>(update.handles, planned.num_unique),
      update.slot_columns, sums.data(),
      update.rounds_randomly ? salts.data() : nullptr));
}

}  // namespace

Status ApplyPooledOnDevices(const RowRule& rule,
                            const std::vector<PooledUpdate>& updates,
                            Parallel* parallel,
                            std::vector<StepMetaUpdates>* meta_updates) {
  // By step and by the memory of the gradients: a step takes one kind at a
  // time. In the order of their first tables.
  std::vector<std::vector<StepUpdate>> steps;
  std::map<std::pair<GpuStep*, bool>, size_t> at;
  for (const PooledUpdate& update : updates) {
    const auto key =
        std::make_pair(update.planned->step.get(), update.stream == nullptr);
    const auto found = at.emplace(key, steps.size());
    if (found.second) steps.emplace_back();
    StepUpdate one;
    one.update = &update;
    steps[found.first->second].push_back(std::move(one));
  }
  // Gradients that are on the device need nothing first.
  std::vector<const PooledUpdate*> left;
  std::vector<StepUpdate*> put;
  for (std::vector<StepUpdate>& step : steps) {
    if (step[0].update->stream != nullptr) {
      EV_RETURN_IF_ERROR(
          UpdateStep(rule, &step, parallel, meta_updates, &left));
      continue;
    }
    for (StepUpdate& update : step) put.push_back(&update);
  }
  std::vector<std::unique_ptr<DeviceGradients>> grads;
  EV_RETURN_IF_ERROR(PutGradients(put, &grads, parallel));
  for (std::vector<StepUpdate>& step : steps) {
    if (step[0].update->stream != nullptr) continue;
    EV_RETURN_IF_ERROR(UpdateStep(rule, &step, parallel, meta_updates, &left));
  }
  for (const PooledUpdate* update : left) {
    EV_RETURN_IF_ERROR(SumAndApply(rule, *update, parallel));
  }
  return Status::OK();
}

}  // namespace ev
