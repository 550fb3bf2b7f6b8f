// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between a table and rows that the processor cannot simply address:
// those in the memory of a GPU, and those of which only the hot ones are in
// memory, the others on an SSD (ssd/ssd_rows.h), or on a GPU, the others in CPU
// memory (hbm_dram/hbm_dram_rows.h). The table keeps its index, its
// handles and what rows count about themselves (frequency, version) in CPU
// memory, whatever holds the rows; a handle names a row here as it names one in
// a RowStore. So whatever a table does with keys, it does for every kind of
// storage.
//
// NEW ROWS are queued: NewRow only makes room and remembers the handle, and
// Flush writes all that are queued at once. Every call that touches rows
// flushes first, so a queued row is never seen unwritten.
//
// THREADS. All calls may be made at once but Relayout, ForgetKeys, Forget and
// Clear, which are made alone. Two calls that write the same row at once must
// be kept apart by the caller; a read beside a write sees either state of each
// element.
//
// Calls return when the device is done. Errors do not name the table: the
// caller does.

#ifndef KERNELS_ENGINE_ROWS_ROW_HOME_H_
#define KERNELS_ENGINE_ROWS_ROW_HOME_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/ids/device_distinct.h"

namespace ev {

// One table's batch to be pooled, as combine/pooling.h has it, without weights.
// All arrays stay as they are until the work has been waited for.
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
  // Not null: where takes_device_tensors only, the output is in the device's
  // memory.
  const DeviceStream* stream = nullptr;
};

// Gradients of samples [B, dim] on their way to a device, of
// DeviceRows::StartGradients. It needs nothing of the rows that made it.
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
  // Not null: where takes_device_tensors only, the gradients are in the
  // device's memory, and are read by the end of the work.
  const DeviceStream* stream = nullptr;
};

// N rows of one table that are copied one after the other. All arrays stay as
// they are until the work has been waited for.
class DeviceRows;
struct DeviceGather {
  DeviceRows* table = nullptr;
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
  virtual ~DeviceWork() {}  // waits, and tells nobody of an error
  virtual Status Wait() = 0;
  // Whether Wait has something to copy when the device is done.
  virtual bool copies_when_waited_for() const { return false; }
};

// Where rows are that are in more than one place: in memory and on an SSD, or
// in a GPU's memory and in the CPU's.
struct TierStats {
  int64_t memory_rows = 0, stored_rows = 0, stored_bytes = 0;
  // Since creation: rows used that were in the faster place, that were not,
  // bytes written to the other.
  int64_t hits = 0, misses = 0, written_bytes = 0;
};

// Rows of one table: column 0 is the value, column 1 + k slot k, each of dim
// floats.
class DeviceRows {
 public:
  virtual ~DeviceRows() {}

  // Has a row for that handle: default row 'default_row', slots at their
  // initial values. ResourceExhausted, with what is needed and free, when the
  // device's memory is short; nothing has changed then.
  virtual Status NewRow(RowHandle handle, int64_t default_row) = 0;
  virtual Status Flush() = 0;
  // The row that is there becomes what NewRow makes, and is queued as that is;
  // takes no memory. For who keeps rows of many handles in few rows: not twice
  // before a Flush.
  virtual Status RenewRow(RowHandle /*handle*/, int64_t /*default_row*/) {
    return Unimplemented("rows are not renewed here");
  }

  // out[i, :] = column of the row at handles[i], [N, dim]; unspecified where
  // the handle is of no row (row_handle.h).
  virtual Status Read(Span<const RowHandle> handles, int column,
                      float* out) = 0;
  // Makes the next uses of these rows cheap, if that is possible.
  virtual Status Prefetch(Span<const RowHandle> /*handles*/) {
    return Status::OK();
  }
  // Read by someone who goes over all rows once: they do not become hot by
  // it.
  virtual Status ReadOnce(Span<const RowHandle> handles, int column,
                          float* out) {
    return Read(handles, column, out);
  }
  // The same of several columns: out[c][i, :].
  virtual Status ReadColumnsOnce(Span<const RowHandle> handles,
                                 Span<const int> columns,
                                 Span<float* const> out) {
    for (size_t c = 0; c < columns.size(); ++c) {
      EV_RETURN_IF_ERROR(ReadOnce(handles, columns[c], out[c]));
    }
    return Status::OK();
  }
  // Whether the processor can address rows while it holds them, so that they
  // are pooled without copies.
  virtual bool can_hold() const { return false; }
  // Holds rows: rows[i] is the one at handles[i], its value first, for as long
  // as *work lives; unchanged where the handle is of no row. Rows may be
  // written meanwhile. *work is null when there is not room for so many at
  // once: Read copies them. Of *work as for StartPool; there is nothing to wait
  // for.
  virtual Status Hold(Span<const RowHandle> /*handles*/, const float** /*rows*/,
                      std::unique_ptr<DeviceWork>* /*work*/) {
    return Unimplemented("rows on a device cannot be addressed");
  }
  // Whether StartPool and StartPooledUpdate are to be called; otherwise rows
  // are read and pooled, and gradients summed, by who reads and has them.
  virtual bool pools() const { return true; }
  // Whether both take tensors in the device's memory (base/device_stream.h).
  // InvalidArgument, then, when they are in that of another device.
  virtual bool takes_device_tensors() const { return false; }
  // From how many ids on StartDistinct is to be called. Where each sample is
  // one id, all tables of the call count together, if a table has one of
  // kDistinctShares parts of that by itself.
  virtual int64_t min_ids_to_deduplicate() const {
    return std::numeric_limits<int64_t>::max();
  }
  // Takes what deduplicating that many ids, of that many samples, needs.
  // ResourceExhausted: the caller can do without. Not called where that many
  // ids are fewer than a table has at least, or none, or more than
  // kMaxDistinctIds.
  virtual Status StartDistinct(int64_t /*num_ids*/, int64_t /*num_samples*/,
                               std::unique_ptr<DeviceDistinct>* /*distinct*/) {
    return ResourceExhausted("ids are not deduplicated by this device");
  }
  // After its Wait, when it has unknown keys, once: names [K] as
  // DevicePooling::rows. All of the batch's keys have names then, and the
  // device knows those of rows, as far as it has memory for that. Read when it
  // returns; the device need not be done.
  virtual Status NameUnknown(Span<const RowHandle> /*names*/,
                             DeviceDistinct* /*distinct*/) {
    return Unimplemented("ids are not deduplicated by this device");
  }
  // Begins to pool: out [B, dim], as PoolSamples gives it, bit for bit. In
  // base/transfer_memory.h the device writes it directly. *work keeps the call
  // under way: REQUIRES that it is destroyed before a call that is made alone.
  virtual Status StartPool(const DevicePooling& pooling, float* out,
                           std::unique_ptr<DeviceWork>* work) = 0;

