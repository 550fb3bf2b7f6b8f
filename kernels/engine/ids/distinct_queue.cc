// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/distinct_queue.h"

#include <cstdint>
#include <utility>

#include "kernels/engine/base/tasks.h"

namespace ev {
namespace {

// Maximum number of IsDone calls per Advance, at a few us each.
constexpr int kMostAsked = 3;

}  // namespace

DistinctQueue::DistinctQueue(std::vector<TableIds*> tables,
                             const std::function<Status(int t)>& take)
    : tables_(std::move(tables)), take_(take), states_(tables_.size()) {
  for (auto& state : states_) state = kNotStarted;
}

Status DistinctQueue::Take(int t) {
  const TableIds& table = *tables_[t];
  EV_RETURN_IF_ERROR(NamedAfter(table.name, table.distinct->Wait()));
  return take_(t);
}

Status DistinctQueue::Advance() {
  const int num_tables = static_cast<int>(tables_.size());
  // Tries tables in their order, which is the order in which their ids were
  // copied. A table that is started late does not hold up the others.
  bool is_oldest = true;
  int asked = 0;
  for (int t = oldest_.load(std::memory_order_relaxed);
       t < num_tables && asked < kMostAsked; ++t) {
    State state = states_[t].load(std::memory_order_acquire);
    if (state == kTaken || tables_[t]->distinct == nullptr) continue;
    if (is_oldest) oldest_.store(t, std::memory_order_relaxed);
    is_oldest = false;
    if (state != kStarted) continue;
    ++asked;
    if (tables_[t]->distinct->IsDone() &&
        states_[t].compare_exchange_strong(state, kTaken)) {
      return Take(t);
    }
  }
  return Status::OK();
}

Status DistinctQueue::Finish(Parallel* parallel) {
  std::vector<int> waiting;
  for (size_t t = 0; t < states_.size(); ++t) {
    if (states_[t] == kStarted) waiting.push_back(static_cast<int>(t));
  }
  return RunTasksWithStatus(parallel, static_cast<int64_t>(waiting.size()),
                            [&](int64_t i) { return Take(waiting[i]); });
}

}  // namespace ev
