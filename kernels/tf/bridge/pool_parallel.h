// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_TF_BRIDGE_POOL_PARALLEL_H_
#define KERNELS_TF_BRIDGE_POOL_PARALLEL_H_

#include <cstdint>
#include <functional>

#include "kernels/engine/base/parallel.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// TensorFlow's intra-op threads behind the engine's interface. The caller runs
// tasks, too, and runs all of them alone if no worker is free. So For() makes
// progress on any thread, also on a worker of the same pool. If tasks throw,
// For() rethrows the exception of the first one in task order when all tasks
// have returned.
class PoolParallel : public ev::Parallel {
 public:
  explicit PoolParallel(tensorflow::OpKernelContext* context)
      : PoolParallel(*context->device()->tensorflow_cpu_worker_threads()) {}
  explicit PoolParallel(
      const tensorflow::DeviceBase::CpuWorkerThreads& workers);

  // The limit by intra_op_parallelism_threads, including the caller.
  int num_threads() const override { return num_threads_; }
  void For(int64_t num_tasks,
           const std::function<void(int64_t)>& body) override;
  void Later(std::function<void()> work) override;

 private:
  tensorflow::thread::ThreadPool* const pool_;
  const int num_threads_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_BRIDGE_POOL_PARALLEL_H_
