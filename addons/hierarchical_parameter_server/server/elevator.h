// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// cache_missed_embeddings: rows that a lookup found in the persistent tier are
// put into the volatile one by a thread of its own. The queue is bounded; what
// does not fit is not elevated, and the next lookup finds it below again.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_ELEVATOR_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_ELEVATOR_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"

namespace hps {

class Elevator {
 public:
  Elevator();
  ~Elevator();
  Elevator(const Elevator&) = delete;
  Elevator& operator=(const Elevator&) = delete;

  // Copies; never waits for the thread's work. `sequence` is the tables'
  // counter of updates when the rows were read: if it has changed when the
  // rows would be stored, they may be old, and are dropped.
  void Offer(const std::shared_ptr<Table>& to, std::vector<int64_t> keys,
             std::vector<float> rows,
             const std::shared_ptr<std::mutex>& updates_mutex,
             const std::shared_ptr<int64_t>& updates, int64_t seen);

  // Until all that was offered before has been done. For tests.
  void Drain();

 private:
  struct Task {
    std::shared_ptr<Table> to;
    std::vector<int64_t> keys;
    std::vector<float> rows;
    std::shared_ptr<std::mutex> updates_mutex;
    std::shared_ptr<int64_t> updates;
    int64_t seen;
  };
  void Work();

  static constexpr size_t kMostTasks = 64;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_ELEVATOR_H_
