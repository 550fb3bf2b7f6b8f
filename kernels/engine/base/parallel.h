// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The engine's view of a thread pool. It owns no threads: kernels/tf/bridge
// passes TensorFlow's, tests and benchmarks pass their own (engine/testing).

#ifndef KERNELS_ENGINE_BASE_PARALLEL_H_
#define KERNELS_ENGINE_BASE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace ev {

class Parallel {
 public:
  virtual ~Parallel() {}

  // Number of threads that For() may use at once, the caller included; >= 1.
  virtual int num_threads() const = 0;

  // Calls body(i) once for each i in [0, num_tasks), in any order and on any
  // thread, and returns when all have returned. The tasks of one call must not
  // wait for each other. No result may depend on which thread ran a task: the
  // engine cuts work into tasks by its size alone, so the same input gives the
  // same bits whatever num_threads() is.
  virtual void For(int64_t num_tasks,
                   const std::function<void(int64_t)>& body) = 0;

  // Calls work() once, on any thread, before or after this returns. The caller
  // does not wait for it. 'work' must not throw and must own what it uses.
  virtual void Later(std::function<void()> work) { work(); }
};

// Runs everything on the calling thread.
class Serial : public Parallel {
 public:
  int num_threads() const override { return 1; }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override {
    for (int64_t i = 0; i < num_tasks; ++i) body(i);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_PARALLEL_H_