  // Begins to copy rows of several tables, all of the kind of this one and on
  // its device, where takes_device_tensors only. 'stream' as of DevicePooling.
  // *work as for StartPool, of every table. Rows that lie one after the other
  // in base/transfer_memory.h, from part to part, are read by the device
  // directly.
  virtual Status StartGather(Span<const DeviceGather> /*parts*/,
                             const DeviceStream& /*stream*/,
                             std::unique_ptr<DeviceWork>* /*work*/) {
    return Unimplemented("rows are not gathered by this device");
  }

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

  // out[i] = the sum of the squares of row i's value, formed in double from the
  // first element to the last (SumOfSquares of policy/eviction.h). Handles are
  // rows.
  virtual Status SquaredNorms(Span<const RowHandle> handles, double* out) = 0;
  // The reverse of Read. Handles are rows, each named once.
  virtual Status Write(Span<const RowHandle> handles, int column,
                       const float* in) = 0;

  // Whole rows, value and slots one after the other, for who keeps rows in two
  // memories: stretch by stretch, in order, fill makes those of handles [begin,
  // begin + n) where the device takes them from, and take finds them where it
  // puts them, [n, floats of a row], while it is busy with the next or the last
  // stretch. Handles are rows; in WriteWhole each named once.
  using FillRows = std::function<void(size_t begin, size_t n, float* rows)>;
  using TakeRows =
      std::function<void(size_t begin, size_t n, const float* rows)>;
  virtual Status WriteWhole(Span<const RowHandle> /*handles*/,
                            const FillRows& /*fill*/) {
    return Unimplemented("rows are not moved whole here");
  }
  virtual Status ReadWhole(Span<const RowHandle> /*handles*/,
                           const TakeRows& /*take*/) {
    return Unimplemented("rows are not moved whole here");
  }

  // Applies a rule (optimizer/rule.h) to rows, each named once; handles of no
  // row are passed over. slot_columns: one per slot of the rule, 0 for the
  // first slot. grads: [N, dim].
  virtual Status Apply(const std::string& rule, Span<const float> hyper,
                       Span<const RowHandle> handles,
                       Span<const int> slot_columns, const float* grads) = 0;

  // Before Write and Apply calls on so many rows: makes sure that they cannot
  // fail for want of room, until Unreserve. ResourceExhausted.
  virtual Status Reserve(int64_t /*rows*/) { return Status::OK(); }
  virtual void Unreserve(int64_t /*rows*/) {}

  // Makes the rows hold these slots, of which the first are those they hold
  // now; slots that are new get their initial value in every row. Alone. Needs
  // twice the memory of one piece of the rows at a time. After an error for
  // want of memory nothing has changed.
  virtual Status Relayout(Span<const float> initial_values) = 0;

  // These keys have no rows any more, or others. Before their rows are
  // forgotten. Alone.
  virtual void ForgetKeys(Span<const int64_t> /*keys*/) {}
  // These handles name no rows any more; NewRow may name them again. Memory in
  // which no row is left is given back. Alone.
  virtual void Forget(Span<const RowHandle> handles) = 0;
  // Gives all rows and their memory back; knows no key. Alone.
  virtual void Clear() = 0;

  // Of device memory; where rows are in CPU memory too, of both.
  virtual int64_t bytes() const = 0;
  // Whether a use of the row costs no more than of any other.
  virtual bool IsInMemory(RowHandle /*handle*/) const { return true; }
  virtual TierStats tiers() const { return TierStats(); }
};

struct DeviceRowsOptions {
  int64_t dim = 0;
  // [R, dim], R below 2^31. Rows that no key is made of may be among them.
  Span<const float> default_rows;
};

using DeviceRowsFactory = Status (*)(const DeviceRowsOptions& options,
                                     std::unique_ptr<DeviceRows>* rows);

// Called by the static initializer of the room's GPU code, if that is linked
// in. Returns true.
bool RegisterDeviceRows(DeviceRowsFactory factory);

// Rows on this process's GPU: the only one it sees, or the one of its local
// rank. FailedPrecondition: this build has no GPU code, there is no driver or
// no GPU, or one that the code was not compiled for; ResourceExhausted.
Status MakeDeviceRows(const DeviceRowsOptions& options,
                      std::unique_ptr<DeviceRows>* rows);

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_HOME_H_
