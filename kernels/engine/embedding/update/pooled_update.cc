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

// Starts one table's update. grouped: null if the device has deduplicated, and
// groups the occurrences itself.
Status Start(const std::string& rule, Span<const float> hyper,
             const PooledUpdate& update, const Grouped* grouped,
             const DeviceGradients* put_grads,
             std::unique_ptr<DeviceWork>* work) {
  const PlannedTable& planned = *update.planned;
  const size_t num_unique = planned.num_unique, num_ids = planned.num_ids;
  DevicePooledUpdate to_do;
  to_do.rule = rule;
  to_do.hyper = hyper;
  if (update.handles != nullptr) {
    to_do.handles = Span<const RowHandle>(update.handles, num_unique);
  }
  if (update.unknown_handles != nullptr) {
    to_do.unknown_handles = Span<const RowHandle>(
        update.unknown_handles, planned.distinct->num_unknown());
  }
  to_do.slot_columns = update.slot_columns;
  to_do.distinct = planned.distinct.get();
  if (grouped != nullptr) {
    to_do.ends = Span<const int32_t>(grouped->ends, num_unique);
    to_do.samples = Span<const int32_t>(grouped->samples, num_ids);
  }
  to_do.num_samples = planned.batch_size;
  to_do.grads = update.grads;
  to_do.put_grads = put_grads;
  to_do.stream = update.stream;
  if (planned.has_weights) {
    to_do.weights = grouped->weights;
  } else if (FactorsOf(planned) != nullptr) {
    to_do.factors = Span<const float>(FactorsOf(planned), planned.batch_size);
  }
  return update.table->WithName(
      update.table->home->gpu()->StartPooledUpdate(to_do, work));
}

// Updates the tables of one step, in the same launches.
Status UpdateStep(const std::string& rule, Span<const float> hyper,
                  const std::vector<const PooledUpdate*>& updates,
                  std::vector<StepNotes>* notes) {
  std::vector<GpuStepUpdate> to_do;
  std::vector<RowMeta> tallies(updates.size());
  std::vector<EmbeddingTable::Impl*> shared;
  for (const PooledUpdate* update : updates) {
    const DeviceDistinct& distinct = *update->planned->distinct;
    GpuStepUpdate one;
    one.number = distinct.step_table();
    one.table = update->table->home->gpu_table();
    if (update->unknown_handles != nullptr) {
      one.unknown_handles = Span<const RowHandle>(update->unknown_handles,
                                                  distinct.num_unknown());
    }
    one.grads = update->grads;
    one.notes_rows = update->table->hears_of_updates();
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
  const PooledUpdate& first = *updates[0];
  GpuStep* const step = first.planned->distinct->step();
  notes->emplace_back();
  notes->back().step = step;
  EV_RETURN_IF_ERROR(first.table->WithName(
      step->Update(rule, hyper, to_do, *first.stream, &notes->back().notes)));
  if (notes->back().notes == nullptr) notes->pop_back();
  return Status::OK();
}

Status ApplyPooledWithoutSteps(const std::string& rule, Span<const float> hyper,
                               const std::vector<PooledUpdate>& updates,
                               Parallel* parallel) {
  std::vector<Recycler<Grouped>::Handle> grouped;
  std::vector<Grouped*> grouped_of(updates.size(), nullptr);
  // Outlives 'works', which reads them.
  std::vector<std::unique_ptr<DeviceGradients>> grads(updates.size());
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
    const int64_t parts = NumParts(planned);
    left[i] = parts;
    if (update.stream == nullptr) {
      EV_RETURN_IF_ERROR(
          update.table->WithName(update.table->home->gpu()->StartGradients(
              update.grads, planned.batch_size, &grads[i])));
    }
    if (grads[i] != nullptr) {
      left[i] += planned.batch_size;
      tasks.AddAlone(n + i, planned.batch_size,
                     std::max<int64_t>(1, kFloatsPerPut / planned.dim));
    }
    if (planned.distinct != nullptr) {
      tasks.Add(i, parts, kIdsPerTask);
      continue;
    }
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
      EV_RETURN_IF_ERROR(update.table->WithName(grads[i]->Put(
          piece.begin, Span<const float>(update.grads + piece.begin * dim,
                                         (piece.end - piece.begin) * dim))));
    } else if (grouped_of[i] != nullptr) {
      for (int64_t part = piece.begin; part < piece.end; ++part) {
        EV_RETURN_IF_ERROR(GroupPartOf(*update.planned, part, grouped_of[i]));
      }
    }
    // The last piece of a table starts its update.
    const int64_t done = piece.end - piece.begin;
    if (left[i].fetch_sub(done, std::memory_order_acq_rel) != done) {
      return Status::OK();
    }
    const auto start = [&](std::unique_ptr<DeviceWork>* work) {
      return Start(rule, hyper, update, grouped_of[i], grads[i].get(), work);
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
  std::vector<PooledUpdate> others;
  std::map<GpuStep*, std::vector<const PooledUpdate*>> by_step;
  std::vector<GpuStep*> steps;  // in the order of their first tables
  for (const PooledUpdate& update : updates) {
    GpuStep* const step = update.planned->distinct == nullptr
                              ? nullptr
                              : update.planned->distinct->step();
    if (step == nullptr || update.handles != nullptr) {
      others.push_back(update);
      continue;
    }
    std::vector<const PooledUpdate*>* const of = &by_step[step];
    if (of->empty()) steps.push_back(step);
    of->push_back(&update);
  }
  for (GpuStep* step : steps) {
    EV_RETURN_IF_ERROR(UpdateStep(rule, hyper, by_step[step], notes));
  }
  return ApplyPooledWithoutSteps(rule, hyper, others, parallel);
}

}  // namespace ev
