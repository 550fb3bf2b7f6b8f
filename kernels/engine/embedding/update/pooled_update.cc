// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/update/pooled_update.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/grouped_occurrences.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace {

// Ids per task: at some 5 ns each, about 50 us.
constexpr int64_t kIdsPerTask = 8192;
// Gradient floats that are put at a time: half a MiB, about 50 us too.
constexpr int64_t kFloatsPerPut = 1 << 17;

// Starts the update of a table that is in no step.
Status Start(const std::string& rule, Span<const float> hyper,
             const PooledUpdate& update, const Grouped& grouped,
             DeviceGradients* put_grads, std::unique_ptr<DeviceWork>* work) {
  const PlannedTable& planned = *update.planned;
  const size_t num_unique = planned.num_unique, num_ids = planned.num_ids;
  DevicePooledUpdate to_do;
  to_do.rule = rule;
  to_do.hyper = hyper;
  to_do.handles = Span<const RowHandle>(update.handles, num_unique);
  to_do.slot_columns = update.slot_columns;
  to_do.ends = Span<const int32_t>(grouped.ends, num_unique);
  to_do.samples = Span<const int32_t>(grouped.samples, num_ids);
  to_do.num_samples = planned.batch_size;
  to_do.grads = update.grads;
  to_do.put_grads = put_grads;
  to_do.stream = update.stream;
  if (planned.has_weights) {
    to_do.weights = grouped.weights;
  } else if (FactorsOf(planned) != nullptr) {
    to_do.factors = Span<const float>(FactorsOf(planned), planned.batch_size);
  }
  return update.table->WithName(
      update.table->home->gpu()->StartPooledUpdate(to_do, work));
}

// A table's update, and its gradients if they were copied from host memory.
struct StepUpdate {
  const PooledUpdate* update;
  DeviceGradients* put_grads;
};

// Updates the tables of one step, in the same launches.
Status UpdateStep(const std::string& rule, Span<const float> hyper,
                  const std::vector<StepUpdate>& updates,
                  std::vector<StepNotes>* notes) {
  std::vector<GpuStepUpdate> to_do;
  std::vector<RowMeta> tallies(updates.size());
  std::vector<EmbeddingTable::Impl*> shared;
  for (const StepUpdate& step_update : updates) {
    const PooledUpdate* const update = step_update.update;
    const DeviceDistinct& distinct = *update->planned->distinct;
    GpuStepUpdate one;
    one.number = distinct.step_table();
    one.table = update->table->home->gpu_table();
    if (update->unknown_handles != nullptr) {
      one.unknown_handles = Span<const RowHandle>(update->unknown_handles,
                                                  distinct.num_unknown());
    }
    one.grads = update->grads;
    one.put_grads = step_update.put_grads;
    one.notes_rows = update->table->needs_step_notes();
    if (update->table->keeps_tally()) {
      RowMeta* const tally = &tallies[to_do.size()];
      tally->version_plus1 = RowMeta::PlusOne(update->call.step);
      tally->call = update->call.call;
      one.tally = tally;
    }
    to_do.push_back(one);
    if (!update->is_solo) shared.push_back(update->table);
  }
  // For tables that other calls update too, the first stripe stands for all. It
  // is held until the work is started, since work that is started later runs
  // after it. Locked in one order by all calls.
  std::sort(shared.begin(), shared.end(),
            [](const EmbeddingTable::Impl* a, const EmbeddingTable::Impl* b) {
              return a->number < b->number;
            });
  std::vector<std::unique_lock<std::mutex>> locks;
  for (EmbeddingTable::Impl* table : shared) {
    locks.emplace_back(*table->update_lock.stripe(0));
  }
  const PooledUpdate& first = *updates[0].update;
  GpuStep* const step = first.planned->distinct->step();
  notes->emplace_back();
  notes->back().step = step;
  EV_RETURN_IF_ERROR(first.table->WithName(
      step->Update(rule, hyper, to_do, first.stream, &notes->back().notes)));
  if (notes->back().notes == nullptr) notes->pop_back();
  return Status::OK();
}

// Whether the table's update is one of its step's.
bool IsInStep(const PooledUpdate& update) {
  return update.planned->distinct != nullptr && update.handles == nullptr;
}

