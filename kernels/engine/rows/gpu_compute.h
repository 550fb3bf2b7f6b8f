// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GPU operations of a home with rows in GPU memory, in addition to those of
// every home (row_home.h): steps that pool samples, and that sum and apply the
// gradients of samples (gpu_step.h).
//
// THREADS. The same rules as in row_home.h.

#ifndef KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
#define KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/row_meta.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

class GpuTableCompute;
class Parallel;

// A copy in GPU memory of the gradients of samples, [B, dim]. Created by
// GpuRowCompute::StartGradients; may outlive the rows that created it. The
// destructor waits for work in flight that reads host memory.
class DeviceGradients {
 public:
  virtual ~DeviceGradients() {}
  // False if the GPU reads the gradients in place (base/transfer_memory.h); Put
  // must not be called then.
  virtual bool needs_put() const { return true; }
  // Copies the gradients of samples [begin, end), which start at 'grads', of
  // the type given to StartGradients; the caller may reuse them afterwards.
  // Thread-safe. REQUIRES: each sample is put once.
  virtual Status Put(int64_t begin, int64_t end, ConstFloats grads) = 0;
};

// The handle that stands for a key without a row that reads 'default_row'.
inline RowHandle AbsentAs(int64_t default_row) {
  return kFirstReservedHandle + static_cast<RowHandle>(default_row);
}

// Copies of rows that RowsBelow::Copy has made.
class RowCopies {
 public:
  virtual ~RowCopies() {}
};

// The part of a home's rows that the GPU does not access, and the moves of rows
// to and from it. A key is in the GPU's key table while the GPU accesses its
// row.
class RowsBelow {
 public:
  virtual ~RowsBelow() {}
  // Returns whether recent calls have made more new rows than there is room
  // for where the GPU accesses them. Brings make room.
  virtual bool NeedsRoom() = 0;
  // Copies those of the rows that the GPU does not access, so that a Bring that
  // follows does not have to read the file while other calls wait for it. May
  // copy only some, or return null. Updates may run beside it. parallel: may be
  // null, also below.
  virtual std::unique_ptr<RowCopies> Copy(Span<const RowHandle> handles,
                                          Parallel* parallel) = 0;
  // Moves the rows of keys, at handles, to where the GPU accesses them, and
  // makes room for new rows. Rows that are used least, and are not among these,
  // move below instead. A key without a row has a reserved handle. copies:
  // null, or of an earlier Copy; rows without a current copy are read. Must run
  // alone. ResourceExhausted: no room below, or no memory. DataLoss: the file
  // of rows is damaged. After an error every row has its contents.
  struct Brought {
    // False if there is no room for all of these rows; nothing moves then.
    bool fits = false;
    // Whether rows have moved below, also before an error. Handles in steps of
    // earlier lookups are no longer valid then.
    bool moved_below = false;
  };
  virtual Status Bring(Span<const int64_t> keys, Span<const RowHandle> handles,
                       const RowCopies* copies, Parallel* parallel,
                       Brought* brought) = 0;
};

// GPU operations of a home of which the GPU accesses some rows, or all.
class GpuRowCompute {
 public:
  virtual ~GpuRowCompute() {}

  // Like RowHome::NewRow, and also inserts the key into the GPU's key table,
  // where later steps find it, if the GPU accesses the row.
  virtual Status NewKeyedRow(int64_t key, RowHandle handle,
                             int64_t default_row) = 0;
  // Removes keys from the GPU's key table. Call it before their rows are
  // forgotten. Must run alone. If that fails, later calls return the error.
  virtual void ForgetKeys(Span<const int64_t> keys) = 0;

  // The rows that the GPU accesses, for steps.
  virtual GpuTableCompute* step_rows() = 0;
  // Null if the GPU accesses all rows. Steps then have the handles of the
  // table; else those of step_rows(), until a call that must run alone.
  virtual RowsBelow* below() { return nullptr; }
  // Sets step_handles[i] to the handle in steps of the row at handles[i];
  // reserved handles are copied. Returns false if the GPU does not access some
  // of the rows.
  virtual bool FindStepHandles(Span<const RowHandle> handles,
                               RowHandle* step_handles) const;
  // Sets handles[i] to the table's handle of the row step_handles[i].
  virtual void FindTableHandles(Span<const RowHandle> step_handles,
                                RowHandle* handles) const;

  // Starts copying gradients of samples, [num_samples, dim], from host memory
  // to GPU memory.
  virtual Status StartGradients(ConstFloats grads, int64_t num_samples,
                                std::unique_ptr<DeviceGradients>* put) = 0;
};

// GPU operations of a table whose rows one GPU accesses all.
class GpuTableCompute : public GpuRowCompute {
 public:
  // True if the table keeps PENDING COUNTERS: per row, the changes to its
  // RowMeta by step updates since the last TakeCounters, counted in GPU memory.
  // A row's pending counters are the RowMeta that these updates would produce,
  // starting from zero.
  virtual bool keeps_counters() const = 0;
  // True if a row may have pending counters that are not zero.
  virtual bool has_counters() const = 0;
  // Calls take() once for each row with pending counters, and sets all pending
  // counters to zero. After an error, some have been taken. No cost if
  // has_counters() is false; otherwise reads 16 bytes of every row that exists
  // or has existed. REQUIRES: no update is in flight; lookups may be. Throws
  // std::bad_alloc before anything is taken.
  using TakeRowCounters = std::function<void(RowHandle, const RowMeta&)>;
  virtual Status TakeCounters(const TakeRowCounters& take) = 0;

  // Starts a lookup of tables, all with the implementation and the GPU of this
  // one. stream: the stream of outputs and ids in GPU memory; null if outputs
  // are in host memory. ResourceExhausted: not enough memory for a step.
  virtual Status StartStep(Span<const GpuStepTable> tables,
                           const DeviceStream* stream,
                           std::shared_ptr<GpuStep>* step) = 0;

  // Copies gradients [num_samples, dim] in GPU memory to 'out' in host memory,
  // as they are, after the earlier work of the stream.
  virtual Status BringGradients(ConstFloats grads, int64_t num_samples,
                                const DeviceStream& stream, void* out) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
