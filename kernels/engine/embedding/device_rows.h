// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The seam between a table and rows that the processor cannot address: those in
// the memory of a GPU. The table keeps its index, its handles and what rows
// count about themselves (frequency, version) in CPU memory, whatever holds the
// rows; a handle names a row here as it names one in a RowStore. So whatever a
// table does with keys, it does for every kind of storage.
//
// NEW ROWS are queued: NewRow only makes room and remembers the handle, and
// Flush writes all that are queued at once. Every call that touches rows
// flushes first, so a queued row is never seen unwritten.
//
// THREADS. All calls may be made at once but Relayout, Forget and Clear, which
// are made alone. Two calls that write the same row at once must be kept apart
// by the caller; a read beside a write sees either state of each element.
//
// Calls return when the device is done. Errors do not name the table: the
// caller does.

#ifndef KERNELS_ENGINE_EMBEDDING_DEVICE_ROWS_H_
#define KERNELS_ENGINE_EMBEDDING_DEVICE_ROWS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

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

  // out[i, :] = column of the row at handles[i], [N, dim]; handles of no row
  // (row_handle.h) are passed over: out is left alone there.
  virtual Status Read(Span<const RowHandle> handles, int column,
                      float* out) = 0;
  // The reverse. Handles are rows, each named once.
  virtual Status Write(Span<const RowHandle> handles, int column,
                       const float* in) = 0;

  // Applies a rule (optimizer/rule.h) to rows, each named once; handles of no
  // row are passed over. slot_columns: one per slot of the rule, 0 for the
  // first slot. grads: [N, dim].
  virtual Status Apply(const std::string& rule, Span<const float> hyper,
                       Span<const RowHandle> handles,
                       Span<const int> slot_columns, const float* grads) = 0;

  // Makes the rows hold these slots, of which the first are those they hold
  // now; slots that are new get their initial value in every row. Alone. Needs
  // twice the memory of one piece of the rows at a time. After an error for
  // want of memory nothing has changed.
  virtual Status Relayout(Span<const float> initial_values) = 0;

  // These handles name no rows any more; NewRow may name them again. Memory in
  // which no row is left is given back. Alone.
  virtual void Forget(Span<const RowHandle> handles) = 0;
  // Gives all rows and their memory back. Alone.
  virtual void Clear() = 0;

  virtual int64_t bytes() const = 0;  // of device memory
};

struct DeviceRowsOptions {
  int64_t dim = 0;
  Span<const float> default_rows;  // [R, dim]
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

#endif  // KERNELS_ENGINE_EMBEDDING_DEVICE_ROWS_H_
