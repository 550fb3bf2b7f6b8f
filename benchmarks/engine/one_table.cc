// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/engine/one_table.h"

#include <algorithm>
#include <cstdio>

#include "benchmarks/engine/bench_util.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"

namespace ev {
namespace bench {

int64_t KeyOf(int64_t row) { return static_cast<int64_t>(MixKey(row) >> 1); }

Floats::Floats(size_t count)
    : transfer_(AllocateTransferMemory(count * sizeof(float))) {
  if (transfer_ == nullptr) ordinary_.resize(count);
  data_ =
      transfer_ != nullptr ? static_cast<float*>(transfer_) : ordinary_.data();
  std::fill_n(data_, count, 1e-4f);
}

Floats::~Floats() {
  if (transfer_ != nullptr) FreeTransferMemory(transfer_);
}

int64_t OneTable::RowBytes(int64_t dim) {
  return dim * 2 * static_cast<int64_t>(sizeof(float));
}

OneTable::OneTable(const TableOptions& options, int64_t rows, int64_t batch,
                   int threads)
    : batch_(batch), pool_(threads) {
  const int64_t dim = options.dim;
  table_.reset(new EmbeddingTable(options));
  Check(table_->Initialize(std::vector<float>(dim, 0.01f), 1));
  Check(table_->EnsureSlots(slots_[0], nullptr));
  const double begin = Now();
  std::vector<int64_t> keys(batch);
  const std::vector<float> values(batch * dim, 0.01f);
  const std::vector<const float*> slots = {values.data()};
  for (int64_t at = 0; at < rows; at += batch) {
    keys.resize(std::min(batch, rows - at));
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = KeyOf(rows - 1 - (at + static_cast<int64_t>(i)));
    }
    Check(table_->WriteRows(keys, slots_[0], values.data(), slots, nullptr, 0,
                            &pool_));
  }
  std::printf("  filled in %.1f s\n", Now() - begin);
  for (int64_t i = 0; i <= batch; ++i) splits_.push_back(i);
  pooled_.reset(new Floats(batch * dim));
  grads_.reset(new Floats(batch * dim));
}

void OneTable::Step(const std::vector<int64_t>& ids, bool trains) {
  const double begin = Now();
  PooledInput in;
  in.table = table_.get();
  in.batch_size = in.num_ids = batch_;
  in.ids64 = ids.data();
  in.row_splits = splits_.data();
  std::vector<float*> outputs = {pooled_->data()};
  std::shared_ptr<const LookupPlan> plan;
  Check(PooledForward({&in, 1}, {}, outputs, &pool_, &plan));
  lookup_seconds_ += Now() - begin;
  if (!trains) return;
  UpdateInput update;
  update.table = table_.get();
  Check(plan->UniqueKeys(0, &update.keys));
  update.pooled_grads = grads_->data();
  update.plan = plan.get();
  const std::vector<float> rate = {0.01f};
  Check(ApplyRule("Adagrad", rate, {&update, 1}, slots_, 1, &pool_));
  distinct_rows_ += static_cast<int64_t>(update.keys.size());
}

}  // namespace bench
}  // namespace ev
