// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/step_lookup.h"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

// Ids per copy to the GPU. A step starts only after the ids of all its tables
// have been copied.
constexpr int64_t kIdsPerPut = 16384;

bool Fits(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  // int64 ids of a table with int32 keys must be checked one by one.
  if (in.on_device && in.ids64 != nullptr && table.options.int32_keys) {
    return false;
  }
  return in.weights == nullptr && in.num_ids > 0 && in.batch_size > 0 &&
         table.home->gpu() != nullptr && !Selects(in.combiner);
}

// Returns whether outputs of two streams are in the same memory.
bool HaveSameStream(const DeviceStream* a, const DeviceStream* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->native == b->native;
}

}  // namespace

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<const MutableFloats> outputs) {
  return Start(inputs, outputs, {});
}

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<const Pieces> pieces) {
  const std::vector<MutableFloats> none(inputs.size());
  return Start(inputs, none, pieces);
}

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<const MutableFloats> outputs,
                         Span<const Pieces> pieces) {
  inputs_ = inputs;
  at_.assign(inputs.size(), Place());
  for (const PooledInput& in : inputs) {
    // These ids have to be copied to the host, and with them those of the call.
    if (in.on_device && !Fits(in)) return Status::OK();
  }
  for (int t = 0; t < num_tables(); ++t) {
    if (!Fits(inputs[t]) || (!on_cpu_.empty() && on_cpu_[t])) continue;
    Add(t, outputs[t], pieces.empty() ? nullptr : &pieces[t]);
  }
  for (Step& step : steps_) {
    const Status status =
        step.given[0].table->StartStep(step.given, step.stream, &step.step);
    step.given.clear();
    // Without memory for a step the CPU pools, into outputs in its own memory.
    if (status.code() == StatusCode::kResourceExhausted &&
        step.stream == nullptr) {
      step.step = nullptr;
      continue;
    }
    EV_RETURN_IF_ERROR(inputs[step.tables[0]].table->impl()->WithName(status));
  }
  return Status::OK();
}

void StepLookup::Add(int t, MutableFloats output, const Pieces* pieces) {
  const PooledInput& in = inputs_[t];
  int* const next = &next_step_[in.table];
  const auto found =
      std::find_if(steps_.begin() + *next, steps_.end(), [&](const Step& step) {
        return HaveSameStream(in.stream, step.stream) &&
               step.num_ids + in.num_ids <= kMaxStepIds;
      });
  at_[t].step = static_cast<int>(found - steps_.begin());
  *next = at_[t].step + 1;
  if (found == steps_.end()) {
    steps_.emplace_back();
    steps_.back().stream = in.stream;
  }
  Step& step = steps_[at_[t].step];
  at_[t].number = static_cast<int>(step.tables.size());
  const EmbeddingTable::Impl& impl = *in.table->impl();
  GpuStepTable table;
  table.table = impl.home->gpu()->step_rows();
  table.num_ids = in.num_ids;
  table.num_samples = in.batch_size;
  table.is_narrow = in.ids32 != nullptr;
  table.combiner = in.combiner;
  table.ids = table.is_narrow ? static_cast<const void*>(in.ids32)
                              : static_cast<const void*>(in.ids64);
  table.on_device = in.on_device;
  if (impl.filter == nullptr) {
    table.num_defaults = impl.num_defaults;
  } else {  // one row for all keys, after the others
    table.first_default = impl.num_defaults;
    table.num_defaults = 1;
  }
  table.occurrences = in.occurrences;
  table.ids_owner = in.ids_owner;
  table.out = output;
  if (pieces != nullptr) table.pieces = *pieces;
  if (in.on_device) {
    table.splits = in.row_splits;
    table.indices = in.coo_indices;
  }
  table.samples_of = SamplesOf(step, in);
  step.num_ids += in.num_ids;
  step.tables.push_back(t);
  step.given.push_back(std::move(table));
}

// Returns the number of the first table of the step with the same samples, or
// -1.
int StepLookup::SamplesOf(const Step& step, const PooledInput& in) const {
  for (size_t k = 0; k < step.tables.size(); ++k) {
    if (HaveSameSamples(in, inputs_[step.tables[k]]))
      return static_cast<int>(k);
  }
  return -1;
}

int64_t StepLookup::num_ids() const {
  int64_t ids = 0;
  for (const Step& step : steps_) {
    if (step.step != nullptr) ids += step.num_ids;
  }
  return ids;
}