// Copies gradients in host memory to devices, into grads[i] of updates[i], and
// updates the tables that are in no step.
Status PutGradientsAndUpdate(
    const std::string& rule, Span<const float> hyper,
    const std::vector<PooledUpdate>& updates, Parallel* parallel,
    std::vector<std::unique_ptr<DeviceGradients>>* grads) {
  std::vector<Recycler<Grouped>::Handle> grouped;
  std::vector<Grouped*> grouped_of(updates.size(), nullptr);
  // Remaining parts to group and samples to put. Item i stands for parts of
  // update i, item n + i for its samples.
  std::vector<std::atomic<int64_t>> left(updates.size());
  std::vector<std::unique_ptr<DeviceWork>> works(updates.size());
  const int n = static_cast<int>(updates.size());
  TaskList tasks(kIdsPerTask);
  grouped.reserve(updates.size());
  for (int i = 0; i < n; ++i) {
    const PooledUpdate& update = updates[i];
    const PlannedTable& planned = *update.planned;
    left[i] = 0;
    if (update.stream == nullptr) {
      EV_RETURN_IF_ERROR(
          update.table->WithName(update.table->home->gpu()->StartGradients(
              update.grads, planned.batch_size, &(*grads)[i])));
      if ((*grads)[i]->needs_put()) {
        left[i] += planned.batch_size;
        tasks.AddAlone(n + i, planned.batch_size,
                       std::max<int64_t>(1, kFloatsPerPut / planned.dim));
      }
    }
    if (IsInStep(update)) continue;
    const int64_t parts = NumParts(planned);
    left[i] += parts;
    grouped.push_back(GroupedPool().Acquire());
    grouped_of[i] = &*grouped.back();
    grouped_of[i]->Reserve(planned);
    tasks.Add(i, parts, std::max<int64_t>(1, planned.num_ids / parts));
  }
  EV_RETURN_IF_ERROR(RunPieces(parallel, tasks, [&](const Piece& piece) {
    const int i = piece.item % n;
    const PooledUpdate& update = updates[i];
    if (piece.item >= n) {
      const int64_t dim = update.planned->dim;
      EV_RETURN_IF_ERROR(update.table->WithName((*grads)[i]->Put(
          piece.begin, Span<const float>(update.grads + piece.begin * dim,
                                         (piece.end - piece.begin) * dim))));
    } else {
      for (int64_t part = piece.begin; part < piece.end; ++part) {
        EV_RETURN_IF_ERROR(GroupPartOf(*update.planned, part, grouped_of[i]));
      }
    }
    // The last piece of a table starts its update.
    const int64_t done = piece.end - piece.begin;
    if (left[i].fetch_sub(done, std::memory_order_acq_rel) != done ||
        IsInStep(update)) {
      return Status::OK();
    }
    const auto start = [&](std::unique_ptr<DeviceWork>* work) {
      return Start(rule, hyper, update, *grouped_of[i], (*grads)[i].get(),
                   work);
    };
    if (update.is_solo) return start(&works[i]);
    // Other calls update the table too: the first stripe stands for all. It is
    // released at once, since calls wait for each other's tables.
    std::lock_guard<std::mutex> lock(*update.table->update_lock.stripe(0));
    // Destroyed before the lock is released: rows are written as long as it
    // lives.
    std::unique_ptr<DeviceWork> work;
    EV_RETURN_IF_ERROR(start(&work));
    return work == nullptr ? Status::OK()
                           : update.table->WithName(work->Wait());
  }));
  for (size_t i = 0; i < updates.size(); ++i) {
    if (works[i] == nullptr) continue;
    EV_RETURN_IF_ERROR(updates[i].table->WithName(works[i]->Wait()));
  }
  return Status::OK();
}

}  // namespace

Status ApplyPooledOnDevices(const std::string& rule, Span<const float> hyper,
                            const std::vector<PooledUpdate>& updates,
                            Parallel* parallel, std::vector<StepNotes>* notes) {
  // By step and by the memory of the gradients: a step takes one kind at a
  // time. In the order of their first tables.
  std::vector<std::vector<StepUpdate>> steps;
  std::map<std::pair<GpuStep*, bool>, size_t> number;
  // Outlives the works, which read them.
  std::vector<std::unique_ptr<DeviceGradients>> grads(updates.size());
  // Updates that need the CPU's work first.
  std::vector<PooledUpdate> prepared;
  std::vector<size_t> prepared_at;
  for (size_t i = 0; i < updates.size(); ++i) {
    const PooledUpdate& update = updates[i];
    if (!IsInStep(update) || update.stream == nullptr) {
      prepared.push_back(update);
      prepared_at.push_back(i);
    }
    if (!IsInStep(update)) continue;
    const auto key = std::make_pair(update.planned->distinct->step(),
                                    update.stream == nullptr);
    const auto found = number.emplace(key, steps.size());
    if (found.second) steps.emplace_back();
    steps[found.first->second].push_back({&update, nullptr});
  }
  for (const std::vector<StepUpdate>& step : steps) {
    if (step[0].update->stream == nullptr) continue;
    EV_RETURN_IF_ERROR(UpdateStep(rule, hyper, step, notes));
  }
  if (prepared.empty()) return Status::OK();
  std::vector<std::unique_ptr<DeviceGradients>> put(prepared.size());
  EV_RETURN_IF_ERROR(
      PutGradientsAndUpdate(rule, hyper, prepared, parallel, &put));
  for (size_t k = 0; k < put.size(); ++k) {
    grads[prepared_at[k]] = std::move(put[k]);
  }
  for (std::vector<StepUpdate>& step : steps) {
    if (step[0].update->stream != nullptr) continue;
    for (StepUpdate& update : step) {
      update.put_grads = grads[update.update - updates.data()].get();
    }
    EV_RETURN_IF_ERROR(UpdateStep(rule, hyper, step, notes));
  }
  return Status::OK();
}

}  // namespace ev
