// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/gpu_resident/step/row_arena.h"

namespace ev {
namespace gpu {

Status RowArena::Allocate(const std::string& table, int64_t num_rows,
                          int64_t max_rows, int dim, int num_slots) {
  slot_stride_ = (dim + 3) / 4 * 4;  // every part can be read 16 bytes a time
  stride_ = static_cast<int64_t>(slot_stride_) * (1 + num_slots);
  num_rows_ = num_rows;
  what_ = "rows of table '" + table + "'";
  const size_t row_bytes = static_cast<size_t>(stride_) * sizeof(float);
  return rows_.Allocate(num_rows * row_bytes, max_rows * row_bytes, what_);
}

Status RowArena::Grow(int64_t num_rows) {
  EV_RETURN_IF_ERROR(rows_.GrowTo(
      static_cast<size_t>(num_rows * stride_) * sizeof(float), what_));
  num_rows_ = num_rows;
  return Status::OK();
}

void RowArena::Shrink(int64_t num_rows, int64_t bytes) {
  rows_.ShrinkTo(static_cast<size_t>(bytes));
  num_rows_ = num_rows;
}

}  // namespace gpu
}  // namespace ev
