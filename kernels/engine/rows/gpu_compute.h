// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GPU operations of a home with rows in GPU memory, in addition to those of
// every home (row_home.h): it pools samples, and sums and applies the gradients
// of samples. If all rows are in GPU memory, it also looks up keys.
//
// THREADS. The same rules as in row_home.h. A Start call returns while its work
// is in flight; the caller waits with DeviceWork::Wait.

#ifndef KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
#define KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// One table's batch to pool (combine/pooling.h), without weights and with a
// combiner that adds. The CPU has looked up the rows. The arrays must not
// change until the work has been waited for.
struct DevicePooling {
  // [U], for each distinct id: the handle of its row, or AbsentAs(r) if it has
  // none and reads default row r.
  Span<const RowHandle> rows;
  Span<const int32_t> inverse;  // [N]
  Span<const int32_t> offsets;  // [B + 1]
  Combiner combiner = Combiner::kSum;
  // If not null, the output is in GPU memory. GpuTableCompute only.
  const DeviceStream* stream = nullptr;
};

// A copy in GPU memory of the gradients of samples, [B, dim]. Created by
// GpuRowCompute::StartGradients; may outlive the rows that created it. The
// destructor waits for work in flight that reads host memory.
class DeviceGradients {
 public:
  virtual ~DeviceGradients() {}
  // False if the GPU reads the gradients in place (base/transfer_memory.h); Put
  // must not be called then.
  virtual bool needs_put() const { return true; }
  // Copies the gradients of sample 'begin' and the following ones; the caller
  // may reuse the span afterwards. Thread-safe. REQUIRES: each sample is put
  // once.
  virtual Status Put(int64_t begin, Span<const float> grads) = 0;
};

// One table's update by the gradients of its pooled samples: row i's gradient
// is the sum over its occurrences (combine/pooling_gradient.h), in their order.
// The arrays must not change until the work has been waited for.
struct DevicePooledUpdate {
  std::string rule;  // optimizer/rule.h
  Span<const float> hyper;
  Span<const RowHandle> handles;   // [U], distinct; those without a row are
                                   // skipped
  Span<const int> slot_columns;    // one per slot of the rule, 0: the first
  Span<const int32_t> ends;        // [U]
  Span<const int32_t> samples;     // [N]
  const float* weights = nullptr;  // [N], of the occurrences, or null
  Span<const float> factors;       // [B], of the samples, or empty; without
                                   // weights only
  int64_t num_samples = 0;         // B
  const float* grads = nullptr;    // [B, dim]
  // If not null, 'grads' are in GPU memory, and have been read when the work
  // ends. GpuTableCompute only.
  const DeviceStream* stream = nullptr;
  // If there is no stream: the copy of 'grads'. All of them have been put.
  DeviceGradients* put_grads = nullptr;
};

// The handle that stands for a key without a row that reads 'default_row'.
inline RowHandle AbsentAs(int64_t default_row) {
  return kFirstReservedHandle + static_cast<RowHandle>(default_row);
}

// The work of one call in flight on a device.
class DeviceWork {
 public:
  virtual ~DeviceWork() {}  // waits; an error is lost
  virtual Status Wait() = 0;
  // True if Wait copies results after the device has finished.
  virtual bool copies_when_waited_for() const { return false; }
};

class GpuRowCompute {
 public:
  virtual ~GpuRowCompute() {}

  // Starts pooling. out: [B, dim], bit for bit the result of PoolSamples; if it
  // is in base/transfer_memory.h, the device writes it directly. *work: the
  // work in flight, or null if there is none. REQUIRES: *work is destroyed
  // before a call that must run alone.
  virtual Status StartPool(const DevicePooling& pooling, float* out,
                           std::unique_ptr<DeviceWork>* work) = 0;

  // Starts copying gradients of samples from host memory to GPU memory.
  virtual Status StartGradients(const float* grads, int64_t num_samples,
                                std::unique_ptr<DeviceGradients>* put) = 0;
  // Starts an update. *work: as for StartPool.
  virtual Status StartPooledUpdate(const DevicePooledUpdate& update,
                                   std::unique_ptr<DeviceWork>* work) = 0;
};

// GPU operations of a table whose rows are all in one GPU's memory. StartPool
// and StartPooledUpdate also accept tensors in that memory
// (base/device_stream.h). InvalidArgument: a tensor is in the memory of another
// device.
class GpuTableCompute : public GpuRowCompute {
 public:
  // Like RowHome::NewRow, and also inserts the key into the GPU's key table,
  // where later steps find it.
  virtual Status NewKeyedRow(int64_t key, RowHandle handle,
                             int64_t default_row) = 0;
  // Removes keys from the GPU's key table. Call it before their rows are
  // forgotten. Must run alone. If that fails, later calls return the error.
  virtual void ForgetKeys(Span<const int64_t> keys) = 0;

  // True if the table keeps a TALLY: per row, the changes to its RowMeta by
  // step updates since the last TakeTally, counted in GPU memory. A row's tally
  // is the RowMeta that these updates would produce, starting from zero.
  virtual bool keeps_tally() const = 0;
  // True if a row may have a tally that is not zero.
  virtual bool has_tally() const = 0;
  // Calls take() once for each row with a tally, and sets all tallies to zero.
  // After an error, some have been taken. No cost if has_tally() is false;
  // otherwise reads 16 bytes of every row that exists or has existed. REQUIRES:
  // no update is in flight; lookups may be. Throws std::bad_alloc before
  // anything is taken.
  using TakeRowTally = std::function<void(RowHandle, const RowMeta&)>;
  virtual Status TakeTally(const TakeRowTally& take) = 0;

  // Starts a lookup of tables, all with the implementation and the GPU of this
  // one. stream: the stream of outputs and ids in GPU memory; null if outputs
  // are in host memory. ResourceExhausted: the caller must look up the rows on
  // the CPU.
  virtual Status StartStep(Span<const GpuStepTable> tables,
                           const DeviceStream* stream,
                           std::shared_ptr<GpuStep>* step) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
