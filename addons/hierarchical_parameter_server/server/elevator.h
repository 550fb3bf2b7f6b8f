// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implements cache_missed_embeddings: a thread copies rows that a lookup found
// in the persistent tier into the volatile one. The queue is bounded: when it
// is full, rows are dropped, and the next lookup finds them in the lower tier
// again.

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

  // Copies and enqueues rows; does not wait for the thread. `seen`: the tables'
  // update counter when the rows were read. If the counter has changed before
  // the rows are stored, they may be old and are dropped.
  void Offer(const std::shared_ptr<Table>& to, std::vector<int64_t> keys,
             std::vector<float> rows,
             const std::shared_ptr<std::mutex>& updates_mutex,
             const std::shared_ptr<int64_t>& updates, int64_t seen);

  // Waits until all tasks offered before are done. For tests.
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
