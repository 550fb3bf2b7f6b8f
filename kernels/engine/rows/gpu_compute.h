// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a home whose rows are used in a GPU's memory computes there, beside what
// every home does (row_home.h): samples are pooled there, gradients of samples
// are summed and applied there; where all rows are in GPU memory, ids are made
// distinct and rows are gathered there too.
//
// THREADS. As of row_home.h. What a Start call begins goes on after it returns,
// until its work is waited for.

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
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/rows/gpu_step.h"

namespace ev {

// One table's batch to be pooled, as combine/pooling.h has it, without weights
// and with a combiner that does not select. All arrays stay as they are until
// the work has been waited for.
struct DevicePooling {
  // [U], of each distinct id: the handle of its row, or AbsentAs(r) when it has
  // none and reads default row r.
  Span<const RowHandle> rows;
  Span<const int32_t> inverse;  // [N]
  Span<const int32_t> offsets;  // [B + 1]
  // Instead of all three, of the same device, waited for: its keys, which all
  // have names, and the samples that it was started with.
  const DeviceDistinct* distinct = nullptr;
  Combiner combiner = Combiner::kSum;
  // Not null: of a GpuTableCompute only, the output is in the device's
  // memory.
  const DeviceStream* stream = nullptr;
};

// Gradients of samples [B, dim] on their way to a device, of
// GpuRowCompute::StartGradients. It needs nothing of the rows that made it.
// Destroying it waits for what is under way.
class DeviceGradients {
 public:
  virtual ~DeviceGradients() {}
  // Those of sample 'begin' and on, which have been read when it returns. May
  // be called by several at once. REQUIRES that each sample is put once.
  virtual Status Put(int64_t begin, Span<const float> grads) = 0;
};

// One table's update by the gradients of its pooled samples: row i's gradient
// is the sum over its occurrences (combine/pooling_gradient.h), formed in their
// order. All arrays stay as they are until the work has been waited for.
struct DevicePooledUpdate {
  std::string rule;  // optimizer/rule.h
  Span<const float> hyper;
  // [U], each named once; handles of no row are passed over. With 'distinct'
  // they may be left out: its names then, but for its unknown keys, whose
  // handles these are unless they are left out too. The device knows them
  // from then on.
  Span<const RowHandle> handles;
  Span<const RowHandle> unknown_handles;  // [K]
  Span<const int> slot_columns;  // one per slot of the rule, 0: the first
  Span<const int32_t> ends;      // [U]
  Span<const int32_t> samples;   // [N]
  // Instead of both; without weights then.
  const DeviceDistinct* distinct = nullptr;
  const float* weights = nullptr;  // [N], of the occurrences, or null
  Span<const float> factors;       // [B], of the samples, or empty; without
                                   // weights only
  int64_t num_samples = 0;         // B
  const float* grads = nullptr;    // [B, dim]
  const DeviceGradients* put_grads = nullptr;  // instead: all of them were put
  // Not null: of a GpuTableCompute only, the gradients are in the
  // device's memory, and are read by the end of the work.
  const DeviceStream* stream = nullptr;
};

// N rows of one table that are copied one after the other. All arrays stay as
// they are until the work has been waited for.
class GpuTableCompute;
struct DeviceGather {
  GpuTableCompute* table = nullptr;
  Span<const RowHandle> rows;  // [N], as DevicePooling::rows
  // Instead, as DevicePooling::distinct: the rows of its ids
  // [first_id, first_id + num_ids).
  const DeviceDistinct* distinct = nullptr;
  int64_t first_id = 0, num_ids = 0;
  float* out = nullptr;  // [N, dim], in the device's memory

  int64_t num_rows() const {
    return distinct == nullptr ? static_cast<int64_t>(rows.size()) : num_ids;
  }
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

  // Makes ready for gradients of so many samples to be put. Leaves *put null
  // when the device reads them where they are, as in base/transfer_memory.h.
  virtual Status StartGradients(const float* /*grads*/, int64_t /*num_samples*/,
                                std::unique_ptr<DeviceGradients>* /*put*/) {
    return Status::OK();
  }
  // Begins an update. *work as for StartPool. Gradients in ordinary memory that
  // were not put are copied by this call.
  virtual Status StartPooledUpdate(const DevicePooledUpdate& update,
                                   std::unique_ptr<DeviceWork>* work) = 0;
};

// Of a table all of whose rows are in a GPU's memory. StartPool and
// StartPooledUpdate take tensors there too (base/device_stream.h);
// InvalidArgument, then, when they are in the memory of another device.
class GpuTableCompute : public GpuRowCompute {
 public:
  // From how many ids on StartDistinct is to be called. Where each sample is
  // one id, all tables of the call count together, if a table has one of
  // kDistinctShares parts of that by itself.
  virtual int64_t min_ids_to_deduplicate() const = 0;
  // Takes what deduplicating that many ids, of that many samples, needs.
  // ResourceExhausted: the caller can do without. Not called where that many
  // ids are fewer than a table has at least, or none, or more than
  // kMaxDistinctIds.
  virtual Status StartDistinct(int64_t num_ids, int64_t num_samples,
                               std::unique_ptr<DeviceDistinct>* distinct) = 0;
  // After its Wait, when it has unknown keys, once: tells the device the
  // handles [K] of those keys, as DevicePooling::rows. All of the batch's keys
  // have names then, and the device knows those of rows, as far as it has
  // memory for that. Read when it returns; the device need not be done.
  virtual Status SetUnknownHandles(Span<const RowHandle> handles,
                                   DeviceDistinct* distinct) = 0;
  // As RowHome::NewRow. The row is this key's, which the device knows when it
  // is asked for keys the next time, as far as it has memory for that.
  virtual Status NewKeyedRow(int64_t key, RowHandle handle,
                             int64_t default_row) = 0;
  // From here on the device is one that had no memory for a key. For tests.
  virtual void MissKey() = 0;
  // These keys have no rows any more, or others. Before their rows are
  // forgotten. Alone.
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

  // A lookup of several tables, all of the kind of this one and on its device.
  // Leaves *step null where that is not worth it. stream: as of DevicePooling,
  // of what is in the device's memory. ResourceExhausted: the caller can do
  // without.
  virtual Status StartStep(Span<const GpuStepTable> tables,
                           const DeviceStream& stream,
                           std::shared_ptr<GpuStep>* step) = 0;

  // Begins to copy rows of several tables, all of the kind of this one and on
  // its device. 'stream' as of DevicePooling. *work as for StartPool, of every
  // table. Rows that lie one after the other in base/transfer_memory.h, from
  // part to part, are read by the device directly.
  virtual Status StartGather(Span<const DeviceGather> parts,
                             const DeviceStream& stream,
                             std::unique_ptr<DeviceWork>* work) = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_COMPUTE_H_
