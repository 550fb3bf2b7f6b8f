// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/step_lookup.h"

#include <functional>
#include <new>
#include <set>
#include <utility>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace {

bool Fits(const PooledInput& in) {
  const EmbeddingTable::Impl& table = *in.table->impl();
  // int64 ids of a table with int32 keys must be checked one by one.
  if (in.on_device && in.ids64 != nullptr && table.options.int32_keys) {
    return false;
  }
  return in.weights == nullptr && in.num_ids > 0 && in.batch_size > 0 &&
         table.home->gpu_table() != nullptr && !Selects(in.combiner);
}

// Returns whether the outputs are in the same memory.
bool HaveSameStream(const PooledInput& a, const PooledInput& b) {
  if (a.stream == nullptr || b.stream == nullptr) return a.stream == b.stream;
  return a.stream->native == b.stream->native;
}

}  // namespace

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<float* const> outputs) {
  return Start(inputs, outputs, {});
}

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<const Pieces> pieces) {
  const std::vector<float*> none(inputs.size(), nullptr);
  return Start(inputs, none, pieces);
}

Status StepLookup::Start(Span<const PooledInput> inputs,
                         Span<float* const> outputs,
                         Span<const Pieces> pieces) {
  number_.assign(inputs.size(), -1);
  std::set<const EmbeddingTable*> seen;
  const PooledInput* first = nullptr;
  std::vector<const PooledInput*>
      firsts;  // null: an earlier table has the samples
  std::vector<GpuStepTable> tables;
  for (size_t t = 0; t < inputs.size(); ++t) {
    const PooledInput& in = inputs[t];
    if (!Fits(in) || num_ids_ + in.num_ids > kMaxStepIds ||
        (first != nullptr && !HaveSameStream(in, *first)) ||
        !seen.insert(in.table).second) {
      continue;
    }
    if (first == nullptr) first = &in;
    num_ids_ += in.num_ids;
    number_[t] = static_cast<int>(tables.size());
    const EmbeddingTable::Impl& impl = *in.table->impl();
    GpuStepTable table;
    table.table = impl.home->gpu_table();
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
    table.out = outputs[t];
    if (!pieces.empty()) table.pieces = pieces[t];
    if (in.on_device) {
      table.splits = in.row_splits;
      table.indices = in.coo_indices;
    }
    for (size_t k = 0; k < firsts.size() && table.samples_of < 0; ++k) {
      if (firsts[k] != nullptr && HaveSameSamples(in, *firsts[k])) {
        table.samples_of = static_cast<int>(k);
      }
    }
    firsts.push_back(table.samples_of < 0 ? &in : nullptr);
    tables.push_back(table);
  }
  if (tables.empty()) return Status::OK();
  for (size_t t = 0; t < inputs.size(); ++t) {
    // These ids have to be copied to the host, and with them those of the call.
    if (inputs[t].on_device && number_[t] < 0) return Status::OK();
  }
  left_ = static_cast<int>(tables.size());
  to_host_ = first->stream == nullptr;
  const Status status =
      tables[0].table->StartStep(tables, first->stream, &step_);
  // Without memory for a step the CPU pools, into outputs in its own memory.
  if (status.code() == StatusCode::kResourceExhausted && to_host_) {
    return Status::OK();
  }
  return first->table->impl()->WithName(status);
}

Status StepLookup::Waited() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return Status::OK();
  return step_->Pool();
}

Status StepLookup::TakeOutputs(Parallel* parallel) const {
  if (step_ == nullptr || !to_host_) return Status::OK();
  std::vector<int> numbers;
  for (int number : number_) {
    if (number >= 0) numbers.push_back(number);
  }
  return RunTasksWithStatus(
      parallel, static_cast<int64_t>(numbers.size()),
      [&](int64_t i) { return step_->TakeOutput(numbers[i]); });
}

void StepLookup::DoRestLater(Parallel* parallel) const {
  if (step_ == nullptr) return;
  try {
    std::function<void()> rest = step_->TakeRest();
    if (rest == nullptr) return;
    if (parallel == nullptr) return rest();
    parallel->Later(std::move(rest));
  } catch (const std::bad_alloc&) {
    // The lookup has been started; the update does the rest.
  }
}

}  // namespace ev
