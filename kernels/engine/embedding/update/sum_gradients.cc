// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Step 1 of an update: distinct keys and their summed gradients.

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/update/update_steps.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {
namespace {

// Maximum number of ids without a row in a step that one thread deduplicates,
// at some 30 ns each.
constexpr int64_t kSettledAlone = 2048;

// Returns whether the samples' gradients are summed on a GPU, to which those in
// host memory are copied: the step of the lookup has the occurrences.
bool SumsOnDevice(const RowRule& rule, const Update& update) {
  const PlannedTable& planned = *update.planned;
  return planned.step_finds_rows &&
         planned.step->CanUpdate(rule.name(), update.slot_columns);
}

// Copies the gradients of samples to CPU memory, which it adds to 'buffers'.
Status BringGradients(const UpdateInput& input, const Update& update,
                      std::vector<std::unique_ptr<SumBuffer>>* buffers,
                      ConstFloats* grads) {
  const PlannedTable& planned = *update.planned;
  const int64_t count = planned.batch_size * planned.dim;
  const FloatType type = input.pooled_grads.type();
  buffers->push_back(std::make_unique<SumBuffer>(
      (count * FloatBytes(type) + sizeof(float) - 1) / sizeof(float)));
  *grads =
      ConstFloats(reinterpret_cast<const char*>(buffers->back()->data()), type);
  return update.table->WithName(update.table->home->gpu_table()->BringGradients(
      input.pooled_grads, planned.batch_size, *input.stream,
      buffers->back()->data()));
}

// Returns whether an update by gradients that are summed on a GPU needs the
// handles of its rows on the GPU only. It does if the table is in a step that
// supports the rule, no handle has become invalid, and no row must be kept for
// a save. The step counts what rows count, or returns which rows it has
// changed and how often each key occurs.
bool KeysStayOnDevice(const RowRule& rule, const Update& update) {
  const EmbeddingTable::Impl& table = *update.table;
  if (update.pooled_grads == nullptr || !update.planned->step_finds_rows) {
    return false;
  }
  return update.planned->step->CanUpdate(rule.name(), update.slot_columns) &&
         update.planned->generation == table.generation &&
         table.frozen_rows.empty();
}

// Copies the distinct keys of these updates to the host.
Status FetchKeys(Span<const UpdateInput> inputs,
                 const std::vector<size_t>& fetched,
                 std::vector<Update>* updates, Parallel* parallel) {
  std::map<const LookupPlan*, std::vector<int>> tables;
  for (size_t i : fetched) {
    tables[inputs[i].plan].push_back(inputs[i].plan_table);
  }
  for (const auto& one : tables) {
    EV_RETURN_IF_ERROR(one.first->Fetch(one.second, parallel));
  }
  for (size_t i : fetched) {
    Span<const int32_t> counts;
    EV_RETURN_IF_ERROR(inputs[i].plan->UniqueKeys(
        inputs[i].plan_table, &(*updates)[i].keys, &counts));
    (*updates)[i].counts = counts.data();
  }
  return Status::OK();
}

}  // namespace

Status FetchBelow(Span<const UpdateInput> inputs, std::vector<Update>* updates,
                  std::vector<Recycler<LineBuffer>::Handle>* buffers,
                  Parallel* parallel) {
  std::vector<size_t> fetched;
  std::vector<RowHandle> places;
  for (size_t i = 0; i < updates->size(); ++i) {
    Update& update = (*updates)[i];
    if (!update.keys_stay_on_device || update.handles == nullptr ||
        update.table->rows_below() == nullptr) {
      continue;
    }
    places.resize(update.keys.size());
    if (update.table->home->gpu()->FindStepHandles(
            Span<const RowHandle>(update.handles, places.size()),
            places.data())) {
      continue;
    }
    fetched.push_back(i);
  }
  EV_RETURN_IF_ERROR(FetchKeys(inputs, fetched, updates, parallel));
  for (size_t i : fetched) {
    Update& update = (*updates)[i];
    update.keys_stay_on_device = false;
    buffers->push_back(HandleBuffers().Acquire());
    RowHandle* const handles =
        buffers->back()->ReserveOf<RowHandle>(update.keys.size());
    update.table->index.Find(update.keys, handles);
    update.handles = handles;
  }
  return Status::OK();
}

Recycler<LineBuffer>& HandleBuffers() {
  static Recycler<LineBuffer>* const buffers = new Recycler<LineBuffer>(256);
  return *buffers;
}

Status SumDuplicates(Span<const UpdateInput> inputs, LookupPlan* plan,
                     std::vector<Update>* updates, Parallel* parallel) {
  std::vector<PooledInput> lookups;
  std::vector<Update*> owners;
  std::vector<const int64_t*> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].plan != nullptr || inputs[i].keys.empty()) continue;
    PooledInput lookup;
    lookup.table = inputs[i].table;
    lookup.combiner = Combiner::kSum;
    lookup.batch_size = lookup.num_ids = inputs[i].keys.size();
    lookup.ids64 = inputs[i].keys.data();
    lookups.push_back(lookup);
    owners.push_back(&(*updates)[i]);
    given.push_back(inputs[i].counts);
  }
  EV_RETURN_IF_ERROR(PlanLookup(lookups, Samples::kOneIdEach, plan, nullptr,
                                parallel, [](int) { return Status::OK(); }));
  std::vector<const float*> grads(lookups.size(), nullptr);
  std::vector<float*> sums(lookups.size(), nullptr);
  for (size_t k = 0; k < lookups.size(); ++k) {
    PlannedTable* planned = plan->mutable_planned(static_cast<int>(k));
    const bool all_unique = planned->all_unique();
    int32_t* occurrences = nullptr;
    if (given[k] != nullptr) {
      occurrences =
          planned->occurrence_counts.ReserveOf<int32_t>(planned->num_unique);
      std::fill(occurrences, occurrences + planned->num_unique, 0);
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      for (int64_t i = 0; i < lookups[k].num_ids; ++i) {
        int32_t* const sum =
            occurrences + (all_unique ? i : planned->inverse[i]);
        const int64_t more = std::min(std::max<int64_t>(given[k][i], 0), kMost);
        *sum = static_cast<int32_t>(std::min(*sum + more, kMost));
      }
      owners[k]->counts = occurrences;
    }
    if (all_unique) continue;  // keys and gradients stay as given
    grads[k] = owners[k]->grads;
    sums[k] = planned->row_copies.ReserveOf<float>(planned->num_unique *
                                                   planned->dim);
    owners[k]->keys = Span<const int64_t>(planned->unique, planned->num_unique);
    owners[k]->num_keys = owners[k]->keys.size();
    owners[k]->counts = occurrences != nullptr ? occurrences : planned->counts;
    owners[k]->grads = sums[k];
  }
  return PooledBackward(*plan, grads, sums, parallel);
}

