// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/elevator.h"

#include <new>
#include <utility>

#include "kernels/engine/base/parallel.h"

namespace hps {

Elevator::Elevator() : thread_([this] { Work(); }) {}

Elevator::~Elevator() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void Elevator::Offer(const std::shared_ptr<Table>& to,
                     std::vector<int64_t> keys, std::vector<float> rows,
                     const std::shared_ptr<std::mutex>& updates_mutex,
                     const std::shared_ptr<int64_t>& updates, int64_t seen) {
  std::lock_guard<std::mutex> lock(mu_);
  if (tasks_.size() >= kMostTasks) return;
  tasks_.push_back(
      {to, std::move(keys), std::move(rows), updates_mutex, updates, seen});
  changed_.notify_all();
}

void Elevator::Drain() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

void Elevator::Work() {
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    {
      // Locked, so that no update comes between the check and the insert.
      std::lock_guard<std::mutex> updates(*task.updates_mutex);
      ev::Serial serial;
      if (*task.updates == task.seen) {
        // A row that cannot be stored is found in the lower tier next time.
        try {
          task.to->Insert(task.keys, task.rows.data(), &serial);
        } catch (const std::bad_alloc&) {
        }
      }
    }
    task = Task();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace hps
