// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/hbm/row_arena.h"

namespace ev {
namespace gpu {

Status RowArena::Allocate(const std::string& table, int64_t num_rows, int dim,
                          int num_slots) {
  slot_stride_ = (dim + 3) / 4 * 4;  // every part can be read 16 bytes a time
  stride_ = static_cast<int64_t>(slot_stride_) * (1 + num_slots);
  num_rows_ = num_rows;
  return rows_.Allocate(static_cast<size_t>(num_rows * stride_) * sizeof(float),
                        "rows of table '" + table + "'");
}

}  // namespace gpu
}  // namespace ev
