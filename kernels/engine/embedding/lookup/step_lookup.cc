// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/step_lookup.h"

#include <algorithm>
#include <functional>
#include <new>
#include <utility>

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
  return in.stream != nullptr && in.weights == nullptr && in.num_ids > 0 &&
         table.home->gpu_table() != nullptr && !Selects(in.combiner);
}

// Returns the tables that occur several times, sorted.
std::vector<const EmbeddingTable*> TablesThatComeTwice(
    Span<const PooledInput> inputs) {
  std::vector<const EmbeddingTable*> all, twice;
  for (const PooledInput& in : inputs) all.push_back(in.table);
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] == all[i - 1]) twice.push_back(all[i]);
  }
  return twice;
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
  const std::vector<const EmbeddingTable*> twice = TablesThatComeTwice(inputs);
  std::vector<const PooledInput*>
      firsts;  // null: an earlier table has the samples
  std::vector<GpuStepTable> tables;
  int64_t num_ids = 0;
  for (size_t t = 0; t < inputs.size(); ++t) {
    const PooledInput& in = inputs[t];
    if (!Fits(in) || std::binary_search(twice.begin(), twice.end(), in.table)) {
      continue;
    }
    num_ids += in.num_ids;
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
    outputs_.push_back(outputs[t]);
    stream_ = in.stream;
  }
  if (tables.empty()) return Status::OK();
  for (size_t t = 0; t < inputs.size(); ++t) {
    // These ids have to be copied to the host, and with them those of the call.
    if (inputs[t].on_device && number_[t] < 0) return Status::OK();
  }
  if (num_ids > kMaxStepIds ||
      !IsWorthAStep(tables.size(), num_ids,
                    tables[0].table->min_ids_to_deduplicate())) {
    return Status::OK();
  }
  left_ = static_cast<int>(tables.size());
  const Status status = tables[0].table->StartStep(tables, *stream_, &step_);
  // Without memory the tables are looked up one by one.
  if (status.code() == StatusCode::kResourceExhausted) return Status::OK();
  return status;
}

Status StepLookup::SetUnknown(int t, Span<const RowHandle> handles) {
  step_->SetUnknownHandles(number_[t], handles);
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return Status::OK();
  return step_->Pool(outputs_, *stream_);
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
