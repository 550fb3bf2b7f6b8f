// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a home whose rows are used in GPU memory computes on the GPU, besides
// what every home does (row_home.h): it pools samples, and sums and applies the
// gradients of samples. If all rows are in GPU memory, it also finds keys.
//
// THREADS. As in row_home.h. Work that a Start call begins continues after the
// return, until it is waited for.

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
// combiner that adds. The CPU has found the rows. The arrays must not change
// until the work has been waited for.
struct DevicePooling {
  // [U], for each distinct id: the handle of its row, or AbsentAs(r) if it has
  // none and reads default row r.
  Span<const RowHandle> rows;
  Span<const int32_t> inverse;  // [N]
  Span<const int32_t> offsets;  // [B + 1]
  Combiner combiner = Combiner::kSum;
  // Not null, of a GpuTableCompute only: the output is in GPU memory.
  const DeviceStream* stream = nullptr;
};

// Gradients of samples [B, dim] that are copied to GPU memory, made by
// GpuRowCompute::StartGradients. May outlive the rows that made it. The
// destructor waits for work in flight that reads host memory.
class DeviceGradients {
 public:
  virtual ~DeviceGradients() {}
  // False if the GPU reads the gradients in place, as those in
  // base/transfer_memory.h; Put is not called then.
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
  // Not null, of a GpuTableCompute only: 'grads' are in GPU memory, and are
  // read by the end of the work.
  const DeviceStream* stream = nullptr;
  // Without a stream: the copy of 'grads', all of which were put.
  DeviceGradients* put_grads = nullptr;
};

inline RowHandle AbsentAs(int64_t default_row) {
  return kFirstReservedHandle + static_cast<RowHandle>(default_row);
}

// Something that a device has been told to do.
class DeviceWork {
 public:
  virtual ~DeviceWork() {}  // waits; an error is lost
  virtual Status Wait() = 0;
  // Whether Wait has something to copy when the device is done.
  virtual bool copies_when_waited_for() const { return false; }
};

class GpuRowCompute {
 public:
  virtual ~GpuRowCompute() {}

  // Begins to pool: out [B, dim], as PoolSamples gives it, bit for bit. In
  // base/transfer_memory.h the device writes it directly. *work keeps the call
  // under way, and is null where nothing is: REQUIRES that it is destroyed
  // before a call that is made alone.
  virtual Status StartPool(const DevicePooling& pooling, float* out,
                           std::unique_ptr<DeviceWork>* work) = 0;

  // Begins to copy gradients of samples, in host memory, to GPU memory.
  virtual Status StartGradients(const float* grads, int64_t num_samples,
                                std::unique_ptr<DeviceGradients>* put) = 0;
  // Begins an update. *work as for StartPool.
  virtual Status StartPooledUpdate(const DevicePooledUpdate& update,
                                   std::unique_ptr<DeviceWork>* work) = 0;
};

// Of a table all of whose rows are in a GPU's memory. StartPool and
// StartPooledUpdate take tensors there too (base/device_stream.h);
// InvalidArgument, then, when they are in the memory of another device.
class GpuTableCompute : public GpuRowCompute {
 public:
  // Like RowHome::NewRow, for the row of this key. Later steps find the key in
  // the GPU's key table.
  virtual Status NewKeyedRow(int64_t key, RowHandle handle,
                             int64_t default_row) = 0;
  // Removes keys from the GPU's key table, before their rows are forgotten.
  // Must run alone. If that fails, later calls return the error.
  virtual void ForgetKeys(Span<const int64_t> keys) = 0;

  // The TALLY of a table that keeps one: what updates of steps have counted
  // about rows and TakeTally has not taken. A row's is what those updates would
  // have left in a RowMeta of zeros.
  virtual bool keeps_tally() const = 0;
  // Whether a row may have one.
  virtual bool has_tally() const = 0;
  // take() of each row that has one, once; all are zero then. After an error
  // some have been taken. Costs nothing where has_tally is false, else 16 bytes
  // are read of every row that there is or was. REQUIRES that no update is
  // under way; lookups may be. Throws std::bad_alloc, with nothing taken.
  using TakeRowTally = std::function<void(RowHandle, const RowMeta&)>;
  virtual Status TakeTally(const TakeRowTally& take) = 0;

  // Begins a lookup of tables that are all of the kind of this one and on its
  // GPU. stream: of outputs, and of ids, in GPU memory; null if outputs are in
  // host memory. ResourceExhausted: the caller finds the rows on the CPU.
  virtual Status StartStep(Span<const GpuStepTable> tables,
                           const DeviceStream* stream,
                           std::shared_ptr<GpuStep>* step) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
