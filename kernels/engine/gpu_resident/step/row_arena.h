// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in device memory: one block per table, a row per slot of its hash table,
// value and optimizer slots side by side, so that an update is one touch. The
// block grows where it is.

#ifndef KERNELS_ENGINE_GPU_RESIDENT_STEP_ROW_ARENA_H_
#define KERNELS_ENGINE_GPU_RESIDENT_STEP_ROW_ARENA_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/gpu/growing_buffer.h"
#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

class RowArena {
 public:
  // Memory for num_rows rows of a value and num_slots slots of dim floats each,
  // not initialised: a row is written when its key is inserted; and addresses
  // for max_rows of them. ResourceExhausted names the table, the bytes needed
  // and those free; FailedPrecondition: max_rows is more and the device cannot.
  // REQUIRES: all positive, num_slots may be 0.
  Status Allocate(const std::string& table, int64_t num_rows, int64_t max_rows,
                  int dim, int num_slots);

  // Memory for num_rows rows, no row moves. Errors as Allocate, and nothing has
  // changed then.
  Status Grow(int64_t num_rows);
  // Takes back the last Grow, if nothing has used its rows.
  void Shrink(int64_t num_rows, int64_t bytes);

  float* base() const { return rows_.as<float>(); }
  int64_t num_rows() const { return num_rows_; }
  int64_t stride() const { return stride_; }        // floats from row to row
  int slot_stride() const { return slot_stride_; }  // from value to slot
  int64_t bytes() const { return static_cast<int64_t>(rows_.size_bytes()); }

 private:
  std::string what_;
  GrowingBuffer rows_;
  int64_t num_rows_ = 0;
  int64_t stride_ = 0;
  int slot_stride_ = 0;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_GPU_RESIDENT_STEP_ROW_ARENA_H_
