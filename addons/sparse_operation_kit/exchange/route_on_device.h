// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The part of a route whose ids a device deduplicates: its ids go there, and
// its keys are taken as soon as they are back, while ids of other tables are
// still on their way. For this room's files only.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_ON_DEVICE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_ON_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/route.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"

namespace sok {

// The same, with the table's name in an error.
ev::Status NamedAfter(const std::string& table, const ev::Status& status);

class RouteOnDevice {
 public:
  // Works on the tables of the plan that have a 'distinct'. take(t) is called
  // once for each, in some task, when it has been waited for. Both arguments
  // outlive this. Throws std::bad_alloc.
  RouteOnDevice(ev::Span<const RouteInput> inputs, RoutePlan* plan,
                const std::function<ev::Status(int t)>& take);

  // Adds what Put is to be called for, as pieces of 'item'.
  void AddPuts(int t, int item, ev::TaskList* tasks) const;
  // Sends ids [begin, end) of table t off. By any thread.
  ev::Status Put(int t, int64_t begin, int64_t end);
  // Its offsets are there. Once for each table, by any thread.
  ev::Status SamplesAreThere(int t);
  // Waits for the tables that are left, when all of them were sent off. By the
  // thread that shares out the tasks.
  ev::Status Finish(ev::Parallel* parallel);

 private:
  enum State { kNotStarted, kStarted, kTaken };
  ev::Status Done(int t, int64_t count);
  // Takes a table that the device is through with, if there is one.
  ev::Status Advance();
  ev::Status Take(int t);

  const ev::Span<const RouteInput> inputs_;
  RoutePlan* const plan_;
  const std::function<ev::Status(int t)> take_;
  std::vector<std::atomic<int64_t>> left_;  // ids, and one for the offsets
  std::vector<std::atomic<State>> states_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_ON_DEVICE_H_
