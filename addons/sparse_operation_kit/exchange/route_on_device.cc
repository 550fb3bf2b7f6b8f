// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/route_on_device.h"

#include "addons/sparse_operation_kit/exchange/routed_table.h"

namespace sok {
namespace {

using ev::Span;
using ev::Status;

// A quarter of a MiB, some 30 us of a core.
constexpr int64_t kIdsPerPut = 32768;

}  // namespace

Status NamedAfter(const std::string& table, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), status.message() + ", table '" + table + "'");
}

RouteOnDevice::RouteOnDevice(Span<const RouteInput> inputs, RoutePlan* plan,
                             const std::function<Status(int t)>& take)
    : inputs_(inputs),
      plan_(plan),
      take_(take),
      left_(inputs.size()),
      states_(inputs.size()) {
  for (size_t t = 0; t < inputs.size(); ++t) {
    left_[t] = inputs[t].num_ids + 1;
    states_[t] = kNotStarted;
  }
}

void RouteOnDevice::AddPuts(int t, int item, ev::TaskList* tasks) const {
  tasks->AddAlone(item, inputs_[t].num_ids, kIdsPerPut);
}

Status RouteOnDevice::Put(int t, int64_t begin, int64_t end) {
  const RouteInput& in = inputs_[t];
  ev::DeviceDistinct* const distinct = plan_->routed(t).distinct.get();
  EV_RETURN_IF_ERROR(NamedAfter(
      in.name, in.ids64 != nullptr
                   ? distinct->Put(begin, Span<const int64_t>(in.ids64 + begin,
                                                              end - begin))
                   : distinct->Put(begin, Span<const int32_t>(in.ids32 + begin,
                                                              end - begin))));
  return Done(t, end - begin);
}

Status RouteOnDevice::SamplesAreThere(int t) { return Done(t, 1); }

Status RouteOnDevice::Done(int t, int64_t count) {
  if (left_[t].fetch_sub(count, std::memory_order_acq_rel) == count) {
    const RoutedTable& table = plan_->routed(t);
    EV_RETURN_IF_ERROR(
        NamedAfter(table.name, table.distinct->Start(Span<const int32_t>(
                                   table.offsets, table.batch_size + 1))));
    states_[t].store(kStarted, std::memory_order_release);
  }
  return Advance();
}

Status RouteOnDevice::Advance() {
  // In the order of the tables, in which their ids were put.
  for (size_t t = 0; t < states_.size(); ++t) {
    State state = states_[t].load(std::memory_order_acquire);
    if (state == kTaken || plan_->routed(t).distinct == nullptr) continue;
    if (state != kStarted || !plan_->routed(t).distinct->IsDone() ||
        !states_[t].compare_exchange_strong(state, kTaken)) {
      return Status::OK();
    }
    return Take(t);
  }
  return Status::OK();
}

Status RouteOnDevice::Take(int t) {
  EV_RETURN_IF_ERROR(
      NamedAfter(inputs_[t].name, plan_->routed(t).distinct->Wait()));
  return take_(t);
}

Status RouteOnDevice::Finish(ev::Parallel* parallel) {
  std::vector<int> waiting;
  for (size_t t = 0; t < states_.size(); ++t) {
    if (states_[t] == kStarted) waiting.push_back(static_cast<int>(t));
  }
  return ev::RunTasksWithStatus(parallel, static_cast<int64_t>(waiting.size()),
                                [&](int64_t i) { return Take(waiting[i]); });
}

}  // namespace sok
