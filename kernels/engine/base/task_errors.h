// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Collects the exceptions that the tasks of one parallel call throw. An
// exception must not leave a task. On a pool thread it would end the process;
// on the caller's thread it would unwind while other tasks still use what the
// caller destroys. So each is kept until all tasks have returned, and then the
// caller throws one.

#ifndef KERNELS_ENGINE_BASE_TASK_ERRORS_H_
#define KERNELS_ENGINE_BASE_TASK_ERRORS_H_

#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace ev {

// Thread-safe.
class TaskErrors {
 public:
  // Calls body(task) and keeps its exception.
  template <typename Body>
  void Run(int64_t task, const Body& body) {
    try {
      body(task);
    } catch (...) {
      Keep(task, std::current_exception());
    }
  }

  // Throws the exception of the first failed task in task order, so the result
  // does not depend on threads. REQUIRES: all Run have returned.
  void Rethrow() {
    if (error_ != nullptr) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  void Keep(int64_t task, std::exception_ptr error) {
    std::lock_guard<std::mutex> lock(mu_);
    if (error_ == nullptr || task < task_) {
      error_ = std::move(error);
      task_ = task;
    }
  }

  std::mutex mu_;
  std::exception_ptr error_;  // null: nothing was thrown
  int64_t task_ = 0;          // the task that threw error_
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_TASK_ERRORS_H_
