// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/storage/dram/row_layout.h"

#include "kernels/engine/base/pages.h"

namespace ev {
namespace {

// Returns the cache lines touched by 16 consecutive rows. Offsets within a line
// repeat after at most 16 rows, since every stride is a multiple of 4 bytes.
size_t LinesOf16Rows(size_t row_bytes, size_t stride) {
  size_t lines = 0;
  for (size_t row = 0; row < 16; ++row) {
    const size_t offset = row * stride % kCacheLine;
    lines += (offset + row_bytes + kCacheLine - 1) / kCacheLine;
  }
  return lines;
}

}  // namespace

size_t RowStride(int64_t floats_per_row) {
  const size_t row_bytes = static_cast<size_t>(floats_per_row) * sizeof(float);
  size_t best = row_bytes;
  size_t best_lines = LinesOf16Rows(row_bytes, row_bytes);
  // More than one line of padding never helps.
  const size_t padding =
      row_bytes / 3 < kCacheLine ? row_bytes / 3 : kCacheLine;
  for (size_t stride = row_bytes + sizeof(float); stride <= row_bytes + padding;
       stride += sizeof(float)) {
    const size_t lines = LinesOf16Rows(row_bytes, stride);
    if (lines < best_lines) {
      best = stride;
      best_lines = lines;
    }
  }
  return best;
}

int SlabRowsLog2(size_t stride) {
  int log2 = 0;
  for (;; ++log2) {
    const size_t bytes = stride << log2;
    if (bytes >= 8 * kHugePage) return log2;
    if (bytes >= kHugePage && bytes % kHugePage == 0) return log2;
  }
}

}  // namespace ev