// For T tables, item -1 - t stands for the samples of table t, and item -1 - T
// - t for its ids.
void StepLookup::AddTasks(Samples samples, LookupPlan* plan, TaskList* tasks) {
  samples_ = samples;
  plan_ = plan;
  left_ = std::vector<std::atomic<int64_t>>(inputs_.size());
  for (int t = 0; t < num_tables(); ++t) {
    if (!Has(t)) continue;
    const int64_t num_put =
        step(t)->needs_put(at_[t].number) ? inputs_[t].num_ids : 0;
    left_[t] = 1 + num_put;
    const Step& step = steps_[at_[t].step];
    if (SamplesOf(step, inputs_[t]) == at_[t].number) {
      tasks->AddAlone(-1 - t, 1, 1);
    }
    tasks->AddAlone(-1 - num_tables() - t, num_put, kIdsPerPut);
  }
}

Status StepLookup::DoTask(const Piece& piece) {
  const int t = -1 - piece.item;
  return t < num_tables() ? FindSamplesOf(t)
                          : PutIds(t - num_tables(), piece.begin, piece.end);
}

Status StepLookup::FindSamplesOf(int t) {
  const PooledInput& in = inputs_[t];
  PlannedTable* const planned = plan_->mutable_planned(t);
  // The device needs no offsets if each sample is one id or if the samples are
  // in its memory.
  planned->has_offsets =
      !in.on_device && samples_ != Samples::kOneIdEach &&
      !IsOneIdEach(in.row_splits, in.coo_indices, in.batch_size, in.num_ids);
  if (planned->has_offsets) {
    EV_RETURN_IF_ERROR(FindSamples(in, samples_, planned));
  }
  for (int u : steps_[at_[t].step].tables) {
    const PooledInput& other = inputs_[u];
    if (u != t && !HaveSameSamples(in, other)) continue;
    if (other.ids64 != nullptr && !other.on_device) {
      EV_RETURN_IF_ERROR(other.table->impl()->CheckKeys(
          Span<const int64_t>(other.ids64, other.num_ids)));
    }
    if (u != t) plan_->mutable_planned(u)->has_offsets = false;
    EV_RETURN_IF_ERROR(Done(u, 1));
  }
  return Status::OK();
}

Status StepLookup::PutIds(int t, int64_t begin, int64_t end) {
  const PooledInput& in = inputs_[t];
  const size_t n = end - begin;
  GpuStep* const to = step(t).get();
  const int number = at_[t].number;
  EV_RETURN_IF_ERROR(in.table->impl()->WithName(
      in.ids64 != nullptr
          ? to->Put(number, begin, Span<const int64_t>(in.ids64 + begin, n))
          : to->Put(number, begin, Span<const int32_t>(in.ids32 + begin, n))));
  return Done(t, end - begin);
}

Status StepLookup::Done(int t, int64_t count) {
  if (left_[t].fetch_sub(count, std::memory_order_acq_rel) != count) {
    return Status::OK();
  }
  const PlannedTable& planned = plan_->planned(t);
  return inputs_[t].table->impl()->WithName(step(t)->Start(
      at_[t].number,
      planned.has_offsets
          ? Span<const int32_t>(planned.offsets, planned.batch_size + 1)
          : Span<const int32_t>()));
}

Status StepLookup::Pool() {
  for (const Step& step : steps_) {
    if (step.step == nullptr) continue;
    EV_RETURN_IF_ERROR(
        inputs_[step.tables[0]].table->impl()->WithName(step.step->Pool()));
  }
  return Status::OK();
}

Status StepLookup::TakeOutputs(Parallel* parallel) const {
  std::vector<int> tables;
  for (int t = 0; t < num_tables(); ++t) {
    if (Has(t) && inputs_[t].stream == nullptr) tables.push_back(t);
  }
  return RunTasksWithStatus(
      parallel, static_cast<int64_t>(tables.size()), [&](int64_t k) {
        return step(tables[k])->TakeOutput(at_[tables[k]].number);
      });
}

void StepLookup::DoRestLater(Parallel* parallel) const {
  for (const Step& step : steps_) {
    if (step.step == nullptr) continue;
    try {
      std::function<void()> rest = step.step->TakeRest();
      if (rest == nullptr) continue;
      if (parallel == nullptr) {
        rest();
      } else {
        parallel->Later(std::move(rest));
      }
    } catch (const std::bad_alloc&) {
      // The lookup has been started; the update does the rest.
    }
  }
}

}  // namespace ev
