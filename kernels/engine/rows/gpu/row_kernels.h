// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that read, write, create and update rows in device memory by their
// handles. Each call enqueues one kernel. Pointers are device memory. Handles
// that are not rows (kFirstReservedHandle and above) are skipped.

#ifndef KERNELS_ENGINE_ROWS_GPU_ROW_KERNELS_H_
#define KERNELS_ENGINE_ROWS_GPU_ROW_KERNELS_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/rows/gpu/row_pieces.h"

namespace ev {
namespace gpu {

struct RowBatch {
  PiecesView rows;
  const RowHandle* handles = nullptr;
  int64_t num_rows = 0;
  int64_t dim = 0;
  // Type of the value, or of the column that is read or written. Writing rounds
  // to nearest.
  FloatType type = FloatType::kFloat32;
};

// FailedPrecondition: this library has no code for the current device.
Status CheckDeviceRunsKernels();

// LaunchReadRows: out[i, :] = dim numbers of the batch's type at 'offset' of
// row i, in floats. LaunchWriteRows is the reverse.
Status LaunchReadRows(const RowBatch& batch, int64_t offset, float* out,
                      StreamView stream);
Status LaunchWriteRows(const RowBatch& batch, int64_t offset, const float* in,
                       StreamView stream);

// out[i] = the sum of squares of row i's value, added in double from first to
// last element.
Status LaunchSquaredNorms(const RowBatch& batch, double* out,
                          StreamView stream);

// Row i becomes row default_rows[i] of 'defaults', which has dim floats,
// followed by new_slots: the floats of a new row after its value.
Status LaunchNewRows(const RowBatch& batch, const int64_t* default_rows,
                     const float* defaults, const float* new_slots,
                     StreamView stream);

// Writes MixKey(keys[i]) to the end of row i.
Status LaunchWriteHashes(const RowBatch& batch, const int64_t* keys,
                         StreamView stream);

// Numbers of floats of rows that get other slots. A row has 'before' floats,
// and then 'after'. The first 'kept' stay, and the last 'hash' stay the last.
// The others are copied from new_slots, which begin value_floats after the row.
struct RowChange {
  int64_t before, after, kept, hash, value_floats;
};
Status LaunchRelayout(const RowChange& change, const float* from, float* to,
                      int64_t num_rows, const float* new_slots,
                      StreamView stream);

// How narrow values are rounded: stochastically with salts (RowHome::Apply), or
// to nearest if they are null. *overflows is increased by the number of rows
// with a value that became infinite.
struct RowRounding {
  const uint64_t* salts = nullptr;          // [num_rows]
  unsigned long long* overflows = nullptr;  // NOLINT: what atomicAdd takes
};

// Applies the rule to row i with gradient grads[i, :]. slot_offsets: in floats,
// one per slot of the rule.
Status LaunchApplyRule(const std::string& rule, Span<const float> hyper,
                       const RowBatch& batch, Span<const int64_t> slot_offsets,
                       const float* grads, const RowRounding& rounding,
                       StreamView stream);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_ROW_KERNELS_H_