Status SumPooled(const RowRule& rule, Span<const UpdateInput> inputs,
                 std::vector<Update>* updates,
                 std::vector<std::unique_ptr<SumBuffer>>* buffers,
                 Parallel* parallel) {
  // A table may have been initialized again since the last attempt.
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].pooled_grads == nullptr) continue;
    (*updates)[i].grads = nullptr;
    (*updates)[i].pooled_grads = nullptr;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Update& update = (*updates)[i];
    if (inputs[i].pooled_grads == nullptr || update.num_keys == 0) continue;
    if (inputs[i].stream != nullptr) {
      EV_RETURN_IF_ERROR(update.table->CheckTakesDeviceTensors("the gradient"));
    }
    if (SumsOnDevice(rule, update)) {
      update.stream = inputs[i].stream;
      update.pooled_grads = inputs[i].pooled_grads;
      continue;
    }
    if (update.grads != nullptr) continue;  // summed with an earlier one
    // All tables of one plan at once.
    const LookupPlan& plan = *inputs[i].plan;
    std::vector<ConstFloats> grads(plan.num_tables());
    std::vector<float*> sums(plan.num_tables(), nullptr);
    for (size_t j = i; j < inputs.size(); ++j) {
      const int t = inputs[j].plan_table;
      Update& other = (*updates)[j];
      if (inputs[j].plan != &plan || inputs[j].pooled_grads == nullptr ||
          SumsOnDevice(rule, other) || other.grads != nullptr ||
          sums[t] != nullptr) {
        continue;
      }
      grads[t] = inputs[j].pooled_grads;
      if (inputs[j].stream != nullptr) {
        EV_RETURN_IF_ERROR(
            BringGradients(inputs[j], other, buffers, &grads[t]));
      }
      buffers->push_back(
          std::make_unique<SumBuffer>(other.num_keys * other.table->dim()));
      sums[t] = buffers->back()->data();
      other.grads = sums[t];
    }
    EV_RETURN_IF_ERROR(PooledBackward(plan, grads, sums, parallel));
  }
  return Status::OK();
}

Status FetchPlanned(const RowRule& rule, Span<const UpdateInput> inputs,
                    std::vector<Update>* updates, Parallel* parallel) {
  // In the steady state of tables on a device both stay empty.
  std::vector<size_t> fetched, settled;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Update& update = (*updates)[i];
    if (update.planned == nullptr) continue;
    update.keys_stay_on_device = KeysStayOnDevice(rule, update);
    if (!update.keys_stay_on_device) {
      fetched.push_back(i);
      continue;
    }
    settled.push_back(i);
  }
  const auto settle = [&](int64_t k) {
    const size_t i = settled[k];
    Update& update = (*updates)[i];
    EV_RETURN_IF_ERROR(inputs[i].plan->Settle(inputs[i].plan_table));
    update.keys = update.planned->unknown.keys;
    update.counts = update.planned->unknown.counts;
    return Status::OK();
  };
  // The first call waits for the results of a step. Few keys are not worth
  // waking other threads.
  size_t done = 0;
  int64_t left = 0;
  for (; done < settled.size() && left <= kSettledAlone; ++done) {
    EV_RETURN_IF_ERROR(settle(done));
    left = (*updates)[settled[done]].planned->unknown.num_ids_of_step;
  }
  EV_RETURN_IF_ERROR(
      RunTasksWithStatus(parallel, static_cast<int64_t>(settled.size() - done),
                         [&](int64_t k) { return settle(done + k); }));
  return FetchKeys(inputs, fetched, updates, parallel);
}

}  // namespace ev
